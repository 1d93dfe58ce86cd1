/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rights.c - the sentences about events that programs could not have recorded: no memory, rights given up, seccomp filters
 *
 * Not here: what programs do about it (producer/rights.c).
 */
#include "consumer/session.h"
#include "util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Did the process lack a right, rather than room? */
static bool is_right(uint32_t code)
{
	return code == EACCES || code == EPERM || code == ENOENT || code == EROFS;
}

void pem_session__say_refused(struct pem_session *s)
{
	uint32_t code = s->page->last_errno;

	if (is_right(code))
		pem_session__say(
			s, PEM_LOG_WARNING,
			"a process could not make its pool in shared memory (%s): %s; it, or the "
			"one that started it, had given up the rights to this folder (user, root "
			"folder or namespace): what it raises is counted as lost",
			s->runtime, strerror((int)code));
	else
		pem_session__say(s, PEM_LOG_WARNING,
				 "a process could not make its pool in shared memory (%s): %s; "
				 "%s",
				 s->runtime, strerror((int)code),
				 code == EFBIG
					 ? "its limit on the size of files (ulimit -f) is too small"
				 : code == EMFILE || code == ENFILE
					 ? "it has as many files open as it may (ulimit -n)"
					 : "free some space there");
}

static void add(struct pem_trace_info *info, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add(struct pem_trace_info *info, const char *format, ...)
{
	struct pem_trace_gap *gap;
	va_list arguments;

	if (info->gap_count == PEM_ARRAY_SIZE(info->gaps))
		return;
	gap = &info->gaps[info->gap_count++];
	pem_copy_text(gap->source, sizeof(gap->source), "stubs");
	va_start(arguments, format);
	vsnprintf(gap->reason, sizeof(gap->reason), format, arguments);
	va_end(arguments);
}

void pem_session__gather_rights(struct pem_session *s, struct pem_session_page *page)
{
	__atomic_fetch_add(&s->page->lost_filtered,
			   __atomic_exchange_n(&page->lost_filtered, 0, __ATOMIC_RELAXED),
			   __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->page->filtered,
			   __atomic_exchange_n(&page->filtered, 0, __ATOMIC_RELAXED),
			   __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->page->unobserved,
			   __atomic_exchange_n(&page->unobserved, 0, __ATOMIC_RELAXED),
			   __ATOMIC_RELAXED);
}

void pem_session__note_rights(struct pem_session *s, struct pem_trace_info *info)
{
	const struct pem_session_page *page = s->page;
	uint64_t lost = __atomic_load_n(&page->lost_filtered, __ATOMIC_RELAXED);
	uint32_t filtered = __atomic_load_n(&page->filtered, __ATOMIC_RELAXED);
	uint32_t unobserved = __atomic_load_n(&page->unobserved, __ATOMIC_RELAXED);
	uint32_t refused = __atomic_load_n(&page->refused, __ATOMIC_RELAXED);

	if (refused)
		add(info, "%u processes could not make a pool in shared memory: %s%s", refused,
		    strerror((int)page->last_errno),
		    is_right(page->last_errno) ? " (they had given up their rights to it)" : "");
	if (lost)
		add(info,
		    "%llu events were lost in programs with a seccomp filter (%u took one) that "
		    "refuses what recording them needs",
		    (unsigned long long)lost, filtered);
	if (unobserved)
		add(info,
		    "%u programs were started where they cannot be recorded: the libraries for it "
		    "are "
		    "out of reach there, or a seccomp filter refuses what it needs",
		    unobserved);
}
