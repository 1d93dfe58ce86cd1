// SPDX-License-Identifier: MIT
/*
 * ring_test.c - the ring inside the kernel: what pem.ko's probes call, tried in every context, in a
 * module of its own
 *
 * Reading <debugfs>/pem_ring_test runs the tests on the CPU that reads, and prints TAP. What is
 * compiled here is what pem.ko compiles: pem/ring.h, pem_kmod.h and record.c; generated probes and
 * user space have no part in it.
 */
#include "ring_test.h"

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

/* --- what record.c wants of others --- */

const unsigned int pem_switch_index = SWITCH;
const unsigned int pem_switch_bytes = SWITCH_BYTES;
const uint32_t pem_switch_id = 0x1000;

void pem_switch_fill(uint8_t *record, uint32_t previous_tid, uint32_t pid, uint32_t tid)
{
	((u32 *)record)[2] = pid;
	((u32 *)record)[3] = tid;
}

static atomic_t filled;

void pem_kmod_filled(struct pem_kmod_cpu *cpu)
{
	atomic_inc(&filled);
}

/* --- a trial --- */

void pem_trial__expect(struct trial *t, const char *what, u64 got, u64 wanted)
{
	if (got == wanted || t->wrong)
		return;
	t->wrong = what;
	t->got = got;
	t->wanted = wanted;
}

#define EXPECT(t, got, wanted) pem_trial__expect(t, #got, got, wanted)

static void free_trial(struct trial *t)
{
	if (t->data.cpus)
		free_percpu(t->data.cpus);
	vfree(t->memory);
	kvfree(t);
}

/* On this CPU, which stays ours. NULL: no memory. */
static struct trial *new_trial(u32 flags, u32 chunk_bytes, u32 chunk_count)
{
	struct trial *t = kvzalloc(sizeof(*t) + EVENTS * sizeof(t->data.rule[0]), GFP_KERNEL);
	unsigned int cpu, i;

	if (!t)
		return NULL;
	t->layout = (struct pem_pool_header){.flags = flags,
					     .chunk_bytes = chunk_bytes,
					     .chunk_count = chunk_count,
					     .lane_count = LANES,
					     .event_capacity = EVENTS};
	pem_pool__layout(&t->layout);
	t->memory = vzalloc(t->layout.total_bytes);
	t->data.cpus = alloc_percpu(struct pem_kmod_cpu);
	if (!t->memory || !t->data.cpus) {
		free_trial(t);
		return NULL;
	}
	pem_pool__point(t->memory, &t->layout, &t->ring);
	for_each_possible_cpu(cpu)
		per_cpu_ptr(t->data.cpus, cpu)->depth = PEM_KMOD_DEPTH;
	t->cpu = raw_cpu_ptr(t->data.cpus);
	t->cpu->ring = t->ring;
	t->cpu->logged_thread = PEM_KRING_NO_THREAD;
	t->cpu->depth = 0;
	for (i = 0; i < PEM_KMOD_DEPTH; i++) {
		t->cpu->writers[i].lane_index = 1 + i;
		t->cpu->writers[i].cells = &t->ring.cells[(1 + i) * EVENTS];
	}
	t->data.spare = &t->ring;
	t->rule.action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 0);
	t->rule.cpu = PEM_NO_CPU;
	RCU_INIT_POINTER(t->data.rule[MARK], &t->rule);
	return t;
}

/* --- events: after the header their length, their number, and bytes that follow from that --- */

#define FIXED_BYTES 16u

static void fill(u8 *record, u32 number, u32 from, u32 to)
{
	for (; from < to; from++)
		record[from] = (u8)(number + from);
}

/* By anybody, at any time. */
static void count(u64 *of)
{
	__atomic_fetch_add(of, 1, __ATOMIC_RELAXED);
}

