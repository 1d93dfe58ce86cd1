/* SPDX-License-Identifier: MIT */
/*
 * chunks.pml - the chunk hand-over of spec/abi/pem/ring.h: two producers, one consumer, and a crash of any of them
 *
 * With it what drain.c, pool_copy.c, recover.c and claim_chunk() of notify.c do with chunks, lanes and counts.
 * tests/model/run explores every interleaving of every configuration, then of every mutant, each of which must fail.
 *
 * Checked, whatever the interleaving and wherever somebody is killed:
 *	1 no record is delivered twice, and those of a lane are delivered in their order
 *	2 conservation: produced = delivered + discarded + overwritten, per lane; of a killed producer one more may have been
 *	  delivered or discarded than it counted (pem_ring_commit says why)
 *	3 only its owner stores to an OWNED chunk
 *	4 no chunk is lost but those that a killed producer owned
 *	5 no deadlock, and a full pool is searched again once there is a chunk to be had
 *	6 docs/architecture.md, Barriers, RA to RF: whoever reads or writes plain memory of a chunk is ordered after the last write to it, and whoever
 *	  writes after the last read, by releases and acquires alone
 *
 * Covered, and how: each access to shared memory is one step. Spin interleaves them as a sequentially consistent machine
 * would. The weaker order of real ones is covered for what is not atomic by 6: a data race there is an error even
 * where the values happen to be right, as a detector by happens-before (vector clocks, here one bit per reader and item) has it. Stores
 * that are reordered without a race have no way to be seen then.
 * Not covered: atomics on different words that a weak machine reorders (the hint and the pair full, full_at are such, and
 * may hold anything: the model starts each search at any chunk); 32 bits that wrap; what records hold; a lane's change of hands.
 *
 * Configurations, from the environment of the compiled model; quick ones are part of make check. What may happen: producers
 * or the consumer are killed, the session lets go while they run (FINISH_EARLY), a flight recorder is looked at (SNAPSHOTS).
 *
 * @quick CRASH_PRODUCERS=0
 * @quick OVERWRITE=1
 * @check CRASH_PRODUCERS=1
 * @check CRASH_PRODUCERS=1 OVERWRITE=1
 * @check CRASH_CONSUMER=1
 * @check FINISH_EARLY=1
 * @check FINISH_EARLY=1 OVERWRITE=1
 * @check OVERWRITE=1 SNAPSHOTS=1
 *
 * What must fail, or nothing above is worth a thing:
 * @mutant COMMIT_BEFORE_RECORD CRASH_PRODUCERS=1
 * @mutant COMMIT_RELAXED FINISH_EARLY=1
 * @mutant RETIRE_RELAXED OVERWRITE=1
 * @mutant TAKE_RELAXED
 * @mutant FREE_RELAXED
 * @mutant CLAIM_RELAXED
 * @mutant CLAIM_WITHOUT_SWAP
 * @mutant TAKE_OUT_OF_TURN
 * @mutant FREE_BEFORE_COPY
 * @mutant RETIRE_WITHOUT_COUNT OVERWRITE=1
 * @mutant LANE_BEFORE_HEADER OVERWRITE=1 CRASH_PRODUCERS=1
 * @mutant FINISH_WITHOUT_OWNED CRASH_PRODUCERS=1
 * @mutant SUM_AFTER_DRAIN FINISH_EARLY=1
 * @mutant PRODUCED_BEFORE_COMMIT CRASH_PRODUCERS=1
 * @mutant PRODUCED_BEFORE_DISCARDED CRASH_PRODUCERS=1
 * @mutant FORGET_HALF_RECLAIMED CRASH_PRODUCERS=1 OVERWRITE=1
 * @mutant FULL_FOR_EVER OVERWRITE=1
 * @mutant FREED_UNSAID
 * @mutant WITHOUT_TURN_NUMBER CRASH_CONSUMER=1 FINISH_EARLY=1
 * @mutant RECOVER_BY_CLOCK CRASH_CONSUMER=1 FINISH_EARLY=1
 * @mutant TAKE_WITHOUT_SWAP FINISH_EARLY=1 OVERWRITE=1
 * @mutant SNAPSHOT_RELAXED OVERWRITE=1 SNAPSHOTS=1
 * @mutant COPY_UNVERIFIED FINISH_EARLY=1 OVERWRITE=1
 * @mutant COPY_UNCHECKED FINISH_EARLY=1 OVERWRITE=1
 */
