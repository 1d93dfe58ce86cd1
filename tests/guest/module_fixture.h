/* SPDX-License-Identifier: MIT */
/*
 * module_fixture.h - a session on /dev/pem, its pools mapped, and every chunk checked that is taken
 *
 * Included by the programs module_*.c, which run where pem.ko is loaded and skip elsewhere. Not
 * here: the plugin that recordings use (libpem/sources/module).
 */
#ifndef MODULE_FIXTURE_H
#define MODULE_FIXTURE_H

#include "event_id.h"

#include <pem/kmod.h>
#include <pem/event.h>
#include <pem/layout.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define CPUS 64
#define LANES_SEEN (CPUS * PEM_KMOD_LANES)

static inline uint32_t id_of(const char *name)
{
	return pem_event_id(name, 1);
}

struct lane_seen {
	uint64_t next_seq;
	uint64_t last_clock;
};

struct mapped {
	void *at;
	uint64_t bytes;
	struct pem_ring ring;
};

/* Called for each record that is taken. */
typedef void (*on_record)(void *arg, unsigned cpu, const struct pem_packet *packet, uint64_t clock,
			  uint32_t id, const uint8_t *record);

struct session {
	int fd;
	/* Of the thread that works for it, if any: */
	pthread_t worker;
	int worker_fd; /* -1: none */
	int is_closing; /* __atomic */
	struct pem_kmod_setup setup;
	struct mapped cpu[CPUS];
	struct lane_seen lane[LANES_SEEN];
	uint64_t taken; /* records */
	on_record seen;
	void *arg;
};

/* Events whose records have one length: what tests ask for. */
#define SWITCH "OS::Sched::Switch"
#define ENTER "OS::Syscall::Enter"
#define EXIT "OS::Syscall::Exit"
#define WAKEUP "OS::Sched::Wakeup"
#define FORK "OS::Process::Fork"
#define TIMER_BEGIN "OS::Hrtimer::Begin"
#define TIMER_END "OS::Hrtimer::End"

static inline struct session *session_open(void)
{
	struct session *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->fd = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC);
	if (s->fd < 0)
		fail_msg("%s: %s", PEM_KMOD_DEVICE, strerror(errno));
	s->worker_fd = -1;
	return s;
}

