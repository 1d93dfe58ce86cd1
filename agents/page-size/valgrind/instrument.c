/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * instrument.c - makes each superblock store the addresses that it refers to
 *
 * A reference costs one store. The place of the next one is in a shadow register of the thread: a
 * superblock reads it once, stores at constant offsets from it, and writes it back before each
 * exit. It asks once whether the buffer has room for all of its references.
 */
#include "tool.h"
#include "dependence.h"

struct block {
	IRSB *out;
	PtrdiffT position_register, count_register;
	IRTemp base, count; /* what these held at the start, or after a check */
	ULong bytes, bytes_written; /* stored since base; of these, the register says */
	ULong instructions, instructions_written;
	UInt spare; /* references that still fit without a check */
	Bool stack_seen; /* one was stored, */
	Long stack_offset; /* of this place */
};

static IRExpr *word(ULong value)
{
	return IRExpr_Const(IRConst_U64(value));
}

static IRTemp assign_type(struct block *block, IRType type, IRExpr *value)
{
	IRTemp temp = newIRTemp(block->out->tyenv, type);

	addStmtToIRSB(block->out, IRStmt_WrTmp(temp, value));
	return temp;
}

static IRTemp assign(struct block *block, IRExpr *value)
{
	return assign_type(block, Ity_I64, value);
}

static IRExpr *add(struct block *block, IRTemp base, ULong bytes)
{
	if (!bytes)
		return IRExpr_RdTmp(base);
	return IRExpr_RdTmp(
		assign(block, IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(base), word(bytes))));
}

static void write_back(struct block *block)
{
	if (block->bytes != block->bytes_written)
		addStmtToIRSB(block->out, IRStmt_Put(block->position_register,
						     add(block, block->base, block->bytes)));
	if (block->instructions != block->instructions_written)
		addStmtToIRSB(block->out,
			      IRStmt_Put(block->count_register,
					 add(block, block->count, block->instructions)));
	block->bytes_written = block->bytes;
	block->instructions_written = block->instructions;
}

/* Called by superblocks when the buffer has too little room. */
static VG_REGPARM(1) void make_room(UChar *state)
{
	ULong *shadow = (ULong *)(state + sizeof(VexGuestArchState) + POSITION_REGISTER);

	position = (ULong *)*shadow;
	bursts__take();
	*shadow = (ULong)position;
}

static void check_room(struct block *block)
{
	IRTemp now, full;
	IRDirty *call;

	write_back(block);
	now = assign(block, IRExpr_Get(block->position_register, Ity_I64));
	full = assign_type(block, Ity_I1,
			   IRExpr_Binop(Iop_CmpLT64U, word((ULong)(buffer + BUFFER_COUNT)),
					IRExpr_RdTmp(now)));
	call = unsafeIRDirty_0_N(1, "make_room", VG_(fnptr_to_fnentry)(make_room),
				 mkIRExprVec_1(IRExpr_GSPTR()));
	call->guard = IRExpr_RdTmp(full);
	call->nFxState = 1;
	call->fxState[0].fx = Ifx_Modify;
	call->fxState[0].offset = block->position_register;
	call->fxState[0].size = 8;
	call->fxState[0].nRepeats = 0;
	call->fxState[0].repeatLen = 0;
	addStmtToIRSB(block->out, IRStmt_Dirty(call));
	block->base = assign(block, IRExpr_Get(block->position_register, Ity_I64));
	block->bytes = block->bytes_written = 0;
	block->spare = BUFFER_SPARE;
}

#define STACK_NEAR 1024

/* Is it on the stack, where this superblock has just been? */
static Bool is_repeated(struct block *block, const IRExpr *address)
{
	Long offset, distance;

	if (!dependence__on_stack(address, &offset))
		return False;
	distance = offset - block->stack_offset;
	if (block->stack_seen && distance > -STACK_NEAR && distance < STACK_NEAR)
		return True;
	block->stack_seen = True;
	block->stack_offset = offset;
	return False;
}