#define CHUNKS 2
#define ROOM 2 /* records of a chunk */
#define RECORDS(p) (3 - (p)) /* that a producer raises */
#define NOBODY 9
#define CONSUMER 2

/* chunk states */
#define FREE 0
#define OWNED 1
#define FULL 2
#define READING 3

/* plain memory of a chunk, a bit each */
#define HEADER 1
#define COUNT 2
#define RECORD(k) (4 << (k))
#define ALL 15

/* configuration: set before the first step, hidden since it never changes */
hidden byte overwrite, crash_producers, crash_consumer, finish_early, mutant;

#define MUTANT(name) (mutant == name)
#define COMMIT_BEFORE_RECORD 1
#define COMMIT_RELAXED 2
#define RETIRE_RELAXED 3
#define TAKE_RELAXED 4
#define FREE_RELAXED 5
#define CLAIM_RELAXED 6
#define CLAIM_WITHOUT_SWAP 7
#define TAKE_OUT_OF_TURN 8
#define FREE_BEFORE_COPY 9
#define RETIRE_WITHOUT_COUNT 10
#define LANE_BEFORE_HEADER 11
#define FINISH_WITHOUT_OWNED 12
#define SUM_AFTER_DRAIN 13
#define PRODUCED_BEFORE_COMMIT 14
#define PRODUCED_BEFORE_DISCARDED 15
#define FORGET_HALF_RECLAIMED 16
#define FULL_FOR_EVER 17
#define FREED_UNSAID 18
#define WITHOUT_TURN_NUMBER 19
#define RECOVER_BY_CLOCK 20
#define TAKE_WITHOUT_SWAP 21
#define SNAPSHOT_RELAXED 22
#define COPY_UNVERIFIED 23
#define COPY_UNCHECKED 24

/* --- shared memory --- */
byte state[CHUNKS], owner_lane[CHUNKS]; /* one word */
byte content[CHUNKS]; /* records committed */
byte seq[CHUNKS], begin[CHUNKS], count[CHUNKS], record[CHUNKS * ROOM];
byte lane_seq[2], produced[2], discarded[2], overwritten[2];
byte freed;
byte snapshots; /* that may yet be taken */
/* of the producers' process */
byte was_full, full_at;

/* --- what is checked --- */
byte owner[CHUNKS]; /* producer that holds it */
byte delivered[2], last[2]; /* last number delivered of a lane */
byte ended, crashed; /* bit per process */
byte disabled;

/* Happens-before. [process * CHUNKS + chunk]: items whose last write, or later reads, the process does not come after. */
byte unseen[3 * CHUNKS], unread[3 * CHUNKS];
/* per chunk: what an acquire of the word gives */
byte state_w[CHUNKS], state_r[CHUNKS], content_w[CHUNKS], content_r[CHUNKS];

#define AT(p, c) ((p) * CHUNKS + (c))
#define OTHER(p, n) (((p) + (n)) % 3)

/* Plain accesses, within a d_step. */
#define STORE(p, c, item) \
	assert(!(unseen[AT(p, c)] & (item)) && !(unread[AT(p, c)] & (item))); \
	unseen[AT(OTHER(p, 1), c)] = unseen[AT(OTHER(p, 1), c)] | (item); \
	unseen[AT(OTHER(p, 2), c)] = unseen[AT(OTHER(p, 2), c)] | (item); \
	unread[AT(OTHER(p, 1), c)] = unread[AT(OTHER(p, 1), c)] & ~(item); \
	unread[AT(OTHER(p, 2), c)] = unread[AT(OTHER(p, 2), c)] & ~(item); \
	state_w[c] = state_w[c] & ~(item); \
	content_w[c] = content_w[c] & ~(item)
