/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * limits.c - the account of a runtime folder: what it may take of the recorder, and what was over a
 * limit
 *
 * limits.h has the numbers and their reasons.
 */
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/shared_file.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"

#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN_NS 5000000u
#define END_NS 1000000000u
#define END_OF_ALL_NS 10000000000u
#define TEXT_BYTES (1u << 20)
#define OWN_TEXT_BYTES (64u << 20)
/* The most gaps of a trace that tell of limits. A trace has room for 16 gaps in all. */
#define EXCESS_GAPS 4u

static const struct {
	uint64_t each, all, own;
} limits[PEM_RESOURCE_COUNT] = {
	[PEM_RESOURCE_MODELS] = {256, UINT64_MAX, 4096},
	[PEM_RESOURCE_MODEL_BYTES] = {8u << 20, 64u << 20, 256u << 20},
	[PEM_RESOURCE_EVENTS] = {256, 2048, UINT64_MAX},
	[PEM_RESOURCE_POOLS] = {1024, 8192, 16384},
	[PEM_RESOURCE_MEMBERS] = {1024, 8192, 16384},
	[PEM_RESOURCE_BYTES] = {2ull << 40, 16ull << 40, 64ull << 40},
};

/* Sentences with the number of what was over the limit, and with its user ("user 1000"). */
static const char *const sentences[PEM_EXCESS_COUNT] = {
	[PEM_EXCESS_MODELS] =
		"%llu events of programs of %s are counted as discarded: more texts describe "
		"that user's events than a recorder reads (256, or 8 MiB)",
	[PEM_EXCESS_EVENTS] =
		"%llu events of programs of %s are counted as discarded: that user's programs "
		"define more events than a recorder takes (256); give their spec to the recorder "
		"by "
		"PEM_SPEC_PATH",
	[PEM_EXCESS_FALSE_MODELS] =
		"%llu events of programs of %s are counted as discarded: the text that "
		"describes them is damaged, or not the one that its name tells",
	[PEM_EXCESS_POOLS] = "%llu processes of %s are not observed: a recorder reads 1024 "
			     "of one user at a time",
	[PEM_EXCESS_MEMBERS] = "%llu processes of %s are not attached to: a recorder attaches "
			       "to 1024 of one user at a time",
	[PEM_EXCESS_GEOMETRY] = "%llu files of %s are no pools of this recording: their sizes "
				"are others than it asks for",
	[PEM_EXCESS_LINKS] = "%llu files of %s were not read: they are no plain files of "
			     "that user's with one name",
	[PEM_EXCESS_PROCESS] = "%llu pools of %s were not read: they say to be of a process "
			       "that is another user's",
	[PEM_EXCESS_MAPPING] = "%llu files of %s were not read: the recorder has no memory, "
			       "or no file descriptors, for them",
	[PEM_EXCESS_NAMES] = "%llu files of %s were not read: a folder holds more of them "
			     "than a recorder lists (4096)",
	[PEM_EXCESS_TIME] = "%llu processes of %s were not read to the end, as that would "
			    "have taken too long: what is missing is counted as discarded",
	[PEM_EXCESS_USERS] = "%llu processes of %s are not observed: a recorder tells 256 such "
			     "users apart",
	[PEM_EXCESS_STALLS] =
		"%llu processes of %s are not observed any more: that user's files kept the "
		"recorder waiting, and meanwhile nobody's events were read",
	[PEM_EXCESS_COUNTS] = "%llu processes of %s count other events than they recorded: the "
			      "trace goes by what was recorded",
};

uint64_t pem_dir__text_bytes_max(const struct pem_dir *dir)
{
	return !dir->number ? OWN_TEXT_BYTES : TEXT_BYTES;
}

struct pem_user *pem_session__user(struct pem_session *s, uid_t uid, bool is_public)
{
	struct pem_user *user;

	for (user = s->dirs->users; user; user = user->next) {
		if (user->uid == uid && user->is_public == is_public)
			return user;
	}
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	user->is_public = is_public;
	user->next = s->dirs->users;
	return s->dirs->users = user;
}

struct pem_user *pem_dir__user(struct pem_session *s, struct pem_dir *dir)
{
	if (!dir->usage.user && dir->number)
		dir->usage.user = pem_session__user(s, dir->owner, dir->is_public);
	return dir->usage.user;
}

void pem_session__forget_users(struct pem_session *s)
{
	struct pem_user *user;

	while ((user = s->dirs->users)) {
		s->dirs->users = user->next;
		free(user);
	}
}

/*
 * Book for a user. A user may have as much as is left for all others, so that the first users that
 * come can't take all.
 */
static bool take_of_user(struct pem_session *s, struct pem_dir *dir, enum pem_resource resource,
			 uint64_t amount)
{
	struct pem_user *user = pem_dir__user(s, dir);
	uint64_t *all = &s->dirs->used_by_others[resource], wanted;

	if (!user || user->is_left_out)
		return false;
	wanted = user->used[resource] + amount;
	if (wanted > limits[resource].each || *all + amount > limits[resource].all ||
	    wanted > limits[resource].all - *all)
		return false;
	*all += amount;
	user->used[resource] = wanted;
	return true;
}

