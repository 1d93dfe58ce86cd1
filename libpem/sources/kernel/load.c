/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * load.c - the BPF object: opened, sized, loaded, attached, stopped
 *
 * libbpf prints through one callback for the whole process. During a call of libbpf its text is
 * collected per thread. The text goes to the session's log, and its last lines go into the error.
 */
#include "kernel.h"
#include "call_kinds.h"

#include <pem/kprobe.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING_BYTES_DEFAULT (4u << 20)
#define RING_BYTES_MIN (2 * PEM_KRING_SLACK_BYTES)
#define RING_BYTES_MAX (256u << 20)
#define GATE_PROCESSES_MAX 8192u /* processes whose gates are known, the last ones */
/* Of all CPUs together, unless the session asks for more. */
#define RINGS_BYTES_DEFAULT_MAX (256u << 20)
#define LAST_WORDS_BYTES 400
#define PROGRAM_BYTES 80
/* Maximum of refused programs. A kernel that refuses more is not usable. */
#define REFUSED_MAX 32

/* The text of libbpf during the current call in this thread. */
struct said {
	const struct pem_source *source;
	char last[LAST_WORDS_BYTES]; /* the end of the text */
	/* The program that failed to load. "": there was another error. */
	char program[PROGRAM_BYTES];
};
static __thread struct said *listening __attribute__((tls_model("initial-exec")));

/* Keep the last lines of a text. In a verifier's log they tell what it refused. */
static void keep_last(struct said *said, const char *text)
{
	static const char end_mark[] = "-- END PROG LOAD LOG";
	const char *end = strstr(text, end_mark);

	if (!end)
		end = text + strlen(text);
	else if (strstr(text, "BEGIN PROG LOAD LOG") == NULL)
		return;
	pem_kernel__keep_last(said->last, sizeof(said->last), text, end);
}

/* libbpf has one print function for the whole process, so sessions in two threads take turns. */
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

static int hear(enum libbpf_print_level level, const char *format, va_list args)
{
	char *text, *newline;

	if (!listening || level != LIBBPF_WARN || vasprintf(&text, format, args) < 0)
		return 0;
	sscanf(text, "libbpf: prog '%79[^']': failed to load", listening->program);
	/* Text after the verifier's log holds only consequences. */
	if (!strstr(listening->last, "processed"))
		keep_last(listening, text);
	newline = strchr(text, '\n');
	if (newline)
		*newline = '\0';
	pem_source__log(listening->source, PEM_LOG_WARNING, "kernel: %s", text);
	free(text);
	return 0;
}

static uint32_t ring_bytes_for(const struct pem_source *source)
{
	uint32_t want = source->buffer_bytes, bytes = RING_BYTES_MIN;

	if (!want) {
		want = RINGS_BYTES_DEFAULT_MAX / source->common.cpu_count;
		want = want > RING_BYTES_DEFAULT ? RING_BYTES_DEFAULT : want;
		want = want < RING_BYTES_DEFAULT / 16 ? RING_BYTES_DEFAULT / 16 : want;
	}
	if (want > RING_BYTES_MAX)
		want = RING_BYTES_MAX;
	while (bytes < want)
		bytes <<= 1;
	return bytes;
}

static bool is_context(const struct pem_source *source, unsigned index)
{
	return (pem_kernel__event(index)->context && source->root) ||
	       ((int)index == source->context_index && !source->common.beside);
}

/* Load no program of the event until one is chosen. */
static int skip_event(struct pem_source *source, unsigned index, struct pem_error *error)
{
	const struct pem_kernel_event *event = pem_kernel__event(index);
	struct bpf_program *program;
	unsigned i;

	source->programs[index].program = NULL;
	source->programs[index].is_joined = false;
	for (i = 0; i < event->alternative_count; i++) {
		program = bpf_object__find_program_by_name(source->object,
							   event->alternatives[i].program);
		if (!program)
			return pem_error__set(error, -EINVAL,
					      "the BPF object has no program %s: build pem anew",
					      event->alternatives[i].program);
		bpf_program__set_autoload(program, false);
	}
	return 0;
}

/*
 * Choose the program of an event's alternative. It will be loaded and attached to its tracepoint.
 */
