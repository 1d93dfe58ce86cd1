# SPDX-License-Identifier: LGPL-2.1-or-later
"""
_model - events, fields and records as objects
"""
import ctypes
import struct

from . import _c

def text(data):
    """A string of the library's, which anybody's program may have written."""
    return "" if data is None else data.decode("utf-8", "replace")


class Error(Exception):
    """What the library said went wrong. errno: the reason as a number."""

    def __init__(self, errno, sentence):
        super().__init__(sentence)
        self.errno = errno


class Field:
    """A field of an event: name, description, unit, type, element_type, labels (a dict of value: name)."""
    __slots__ = ("name", "description", "unit", "type", "element_type", "labels", "is_flags", "_letter", "_unpack",
                 "_offset", "_count")

    def __init__(self, c):
        self.name, self.description, self.unit = text(c.name), text(c.description), text(c.unit)
        self.type, self.element_type = _c.TYPES[c.type], _c.TYPES[c.element_type]
        self.is_flags = c.label_kind == _c.LABELS_FLAGS
        high = 1 << 64 if self.type.startswith("int") else 0  # C's are sign-extended
        self.labels = {}
        for i in range(c.label_count):
            value = c.labels[i].value
            self.labels.setdefault(value - high if high and value >> 63 else value, text(c.labels[i].name))
        self._letter = _c.LETTERS[self.element_type if self.type in ("list", "array") else self.type]
        self._unpack = None if self.type in ("list", "array", "string") else struct.Struct("=" + self._letter).unpack_from
        self._offset, self._count = c.offset, c.max_count

    def __repr__(self):
        return "<field %s: %s>" % (self.name, self.type)


class Event:
    """What an event is: name, layer, description, version, id, and its fields."""
    __slots__ = ("name", "layer", "description", "version", "id", "fields", "_index", "_address", "_fixed_bytes")

    def __init__(self, address):
        c = _c.Event.from_address(address)
        self.name, self.layer, self.description = text(c.name), text(c.layer), text(c.description)
        self.version, self.id = c.version, c.id
        self.fields = tuple(Field(c.fields[i]) for i in range(c.field_count))
        self._index = {field.name: i for i, field in enumerate(self.fields)}
        self._address, self._fixed_bytes = address, c.fixed_bytes

    def __repr__(self):
        return "<event %s>" % self.name


class Events(dict):
    """The events of one model, by the address of C's; each is made when it is first met."""

    def __missing__(self, address):
        event = self[address] = Event(address)
        return event


class Record:
    """
    What happened: record["size"], or record.size where that is no attribute of its own. It holds a copy, and may be kept.

    event, clock (the cycle counter's), time_ns (since the trace's start; 0 in a synchronous callback), pid, tid (0: unknown),
    cpu (None: unknown).
    """
    __slots__ = ("event", "clock", "time_ns", "pid", "tid", "cpu", "_data")

    def __init__(self, c, events):
        self.event = events[c.event]
        self.clock, self.time_ns, self.pid, self.tid = c.clock, c.time_ns, c.pid, c.tid
        self.cpu = None if c.cpu == _c.NO_CPU else c.cpu
        self._data = ctypes.string_at(c.data, c.bytes)

    def __getitem__(self, name):
        i = self.event._index[name]
        field = self.event.fields[i]
        if field._unpack:
            return field._unpack(self._data, field._offset)[0]
        if field.type == "array":
            return list(struct.unpack_from("=%d%s" % (field._count, field._letter), self._data, field._offset))
        return self._tail(i)

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError("%s has no field '%s'" % (self.event.name, name)) from None

    def __iter__(self):
        """Names of its fields, as a dict's are: dict(record) is all of it."""
        return iter(self.keys())

    def keys(self):
        return list(self.event._index)

    def words(self, name):
        """What the field's labels call its value, flags joined by '|'; '' if they have no word for it."""
        field, value = self.event.fields[self.event._index[name]], self[name]
        if value in field.labels or not field.is_flags:
            return field.labels.get(value, "")
        words, rest = [], value
        for bits, word in field.labels.items():
            if bits and value & bits == bits and rest & bits:
                words.append(word)
                rest &= ~bits
        return "|".join(words + ["0x%x" % rest] if rest and words else words)

    def __repr__(self):
        return "<%s %s>" % (self.event.name, " ".join("%s=%r" % (name, self[name]) for name in self))

    def _tail(self, wanted):
        """A string or list: they lie behind the fixed part in the fields' order, elements aligned (event.h)."""
        data, at = self._data, self.event._fixed_bytes
        for i, field in enumerate(self.event.fields):
            if field.type == "string":
                value, end = data[at:data.index(b"\0", at)], data.index(b"\0", at) + 1
                value = text(value) if i == wanted else None
            elif field.type == "list":
                count, = struct.unpack_from("=I", data, field._offset)
                size = struct.calcsize("=" + field._letter)
                at = -(-at // size) * size
                end = at + count * size
                value = list(struct.unpack_from("=%d%s" % (count, field._letter), data, at)) if i == wanted else None
            else:
                continue
            if i == wanted:
                return value
            at = end
