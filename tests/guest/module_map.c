// SPDX-License-Identifier: MIT
/*
 * module_map.c - pools are mapped within their bounds, read-only, for as long as anybody maps them;
 * files are sessions of their own
 *
 * Not here: what is in a pool (module_record.c).
 */
#include "module_fixture.h"

#include <pthread.h>

#define PAGE 4096u
#define CHUNKS 16u
#define EMPTY_CPU 63u /* no guest has so many */

static struct session *ready(void)
{
	struct session *s = session_open();

	session_setup(s, 0, PEM_KMOD_CHUNK_BYTES_MIN, CHUNKS);
	return s;
}

static void fill(struct session *s, unsigned chunks)
{
	unsigned i;

	run_on(0);
	session_event(s, ENTER, PEM_ACTION_LOG);
	session_start(s);
	for (i = 0; i < chunks * PEM_KMOD_CHUNK_BYTES_MIN / 24; i++)
		syscall(SYS_getppid);
}

/* The error of a mapping that must not be. */
static int refusal_of(const struct session *s, uint64_t offset, size_t bytes, int protection,
		      int flags)
{
	void *at = mmap(NULL, bytes, protection, flags, s->fd, (off_t)offset);

	if (at == MAP_FAILED)
		return errno;
	munmap(at, bytes);
	return 0;
}

static int refusal(const struct session *s, uint64_t offset, size_t bytes, int protection)
{
	return refusal_of(s, offset, bytes, protection, MAP_SHARED);
}

static uint64_t used_bytes(const struct session *s)
{
	struct pem_kmod_info info = {.size = sizeof(info)};

	assert_int_equal(ask(s, PEM_KMOD_INFO, &info), 0);
	return info.used_bytes;
}

static void nothing_is_mapped_beyond_a_pool(void **state)
{
	struct session *s = session_open();
	uint64_t bytes;

	(void)state;
	assert_int_equal(refusal(s, 0, PAGE, PROT_READ), EBUSY); /* before SETUP */
	session_setup(s, 0, PEM_KMOD_CHUNK_BYTES_MIN, CHUNKS);
	bytes = session_map(s, 0)->bytes;
	assert_int_equal(refusal(s, 0, bytes, PROT_READ), 0);
	assert_int_equal(refusal(s, bytes - PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(refusal(s, 0, bytes + PAGE, PROT_READ), EINVAL);
	assert_int_equal(refusal(s, PAGE, bytes, PROT_READ), EINVAL);
	assert_int_equal(refusal(s, bytes, PAGE, PROT_READ), EINVAL);
	assert_int_equal(refusal(s, (1ull << PEM_KMOD_MAP_SHIFT) - PAGE, 2 * PAGE, PROT_READ),
			 EINVAL);
	assert_true(refusal(s, PEM_KMOD_MAP_OFFSET(EMPTY_CPU), PAGE, PROT_READ) != 0);
	assert_int_equal(refusal(s, PEM_KMOD_MAP_OFFSET(1ull << 20), PAGE, PROT_READ), EINVAL);
	assert_int_equal(refusal(s, (uint64_t)INT64_MAX & ~(uint64_t)(PAGE - 1), PAGE, PROT_READ),
			 EINVAL);
	assert_true(refusal(s, 0, (size_t)1 << 46, PROT_READ) != 0);
	session_close(s);
}

static void pools_are_mapped_shared_and_read_only(void **state)
{
	struct session *s = ready();
	struct mapped *m = session_map(s, 0);

	(void)state;
	assert_int_equal(refusal(s, 0, PAGE, PROT_READ | PROT_WRITE), EPERM);
	assert_int_equal(refusal(s, 0, PAGE, PROT_READ | PROT_EXEC), EPERM);
	assert_int_equal(refusal_of(s, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE), EPERM);
	assert_int_equal(refusal_of(s, 0, PAGE, PROT_READ, MAP_PRIVATE), EINVAL);
	assert_int_equal(mprotect(m->at, PAGE, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
	assert_ptr_equal(mremap(m->at, m->bytes, m->bytes + PAGE, MREMAP_MAYMOVE), MAP_FAILED);
	session_close(s);
}

static void another_process_does_not_write_to_it_either(void **state)
{
	struct session *s = ready();
	struct mapped *m = session_map(s, 0);
	uint64_t zero = 0;
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_true(memory >= 0);
	assert_int_equal(pwrite(memory, &zero, sizeof(zero), (off_t)(uintptr_t)m->at), -1);
	assert_int_equal(m->ring.header->magic, PEM_POOL_MAGIC);
	close(memory);
	session_close(s);
}

static void pages_that_advice_took_away_come_back(void **state)
{
	struct session *s = ready();
	void *at = mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, s->fd, 0);
	int advice;

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	for (advice = 0; advice < 30; advice++) {
		madvise(at, 4 * PAGE, advice);
		assert_int_equal(((const struct pem_pool_header *)at)->magic, PEM_POOL_MAGIC);
	}
	munmap(at, 4 * PAGE);
	assert_int_equal(session_map(s, 0)->ring.header->magic, PEM_POOL_MAGIC);
	session_close(s);
}

static void a_mapping_outlives_the_file(void **state)
{
	struct session *s = ready(), *witness = session_open();
	struct mapped m;

	(void)state;
	fill(s, 2);
	m = *session_map(s, 0);
	s->cpu[0].at = NULL; /* not unmapped with the rest */
	session_close(s);
	assert_int_equal(m.ring.header->magic, PEM_POOL_MAGIC);
	assert_true(m.ring.lanes[1].packet_seq > 0);
	assert_true(used_bytes(witness) > 0); /* and is paid for */
	/* In pieces, the middle first. */
	assert_int_equal(munmap((uint8_t *)m.at + 2 * PAGE, PAGE), 0);
	assert_int_equal(m.ring.header->magic, PEM_POOL_MAGIC);
	assert_int_equal(munmap(m.at, 2 * PAGE), 0);
	assert_true(used_bytes(witness) > 0);
	assert_int_equal(munmap((uint8_t *)m.at + 3 * PAGE, m.bytes - 3 * PAGE), 0);
	assert_int_equal(used_bytes(witness), 0);
	session_close(witness);
}

static void a_child_keeps_what_its_parent_lets_go(void **state)
{
	struct session *s = ready(), *witness;
	struct mapped *m = session_map(s, 0);
	int go[2], status;
	pid_t child;
	char byte;

	(void)state;
	fill(s, 2);
	assert_int_equal(pipe(go), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct pem_kmod_info info = {.size = sizeof(info)};

		(void)!read(go[0], &byte, 1);
		_exit(m->ring.header->magic == PEM_POOL_MAGIC && !ioctl(s->fd, PEM_KMOD_STOP, 0) &&
				      !ioctl(s->fd, PEM_KMOD_INFO, &info) && info.used_bytes > 0
			      ? 0
			      : 1);
	}
	session_close(s);
	witness = session_open();
	assert_true(used_bytes(witness) > 0);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(used_bytes(witness), 0);
	session_close(witness);
	close(go[0]);
	close(go[1]);
}

static void two_consumers_have_a_session_each(void **state)
{
	struct session *a = ready(), *b = ready();
	uint64_t produced, discarded, before;

	(void)state;
	fill(a, 1);
	fill(b, 1);
	session_counts(a, ENTER, &before, &discarded);
	assert_true(before >= 2 * (PEM_KMOD_CHUNK_BYTES_MIN / 24));
	session_counts(b, ENTER, &produced, &discarded);
	assert_true(produced >= PEM_KMOD_CHUNK_BYTES_MIN / 24 && produced < before);
	session_close(b);
	syscall(SYS_getppid);
	session_counts(a, ENTER, &produced, &discarded);
	assert_true(produced > before);
	session_close(a);
}

struct taker {
	struct session *s;
	uint8_t *times; /* by chunk: how often it was taken */
};

static void *take_all(void *arg)
{
	struct taker *taker = arg;
	struct pem_kmod_chunks chunks;
	uint32_t index;

	do {
		chunks = (struct pem_kmod_chunks){
			.size = sizeof(chunks), .count = 1, .chunks = (uintptr_t)&index};
		if (ioctl(taker->s->fd, PEM_KMOD_TAKE, &chunks))
			break;
		if (chunks.count)
			__atomic_fetch_add(&taker->times[index], 1, __ATOMIC_RELAXED);
	} while (chunks.count);
	return NULL;
}

static void a_chunk_is_taken_once_by_threads_that_share_a_file(void **state)
{
	uint8_t times[CHUNKS] = {0};
	struct taker taker = {ready(), times};
	pthread_t thread[3];
	unsigned i, taken = 0;

	(void)state;
	fill(taker.s, CHUNKS + 1);
	assert_int_equal(ask(taker.s, PEM_KMOD_STOP, NULL), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_all, &taker), 0);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < CHUNKS; i++) {
		assert_true(times[i] <= 1);
		taken += times[i];
	}
	assert_int_equal(taken, CHUNKS);
	session_close(taker.s);
}

static short polled(const struct session *s, int timeout_ms)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};

	assert_true(poll(&p, 1, timeout_ms) >= 0);
	return p.revents;
}

