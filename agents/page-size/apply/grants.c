// SPDX-License-Identifier: MIT
/* grants.c - what the budget, free memory and limits of control groups leave for this process */
#include "grants.h"

#include "account.h"
#include "lock.h"
#include "start.h"
#include "supply.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* After this many bytes free memory and limits are asked again. */
#define ASK_AGAIN (16u << 20)
/* With less than this left of a limit, processes take turns. */
#define TURNS_BELOW (1u << 30)

static struct {
	struct lock lock;
	uint64_t budget;
	struct account account;
	uint64_t granted;
	uint64_t supply, limit; /* the last answers */
	const char *limited_by;
	uint64_t fresh; /* bytes until they are asked again */
	int turn; /* a descriptor (supply.h), under the lock of the set of large pages; -1: none */
} grants = {.turn = -1};

void grants__init(uint64_t budget, const char *path)
{
	grants.budget = budget;
	snprintf(grants.account.path, sizeof(grants.account.path), "%s.account", path);
}

/* What a limit leaves has been read: if it is little, it is read again in this process's turn. */
static void take_turn(uint64_t unit)
{
	if (grants.limit >= TURNS_BELOW)
		return;
	grants.fresh = 0;
	if (grants.limit < unit)
		return;
	grants.turn = supply__begin_turn();
	grants.limit = grants.turn < 0 ? 0 : supply__limit();
	grants.limited_by = grants.turn < 0 ? "turn" : "limit of the control group";
}

static void ask_again(uint64_t bytes, uint64_t unit)
{
	int state;

	if (bytes <= grants.fresh)
		return;
	state = lock__begin_files();
	grants.supply = supply__memory();
	grants.limit = supply__limit();
	grants.limited_by = "limit of the control group";
	grants.fresh = bytes > ASK_AGAIN ? bytes : ASK_AGAIN;
	take_turn(unit);
	lock__end_files(state);
}

static void keep_within(uint64_t *bytes, uint64_t most, uint64_t unit, const char *word,
			const char **reason)
{
	if (*bytes > most) {
		*bytes = most / unit * unit;
		*reason = word;
	}
}

uint64_t grants__ask(uint64_t bytes, uint64_t unit, const char **reason)
{
	uint64_t asked;
	int64_t got = 0;

	if (apply__confined || !lock__take(&grants.lock)) {
		*reason = apply__confined ? "seccomp" : "signal";
		return 0;
	}
	keep_within(&bytes, grants.budget, unit, "budget", reason);
	if (bytes)
		ask_again(bytes, unit);
	if (grants.turn >= 0 && bytes > unit)
		bytes = unit;
	keep_within(&bytes, grants.supply, unit, "supply", reason);
	keep_within(&bytes, grants.limit, unit, grants.limited_by, reason);
	asked = bytes;
	if (bytes)
		got = account__change(&grants.account, (int64_t)bytes, unit, grants.budget);
	bytes = got > 0 ? (uint64_t)got : 0;
	if (bytes < asked)
		*reason = got < 0 ? "account" : "budget";
	grants.granted += bytes;
	grants.fresh -= bytes < grants.fresh ? bytes : grants.fresh;
	lock__release(&grants.lock);
	if (!bytes)
		grants__made();
	return bytes;
}

void grants__made(void)
{
	int turn = grants.turn;

	grants.turn = -1;
	if (turn >= 0)
		close(turn);
}

void grants__look_again(void)
{
	grants.fresh = 0;
}

void grants__give_back(uint64_t bytes)
{
	/* Whoever can't say so is counted with too many. */
	if (apply__confined || !lock__take(&grants.lock))
		return;
	account__change(&grants.account, -(int64_t)bytes, 1, grants.budget);
	grants.granted -= bytes;
	lock__release(&grants.lock);
}

void grants__before_fork(void)
{
	lock__before_fork(&grants.lock);
	if (grants.account.self.own && !apply__confined) {
		account__share(&grants.account);
		account__change(&grants.account, 0, 1, grants.budget);
	}
}

void grants__after_fork(bool is_child)
{
	if (is_child) {
		grants.granted = 0;
		account__fork(&grants.account);
		if (grants.account.self.inherited && !apply__confined)
			account__change(&grants.account, 0, 1, grants.budget);
	}
	lock__after_fork(&grants.lock, is_child);
}
