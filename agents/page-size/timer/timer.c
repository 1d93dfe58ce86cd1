// SPDX-License-Identifier: MIT
/*
 * timer.c - samples of a command's registers, through one perf ring for each processor
 *
 * Not here: what an instruction does with them (pem/operand.h).
 *
 * The kernel maps no ring for an event that is inherited and follows its thread from processor to
 * processor, so there is one event for each. They are opened on this thread, count nothing here,
 * and begin in what it starts, at exec.
 */
#include "timer.h"

#include <pem/operand.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Each event is one more for every thread and fork of the command. */
#define PROCESSORS_MAX 64
#define RING_PAGES 16u /* of data: a power of two. 409 samples, of 160 bytes */
/* A process that ends sooner after its sample takes the instruction with it. */
#define DRAIN_MS 50
#define JOIN_S 1

struct sample {
	pid_t pid;
	struct pem_code_bytes code;
	uint64_t registers[PEM_OPERAND_REGISTERS];
};

struct ring {
	int fd;
	struct perf_event_mmap_page *page; /* NULL: none */
};

struct timer {
	long page_bytes;
	int stop_fd;
	pthread_t thread;
	unsigned ring_count;
	struct ring rings[PROCESSORS_MAX];
	double period_s;
	uint64_t seen, stride; /* each stride-th of those seen is kept */
	size_t count;
	struct sample samples[TIMER_SAMPLES_MAX];
};

/* --- the rings --- */

/* What the kernel writes for PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER. */
struct record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t abi;
	uint64_t registers[PEM_OPERAND_REGISTERS];
};

static size_t ring_bytes(const struct timer *timer)
{
	return (RING_PAGES + 1) * (size_t)timer->page_bytes;
}

/* Returns 0 or -errno; -ENODEV: this processor is not there. */
static int open_ring(struct timer *timer, struct ring *ring, int processor, uint32_t rate_hz)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 1000000000u / rate_hz,
				       .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER,
				       .sample_regs_user = pem_operand__registers(),
				       .disabled = 1,
				       .enable_on_exec = 1,
				       .inherit = 1,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	void *page;

	ring->fd = (int)syscall(SYS_perf_event_open, &attr, 0, processor, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring->fd < 0)
		return -errno;
	page = mmap(NULL, ring_bytes(timer), PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (page == MAP_FAILED) {
		/* Users may lock so much, over all that they have (perf_event_mlock_kb). */
		int code = errno == EPERM ? -ENOBUFS : -errno;

		close(ring->fd);
		return code;
	}
	ring->page = page;
	timer->ring_count++;
	return 0;
}

/* The ring's bytes from a position on, which may go around its end. */
static void copy(const struct timer *timer, const struct ring *ring, uint64_t position, void *to,
		 size_t bytes)
{
	const uint8_t *data = (const uint8_t *)ring->page + timer->page_bytes;
	size_t all = RING_PAGES * (size_t)timer->page_bytes, at = position % all,
	       first = bytes < all - at ? bytes : all - at;

	memcpy(to, data + at, first);
	memcpy((uint8_t *)to + first, data, bytes - first);
}

/* Read so many bytes of a process, or as many as are there. */
static uint8_t read_bytes(pid_t pid, uint64_t at, void *bytes, size_t count)
{
	struct iovec to = {bytes, count}, from = {(void *)at, count};
	ssize_t got = count ? process_vm_readv(pid, &to, 1, &from, 1, 0) : 0;

	return got > 0 ? (uint8_t)got : 0;
}

/* The pages around one's own may be missing. */
static void read_code(const struct timer *timer, pid_t pid, uint64_t at,
		      struct pem_code_bytes *code)
{
	size_t in_page = at % (size_t)timer->page_bytes, left = (size_t)timer->page_bytes - in_page,
	       before = in_page < PEM_OPERAND_CODE_BEFORE ? in_page : PEM_OPERAND_CODE_BEFORE,
	       after = left < PEM_OPERAND_INSTRUCTION_MAX ? left : PEM_OPERAND_INSTRUCTION_MAX;
	uint8_t *here = code->bytes + PEM_OPERAND_CODE_BEFORE, bytes[sizeof(code->bytes)];
	uint8_t got = read_bytes(pid, at - before, bytes, before + after);

	memset(code, 0, sizeof(*code));
	if (got != before + after)
		return;
	memcpy(here - before, bytes, got);
	code->before = (uint8_t)before;
	code->after = (uint8_t)after;
	code->after +=
		read_bytes(pid, at + after, here + after, PEM_OPERAND_INSTRUCTION_MAX - after);
}

/* The kept ones stay spread evenly over the time of the command. */
static void thin(struct timer *timer)
{
	size_t i;

	for (i = 0; 2 * i < timer->count; i++)
		timer->samples[i] = timer->samples[2 * i];
	timer->count = i;
	timer->stride *= 2;
}

static void take(struct timer *timer, const struct record *record)
{
	struct sample *sample;

	/* A process of 32 bits has registers of its own kind. */
	if (record->abi != PERF_SAMPLE_REGS_ABI_64 || timer->seen++ % timer->stride)
		return;
	if (timer->count == TIMER_SAMPLES_MAX)
		thin(timer);
	sample = &timer->samples[timer->count++];
	sample->pid = (pid_t)record->pid;
	memcpy(sample->registers, record->registers, sizeof(sample->registers));
	read_code(timer, sample->pid, sample->registers[PEM_OPERAND_IP], &sample->code);
}

