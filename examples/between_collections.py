# SPDX-License-Identifier: MIT
"""
between_collections.py - between_collections.c in Python: page faults and cache misses between garbage collections

Figure 4 of the paper on Performance and Environment Monitoring (Cascaval, Duesterwald, Sweeney, Wisniewski, IBM
J. R&D 50(2/3), 2006): a callback on an event of the application reads statistics of the operating system and of the
hardware. The C program says what is printed and what privilege it takes; this one prints the same. It needs pem_gc.py, which
pem-codegen makes of gc.xml, beside it, and pemapi where Python looks:

    pem gen --lang python -o . gc.xml
    python3 between_collections.py [COLLECTIONS [PAGES]]
"""
import mmap
import sys

import pemapi  # before pem_gc, which registers with the library that pemapi loads

import pem_gc

PAGE = mmap.PAGESIZE


class Heap:
    """A toy with a copying collector: one knows how many fresh pages it touches."""

    def __init__(self, capacity):
        self.capacity, self.used, self.collections = capacity, 0, 0
        self.space = self.fresh()

    def fresh(self):
        """Memory that nobody has touched; a huge page would come at one touch for 512."""
        space = mmap.mmap(-1, self.capacity * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        space.madvise(mmap.MADV_NOHUGEPAGE)
        return space

    def allocate(self, pages):
        for page in range(self.used, self.used + pages):
            self.space[page * PAGE] = 1
        self.used += pages

    def collect(self):
        """Keep the older half of the pages: copy them to fresh memory."""
        self.collections += 1
        pem_gc.notify_gc_start(self.collections, self.used * PAGE)
        kept, freed = self.used // 2, self.used - self.used // 2
        to = self.fresh()
        to[:kept * PAGE] = self.space[:kept * PAGE]
        self.space, self.used = to, kept
        pem_gc.notify_gc_end(self.collections, kept * PAGE, freed * PAGE)


def choose_events(session):
    """Page faults first: the kernel's if this user may have them, else the counter's. What can't be had is said."""
    for faults in "OS::Mem::PageFault", "HW::Software::PageFaults":
        events = session.events(faults, "HW::HWPerf::CacheMisses")
        reasons = [session.why_not(event) for event in events]
        for event, reason in zip(events, reasons):
            if reason:
                print("no %s: %s" % (event.name, reason), file=sys.stderr)
        if not reasons[0]:
            return events
    sys.exit(2)


def main(collections=5, pages=1000):
    # Figure 4's context: any processor, this process, this thread.
    here = pemapi.Context.this_thread()
    end_of_last = 0  # clock at the last collection's end; 0: there was none yet

    with pemapi.Session() as session:
        stats = session.statistics(choose_events(session), context=here)
        # Enabling opens the sources, once: now, and not in the middle of the first interval.
        with stats:
            pass

        def gc_start(record):
            """Figure 4's gcStart: stop counting first, so that neither the collector nor the printing counts."""
            stats.disable()
            if end_of_last:
                faults, misses = ("n/a" if v.unavailable else v.count for v in stats.read())
                print("from %d to %d: %s page faults, %s cache misses" % (end_of_last, record.clock, faults, misses))

        def gc_end(record):
            """Figure 4's gcEnd: from here to the next collection, count."""
            nonlocal end_of_last
            end_of_last = record.clock
            stats.reset()
            stats.enable()

        heap = Heap((collections + 2) * pages + 1)
        with session.callback(session.events("APP::GC::Start"), gc_start, here), \
                session.callback(session.events("APP::GC::End"), gc_end, here):
            for _ in range(collections):
                heap.allocate(pages)
                heap.collect()


main(*map(int, sys.argv[1:]))