bool pem_dir__take(struct pem_session *s, struct pem_dir *dir, enum pem_resource resource,
		   uint64_t amount)
{
	uint64_t *used = &dir->usage.used[resource];

	if (dir->number ? !take_of_user(s, dir, resource, amount)
			: *used + amount > limits[resource].own)
		return false;
	*used += amount;
	return true;
}

void pem_dir__give_back(struct pem_session *s, struct pem_dir *dir, enum pem_resource resource,
			uint64_t amount)
{
	dir->usage.used[resource] -= amount;
	if (!dir->number || !amount)
		return;
	dir->usage.user->used[resource] -= amount;
	s->dirs->used_by_others[resource] -= amount;
}

/* --- what is over a limit --- */

/* Write the name of the user whose files are in a directory. */
static void write_user(char *to, size_t bytes, const struct pem_dir *dir)
{
	if (dir->is_public)
		pem_copy_text(to, bytes, "users that the command's programs became");
	else
		snprintf(to, bytes, "user %u", (unsigned)dir->owner);
}

static void write_sentence(char *to, size_t bytes, const struct pem_dir *dir, unsigned excess,
			   uint64_t count)
{
	char user[48];

	write_user(user, sizeof(user), dir);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(to, bytes, sentences[excess], (unsigned long long)count, user);
#pragma GCC diagnostic pop
}

static void say(struct pem_session *s, const struct pem_dir *dir, unsigned excess)
{
	char text[232];

	write_sentence(text, sizeof(text), dir, excess, dir->usage.excess[excess]);
	pem_session__say(s, PEM_LOG_WARNING, "%s", text);
}

void pem_dir__exceed(struct pem_session *s, struct pem_dir *dir, enum pem_excess excess,
		     uint64_t count)
{
	struct pem_dir_usage *usage = &dir->usage;

	/* Further processes of a user who is left out are refused for that reason. */
	if (usage->user && usage->user->is_left_out &&
	    (excess == PEM_EXCESS_POOLS || excess == PEM_EXCESS_MEMBERS))
		excess = PEM_EXCESS_STALLS;
	usage->excess[excess] += count;
	if (usage->said >> excess & 1)
		return;
	usage->said |= 1u << excess;
	say(s, dir, excess);
}

void pem_dir__exceed_to(struct pem_session *s, struct pem_dir *dir, enum pem_excess excess,
			int32_t count)
{
	if (count > 0 && (uint64_t)count > dir->usage.excess[excess])
		pem_dir__exceed(s, dir, excess, (uint64_t)count - dir->usage.excess[excess]);
}

void pem_dir__exceed_in_list(struct pem_session *s, struct pem_dir *dir, enum pem_list list,
			     enum pem_excess excess)
{
	uint64_t count = ++dir->usage.listed[list][excess];

	if (!pem_dir__opens_files(dir))
		pem_dir__exceed(s, dir, excess, 1);
	else if (count > dir->usage.excess[excess])
		pem_dir__exceed(s, dir, excess, count - dir->usage.excess[excess]);
}

void pem_session__say_excess(struct pem_session *s)
{
	struct pem_dir *dir;
	unsigned excess;

	for (dir = s->dirs->first; dir; dir = dir->next) {
		for (excess = 0; excess < PEM_EXCESS_COUNT; excess++) {
			if (dir->usage.excess[excess] > 1)
				say(s, dir, excess);
		}
	}
}

void pem_session__note_excess(struct pem_session *s, struct pem_trace_info *info)
{
	uint64_t more = 0;
	const struct pem_dir *dir;
	struct pem_trace_gap *gap;
	unsigned excess, noted = 0;

	for (dir = s->dirs->first; dir; dir = dir->next) {
		for (excess = 0; excess < PEM_EXCESS_COUNT; excess++) {
			if (!dir->usage.excess[excess])
				continue;
			if (++noted > EXCESS_GAPS) {
				more++;
				continue;
			}
			if (info->gap_count == PEM_ARRAY_SIZE(info->gaps))
				return;
			gap = &info->gaps[info->gap_count++];
			if (dir->is_public)
				pem_copy_text(gap->source, sizeof(gap->source), "users");
			else
				write_user(gap->source, sizeof(gap->source), dir);
			write_sentence(gap->reason, sizeof(gap->reason), dir, excess,
				       dir->usage.excess[excess]);
		}
	}
	if (!more || info->gap_count == PEM_ARRAY_SIZE(info->gaps))
		return;
	gap = &info->gaps[info->gap_count++];
	pem_copy_text(gap->source, sizeof(gap->source), "users");
	snprintf(gap->reason, sizeof(gap->reason),
		 "%llu further limits of what a recorder takes from one user were exceeded: the "
		 "recorder's messages have them",
		 (unsigned long long)more);
}

