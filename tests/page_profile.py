# SPDX-License-Identifier: MIT
"""
page_profile.py - reads a profile of the page-size agent (agents/page-size/profile/format.h), for tests

Not here: damaged ones (tests/unit/page_size_profile.c).
"""
import bisect
import struct
from collections import namedtuple

OBJECT, SITE, RANGE, BURST, END, CALLS = range(1, 7)
STORE, CHAINED, ADDRESS = 1 << 63, 1 << 62, (1 << 56) - 1
KINDS = ("heap", "map", "data", "stack", "reserved")
NONE = 0xffffffff

Site = namedtuple("Site", "kind frames")  # frames: (object, offset)
Burst = namedtuple("Burst", "at thread references sites")  # sites: of each reference, or None
End = namedtuple("End", "references instructions lost stopped_at forks")


class Profile:
    """What a file holds. end is None if the file was cut."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        magic, self.source, self.pid = struct.unpack_from("<QII", data)
        assert magic == 0x31464f52504d4550, "no profile"
        self.objects, self.sites, self.bursts, self.end = {}, [], [], None
        self.requested = {}  # most bytes of a range, by site and start
        self._ranges = []
        at = 16
        while at + 8 <= len(data):
            kind, count = struct.unpack_from("<II", data, at)
            payload = data[at + 8:at + 8 + count]
            if len(payload) < count:
                break
            self._chunk(kind, payload)
            at += 8 + (count + 7) // 8 * 8

    def _chunk(self, kind, payload):
        if kind == OBJECT:
            number, start, end, bias = struct.unpack_from("<4Q", payload)
            self.objects[number] = payload[32:-1].decode()
        elif kind == SITE:
            numbers = struct.unpack("<II8Q", payload)
            frames = tuple(zip(numbers[2::2], numbers[3::2]))[:numbers[1]]
            self.sites.append(Site(KINDS[numbers[0]], frames))
        elif kind == RANGE:
            self._range(*struct.unpack("<QQIIQ", payload))
        elif kind == BURST:
            at, thread, _ = struct.unpack_from("<QII", payload)
            references = struct.unpack_from("<%dQ" % ((len(payload) - 16) // 8), payload, 16)
            self.bursts.append(Burst(at, thread, references, [self._site(r & ADDRESS) for r in references]))
        elif kind == END:
            self.end = End(*struct.unpack("<5Q", payload))

    def _range(self, start, end, site, _, requested):
        kept = []
        for old_start, old_end, old_site in self._ranges:
            if old_start < min(old_end, start):
                kept.append((old_start, min(old_end, start), old_site))
            if max(old_start, end) < old_end:
                kept.append((max(old_start, end), old_end, old_site))
        if site != NONE:
            kept.append((start, end, site))
            self.requested[site, start] = max(requested, self.requested.get((site, start), 0))
        self._ranges = sorted(kept)

    def _site(self, address):
        i = bisect.bisect_right(self._ranges, (address, 1 << 64, 0)) - 1
        return self._ranges[i][2] if i >= 0 and address < self._ranges[i][1] else None

    def loads(self, site):
        """Loads of a site, by its number."""
        return sum(s == site and not r & STORE for burst in self.bursts for r, s in zip(burst.references, burst.sites))

    def chained(self, site):
        """Of its loads, those whose address an earlier one gave."""
        return sum(s == site and r & CHAINED != 0 for burst in self.bursts for r, s in zip(burst.references, burst.sites))

    def bytes(self, site):
        """What was asked for, in all ranges of a site."""
        return sum(count for (of, _), count in self.requested.items() if of == site)

    def kept(self):
        """How many references the file has."""
        return sum(len(burst.references) for burst in self.bursts)
