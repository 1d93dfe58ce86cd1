/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * calibrate.c - what one event of each kind costs on this machine, for the overhead ledger
 *
 * process-start: see start_cost.c.
 * user-log: a record of two fields into a private ring, by the inlines that stubs use, clock read included.
 * user-stat: one value added to a statistic, the same way. kernel-log, kernel-stat: what a getppid becomes dearer by when
 * the source that serves it logs its entry, or counts it. The least of several rounds: what else the machine does only adds, and
 * what is measured in a busy moment is remembered until the next boot.
 */
#include "consumer/plugins.h"
#include "consumer/session.h"
#include "util.h"

#include <pem/clock.h>
#include <pem/ring.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define ROUNDS 9
#define USER_EVENTS 20000
#define KERNEL_EVENTS 2000
#define RING_BYTES (256u << 10)
#define KEY_BYTES 384
#define NO_SOURCE "-"

static double least(const double *values, size_t count)
{
	double found = values[0];
	size_t i;

	for (i = 1; i < count; i++) {
		if (values[i] < found)
			found = values[i];
	}
	return found;
}

static double cycles_to_ns(double cycles)
{
	return cycles * 1e9 / (double)pem_clock__hz();
}

static double user_log_ns(void)
{
	uint8_t *memory = calloc(1, RING_BYTES), *record;
	struct pem_slot slot = {0};
	struct pem_writer w = {0};
	double rounds[ROUNDS];
	uint64_t start, now;
	int r, i;

	if (!memory)
		return 0;
	for (r = 0; r < ROUNDS; r++) {
		start = pem_clock();
		w.packet = (struct pem_packet *)memory;
		w.end = memory + RING_BYTES;
		w.cursor = w.end;
		for (i = 0; i < USER_EVENTS; i++) {
			now = pem_clock();
			record = pem_ring_reserve(&w, now, 24);
			if (!record) {
				w.cursor = memory + PEM_PACKET_HEADER_BYTES;
				w.last_clock = now;
				record = w.cursor;
			}
			((uint64_t *)record)[1] = (uint64_t)i;
			((uint64_t *)record)[2] = now;
			pem_ring_commit(&w, &slot, now, 16, 24);
		}
		rounds[r] = cycles_to_ns((double)(pem_clock() - start)) / USER_EVENTS;
	}
	free(memory);
	return least(rounds, ROUNDS);
}

static double user_stat_ns(void)
{
	struct pem_slot slot = {0};
	double rounds[ROUNDS];
	uint64_t start;
	int r, i;

	for (r = 0; r < ROUNDS; r++) {
		start = pem_clock();
		for (i = 0; i < USER_EVENTS; i++) {
			pem_slot_add(&slot, 1, (uint64_t)i, (uint64_t)i);
			__asm__ volatile("" : : "r"(&slot) : "memory"); /* each of them */
		}
		rounds[r] = cycles_to_ns((double)(pem_clock() - start)) / USER_EVENTS;
	}
	return least(rounds, ROUNDS);
}

static double getppid_ns(void)
{
	double rounds[ROUNDS];
	uint64_t start;
	int r, i;

	for (r = 0; r < ROUNDS; r++) {
		start = pem_clock();
		for (i = 0; i < KERNEL_EVENTS; i++)
			syscall(SYS_getppid);
		rounds[r] = cycles_to_ns((double)(pem_clock() - start)) / KERNEL_EVENTS;
	}
	return least(rounds, ROUNDS);
}

static int forget(void *arg, const char *name, struct pem_packet *packet, size_t bytes)
{
	(void)arg;
	(void)name;
	(void)packet;
	(void)bytes;
	return 0;
}

static uint64_t same_time(void *arg, uint64_t monotonic_ns)
{
	(void)arg;
	return monotonic_ns;
}

/* The event of system call entry, wherever the specs have it. */
static const struct pem_event *syscall_entry(const struct pem_model *model)
{
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		if (!strcmp(pem_model__event(model, i)->source_name, "raw_syscalls:sys_enter"))
			return pem_model__event(model, i);
	}
	return NULL;
}

/* The source that serves it here and now; NULL: none. */
static const struct pem_source_ops *kernel_source(struct pem_session *s)
{
	const struct pem_event *event = syscall_entry(s->model);
	const char *name;

	return event ? pem_session__find_plugin(s, NULL, event, &name, NULL) : NULL;
}

