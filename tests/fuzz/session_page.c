// SPDX-License-Identifier: MIT
/*
 * session_page.c - fuzz target: what a program reads of a session's page, its own pool and its
 * control page
 *
 * A session that wants the program's events to be logged and counted, as an honest consumer offers
 * it; the program joins it. The input is steps of eight bytes: an edit of shared memory (where: 1,
 * offset: 3, value: 4, stored at an address of that many bytes' alignment), or the event that
 * raises all stubs and so applies rules, makes pools, filters, counts, logs and wakes. Whatever the
 * page says, the program goes on.
 */
/* Its filters are kept for a process's life; here a life is one input. */
#include "producer/apply.c"

#include "programs/probe.h"
#include "programs/types.h"
#include "util.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define FILE_BYTES (64u << 20) /* of a pool: pages that ask for more get none */
#define STEP_BYTES 8u
#define RAISES_MAX 8u

static char folder[64], directory[96];
static int folder_fd;

static void check(int condition)
{
	if (!condition)
		abort();
}

static void clean(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	check(!system(command));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct rlimit limit = {FILE_BYTES, FILE_BYTES};

	(void)argc;
	(void)argv;
	check(!setrlimit(RLIMIT_FSIZE, &limit));
	snprintf(folder, sizeof(folder), "%s/pem-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	check(mkdtemp(folder) != NULL);
	snprintf(directory, sizeof(directory), "%s/session-1-0", folder);
	check(!mkdir(directory, 0700));
	setenv("PEM_RUNTIME_DIR", folder, 1);
	folder_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(folder_fd >= 0 && !flock(folder_fd, LOCK_EX)); /* its consumer lives */
	atexit(clean);
	return 0;
}

static void fill_rules(struct pem_session_page *page)
{
	static const struct pem_test is_large = {.mask = ~0ull,
						 .lo = 3,
						 .span = 100,
						 .end = 16,
						 .on_true = PEM_TEST_PASS,
						 .on_false = PEM_TEST_FAIL};

	page->rules[0] = (struct pem_rule){
		.event_id = PEM_RULE_ANY_EVENT,
		.action = PEM_ACTION(PEM_ACTION_LOG | PEM_ACTION_STAT | PEM_ACTION_WAKE, 0,
				     PEM_TYPE_UINT8, 8, 1)};
	page->rules[1] = (struct pem_rule){.event_id = pem_process.event_id[0],
					   .context = 1,
					   .test_count = 1,
					   .distribution = PEM_DISTRIBUTION(1, 7, 1),
					   .action = PEM_ACTION(PEM_ACTION_LOG | PEM_ACTION_STAT |
									PEM_ACTION_DISTRIBUTION |
									PEM_ACTION_FILTER,
								1, PEM_TYPE_UINT64, 16, 1)};
	page->rules[2] =
		(struct pem_rule){.event_id = pem_process.event_id[0],
				  .flags = PEM_RULE_OF_CELL(3),
				  .action = PEM_ACTION(PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 1)};
	page->rule_count = 3;
	page->contexts[0].cpu = page->contexts[1].cpu = PEM_NO_CPU;
	page->contexts[1].pid = (uint32_t)getpid();
	page->contexts[1].flags = PEM_CONTEXT_TARGET;
	page->context_count = 2;
	page->tests[0] = is_large;
	page->test_count = 1;
}

static struct pem_session_page *make_page(void)
{
	int fd = openat(folder_fd, "config", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct pem_session_page *page;

	check(fd >= 0 && !ftruncate(fd, sizeof(*page)));
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(page != MAP_FAILED);
	close(fd);
	page->magic = PEM_SESSION_MAGIC;
	page->abi_version = PEM_ABI_VERSION;
	page->pool_flags = PEM_POOL_FURTHER;
	page->chunk_bytes = 4096;
	page->chunk_count = 4;
	page->lane_count = 4;
	page->event_capacity = PEM_PROCESS_EVENTS_MAX;
	page->id = 1;
	page->wake = 1;
	fill_rules(page);
	return page;
}

static void raise_all(void)
{
	static const uint8_t l8[3] = {1, 2, 3};
	static const uint64_t l64[2] = {4, 5};
	static const int16_t li16[1] = {-6};
	static const int32_t li32[1] = {7};
	static const double ld[1] = {8.5};
	uint64_t n;

	for (n = 0; n < 5; n++) {
		pem_notify_probe_tick(n, n * n);
		pem_notify_types_integers((uint8_t)n, -1, 2, -3, 4, -5, 6, 7);
		pem_notify_types_floats((float)n, -1.5);
		pem_notify_types_strings("a", 2, "text", "");
		pem_notify_types_lists(3, l8, 2, l64, 1, li16, "name", 1, li32, 1, ld);
	}
}

/* Shared memory of a session that a program is in, as far as its consumer may write there. */
static void edit(struct pem_session_page *page, unsigned session_index, const uint8_t *step)
{
	const struct pem_joined *joined = &pem_process.joined[session_index];
	uint8_t *control = pem_process.providers->page;
	uint8_t *pool = joined->pool_bytes ? (uint8_t *)joined->ring.header : NULL;
	const struct {
		uint8_t *at;
		uint64_t bytes;
	} part[] = {
		{(uint8_t *)page, 128},
		{(uint8_t *)page->rules, 4 * sizeof(page->rules[0])},
		{(uint8_t *)page->contexts, 3 * sizeof(page->contexts[0])},
		{(uint8_t *)page->tests, 4 * sizeof(page->tests[0])},
		{(uint8_t *)page, sizeof(*page)},
		{(uint8_t *)&pem_process__table()[session_index], sizeof(struct pem_session_entry)},
		{control + sizeof(struct pem_control_header), 64 + 8 * 64},
		{pool, sizeof(struct pem_pool_header)},
		{pool ? (uint8_t *)joined->ring.chunk_state : NULL, 64},
		{pool ? (uint8_t *)joined->ring.lanes : NULL, 4 * sizeof(struct pem_lane)},
		{pool ? (uint8_t *)joined->ring.cells : NULL, 4 * sizeof(struct pem_cell)}};
	size_t which = step[0] % 16, width = (size_t)1 << (step[0] >> 4) % 3;
	uint32_t offset, value;

	if (which >= PEM_ARRAY_SIZE(part) || !part[which].at)
		return;
	offset = (step[1] | (uint32_t)step[2] << 8 | (uint32_t)step[3] << 16) %
		 (uint32_t)(part[which].bytes / width);
	memcpy(&value, step + 4, sizeof(value));
	memcpy(part[which].at + offset * width, &value, width);
}

static void remove_pools(void)
{
	char name[32];
	uint32_t i;

	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "pool-%u-%u", pem_process.pid, i);
		if (unlinkat(folder_fd, name, 0) && i > 3)
			return;
	}
}

