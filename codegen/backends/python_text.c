/* SPDX-License-Identifier: MIT */
/*
 * python_text.c - the parts of a Python module that do not depend on the spec
 *
 * Offsets in struct pem_provider and the control page come from the C compiler, so no structure is
 * described twice.
 */
#include "python.h"

#include <pem/stub.h>

#include <stdlib.h>

static const char doc[] =
	"\n"
	"While nobody records, a function is an index and a branch. It raises no exception and "
	"does not block; the first\n"
	"event of a thread maps memory. Any thread may call any of them; they keep the GIL. A "
	"forked child goes on by\n"
	"itself. Each subinterpreter that can import ctypes registers for itself.\n"
	"\n"
	"A value that does not fit is recorded as well as can be, and counted in misfits(): of an "
	"integer the low bits, of\n"
	"what is no number 0, of a float beyond float32 infinity. None is an empty string or list, "
	"or zeros. Text is\n"
	"UTF-8, and ends before a \\\\0; bytes are taken for UTF-8, other objects as str() has "
	"them. What exceeds its\n"
	"place is cut off, text never inside a character.\n"
	"\"\"\"\n"
	"from __future__ import annotations\n"
	"\n"
	"import enum as _enum\n"
	"import os as _os\n"
	"import struct as _struct\n"
	"import sys as _sys\n"
	"from collections.abc import Iterable as _Iterable\n"
	"from itertools import islice as _islice\n"
	"\n"
	"try:\n"
	"    import ctypes as _ctypes\n"
	"except ImportError:  # built without, or a subinterpreter that can't have it\n"
	"    _ctypes = None\n"
	"\n";

static const char packing[] =
	"\n"
	"_len, _Exception = len, Exception  # a field may be called len\n"
	"_FLOAT32_MAX = 3.4028234663852886e+38\n"
	"_misfits = 0\n"
	"\n"
	"\n"
	"def _text(text, most):\n"
	"    if not text:\n"
	"        return b\"\\0\" if text is None or type(text) in (str, bytes) else "
	"_text(str(text), most)\n"
	"    if type(text) is not str:\n"
	"        text = str(text[:most], \"utf-8\", \"replace\") if isinstance(text, bytes) else "
	"str(text)\n"
	"    data = text[:most].encode(\"utf-8\", \"replace\")\n"
	"    if len(data) > most:\n"
	"        data = data[:most].decode(\"utf-8\", \"ignore\").encode()\n"
	"    if b\"\\0\" in data:\n"
	"        data = data[:data.index(b\"\\0\")]\n"
	"    return data + b\"\\0\"\n"
	"\n"
	"\n"
	"def _list(values, most, code):\n"
	"    if values is None:\n"
	"        return 0, b\"\"\n"
	"    values = values[:most] if type(values) in (list, tuple) else tuple(_islice(values, "
	"most))\n"
	"    return len(values), _struct.pack(\"<%d%s\" % (len(values), code), *values)\n"
	"\n"
	"\n"
	"def _array(values, count):\n"
	"    if values is None:\n"
	"        return (0,) * count\n"
	"    values = tuple(_islice(values, count))\n"
	"    return values + (0,) * (count - len(values))\n"
	"\n"
	"\n"
	"def _number(value, code):\n"
	"    try:\n"
	"        if code == \"d\":\n"
	"            return float(value)\n"
	"        if code == \"f\":\n"
	"            value = float(value)\n"
	"            return value if not abs(value) > _FLOAT32_MAX else value * float(\"inf\")\n"
	"        value = int(value)\n"
	"    except Exception:\n"
	"        return 0\n"
	"    bits = 8 * _struct.calcsize(\"<\" + code)\n"
	"    value &= (1 << bits) - 1\n"
	"    return value - (1 << bits) if code.islower() and value >> (bits - 1) else value\n"
	"\n"
	"\n"
	"def _kept(values, most):\n"
	"    if values is None or hasattr(values, \"__len__\"):\n"
	"        return values\n"
	"    return tuple(_islice(values, most))\n"
	"\n"
	"\n"
	"def _fit(value, kind):\n"
	"    if kind == \"s\":\n"
	"        if value is None or isinstance(value, (str, bytes)):\n"
	"            return value\n"
	"        try:\n"
	"            return str(value).encode(\"utf-8\", \"replace\")\n"
	"        except Exception:\n"
	"            return \"\"\n"
	"    if len(kind) == 1:\n"
	"        return _number(value, kind)\n"
	"    try:\n"
	"        return [_number(v, kind[-1]) for v in _islice(value, int(kind[:-1]))]\n"
	"    except Exception:\n"
	"        return []\n"
	"\n"
	"\n"
	"def _mend(notify, kinds, values):\n"
	"    global _misfits\n"
	"    _misfits += 1\n"
	"    notify(*map(_fit, values, kinds))\n"
	"\n"
	"\n"
	"def misfits() -> int:\n"
	"    \"\"\"How many events had a value that did not fit its field.\"\"\"\n"
	"    return _misfits\n"
	"\n"
	"\n"
	"class _Off:\n"
	"    def __enter__(self):\n"
	"        return self\n"
	"\n"
	"    def __exit__(self, *error):\n"
	"        pass\n"
	"\n"
	"\n"
	"_off = _Off()\n";