#define LOAD(p, c, item) \
	assert(!(unseen[AT(p, c)] & (item))); \
	unread[AT(OTHER(p, 1), c)] = unread[AT(OTHER(p, 1), c)] | (item); \
	unread[AT(OTHER(p, 2), c)] = unread[AT(OTHER(p, 2), c)] | (item); \
	state_r[c] = state_r[c] & ~(item); \
	content_r[c] = content_r[c] & ~(item)
#define RELEASE_STATE(p, c) \
	state_w[c] = ALL & ~unseen[AT(p, c)]; state_r[c] = ALL & ~unread[AT(p, c)]
#define RELAX_STATE(c) state_w[c] = 0; state_r[c] = 0
#define ACQUIRE_STATE(p, c) \
	unseen[AT(p, c)] = unseen[AT(p, c)] & ~state_w[c]; unread[AT(p, c)] = unread[AT(p, c)] & ~state_r[c]
#define RELEASE_CONTENT(p, c) \
	content_w[c] = ALL & ~unseen[AT(p, c)]; content_r[c] = ALL & ~unread[AT(p, c)]
#define RELAX_CONTENT(c) content_w[c] = 0; content_r[c] = 0
#define ACQUIRE_CONTENT(p, c) \
	unseen[AT(p, c)] = unseen[AT(p, c)] & ~content_w[c]; unread[AT(p, c)] = unread[AT(p, c)] & ~content_r[c]

#define SET(c, s, l) state[c] = s; owner_lane[c] = l
#define IS_CRASHED(p) (crashed >> (p) & 1)

/* --- producers: their lane is their number + 1 --- */

inline retire(p, c) {
	if
	:: c != NOBODY ->
		if
		:: !MUTANT(RETIRE_WITHOUT_COUNT) -> d_step { assert(owner[c] == p); STORE(p, c, COUNT); count[c] = cursor }
		:: else
		fi;
		d_step {
			assert(owner[c] == p && state[c] == OWNED);
			if
			:: MUTANT(RETIRE_RELAXED) -> RELAX_STATE(c)
			:: else -> RELEASE_STATE(p, c) /* C */
			fi;
			SET(c, FULL, p + 1);
			owner[c] = NOBODY;
			c = NOBODY;
			cursor = 0
		}
	:: else
	fi
}

/* pem_ring_try: one chunk; held is set when it could be had. */
inline try(p, i, held) {
	if
	:: d_step { (state[i] == FREE || (state[i] == FULL && overwrite)) -> word = state[i]; victim = owner_lane[i] };
		if
		:: d_step { (state[i] == word && owner_lane[i] == victim) || MUTANT(CLAIM_WITHOUT_SWAP) -> /* D, F */
			if
			:: !MUTANT(CLAIM_RELAXED) -> ACQUIRE_STATE(p, i)
			:: else
			fi;
			SET(i, OWNED, 0);
			assert(owner[i] == NOBODY);
			owner[i] = p;
			held = i };
			if
			:: d_step { word == FULL -> LOAD(p, i, COUNT); overwritten[victim - 1] = overwritten[victim - 1] + count[i] }
			:: else
			fi
		:: else
		fi;
		word = 0;
		victim = 0
	:: else
	fi
}

