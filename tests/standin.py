# SPDX-License-Identifier: MIT
"""
standin.py - a small library in libpem's place: programs over generated code link with it and run without any recording

It registers their provider, enables all its events (standin_enable switches them), and prints each record that it gets;
played() returns them decoded by the provider's own model. Single-threaded programs only.
"""
import os
import struct

from tap import CODEGEN, ROOT, equal, run

ABI = os.path.join(ROOT, "spec/abi")

SOURCE = r"""
#include <pem/stub.h>
#include <stdio.h>
#include <stdlib.h>

void standin_enable(int on);

static __thread struct pem_thread *self __attribute__((tls_model("initial-exec")));
static struct pem_thread thread; /* of no thread: all records go to notify */
static struct pem_provider *registered;

static void notify(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes)
{
	uint32_t i, id;

	memcpy(&id, (uint8_t *)record + 4, 4);
	if (provider != registered || provider->event_ids[index] != id)
		abort();
	printf("record ");
	for (i = 0; i < bytes; i++)
		printf("%02x", ((uint8_t *)record)[i]);
	printf("\n");
	fflush(stdout);
}

void standin_enable(int on)
{
	memset((uint8_t *)registered->page + sizeof(struct pem_control_header), on ? 1 : 0, registered->event_count);
}

int pem_provider_register(struct pem_provider *provider)
{
	uint8_t *tp;

#if defined(__x86_64__)
	__asm__("movq %%fs:0, %0" : "=r"(tp));
#else
	tp = (uint8_t *)__builtin_thread_pointer();
#endif
	self = &thread;
	registered = provider;
	provider->thread_offset = (uint8_t *)&self - tp;
	provider->notify = notify;
	provider->registered = 1;
	printf("%s.\n", provider->model);
	fflush(stdout);
	standin_enable(1);
	return 0;
}

void pem_provider_unregister(struct pem_provider *provider)
{
	provider->registered = 0;
}
"""

# Every form that a field can have, and names that languages find hard.
SPEC = r"""<?xml version='1.0' encoding='UTF-8'?>
<spec provider='wide' version='1.2' description='Names and values that some language finds hard'>
  <enum name='State' description='a description so long that no line of any language holds it, and that goes on and on, until it is broken into lines that are short enough'>
    <label name='new' value='0' description='a word of C++'/>
    <label name='EAGAIN' value='11' description='a macro'/>
    <label name='lowest' value='-128' description='ends */ and /* starts ??/ a "comment" \'/>
  </enum>
  <enum name='big_one' description='64 bits'><label name='most' value='18446744073709551615' description='d'/><label name='none' value='0' description='d'/></enum>
  <enum name='low' description='64 bits, signed'><label name='least' value='-9223372036854775808' description='d'/></enum>
  <flags name='Mask' description='of two widths'><label name='half' value='0xf' description='d'/><label name='top' value='0x80' description='d'/></flags>
  <event name='APP::Wide::Numbers' description='ends */ and /* starts ??/ a "comment" \' since='1.0' deprecated='use "Texts" \ instead'>
    <layerId value='APP'/><classId value='Wide'/><specifier value='Numbers'/>
    <fields>
      <field name='state' type='int8' enum='State' description='its name is its type&apos;s, but for a capital'/>
      <field name='size' type='uint16' unit='none' description='an intrinsic function of Fortran'/>
      <field name='len' type='uint8' unit='none' description='another'/>
      <field name='most' type='uint64' enum='big_one' description='s'/>
      <field name='least' type='int64' enum='low' description='s'/>
      <field name='mask' type='uint8' flags='Mask' description='s'/>
      <field name='wider' type='uint16' flags='Mask' description='s'/>
      <field name='place' type='address' description='s'/>
      <field name='half' type='float32' unit='m' description='s'/>
    </fields>
  </event>
  <event name='APP::Wide::Texts' description='strings'>
    <layerId value='APP'/><classId value='Wide'/><specifier value='Texts'/>
    <fields>
      <field name='short_one' type='string' max='2' description='s'/>
      <field name='text' type='string' max='8' description='s'/>
      <field name='long_one' type='string' max='3000' description='s'/>
    </fields>
  </event>
  <event name='APP::Wide::Lists' description='lists and arrays'>
    <layerId value='APP'/><classId value='Wide'/><specifier value='Lists'/>
    <fields>
      <field name='bytes' type='list' eltType='uint8' max='3' unit='none' description='s'/>
      <field name='shorts' type='list' eltType='int16' max='3' unit='none' description='s'/>
      <field name='floats' type='list' eltType='float32' max='3' unit='none' description='s'/>
      <field name='doubles' type='list' eltType='float64' max='3' unit='none' description='s'/>
      <field name='places' type='list' eltType='address' max='3' description='s'/>
      <field name='pair' type='array' eltType='float32' count='2' unit='none' description='s'/>
      <field name='three' type='array' eltType='address' count='3' description='s'/>
    </fields>
  </event>
  <event name='APP::Wide::Nothing' description='no fields'>
    <layerId value='APP'/><classId value='Wide'/><specifier value='Nothing'/>
  </event>
  <event name='APP::Wide::JobBegin' description='says more than its end' deprecated='jobs are gone'>
    <layerId value='APP'/><classId value='Wide'/><specifier value='JobBegin'/>
    <meaning value='interval-begin' group='APP::Wide::Job'/>
    <fields>
      <field name='who' type='string' role='key' max='6' description='s'/>
      <field name='at' type='array' eltType='uint16' count='2' unit='none' description='s'/>
      <field name='more' type='list' eltType='uint16' unit='none' description='s'/>
      <field name='state' type='int8' enum='State' description='s'/>
    </fields>
  </event>
  <event name='APP::Wide::JobEnd' description='s' deprecated='jobs are gone'>
    <layerId value='APP'/><classId value='Wide'/><specifier value='JobEnd'/>
    <meaning value='interval-end' group='APP::Wide::Job'/>
    <fields>
      <field name='who' type='string' role='key' max='6' description='s'/>
      <field name='at' type='array' eltType='uint16' count='2' unit='none' description='s'/>
      <field name='state' type='int8' enum='State' description='s'/>
    </fields>
  </event>
  <event name='APP::Wide::IdleBegin' description='s'>
    <layerId value='APP'/><classId value='Wide'/><specifier value='IdleBegin'/>
    <meaning value='interval-begin' group='APP::Wide::Idle'/>
  </event>
  <event name='APP::Wide::IdleEnd' description='s'>
    <layerId value='APP'/><classId value='Wide'/><specifier value='IdleEnd'/>
    <meaning value='interval-end' group='APP::Wide::Idle'/>
  </event>
</spec>
"""