static int choose_program(struct pem_source *source, unsigned index, unsigned alternative,
			  struct pem_error *error)
{
	const struct pem_kernel_alternative *a =
		&pem_kernel__event(index)->alternatives[alternative];
	struct pem_kernel_program *chosen = &source->programs[index];
	const char *colon = strchr(a->tracepoint, ':');
	int rc;

	chosen->alternative = (uint8_t)alternative;
	chosen->program = bpf_object__find_program_by_name(source->object, a->program);
	bpf_program__set_autoload(chosen->program, true);
	rc = bpf_program__set_attach_target(chosen->program, 0, colon ? colon + 1 : a->tracepoint);
	return rc ? pem_error__set(error, rc, "the tracepoint %s can't be looked up: %s",
				   a->tracepoint, strerror(-rc))
		  : 0;
}

/* Choose the programs that are needed and available. Other programs are not loaded. */
static int choose_programs(struct pem_source *source, struct pem_error *error)
{
	struct bpf_program *template =
		bpf_object__find_program_by_name(source->object, PEM_KPROBE_PROGRAM);
	struct pem_source_demand *demand;
	struct pem_error reason;
	int rc, alternative;
	unsigned i;

	if (!template)
		return pem_error__set(error, -EINVAL,
				      "the BPF object has no template of programs: build pem anew");
	bpf_program__set_autoload(template, source->probe_count != 0);
	for (i = 0; i < pem_kernel__event_count(); i++) {
		rc = skip_event(source, i, error);
		if (rc)
			return rc;
		demand = pem_source__demand_of(source, i);
		if (!demand && !is_context(source, i))
			continue;
		alternative = pem_kernel__choose(i, source->programs[i].refused, &reason);
		if (alternative >= 0) {
			rc = choose_program(source, i, (unsigned)alternative, error);
			if (rc)
				return rc;
			continue;
		}
		if (is_context(source, i))
			return pem_error__set(error, -ENOTSUP, "%s", reason.text);
		demand->error = -ENOTSUP;
		if (source->programs[i].refused) /* this was logged already */
			continue;
		pem_source__log(source, PEM_LOG_WARNING, "%s: %s", demand->event->name,
				reason.text);
	}
	return 0;
}

/*
 * The kernel refused one program. Choose the event's next alternative, or give the event up. False:
 * that would not help.
 */
static bool go_on_without(struct pem_source *source, const struct said *said)
{
	const struct pem_kernel_event *event;
	struct pem_kernel_program *chosen;
	unsigned i;

	if (pem_source__refuse_joint(source, said->program))
		return true;
	for (i = 0; said->program[0] && i < pem_kernel__event_count(); i++) {
		event = pem_kernel__event(i);
		chosen = &source->programs[i];
		if (!chosen->program ||
		    strcmp(event->alternatives[chosen->alternative].program, said->program))
			continue;
		chosen->refused |= 1u << chosen->alternative;
		pem_source__log(source, PEM_LOG_WARNING,
				"%s: the kernel refuses the program %s: %s",
				event->name ? event->name : "kernel", said->program,
				pem_kernel__refusal(said->last));
		if (chosen->refused != (1u << event->alternative_count) - 1)
			return true;
		if (is_context(source, i))
			return false;
		pem_source__demand_of(source, i)->error = -ENOTSUP;
		pem_source__rejoin(source, i);
		return true;
	}
	return false;
}

/*
 * Does the event's chosen tracepoint have an argument that some kernels do not let programs load?
 */
static bool takes_void(const struct pem_source *source, unsigned index)
{
	const struct pem_kernel_event *event = pem_kernel__event(index);
	const char *arguments = event->alternatives[source->programs[index].alternative].arguments;

	return arguments && strstr(arguments, "const void *");
}