/* pem_ring_start */
inline start(p, c) {
	d_step {
		assert(owner[c] == p);
		STORE(p, c, HEADER);
		seq[c] = lane_seq[p];
		begin[c] = number * 2 + p; /* a clock: two lanes hardly ever have the same */
		STORE(p, c, COUNT);
		count[c] = 0
	};
	if
	:: MUTANT(LANE_BEFORE_HEADER) -> d_step { RELEASE_STATE(p, c); SET(c, OWNED, p + 1) }
	:: else
	fi;
	d_step { RELEASE_CONTENT(p, c); content[c] = 0 }; /* A */
	d_step { assert(owner[c] == p && state[c] == OWNED); RELEASE_STATE(p, c); SET(c, OWNED, p + 1) };
	lane_seq[p] = lane_seq[p] + 1
}

/* claim_chunk: chunk becomes what was found, or stays NOBODY. */
inline claim(p, chunk) {
	at_freed = freed;
	retire(p, chunk);
	if
	:: was_full && full_at == at_freed && (!overwrite || MUTANT(FULL_FOR_EVER)) -> skip
	:: else ->
		if /* the hint says anything */
		:: i = 0
		:: i = 1
		fi;
		try(p, i, chunk);
		if
		:: chunk == NOBODY -> i = 1 - i; try(p, i, chunk)
		:: else
		fi;
		i = 0;
		if
		:: chunk == NOBODY -> full_at = at_freed; was_full = 1
		:: else -> was_full = 0; start(p, chunk)
		fi
	fi;
	at_freed = 0
}

inline commit(p, c, k) {
	d_step {
		assert(owner[c] == p);
		if
		:: MUTANT(COMMIT_RELAXED) -> RELAX_CONTENT(c)
		:: else -> RELEASE_CONTENT(p, c) /* A */
		fi;
		content[c] = k + 1
	}
}

inline put(p, c) {
	if
	:: MUTANT(PRODUCED_BEFORE_COMMIT) -> produced[p] = produced[p] + 1
	:: else
	fi;
	if
	:: MUTANT(COMMIT_BEFORE_RECORD) -> commit(p, c, cursor)
	:: else
	fi;
	d_step { assert(owner[c] == p); STORE(p, c, RECORD(cursor)); record[c * ROOM + cursor] = number };
	if
	:: !MUTANT(COMMIT_BEFORE_RECORD) -> commit(p, c, cursor)
	:: else
	fi;
	d_step {
		if
		:: !MUTANT(PRODUCED_BEFORE_COMMIT) -> produced[p] = produced[p] + 1
		:: else
		fi;
		cursor = cursor + 1
	}
}

proctype producer(byte p) {
	byte number = 1, chunk = NOBODY, cursor, i, word, victim, at_freed;

	{
	do
	:: number <= RECORDS(p) && !disabled ->
		if
		:: chunk == NOBODY || cursor == ROOM -> claim(p, chunk)
		:: else
		fi;
		if
		:: chunk != NOBODY -> put(p, chunk)
		:: chunk == NOBODY && MUTANT(PRODUCED_BEFORE_DISCARDED) ->
			produced[p] = produced[p] + 1;
			discarded[p] = discarded[p] + 1
		:: chunk == NOBODY && !MUTANT(PRODUCED_BEFORE_DISCARDED) ->
			discarded[p] = discarded[p] + 1;
			produced[p] = produced[p] + 1
		fi;
		number = number + 1
	:: else -> break
	od;
	retire(p, chunk);
	d_step { ended = ended | (1 << p); number = 0 }
	} unless { d_step { IS_CRASHED(p) -> number = 0; chunk = 0; cursor = 0; i = 0; word = 0; victim = 0; at_freed = 0 } }
}

/* Whoever may be killed is, at any time or never. */
proctype killer() {
end:	do
	:: d_step { crash_producers && !(crashed & 1) && !(ended & 1) -> crashed = crashed | 1 }
	:: d_step { crash_producers && !(crashed & 2) && !(ended & 2) -> crashed = crashed | 2 }
	:: d_step { crash_consumer && !(crashed & 4) && !(ended & 4) -> crashed = crashed | 4 }
	od
}