void pem_trial__raise(struct trial *t, enum level level, u32 bytes,
		      void (*interrupt)(struct trial *t))
{
	u32 half = FIXED_BYTES + (bytes - FIXED_BYTES) / 2, number;
	struct pem_kevent e;
	u8 *record;

	count(&t->raised);
	count(&t->at[level]);
	if (!pem_begin(&e, &t->data, MARK))
		return;
	if (!pem_enter(&e, MARK)) {
		count(&t->refused);
		return;
	}
	/* Now, so that they grow in a lane: another may have come first, and be over. */
	number = __atomic_fetch_add(&t->number, 1, __ATOMIC_RELAXED);
	record = pem_reserve(&e, bytes);
	if (record)
		fill(record, number, FIXED_BYTES, half);
	if (interrupt)
		interrupt(t);
	if (record) {
		((u32 *)record)[2] = bytes;
		((u32 *)record)[3] = number;
		fill(record, number, half, bytes);
		pem_commit(&e, MARK_ID, bytes);
	}
	pem_end(&e);
}

static void raise_some(struct trial *t, u32 events, u32 bytes)
{
	preempt_disable();
	while (events--)
		pem_trial__raise(t, PROCESS, bytes + events % 40, NULL);
	preempt_enable();
}

/* --- consuming: every byte of every full chunk, a lane's in their order --- */

static void check_mark(struct trial *t, u32 lane, const u8 *record, u32 bytes)
{
	u32 number = ((const u32 *)record)[3], i;

	pem_trial__expect(t, "numbers in a lane grow", t->last_number[lane] < number + 1, true);
	t->last_number[lane] = number + 1;
	for (i = FIXED_BYTES; i < bytes && record[i] == (u8)(number + i); i++)
		;
	pem_trial__expect(t, "the bytes of a record that are as they were written", i, bytes);
	t->marks[lane]++;
	t->late_marks += number >= t->late;
}

static void check_packet(struct trial *t, u32 lane, const struct pem_packet *packet)
{
	u32 end = (u32)(packet->content_size / 8), at = PEM_PACKET_HEADER_BYTES, bytes, records = 0;
	const u8 *base = (const u8 *)packet;
	const struct pem_record_header *header;
	u64 clock = packet->timestamp_begin;

	pem_trial__expect(t, "content is within a chunk", end <= t->ring.chunk_bytes, true);
	for (; at < end && !t->wrong; at = ALIGN(at + bytes, PEM_RECORD_ALIGN), records++) {
		header = (const struct pem_record_header *)(base + at);
		clock += (u32)(header->clock_low - (u32)clock);
		if (!records)
			EXPECT(t, header->event_id, pem_switch_id);
		if (header->event_id == pem_switch_id) {
			bytes = SWITCH_BYTES;
			t->switches[lane]++;
		} else {
			EXPECT(t, header->event_id, MARK_ID);
			bytes = ((const u32 *)header)[2];
			check_mark(t, lane, base + at, min(bytes, end - at));
		}
		pem_trial__expect(t, "a record ends within its packet", at + bytes <= end, true);
	}
	EXPECT(t, records, packet->record_count);
	EXPECT(t, clock, packet->timestamp_end);
}

static const struct pem_packet *packet_at(const struct trial *t, u32 i)
{
	return (const void *)(t->ring.chunks + (size_t)i * t->ring.chunk_bytes);
}

/* A lane's next full chunk, or -1. */
static int next_full(const struct trial *t, u32 lane, u64 *best)
{
	int found = -1;
	u32 i;
	u64 seq;

	for (i = 0; i < t->ring.chunk_count; i++) {
		if (smp_load_acquire(&t->ring.chunk_state[i]) !=
		    PEM_CHUNK_WORD(PEM_CHUNK_FULL, lane))
			continue;
		seq = READ_ONCE(packet_at(t, i)->packet_seq_num);
		if (found < 0 || seq < *best) {
			*best = seq;
			found = i;
		}
	}
	return found;
}

/*
 * Take a chunk, unless a producer reclaims it meanwhile (overwrite) and it is another's now, or a
 * later one.
 */