/* Set a bit for each system call of this machine that takes a descriptor or a path. */
static void name_calls(struct pem_kconfig *config)
{
	static const struct pem_label calls[] = {
#include "system_calls.h"
	};
	static const char *const with_address[PEM_KCALLS_ADDRESS] = {
		[PEM_KCALL_CONNECT] = "connect",
		[PEM_KCALL_SENDTO] = "sendto",
		[PEM_KCALL_SENDMSG] = "sendmsg",
	};
	size_t i, k;

	for (i = 0; i < PEM_ARRAY_SIZE(calls); i++) {
		uint64_t bit = 1ull << calls[i].value % 64;
		int argument = pem_call__path_argument(calls[i].name);

		if (calls[i].value >= PEM_KCALLS_MAX)
			continue;
		for (k = 0; k < PEM_KCALLS_ADDRESS; k++)
			if (!strcmp(calls[i].name, with_address[k]))
				config->address_call[k] = calls[i].value;
		if (pem_call__takes_descriptor(calls[i].name))
			config->descriptor_calls[calls[i].value / 64] |= bit;
		if (argument >= 0)
			config->path_calls[argument][calls[i].value / 64] |= bit;
	}
}

/* Make ring size, target kind and predicates constants of the programs. */
static int set_constants(const struct pem_source *source, uint32_t ring_bytes)
{
	struct bpf_map *constants = bpf_object__find_map_by_name(source->object, ".rodata");
	struct pem_kconfig *config = calloc(1, sizeof(*config));
	const struct pem_source_demand *demand;
	uint32_t used = 0;
	int rc = -EINVAL;
	size_t i;

	if (!config)
		return -ENOMEM;
	config->ring_mask = ring_bytes - 1;
	config->tree = source->root ? source->no_follow ? PEM_KTREE_ALONE : PEM_KTREE_FOLLOW : 0;
	name_calls(config);
	config->no_reading = pem_kernel__no_reading();
	config->by_process = source->by_process;
	config->session_id = source->session_id;
	pem_source__name_libraries(config, source->library_path);
	for (i = 0; i < pem_kernel__event_count(); i++)
		config->joined[i] = source->programs[i].is_joined;
	for (i = 0; i < source->common.demand_count; i++) {
		demand = &source->common.demands[i];
		if (demand->error || demand->index >= pem_kernel__event_count())
			continue;
		if (!config->loads_void && takes_void(source, demand->index))
			config->loads_void = pem_kernel__loads_void();
		config->gates[demand->index] = demand->gates;
		config->has_gates |= demand->gates != 0;
		if (!demand->test_count)
			continue;
		config->predicate[demand->index].first = (uint16_t)used;
		config->predicate[demand->index].count = (uint16_t)demand->test_count;
		memcpy(&config->test[used], demand->tests,
		       demand->test_count * sizeof(*demand->tests));
		/* At most PEM_KTESTS_MAX, which take_demand has checked. */
		used += demand->test_count;
	}
	if (constants)
		rc = bpf_map__set_initial_value(constants, config, sizeof(*config));
	free(config);
	return rc;
}

/* How many entries the map pem_processes has. Each takes 24 bytes for each CPU: 24 MB in all. */
static uint32_t process_entries(const struct pem_source *source)
{
	uint32_t entries = (1u << 20) / source->common.cpu_count;

	if (!source->by_process)
		return 1;
	entries = entries > PEM_KPROCESSES_MAX ? PEM_KPROCESSES_MAX : entries;
	return entries < PEM_KPROCESSES_MIN ? PEM_KPROCESSES_MIN : entries;
}

static bool has_gates(const struct pem_source *source)
{
	size_t i;

	for (i = 0; i < source->common.demand_count; i++) {
		if (source->common.demands[i].gates)
			return true;
	}
	return false;
}

static int size_maps(struct pem_source *source, uint32_t ring_bytes)
{
	struct bpf_map *rings = bpf_object__find_map_by_name(source->object, "pem_rings");
	struct bpf_map *distributions =
		bpf_object__find_map_by_name(source->object, "pem_distributions");
	struct bpf_map *processes = bpf_object__find_map_by_name(source->object, "pem_processes");
	struct bpf_map *gates = bpf_object__find_map_by_name(source->object, "pem_gate_memory");
	int rc;

	if (!rings || !distributions || !processes || !gates)
		return -EINVAL;
	rc = bpf_map__set_max_entries(processes, process_entries(source));
	if (!rc)
		rc = bpf_map__set_max_entries(gates, has_gates(source) ? GATE_PROCESSES_MAX : 1);
	if (rc)
		return rc;
	rc = set_constants(source, ring_bytes);
	if (rc)
		return rc;
	rc = bpf_map__set_value_size(rings,
				     PEM_KRING_DATA_OFFSET + ring_bytes + PEM_KRING_SLACK_BYTES);
	if (!rc)
		rc = bpf_map__set_max_entries(rings, source->common.cpu_count);
	return rc ? rc
		  : bpf_map__set_max_entries(distributions,
					     source->common.cpu_count * PEM_DISTRIBUTION_COUNT);
}

