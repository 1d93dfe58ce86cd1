/* SPDX-License-Identifier: MIT */
/*
 * both_join.pml - a process that joins a session by itself while the session's consumer offers it: two entries of one table
 *
 * What pem_entry__offer and join.c do with two entries that have the same session. tests/model/run explores every
 * interleaving, then those of every mutant, each of which must fail.
 *
 * Checked, whatever the interleaving and wherever the consumer is killed:
 *	1 the process joins the session once: two entries that have it would record each event twice
 *	2 in the end it has joined it
 *	3 from its first look on: it has the session, or can join what is offered
 *	4 nobody stores to an entry that is another's
 *
 * Covered, and how: each access to shared memory is one step, in a sequentially consistent order; entry.c has a full fence
 * between its stores of FILLED and its loads of others. A consumer that yielded asks once more, and finds what is offered.
 * Not covered: other sessions' consumers (entries.pml), who may take what a dead one has filled; what is in an entry; the
 * consumer's leaving.
 *
 * CRASHES: 1: the consumer may be killed, at any step.
 *
 * @quick CRASHES=0
 * @quick CRASHES=1
 *
 * What must fail, or nothing above is worth a thing:
 * @mutant OFFERED_AT_ONCE CRASHES=0
 * @mutant BOTH_YIELD CRASHES=0
 * @mutant NOBODY_YIELDS CRASHES=0
 * @mutant OWN_YIELDS_NOT CRASHES=0
 * @mutant TAKES_BACK_UNFILLED CRASHES=0
 * @mutant TAKEN_BACK_UNSEEN CRASHES=0
 */
#define FREE 0
#define TAKEN 1
#define OFFERED 2
#define FILLED 3

#define NONE 0
#define CONSUMER 1
#define OWN 2 /* the process */

hidden byte mutant;
#define MUTANT(name) (mutant == name)
#define OFFERED_AT_ONCE 1
#define BOTH_YIELD 2
#define NOBODY_YIELDS 3
#define OWN_YIELDS_NOT 4
#define TAKES_BACK_UNFILLED 5
#define TAKEN_BACK_UNSEEN 6

/* --- shared memory: of each of two entries its word, and the session that its fields name --- */
byte state[2], serial[2];
bool names_session[2];

/* --- what is checked --- */
byte owner[2];
bool alive = true, may_die;
bool consumer_ended, process_ended;

#define WORD(i) (state[i] == s && serial[i] == n)
#define LOAD(i) s = state[i]; n = serial[i]
#define MOVE(i, to) state[i] = to; serial[i] = serial[i] + 1

/* Is there another entry that has the session? seen: its state. */
inline look(other) {
	d_step { LOAD(other) };
	if
	:: s == FILLED || s == OFFERED || (MUTANT(TAKES_BACK_UNFILLED) && s == TAKEN) ->
		d_step { seen = (names_session[other] || s == TAKEN -> s : FREE) };
		if
		:: d_step { !WORD(other) -> seen = FREE; again = true }
		:: else -> again = false
		fi
	:: else -> d_step { seen = FREE; again = false }
	fi
}

/* pem_entry__take, pem_entry__offer; result: 0 it is offered, 1 another entry has the session, 2 it was taken away */
inline offer_as(who) {
	/* pem_entry__take: the first that is free, or the next if somebody is faster */
	result = 3;
	mine = 0;
	do
	:: result == 3 ->
		d_step { LOAD(mine) };
		if
		:: d_step { s == FREE && WORD(mine) -> MOVE(mine, TAKEN); owner[mine] = who; n = serial[mine] } -> result = 0
		:: else -> mine = 1 - mine
		fi
	:: else -> break
	od;
	if
	:: result == 0 ->
		my_n = n;
		d_step { assert(owner[mine] == who); /* 4 */ names_session[mine] = true };
		d_step { s = TAKEN; n = my_n };
		if
		:: d_step { WORD(mine) -> MOVE(mine, (MUTANT(OFFERED_AT_ONCE) -> OFFERED : FILLED)); my_n = serial[mine] }
		:: else -> result = 2
		fi
	:: else
	fi;
	if
	:: result == 0 && !MUTANT(OFFERED_AT_ONCE) ->
		again = true;
		do
		:: again ->
			look(1 - mine);
			if
			:: !again && seen != FREE && who == OWN && seen != OFFERED && !MUTANT(BOTH_YIELD) ->
				/* what a consumer has filled gives way */
				if
				:: d_step { WORD(1 - mine) -> MOVE(1 - mine, FREE); owner[1 - mine] = NONE }
				:: else
				fi;
				again = true
			:: else
			fi
		:: else -> break
		od;
		if
		:: seen != FREE && !MUTANT(NOBODY_YIELDS) && !(who == OWN && MUTANT(OWN_YIELDS_NOT)) ->
			result = 1;
			d_step { s = FILLED; n = my_n };
			if
			:: d_step { WORD(mine) -> MOVE(mine, FREE); owner[mine] = NONE }
			:: else
			fi
		:: else ->
			d_step { s = FILLED; n = my_n };
			if
			:: d_step { WORD(mine) || (MUTANT(TAKEN_BACK_UNSEEN) && who == CONSUMER) -> MOVE(mine, OFFERED) }
			:: else -> result = 2
			fi
		fi
	:: else
	fi
}

#define IS_OFFERED ((state[0] == OFFERED && names_session[0]) || (state[1] == OFFERED && names_session[1]))

proctype consumer()
{
	byte s, n, my_n, mine, seen, result;
	bool again;
	{
		/* pem_member__ask */
		if
		:: IS_OFFERED -> skip
		:: else -> offer_as(CONSUMER)
		fi;
		/* The next look. */
		if
		:: IS_OFFERED -> skip
		:: else -> process_ended; if :: IS_OFFERED -> skip :: else -> offer_as(CONSUMER) fi
		fi
	} unless { !alive };
	consumer_ended = true
}

proctype process()
{
	byte s, n, my_n, mine, seen, result;
	bool again;

	offer_as(OWN);
	assert(result == 0 || IS_OFFERED); /* 3 */
	process_ended = true;
	consumer_ended;
	/* 2 */
	assert((state[0] == OFFERED) + (state[1] == OFFERED) == 1)
}

active proctype observer()
{
end:	do
	:: d_step { state[0] == OFFERED && state[1] == OFFERED && names_session[0] && names_session[1] -> assert(false) } /* 1 */
	od
}

active proctype killer()
{
end:	do
	:: d_step { may_die && !consumer_ended -> alive = false; may_die = false }
	od
}

c_decl {
\#include <stdlib.h>
static unsigned char option(const char *name)
{
	const char *value = getenv(name);

	return value ? (unsigned char)atoi(value) : 0;
}
}

init {
	d_step {
		c_code {
			mutant = option("MUTANT");
			now.may_die = option("CRASHES");
		};
	};
	atomic {
		run consumer();
		run process()
	}
}
