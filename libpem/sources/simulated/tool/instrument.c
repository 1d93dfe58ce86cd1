/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * instrument.c - makes each superblock call the simulation
 *
 * Each reference is one call, in the program's order. Instructions are counted by additions before
 * each exit. A fetch from the line that the superblock fetched from last finds it as the one used
 * last, and changes nothing: it is no call. Where data can be in the first cache of code, each
 * fetch is a call.
 */
#include "tool.h"

struct block {
	IRSB *out;
	ULong instructions; /* not counted yet */
	Addr line; /* of the last byte that was fetched, plus 1; 0: none was */
};

static VG_REGPARM(2) void fetch(Addr address, UWord bytes)
{
	hierarchy__fetch(&hierarchy, address, (UInt)bytes);
}

static VG_REGPARM(2) void load(Addr address, UWord bytes)
{
	hierarchy__load(&hierarchy, address, (UInt)bytes);
}

static VG_REGPARM(2) void store(Addr address, UWord bytes)
{
	hierarchy__store(&hierarchy, address, (UInt)bytes);
}

static IRExpr *word(ULong value)
{
	return IRExpr_Const(IRConst_U64(value));
}

static void count_instructions(struct block *block)
{
	IRTemp old, new;

	if (!block->instructions)
		return;
	old = newIRTemp(block->out->tyenv, Ity_I64);
	new = newIRTemp(block->out->tyenv, Ity_I64);
	addStmtToIRSB(block->out, IRStmt_WrTmp(old, IRExpr_Load(Iend_LE, Ity_I64,
								word((ULong)&instruction_count))));
	addStmtToIRSB(block->out, IRStmt_WrTmp(new, IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(old),
								 word(block->instructions))));
	addStmtToIRSB(block->out,
		      IRStmt_Store(Iend_LE, word((ULong)&instruction_count), IRExpr_RdTmp(new)));
	block->instructions = 0;
}

/* guard: NULL if the call is made in any case. */
static void call(struct block *block, const HChar *name, void *function, IRExpr *address,
		 UInt bytes, IRExpr *guard)
{
	IRDirty *made = unsafeIRDirty_0_N(2, name, VG_(fnptr_to_fnentry)(function),
					  mkIRExprVec_2(address, word(bytes)));

	if (guard)
		made->guard = guard;
	addStmtToIRSB(block->out, IRStmt_Dirty(made));
}

static void fetch_instruction(struct block *block, Addr address, UInt bytes)
{
	const struct hierarchy_part *first = hierarchy.code.parts[0];
	Addr last;

	block->instructions++;
	if (!bytes) /* of what Valgrind could not decode */
		bytes = 1;
	if (!first)
		return;
	last = ((address + bytes - 1) >> first->part.shift) + 1;
	if (first->part.serves == PEM_HARDWARE_CODE && block->line == last &&
	    (address >> first->part.shift) + 1 == last)
		return;
	block->line = last;
	call(block, "fetch", fetch, word(address), bytes, NULL);
}

static void refer(struct block *block, IRExpr *address, UInt bytes, Bool stores, IRExpr *guard)
{
	if (stores)
		call(block, "store", store, address, bytes, guard);
	else
		call(block, "load", load, address, bytes, guard);
}

static UInt bytes_of(struct block *block, const IRExpr *value)
{
	return sizeofIRType(typeOfIRExpr(block->out->tyenv, value));
}

static void guarded_load(struct block *block, const IRLoadG *st)
{
	IRType result, loaded;

	typeOfIRLoadGOp(st->cvt, &result, &loaded);
	refer(block, st->addr, sizeofIRType(loaded), False, st->guard);
}

/* What compares and swaps loads, and stores if it swaps: it is counted as if it did. */
static void compare_and_swap(struct block *block, const IRCAS *st)
{
	UInt bytes = bytes_of(block, st->dataLo) * (st->dataHi ? 2 : 1);

	refer(block, st->addr, bytes, False, NULL);
	refer(block, st->addr, bytes, True, NULL);
}

static void helper_call(struct block *block, const IRDirty *st)
{
	if (st->mFx == Ifx_Read || st->mFx == Ifx_Modify)
		refer(block, st->mAddr, st->mSize, False, st->guard);
	if (st->mFx == Ifx_Write || st->mFx == Ifx_Modify)
		refer(block, st->mAddr, st->mSize, True, st->guard);
}

static void statement(struct block *block, const IRStmt *st)
{
	switch (st->tag) {
	case Ist_IMark:
		fetch_instruction(block, st->Ist.IMark.addr, st->Ist.IMark.len);
		break;
	case Ist_WrTmp:
		if (st->Ist.WrTmp.data->tag == Iex_Load)
			refer(block, st->Ist.WrTmp.data->Iex.Load.addr,
			      sizeofIRType(st->Ist.WrTmp.data->Iex.Load.ty), False, NULL);
		break;
	case Ist_LoadG:
		guarded_load(block, st->Ist.LoadG.details);
		break;
	case Ist_Store:
		refer(block, st->Ist.Store.addr, bytes_of(block, st->Ist.Store.data), True, NULL);
		break;
	case Ist_StoreG:
		refer(block, st->Ist.StoreG.details->addr,
		      bytes_of(block, st->Ist.StoreG.details->data), True,
		      st->Ist.StoreG.details->guard);
		break;
	case Ist_CAS:
		compare_and_swap(block, st->Ist.CAS.details);
		break;
	case Ist_Dirty:
		helper_call(block, st->Ist.Dirty.details);
		break;
	case Ist_Exit:
		count_instructions(block);
		break;
	default: /* LLSC is of other processors */
		break;
	}
}

IRSB *instrument(VgCallbackClosure *closure, IRSB *sb, const VexGuestLayout *layout,
		 const VexGuestExtents *extents, const VexArchInfo *host, IRType guest_word,
		 IRType host_word)
{
	struct block block = {.out = deepCopyIRSBExceptStmts(sb)};
	Int i, first;

	(void)closure;
	(void)layout;
	(void)extents;
	(void)host;
	if (guest_word != host_word)
		VG_(tool_panic)("the program's words are not this machine's");
	for (first = 0; first < sb->stmts_used && sb->stmts[first]->tag != Ist_IMark; first++)
		addStmtToIRSB(block.out, sb->stmts[first]);
	for (i = first; i < sb->stmts_used; i++) {
		statement(&block, sb->stmts[i]);
		addStmtToIRSB(block.out, sb->stmts[i]);
	}
	count_instructions(&block);
	return block.out;
}