# Names that mean something to generated code itself; to be compiled only.
NAMES = r"""<spec provider='std' version='1.0' description='d'>
  <enum name='class' description='d'><label name='delete' value='1' description='d'/><label name='Self' value='2' description='d'/></enum>
  <enum name='Drop' description='d'><label name='core' value='1' description='d'/></enum>
  <enum name='self' description='d'><label name='crate' value='1' description='d'/></enum>
  <flags name='list' description='d'><label name='len' value='1' description='d'/></flags>
  <event name='APP::Int::Min' description='d'>
    <layerId value='APP'/><classId value='Int'/><specifier value='Min'/>
    <fields>
      <field name='kind' type='uint8' enum='class' description='d'/>
      <field name='ior' type='uint8' enum='Drop' description='d'/>
      <field name='size' type='uint16' enum='self' description='d'/>
      <field name='min' type='list' eltType='uint8' max='4' unit='none' description='d'/>
      <field name='list' type='uint32' flags='list' description='d'/>
      <field name='std' type='string' max='4' description='d'/>
      <field name='text' type='string' max='4' description='d'/>
      <field name='detail' type='array' count='2' eltType='int8' unit='none' description='d'/>
      <field name='volatile_page' type='uint8' unit='none' description='d'/>
      <field name='c_int8_t' type='uint8' unit='none' description='d'/>
    </fields>
  </event>
  <event name='APP::Int::Begin' description='d'>
    <layerId value='APP'/><classId value='Int'/><specifier value='Begin'/><meaning value='interval-begin' group='g'/>
    <fields><field name='std' type='string' role='key' max='4' description='d'/><field name='list' type='uint32' flags='list' description='d'/></fields>
  </event>
  <event name='APP::Int::End' description='d'>
    <layerId value='APP'/><classId value='Int'/><specifier value='End'/><meaning value='interval-end' group='g'/>
    <fields><field name='std' type='string' role='key' max='4' description='d'/><field name='list' type='uint32' flags='list' description='d'/></fields>
  </event>
</spec>
"""

NUMBERS = {"uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "int8": "b", "int16": "h", "int32": "i",
           "int64": "q", "float32": "f", "float64": "d", "address": "Q"}


