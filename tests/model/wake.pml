/* SPDX-License-Identifier: MIT */
/*
 * wake.pml - how the thread of asynchronous callbacks sleeps, and events wake it: callbacks/thread.c, wake.c, notify.c
 *
 * Two threads of another process that raise an event or none; that process, which reads its rules again; somebody
 * who enables a callback on kernel events and kicks the thread; the thread itself, which falls asleep once and looks around by
 * its timeout (LOOKS times). Each access to shared memory is one step.
 *
 * Checked, whenever the thread sleeps on its futex and nothing is under way:
 *	1 no event that saw PEM_ACTION_WAKE is unread (no lost wake-up)
 *	2 once it has looked since, no event at all is unread, and the action word says WAKE again
 *	3 the thread does not sleep while there is what wakes nobody (kernel events): the kick got through
 *	4 a system call for each sleep, and for each kick, at most
 *	5 page->wake is even while the thread is awake
 *
 * W and X, the two fences, are covered as the order of steps that they keep: the mutants exchange them.
 * Not covered: wake's 32 bits that wrap; futex_wait that returns for no reason (as a look does).
 *
 * @quick APPLY=0
 * @check APPLY=1 LOOKS=2
 * @check APPLY=1 KICK=1
 *
 * @mutant LOOK_BEFORE_COMMIT
 * @mutant READ_BEFORE_ODD
 * @mutant WITHOUT_SECOND_TURN
 * @mutant WAKE_WITHOUT_SWAP
 * @mutant SLEEP_UNCHECKED
 * @mutant NEVER_EVEN
 * @mutant NEVER_MENDED APPLY=1
 * @mutant IGNORE_SOURCES KICK=1
 */
hidden byte apply, kick, most_looks, mutant;

#define MUTANT(name) (mutant == name)
#define LOOK_BEFORE_COMMIT 1
#define READ_BEFORE_ODD 2
#define WITHOUT_SECOND_TURN 3
#define WAKE_WITHOUT_SWAP 4
#define SLEEP_UNCHECKED 5
#define NEVER_EVEN 6
#define NEVER_MENDED 7
#define IGNORE_SOURCES 8

#define EVENTS 1 /* of a producer */
#define SLEEPS 1

byte wake; /* page->wake */
bit in_action, in_rule; /* PEM_ACTION_WAKE */
byte waking[2], silent[2]; /* unread records of a producer: whose event saw WAKE, and others */
bit blocked, token; /* in futex_wait; woken there */
bit locked, asleep, sources; /* the session's lock, and what it guards */
byte ended; /* bit per process but the thread */
byte calls, allowed; /* FUTEX_WAKE by producers; sleeps and kicks */
byte quiet_looks; /* looks begun when nothing else was under way */

#define ALL_ENDED (ended == 15)
#define LOCK() d_step { !locked -> locked = 1 }
#define UNLOCK() locked = 0

inline futex_wake() {
	d_step {
		if
		:: blocked -> token = 1
		:: else
		fi
	}
}

inline commit(p, saw) {
	d_step {
		if
		:: saw -> waking[p] = waking[p] + 1
		:: else -> silent[p] = silent[p] + 1
		fi
	}
}

proctype producer(byte p) {
	byte n, word;
	bit saw, wakes;

	do
	:: n < EVENTS ->
		saw = in_action;
		if
		:: MUTANT(LOOK_BEFORE_COMMIT) -> word = wake; commit(p, saw)
		:: else -> commit(p, saw); /* W */ word = wake
		fi;
		if
		:: saw && (word & 1) ->
			d_step {
				wakes = (wake == word || MUTANT(WAKE_WITHOUT_SWAP));
				if
				:: wakes -> wake = word + 1
				:: else
				fi
			};
			if
			:: wakes -> d_step { calls = calls + 1; assert(calls <= allowed) }; futex_wake()
			:: else
			fi
		:: else
		fi;
		d_step { saw = 0; wakes = 0; word = 0; n = n + 1 }
	:: break /* or raises none */
	od;
	ended = ended | (1 << p)
}

/* pem_process__apply: an older word may come into the page. */
proctype applier() {
	bit word;

	if
	:: apply -> word = in_rule; in_action = word; word = 0
	:: else
	fi;
	ended = ended | 4
}

