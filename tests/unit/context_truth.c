/* SPDX-License-Identifier: MIT */
/*
 * context_truth.c - a simulated machine of known truth: a pass recovers it exactly, and where
 * records are lost, all that it claims is true
 *
 * Threads run on CPUs, call the kernel, block, are woken, hold locks, send messages and allocate,
 * by chance. Each record has a clock of its own, so a record's clock names what it began. The truth
 * is kept beside the records: when what began at a clock ended, and what each thread did when.
 */
#include "context_fixture.h"

#include <stdbool.h>

#define CPUS 3u
#define THREADS 7u
#define STEPS 4000u
#define STREAMS (CPUS + THREADS)
#define ROUNDS 60u
#define CHANNELS 2u
#define PLACES 5u

struct kept {
	uint64_t clock;
	uint32_t id, bytes;
	uint8_t body[32];
};

struct truth_span {
	uint32_t state, waker;
	uint64_t begin, end, woken;
};

static struct kept records[STREAMS][STEPS * 2];
static size_t record_count[STREAMS];
/* By a begin's clock: the clock of its end, 0: none. By a receive's or free's: its send or alloc.
 */
static uint64_t end_of[STEPS * 4], begin_of[STEPS * 4];
static size_t pairs, messages, frees, spans_known, path_parts;

static struct sim_thread {
	uint32_t state, cpu, waker;
	uint64_t since, woken, call, lock;
	bool is_first; /* nothing told its state yet */
	struct truth_span spans[STEPS * 2];
	size_t span_count;
} threads[THREADS];
static int on_cpu[CPUS]; /* thread, or -1 */
static uint64_t channel[CHANNELS][STEPS * 2];
static size_t sent[CHANNELS], received[CHANNELS];
static uint64_t block_at[2][PLACES];
static uint64_t now;

static uint32_t tid_of(size_t thread)
{
	return 100 + (uint32_t)thread;
}

static uint32_t pid_of(size_t thread)
{
	return thread < 4 ? 50 : 60;
}

static unsigned seed, random_state;

static unsigned chance(unsigned n)
{
	random_state = random_state * 1103515245u + 12345u;
	return (random_state >> 16) % n;
}

static void raise_event(size_t stream, uint32_t id, const void *body, uint32_t bytes)
{
	struct kept *r = &records[stream][record_count[stream]++];

	assert(record_count[stream] < STEPS * 2);
	*r = (struct kept){.clock = T(++now), .id = id, .bytes = bytes};
	memcpy(r->body, body, bytes);
}

static void raise_pair(size_t stream, uint32_t id, uint32_t number, uint64_t place)
{
	uint8_t body[16] = {0};

	memcpy(body, &number, sizeof(number));
	memcpy(body + 8, &place, sizeof(place));
	raise_event(stream, id, body, sizeof(body));
}

static void become(size_t i, uint32_t state)
{
	struct sim_thread *t = &threads[i];

	/* A thread that was runnable at first is not known to be. */
	if (!t->is_first) {
		t->spans[t->span_count++] =
			(struct truth_span){t->state, t->waker, t->since, now, t->woken};
		spans_known++;
	}
	t->is_first = false;
	t->state = state;
	t->since = now;
	if (state != PEM_THREAD_BLOCKED)
		t->waker = 0;
}

static int some(uint32_t state)
{
	size_t i, first = chance(THREADS);

	for (i = 0; i < THREADS; i++)
		if (threads[(first + i) % THREADS].state == state)
			return (int)((first + i) % THREADS);
	return -1;
}

static void switch_cpu(size_t cpu, uint32_t state)
{
	int from = on_cpu[cpu], to = some(PEM_THREAD_RUNNABLE);
	uint32_t body[4] = {0};

	if (from >= 0) {
		body[0] = tid_of((size_t)from);
		body[1] = state;
	}
	if (to >= 0) {
		body[2] = pid_of((size_t)to);
		body[3] = tid_of((size_t)to);
	}
	if (from < 0 && to < 0)
		return;
	raise_event(cpu, EVENT_LEAVE, body, sizeof(body));
	if (from >= 0)
		become((size_t)from, state ? PEM_THREAD_BLOCKED : PEM_THREAD_RUNNABLE);
	if (to >= 0)
		become((size_t)to, PEM_THREAD_RUNNING);
	on_cpu[cpu] = to;
}