static void play(struct pem_session_page *page, unsigned session_index, const uint8_t *data,
		 size_t bytes)
{
	unsigned raises = 0;

	for (; bytes >= STEP_BYTES; data += STEP_BYTES, bytes -= STEP_BYTES) {
		if (data[0] % 16 < 12)
			edit(page, session_index, data);
		else if (raises++ < RAISES_MAX)
			raise_all();
		if (data[0] >> 7) { /* as a consumer says that rules have changed */
			page->generation += 2;
			pem_process__lock();
			if (pem_process.joined[session_index].state != PEM_JOINED_NOT)
				pem_process__apply(session_index);
			pem_process__unlock();
		}
	}
	raise_all();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct pem_session_page *page = make_page();
	struct pem_session_entry *entry;
	const uint8_t *rest = data;
	size_t left = bytes;
	int session_index;

	/* What is wrong from the beginning, up to the first event. */
	for (; left >= STEP_BYTES && rest[0] % 16 < 5; rest += STEP_BYTES, left -= STEP_BYTES)
		edit(page, 0, rest);
	session_index = pem_process__join(directory);
	if (session_index >= 0) {
		play(page, (unsigned)session_index, rest, left);
		pem_process__leave((unsigned)session_index);
		entry = &pem_process__table()[session_index];
		*entry = (struct pem_session_entry){
			.incarnation = entry->incarnation,
			.joined = pem_process.joined[session_index].incarnation};
	}
	filters.used = 0;
	for (session_index = 0; session_index < (int)PEM_SESSIONS_MAX; session_index++)
		memset(pem_process.joined[session_index].filter, 0,
		       sizeof(pem_process.joined[session_index].filter));
	munmap(page, sizeof(*page));
	unlinkat(folder_fd, "config", 0);
	remove_pools();
	return 0;
}
