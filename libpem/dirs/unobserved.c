/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unobserved.c - the sentences about events that programs could not have recorded: no memory,
 * rights given up, seccomp filters
 *
 * Not here: what programs do about it (producer/rights.c).
 */
#include "core/core.h"
#include "core/demand.h"
#include "dirs/dirs.h"
#include "util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/*
 * Reasons why a process could not make its pool. Each has one sentence, which says what would have
 * mended it.
 */
enum refusal {
	REFUSAL_RIGHT,
	REFUSAL_FILE_SIZE,
	REFUSAL_OPEN_FILES,
	REFUSAL_OPEN_FILES_OF_ALL,
	REFUSAL_ROOM,
	REFUSAL_QUOTA,
	REFUSAL_MEMORY,
	REFUSAL_FILTER,
	REFUSAL_END,
	REFUSAL_OTHER,
};

static const char *const mends[] = {
	[REFUSAL_RIGHT] =
		"it had given up the rights to that folder (user, root folder, namespace), or "
		"a seccomp filter refuses them",
	[REFUSAL_FILE_SIZE] = "its limit on the size of files (ulimit -f) is too small",
	[REFUSAL_OPEN_FILES] = "it has as many files open as it may (ulimit -n)",
	[REFUSAL_OPEN_FILES_OF_ALL] = "the machine has as many files open as it may (sysctl "
				      "fs.file-max)",
	[REFUSAL_ROOM] = "free some space there",
	[REFUSAL_QUOTA] = "its user's quota there is used up",
	[REFUSAL_MEMORY] = "its address space (ulimit -v), its mappings (sysctl "
			   "vm.max_map_count) or the machine's memory are used up",
	[REFUSAL_FILTER] = "a seccomp filter refuses what that takes",
	[REFUSAL_END] = "the recording had ended",
	[REFUSAL_OTHER] = "no larger buffer mends that",
};

static enum refusal refusal_of(uint32_t code)
{
	static const struct {
		uint32_t code;
		enum refusal refusal;
	} of[] = {
		{EACCES, REFUSAL_RIGHT},
		{EPERM, REFUSAL_RIGHT},
		{ENOENT, REFUSAL_RIGHT},
		{EROFS, REFUSAL_RIGHT},
		{EFBIG, REFUSAL_FILE_SIZE},
		{EMFILE, REFUSAL_OPEN_FILES},
		{ENFILE, REFUSAL_OPEN_FILES_OF_ALL},
		{ENOSPC, REFUSAL_ROOM},
		{EDQUOT, REFUSAL_QUOTA},
		{ENOMEM, REFUSAL_MEMORY},
		{ENOSYS, REFUSAL_FILTER},
		{ECANCELED, REFUSAL_END},
	};
	size_t i;

	for (i = 0; i < PEM_ARRAY_SIZE(of); i++) {
		if (of[i].code == code)
			return of[i].refusal;
	}
	return REFUSAL_OTHER;
}

void pem_session__say_refused(struct pem_session *s)
{
	uint32_t code = __atomic_load_n(&s->page->last_errno, __ATOMIC_RELAXED);
	enum refusal refusal = refusal_of(code);

	if (!__atomic_load_n(&s->page->refused, __ATOMIC_RELAXED) ||
	    s->dirs->refusals_said >> refusal & 1)
		return;
	s->dirs->refusals_said |= 1u << refusal;
	pem_session__say(s, PEM_LOG_WARNING,
			 "a process could not make its pool in shared memory (%s): %s; %s: what it "
			 "raises is counted as lost",
			 s->runtime, strerror((int)code), mends[refusal]);
}