static bool take(struct trial *t, u32 lane, u32 i, u64 seq)
{
	u32 full = PEM_CHUNK_WORD(PEM_CHUNK_FULL, lane);

	if (cmpxchg(&t->ring.chunk_state[i], full, PEM_CHUNK_WORD(PEM_CHUNK_READING, lane)) != full)
		return false;
	if (packet_at(t, i)->packet_seq_num == seq)
		return true;
	smp_store_release(&t->ring.chunk_state[i], full);
	__atomic_fetch_add(&t->ring.header->freed, 1, __ATOMIC_RELEASE);
	return false;
}

static void consume(struct trial *t)
{
	u32 lane;
	u64 seq;
	int i;

	for (lane = 1; lane < LANES; lane++) {
		while ((i = next_full(t, lane, &seq)) >= 0) {
			if (!take(t, lane, i, seq))
				continue;
			if (!t->ring.overwrite)
				EXPECT(t, seq, t->next_seq[lane]);
			t->next_seq[lane] = seq + 1;
			check_packet(t, lane, packet_at(t, i));
			pem_ring_give_back(&t->ring, i);
		}
	}
}

/*
 * The law: what was produced was delivered, discarded or overwritten, of each lane; and nothing was
 * produced but what was raised.
 */
static void balance(struct trial *t)
{
	u64 produced = 0, all, lost;
	u32 lane, i;

	for (i = 0; i < PEM_KMOD_DEPTH; i++)
		pem_kmod_retire(t->cpu, &t->cpu->writers[i]);
	consume(t);
	for (lane = 0; lane < LANES; lane++) {
		const struct pem_cell *cells = &t->ring.cells[lane * EVENTS];

		all = cells[MARK].produced + cells[SWITCH].produced;
		lost = t->ring.lanes[lane].discarded + t->ring.lanes[lane].overwritten;
		pem_trial__expect(t, "a lane's records are in balance", all,
				  t->marks[lane] + t->switches[lane] + lost);
		produced += cells[MARK].produced;
	}
	pem_trial__expect(t, "events produced", produced, t->raised);
	EXPECT(t, t->ring.lanes[0].discarded, t->refused);
	EXPECT(t, t->cpu->depth, 0);
}

/* --- tests --- */

#define NESTED 200

static void contexts_nest(struct trial *t)
{
	u32 i;

	for (i = 0; i < NESTED; i++) {
		preempt_disable();
		pem_levels__nest(t);
		preempt_enable();
		cond_resched();
		consume(t);
	}
	pem_levels__settle();
	EXPECT(t, t->at[PROCESS], NESTED);
	pem_trial__expect(t, "there were soft interrupts", t->at[SOFT_INTERRUPT] > NESTED / 2,
			  true);
	pem_trial__expect(t, "each was interrupted", t->at[INTERRUPT] >= t->at[SOFT_INTERRUPT],
			  true);
	/* The fourth is the last that has a writer. */
	pem_trial__expect(t, "what is too deep is refused", t->refused > NESTED / 2, true);
	balance(t);
}

static void interrupts_come_at_any_time(struct trial *t)
{
	u64 interrupts;
	u32 i;

	pem_levels__start_interrupts(t);
	for (i = 0; i < 2000 && !t->wrong; i++) {
		raise_some(t, 25, 16 + i % 300);
		consume(t);
		cond_resched();
		if (i >= 200 && READ_ONCE(t->at[INTERRUPT]) > 100)
			break;
	}
	interrupts = pem_levels__stop_interrupts(t);
	EXPECT(t, t->at[INTERRUPT], interrupts);
	pem_trial__expect(t, "there were interrupts", interrupts > 0, true);
	balance(t);
}

static void a_full_pool_is_counted_and_goes_on(struct trial *t)
{
	u64 discarded;

	raise_some(t, 2000, 32);
	discarded = t->ring.lanes[1].discarded;
	pem_trial__expect(t, "much is discarded", discarded > 1000, true);
	consume(t);
	raise_some(t, 10, 32);
	EXPECT(t, t->ring.lanes[1].discarded, discarded);
	balance(t);
	EXPECT(t, t->last_number[1], 2010);
}

static void an_overwrite_pool_keeps_the_newest(struct trial *t)
{
	raise_some(t, 5000, 32);
	pem_trial__expect(t, "much is overwritten", t->ring.lanes[1].overwritten > 1000, true);
	EXPECT(t, t->ring.lanes[1].discarded, 0);
	balance(t);
	EXPECT(t, t->last_number[1], 5000);
}