/* Map a whole array map. It must hold at least bytes_wanted. */
static int map_array(const struct pem_source *source, const char *name, size_t bytes_wanted,
		     void **mapping, size_t *mapping_bytes)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(source->object, name);
	size_t bytes, page = (size_t)sysconf(_SC_PAGESIZE);
	void *at;

	if (!map)
		return -EINVAL;
	bytes = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	if (bytes < bytes_wanted)
		return -EINVAL;
	bytes = (bytes + page - 1) / page * page;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (at == MAP_FAILED)
		return -errno;
	*mapping = at;
	*mapping_bytes = bytes;
	return 0;
}

static int map_memory(struct pem_source *source, uint32_t ring_bytes)
{
	void *at;
	int rc;

	rc = map_array(source, ".bss", sizeof(*source->control), &at, &source->control_bytes);
	if (rc)
		return rc;
	source->control = at;
	source->ring_mask = ring_bytes - 1;
	source->ring_stride = PEM_KRING_DATA_OFFSET + ring_bytes + PEM_KRING_SLACK_BYTES;
	rc = map_array(source, "pem_rings", source->ring_stride * source->common.cpu_count, &at,
		       &source->rings_bytes);
	if (rc)
		return rc;
	source->rings = at;
	rc = map_array(source, "pem_distributions",
		       source->common.cpu_count * PEM_DISTRIBUTION_COUNT *
			       sizeof(*source->distributions),
		       &at, &source->distributions_bytes);
	if (!rc)
		source->distributions = at;
	return rc;
}

int pem_source__add_target(const struct pem_source *source, pid_t pid)
{
	struct bpf_map *targets = bpf_object__find_map_by_name(source->object, "pem_targets");
	uint32_t key = (uint32_t)pid, one = 1;

	if (!targets)
		return -EINVAL;
	return bpf_map__update_elem(targets, &key, sizeof(key), &one, sizeof(one), BPF_ANY);
}

int pem_source__set_gates(struct pem_source *source, pid_t pid, uint64_t address)
{
	struct bpf_map *memory = bpf_object__find_map_by_name(source->object, "pem_gate_memory");
	uint32_t key = (uint32_t)pid;

	if (!memory || !has_gates(source))
		return 0;
	return bpf_map__update_elem(memory, &key, sizeof(key), &address, sizeof(address), BPF_ANY);
}

static int load_once(struct pem_source *source, uint32_t ring_bytes, struct pem_error *error)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "pem");
	int rc;

	source->object = bpf_object__open_mem(
		pem_kernel_object, (size_t)(pem_kernel_object_end - pem_kernel_object), &options);
	if (!source->object)
		return -errno;
	rc = choose_programs(source, error);
	if (!rc)
		rc = pem_source__join(source, error);
	if (rc)
		return rc;
	rc = size_maps(source, ring_bytes);
	if (rc)
		return rc;
	rc = bpf_object__load(source->object);
	if (rc)
		return rc;
	rc = map_memory(source, ring_bytes);
	if (!rc)
		pem_source__load_probes(source);
	return rc || !source->root ? rc : pem_source__add_target(source, source->root);
}

int pem_source__load(struct pem_source *source, struct pem_error *error)
{
	uint32_t ring_bytes = ring_bytes_for(source);
	struct said said = {.source = source};
	libbpf_print_fn_t before;
	unsigned refused = 0;
	int rc;

	if (error)
		error->text[0] = '\0';
	pthread_mutex_lock(&print_lock);
	listening = &said;
	before = libbpf_set_print(hear);
	for (;;) {
		said.last[0] = said.program[0] = '\0';
		rc = load_once(source, ring_bytes, error);
		if (!rc)
			break;
		if (said.program[0]) {
			if (rc == -EPERM || ++refused > REFUSED_MAX ||
			    !go_on_without(source, &said))
				break;
		} else {
			/*
			 * Kernels differ in how big an array's element may be, machines in memory.
			 */
			if ((rc != -E2BIG && rc != -ENOMEM) || ring_bytes / 2 < RING_BYTES_MIN)
				break;
			ring_bytes >>= 1;
			pem_source__log(source, PEM_LOG_INFO,
					"kernel: no buffers of %u bytes per CPU (%s), trying %u",
					2 * ring_bytes, strerror(-rc), ring_bytes);
		}
		pem_source__unload(source);
	}
	libbpf_set_print(before);
	listening = NULL;
	pthread_mutex_unlock(&print_lock);
	if (rc && error && !error->text[0])
		pem_error__set(error, rc, "the kernel refuses the BPF programs (%s)%s%s",
			       strerror(-rc), said.last[0] ? ": " : "", said.last);
	if (rc)
		pem_source__unload(source);
	return rc;
}