static void wake(size_t cpu)
{
	int sleeper = some(PEM_THREAD_BLOCKED);

	if (sleeper < 0)
		return;
	raise_pair(cpu, EVENT_WAKING, tid_of((size_t)sleeper), 0);
	threads[sleeper].waker = on_cpu[cpu] >= 0 ? tid_of((size_t)on_cpu[cpu]) : 0;
	threads[sleeper].woken = now;
	raise_pair(cpu, EVENT_RUNNABLE, tid_of((size_t)sleeper), 0);
	become((size_t)sleeper, PEM_THREAD_RUNNABLE);
}

/* Begin what is not open, or end it. */
static void toggle(size_t stream, uint64_t *open, uint32_t begin, uint32_t end)
{
	raise_pair(stream, *open ? end : begin, 0, 0x10);
	if (*open) {
		end_of[*open] = now;
		pairs++;
		*open = 0;
	} else {
		*open = now;
	}
}

static void talk(size_t stream)
{
	size_t c = chance(CHANNELS);

	if (chance(2) && received[c] < sent[c]) {
		raise_pair(stream, EVENT_RECEIVE, (uint32_t)c, 0);
		begin_of[now] = channel[c][received[c]++];
		messages++;
		return;
	}
	raise_pair(stream, EVENT_SEND, (uint32_t)c, 0);
	channel[c][sent[c]++] = now;
}

static void allocate(size_t stream, size_t process)
{
	size_t place = chance(PLACES);
	uint64_t *at = &block_at[process][place];

	raise_pair(stream, *at ? EVENT_FREE : EVENT_ALLOC, 64, 0x1000 * (place + 1));
	if (*at) {
		begin_of[now] = *at;
		frees++;
		*at = 0;
	} else {
		*at = now;
	}
}

static void act(size_t cpu)
{
	size_t i = (size_t)on_cpu[cpu], lane = CPUS + i;

	switch (chance(9)) {
	case 0:
	case 1:
		toggle(cpu, &threads[i].call, EVENT_CALL, EVENT_RETURN);
		break;
	case 2:
		toggle(lane, &threads[i].lock, EVENT_LOCK, EVENT_UNLOCK);
		break;
	case 3:
		talk(lane);
		break;
	case 4:
		allocate(lane, pid_of(i) == 60);
		break;
	case 5:
		wake(cpu);
		break;
	case 6:
		switch_cpu(cpu, 0);
		break;
	default:
		if (threads[i].call)
			switch_cpu(cpu, 1);
	}
}

static void simulate(void)
{
	size_t i, cpu;

	random_state = seed;
	memset(record_count, 0, sizeof(record_count));
	memset(end_of, 0, sizeof(end_of));
	memset(begin_of, 0, sizeof(begin_of));
	memset(threads, 0, sizeof(threads));
	memset(sent, 0, sizeof(sent));
	memset(received, 0, sizeof(received));
	memset(block_at, 0, sizeof(block_at));
	memset(on_cpu, -1, sizeof(on_cpu));
	now = pairs = messages = frees = spans_known = path_parts = 0;
	for (i = 0; i < THREADS; i++) {
		threads[i].state = PEM_THREAD_RUNNABLE;
		threads[i].is_first = true;
	}
	for (i = 0; i < STEPS && now < STEPS * 2 - 8; i++) {
		cpu = chance(CPUS);
		if (on_cpu[cpu] >= 0)
			act(cpu);
		else if (chance(2))
			switch_cpu(cpu, 0);
		else
			wake(cpu);
	}
	for (i = 0; i < THREADS; i++)
		if (!threads[i].is_first)
			become(i, threads[i].state);
}