/*
 * A snapshot has taken as many of the oldest chunks as a probe looks at: then the next oldest go,
 * and never the newest.
 */
static void the_newest_is_kept_when_many_are_taken(struct trial *t)
{
	u32 count = t->ring.chunk_count, i, first;

	while (t->ring.header->chunk_hint < count + 10 && !t->wrong) {
		raise_some(t, 100, 32);
		cond_resched();
	}
	first = t->ring.header->chunk_hint;
	for (i = 0; i < 4096; i++)
		t->ring.chunk_state[(first + i) % count] = PEM_CHUNK_WORD(PEM_CHUNK_READING, 1);
	t->late = t->number;
	raise_some(t, 1000, 32);
	EXPECT(t, t->ring.lanes[1].discarded, 1);
	for (i = 0; i < 4096; i++)
		t->ring.chunk_state[(first + i) % count] = PEM_CHUNK_WORD(PEM_CHUNK_FULL, 1);
	balance(t);
	EXPECT(t, t->late_marks, 1000 - 1);
}

/*
 * A pool's only free chunk is the last: a probe does not look at all of them at once, but gets
 * there.
 */
static void a_large_pool_is_searched_in_parts(struct trial *t)
{
	u32 last = t->ring.chunk_count - 1, hint, i;

	for (i = 0; i < last; i++)
		t->ring.chunk_state[i] = PEM_CHUNK_WORD(PEM_CHUNK_READING, 1);
	for (i = 0; i < 8 && t->ring.chunk_state[last] == PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0); i++)
		raise_some(t, 1, 32);
	EXPECT(t, t->ring.lanes[1].discarded, last / 4096);
	EXPECT(t, t->ring.cells[EVENTS + MARK].produced, last / 4096 + 1);
	/* Once all were looked at, and until one is freed, nothing is. */
	raise_some(t, 20, 1000);
	hint = t->ring.header->chunk_hint;
	raise_some(t, 20, 1000);
	EXPECT(t, t->ring.header->chunk_hint, hint);
	t->ring.chunk_state[0] = PEM_CHUNK_WORD(PEM_CHUNK_READING, 0);
	pem_ring_give_back(&t->ring, 0);
	for (i = 0; i < 8 && t->ring.chunk_state[0] == PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0); i++)
		raise_some(t, 1, 32);
	pem_trial__expect(t, "the freed chunk is found", t->ring.chunk_state[0],
			  PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 1));
	balance(t);
}

/* The longest record that a chunk has room for, after its switch, and one that is longer. */
static void the_longest_record(struct trial *t)
{
	u32 room = t->ring.chunk_bytes - PEM_PACKET_HEADER_BYTES - SWITCH_BYTES, bytes;

	preempt_disable();
	for (bytes = room - 9; bytes <= room; bytes++)
		pem_trial__raise(t, PROCESS, bytes, NULL);
	EXPECT(t, t->ring.lanes[1].discarded, 0);
	pem_trial__raise(t, PROCESS, room + 1, NULL);
	EXPECT(t, t->ring.lanes[1].discarded, 1);
	pem_trial__raise(t, PROCESS, FIXED_BYTES, NULL);
	preempt_enable();
	balance(t);
	EXPECT(t, t->marks[1], 11);
}