static inline void run_on(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static inline void on_signal(int number)
{
	(void)number;
}

/* On one CPU, so that its records come in their order. */
static inline void *session_work_on(void *arg)
{
	struct session *s = arg;

	run_on(0);
	while (!__atomic_load_n(&s->is_closing, __ATOMIC_ACQUIRE)) {
		/* it does not run now */
		if (ioctl(s->worker_fd, PEM_KMOD_WORK, 0) && errno == EBUSY)
			usleep(1000);
	}
	return NULL;
}

/* From now on a thread does what the module is to look at, whenever the session runs. */
static inline void session_work(struct session *s)
{
	struct sigaction action = {.sa_handler = on_signal};

	assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
	s->worker_fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
	assert_true(s->worker_fd >= 0);
	assert_int_equal(pthread_create(&s->worker, NULL, session_work_on, s), 0);
}

/* A thread that works is interrupted by a signal, and the last descriptor is its. */
static inline void session_close(struct session *s)
{
	unsigned i;

	for (i = 0; i < CPUS; i++)
		if (s->cpu[i].at)
			munmap(s->cpu[i].at, s->cpu[i].bytes);
	assert_int_equal(close(s->fd), 0);
	if (s->worker_fd >= 0) {
		__atomic_store_n(&s->is_closing, 1, __ATOMIC_RELEASE);
		do {
			pthread_kill(s->worker, SIGUSR2);
			usleep(1000);
		} while (pthread_tryjoin_np(s->worker, NULL));
		close(s->worker_fd);
	}
	free(s);
}

/* The ioctl's answer, or -errno. */
static inline int ask(const struct session *s, unsigned long what, void *arg)
{
	return ioctl(s->fd, what, arg) < 0 ? -errno : 0;
}

static inline void session_setup(struct session *s, uint32_t flags, uint32_t chunk_bytes,
				 uint32_t chunks)
{
	s->setup = (struct pem_kmod_setup){.size = sizeof(s->setup),
					   .flags = flags,
					   .chunk_bytes = chunk_bytes,
					   .chunk_count = chunks};
	assert_int_equal(ask(s, PEM_KMOD_SETUP, &s->setup), 0);
}

static inline struct pem_kmod_event event_of(const char *name, uint32_t flags)
{
	return (struct pem_kmod_event){.size = sizeof(struct pem_kmod_event),
				       .event_id = id_of(name),
				       .action = PEM_ACTION(flags, PEM_NO_FIELD, 0, 0, 1),
				       .cpu = PEM_NO_CPU};
}

static inline void session_event(const struct session *s, const char *name, uint32_t flags)
{
	struct pem_kmod_event event = event_of(name, flags);
	int rc = ask(s, PEM_KMOD_EVENT, &event);

	if (rc)
		fail_msg("%s: %s", name, strerror(-rc));
}

static inline void session_start(const struct session *s)
{
	assert_int_equal(ask(s, PEM_KMOD_START, NULL), 0);
}

/* The CPU's pool, mapped and checked; NULL: it has none. */
static inline struct mapped *session_map(struct session *s, unsigned cpu)
{
	struct mapped *m = &s->cpu[cpu];
	struct pem_pool_header h = {.abi_version = PEM_ABI_VERSION};
	const struct pem_pool_header *shared;

	if (m->at)
		return m;
	shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, s->fd, (off_t)PEM_KMOD_MAP_OFFSET(cpu));
	if (shared == MAP_FAILED) {
		assert_true(errno == ENXIO || errno == EINVAL);
		return NULL;
	}
	assert_int_equal(__atomic_load_n(&shared->magic, __ATOMIC_ACQUIRE), PEM_POOL_MAGIC);
	assert_int_equal(shared->lane_count, PEM_KMOD_LANES);
	h = *shared;
	pem_pool__layout(&h);
	assert_int_equal(h.total_bytes, shared->total_bytes);
	munmap((void *)(uintptr_t)shared, 4096);
	m->bytes = h.total_bytes;
	m->at = mmap(NULL, m->bytes, PROT_READ, MAP_SHARED, s->fd, (off_t)PEM_KMOD_MAP_OFFSET(cpu));
	assert_ptr_not_equal(m->at, MAP_FAILED);
	pem_pool__point(m->at, &h, &m->ring);
	return m;
}

/* The event's cell index, the same in all pools. */
static inline uint32_t cell_of(struct session *s, const char *name)
{
	struct mapped *m = NULL;
	const uint32_t *ids;
	uint32_t i;
	unsigned cpu;

	for (cpu = 0; cpu < CPUS && !m; cpu++)
		m = session_map(s, cpu);
	assert_non_null(m);
	ids = (const uint32_t *)((const uint8_t *)m->at + m->ring.header->event_id_offset);
	for (i = 0; i < m->ring.event_capacity; i++)
		if (ids[i] == id_of(name))
			return i;
	fail_msg("%s has no slot", name);
	return 0;
}

/* Of all events, or of one: produced and discarded, over all CPUs and lanes. */
static inline void session_counts(struct session *s, const char *name, uint64_t *produced,
				  uint64_t *discarded)
{
	uint32_t only = name ? cell_of(s, name) : 0, lane, i;
	const struct pem_cell *cell;
	struct mapped *m;
	unsigned cpu;

	*produced = *discarded = 0;
	for (cpu = 0; cpu < CPUS; cpu++) {
		m = session_map(s, cpu);
		for (lane = 0; m && lane < PEM_KMOD_LANES; lane++) {
			for (i = 0; i < m->ring.event_capacity; i++) {
				if (name && i != only)
					continue;
				cell = &m->ring.cells[lane * m->ring.event_capacity + i];
				*produced += __atomic_load_n(&cell->produced, __ATOMIC_ACQUIRE);
				*discarded += __atomic_load_n(&cell->discarded, __ATOMIC_RELAXED);
			}
		}
	}
}