/* --- turns --- */

void pem_session__begin_turn(struct pem_session *s)
{
	struct pem_user *user;

	for (user = s->dirs->users; user; user = user->next)
		user->turn_ns = 0;
}

bool pem_dir__had_turn(const struct pem_dir *dir)
{
	const struct pem_user *user = dir->usage.user;

	return user && user->turn_ns > TURN_NS;
}

void pem_dir__charge(struct pem_session *s, struct pem_dir *dir, uint64_t began_ns)
{
	struct pem_user *user = pem_dir__user(s, dir);
	uint64_t now = pem_monotonic_ns();

	if (!user)
		return;
	user->turn_ns += now - began_ns;
	pem_dir__note_wait(s, dir, now);
}

void pem_session__begin_end(struct pem_session *s)
{
	struct pem_user *user;

	s->dirs->end_of_others_ns = 0;
	for (user = s->dirs->users; user; user = user->next)
		user->end_ns = 0;
}

bool pem_dir__had_end(const struct pem_session *s, const struct pem_dir *dir)
{
	const struct pem_user *user = dir->usage.user;

	return user && (user->end_ns > END_NS || s->dirs->end_of_others_ns > END_OF_ALL_NS);
}

void pem_dir__charge_end(struct pem_session *s, struct pem_dir *dir, uint64_t began_ns)
{
	uint64_t now = pem_monotonic_ns(), taken = now - began_ns;
	struct pem_user *user = pem_dir__user(s, dir);

	if (!user)
		return;
	user->end_ns += taken;
	s->dirs->end_of_others_ns += taken;
	pem_dir__note_wait(s, dir, now);
}

/* --- files that are refused --- */

static uint64_t ctime_ns(const struct stat *st)
{
	return (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec;
}

static size_t refused_index(const struct stat *st)
{
	return (size_t)((uint64_t)st->st_ino * 0x9e3779b97f4a7c15u >> 32) % PEM_REFUSED_FILES;
}

/*
 * Each file has one entry of the table by its inode. If a file takes another file's entry, the
 * other file is only opened again.
 */
void pem_dir__refuse_file(struct pem_dir *dir, const struct stat *st, enum pem_excess excess)
{
	struct pem_dir_usage *usage = dir->public_folder ? &dir->public_folder->usage : &dir->usage;

	/* A keeper passes a file on only once. */
	if (!pem_dir__opens_files(dir))
		return;
	if (!usage->refused)
		usage->refused = calloc(PEM_REFUSED_FILES, sizeof(*usage->refused));
	if (usage->refused)
		usage->refused[refused_index(st)] = (struct pem_refused_file){
			(uint64_t)st->st_ino, ctime_ns(st), (uint8_t)excess};
}

/*
 * Return the entry of a file that was refused and has not changed since. NULL: it was not refused,
 * or its entry was taken.
 */
static const struct pem_refused_file *find_refused(const struct pem_dir *dir, const struct stat *st)
{
	const struct pem_refused_file *file;

	if (!dir->usage.refused)
		return NULL;
	file = &dir->usage.refused[refused_index(st)];
	return file->inode == (uint64_t)st->st_ino && file->ctime_ns == ctime_ns(st) ? file : NULL;
}

/* Is the file refused without opening it? */
static bool is_refused(const struct pem_dir *dir, const struct stat *st, enum pem_excess *excess)
{
	const struct pem_refused_file *file = find_refused(dir, st);

	*excess = file ? (enum pem_excess)file->excess : PEM_EXCESS_LINKS;
	return file || !S_ISREG(st->st_mode) || st->st_nlink > 1;
}

void pem_dir__begin_list(struct pem_dir *dir, enum pem_list list)
{
	memset(dir->usage.listed[list], 0, sizeof(dir->usage.listed[list]));
}

int pem_dir__open(struct pem_session *s, struct pem_dir *dir, enum pem_list list, int directory_fd,
		  const char *name)
{
	enum pem_excess excess;
	struct stat st;
	int fd = -1;

	if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return -1;
	if (!is_refused(dir, &st, &excess)) {
		dir->usage.files_opened++;
		fd = pem_shared_file__open(directory_fd, name, O_RDWR);
		if (fd >= 0 || errno == ENOENT)
			return fd;
		excess = errno == EMFILE || errno == ENFILE || errno == ENOMEM ? PEM_EXCESS_MAPPING
									       : PEM_EXCESS_LINKS;
	}
	pem_dir__exceed_in_list(s, dir, list, excess);
	return -1;
}

void pem_dir__close_account(struct pem_session *s, struct pem_dir *dir)
{
	struct pem_dir_usage *usage = &dir->usage;
	int i;

	for (i = 0; i < PEM_RESOURCE_COUNT; i++) {
		/* The session's model keeps events. */
		if (i != PEM_RESOURCE_EVENTS)
			pem_dir__give_back(s, dir, i, usage->used[i]);
	}
	free(usage->refused);
	usage->refused = NULL;
}
