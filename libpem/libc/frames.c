/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * frames.c - finds and keeps the rule by which a function's frame ends, and goes by it
 *
 * A rule is found by the tables of .eh_frame_hdr and .eh_frame: once for each return address, in a
 * microsecond. It is kept in a table that threads share without a lock. Each entry has three words,
 * and the first is a sum of the address and the two others: an entry that two threads write at once
 * has no address. One of the words is a piece of code at the address, so that a rule does not
 * outlive a library that is closed.
 *
 * Not here: what the callers are called, and which of them count (wrappers.c).
 */
#include "libc/frames.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

#if defined(__x86_64__) && defined(DLFO_STRUCT_HAS_EH_DBASE)

/* Since glibc 2.35: finds an object by an address inside of it, without a lock. */
__attribute__((weak)) int _dl_find_object(void *address, struct dl_find_object *result);

/* --- reading tables --- */

struct reader {
	const uint8_t *at, *end;
	bool failed;
};

static uint64_t take(struct reader *r, size_t bytes)
{
	uint64_t value = 0;

	if (r->failed || (size_t)(r->end - r->at) < bytes) {
		r->failed = true;
		return 0;
	}
	memcpy(&value, r->at, bytes);
	r->at += bytes;
	return value;
}

static uint64_t take_uleb(struct reader *r)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = take(r, 1);
		if (shift < 64)
			value |= (byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	return value;
}

static int64_t take_sleb(struct reader *r)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = take(r, 1);
		if (shift < 64)
			value |= (byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	if (shift < 64 && byte & 64)
		value |= ~UINT64_C(0) << shift;
	return (int64_t)value;
}

static void skip(struct reader *r, uint64_t bytes)
{
	if (r->failed || (uint64_t)(r->end - r->at) < bytes)
		r->failed = true;
	else
		r->at += bytes;
}

/* Encodings of addresses (DW_EH_PE_): what they are relative to, and their form. */
enum { FORM = 0x0f, RELATIVE = 0x70, TO_ITSELF = 0x10, ABSOLUTE = 0, FOUR = 0x0b, EIGHT = 0x0c };
#define OMITTED 0xffu
#define TABLE_ENCODING 0x3bu /* four bytes, signed, relative to the table's head */

static uint64_t take_address(struct reader *r, unsigned encoding)
{
	uint64_t base = encoding & RELATIVE & TO_ITSELF ? (uintptr_t)r->at : 0;
	uint64_t value = 0;

	if ((encoding & RELATIVE & ~TO_ITSELF) || encoding & 0x80)
		r->failed = true;
	else if ((encoding & FORM) == FOUR)
		value = (uint64_t)(int32_t)take(r, 4);
	else if ((encoding & FORM) == EIGHT || (encoding & FORM) == ABSOLUTE)
		value = take(r, 8);
	else
		r->failed = true;
	return value + base;
}

static size_t form_bytes(unsigned encoding)
{
	static const uint8_t bytes[16] = {8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8};

	return encoding == OMITTED ? 0 : bytes[encoding & FORM];
}

/* --- rules --- */

/* How a frame ends. Numbers of registers are those of DWARF. */
enum { BP = 6, SP = 7, RETURN = 16, FRAME_MAX = 1 << 20 };
enum { KNOWN = 1, BY_BP = 2, BP_SAVED = 4, BP_LOST = 8, OUTERMOST = 16 };
enum { CFA_SHIFT = 8, BP_SHIFT = 32 };

struct row {
	unsigned cfa_register; /* 0: unknown */
	int64_t cfa;
	int64_t bp; /* where it is saved, from the frame's end */
	bool bp_saved, bp_lost, returns;
	bool is_outermost; /* its return address is undefined, as that of _start */
};

struct program {
	struct row row, first, kept[8];
	unsigned depth;
	uint64_t code_unit;
	int64_t data_unit;
	uint64_t location, wanted; /* the next row's, and the one that is looked for */
};

static void put_register(struct row *row, uint64_t number, bool is_saved, int64_t offset)
{
	if (number == BP) {
		row->bp_saved = is_saved;
		row->bp_lost = !is_saved;
		row->bp = offset;
	} else if (number == RETURN) {
		row->returns = is_saved && offset == -8;
	}
}

static void restore_register(struct program *p, uint64_t number)
{
	if (number == BP) {
		p->row.bp_saved = p->first.bp_saved;
		p->row.bp_lost = p->first.bp_lost;
		p->row.bp = p->first.bp;
	} else if (number == RETURN) {
		p->row.returns = p->first.returns;
	}
}