/* pem_async__set_enabled, of a callback on kernel events */
proctype kicker() {
	if
	:: kick ->
		LOCK();
		sources = 1;
		if
		:: asleep -> d_step { wake = wake + 1; allowed = allowed + 1 }; futex_wake()
		:: else
		fi;
		UNLOCK()
	:: else
	fi;
	ended = ended | 8
}

inline set_wake(on) {
	in_rule = on;
	in_action = on
}

inline lie_down() {
	LOCK();
	asleep = 1;
	if
	:: MUTANT(READ_BEFORE_ODD) -> read_lanes()
	:: else
	fi;
	set_wake(1);
	all = !sources;
	if
	:: all || MUTANT(IGNORE_SOURCES) ->
		d_step { wake = wake | 1; value = wake; allowed = allowed + 1 } /* X */
	:: else
	fi;
	UNLOCK()
}

inline get_up() {
	LOCK();
	asleep = 0;
	word = wake;
	if
	:: (word & 1) && !MUTANT(NEVER_EVEN) ->
		d_step {
			if
			:: wake == word -> wake = word + 1
			:: else
			fi;
			word = 0
		}
	:: else -> word = 0
	fi;
	assert(!(wake & 1));
	set_wake(0);
	UNLOCK()
}

inline read_lanes() {
	d_step {
		took = 0;
		quiet = ALL_ENDED
	};
	d_step { took = took || waking[0] || silent[0]; waking[0] = 0; silent[0] = 0 };
	d_step {
		took = took || waking[1] || silent[1];
		waking[1] = 0;
		silent[1] = 0;
		quiet_looks = quiet_looks + (quiet && quiet_looks < 3);
		quiet = 0
	}
}

/* sleep_until_woken */
inline sleep() {
	do
	:: if
	   :: MUTANT(READ_BEFORE_ODD) || (first && MUTANT(WITHOUT_SECOND_TURN)) -> skip
	   :: else -> read_lanes()
	   fi;
	   first = 0;
	   if
	   :: took || (wake != value && !MUTANT(SLEEP_UNCHECKED)) -> break
	   :: else
	   fi;
	   if
	   :: d_step { wake == value || MUTANT(SLEEP_UNCHECKED) -> blocked = 1 };
end:		if
		:: d_step { token -> token = 0; blocked = 0 }
		:: d_step { looks < most_looks -> looks = looks + 1; blocked = 0; token = 0 }
		fi
	   :: wake != value
	   fi;
	   if
	   :: wake == value && !MUTANT(NEVER_MENDED) ->
		lie_down();
		if
		:: !all && !MUTANT(IGNORE_SOURCES) -> break
		:: else
		fi
	   :: else
	   fi
	od
}

proctype thread() {
	byte sleeps, looks, value, word;
	bit took, all, first, quiet;

	do
	:: sleeps < SLEEPS ->
		d_step { sleeps = sleeps + 1; first = 1; took = 0; quiet_looks = 0 };
		lie_down();
		if
		:: all -> sleep()
		:: else
		fi;
		get_up();
		d_step { value = 0; took = 0; all = 0; first = 0 }
	:: else -> break
	od
}

/* Looks at what is, at any time. */
proctype judge() {
end:	d_step {
		ALL_ENDED && blocked && !token ->
		assert(!waking[0] && !waking[1]); /* 1 */
		assert(!quiet_looks || (!silent[0] && !silent[1])); /* 2 */
		assert(quiet_looks < 2 || in_action); /* 2 */
		assert(!sources) /* 3 */
	}
}

c_decl {
\#include <stdlib.h>
static unsigned char option(const char *name, unsigned char otherwise)
{
	const char *value = getenv(name);

	return value ? (unsigned char)atoi(value) : otherwise;
}
}

init {
	d_step {
		c_code {
			apply = option("APPLY", 0);
			kick = option("KICK", 0);
			most_looks = option("LOOKS", 1);
			mutant = option("MUTANT", 0);
		}
	};
	atomic {
		run producer(0);
		run producer(1);
		run applier();
		run kicker();
		run thread();
		run judge()
	}
}