#define QUIET ((ended | crashed) % 4 == 3)

/* --- the consumer --- */

/* find_candidates, then each of them by lane and number. */
inline scan(final, recovering) {
	i = 0;
	do
	:: i < CHUNKS ->
		if
		:: d_step {
			owner_lane[i] && (state[i] == FULL || (state[i] == OWNED && final && !MUTANT(FINISH_WITHOUT_OWNED)) ||
					  (state[i] == READING && recovering)) ->
			if
			:: !MUTANT(TAKE_RELAXED) -> ACQUIRE_STATE(CONSUMER, i) /* D */
			:: else
			fi;
			lane[i] = owner_lane[i];
			is_full[i] = (state[i] == FULL) };
			/* Where producers reclaim it may be the next owner's by now: take() looks again. */
			d_step {
				if
				:: !overwrite -> LOAD(CONSUMER, i, HEADER)
				:: else
				fi;
				turn[i] = seq[i]
			}
		:: else -> lane[i] = 0
		fi;
		i = i + 1
	:: else -> break
	od
}

inline choose() {
	d_step {
		i = 0;
		if
		:: !lane[0] || (lane[1] && (lane[1] < lane[0] || (lane[1] == lane[0] && turn[1] < turn[0]))) -> i = 1
		:: else
		fi
	}
}

inline let_go(c) {
	d_step { RELAX_CONTENT(c); content[c] = 0 };
	d_step {
		if
		:: MUTANT(FREE_RELAXED) -> RELAX_STATE(c)
		:: else -> RELEASE_STATE(CONSUMER, c) /* E */
		fi;
		SET(c, FREE, 0)
	};
	took = 1
}

inline copy(c) {
	d_step { ACQUIRE_CONTENT(CONSUMER, c); have = content[c] }; /* B */
	d_step {
		k = 0;
		do
		:: k < have -> LOAD(CONSUMER, c, RECORD(k)); batch[k] = record[c * ROOM + k]; k = k + 1
		:: else -> break
		od;
		k = 0
	}
}

/*
 * pem_chunk__copy_owned: of a chunk that its owner may retire, and another reclaim, meanwhile. Taken if it was the owner's and
 * of one time before and after. (Plain accesses that a verified copy may race with: not checked by 6.)
 */
inline copy_unheld(c) {
	when = begin[c];
	taken = (state[c] == OWNED && owner_lane[c] == lane[c]) || MUTANT(COPY_UNVERIFIED);
	if
	:: taken ->
		d_step { ACQUIRE_CONTENT(CONSUMER, c); have = content[c] }; /* B */
		k = 0;
		do
		:: k < have -> batch[k] = record[c * ROOM + k]; k = k + 1
		:: else -> break
		od;
		k = 0;
		taken = begin[c] == when || MUTANT(COPY_UNCHECKED); /* I */
		taken = taken && (((state[c] == OWNED || state[c] == FULL) && owner_lane[c] == lane[c]) || MUTANT(COPY_UNCHECKED))
	:: else
	fi;
	when = 0;
	if
	:: !taken -> d_step { have = 0; batch[0] = 0; batch[1] = 0; is_full[c] = 1 }
	:: else
	fi
}

/* What becomes of the batch: into the trace, in its order. */
inline write_batch(l) {
	d_step {
		k = 0;
		do
		:: k < have ->
			assert(batch[k] > last[l - 1]);
			last[l - 1] = batch[k];
			delivered[l - 1] = delivered[l - 1] + 1;
			batch[k] = 0;
			k = k + 1
		:: else -> break
		od;
		k = 0;
		have = 0
	}
}

/* taken: 1, or 0: a producer of an overwrite pool was quicker. */
inline swap_in(c, taken) {
	if
	:: d_step { (state[c] == FULL && owner_lane[c] == lane[c]) || MUTANT(TAKE_WITHOUT_SWAP) ->
		if
		:: !MUTANT(TAKE_RELAXED) -> ACQUIRE_STATE(CONSUMER, c)
		:: else
		fi;
		SET(c, READING, lane[c]);
		taken = 1 } /* D */
	:: else
	fi
}

