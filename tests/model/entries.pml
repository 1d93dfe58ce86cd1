/* SPDX-License-Identifier: MIT */
/*
 * entries.pml - an entry of a process's table of sessions: two consumers that want it, the process that joins, and their deaths
 *
 * What entry.c, members.c and join.c do with a struct pem_session_entry and with one action word. tests/model/run explores
 * every interleaving, then those of every mutant, each of which must fail.
 *
 * Checked, whatever the interleaving and wherever consumers are killed:
 *	1 an entry has one owner: nobody takes it from one that lives, and only its owner stores to what it holds
 *	2 the process joins what is offered at that moment, and no mixture of it and what was offered there before
 *	3 an event goes to the session that wanted it
 *	4 a wish stays: whatever the process stores for an earlier session, in the end the action is that of who is served
 *	5 no entry is lost: once everybody is gone or dead it can be taken
 *
 * Covered, and how: each access to shared memory is one step, in a sequentially consistent order; entry.c and join.c have a
 * full fence wherever a store has to come before a load of another word. A consumer comes twice, so that words could
 * repeat. One that is stopped is one that takes no step.
 * Not covered: what the process takes for itself, by the same steps, as nobody judges it dead; its death, with which its table
 * goes; fork; incarnations that wrap (255 sessions while one of its threads looks at one action); several threads of the
 * process, which join under its lock.
 *
 * CRASHES: bit c - 1: consumer c may be killed, at any step.
 *
 * @quick CRASHES=0
 * @check CRASHES=1
 * @check CRASHES=2
 * @check CRASHES=3
 *
 * What must fail, or nothing above is worth a thing:
 * @mutant TAKEN_UNNAMED CRASHES=1
 * @mutant TAKE_FROM_LIVING CRASHES=0
 * @mutant TAKE_WITHOUT_SWAP CRASHES=0
 * @mutant SERIAL_STUCK CRASHES=0
 * @mutant COPY_UNVERIFIED CRASHES=0
 * @mutant INCARNATION_KEPT CRASHES=0
 * @mutant MEET_ONCE CRASHES=0
 * @mutant SWITCH_OFF_UNSEEN CRASHES=1
 */
#define ROUNDS(c) (3 - (c)) /* sessions of a consumer, one after the other */
#define SESSION(c, round) ((c) + 2 * (round)) /* 1 to 3 */
#define NONE 0

/* the word's state */
#define FREE 0
#define TAKEN 1
#define OFFERED 2
#define FILLED 3 /* no other entry has the session: both_join.pml */

hidden byte mutant;
#define MUTANT(name) (mutant == name)
#define TAKEN_UNNAMED 1
#define TAKE_FROM_LIVING 2
#define TAKE_WITHOUT_SWAP 3
#define SERIAL_STUCK 4
#define COPY_UNVERIFIED 5
#define INCARNATION_KEPT 6
#define MEET_ONCE 7
#define SWITCH_OFF_UNSEEN 8

/* --- shared memory --- */
byte state, serial, consumer; /* one word */
byte incarnation, folder, joined_last;
byte action, wanted_by; /* one word: its incarnation, 0: off; and whose it is, for the checks */
bool closed[4]; /* by session: its page says so, or is gone */
/* --- the kernel's: who has the lock on its folder --- */
bool alive[3];
byte crashes; /* that may yet happen, a bit per consumer */

/* --- what is checked --- */
byte owner, offered; /* consumer that has the entry; session that is offered there */
bool wished; /* the owner has stored its action */
bool ended[3];
bool idle = true; /* the process is between events */

#define SET(s, c) state = s; serial = serial + (MUTANT(SERIAL_STUCK) -> 0 : 1); consumer = c
#define IS_WORD (state == s && serial == n && consumer == who)
#define LOAD_WORD s = state; n = serial; who = consumer