/* Of an entry logged, and counted; 0: it could not be measured. */
static void measure_kernel(struct pem_session *s, const struct pem_source_ops *ops, double *log_ns,
			   double *stat_ns)
{
	const struct pem_source_sink sink = {.write = forget, .clock_at = same_time};
	struct pem_source_event wanted = {
		.event = syscall_entry(s->model),
		.context = {.cpu = PEM_NO_CPU,
			    .pid = (uint32_t)getpid(),
			    .tid = (uint32_t)gettid()},
		.action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1)};
	struct pem_source_config config = {
		.size = sizeof(config), .events = &wanted, .event_count = 1};
	struct pem_source *source = NULL;
	double logged = 0, counted = 0, without;

	*log_ns = *stat_ns = 0;
	if (!ops || ops->open(&config, &source, NULL))
		return;
	without = getppid_ns();
	if (!ops->start(source, NULL)) {
		logged = getppid_ns();
		ops->set_action(source, 0, PEM_ACTION(PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 1));
		counted = getppid_ns();
	}
	ops->drain(source, &sink, 1);
	ops->close(source);
	*log_ns = logged > without ? logged - without : 0;
	*stat_ns = counted > without ? counted - without : 0;
}

/* --- remembered until the next boot or version --- */

static bool cache_path(char *path, size_t bytes, bool make)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool own = cache && cache[0] == '/';
	int length;

	if (!own && !(home && home[0] == '/'))
		return false;
	length = snprintf(path, bytes, "%s%s", own ? cache : home, own ? "" : "/.cache");
	if (length < 0 || (size_t)length + sizeof("/pem/costs") > bytes)
		return false;
	if (make)
		mkdir(path, 0700);
	strcpy(path + length, "/pem");
	if (make)
		mkdir(path, 0700);
	strcpy(path + length, "/pem/costs");
	return true;
}

/* The processor, as Linux names it: a virtual machine may move to another one while it runs. */
static void read_processor(char *name, size_t bytes)
{
	static const char *const keys[] = {"model name", "CPU part"};
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], *value;
	size_t i;

	*name = 0;
	while (f && !*name && fgets(line, sizeof(line), f)) {
		value = strchr(line, ':');
		for (i = 0; value && i < PEM_ARRAY_SIZE(keys); i++) {
			if (!strncmp(line, keys[i], strlen(keys[i])))
				pem_copy_text(name, bytes, value + 1);
		}
	}
	name[strcspn(name, "\n")] = 0;
	if (f)
		fclose(f);
}

/* What must be the same for costs to be the same: pem, boot, kernel, processor. */
static bool read_key(char *key, size_t bytes)
{
	char boot[64], processor[128];
	struct utsname system;
	bool known;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f)
		return false;
	known = fgets(boot, sizeof(boot), f) && !uname(&system);
	fclose(f);
	if (!known)
		return false;
	boot[strcspn(boot, "\n")] = 0;
	read_processor(processor, sizeof(processor));
	snprintf(key, bytes, "%s %s %.64s%s", pem_version(), boot, system.release, processor);
	return true;
}

static bool is_start_cost(double ns)
{
	return ns >= 0 && ns < 1e9;
}

static bool is_cost(double ns)
{
	return ns >= 0 && ns < 1e6;
}

static bool load_costs(struct pem_costs *costs)
{
	char path[PATH_MAX], key[KEY_BYTES], line[KEY_BYTES];
	bool found = false;
	FILE *f;

	if (!read_key(key, sizeof(key)) || !cache_path(path, sizeof(path), false))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		found = !strcmp(line, key) &&
			fscanf(f, "%lf %lf %lf %lf %lf %lf %15s", &costs->user_log_ns,
			       &costs->user_stat_ns, &costs->kernel_log_ns, &costs->kernel_stat_ns,
			       &costs->start_ns[0], &costs->start_ns[1],
			       costs->kernel_source) == 7 &&
			costs->user_log_ns > 0 && is_cost(costs->user_log_ns) &&
			is_cost(costs->user_stat_ns) && is_cost(costs->kernel_log_ns) &&
			is_cost(costs->kernel_stat_ns) && is_start_cost(costs->start_ns[0]) &&
			is_start_cost(costs->start_ns[1]);
	}
	fclose(f);
	return found;
}

/* A cache: failing to write it costs the next recording some time, nothing else. */
static void store_costs(const struct pem_costs *costs)
{
	char path[PATH_MAX], key[KEY_BYTES], text[KEY_BYTES + 128];
	char *slash;
	int n, fd;

	if (!read_key(key, sizeof(key)) || !cache_path(path, sizeof(path), true))
		return;
	n = snprintf(text, sizeof(text), "%s\n%.3f %.3f %.3f %.3f %.3f %.3f %s\n", key,
		     costs->user_log_ns, costs->user_stat_ns, costs->kernel_log_ns,
		     costs->kernel_stat_ns, costs->start_ns[0], costs->start_ns[1],
		     costs->kernel_source);
	slash = strrchr(path, '/');
	*slash = 0;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	pem_replace_file(fd, slash + 1, text, (size_t)n);
	close(fd);
}

