/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dependence.c - which loads of a superblock have addresses that come from what they loaded before
 *
 * p = p->next: the address comes from a register as it is at the start of the superblock, and the
 * superblock leaves what it loaded in that same register. So when the superblock runs again, the
 * program waits for the load before it can begin the next.
 *
 * Not found: chains that lead through memory, through other superblocks, or through registers that
 * are no general ones.
 */
#include "dependence.h"

#define REGISTERS 16u
#define LOADS_MAX 64u
#define STACK_POINTER 4u /* as amd64 numbers its registers */

/*
 * What a value was computed of, through loads, too: registers at the start, and loads. On the
 * stack: it is the stack pointer at the start and offset.
 */
struct source {
	ULong loads; /* bits */
	Long offset;
	UInt registers; /* bits */
	Bool stack;
};

static struct source *temps;
static Int temp_capacity;
static struct source registers[REGISTERS]; /* what they hold now */
static struct {
	Int statement;
	UInt registers; /* of its address */
	Bool chained;
} loads[LOADS_MAX];
static UInt load_count;

static struct source both(struct source a, struct source b)
{
	return (struct source){.loads = a.loads | b.loads, .registers = a.registers | b.registers};
}

/* The number of the general register that a part of the state belongs to; REGISTERS: none. */
static UInt register_at(Int offset)
{
	UInt first = offsetof(VexGuestArchState, guest_RAX);

	if (offset < (Int)first || offset >= (Int)(first + 8 * REGISTERS))
		return REGISTERS;
	return (offset - first) / 8;
}

static struct source of_expression(const IRExpr *e);

static struct source of_binop(const IRExpr *e)
{
	const IRExpr *left = e->Iex.Binop.arg1, *right = e->Iex.Binop.arg2;
	struct source a = of_expression(left), b = of_expression(right), source = both(a, b);

	if (a.stack && right->tag == Iex_Const && e->Iex.Binop.op == Iop_Add64) {
		source.stack = True;
		source.offset = a.offset + (Long)right->Iex.Const.con->Ico.U64;
	} else if (a.stack && right->tag == Iex_Const && e->Iex.Binop.op == Iop_Sub64) {
		source.stack = True;
		source.offset = a.offset - (Long)right->Iex.Const.con->Ico.U64;
	}
	return source;
}

static struct source of_call(IRExpr **arguments)
{
	struct source source = {0};

	for (; *arguments; arguments++)
		source = both(source, of_expression(*arguments));
	return source;
}

static struct source of_expression(const IRExpr *e)
{
	struct source none = {0};

	switch (e->tag) {
	case Iex_RdTmp:
		return temps[e->Iex.RdTmp.tmp];
	case Iex_Get:
		return register_at(e->Iex.Get.offset) < REGISTERS
			       ? registers[register_at(e->Iex.Get.offset)]
			       : none;
	case Iex_Unop:
		return of_expression(e->Iex.Unop.arg);
	case Iex_Binop:
		return of_binop(e);
	case Iex_Triop:
		return both(of_expression(e->Iex.Triop.details->arg1),
			    both(of_expression(e->Iex.Triop.details->arg2),
				 of_expression(e->Iex.Triop.details->arg3)));
	case Iex_ITE:
		return both(
			of_expression(e->Iex.ITE.cond),
			both(of_expression(e->Iex.ITE.iftrue), of_expression(e->Iex.ITE.iffalse)));
	case Iex_CCall:
		return of_call(e->Iex.CCall.args);
	default:
		return none;
	}
}

static struct source load(Int statement, const IRExpr *address)
{
	struct source source = of_expression(address);

	if (load_count == LOADS_MAX)
		return (struct source){0};
	loads[load_count].statement = statement;
	loads[load_count].registers = source.registers;
	loads[load_count].chained = False;
	source.loads |= 1ull << load_count++;
	source.stack = False;
	return source;
}

static void begin(const IRSB *sb)
{
	UInt i;

	if (temp_capacity < sb->tyenv->types_used) {
		temp_capacity = 2 * sb->tyenv->types_used;
		temps = RENEW(temps, temp_capacity * sizeof(*temps));
	}
	VG_(memset)(temps, 0, sb->tyenv->types_used * sizeof(*temps));
	for (i = 0; i < REGISTERS; i++)
		registers[i] = (struct source){.registers = 1u << i, .stack = i == STACK_POINTER};
	load_count = 0;
}

static void end(void)
{
	UInt i, k;

	for (i = 0; i < REGISTERS; i++) {
		for (k = 0; k < load_count; k++) {
			if (registers[i].loads >> k & 1 && loads[k].registers >> i & 1)
				loads[k].chained = True;
		}
	}
}

void dependence__find(const IRSB *sb)
{
	const IRStmt *st;
	UInt number;
	Int i;

	begin(sb);
	for (i = 0; i < sb->stmts_used; i++) {
		st = sb->stmts[i];
		if (st->tag == Ist_WrTmp && st->Ist.WrTmp.data->tag == Iex_Load) {
			temps[st->Ist.WrTmp.tmp] = load(i, st->Ist.WrTmp.data->Iex.Load.addr);
		} else if (st->tag == Ist_WrTmp) {
			temps[st->Ist.WrTmp.tmp] = of_expression(st->Ist.WrTmp.data);
		} else if (st->tag == Ist_LoadG) {
			temps[st->Ist.LoadG.details->dst] =
				both(load(i, st->Ist.LoadG.details->addr),
				     of_expression(st->Ist.LoadG.details->alt));
		} else if (st->tag == Ist_Put) {
			number = register_at(st->Ist.Put.offset);
			if (number < REGISTERS)
				registers[number] = of_expression(st->Ist.Put.data);
		}
	}
	end();
}

Bool dependence__chained(Int statement)
{
	UInt i;

	for (i = 0; i < load_count; i++)
		if (loads[i].statement == statement)
			return loads[i].chained;
	return False;
}

Bool dependence__on_stack(const IRExpr *address, Long *offset)
{
	struct source source = of_expression(address);

	*offset = source.offset;
	return source.stack;
}
