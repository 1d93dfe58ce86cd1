// SPDX-License-Identifier: GPL-2.0-only
/*
 * tries.c - one function for each thing that kernels have in different forms
 *
 * It is not part of the module. kmod/declared compiles it: PEM_KMOD_HAS_x is 1 if pem_try_x()
 * compiles with this kernel's headers. Each function stands on lines of its own.
 */
#include <linux/mm.h>
#include <linux/page_idle.h>
#include <linux/sched.h>
#include <linux/sched/coredump.h>
#if __has_include(<linux/sched/exec_state.h>)
#include <linux/sched/exec_state.h>
#endif

/* Since 7.2 a task knows of its program who may read its memory. */
static bool __maybe_unused pem_try_exec_state(struct task_struct *task)
{
	return task->exec_state->user_ns && task->exec_state->dumpable == TASK_DUMPABLE_OWNER;
}

/* From 6.18 to 7.1 the flags of memory are a structure. */
static bool __maybe_unused pem_try_mm_flags(struct mm_struct *mm)
{
	return mm->user_ns && __mm_flags_get_dumpable(mm) == SUID_DUMP_USER;
}

/* Since 5.18 pages are marked by folio. */
static void __maybe_unused pem_try_folio_young(struct folio *folio)
{
	folio_set_young(folio);
}