/* To picoseconds, as the cache has them, so that what was measured and what is remembered are the same. */
static double rounded(double ns)
{
	return (double)(uint64_t)(ns * 1000 + 0.5) / 1000;
}

/* A kernel event's cost is wanted and not known, or known of another source than serves it now. */
static bool needs_kernel(const struct pem_costs *costs, bool kernel,
			 const struct pem_source_ops *ops)
{
	return kernel &&
	       (costs->kernel_log_ns <= 0 || !ops || strcmp(costs->kernel_source, ops->name) != 0);
}

const struct pem_costs *pem_session__measure(struct pem_session *s, bool kernel)
{
	const struct pem_source_ops *ops = kernel ? kernel_source(s) : NULL;
	struct pem_costs *costs = &s->costs;

	if (costs->user_log_ns > 0 && !needs_kernel(costs, kernel, ops))
		return costs;
	if (!load_costs(costs) || needs_kernel(costs, kernel, ops)) {
		memset(costs, 0, sizeof(*costs));
		pem_copy_text(costs->kernel_source, sizeof(costs->kernel_source),
			      ops ? ops->name : NO_SOURCE);
		costs->user_log_ns = rounded(user_log_ns());
		costs->user_stat_ns = rounded(user_stat_ns());
		if (kernel)
			measure_kernel(s, ops, &costs->kernel_log_ns, &costs->kernel_stat_ns);
		costs->kernel_log_ns = rounded(costs->kernel_log_ns);
		costs->kernel_stat_ns = rounded(costs->kernel_stat_ns);
		store_costs(costs);
	}
	return costs;
}

static uint32_t add_cost(struct pem_trace_cost *costs, uint32_t count, uint32_t max,
			 const char *kind, double ns)
{
	if (ns <= 0 || count >= max)
		return count;
	memset(&costs[count], 0, sizeof(costs[count]));
	pem_copy_text(costs[count].kind, sizeof(costs[count].kind), kind);
	costs[count].ns_each = ns;
	return count + 1;
}

bool pem_session__wants_kernel(const struct pem_session *s)
{
	size_t i;

	for (i = 0; i < s->wish_count; i++) {
		if ((s->wishes[i].want_log || s->wishes[i].want_statistic) &&
		    pem_event__is_of_kernel(s->wishes[i].event))
			return true;
	}
	return false;
}

void pem_session__calibrate(struct pem_session *s, struct pem_trace_info *info)
{
	const uint32_t max = PEM_ARRAY_SIZE(info->costs);
	bool kernel = pem_session__wants_kernel(s);
	const struct pem_costs *costs = pem_session__measure(s, kernel);

	/* Once for all: a command may come to what is attached to already. */
	info->cost_count = add_cost(info->costs, 0, max, "user-log", costs->user_log_ns);
	if (kernel)
		info->cost_count = add_cost(info->costs, info->cost_count, max, "kernel-log",
					    costs->kernel_log_ns);
}

void pem_session__calibrate_start(struct pem_session *s, struct pem_trace_info *info, bool adapters)
{
	double *start_ns = &s->costs.start_ns[adapters];

	if (!*start_ns) {
		*start_ns = rounded(pem_start_ns(adapters));
		store_costs(&s->costs);
	}
	info->cost_count = add_cost(info->costs, info->cost_count, PEM_ARRAY_SIZE(info->costs),
				    "process-start", *start_ns);
}

void pem_session__add_stat_costs(struct pem_session *s, struct pem_trace_info *info, uint64_t user,
				 uint64_t kernel)
{
	const uint32_t max = PEM_ARRAY_SIZE(info->costs);
	uint32_t count = info->cost_count;

	if (user)
		count = add_cost(info->costs, count, max, "user-stat", s->costs.user_stat_ns);
	if (user && count > info->cost_count)
		info->costs[count - 1].count = user;
	info->cost_count = count;
	if (kernel)
		count = add_cost(info->costs, count, max, "kernel-stat", s->costs.kernel_stat_ns);
	if (kernel && count > info->cost_count)
		info->costs[count - 1].count = kernel;
	info->cost_count = count;
}

int pem_session__costs(struct pem_session *session, struct pem_trace_cost *out, uint32_t max)
{
	struct pem_costs costs;
	uint32_t count;

	pem_session__lock(session);
	costs = *pem_session__measure(session, true);
	pem_session__unlock(session);
	count = add_cost(out, 0, max, "user-log", costs.user_log_ns);
	count = add_cost(out, count, max, "user-stat", costs.user_stat_ns);
	count = add_cost(out, count, max, "kernel-log", costs.kernel_log_ns);
	return (int)add_cost(out, count, max, "kernel-stat", costs.kernel_stat_ns);
}