static int attach_one(struct pem_source *source, unsigned i, struct pem_error *error)
{
	const struct pem_kernel_event *event = pem_kernel__event(i);
	const char *tracepoint = event->alternatives[source->programs[i].alternative].tracepoint;
	struct pem_source_demand *demand = pem_source__demand_of(source, i);
	int rc;

	source->programs[i].link = bpf_program__attach(source->programs[i].program);
	if (source->programs[i].link)
		return 0;
	rc = -errno;
	if (is_context(source, i))
		return pem_error__set(error, rc, "can't attach to the tracepoint %s: %s",
				      tracepoint, strerror(-rc));
	if (demand)
		demand->error = rc;
	pem_source__fail_joined(source, i, rc);
	pem_source__log(source, PEM_LOG_WARNING, "%s: can't attach to the tracepoint %s: %s",
			event->name ? event->name : "kernel", tracepoint, strerror(-rc));
	return 0;
}

int pem_source__attach(struct pem_source *source, struct pem_error *error)
{
	struct said said = {.source = source};
	libbpf_print_fn_t before;
	int rc = 0, context;
	unsigned i;

	pthread_mutex_lock(&print_lock);
	listening = &said;
	before = libbpf_set_print(hear);
	/*
	 * Programs that track the target are attached first, so that the others know the target
	 * from their first event on.
	 */
	for (context = 1; context >= 0 && !rc; context--) {
		for (i = 0; i < pem_kernel__event_count() && !rc; i++) {
			if (source->programs[i].program && pem_kernel__event(i)->context == context)
				rc = attach_one(source, i, error);
		}
	}
	if (!rc)
		pem_source__attach_probes(source);
	libbpf_set_print(before);
	listening = NULL;
	pthread_mutex_unlock(&print_lock);
	if (rc)
		pem_source__detach(source);
	return rc;
}

static uint64_t misses_of(const struct bpf_program *program)
{
	struct bpf_prog_info info;
	uint32_t bytes = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes))
		return 0;
	return info.recursion_misses;
}

void pem_source__detach(struct pem_source *source)
{
	const struct timespec grace = {.tv_nsec = 20000000};
	bool any = pem_source__detach_probes(source);
	unsigned i;

	for (i = 0; i < PEM_KRING_EVENTS_MAX; i++) {
		any |= source->programs[i].link != NULL;
		bpf_link__destroy(source->programs[i].link);
		source->programs[i].link = NULL;
	}
	if (!any)
		return;
	/*
	 * Wait for programs that still run. They run in RCU read sections, and this command waits
	 * until these end.
	 */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		nanosleep(&grace, NULL);
	for (i = 0; i < PEM_KRING_EVENTS_MAX; i++) {
		if (source->programs[i].program)
			source->programs[i].misses = misses_of(source->programs[i].program);
	}
	pem_source__share_misses(source);
	pem_source__count_probe_misses(source);
}

void pem_source__unload(struct pem_source *source)
{
	unsigned i;

	pem_source__unload_probes(source);
	if (source->rings)
		munmap(source->rings, source->rings_bytes);
	if (source->distributions)
		munmap(source->distributions, source->distributions_bytes);
	if (source->control)
		munmap(source->control, source->control_bytes);
	bpf_object__close(source->object);
	source->rings = NULL;
	source->distributions = NULL;
	source->control = NULL;
	source->object = NULL;
	for (i = 0; i < PEM_KRING_EVENTS_MAX; i++)
		source->programs[i].program = NULL;
}