static const char attach[] =
	"\n"
	"\n"
	"def _attach():\n"
	"    \"\"\"Hand the provider to libpem: (bytes that say what is wanted, address of the "
	"provider, notify, problem).\"\"\"\n"
	"    none = bytes(_CAPACITY), None, None\n"
	"    if not _ctypes or _struct.calcsize(\"P\") != 8 or _sys.byteorder != \"little\":\n"
	"        return none + (\"this Python has no ctypes, or is not of a 64-bit little-endian "
	"machine\",)\n"
	"    try:\n"
	"        libc = _ctypes.PyDLL(None)\n"
	"        register = libc.pem_provider_register\n"
	"    except (AttributeError, OSError, TypeError):\n"
	"        return none + (\"libpem is not in this process: run it under 'pem record'\",)\n"
	"    align = 65536 if _os.uname().machine == \"aarch64\" else 4096\n"
	"    page_bytes = (_PAGE_BYTES + align - 1) // align * align\n"
	"    tail = _NAME.ljust(16, b\"\\0\") + _struct.pack(\"<%%dI\" %% len(_IDS), *_IDS) + "
	"_MODEL + b\"\\0\"\n"
	"    bytes_wanted = page_bytes + _PROVIDER_BYTES + len(tail)\n"
	"    # Never given back: libpem may look at it until the process ends, later than this "
	"interpreter.\n"
	"    libc.mmap.restype = _ctypes.c_size_t\n"
	"    libc.mmap.argtypes = (_ctypes.c_void_p, _ctypes.c_size_t) + (_ctypes.c_int,) * 3 + "
	"(_ctypes.c_long,)\n"
	"    page = libc.mmap(None, bytes_wanted + align, 3, 0x22, -1, 0)  # read and write; "
	"private, anonymous\n"
	"    if page == _ctypes.c_size_t(-1).value:\n"
	"        return none + (\"no memory\",)\n"
	"    page = (page + align - 1) // align * align\n"
	"    memory = memoryview((_ctypes.c_ubyte * bytes_wanted).from_address(page)).cast(\"B\")\n"
	"    provider = page + page_bytes\n"
	"    name = provider + _PROVIDER_BYTES\n"
	"    ids = name + 16\n"
	"    model = ids + 4 * len(_IDS)\n"
	"    memory[page_bytes + _PROVIDER_BYTES:] = tail\n"
	"    for at, code, value in (%s):\n"
	"        _struct.pack_into(\"<\" + code, memory, page_bytes + at, value)\n"
	"    error = register(_ctypes.c_void_p(provider))\n"
	"    if error:\n"
	"        return none + (\"libpem refuses the events: \" + _os.strerror(-error),)\n"
	"    address, = _struct.unpack_from(\"<Q\", memory, page_bytes + %zu)\n"
	"    # PYFUNCTYPE keeps the GIL: what is called writes a record and returns.\n"
	"    return memory[%zu:%zu + _CAPACITY], _ctypes.c_void_p(provider), "
	"_ctypes.PYFUNCTYPE(None)(address), None\n"
	"\n"
	"\n"
	"if \"_enable\" not in globals():  # a reload keeps what is registered\n"
	"    _enable, _provider, _notify, _problem = _attach()\n"
	"\n"
	"\n"
	"def problem() -> str | None:\n"
	"    \"\"\"Why events can't be recorded; None: they can.\"\"\"\n"
	"    return _problem\n";

void pem_python__put_head(FILE *f)
{
	fputs(doc, f);
}

/* Print the offset and type of each member of struct pem_provider that the module fills. */
static char *members(void)
{
#define AT(member) offsetof(struct pem_provider, member)
	return pem_xprintf("(%zu, \"I\", %u), (%zu, \"I\", len(_IDS)), (%zu, \"Q\", name), (%zu, "
			   "\"Q\", ids),\n"
			   "                            (%zu, \"Q\", model), (%zu, \"Q\", page), "
			   "(%zu, \"Q\", page_bytes)",
			   AT(abi_version), PEM_ABI_VERSION, AT(event_count), AT(name),
			   AT(event_ids), AT(model), AT(page), AT(page_bytes));
#undef AT
}

void pem_python__put_attach(FILE *f, const struct pem_spec *spec)
{
	unsigned capacity = PEM_EVENT_CAPACITY(spec->stub_count);
	size_t enable = sizeof(struct pem_control_header);
	size_t page = enable + capacity + (size_t)capacity * PEM_SESSIONS_MAX * sizeof(uint64_t);
	char *list = members();

	fprintf(f, "_NAME = b\"%s\"\n_CAPACITY = %u\n_PAGE_BYTES = %zu\n_PROVIDER_BYTES = %zu\n",
		spec->provider, capacity, page, sizeof(struct pem_provider));
	fputs(packing, f);
	fprintf(f, attach, list, offsetof(struct pem_provider, notify), enable, enable);
	free(list);
}