static void same_register(struct row *row, uint64_t number)
{
	if (number == BP)
		row->bp_saved = row->bp_lost = false;
	else if (number == RETURN)
		row->returns = false;
}

/* Instructions that say where the frame ends (DW_CFA_). False: an unknown one. */
static bool run_cfa(struct row *row, struct reader *r, unsigned op, int64_t unit)
{
	switch (op) {
	case 0x0c: /* def_cfa */
		row->cfa_register = (unsigned)take_uleb(r);
		row->cfa = (int64_t)take_uleb(r);
		return true;
	case 0x12: /* def_cfa_sf */
		row->cfa_register = (unsigned)take_uleb(r);
		row->cfa = take_sleb(r) * unit;
		return true;
	case 0x0d: /* def_cfa_register */
		row->cfa_register = (unsigned)take_uleb(r);
		return true;
	case 0x0e: /* def_cfa_offset */
		row->cfa = (int64_t)take_uleb(r);
		return true;
	case 0x13: /* def_cfa_offset_sf */
		row->cfa = take_sleb(r) * unit;
		return true;
	case 0x0f: /* def_cfa_expression */
		row->cfa_register = 0;
		skip(r, take_uleb(r));
		return true;
	default:
		return false;
	}
}

/* The instructions with a number of their own (DW_CFA_). False: an unknown one. */
static bool run_extended(struct program *p, struct reader *r, unsigned op)
{
	struct row *row = &p->row;
	uint64_t number;

	switch (op) {
	case 0x00: /* nop */
		return true;
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		p->location += take(r, (size_t)1 << (op - 2)) * p->code_unit;
		return true;
	case 0x05: /* offset_extended */
		number = take_uleb(r);
		put_register(row, number, true, (int64_t)take_uleb(r) * p->data_unit);
		return true;
	case 0x11: /* offset_extended_sf */
		number = take_uleb(r);
		put_register(row, number, true, take_sleb(r) * p->data_unit);
		return true;
	case 0x06: /* restore_extended */
		restore_register(p, take_uleb(r));
		return true;
	case 0x07: /* undefined */
		number = take_uleb(r);
		put_register(row, number, false, 0);
		row->is_outermost |= number == RETURN;
		return true;
	case 0x08: /* same_value */
		same_register(row, take_uleb(r));
		return true;
	case 0x09: /* register, val_offset, val_offset_sf: unknown here */
	case 0x14:
	case 0x15:
		put_register(row, take_uleb(r), false, 0);
		take_uleb(r);
		return true;
	case 0x0a: /* remember_state */
		if (p->depth == sizeof(p->kept) / sizeof(p->kept[0]))
			return false;
		p->kept[p->depth++] = *row;
		return true;
	case 0x0b: /* restore_state */
		if (!p->depth)
			return false;
		*row = p->kept[--p->depth];
		return true;
	case 0x10: /* expression, val_expression */
	case 0x16:
		put_register(row, take_uleb(r), false, 0);
		skip(r, take_uleb(r));
		return true;
	case 0x2e: /* GNU_args_size */
		take_uleb(r);
		return true;
	default:
		return run_cfa(row, r, op, p->data_unit);
	}
}

/* Run instructions up to the row of the wanted address. */
static bool run(struct program *p, struct reader *r)
{
	while (r->at < r->end && !r->failed) {
		unsigned op = (unsigned)take(r, 1), low = op & 63;

		switch (op >> 6) {
		case 1: /* advance_loc */
			p->location += low * p->code_unit;
			break;
		case 2: /* offset */
			put_register(&p->row, low, true, (int64_t)take_uleb(r) * p->data_unit);
			break;
		case 3: /* restore */
			restore_register(p, low);
			break;
		default:
			if (!run_extended(p, r, low))
				return false;
		}
		if (p->location > p->wanted)
			return true;
	}
	return !r->failed;
}