inline take(c) {
	taken = 0;
	if
	:: !is_full[c] && !overwrite -> copy(c); taken = 1
	:: !is_full[c] && overwrite -> copy_unheld(c)
	:: else
	fi;
	if
	:: is_full[c] ->
		swap_in(c, taken);
		if
		:: taken && overwrite && seq[c] != turn[c] ->
			d_step { RELEASE_STATE(CONSUMER, c); SET(c, FULL, lane[c]); taken = 0 }
		:: taken && (!overwrite || seq[c] == turn[c]) ->
			if
			:: MUTANT(FREE_BEFORE_COPY) -> let_go(c); copy(c)
			:: else -> copy(c); let_go(c)
			fi
		:: else
		fi
	:: else
	fi;
	if
	:: taken -> next[lane[c] - 1] = turn[c] + 1; write_batch(lane[c])
	:: else
	fi;
	taken = 0
}

inline drain(final, recovering) {
	scan(final, recovering);
	do
	:: lane[0] || lane[1] ->
		choose();
		if
		:: !MUTANT(WITHOUT_TURN_NUMBER) && turn[i] < next[lane[i] - 1] -> skip
		:: !final && !MUTANT(TAKE_OUT_OF_TURN) && turn[i] > next[lane[i] - 1] -> skip
		:: else -> take(i)
		fi;
		d_step { lane[i] = 0; is_full[i] = 0; turn[i] = 0 }
	:: else -> break
	od;
	if
	:: took && !MUTANT(FREED_UNSAID) -> freed = freed + 1
	:: else
	fi;
	took = 0;
	i = 0
}

/* sum_cells */
inline sum() {
	saw_produced[0] = produced[0];
	saw_discarded[0] = discarded[0];
	saw_produced[1] = produced[1];
	saw_discarded[1] = discarded[1]
}

/*
 * pem_session__account. What is left of produced was overwritten, or is on its way to be counted so: a chunk found, but not begun
 * yet, in a pool that overwrites. Of an event under way when the session lets go, or its thread dies, the record may be
 * there and the count not yet.
 */
inline account() {
	d_step {
		k = 0;
		i = 0;
		do
		:: i < CHUNKS ->
			if
			:: overwrite && state[i] == OWNED && !owner_lane[i] && !MUTANT(FORGET_HALF_RECLAIMED) -> k = k + count[i]
			:: else
			fi;
			i = i + 1
		:: else -> break
		od;
		i = 0;
		assert(saw_produced[0] + saw_produced[1] <=
		       delivered[0] + delivered[1] + saw_discarded[0] + saw_discarded[1] + overwritten[0] + overwritten[1] + k);
		/* What was taken from an owner's chunk may be counted once more when that is reclaimed: the least of both is meant. */
		assert(delivered[0] + saw_discarded[0] + (disabled -> 0 : overwritten[0]) <= saw_produced[0] + (disabled || IS_CRASHED(0)));
		assert(delivered[1] + saw_discarded[1] + (disabled -> 0 : overwritten[1]) <= saw_produced[1] + (disabled || IS_CRASHED(1)));
		k = 0
	}
}

#define KEPT(c) (state[c] == FREE || (state[c] == OWNED && owner[c] != NOBODY && IS_CRASHED(owner[c])))

/* Nothing is under way any more. */
inline check_chunks() {
	d_step {
		assert(KEPT(0) && KEPT(1))
	}
}