static void drain(struct timer *timer, struct ring *ring)
{
	/* Pairs with the kernel's release of data_head: the records before it are written. */
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE),
		 tail = ring->page->data_tail;
	union {
		struct perf_event_header header;
		struct record record;
	} u;

	while (head - tail >= sizeof(u.header)) {
		size_t bytes;

		copy(timer, ring, tail, &u, sizeof(u.header));
		bytes = u.header.size;
		if (bytes < sizeof(u.header) || bytes > head - tail)
			break;
		copy(timer, ring, tail, &u, bytes < sizeof(u) ? bytes : sizeof(u));
		if (u.header.type == PERF_RECORD_SAMPLE && bytes == sizeof(u.record))
			take(timer, &u.record);
		tail += bytes;
	}
	/* Pairs with the kernel's load of data_tail: what is before it was read. */
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

static void drain_all(struct timer *timer)
{
	unsigned i;

	for (i = 0; i < timer->ring_count; i++)
		drain(timer, &timer->rings[i]);
}

static void *collect(void *arg)
{
	struct timer *timer = arg;
	struct pollfd stop = {.fd = timer->stop_fd, .events = POLLIN};

	/* The last turn is after the command's end: what is left is of processes that ended. */
	while (poll(&stop, 1, DRAIN_MS) == 0)
		drain_all(timer);
	drain_all(timer);
	return NULL;
}

/* --- from start to stop --- */

static void close_timer(struct timer *timer)
{
	unsigned i;

	for (i = 0; i < timer->ring_count; i++) {
		munmap(timer->rings[i].page, ring_bytes(timer));
		close(timer->rings[i].fd);
	}
	if (timer->stop_fd >= 0)
		close(timer->stop_fd);
	free(timer);
}

static int open_rings(struct timer *timer, uint32_t rate_hz)
{
	long processors = sysconf(_SC_NPROCESSORS_CONF), i;
	int rc = processors > PROCESSORS_MAX ? -E2BIG : 0;

	for (i = 0; !rc && i < processors; i++) {
		rc = open_ring(timer, &timer->rings[timer->ring_count], (int)i, rate_hz);
		if (rc == -ENODEV)
			rc = 0;
	}
	return rc ? rc : timer->ring_count ? 0 : -ENODEV;
}

/* All signals are for the thread that waits for the command. */
static int start_thread(struct timer *timer)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	rc = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (rc)
		return -rc;
	rc = pthread_create(&timer->thread, NULL, collect, timer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

static struct timer *fail(struct timer *timer, int code, struct pem_error *error)
{
	const char *what = code == EOPNOTSUPP ? "instructions can't be decoded here"
			   : code == E2BIG    ? "there are too many processors"
			   : code == ENOBUFS
				   ? "no more memory may be locked (kernel.perf_event_mlock_kb)"
			   : code == EACCES || code == EPERM
				   ? "this user may not have them (kernel.perf_event_paranoid)"
				   : strerror(code);

	snprintf(error->text, sizeof(error->text), "no timer samples: %s", what);
	if (timer)
		close_timer(timer);
	errno = code;
	return NULL;
}

struct timer *timer__start(uint32_t rate_hz, struct pem_error *error)
{
	struct pem_decoder *decoder = pem_decoder__new();
	struct timer *timer;
	int rc;

	if (!decoder)
		return fail(NULL, EOPNOTSUPP, error);
	pem_decoder__free(decoder);
	timer = calloc(1, sizeof(*timer));
	if (!timer)
		return fail(NULL, ENOMEM, error);
	timer->page_bytes = sysconf(_SC_PAGESIZE);
	timer->period_s = 1.0 / rate_hz;
	timer->stride = 1;
	timer->stop_fd = eventfd(0, EFD_CLOEXEC);
	rc = timer->stop_fd < 0 ? -errno : open_rings(timer, rate_hz);
	if (!rc)
		rc = start_thread(timer);
	return rc ? fail(timer, -rc, error) : timer;
}

/* Samples of one address together. */
static int by_address(const void *a, const void *b)
{
	const struct sample *one = a, *other = b;
	uint64_t at = one->registers[PEM_OPERAND_IP], others = other->registers[PEM_OPERAND_IP];

	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	return (at > others) - (at < others);
}

static void decode(struct timer *timer, struct timer_result *result)
{
	struct pem_decoder *decoder = pem_decoder__new();
	struct pem_operand operand;
	size_t i;

	qsort(timer->samples, timer->count, sizeof(timer->samples[0]), by_address);
	result->seconds_each = timer->period_s * (double)timer->stride;
	result->addresses = calloc(timer->count + 1, sizeof(*result->addresses));
	for (i = 0; result->addresses && i < timer->count; i++) {
		const struct sample *sample = &timer->samples[i];
		struct timer_address *address = &result->addresses[result->count++];

		address->pid = sample->pid;
		if (decoder && sample->code.after &&
		    pem_decoder__operand(decoder, &sample->code, sample->registers, &operand))
			address->at = operand.address;
	}
	pem_decoder__free(decoder);
}

/* false: it still waits. */
static bool join(struct timer *timer)
{
	struct timespec end;
	uint64_t one = 1;

	while (write(timer->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += JOIN_S;
	return !pthread_timedjoin_np(timer->thread, NULL, &end);
}

void timer__stop(struct timer *timer, struct timer_result *result)
{
	memset(result, 0, sizeof(*result));
	if (!timer || !join(timer))
		return;
	decode(timer, result);
	close_timer(timer);
}