/* Read the head of a CIE. r: all of it. False: it is of no kind that is known. */
static bool read_cie(struct program *p, struct reader *r, unsigned *encoding, bool *has_data)
{
	unsigned version = (unsigned)take(r, 1), personality;
	const char *kind = (const char *)r->at;
	uint64_t bytes;
	const uint8_t *end;

	*encoding = ABSOLUTE;
	*has_data = false;
	while (take(r, 1))
		;
	p->code_unit = take_uleb(r);
	p->data_unit = take_sleb(r);
	if ((version == 1 ? take(r, 1) : take_uleb(r)) != RETURN || r->failed ||
	    (version != 1 && version != 3))
		return false;
	if (!*kind)
		return true;
	if (*kind++ != 'z')
		return false;
	*has_data = true;
	bytes = take_uleb(r);
	if (r->failed || bytes > (uint64_t)(r->end - r->at))
		return false;
	for (end = r->at + bytes; *kind; kind++) {
		if (*kind == 'R') {
			*encoding = (unsigned)take(r, 1);
		} else if (*kind == 'L') {
			take(r, 1);
		} else if (*kind == 'P') {
			personality = (unsigned)take(r, 1);
			skip(r, form_bytes(personality));
		} else {
			return false; /* 'S': a signal came between */
		}
	}
	r->at = end;
	return !r->failed;
}

/* A reader of the entry at an address, without its length. */
static struct reader entry_at(const struct dl_find_object *object, uintptr_t start)
{
	struct reader r = {(const uint8_t *)start, object->dlfo_map_end, false};
	uint64_t bytes;

	r.failed = start < (uintptr_t)object->dlfo_map_start ||
		   start >= (uintptr_t)object->dlfo_map_end;
	bytes = take(&r, 4);
	if (r.failed || !bytes || bytes > (uint64_t)(r.end - r.at))
		r.failed = true; /* 0xffffffff, a longer one, also */
	else
		r.end = r.at + bytes;
	return r;
}

/* The row of an address, by its entry (FDE). */
static bool read_entry(const struct dl_find_object *object, uintptr_t entry, uintptr_t pc,
		       struct row *row)
{
	struct reader r = entry_at(object, entry), cie;
	uintptr_t at = (uintptr_t)r.at;
	struct program p = {.wanted = pc};
	unsigned encoding;
	uint64_t start, bytes;
	bool has_data;

	cie = entry_at(object, at - (uintptr_t)take(&r, 4));
	if (r.failed || take(&cie, 4) || cie.failed || !read_cie(&p, &cie, &encoding, &has_data))
		return false;
	start = take_address(&r, encoding);
	bytes = take_address(&r, encoding & FORM);
	if (r.failed || pc < start || pc - start >= bytes)
		return false;
	if (has_data)
		skip(&r, take_uleb(&r));
	if (!run(&p, &cie))
		return false;
	p.first = p.row;
	p.location = start;
	if (!run(&p, &r))
		return false;
	*row = p.row;
	return true;
}

/* The entry of an address, by the sorted table of the object's .eh_frame_hdr. 0: there is none. */
static uintptr_t find_entry(const struct dl_find_object *object, uintptr_t pc)
{
	uintptr_t head = (uintptr_t)object->dlfo_eh_frame;
	struct reader r = {(const uint8_t *)head, object->dlfo_map_end, false};
	uint64_t version = take(&r, 1), form = take(&r, 1), count = take(&r, 1),
		 table = take(&r, 1), low = 0, middle;
	int32_t entry[2];

	if (r.failed || head < (uintptr_t)object->dlfo_map_start || version != 1 ||
	    count != 3 /* four bytes */ || table != TABLE_ENCODING)
		return 0;
	skip(&r, form_bytes((unsigned)form));
	count = take(&r, 4);
	if (r.failed || count > (uint64_t)(r.end - r.at) / sizeof(entry))
		return 0;
	while (low < count) { /* the first that begins behind pc */
		middle = (low + count) / 2;
		memcpy(entry, r.at + middle * sizeof(entry), sizeof(entry));
		if (head + (uintptr_t)(intptr_t)entry[0] <= pc)
			low = middle + 1;
		else
			count = middle;
	}
	if (!low)
		return 0;
	memcpy(entry, r.at + (low - 1) * sizeof(entry), sizeof(entry));
	return head + (uintptr_t)(intptr_t)entry[1];
}

/*
 * Of a program whose segments do not adjoin, the loader tells only the one that has the code: take
 * the one that has the tables.
 */
static void find_segment(struct dl_find_object *object)
{
	const ElfW(Phdr) *segment = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	const ElfW(Phdr) *end = segment + getauxval(AT_PHNUM);
	uintptr_t head = (uintptr_t)object->dlfo_eh_frame, start;

	if (object->dlfo_link_map != _r_debug.r_map || !segment ||
	    (head >= (uintptr_t)object->dlfo_map_start && head < (uintptr_t)object->dlfo_map_end))
		return;
	for (; segment < end; segment++) {
		start = object->dlfo_link_map->l_addr + segment->p_vaddr;
		if (segment->p_type == PT_LOAD && segment->p_flags & PF_R && head >= start &&
		    head - start < segment->p_filesz) {
			object->dlfo_map_start = (void *)start;
			object->dlfo_map_end = (void *)(start + segment->p_filesz);
		}
	}
}