static inline uint64_t session_overwritten(struct session *s)
{
	uint64_t sum = 0;
	struct mapped *m;
	uint32_t lane;
	unsigned cpu;

	for (cpu = 0; cpu < CPUS; cpu++) {
		m = session_map(s, cpu);
		for (lane = 0; m && lane < PEM_KMOD_LANES; lane++)
			sum += __atomic_load_n(&m->ring.lanes[lane].overwritten, __ATOMIC_RELAXED);
	}
	return sum;
}

/* What the module finds out itself. */
#define AT_EVENT "HW::HWPerf::HPMsAtEvent"
#define REGION "OS::Pages::Region"
#define PASS "OS::Pages::Pass"
#define FREE_BLOCKS "OS::Pages::Free"

static inline uint32_t word_of(const uint8_t *record, unsigned offset)
{
	uint32_t word;

	memcpy(&word, record + offset, sizeof(word));
	return word;
}

static inline uint64_t distribution_of(const uint8_t *record, unsigned offset)
{
	uint64_t word;

	memcpy(&word, record + offset, sizeof(word));
	return word;
}

/* How long the record is. Tests ask for these events only. */
static inline uint32_t record_bytes(uint32_t id, const uint8_t *record)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} forms[] = {{SWITCH, 24},      {ENTER, 24},     {EXIT, 16},   {WAKEUP, 16}, {FORK, 20},
		     {TIMER_BEGIN, 32}, {TIMER_END, 16}, {REGION, 40}, {PASS, 48}};
	unsigned i;

	if (id == id_of(AT_EVENT))
		return 32 + 8 * word_of(record, 24);
	if (id == id_of(FREE_BLOCKS))
		return 24 + (uint32_t)strnlen((const char *)record + 24, 16) + 1;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (id_of(forms[i].name) == id)
			return forms[i].bytes;
	fail_msg("a record of event 0x%08x, which nobody asked for", id);
	return 0;
}

/*
 * Invariants of a full chunk: whole records, in the order of time, as many as it says, in the
 * lane's sequence.
 */
static inline void check_chunk(struct session *s, unsigned cpu, uint32_t index)
{
	const struct mapped *m = &s->cpu[cpu];
	const struct pem_packet *packet =
		(const struct pem_packet *)(m->ring.chunks + (uint64_t)index * m->ring.chunk_bytes);
	uint32_t lane_index =
		PEM_CHUNK_LANE(__atomic_load_n(&m->ring.chunk_state[index], __ATOMIC_ACQUIRE));
	struct lane_seen *lane = &s->lane[cpu * PEM_KMOD_LANES + lane_index];
	uint64_t end = packet->content_size / 8, at, clock = packet->timestamp_begin, n = 0;
	const struct pem_record_header *header;
	uint32_t bytes;

	assert_in_range(lane_index, 1, PEM_KMOD_LANES - 1);
	assert_int_equal(packet->magic, PEM_CTF_MAGIC);
	assert_int_equal(packet->source, PEM_PACKET_KERNEL);
	assert_int_equal(packet->cpu, cpu);
	assert_true(end <= m->ring.chunk_bytes && end > PEM_PACKET_HEADER_BYTES);
	if (s->setup.flags & PEM_KMOD_OVERWRITE)
		assert_true(packet->packet_seq_num >= lane->next_seq);
	else
		assert_int_equal(packet->packet_seq_num, lane->next_seq);
	lane->next_seq = packet->packet_seq_num + 1;
	assert_true(packet->timestamp_begin >= lane->last_clock);
	for (at = PEM_PACKET_HEADER_BYTES; at < end; at = (at + bytes + 7) & ~7ull, n++) {
		header = (const struct pem_record_header *)((const uint8_t *)packet + at);
		bytes = record_bytes(header->event_id, (const uint8_t *)header);
		clock += (uint32_t)(header->clock_low - (uint32_t)clock);
		if (!n) /* no record of a chunk needs those before it */
			assert_int_equal(header->event_id, id_of(SWITCH));
		if (s->seen)
			s->seen(s->arg, cpu, packet, clock, header->event_id,
				(const uint8_t *)header);
		if (at + bytes == end)
			break;
		assert_true(at + bytes < end);
	}
	assert_int_equal(clock, packet->timestamp_end);
	assert_int_equal(n + 1, packet->record_count);
	lane->last_clock = clock;
	s->taken += n + 1;
}