proctype user(byte c)
{
	byte s, n, who, mine, round;
	{
		do
		:: round < ROUNDS(c) ->
			/* pem_entry__take */
			d_step { LOAD_WORD };
			if
			:: s == FREE
			:: s != FREE && (MUTANT(TAKE_FROM_LIVING) || (who && !alive[who])) /* is_abandoned */
			:: else -> break
			fi;
			if
			:: d_step { IS_WORD || MUTANT(TAKE_WITHOUT_SWAP) ->
				assert(owner == NONE || !alive[owner]);
				SET(TAKEN, (MUTANT(TAKEN_UNNAMED) -> NONE : c));
				LOAD_WORD;
				owner = c;
				offered = NONE;
				wished = false }
			:: else -> break
			fi;
			/* set_incarnation */
			d_step {
				assert(owner == c);
				mine = (MUTANT(INCARNATION_KEPT) && incarnation -> incarnation : incarnation % 255 + 1);
				if
				:: mine == joined_last && !MUTANT(INCARNATION_KEPT) -> mine = mine % 255 + 1
				:: else
				fi;
				incarnation = mine
			};
			/* pem_entry__offer */
			d_step { assert(owner == c); folder = SESSION(c, round) };
			if
			:: d_step { IS_WORD -> SET(FILLED, c); LOAD_WORD }
			:: else -> assert(false)
			fi;
			if
			:: d_step { IS_WORD -> SET(OFFERED, c); LOAD_WORD; offered = SESSION(c, round) }
			:: else -> assert(false)
			fi;
			/* pem_session__apply_to */
			d_step { assert(owner == c); action = mine; wanted_by = SESSION(c, round); wished = true };
			/* closing the session, sooner or later */
			d_step { assert(owner == c); wished = false; closed[SESSION(c, round)] = true };
			d_step { assert(owner == c); action = 0; wanted_by = NONE };
			if
			:: d_step { IS_WORD -> SET(FREE, NONE); owner = NONE; offered = NONE } /* pem_entry__give_back */
			:: else -> assert(false)
			fi;
			d_step { round = round + 1; s = 0; n = 0; who = 0; mine = 0 }
		:: else -> break
		od
	} unless { !alive[c] };
	skip; /* a jump may not lead into a d_step */
	d_step { s = 0; n = 0; who = 0; mine = 0; round = 0; ended[c] = true }
}

/* pem_process__join_offered: join_offered until there is nothing new */
inline meet() {
	do
	:: d_step { LOAD_WORD };
		if
		:: s == OFFERED
		:: else -> break
		fi;
		got = incarnation;
		session = folder;
		if
		:: d_step { IS_WORD || MUTANT(COPY_UNVERIFIED) ->
			if
			:: got != joined -> assert(session == offered && got == incarnation)
			:: else
			fi }
		:: else -> break
		fi;
		if
		:: got == joined -> break
		:: else
		fi;
		/* map_session_page, replace */
		d_step {
			joined = got;
			joined_session = (closed[session] -> NONE : session)
		};
		joined_last = got;
		apply();
		if
		:: MUTANT(MEET_ONCE) -> break
		:: else
		fi
	od;
	skip;
	d_step { s = 0; n = 0; who = 0; got = 0; session = 0 }
}

/* Stores what the page says, as it was a moment ago. */
inline apply() {
	if
	:: joined_session && !closed[joined_session] -> d_step { action = joined; wanted_by = joined_session }
	:: else -> d_step { action = 0; wanted_by = NONE }
	fi
}

active proctype process()
{
	byte s, n, who, got, session, joined, joined_session, seen, seen_of;

	do
	:: d_step { action != 0 -> seen = action; seen_of = wanted_by; idle = false };
		if
		:: seen != joined -> meet()
		:: else
		fi;
		if
		:: d_step { seen == joined && joined_session -> assert(seen_of == joined_session) }
		:: else
		fi;
		d_step { seen = 0; seen_of = NONE; idle = true }
	/* pem_process__check_consumer */
	:: d_step { joined_session && !alive[(joined_session - 1) % 2 + 1] -> idle = false };
		d_step { action = 0; wanted_by = NONE };
		joined_session = NONE;
		if
		:: !MUTANT(SWITCH_OFF_UNSEEN) -> meet()
		:: else
		fi;
		idle = true
	:: ended[1] && ended[2] -> break
	od;
	assert(state == FREE || (consumer && !alive[consumer])) /* 5 */
}

active proctype observer()
{
	/* 4: in the middle of an event the process may yet put it right */
end:	do
	:: d_step { wished && idle && alive[owner] -> assert(action == incarnation && wanted_by == offered) }
	od
}

active proctype killer()
{
end:	do
	:: d_step { crashes & 1 && !ended[1] -> alive[1] = false; crashes = crashes & 2 }
	:: d_step { crashes & 2 && !ended[2] -> alive[2] = false; crashes = crashes & 1 }
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
			now.crashes = option("CRASHES");
		};
		alive[1] = true;
		alive[2] = true
	};
	atomic {
		run user(1);
		run user(2)
	}
}