/*
 * The rule of a return address, as one word. Without KNOWN: the caller is unknown, or there is none
 * (OUTERMOST).
 */
static uint64_t find_rule(uintptr_t pc)
{
	struct dl_find_object object;
	struct row row;
	uintptr_t entry;

	if (!_dl_find_object || _dl_find_object((void *)(pc - 1), &object) || !object.dlfo_eh_frame)
		return 0;
	find_segment(&object);
	entry = find_entry(&object, pc - 1);
	if (!entry || !read_entry(&object, entry, pc - 1, &row))
		return 0;
	if (!row.returns)
		return row.is_outermost ? OUTERMOST : 0;
	if ((row.cfa_register != SP && row.cfa_register != BP) || row.cfa < 8 ||
	    row.cfa >= FRAME_MAX || row.cfa % 8)
		return 0;
	if (row.bp_saved && (row.bp > -8 || row.bp <= -FRAME_MAX || row.bp % 8))
		return 0;
	return KNOWN | (row.cfa_register == BP ? BY_BP : 0) | (row.bp_lost ? BP_LOST : 0) |
	       (uint64_t)row.cfa << CFA_SHIFT |
	       (row.bp_saved ? BP_SAVED | (uint64_t)-row.bp << BP_SHIFT : 0);
}

/* --- the table --- */

#define RULES 4096u

struct rule {
	uint64_t sum, rule, code;
};

static struct rule rules[RULES];

static uint64_t rule_of(uintptr_t pc)
{
	struct rule *entry = &rules[(pc ^ pc >> 12) % RULES];
	/* In the page of the call, which lies before pc. */
	uint64_t code = *(const uint64_t *)((pc - 1) & ~(uintptr_t)7), rule, kept;

	rule = __atomic_load_n(&entry->rule, __ATOMIC_RELAXED);
	kept = __atomic_load_n(&entry->code, __ATOMIC_RELAXED);
	if (__atomic_load_n(&entry->sum, __ATOMIC_RELAXED) == pc + rule + kept && kept == code)
		return rule;
	rule = find_rule(pc);
	__atomic_store_n(&entry->rule, rule, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->code, code, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->sum, pc + rule + code, __ATOMIC_RELAXED);
	return rule;
}

/* Where the frame ends, behind its return address. 0: unknown. */
static uintptr_t end_of(const struct pem_libc_frame *frame, uint64_t rule)
{
	uintptr_t from = rule & BY_BP ? frame->bp : frame->sp;
	uintptr_t end = from + (uint32_t)rule / (1u << CFA_SHIFT);

	if (!(rule & KNOWN) || !from || end <= frame->sp || end - frame->sp > FRAME_MAX ||
	    end % 8 || rule >> BP_SHIFT > end - frame->sp)
		return 0;
	return end;
}

bool pem_libc_frame__is_outermost(const struct pem_libc_frame *frame)
{
	uint64_t rule = rule_of(frame->pc);
	uintptr_t end = end_of(frame, rule);

	return rule & OUTERMOST || (end && !*(const uintptr_t *)(end - 8));
}

bool pem_libc_frame__step(struct pem_libc_frame *frame)
{
	uint64_t rule = rule_of(frame->pc);
	uintptr_t end = end_of(frame, rule), saved = rule >> BP_SHIFT;

	if (!end || !*(const uintptr_t *)(end - 8))
		return false;
	frame->pc = *(const uintptr_t *)(end - 8);
	if (rule & BP_SAVED)
		frame->bp = *(const uintptr_t *)(end - saved);
	else if (rule & BP_LOST)
		frame->bp = 0;
	frame->sp = end;
	return true;
}

const struct link_map *pem_libc_frame__object(uintptr_t pc)
{
	struct dl_find_object object;

	if (!_dl_find_object || _dl_find_object((void *)(pc - 1), &object))
		return NULL;
	return object.dlfo_link_map;
}

#else

bool pem_libc_frame__step(struct pem_libc_frame *frame)
{
	(void)frame;
	return false;
}

bool pem_libc_frame__is_outermost(const struct pem_libc_frame *frame)
{
	(void)frame;
	return false;
}

const struct link_map *pem_libc_frame__object(uintptr_t pc)
{
	(void)pc;
	return NULL;
}

#endif