/* --- the trace --- */

static void write_stream(size_t stream, unsigned losses_in_1000)
{
	bool is_kernel = stream < CPUS;
	size_t i = 0, n, thread = stream - CPUS;
	char name[32];

	snprintf(name, sizeof(name), is_kernel ? "k_%zu" : "u_%zu_0", stream);
	packet_new(&packet, is_kernel ? PEM_PACKET_KERNEL : PEM_PACKET_USER,
		   is_kernel ? 0 : pid_of(thread), is_kernel ? 0 : tid_of(thread),
		   is_kernel ? (uint32_t)stream : PEM_NO_CPU, T(0));
	for (;;) {
		for (n = chance(30) + 1; n && i < record_count[stream]; n--, i++)
			packet_add(&packet, records[stream][i].clock, records[stream][i].id,
				   records[stream][i].body, records[stream][i].bytes);
		packet_write(&packet, &fixture, name);
		if (i == record_count[stream])
			return;
		packet_next(&packet, packet.header.timestamp_end);
		if (chance(1000) >= losses_in_1000)
			continue;
		for (n = chance(8) + 1; n && i < record_count[stream]; n--, i++)
			packet.header.events_discarded++;
	}
}

/* --- the critical path, by the method that pem does not use: from its end backwards --- */

/* The thread's span that ends at a time, or contains it. NULL: it is not known. */
static const struct truth_span *span_before(size_t thread, uint64_t at)
{
	const struct sim_thread *t = &threads[thread];
	size_t i;

	for (i = 0; i < t->span_count; i++)
		if (t->spans[i].begin < at && at <= t->spans[i].end)
			return &t->spans[i];
	return NULL;
}

/* When the path to a thread at a time begins. */
static uint64_t path_start(size_t thread, uint64_t at)
{
	const struct truth_span *span;
	uint64_t start;

	while ((span = span_before(thread, at)) != NULL) {
		if (span->state == PEM_THREAD_BLOCKED && at == span->end && span->waker) {
			start = path_start(span->waker - 100, span->woken);
			if (start <= span->begin)
				return start;
		}
		at = span->begin;
	}
	return at;
}

/*
 * Go one part back from a time, which becomes the part's begin, and the thread that of the part
 * before. Returns the part's state; UNKNOWN: the path begins here.
 */
static uint32_t step_back(size_t *thread, uint64_t *at)
{
	const struct truth_span *span = span_before(*thread, *at);

	if (!span)
		return PEM_THREAD_UNKNOWN;
	if (span->state == PEM_THREAD_BLOCKED && *at == span->end && span->waker &&
	    path_start(span->waker - 100, span->woken) <= span->begin) {
		*thread = span->waker - 100;
		*at = span->woken;
		return PEM_THREAD_RUNNABLE;
	}
	*at = span->begin;
	return span->state;
}

static bool is_one(uint32_t state, size_t a, size_t b, uint32_t state_of_b)
{
	return state == state_of_b && a == b && state != PEM_THREAD_BLOCKED;
}

/* --- what the pass says --- */

/* Parts of one thread and state are one, whether a wake splits them or not. */
static const struct pem_path_part *part_before(const struct pem_path_part *part)
{
	const struct pem_path_part *before = part->before;

	while (before && is_one(part->state, part->thread->tid, before->thread->tid, before->state))
		before = before->before;
	return before;
}

