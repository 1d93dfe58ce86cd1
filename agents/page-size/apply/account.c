// SPDX-License-Identifier: MIT
/* account.c - reading, adding up and writing the entries */
#include "account.h"

#include "files.h"
#include "lock.h"
#include "supply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TABLE_BYTES (ACCOUNT_ENTRIES * sizeof(struct account_entry))

/* A process that was stopped may hold the lock: the wait ends after some 20 ms. */
static bool take_lock(int fd)
{
	const struct timespec pause = {0, 200000};
	int turns;

	for (turns = 0; flock(fd, LOCK_EX | LOCK_NB); turns++) {
		if (turns == 100)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* The user's own file, of the right kind, locked; -1: it can't be had. */
static int open_locked(const char *path)
{
	struct stat st;
	int fd = files__open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);

	if (fd < 0)
		return -1;
	/* A file of another length is not one of this library's, which the user may want to keep.
	 */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077 ||
	    st.st_nlink != 1 || (st.st_size && st.st_size != TABLE_BYTES) || !take_lock(fd)) {
		close(fd);
		return -1;
	}
	/* The program's umask may keep the next open from what it has made. */
	if ((st.st_mode & 0600) != 0600)
		fchmod(fd, 0600);
	return fd;
}

/* A file that may not grow so far would end the program by SIGXFSZ. */
static bool may_write(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= TABLE_BYTES);
}

/* Bytes of all entries. Of a family the most that one inherited counts, once. */
static uint64_t add_up(const struct account_entry *table)
{
	uint64_t sum = 0, most;
	uint32_t i, j;

	for (i = 0; i < ACCOUNT_ENTRIES; i++) {
		if (!table[i].pid)
			continue;
		sum += table[i].own;
		for (j = 0; j < i && (!table[j].pid || table[j].family != table[i].family);)
			j++;
		if (j < i)
			continue; /* counted */
		for (most = 0; j < ACCOUNT_ENTRIES; j++) {
			if (table[j].pid && table[j].family == table[i].family &&
			    table[j].inherited > most)
				most = table[j].inherited;
		}
		sum += most;
	}
	return sum;
}

/* This process's entry, or a free one; NULL: the table is full. */
static struct account_entry *find_entry(struct account_entry *table,
					const struct account_entry *self)
{
	struct account_entry *none = NULL;
	uint32_t i;

	for (i = 0; i < ACCOUNT_ENTRIES; i++) {
		if (table[i].pid == self->pid && table[i].started == self->started)
			return &table[i];
		if (!table[i].pid)
			none = &table[i];
	}
	return none;
}

/* Entries of processes that have ended become free. */
static void sweep(struct account_entry *table)
{
	uint32_t i;

	for (i = 0; i < ACCOUNT_ENTRIES; i++) {
		if (table[i].pid && supply__started(table[i].pid) != table[i].started)
			memset(&table[i], 0, sizeof(table[i]));
	}
}

static int64_t fitting(const struct account_entry *table, int64_t own, uint64_t unit,
		       uint64_t budget)
{
	uint64_t all = add_up(table), left = all < budget ? (budget - all) / unit * unit : 0;

	return (uint64_t)own > left ? (int64_t)left : own;
}

static void add(struct account_entry *entry, int64_t own)
{
	uint64_t gone = own < 0 ? (uint64_t)-own : 0;

	if (own > 0)
		entry->own += (uint64_t)own;
	if (gone > entry->own) {
		gone -= entry->own;
		entry->own = 0;
		entry->inherited -= gone < entry->inherited ? gone : entry->inherited;
	} else {
		entry->own -= gone;
	}
}

static int64_t change(struct account *account, int fd, int64_t own, uint64_t unit, uint64_t budget)
{
	struct account_entry *table = account->table, *entry;
	int64_t fits;

	memset(table, 0, TABLE_BYTES);
	if (pread(fd, table, TABLE_BYTES, 0) < 0)
		return -1;
	entry = find_entry(table, &account->self);
	if (!entry) {
		sweep(table);
		entry = find_entry(table, &account->self);
	}
	if (!entry)
		return 0;
	*entry = account->self;
	if (own > 0) {
		fits = fitting(table, own, unit, budget);
		if (fits < own) {
			sweep(table);
			*entry = account->self;
			fits = fitting(table, own, unit, budget);
		}
		own = fits;
	}
	add(entry, own);
	if (pwrite(fd, table, TABLE_BYTES, 0) != (ssize_t)TABLE_BYTES)
		return -1;
	account->self = *entry;
	return own > 0 ? own : 0;
}

int64_t account__change(struct account *account, int64_t own, uint64_t unit, uint64_t budget)
{
	struct account_entry *self = &account->self;
	int64_t done = -1;
	int fd = -1, state = lock__begin_files();

	if (!self->pid) {
		self->pid = (uint32_t)getpid();
		self->started = supply__started(self->pid);
	}
	if (!self->family)
		self->family = (uint64_t)self->pid << 32 ^ self->started;
	if (may_write())
		fd = open_locked(account->path);
	if (fd >= 0) {
		done = change(account, fd, own, unit, budget);
		close(fd);
	}
	lock__end_files(state);
	/* Whoever is not told of pages that are gone counts too many, never too few. */
	if (own < 0 && done < 0)
		add(self, own);
	return done;
}

void account__share(struct account *account)
{
	account->self.inherited += account->self.own;
	account->self.own = 0;
}

void account__fork(struct account *account)
{
	account->self.pid = 0;
}