static void records_at_the_edge_of_a_chunk(struct trial *t)
{
	struct pem_writer *w = &t->cpu->writers[0];
	u32 room = t->ring.chunk_bytes - PEM_PACKET_HEADER_BYTES;
	u64 now = pem_clock();
	u32 less;

	for (less = 0; less < 8; less++) {
		pem_ring_start(&t->ring, w, (u32)pem_ring_find(&t->ring), now, 0, 0);
		pem_trial__expect(t, "no room for one more", !pem_ring_reserve(w, now, room + 1),
				  true);
		pem_trial__expect(t, "room for all", !pem_ring_reserve(w, now, room), false);
		pem_trial__expect(t, "not after 2^32 ticks",
				  !pem_ring_reserve(w, now + (1ull << 32), 8), true);
		pem_ring_commit(w, w->cells, now, pem_switch_id, room - less);
		EXPECT(t, w->packet->content_size, 8ull * (t->ring.chunk_bytes - less));
		pem_trial__expect(t, "the writer is at the end", w->cursor == w->end, true);
		pem_trial__expect(t, "no room left", !pem_ring_reserve(w, now, 8), true);
		EXPECT(t, w->packet->packet_seq_num, less);
		pem_ring_retire(&t->ring, w);
		pem_trial__expect(t, "no chunk, no room", !pem_ring_reserve(w, now, 8), true);
	}
	EXPECT(t, pem_ring_find(&t->ring), -1);
}

static const struct {
	const char *name;
	void (*run)(struct trial *t);
	u32 flags, chunk_bytes, chunk_count;
} tests[] = {
	{"records at the edge of a chunk", records_at_the_edge_of_a_chunk, 0, 4096, 8},
	{"the longest record, and one that is longer", the_longest_record, 0, 4096, 16},
	{"a full pool is counted, and goes on when chunks are freed",
	 a_full_pool_is_counted_and_goes_on, 0, 4096, 8},
	{"an overwrite pool keeps the newest", an_overwrite_pool_keeps_the_newest,
	 PEM_POOL_OVERWRITE, 4096, 8},
	{"and when many chunks are taken", the_newest_is_kept_when_many_are_taken,
	 PEM_POOL_OVERWRITE, 1024, 4200},
	{"a large pool is searched in parts", a_large_pool_is_searched_in_parts, 0, 1024, 10000},
	{"process, soft interrupt, interrupt and what interrupts that nest, and the fifth is "
	 "refused",
	 contexts_nest, 0, 4096, 32},
	{"interrupts come at any time", interrupts_come_at_any_time, 0, 4096, 32},
	{"the same in an overwrite pool", interrupts_come_at_any_time, PEM_POOL_OVERWRITE, 4096, 8},
};

static void report(struct seq_file *out, u32 number, const char *name, const struct trial *t)
{
	seq_printf(out, "%s %u - %s\n", t && !t->wrong ? "ok" : "not ok", number, name);
	if (!t)
		seq_puts(out, "# no memory\n");
	else if (t->wrong)
		seq_printf(out, "# %s: %llu, not %llu\n", t->wrong, t->got, t->wanted);
}

static int show(struct seq_file *out, void *unused)
{
	const char *no_nmi;
	struct trial *t;
	u64 nmis = 0;
	u32 i;

	migrate_disable();
	no_nmi = pem_levels__begin();
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		t = new_trial(tests[i].flags, tests[i].chunk_bytes, tests[i].chunk_count);
		if (t)
			tests[i].run(t);
		report(out, i + 1, tests[i].name, t);
		if (t) {
			nmis += t->at[NMI];
			free_trial(t);
		}
		cond_resched();
	}
	pem_levels__end();
	migrate_enable();
	if (no_nmi)
		seq_printf(out, "ok %u - an NMI raises events # SKIP %s\n", i + 1, no_nmi);
	else
		seq_printf(out, "%s %u - an NMI raises events\n", nmis ? "ok" : "not ok", i + 1);
	seq_printf(out, "1..%u\n", i + 1);
	return 0;
}

/* Room for all of it: else it would run again. */
static int open_test(struct inode *inode, struct file *file)
{
	return single_open_size(file, show, NULL, 16384);
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = open_test,
	.read = seq_read,
	.release = single_release,
};

static struct dentry *entry;

static int __init begin(void)
{
	entry = debugfs_create_file("pem_ring_test", 0400, NULL, NULL, &operations);
	return PTR_ERR_OR_ZERO(entry);
}

static void __exit end(void)
{
	debugfs_remove(entry);
}

module_init(begin);
module_exit(end);

MODULE_DESCRIPTION("Test of the ring of Performance and Environment Monitoring");
MODULE_LICENSE("GPL"); /* record.c is */