static void *fill_soon(void *arg)
{
	struct timespec pause = {0, 50000000};
	unsigned i;

	(void)arg;
	nanosleep(&pause, NULL);
	run_on(0);
	for (i = 0; i < CHUNKS * PEM_KMOD_CHUNK_BYTES_MIN / 24; i++)
		syscall(SYS_getppid);
	return NULL;
}

static void poll_tells_of_the_watermark_and_of_the_end(void **state)
{
	struct session *s = session_open();
	pthread_t thread;

	(void)state;
	assert_int_equal(polled(s, 0), 0);
	session_setup(s, 0, PEM_KMOD_CHUNK_BYTES_MIN, CHUNKS);
	assert_int_equal(polled(s, 0), 0);
	fill(s, 2); /* the watermark is half of them */
	assert_int_equal(polled(s, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, fill_soon, NULL), 0);
	assert_int_equal(polled(s, 20000), POLLIN); /* it is woken, from within a probe */
	pthread_join(thread, NULL);
	session_drain_cpu(s, 0, false);
	session_drain_cpu(s, 1, false);
	assert_int_equal(polled(s, 0), 0);
	syscall(SYS_getppid);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	assert_int_equal(polled(s, 0), POLLIN); /* however little it is */
	session_drain_cpu(s, 0, false);
	session_drain_cpu(s, 1, false);
	assert_int_equal(polled(s, 0), 0);
	session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_mapped_beyond_a_pool),
		cmocka_unit_test(pools_are_mapped_shared_and_read_only),
		cmocka_unit_test(another_process_does_not_write_to_it_either),
		cmocka_unit_test(pages_that_advice_took_away_come_back),
		cmocka_unit_test(a_mapping_outlives_the_file),
		cmocka_unit_test(a_child_keeps_what_its_parent_lets_go),
		cmocka_unit_test(two_consumers_have_a_session_each),
		cmocka_unit_test(a_chunk_is_taken_once_by_threads_that_share_a_file),
		cmocka_unit_test(poll_tells_of_the_watermark_and_of_the_end),
	};

	return needs_module() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
