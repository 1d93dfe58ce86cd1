/* SPDX-License-Identifier: MIT */
/*
 * kernel_fixture.h - the kernel source under test: loaded as a session would, with a sink that
 * checks every packet
 *
 * Included by the programs kernel_*.c. They need what the source needs (root, BTF); load_plugin()
 * skips them, with the reason, where it can't run.
 */
#ifndef KERNEL_FIXTURE_H
#define KERNEL_FIXTURE_H

#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <pem/clock.h>
#include <pem/model.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <source.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define EVENTS_MAX 512
#define CPUS_MAX 1024
/* of a CPU: its own, and one for each depth of what interrupted the module */
#define STREAMS_MAX 4

static const struct pem_source_ops *ops;
static struct pem_model *model;

/* PEM_TEST_SOURCE=module: the same of the module, where it is loaded, instead of BPF. */
static inline bool by_module(void)
{
	const char *source = getenv("PEM_TEST_SOURCE");

	return source && !strcmp(source, "module");
}

/* What the sink saw. */
struct seen {
	const struct pem_event *event[EVENTS_MAX];
	uint64_t count[EVENTS_MAX];
	size_t events;
	uint64_t of_syscall[512]; /* Enter records by number */
	uint64_t faults; /* in pages at [low, high) */
	uintptr_t low, high;
	uint32_t pid_of_cpu[CPUS_MAX];
	uint64_t last_clock[CPUS_MAX][STREAMS_MAX];
	uint64_t packets;
	uint64_t widest_gap; /* between two records of a stream */
	uint64_t strangers; /* records of a process that is not the target, Switch apart */
	uint32_t target;
	uint32_t beside; /* as the source was told */
	char filename[64];
	uint64_t first, last;
};

static inline uint64_t monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The test's cycle counter has 3 ticks a nanosecond, so that its low half wraps every 1.4 s. */
static inline uint64_t clock_at(void *arg, uint64_t ns)
{
	(void)arg;
	return ns * 3;
}

/* What it says now, or the clock that the module reads; and how many ticks a time is. */
static inline uint64_t ticks_now(void)
{
	return by_module() ? pem_clock() : monotonic() * 3;
}

static inline uint64_t ticks_of(uint64_t ns)
{
	return by_module() ? (uint64_t)((unsigned __int128)ns * pem_clock__hz() / 1000000000u)
			   : ns * 3;
}

static inline size_t index_of(struct seen *seen, uint32_t id)
{
	size_t i;

	for (i = 0; i < seen->events; i++) {
		if (seen->event[i]->id == id)
			return i;
	}
	assert_true(seen->events < EVENTS_MAX);
	seen->event[i] = pem_model__by_id(model, id);
	assert_non_null(seen->event[i]);
	seen->events++;
	return i;
}

static inline uint64_t field(const struct pem_event *event, const uint8_t *data, const char *name)
{
	int i = pem_event__field(event, name);
	uint64_t value = 0;

	assert_true(i >= 0);
	memcpy(&value, data + event->fields[i].offset, pem_type__bytes(event->fields[i].type));
	return value;
}

static inline void see_clock(struct seen *seen, uint32_t cpu, uint32_t stream, uint64_t clock)
{
	uint64_t *last = &seen->last_clock[cpu][stream];

	assert_true(clock >= *last);
	if (*last && clock - *last > seen->widest_gap)
		seen->widest_gap = clock - *last;
	*last = clock;
	seen->first = !seen->first || clock < seen->first ? clock : seen->first;
	seen->last = clock > seen->last ? clock : seen->last;
}

static inline void see_record(struct seen *seen, const struct pem_event *event, const uint8_t *data,
			      uint32_t cpu)
{
	uint64_t value;

	seen->count[index_of(seen, event->id)]++;
	if (!strcmp(event->name, "OS::Sched::Switch")) {
		seen->pid_of_cpu[cpu] = (uint32_t)field(event, data, "nextPid");
		return;
	}
	if (seen->target && seen->pid_of_cpu[cpu] != seen->target)
		seen->strangers++;
	if (!strcmp(event->name, "OS::Syscall::Enter")) {
		value = field(event, data, "number");
		if (value < 512)
			seen->of_syscall[value]++;
	} else if (!strcmp(event->name, "OS::Mem::PageFault")) {
		value = field(event, data, "address");
		if (value >= seen->low && value < seen->high)
			seen->faults++;
	} else if (!strcmp(event->name, "OS::Process::Exec")) {
		snprintf(seen->filename, sizeof(seen->filename), "%s",
			 (const char *)data + event->fixed_bytes);
	}
}

/*
 * Of the module what interrupts a probe has a stream of its own: "k_0_1" beside "k_0". Clocks go on
 * within one.
 */