/* guard: NULL if the reference is made in any case. */
static void refer(struct block *block, IRExpr *address, Bool store, Bool chained, IRExpr *guard)
{
	IRExpr *next;
	IRTemp wide;

	if (!guard && !chained && is_repeated(block, address))
		return;
	if (!block->spare)
		check_room(block);
	block->spare--;
	if (chained)
		address = IRExpr_RdTmp(
			assign(block, IRExpr_Binop(Iop_Or64, address, word(PROFILE_CHAINED))));
	if (store)
		address = IRExpr_RdTmp(assign(block, IRExpr_Unop(Iop_Not64, address)));
	next = add(block, block->base, block->bytes);
	addStmtToIRSB(block->out, IRStmt_Store(Iend_LE, next, address));
	if (!guard) {
		block->bytes += sizeof(ULong);
		return;
	}
	/* The next reference takes this one's place if it was not made. */
	wide = assign(block, IRExpr_Unop(Iop_1Uto64, guard));
	wide = assign(block,
		      IRExpr_Binop(Iop_Shl64, IRExpr_RdTmp(wide), IRExpr_Const(IRConst_U8(3))));
	block->base = assign(block, IRExpr_Binop(Iop_Add64, next, IRExpr_RdTmp(wide)));
	block->bytes = 0;
	block->bytes_written = 1; /* of the old base: it must be written */
}

static IRExpr *guard_of(IRExpr *guard)
{
	return guard->tag == Iex_Const && guard->Iex.Const.con->Ico.U1 ? NULL : guard;
}

static void statement(struct block *block, const IRStmt *st, Bool chained)
{
	const IRDirty *dirty;

	switch (st->tag) {
	case Ist_IMark:
		block->instructions++;
		break;
	case Ist_WrTmp:
		if (st->Ist.WrTmp.data->tag == Iex_Load)
			refer(block, st->Ist.WrTmp.data->Iex.Load.addr, False, chained, NULL);
		break;
	case Ist_LoadG:
		refer(block, st->Ist.LoadG.details->addr, False, chained,
		      guard_of(st->Ist.LoadG.details->guard));
		break;
	case Ist_Store:
		refer(block, st->Ist.Store.addr, True, False, NULL);
		break;
	case Ist_StoreG:
		refer(block, st->Ist.StoreG.details->addr, True, False,
		      guard_of(st->Ist.StoreG.details->guard));
		break;
	case Ist_CAS:
		refer(block, st->Ist.CAS.details->addr, True, False, NULL);
		break;
	case Ist_LLSC:
		refer(block, st->Ist.LLSC.addr, st->Ist.LLSC.storedata != NULL, False, NULL);
		break;
	case Ist_Dirty:
		dirty = st->Ist.Dirty.details;
		if (dirty->mFx != Ifx_None)
			refer(block, dirty->mAddr, dirty->mFx != Ifx_Read, False,
			      guard_of(dirty->guard));
		break;
	case Ist_Exit:
		write_back(block);
		break;
	default:
		break;
	}
}

static Bool is_reference(const IRStmt *st)
{
	return (st->tag == Ist_WrTmp && st->Ist.WrTmp.data->tag == Iex_Load) ||
	       st->tag == Ist_LoadG || st->tag == Ist_Store || st->tag == Ist_StoreG ||
	       st->tag == Ist_CAS || st->tag == Ist_LLSC ||
	       (st->tag == Ist_Dirty && st->Ist.Dirty.details->mFx != Ifx_None);
}

IRSB *instrument(VgCallbackClosure *closure, IRSB *sb, const VexGuestLayout *layout,
		 const VexGuestExtents *extents, const VexArchInfo *host, IRType guest_word,
		 IRType host_word)
{
	struct block block = {
		.position_register = layout->total_sizeB + POSITION_REGISTER,
		.count_register = layout->total_sizeB + COUNT_REGISTER,
	};
	Bool refers = False;
	Int i, first;

	(void)extents;
	(void)host;
	if (guest_word != host_word)
		VG_(tool_panic)("the program's words are not this machine's");
	if (stopped || objects__own(closure->readdr))
		return sb;
	dependence__find(sb);
	block.out = deepCopyIRSBExceptStmts(sb);
	for (first = 0; first < sb->stmts_used && sb->stmts[first]->tag != Ist_IMark; first++)
		addStmtToIRSB(block.out, sb->stmts[first]);
	for (i = first; i < sb->stmts_used; i++)
		refers |= is_reference(sb->stmts[i]);
	if (refers)
		check_room(&block);
	block.count = assign(&block, IRExpr_Get(block.count_register, Ity_I64));
	for (i = first; i < sb->stmts_used; i++) {
		statement(&block, sb->stmts[i], dependence__chained(i));
		addStmtToIRSB(block.out, sb->stmts[i]);
	}
	write_back(&block);
	return block.out;
}
