# SPDX-License-Identifier: MIT
"""
polyglot.py - raises every type of field N times; the same in each language, see tests/e2e/polyglot.py
"""
import sys

import pem_polyglot as pem

L = pem.Language.PYTHON

for i in range(int(sys.argv[1])):
    with pem.polyglot_work(L, i):
        big = i * 1000000007
        pem.notify_polyglot_numbers(L, -(i % 100), i % 256, -(i % 30000), i % 65536, -(i % 1000000) * 2, i * 3, -big, big,
                                    i / 4, i / 8, 0x1000 + i * 16, i % 8)
        pem.notify_polyglot_texts(L, f"näme-{i}", [k * i - 4 for k in range(i % 9)], f"t{i % 10}")
        pem.notify_polyglot_shapes(L, i % 256, i * 0.5, i * 0.25, i * 1.5, i * 1.25,
                                   [i % 1000, i % 1000 + 1, i % 1000 + 2], i)
if pem.problem() or pem.misfits():
    print("polyglot.py:", pem.problem() or f"{pem.misfits()} misfits", file=sys.stderr)