void pem_session__say_all_refused(struct pem_session *s)
{
	uint32_t refused = __atomic_load_n(&s->page->refused, __ATOMIC_RELAXED);

	if (refused > 1)
		pem_session__say(s, PEM_LOG_WARNING,
				 "%u processes could not make a pool in shared memory", refused);
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

/*
 * Take a directory's count and add it to a sum. The count may be anything, so the sum must not
 * overflow: it would hide what others have lost.
 */
static void add_count(uint64_t *sum, uint64_t *of_dir)
{
	uint64_t count = __atomic_exchange_n(of_dir, 0, __ATOMIC_RELAXED), before = 0, after;

	while (count) {
		after = before > UINT64_MAX - count ? UINT64_MAX : before + count;
		if (__atomic_compare_exchange_n(sum, &before, after, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return;
	}
}

static void add_number(uint32_t *sum, uint32_t *of_dir)
{
	uint32_t number = __atomic_exchange_n(of_dir, 0, __ATOMIC_RELAXED), before = 0, after;

	while (number) {
		after = before > UINT32_MAX - number ? UINT32_MAX : before + number;
		if (__atomic_compare_exchange_n(sum, &before, after, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return;
	}
}

/*
 * The most that one directory may add. The sum overflows only if more than a thousand directories
 * claim more together.
 */
#define UNOBSERVED_MAX (1u << 20)

/*
 * Add what a directory counted for one reason. Programs take a count back if the start failed, so
 * the number may become smaller, but the session's sum loses no more than this directory had added.
 */
static void add_unobserved(struct pem_session *s, struct pem_dir *dir, unsigned reason)
{
	uint32_t now = __atomic_load_n(&dir->page->unobserved[reason], __ATOMIC_RELAXED);

	if (now > UNOBSERVED_MAX)
		now = UNOBSERVED_MAX;
	if (now > dir->unobserved[reason])
		memcpy(s->page->unobserved_name[reason], dir->page->unobserved_name[reason],
		       sizeof(s->page->unobserved_name[reason]));
	__atomic_fetch_add(&s->page->unobserved[reason], now - dir->unobserved[reason],
			   __ATOMIC_RELAXED);
	dir->unobserved[reason] = now;
}

static void gather(struct pem_session *s, struct pem_session_page *page)
{
	if (__atomic_load_n(&page->refused, __ATOMIC_RELAXED))
		__atomic_store_n(&s->page->last_errno, page->last_errno, __ATOMIC_RELAXED);
	add_number(&s->page->refused, &page->refused);
	add_number(&s->page->filtered, &page->filtered);
	add_count(&s->page->lost, &page->lost);
	add_count(&s->page->lost_statistics, &page->lost_statistics);
	add_count(&s->page->lost_filtered, &page->lost_filtered);
}

void pem_session__gather_rights(struct pem_session *s, struct pem_dir *dir)
{
	unsigned reason;

	gather(s, dir->page);
	for (reason = 0; reason < PEM_UNOBSERVED_COUNT; reason++)
		add_unobserved(s, dir, reason);
}

/*
 * The former counts of a head are not known. So a start that fails just after its head was gathered
 * stays counted.
 */
void pem_session__gather_head(struct pem_session *s, struct pem_session_page *head)
{
	unsigned reason;

	gather(s, head);
	for (reason = 0; reason < PEM_UNOBSERVED_COUNT; reason++) {
		if (!__atomic_load_n(&head->unobserved[reason], __ATOMIC_RELAXED))
			continue;
		memcpy(s->page->unobserved_name[reason], head->unobserved_name[reason],
		       sizeof(s->page->unobserved_name[reason]));
		add_number(&s->page->unobserved[reason], &head->unobserved[reason]);
	}
}

void pem_session__count_refusal(struct pem_session *s, uint32_t code)
{
	uint32_t one = 1;

	__atomic_store_n(&s->page->last_errno, code, __ATOMIC_RELAXED);
	add_number(&s->page->refused, &one);
}

/* Sentences about programs that were not recorded: their number, and the name of the last one. */
static const char *const unobserved[PEM_UNOBSERVED_COUNT] = {
	[PEM_UNOBSERVED_LIBRARIES] =
		"pem's libraries were taken out of %u programs (the last one: %s): of 32 bits or "
		"another C "
		"library, started where the libraries are out of reach, or with a seccomp filter",
	[PEM_UNOBSERVED_ENVIRONMENT] =
		"%u programs were started without pem's variables (as env -i does) and are not "
		"recorded, the last one: %s; LD_PRELOAD and PEM_SESSION have to be passed on",
	[PEM_UNOBSERVED_PRIVILEGED] =
		"%u programs gained rights as they started (setuid, setgid, file capabilities) and "
		"are "
		"not recorded, the last one: %s; record them as the user that they become",
	[PEM_UNOBSERVED_STATIC] = "%u programs are linked statically: what they call of the C "
				  "library is not recorded, "
				  "the last one: %s; link them dynamically",
	[PEM_UNOBSERVED_UNREACHABLE] = "%u programs were started where pem's files can't be "
				       "written (as in a sandbox) and are "
				       "not recorded, the last one: %s; set PEM_RUNTIME_DIR to a "
				       "folder that is the same there",
};

/* Does the session want events that programs raise? library: of this adapter; NULL: of any. */
static bool wants_programs(const struct pem_session *s, const char *library)
{
	const struct pem_demand *demand;
	size_t i;

	for (i = 0; i < s->demand_count; i++) {
		demand = &s->demands[i];
		if (demand->event->source_kind == PEM_SOURCE_STUB &&
		    (!library || !strcmp(demand->event->source_name, library)))
			return true;
	}
	return false;
}

static void note_unobserved(struct pem_session *s, struct pem_trace_info *info)
{
	char name[PEM_NAME_BYTES];
	unsigned reason;
	uint32_t count;

	for (reason = 0; reason < PEM_UNOBSERVED_COUNT; reason++) {
		count = __atomic_load_n(&s->page->unobserved[reason], __ATOMIC_RELAXED);
		if (!count ||
		    !wants_programs(s, reason == PEM_UNOBSERVED_STATIC ? "libpem-libc.so" : NULL))
			continue;
		memcpy(name, s->page->unobserved_name[reason], sizeof(name));
		name[sizeof(name) - 1] = 0;
		add(info, unobserved[reason], count, pem_printable(name));
	}
}

/*
 * Add a gap about processes without a pool. lost_filtered: events that may be included in lost and
 * that have a gap of their own.
 */
static void add_refused(const struct pem_session *s, struct pem_trace_info *info, uint32_t refused,
			uint64_t lost_filtered)
{
	uint64_t lost = __atomic_load_n(&s->page->lost, __ATOMIC_RELAXED);
	uint32_t code = __atomic_load_n(&s->page->last_errno, __ATOMIC_RELAXED);
	char events[48] = "";

	lost -= lost < lost_filtered ? lost : lost_filtered;
	if (lost)
		snprintf(events, sizeof(events),
			 "%llu events were lost: ", (unsigned long long)lost);
	add(info, "%s%u processes could not make a pool in shared memory: %s; %s", events, refused,
	    strerror((int)code), mends[refusal_of(code)]);
}

void pem_session__note_rights(struct pem_session *s, struct pem_trace_info *info)
{
	const struct pem_session_page *page = s->page;
	uint64_t lost = __atomic_load_n(&page->lost_filtered, __ATOMIC_RELAXED);
	uint32_t filtered = __atomic_load_n(&page->filtered, __ATOMIC_RELAXED);
	uint32_t refused = __atomic_load_n(&page->refused, __ATOMIC_RELAXED);

	if (refused)
		add_refused(s, info, refused, lost);
	if (lost)
		add(info,
		    "%llu events were lost in programs with a seccomp filter or syscall user "
		    "dispatch (%u took one) that refuses what recording them needs",
		    (unsigned long long)lost, filtered);
	note_unobserved(s, info);
}