static void check_path(size_t thread)
{
	const struct pem_pass_thread *t = NULL;
	const struct pem_path_part *part, *before;
	size_t i, at_thread = thread, of;
	uint64_t at = now, end;
	uint32_t state = PEM_THREAD_UNKNOWN;

	for (i = 0; i < pem_pass__thread_count(pass); i++)
		if (pem_pass__thread(pass, i)->tid == tid_of(thread))
			t = pem_pass__thread(pass, i);
	for (part = pem_pass__path(pass, t); part; part = before) {
		before = part_before(part);
		end = at;
		of = at_thread;
		state = step_back(&at_thread, &at);
		while (state == PEM_THREAD_RUNNING || state == PEM_THREAD_RUNNABLE) {
			size_t next_thread = at_thread;
			uint64_t next = at;

			if (!is_one(state, of, at_thread, step_back(&next_thread, &next)))
				break;
			at_thread = next_thread;
			at = next;
		}
		if (part->state != state || part->thread->tid != tid_of(of) || part->end_ns != end)
			fail_msg("seed %u, path of %u: state %d of %u to %d, not %d of %u to %d",
				 seed, tid_of(thread), (int)part->state, part->thread->tid,
				 (int)part->end_ns, (int)state, tid_of(of), (int)end);
		path_parts++;
	}
	assert_int_equal(step_back(&at_thread, &at), PEM_THREAD_UNKNOWN);
}

static size_t claimed_pairs, claimed_messages, claimed_frees, claimed_spans, claimed_parts;

static void check_span(const struct pem_span *span)
{
	const struct sim_thread *t = &threads[span->thread->tid - 100];
	size_t i;

	for (i = 0; i < t->span_count; i++)
		if (t->spans[i].begin <= span->begin_ns && span->end_ns <= t->spans[i].end &&
		    t->spans[i].state == span->state)
			break;
	if (i == t->span_count)
		fail_msg("thread %u was not in state %d from %d to %d", span->thread->tid,
			 (int)span->state, (int)span->begin_ns, (int)span->end_ns);
	if (span->waker)
		assert_int_equal(span->waker->tid, t->spans[i].waker);
	claimed_spans += t->spans[i].begin == span->begin_ns && t->spans[i].end == span->end_ns;
}

/* A part is of what the thread did, as far as that is said. */
static void check_part(const struct pem_path_part *part)
{
	const struct sim_thread *t = &threads[part->thread->tid - 100];
	const struct pem_path_part *before = part->before;
	bool is_true = part->state == PEM_THREAD_UNKNOWN, is_hop = false;
	const struct truth_span *span;
	size_t i;

	for (i = 0; i < t->span_count; i++) {
		span = &t->spans[i];
		is_true = is_true || (span->begin <= part->begin_ns && part->end_ns <= span->end &&
				      span->state == part->state);
		/* From its wake on it waits for a CPU. */
		is_true = is_true ||
			  (part->state == PEM_THREAD_RUNNABLE &&
			   span->state == PEM_THREAD_BLOCKED && span->woken == part->begin_ns);
		is_hop = is_hop ||
			 (before && span->state == PEM_THREAD_BLOCKED &&
			  span->woken == before->end_ns && span->waker == before->thread->tid);
	}
	if (!is_true || (before && before->thread != part->thread && !is_hop) ||
	    (before && before->end_ns != part->begin_ns))
		fail_msg("seed %u: the path has state %d of thread %u from %d to %d", seed,
			 (int)part->state, part->thread->tid, (int)part->begin_ns,
			 (int)part->end_ns);
}

static void check_paths(bool is_whole)
{
	const struct pem_path_part *part;
	size_t i;

	for (i = 0; is_whole && i < THREADS; i++)
		check_path(i);
	for (i = 0; i < pem_pass__thread_count(pass); i++)
		for (part = pem_pass__path(pass, pem_pass__thread(pass, i)); part;
		     part = part->before) {
			check_part(part);
			claimed_parts += part->state != PEM_THREAD_UNKNOWN;
		}
}

static void check_end(const struct pem_ended *ended)
{
	uint64_t begin = ended->interval->begin.time_ns;

	if (ended->outcome == PEM_INTERVAL_ENDED) {
		if (end_of[begin] != ended->end_ns)
			fail_msg("what began at %d ended at %d, not at %d", (int)begin,
				 (int)end_of[begin], (int)ended->end_ns);
		claimed_pairs++;
	} else if (ended->outcome == PEM_INTERVAL_LOST) {
		/* until then it was open */
		assert_true(!end_of[begin] || end_of[begin] >= ended->end_ns);
	} else {
		assert_int_equal(ended->outcome, PEM_INTERVAL_OPEN);
		if (end_of[begin])
			fail_msg("seed %u: %s of thread %u, from %d, is open at the end, and "
				 "ended at %d",
				 seed, ended->interval->begin.event->name,
				 ended->interval->thread->tid, (int)begin, (int)end_of[begin]);
	}
}

