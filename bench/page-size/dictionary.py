# SPDX-License-Identifier: MIT
"""dictionary.py - a script that does little but use dictionaries: dictionary.py [THOUSAND_KEYS [PASSES]]"""
import sys


def main(count, passes):
    seen, names, total, key = {}, {}, 0, 1
    for i in range(count):
        key = (key * 1103515245 + 12345) % 2147483648
        seen[key] = i
        names["name %d" % key] = key
    keys = list(seen)
    for _ in range(passes):
        at = 0
        for _ in range(count):
            at = (at * 69069 + 1) % len(keys)
            total += seen[keys[at]] + names["name %d" % keys[at]]
    print("dictionary %x" % (total % (1 << 64)))


main((int(sys.argv[1]) if len(sys.argv) > 1 else 600) * 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 2)