def generate(backend, folder, spec=SPEC):
    """A spec, in folder, as this backend writes it."""
    path = os.path.join(folder, "wide.xml" if spec is SPEC else "std.xml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(spec)
    equal(run([CODEGEN, "--backend", backend, "-o", folder, path]), (0, "", ""), "pem-codegen")


def generate_all(backend, folder):
    """SPEC, NAMES, the catalogue, and the specs of examples and tests; the providers' names."""
    specs = [os.path.join(where, name) for top in ("spec", "examples", "tests/programs")
             for where, _, names in os.walk(os.path.join(ROOT, top)) for name in sorted(names)
             if name.endswith(".xml") and os.path.basename(where) not in ("hardware", "explore")]
    rc, _, err = run([CODEGEN, "--backend", backend, "-o", folder, *sorted(specs)])
    equal(rc, 0, "pem-codegen, which said: " + err)
    generate(backend, folder)
    generate(backend, folder, NAMES)
    return sorted(name[:-2] for where, _, names in os.walk(folder) for name in names if name.endswith(".h"))


def compiled(command):
    """Run a compiler; anything it says is an error."""
    rc, out, err = run(command, timeout=100)
    equal((rc, out + err), (0, ""), " ".join(command))


def library(folder):
    """The stand-in, built; flags that link with it."""
    source = os.path.join(folder, "standin.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(SOURCE)
    compiled(["gcc", "-O1", "-g", "-shared", "-fPIC", "-I" + ABI, source, "-o", os.path.join(folder, "libstandin.so")])
    return ["-L" + folder, "-lstandin", "-Wl,-rpath," + folder, "-ldl"]


def disabled_bytes(path, function):
    """Bytes of the x86-64 instructions that a function of an object file runs up to its return when nothing is enabled."""
    rc, out, err = run(["objdump", "-d", "--disassemble=" + function, path])
    equal(rc, 0, "objdump: " + err)
    code, total, at = {}, 0, None
    for line in out.splitlines():
        cells = line.split("\t")
        if len(cells) > 2:
            code[int(cells[0].strip(" :"), 16)] = (len(cells[1].split()), cells[2].split())
            at = min(code)
    while at is not None:
        size, words = code[at]
        total += size
        if words[0].startswith("ret"):
            return total
        assert words[0] not in ("call", "jmp"), out
        at = int(words[1], 16) if words[0] == "je" else at + size
    raise AssertionError("%s is not in %s" % (function, path))


def played(program):
    """Run a program: (what it printed itself, records as (specifier, {field: value}))."""
    rc, out, err = run([program], env={"LD_PRELOAD": None})
    equal((rc, err), (0, ""), "status and errors, after " + out[-300:])
    text, rest = out.split("\n.\n", 1)
    events, lines = model(text), rest.splitlines()
    records = [decode(events, bytes.fromhex(line.split()[1])) for line in lines if line.startswith("record ")]
    return "\n".join(line for line in lines if not line.startswith("record ")), records


def model(text):
    """Events of a model text by id: (specifier, size of what is fixed, fields)."""
    events = {}
    for line in text.splitlines():
        cells = line.split("\t")
        if cells[0] == "event" and len(cells) > 14:
            events[int(cells[1], 16)] = (cells[5], int(cells[13]), [])
            fields = events[int(cells[1], 16)][2]
        elif cells[0] == "field":
            fields.append((cells[1], cells[2], cells[3], int(cells[6]), int(cells[7])))
    return events


def decode(events, record):
    """A record as event.h describes it."""
    specifier, at, fields = events[struct.unpack_from("<I", record, 4)[0]]
    values = {}
    for name, kind, element, offset, count in fields:
        if kind == "string":
            end = record.index(0, at)
            values[name], at = record[at:end].decode("utf-8"), end + 1
        elif kind == "list":
            count, = struct.unpack_from("<I", record, offset)
            at += -at % struct.calcsize(NUMBERS[element])
            values[name] = list(struct.unpack_from("<%d%s" % (count, NUMBERS[element]), record, at))
            at += count * struct.calcsize(NUMBERS[element])
        elif kind == "array":
            values[name] = list(struct.unpack_from("<%d%s" % (count, NUMBERS[element]), record, offset))
        else:
            values[name], = struct.unpack_from("<" + NUMBERS[kind], record, offset)
    equal(at, len(record), "bytes of " + specifier)
    return specifier, values