static void check_record(void)
{
	const struct pem_interval *interval;

	for (interval = around.interval; interval; interval = interval->outer)
		if (end_of[interval->begin.time_ns] &&
		    end_of[interval->begin.time_ns] <= record.time_ns)
			fail_msg("seed %u, at %d: %s of thread %u, from %d, is open, and ended at "
				 "%d",
				 seed, (int)record.time_ns, interval->begin.event->name,
				 interval->thread->tid, (int)interval->begin.time_ns,
				 (int)end_of[interval->begin.time_ns]);
	if (around.thread && record.source == PEM_PACKET_USER)
		assert_int_equal(around.thread->tid, record.tid);
	if (around.partner) {
		assert_int_equal(around.partner->time_ns, begin_of[record.time_ns]);
		claimed_messages++;
	}
	if (record.event->meaning == PEM_MEANS_RELEASE && around.block) {
		assert_int_equal(around.block->begin_ns, begin_of[record.time_ns]);
		claimed_frees++;
	}
}

static void walk(unsigned losses_in_1000)
{
	struct pem_error error = {""};
	uint64_t begun = 0, ended = 0;
	size_t i;
	int rc;

	fixture_new(&fixture);
	context_model_of(&fixture, "machine_cpu_ns=1\n");
	for (i = 0; i < STREAMS; i++)
		write_stream(i, losses_in_1000);
	start_pass();
	claimed_pairs = claimed_messages = claimed_frees = claimed_spans = claimed_parts = 0;
	do {
		rc = pem_pass__next(pass, &record, &around, &error);
		if (rc < 0)
			fail_msg("%s", error.text);
		begun += around.begun != NULL;
		ended += around.ended_count;
		for (i = 0; i < around.span_count; i++)
			check_span(&around.spans[i]);
		for (i = 0; i < around.ended_count; i++)
			check_end(&around.ended[i]);
		if (rc)
			check_record();
	} while (rc);
	assert_int_equal(begun, ended);
	check_paths(!losses_in_1000);
	pem_pass__free(pass);
	pem_trace__close(trace);
	fixture_free(&fixture);
}

static void the_truth_is_recovered_exactly(void **state)
{
	unsigned round;

	(void)state;
	for (round = 1; round <= ROUNDS / 4; round++) {
		seed = round;
		simulate();
		walk(0);
		assert_true(pairs > 100 && messages > 20 && frees > 20 && spans_known > 200);
		assert_true(path_parts > 200);
		assert_int_equal(claimed_pairs, pairs);
		assert_int_equal(claimed_messages, messages);
		assert_int_equal(claimed_frees, frees);
		assert_int_equal(claimed_spans, spans_known);
	}
}

static void what_is_claimed_beside_losses_is_true(void **state)
{
	size_t all_pairs = 0, all_spans = 0, all_frees = 0, all_parts = 0;
	unsigned round;

	(void)state;
	for (round = 1; round <= ROUNDS; round++) {
		seed = round * 7919;
		simulate();
		walk(round % 3 ? 30 : 300);
		all_pairs += claimed_pairs;
		all_spans += claimed_spans;
		all_frees += claimed_frees;
		all_parts += claimed_parts;
	}
	/* A pass that claimed nothing would be right, too. */
	assert_true(all_pairs > 1000 && all_spans > 1000 && all_frees > 100);
	assert_true(all_parts > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_truth_is_recovered_exactly),
		cmocka_unit_test(what_is_claimed_beside_losses_is_true),
	};

	(void)tear_down; /* each walk has a trace of its own */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