/* Take, check and free all that is full on a CPU; how many chunks. */
static inline uint32_t session_drain_cpu(struct session *s, unsigned cpu, bool check)
{
	uint32_t indices[64], i, all = 0;
	struct pem_kmod_chunks chunks;

	if (!session_map(s, cpu))
		return 0;
	do {
		chunks = (struct pem_kmod_chunks){.size = sizeof(chunks),
						  .cpu = cpu,
						  .count = 64,
						  .chunks = (uint64_t)(uintptr_t)indices};
		assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), 0);
		assert_true(chunks.count <= 64);
		for (i = 0; check && i < chunks.count; i++)
			check_chunk(s, cpu, indices[i]);
		assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), 0);
		all += chunks.count;
	} while (chunks.count == 64);
	return all;
}

static inline uint32_t session_drain(struct session *s)
{
	uint32_t all = 0;
	unsigned cpu;

	for (cpu = 0; cpu < CPUS; cpu++)
		all += session_drain_cpu(s, cpu, true);
	return all;
}

/* Stop, take the rest, and balance. */
static inline void session_finish(struct session *s)
{
	uint64_t produced, discarded;

	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	session_drain(s);
	session_counts(s, NULL, &produced, &discarded);
	assert_int_equal(produced, s->taken + discarded + session_overwritten(s));
}

/*
 * Run a stopped session, and stop it, until on_record has counted more than this. Chunks are full
 * when it stops, and each start begins anew: so each turn is longer than the one before, and on a
 * slow machine one is long enough.
 */
static inline void session_run_until(struct session *s, const uint64_t *count, uint64_t more_than)
{
	useconds_t pause_us = 20000;

	for (; *count <= more_than; pause_us *= 2) {
		session_start(s);
		usleep(pause_us);
		assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
		session_drain(s);
	}
}

/*
 * A thread on CPU 0 that answers the one that runs there, which has to leave the CPU for it. A
 * sleep would not do: on a slow machine its time may be over before the thread has left.
 */
struct partner {
	pthread_t thread;
	int asked[2], answered[2];
};

static inline void *partner_answer(void *arg)
{
	struct partner *p = arg;
	char byte;

	run_on(0);
	while (read(p->asked[0], &byte, 1) == 1)
		if (write(p->answered[1], &byte, 1) != 1)
			break;
	return NULL;
}

static inline void partner_start(struct partner *p)
{
	assert_int_equal(pipe(p->asked), 0);
	assert_int_equal(pipe(p->answered), 0);
	assert_int_equal(pthread_create(&p->thread, NULL, partner_answer, p), 0);
}

/* At least two switches: to the partner, and back. */
static inline void partner_ask(const struct partner *p)
{
	char byte = 0;

	assert_int_equal(write(p->asked[1], &byte, 1), 1);
	assert_int_equal(read(p->answered[0], &byte, 1), 1);
}

static inline void partner_end(struct partner *p)
{
	close(p->asked[1]);
	assert_int_equal(pthread_join(p->thread, NULL), 0);
	close(p->asked[0]);
	close(p->answered[0]);
	close(p->answered[1]);
}

/* A system call that records can be told by: its first argument is a number of ours. */
#define MARK_BASE 0x5e550000ull
static inline void call(uint64_t number)
{
	syscall(SYS_getppid, MARK_BASE + number);
}

static inline int needs_module(void)
{
	if (access(PEM_KMOD_DEVICE, F_OK) == 0)
		return 0;
	printf("1..0 # skip %s is not there: pem.ko is not loaded\n", PEM_KMOD_DEVICE);
	return 77;
}

#endif