static inline uint32_t stream_of(const char *name, const char *expected)
{
	size_t bytes = strlen(expected);

	if (!by_module() || strncmp(name, expected, bytes) != 0 || name[bytes] != '_') {
		assert_string_equal(name, expected);
		return 0;
	}
	assert_in_range(name[bytes + 1], '1', '0' + STREAMS_MAX - 1);
	assert_int_equal(name[bytes + 2], '\0');
	return (uint32_t)(name[bytes + 1] - '0');
}

static inline void see_packet(struct seen *seen, const char *name, const struct pem_packet *packet,
			      size_t bytes)
{
	const uint8_t *at = (const uint8_t *)(packet + 1), *end = (const uint8_t *)packet + bytes;
	uint64_t clock = packet->timestamp_begin, records = 0;
	const struct pem_record_header *header;
	const struct pem_event *event;
	uint32_t stream;
	char expected[24];
	int length;

	if (seen->beside)
		snprintf(expected, sizeof(expected), "k%u_%u", seen->beside, packet->cpu);
	else
		snprintf(expected, sizeof(expected), "k_%u", packet->cpu);
	assert_true(packet->cpu < CPUS_MAX);
	stream = stream_of(name, expected);
	assert_int_equal(packet->source, seen->beside && !by_module() ? PEM_PACKET_KERNEL_THREAD
								      : PEM_PACKET_KERNEL);
	if (seen->beside)
		seen->pid_of_cpu[packet->cpu] = packet->pid;
	while (at < end) {
		header = (const struct pem_record_header *)at;
		event = pem_model__by_id(model, header->event_id);
		assert_non_null(event);
		length = pem_event__record_bytes(event, at, (size_t)(end - at));
		assert_true(length > 0);
		clock += (uint32_t)(header->clock_low - (uint32_t)clock);
		see_clock(seen, packet->cpu, stream, clock);
		see_record(seen, event, at, packet->cpu);
		records++;
		if (at + length == end)
			break;
		at += (length + 7) / 8 * 8;
	}
	assert_int_equal(records, packet->record_count);
	assert_int_equal(clock, packet->timestamp_end);
	seen->packets++;
}

static inline int write_packet(void *arg, const char *name, struct pem_packet *packet, size_t bytes)
{
	size_t at = 0, content = packet->content_size / 8;

	if (content != bytes) /* several */
		assert_int_equal(bytes % 8, 0);
	for (; at < bytes; at += (content + 7) / 8 * 8) {
		packet =
			(struct pem_packet *)((uint8_t *)packet + (at ? (content + 7) / 8 * 8 : 0));
		assert_int_equal(packet->content_size % 8, 0);
		content = packet->content_size / 8;
		assert_true(content >= sizeof(*packet) && content <= bytes - at);
		see_packet(arg, name, packet, content);
	}
	return 0;
}

static inline void on_log(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	print_message("# %s\n", text);
}

/* A source under test, with the events it was asked for. */
struct subject {
	struct pem_source *source;
	struct pem_source_event events[EVENTS_MAX];
	size_t count;
	struct seen seen;
	struct pem_source_sink sink;
};

static inline void add_event(struct subject *s, const char *name, uint64_t action,
			     const struct pem_context *context)
{
	const struct pem_event *event = pem_model__by_name(model, name);
	const struct pem_context any = {0};

	assert_non_null(event);
	assert_true(s->count < EVENTS_MAX);
	s->events[s->count++] = (struct pem_source_event){
		.event = event, .context = context ? *context : any, .action = action};
}

/* What a recording that names no event would take of the kernel. */
static inline void add_all(struct subject *s)
{
	const struct pem_event *event;
	struct pem_error reason;
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		event = pem_model__event(model, i);
		if (event->source_kind == PEM_SOURCE_TRACEPOINT && event->level <= PEM_LEVEL_INFO &&
		    ops->can_deliver(event, &reason) == 1)
			add_event(s, event->name, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1),
				  NULL);
	}
	assert_true(s->count > 0);
}

static inline void open_subject(struct subject *s, pid_t root, uint32_t buffer_bytes)
{
	struct pem_source_config config = {
		.size = sizeof(config),
		.root = root,
		.events = s->events,
		.event_count = s->count,
		.buffer_bytes = buffer_bytes,
		.beside = s->seen.beside,
		.thread_is_told = s->seen.beside != 0,
		.sets_thread = pem_model__by_name(model, "OS::Sched::Switch"),
		.log = on_log,
	};
	struct pem_error error = {""};
	int rc;

	s->sink = (struct pem_source_sink){
		.arg = &s->seen, .write = write_packet, .clock_at = clock_at};
	rc = ops->open(&config, &s->source, &error);
	if (rc)
		print_message("# %s\n", error.text);
	assert_int_equal(rc, 0);
	rc = ops->start(s->source, &error);
	if (rc)
		print_message("# %s\n", error.text);
	assert_int_equal(rc, 0);
}

