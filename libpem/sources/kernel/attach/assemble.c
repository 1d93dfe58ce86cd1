/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * assemble.c - a probe's program: fills the gaps in the template of kmod/bpf (contract: assemble.h,
 * pem/kprobe.h)
 *
 * Registers: the template chooses the registers that hold a gap's inputs. The code in the gap must
 * not change them. It may use r0 to r5. A number in the process's memory is read directly to its
 * destination. All other numbers pass through r1.
 */
#include "assemble.h"

#include "attach.h"

#include <pem/kprobe.h>
#include <pem/record_layout.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The code of one gap while it is made. */
struct block {
	struct bpf_insn *insns;
	unsigned count, room;
	bool full; /* more instructions were added than fit */
	uint8_t out, a, b, c; /* numbers of registers */
};

static void put(struct block *block, uint8_t code, uint8_t to, uint8_t from, int16_t offset,
		int32_t number)
{
	if (block->count == block->room) {
		block->full = true;
		return;
	}
	block->insns[block->count++] = (struct bpf_insn){
		.code = code, .dst_reg = to, .src_reg = from, .off = offset, .imm = number};
}

static void move(struct block *block, uint8_t to, uint8_t from)
{
	put(block, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

static void set(struct block *block, uint8_t to, int64_t number)
{
	if (number == (int32_t)number) {
		put(block, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, (int32_t)number);
		return;
	}
	put(block, BPF_LD | BPF_IMM | BPF_DW, to, 0, 0, (int32_t)(uint32_t)number);
	put(block, 0, 0, 0, 0, (int32_t)(uint32_t)((uint64_t)number >> 32));
}

static void by_number(struct block *block, uint8_t operation, uint8_t to, int32_t number)
{
	put(block, (uint8_t)(BPF_ALU64 | operation | BPF_K), to, 0, 0, number);
}

static void by_register(struct block *block, uint8_t operation, uint8_t to, uint8_t from)
{
	put(block, (uint8_t)(BPF_ALU64 | operation | BPF_X), to, from, 0, 0);
}

static uint8_t width(unsigned bytes)
{
	return bytes == 8 ? BPF_DW : bytes == 4 ? BPF_W : bytes == 2 ? BPF_H : BPF_B;
}

static void load(struct block *block, unsigned bytes, uint8_t to, uint8_t base, unsigned offset)
{
	put(block, (uint8_t)(BPF_LDX | BPF_MEM | width(bytes)), to, base, (int16_t)offset, 0);
}

static void store(struct block *block, unsigned bytes, uint8_t base, unsigned offset, uint8_t from)
{
	put(block, (uint8_t)(BPF_STX | BPF_MEM | width(bytes)), base, from, (int16_t)offset, 0);
}

static void call(struct block *block, int32_t helper)
{
	put(block, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

/* to = base + offset, a pointer */
static void point(struct block *block, uint8_t to, uint8_t base, unsigned offset)
{
	move(block, to, base);
	by_number(block, BPF_ADD, to, (int32_t)offset);
}

/* Cut r1 to the value's own bytes, and sign-extend it if the value is signed. */
static void extend(struct block *block, const struct pem_probe_field *field,
		   const struct pem_argument_location *location)
{
	unsigned bytes = location->bytes ? location->bytes : field->bytes, shift = 64 - 8 * bytes;
	bool is_signed = location->bytes ? location->is_signed : field->is_signed;

	if (!bytes || !shift || (!is_signed && location->load_bytes == bytes))
		return;
	by_number(block, BPF_LSH, BPF_REG_1, (int32_t)shift);
	by_number(block, is_signed ? BPF_ARSH : BPF_RSH, BPF_REG_1, (int32_t)shift);
}

/* --- fetching --- */

static const struct pem_argument_location *location_of(const struct pem_assembly *assembly,
						       const struct pem_probe_field *field)
{
	return assembly->site && field->location.kind == PEM_LOCATION_NONE
		       ? &assembly->site->arguments[field->argument]
		       : &field->location;
}

/* r3 = an address in the process's memory */
static void put_address(struct block *block, const struct pem_argument_location *location)
{
	set(block, BPF_REG_3, location->constant);
	if (location->offset != PEM_LOCATION_NO_REGISTER) {
		load(block, 8, BPF_REG_1, block->a, location->offset);
		by_register(block, BPF_ADD, BPF_REG_3, BPF_REG_1);
	}
	if (location->index_offset != PEM_LOCATION_NO_REGISTER) {
		load(block, 8, BPF_REG_1, block->a, location->index_offset);
		if (location->index != PEM_INDEX_WHOLE) {
			by_number(block, BPF_LSH, BPF_REG_1, 32);
			by_number(block,
				  location->index == PEM_INDEX_SIGNED_WORD ? BPF_ARSH : BPF_RSH,
				  BPF_REG_1, 32);
		}
		by_number(block, BPF_LSH, BPF_REG_1, location->shift);
		by_register(block, BPF_ADD, BPF_REG_3, BPF_REG_1);
	}
}

/* Read bytes at r3 into zeroed memory. If they can't be read, they stay zero. */
static void read_into(struct block *block, int32_t helper, uint8_t base, unsigned at,
		      unsigned bytes)
{
	point(block, BPF_REG_1, base, at);
	set(block, BPF_REG_2, bytes);
	call(block, helper);
}

/*
 * r1 = a number, extended. scratch is a word of the ring through which a pointer becomes a number
 * to the verifier (kmod/bpf/pem.bpf.c).
 */
static void put_number(struct block *block, const struct pem_assembly *assembly,
		       const struct pem_probe_field *field, uint8_t zeroed, unsigned at,
		       uint8_t scratch)
{
	const struct pem_argument_location *location = location_of(assembly, field);

	switch (location->kind) {
	case PEM_LOCATION_CONSTANT:
		set(block, BPF_REG_1, location->constant);
		break;
	case PEM_LOCATION_CONTEXT:
		if (location->offset % location->load_bytes == 0) {
			load(block, location->load_bytes, BPF_REG_1, block->a, location->offset);
			break;
		}
		/* The verifier allows reads of the context only at multiples of the size. */
		point(block, BPF_REG_3, block->a, location->offset);
		read_into(block, BPF_FUNC_probe_read_kernel, zeroed, at, location->load_bytes);
		load(block, location->load_bytes, BPF_REG_1, zeroed, at);
		break;
	case PEM_LOCATION_POINTER:
		load(block, 8, BPF_REG_1, block->a, location->offset);
		if (!scratch)
			break;
		store(block, 8, scratch, 0, BPF_REG_1);
		load(block, 8, BPF_REG_1, scratch, 0);
		break;
	case PEM_LOCATION_USER:
		put_address(block, location);
		read_into(block, BPF_FUNC_probe_read_user, zeroed, at, location->load_bytes);
		load(block, location->load_bytes, BPF_REG_1, zeroed, at);
		break;
	default:
		set(block, BPF_REG_1, 0);
		break;
	}
	extend(block, field, location);
}

static bool is_number(const struct pem_probe_field *field)
{
	return pem_layout_type_bytes(field->type) != 0;
}

static void put_fetch(struct block *block, const struct pem_assembly *assembly)
{
	const struct pem_probe *probe = assembly->probe;
	unsigned i;

	for (i = 0; i < probe->field_count && i < PEM_KPROBE_WORDS; i++) {
		if (!is_number(&probe->fields[i]))
			continue;
		put_number(block, assembly, &probe->fields[i], block->b, 8 * i, block->c);
		store(block, 8, block->b, 8 * i, BPF_REG_1);
	}
}

/* --- testing --- */

/*
 * Find the field that ends at this offset of the record, among the fields that have a word. -1:
 * there is none.
 */
static int tested_field(const struct pem_assembly *assembly, unsigned end)
{
	const struct pem_field *fields = assembly->event->fields;
	unsigned i;

	for (i = 0; i < assembly->event->field_count && i < PEM_KPROBE_WORDS; i++) {
		if (is_number(&assembly->probe->fields[i]) &&
		    fields[i].offset + pem_layout_type_bytes(fields[i].type) == end)
			return (int)i;
	}
	return -1;
}

/* A jump with the result of a test. Its target is known after all tests are written. */
struct jump {
	unsigned at;
	uint8_t to;
};

static void put_jump(struct block *block, struct jump *jump, uint8_t code, uint8_t a, uint8_t b,
		     uint8_t to)
{
	jump->at = block->count;
	jump->to = to;
	put(block, code, a, b, 0, 0);
}

/* The code does what pem_test_holds_integer() in pem/predicate.h does. */
static int put_test(struct block *block, const struct pem_assembly *assembly,
		    const struct pem_test *test, struct jump *jumps)
{
	int i = tested_field(assembly, test->end);

	if (i < 0)
		return -EDOM;
	load(block, 8, BPF_REG_1, block->a, 8 * (unsigned)i);
	by_number(block, BPF_LSH, BPF_REG_1,
		  64 - 8 * (int)pem_layout_type_bytes(assembly->event->fields[i].type));
	set(block, BPF_REG_2, (int64_t)test->mask);
	by_register(block, BPF_AND, BPF_REG_1, BPF_REG_2);
	set(block, BPF_REG_2, (int64_t)test->flip);
	by_register(block, BPF_XOR, BPF_REG_1, BPF_REG_2);
	set(block, BPF_REG_2, (int64_t)test->lo);
	by_register(block, BPF_SUB, BPF_REG_1, BPF_REG_2);
	set(block, BPF_REG_2, (int64_t)test->span);
	put_jump(block, &jumps[0], BPF_JMP | BPF_JLE | BPF_X, BPF_REG_1, BPF_REG_2, test->on_true);
	put_jump(block, &jumps[1], BPF_JMP | BPF_JA, 0, 0, test->on_false);
	return 0;
}

static int put_tests(struct block *block, const struct pem_assembly *assembly)
{
	unsigned at[PEM_TESTS_MAX], pass, fail, to, i;
	struct jump jumps[2 * PEM_TESTS_MAX];
	uint32_t count = assembly->test_count;
	int rc = 0;

	if (count > PEM_TESTS_MAX)
		return -E2BIG;
	for (i = 0; i < count && !rc; i++) {
		at[i] = block->count;
		rc = put_test(block, assembly, &assembly->tests[i], &jumps[2 * i]);
	}
	if (rc || !count) {
		set(block, block->out, 1);
		return rc;
	}
	pass = block->count;
	set(block, block->out, 1);
	put(block, BPF_JMP | BPF_JA, 0, 0, 1, 0);
	fail = block->count;
	set(block, block->out, 0);
	for (i = 0; i < 2 * count && !block->full; i++) {
		if (jumps[i].to != PEM_TEST_PASS && jumps[i].to != PEM_TEST_FAIL &&
		    (jumps[i].to >= count || jumps[i].to <= i / 2))
			return -EINVAL;
		to = jumps[i].to == PEM_TEST_PASS   ? pass
		     : jumps[i].to == PEM_TEST_FAIL ? fail
						    : at[jumps[i].to];
		block->insns[jumps[i].at].off = (int16_t)(to - jumps[i].at - 1);
	}
	return 0;
}

/* --- storing --- */

/* r3 = the address of a dynamic part of the entry, r4 = its word */
static void put_location(struct block *block, const struct pem_argument_location *location)
{
	load(block, 4, BPF_REG_4, block->a, location->offset);
	move(block, BPF_REG_2, BPF_REG_4);
	by_number(block, BPF_AND, BPF_REG_2, 0xffff);
	move(block, BPF_REG_3, block->a);
	by_register(block, BPF_ADD, BPF_REG_3, BPF_REG_2);
	if (location->kind == PEM_LOCATION_REL_LOC)
		by_number(block, BPF_ADD, BPF_REG_3, location->offset + 4);
}

/*
 * A text that could not be read is "(fault)", as perf shows it, and is not taken for an empty one.
 * A shorter field stays empty.
 */
static void put_fault(struct block *block, unsigned at, unsigned room)
{
	static const char fault[8] = "(fault)";
	int64_t word;

	if (room < sizeof(fault))
		return;
	memcpy(&word, fault, sizeof(word));
	/* Jumps over three instructions: the number takes two. */
	put(block, BPF_JMP | BPF_JSGE | BPF_K, BPF_REG_0, 0, 3, 0);
	set(block, BPF_REG_1, word);
	store(block, 8, block->c, at, BPF_REG_1);
}

static void put_string(struct block *block, const struct pem_assembly *assembly,
		       const struct pem_probe_field *field, unsigned at)
{
	const struct pem_argument_location *location = location_of(assembly, field);

	if (field->is_user_string) {
		put_number(block, assembly, field, block->c, at, 0);
		move(block, BPF_REG_3, BPF_REG_1);
		/* put_number may have left bytes there that do not belong to the string. */
		set(block, BPF_REG_1, 0);
		store(block, 1, block->c, at, BPF_REG_1);
		read_into(block, BPF_FUNC_probe_read_user_str, block->c, at, field->max_count);
		put_fault(block, at, field->max_count);
		return;
	}
	if (location->kind == PEM_LOCATION_BYTES)
		point(block, BPF_REG_3, block->a, location->offset);
	else
		put_location(block, location);
	read_into(block, BPF_FUNC_probe_read_kernel_str, block->c, at, field->max_count);
}

/* Write a list's length and then its elements. A longer list is cut. */
static void put_list(struct block *block, const struct pem_probe_field *field, unsigned length_at,
		     unsigned at)
{
	unsigned bytes = pem_layout_type_bytes(field->element_type);
	unsigned most = bytes * field->max_count;

	put_location(block, &field->location);
	move(block, BPF_REG_2, BPF_REG_4);
	by_number(block, BPF_RSH, BPF_REG_2, 16);
	by_number(block, BPF_AND, BPF_REG_2, 0xffff);
	put(block, BPF_JMP | BPF_JLE | BPF_K, BPF_REG_2, 0, 1, (int32_t)most);
	set(block, BPF_REG_2, most);
	by_number(block, BPF_AND, BPF_REG_2, -(int32_t)bytes);
	move(block, BPF_REG_1, BPF_REG_2);
	by_number(block, BPF_DIV, BPF_REG_1, (int32_t)bytes);
	store(block, 4, block->c, length_at, BPF_REG_1);
	point(block, BPF_REG_1, block->c, at);
	call(block, BPF_FUNC_probe_read_kernel);
}

static void put_field(struct block *block, const struct pem_assembly *assembly, unsigned i,
		      unsigned *tail)
{
	const struct pem_probe_field *field = &assembly->probe->fields[i];
	const struct pem_field *to = &assembly->event->fields[i];
	unsigned bytes;

	switch (field->type) {
	case PEM_TYPE_STRING:
		put_string(block, assembly, field, *tail);
		*tail += field->max_count;
		break;
	case PEM_TYPE_LIST:
		bytes = pem_layout_type_bytes(field->element_type);
		*tail = (*tail + bytes - 1) / bytes * bytes;
		put_list(block, field, to->offset, *tail);
		*tail += bytes * field->max_count;
		break;
	case PEM_TYPE_ARRAY:
		point(block, BPF_REG_3, block->a, field->location.offset);
		read_into(block, BPF_FUNC_probe_read_kernel, block->c, to->offset,
			  field->max_count * pem_layout_type_bytes(field->element_type));
		break;
	default:
		if (i < PEM_KPROBE_WORDS)
			load(block, 8, BPF_REG_1, block->b, 8 * i);
		else
			put_number(block, assembly, field, block->c, to->offset, 0);
		store(block, pem_layout_type_bytes(field->type), block->c, to->offset, BPF_REG_1);
		break;
	}
}

static int put_fill(struct block *block, const struct pem_assembly *assembly)
{
	unsigned tail = assembly->event->fixed_bytes, i;

	for (i = 0; i < assembly->probe->field_count; i++)
		put_field(block, assembly, i, &tail);
	return 0;
}

/* --- the template --- */

static bool is_magic(const struct bpf_insn *insn, int32_t magic)
{
	return insn->code == (BPF_ALU64 | BPF_MOV | BPF_K) && insn->imm == magic;
}

static unsigned set_constants(struct bpf_insn *insns, size_t count, int32_t magic, uint32_t value)
{
	unsigned found = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!is_magic(&insns[i], magic))
			continue;
		/* A 32-bit move does not sign-extend. */
		insns[i].code = BPF_ALU | BPF_MOV | BPF_K;
		insns[i].imm = (int32_t)value;
		found++;
	}
	return found;
}

static bool is_nothing(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_JA) && insn->off == 0;
}

static bool is_distribution(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/*
 * Find the target of a jump, or of a call of a function of the program. False: the instruction is
 * neither.
 */
static bool target_of(const struct bpf_insn *insn, size_t at, size_t *target)
{
	uint8_t class = BPF_CLASS(insn->code), operation = BPF_OP(insn->code);

	if ((class != BPF_JMP && class != BPF_JMP32) || operation == BPF_EXIT)
		return false;
	if (operation != BPF_CALL) {
		*target = at + 1 + (size_t)(ssize_t)insn->off;
		return true;
	}
	*target = at + 1 + (size_t)(ssize_t)insn->imm;
	return insn->src_reg == BPF_PSEUDO_CALL;
}

/*
 * Remove jumps to the next instruction, which fill the unused parts of gaps. Returns how many
 * instructions remain, or -EINVAL.
 */
static ssize_t squeeze(struct bpf_insn *insns, size_t count)
{
	uint32_t *moved = calloc(count + 1, sizeof(*moved));
	size_t i, target, kept = 0;
	ssize_t rc = -EINVAL;

	if (!moved)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		moved[i] = (uint32_t)kept;
		kept += !is_nothing(&insns[i]);
		if (is_distribution(&insns[i]) && i + 1 < count)
			moved[++i] = (uint32_t)kept++;
	}
	moved[count] = (uint32_t)kept;
	for (i = 0; i < count; i++) {
		if (is_distribution(&insns[i])) {
			i++;
			continue;
		}
		if (is_nothing(&insns[i]) || !target_of(&insns[i], i, &target))
			continue;
		if (target > count)
			goto out;
		if (BPF_OP(insns[i].code) == BPF_CALL)
			insns[i].imm = (int32_t)(moved[target] - moved[i] - 1);
		else
			insns[i].off = (int16_t)(moved[target] - moved[i] - 1);
	}
	for (i = 0; i < count; i++) {
		if (i + 1 <= count && moved[i + 1] != moved[i])
			insns[moved[i]] = insns[i];
	}
	rc = (ssize_t)kept;
out:
	free(moved);
	return rc;
}

typedef int (*put_block)(struct block *block, const struct pem_assembly *assembly);

/*
 * Fill each gap that has this magic number. Returns 0; -E2BIG; or -EINVAL if there is no such gap
 * or it has the wrong form.
 */
static int fill_gaps(struct bpf_insn *insns, size_t count, int32_t magic, unsigned room,
		     put_block put_it, const struct pem_assembly *assembly)
{
	const struct bpf_insn nothing = {.code = BPF_JMP | BPF_JA};
	unsigned found = 0, k;
	struct block block;
	size_t i;
	int rc;

	for (i = 0; i + 4 + room <= count; i++) {
		if (!is_magic(&insns[i], magic))
			continue;
		for (k = 1; k <= 3; k++) {
			if (insns[i + k].code != (BPF_ALU64 | BPF_MOV | BPF_X) ||
			    insns[i + k].dst_reg != insns[i].dst_reg)
				return -EINVAL;
		}
		block = (struct block){.insns = &insns[i + 4],
				       .room = room,
				       .out = insns[i].dst_reg,
				       .a = insns[i + 1].src_reg,
				       .b = insns[i + 2].src_reg,
				       .c = insns[i + 3].src_reg};
		insns[i].imm = 1;
		for (k = 0; k < room; k++)
			block.insns[k] = nothing;
		rc = put_it(&block, assembly);
		if (rc || block.full)
			return rc ? rc : -E2BIG;
		found++;
	}
	return found ? 0 : -EINVAL;
}

static int fetch_block(struct block *block, const struct pem_assembly *assembly)
{
	put_fetch(block, assembly);
	return 0;
}

ssize_t pem_assemble(const struct pem_assembly *assembly, struct bpf_insn *insns, size_t count,
		     struct pem_error *error)
{
	const struct pem_event *event = assembly->event;
	bool shared = assembly->probe->kind >= PEM_PROBE_UPROBE;
	ssize_t rc;

	if (!set_constants(insns, count, PEM_KPROBE_INDEX, assembly->index) ||
	    !set_constants(insns, count, PEM_KPROBE_SHARED, shared) ||
	    !set_constants(insns, count, PEM_KPROBE_BYTES, event->max_bytes) ||
	    !set_constants(insns, count, PEM_KPROBE_ID, event->id))
		rc = -EINVAL;
	else
		rc = fill_gaps(insns, count, PEM_KPROBE_FETCH, PEM_KPROBE_FETCH_ROOM, fetch_block,
			       assembly);
	if (!rc)
		rc = fill_gaps(insns, count, PEM_KPROBE_TEST, PEM_KPROBE_TEST_ROOM, put_tests,
			       assembly);
	if (!rc)
		rc = fill_gaps(insns, count, PEM_KPROBE_FILL, PEM_KPROBE_FILL_ROOM, put_fill,
			       assembly);
	if (!rc)
		rc = squeeze(insns, count);
	if (rc == -EDOM)
		return pem_error__set(error, (int)rc,
				      "a predicate can be of its first %u fields only, and of "
				      "numbers",
				      PEM_KPROBE_WORDS);
	if (rc == -E2BIG)
		return pem_error__set(error, (int)rc, "it has too many fields for one BPF program");
	if (rc < 0)
		return pem_error__set(error, (int)rc,
				      "the BPF object's template is not the one pem was built "
				      "with: build pem anew");
	return rc;
}
