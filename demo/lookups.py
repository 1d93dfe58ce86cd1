# SPDX-License-Identifier: MIT
"""lookups.py - looks keys of a large dictionary up in no order: what the page-size agent is shown on (demo/run)"""
KEYS = 1 << 20
words = {key * 2654435761 % (1 << 32): key for key in range(KEYS)}
state, total = 1, 0
for _ in range(1200000):
    state = (state * 1103515245 + 12345) % KEYS
    total += words[state * 2654435761 % (1 << 32)]
print(total)