/*
 * The module is told by a system call, which is not to be among those that the test counts of its
 * own thread: another one makes it, and this one waits for it without a system call.
 */
struct errand {
	struct pem_source *source;
	size_t i;
	uint64_t action;
	int result;
	atomic_bool wanted;
};

static inline void *run_errands(void *arg)
{
	struct errand *errand = arg;

	for (;;) {
		while (!atomic_load(&errand->wanted))
			sched_yield();
		errand->result = ops->set_action(errand->source, errand->i, errand->action);
		atomic_store(&errand->wanted, false);
	}
	return NULL;
}

static inline int set_action(struct subject *s, size_t i, uint64_t action)
{
	static struct errand errand;
	static pthread_t thread;

	if (!by_module())
		return ops->set_action(s->source, i, action);
	if (!thread)
		assert_int_equal(pthread_create(&thread, NULL, run_errands, &errand), 0);
	errand.source = s->source;
	errand.i = i;
	errand.action = action;
	atomic_store(&errand.wanted, true);
	while (atomic_load(&errand.wanted))
		;
	return errand.result;
}

static inline void close_subject(struct subject *s)
{
	ops->close(s->source);
	free(s);
}

static inline uint64_t seen_of(struct subject *s, const char *name)
{
	return s->seen.count[index_of(&s->seen, pem_model__by_name(model, name)->id)];
}

/*
 * Every event: produced is what the sink saw and what was discarded. Returns what was discarded of
 * all.
 */
static inline uint64_t check_balance(struct subject *s)
{
	struct pem_balance balance;
	uint64_t discarded = 0;
	size_t i;

	for (i = 0; i < s->count; i++) {
		assert_int_equal(ops->balance(s->source, i, &balance), 0);
		assert_int_equal(balance.produced,
				 seen_of(s, s->events[i].event->name) + balance.discarded);
		discarded += balance.discarded;
	}
	return discarded;
}

/* A child that waits for a byte before it calls function, then exits. */
struct child {
	pid_t pid;
	int go; /* write to let it start, or go on */
	int said; /* read what it says */
};

static inline void ignore(ssize_t result)
{
	(void)result;
}

static inline struct child make_child(void (*function)(int go, int say))
{
	int go[2], said[2];
	struct child child;
	char byte;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(said), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		close(go[1]);
		close(said[0]);
		ignore(read(go[0], &byte, 1));
		function(go[0], said[1]);
		_exit(0);
	}
	close(go[0]);
	close(said[1]);
	child.go = go[1];
	child.said = said[0];
	return child;
}

static inline void finish_child(struct child *child)
{
	int status;

	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_int_equal(status, 0);
	close(child->go);
	close(child->said);
}

static inline struct subject *new_subject(void)
{
	struct subject *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	return s;
}

#define CALLS 1000
#define PAGES 200

/* Not every architecture has a tracepoint of page faults. */
static inline int faults_are_traced(void)
{
	struct pem_error reason;

	return ops->can_deliver(pem_model__by_name(model, "OS::Mem::PageFault"), &reason) == 1;
}

/* Not instrumented: a sanitizer's shadow pages fault too. */
__attribute__((unused, noinline, no_sanitize("address"))) static void touch(uint8_t *from,
									    size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		*(volatile uint8_t *)(from + i * 4096) = 1;
}

/*
 * 1: ops and model are set; 0: the source can't run here, and TAP says why; -1: it should and does
 * not.
 */
static inline int load_plugin(void)
{
	const char *build = getenv("B");
	struct pem_error error = {""};
	char path[4096];
	void *handle;
	size_t i;

	snprintf(path, sizeof(path), "%s/lib/pem/source-%s.so", build ? build : "build",
		 by_module() ? "module" : "kernel");
	if (access(path, R_OK)) {
		printf("1..0 # SKIP %s was not built%s\n", path,
		       by_module() ? "" : ": clang or libbpf is missing");
		return 0;
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ops = handle ? dlsym(handle, "pem_source") : NULL;
	if (!ops) {
		print_message("# %s\n", dlerror());
		return -1;
	}
	model = pem_model__new();
	if (!model || pem_model__add_catalogue(model, &error) < 0)
		return -1;
	for (i = 0; i < pem_model__count(model); i++) {
		if (pem_model__event(model, i)->source_kind != PEM_SOURCE_TRACEPOINT)
			continue;
		if (ops->can_deliver(pem_model__event(model, i), &error) == 1)
			return 1;
	}
	printf("1..0 # SKIP %s\n", error.text);
	return 0;
}

#endif