/* pem_producer__copy, of full chunks: they are held, copied and put back. Owned ones as when the session lets go. */
inline snapshot() {
	snapshots = snapshots - 1;
	scan(0, 0);
	do
	:: lane[0] || lane[1] ->
		choose();
		taken = 0;
		swap_in(i, taken);
		if
		:: taken ->
			copy(i);
			d_step { have = 0; batch[0] = 0; batch[1] = 0 };
			d_step {
				if
				:: MUTANT(SNAPSHOT_RELAXED) -> RELAX_STATE(i)
				:: else -> RELEASE_STATE(CONSUMER, i) /* H */
				fi;
				SET(i, FULL, lane[i])
			}
		:: else
		fi;
		taken = 0;
		d_step { lane[i] = 0; is_full[i] = 0; turn[i] = 0 }
	:: else -> break
	od;
	i = 0
}

proctype consumer() {
	byte i, k, have, took, taken, when, lane[CHUNKS], turn[CHUNKS], batch[ROOM], next[2], saw_produced[2], saw_discarded[2];
	bit is_full[CHUNKS];

	{
	do
	:: !QUIET && !overwrite -> drain(0, 0)
	:: !QUIET && overwrite && snapshots -> snapshot()
	:: finish_early && !QUIET -> disabled = 1; break
	:: QUIET -> break
	od;
	if
	:: !overwrite && !disabled -> drain(0, 0)
	:: else
	fi;
	assert(!was_full || full_at != freed || crashed || disabled || (overwrite && !MUTANT(FULL_FOR_EVER)));
	if
	:: MUTANT(SUM_AFTER_DRAIN) -> drain(1, 0); sum()
	:: else -> sum(); drain(1, 0)
	fi;
	account();
	if
	:: !disabled -> check_chunks()
	:: else
	fi;
	ended = ended | 4
	} unless {
		d_step {
			IS_CRASHED(CONSUMER) ->
			i = 0; k = 0; have = 0; took = 0; taken = 0; when = 0;
			lane[0] = 0; lane[1] = 0; turn[0] = 0; turn[1] = 0; batch[0] = 0; batch[1] = 0;
			next[0] = 0; next[1] = 0; is_full[0] = 0; is_full[1] = 0;
			saw_produced[0] = 0; saw_produced[1] = 0; saw_discarded[0] = 0; saw_discarded[1] = 0
		}
	}
}

/* skip_written: a chunk begun before its lane's last record in the trace is in it already. */
inline skip_written() {
	d_step {
		k = 0;
		do
		:: k < CHUNKS ->
			if
			:: state[k] != FREE && owner_lane[k] && seq[k] >= next[owner_lane[k] - 1] &&
			   (begin[k] / 2 < last[owner_lane[k] - 1] ||
			    (begin[k] / 2 == last[owner_lane[k] - 1] && !MUTANT(RECOVER_BY_CLOCK))) ->
				next[owner_lane[k] - 1] = seq[k] + 1
			:: else
			fi;
			k = k + 1
		:: else -> break
		od;
		k = 0
	}
}

/* recover.c, once the programs are gone too: what is missing then counts as discarded, so only 1 can be wrong. */
proctype recoverer() {
	byte i, k, have, took, taken, when, lane[CHUNKS], turn[CHUNKS], batch[ROOM], next[2];
	bit is_full[CHUNKS];

end:	IS_CRASHED(CONSUMER) && QUIET;
	skip_written();
	drain(1, 1);
	d_step {
		assert(delivered[0] + discarded[0] <= produced[0] + IS_CRASHED(0));
		assert(delivered[1] + discarded[1] <= produced[1] + IS_CRASHED(1))
	}
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
			overwrite = option("OVERWRITE");
			crash_producers = option("CRASH_PRODUCERS");
			crash_consumer = option("CRASH_CONSUMER");
			finish_early = option("FINISH_EARLY");
			now.snapshots = option("SNAPSHOTS");
			mutant = option("MUTANT");
		};
		owner[0] = NOBODY;
		owner[1] = NOBODY
	};
	atomic {
		run producer(0);
		run producer(1);
		run consumer();
		run recoverer();
		run killer()
	}
}
