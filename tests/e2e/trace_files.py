# SPDX-License-Identifier: MIT
"""
trace_files.py - writes a trace folder byte by byte, so that a test knows all that is in it

Not here: tests; recording. The format: spec/abi/pem/{abi,event}.h and libpem/include/pem/trace.h.

	trace = Trace()
	fault = trace.event("OS::Memory::PageFault", fields=[("address", "uint64", "address")])
	trace.add(fault, 1_500_000, [4096], pid=7)
	trace.write(folder)
"""
import os
import struct
from collections import Counter

NO_CPU = 0xFFFFFFFF
HZ = 1_000_000_000  # so that the clock counts nanoseconds
START = 5_000_000_000
USER, KERNEL, COUNTER = 0, 1, 2
FORMATS = {"uint32": "I", "int64": "q", "uint64": "Q", "float64": "d"}


def event_id(name):
    """FNV-1a, 32 bits."""
    value = 0x811C9DC5
    for byte in name.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


class Trace:
    """Events, records and what the recorder would have said about itself."""

    def __init__(self, **run):
        self.run = {"command": "made by hand", "host": "nowhere", "version": "0", "start_time_ns": 10 ** 18,
                    "start_clock": START, "duration_ns": 0, "clock_hz": HZ, "clock_error_ns": 100,
                    "recorder_cpu_ns": 2_000_000, "program_cpu_ns": 900_000_000, "exit_status": 0, "complete": 1}
        self.run.update(run)
        self.costs, self.gaps, self.discarded = [], [], {}
        self.model, self.metrics, self.records = {}, [], []

    def event(self, name, meaning="-", fields=(), description="", unit="", group=None, scope=None):
        """Add an event of fields (name, type, role); strings come last. Returns its name."""
        layer, klass, specifier = name.split("::")
        at, most, lines = 8, 8, []
        for field, kind, role in fields:
            if kind == "string":
                offset, count, most = 0, 256, most + 256
            else:
                size = struct.calcsize(FORMATS[kind])
                offset, count = (at + size - 1) // size * size, 1
                at = offset + size
            lines.append("\t".join(["field", field, kind, "-", "10", role, str(offset), str(count), unit,
                                    "-", "0", ""]))
        most = (max(most, at + most - 8) + 7) // 8 * 8
        if group is None:
            group = layer + "::" + klass if meaning.startswith("interval") else ""
        scope = scope or ("thread" if group else "-")
        head = ["event", "%08x" % event_id(name), name, layer, klass, specifier, "1", "info", meaning, group, scope,
                "stub", "", str(at), str(most), str(len(lines)), "0", "", "", description]
        self.model[name] = (fields, ["\t".join(head)] + lines)
        return name

    def metric(self, name, form, of, to=("", ""), unit="", description=""):
        """Declare a metric of terms (event, field)."""
        self.metrics.append("\t".join(["metric", name, form, *of, *to, unit, description]))

    def add(self, name, time_ns, values=(), pid=1, tid=None, cpu=NO_CPU, source=USER):
        """One record; text as bytes."""
        data = b""
        for (_, kind, _), value in zip(self.model[name][0], values):
            if kind == "string":
                data += value + b"\0"
            else:
                size = struct.calcsize(FORMATS[kind])
                data += bytes(-len(data) % size) + struct.pack("<" + FORMATS[kind], value)
        self.records.append((START + time_ns, name, data, (source, pid, pid if tid is None else tid, cpu)))

    def count(self, name, pid=None):
        return sum(1 for r in self.records if r[1] == name and pid in (None, r[3][1]))

    def write(self, folder):
        os.makedirs(os.path.join(folder, ".pem"))
        self._write(folder, ".pem/model", "pem-model\t2\n" + "".join(
            line + "\n" for _, lines in [*self.model.values(), ((), self.metrics)] for line in lines))
        run = ["%s=%s" % item for item in self.run.items()]
        run += ["cost=" + "\t".join(map(str, cost)) for cost in self.costs]
        run += ["gap=" + "\t".join(gap) for gap in self.gaps]
        self._write(folder, ".pem/run", "\n".join(run) + "\n")
        lines, counts = ["producer\t1\tprogram"], Counter(r[1] for r in self.records)
        for name in self.model:
            seen, lost = counts[name], self.discarded.get(name, 0)
            lines.append("event\t%08x\t%d\t%d\t%d\t0" % (event_id(name), seen + lost, seen, lost))
        self._write(folder, ".pem/balance", "\n".join(lines + ["end"]) + "\n")
        self._write(folder, "metadata", "/* CTF 1.8 */\n")
        streams = {}
        for record in sorted(self.records, key=lambda r: r[0]):
            streams.setdefault(record[3], []).append(record)
        for number, (context, records) in enumerate(streams.items()):
            with open(os.path.join(folder, "u_%d_%d" % (context[1], number)), "wb") as out:
                self._stream(out, number, context, records)

    def _stream(self, out, number, context, records):
        # A packet spans less than the 32 bits of a record's clock.
        packets, packet = [], []
        for record in records:
            if packet and (record[0] - packet[0][0] >= 1 << 31 or len(packet) == 500):
                packets.append(packet)
                packet = []
            packet.append(record)
        packets.append(packet)
        for sequence, packet in enumerate(packets):
            out.write(self._packet(number, sequence, context, packet))

    def _packet(self, number, sequence, context, packet):
        body, end = b"", 0
        for clock, name, data, _ in packet:
            body += bytes(-len(body) % 8)
            body += struct.pack("<II", clock & 0xFFFFFFFF, event_id(name)) + data
            end = len(body)
        body += bytes(-len(body) % 8)
        source, pid, tid, cpu = context
        return struct.pack("<I16sIQQQQQQQQIIIIQ", 0xC1FC1FC1, b"hand-made trace!", 0, number, packet[0][0],
                           packet[-1][0], (112 + end) * 8, (112 + len(body)) * 8, 0, sequence, 0, pid, tid, cpu,
                           source, len(packet)) + body

    @staticmethod
    def _write(folder, name, text):
        with open(os.path.join(folder, name), "wb") as out:
            out.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
