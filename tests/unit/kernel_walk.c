/* SPDX-License-Identifier: MIT */
/*
 * kernel_walk.c - every tracepoint event of the specs against a kernel: it is there, with those
 * parameters and members
 *
 * The running kernel's tracepoints are walked, and all programs loaded into it. PEM_WALK_BTF=PATH
 * walks another kernel instead, by its types alone: a folder like /sys/kernel/btf, or a file of BTF
 * or with a section .BTF; PEM_WALK_KERNEL=6.1 says its version, so that the specs' kernel='' are
 * checked too. By hand:
 *
 *	B=build PEM_WALK_BTF=btf-6.1 PEM_WALK_KERNEL=6.1 build/tests/kernel_walk
 */
#ifdef PEM_TEST_LIBBPF
#include "kernel_fixture.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "libpem/sources/kernel/kernel.h"

#define TRACEFS "/sys/kernel/tracing/events"
#define STEPS_MAX 3000 /* of the verifier, for one program; it is 2600 where a path is walked */
#define STEPS_JOINT_MAX 8500 /* for one of several events; Linux 7.3 follows most, 7800 */
#define POISON 195896080 /* what libbpf calls where a member was not found: 0xbad2310 */

static const char *path = PEM_KERNEL_BTF_FOLDER;
static bool is_other; /* not the running kernel */
static unsigned version; /* 6.12 is 6012; 0: unknown */
static struct pem_kernel_btf *kernel;
static unsigned failures;

/*
 * Tracepoints that a kernel has or not by its configuration: their absence is no slip of the pen.
 */
static const struct {
	const char *tracepoint;
	const char *option;
} optional[] = {
	{"sched:sched_stat_wait", "CONFIG_SCHEDSTATS"},
	{"sched:sched_stat_sleep", "CONFIG_SCHEDSTATS"},
	{"sched:sched_stat_iowait", "CONFIG_SCHEDSTATS"},
	{"sched:sched_stat_blocked", "CONFIG_SCHEDSTATS"},
};

static void complain(const char *event, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void complain(const char *event, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print_message("# %s: %s\n", event, text);
	failures++;
}

/* Is the kernel within an alternative's range, such as "5.18-6.7"? Yes if either is unknown. */
static bool in_range(const char *range)
{
	const char *to = range ? strchr(range, '-') : NULL;
	unsigned major, minor;

	if (!range || !to || !version)
		return true;
	if (range != to && sscanf(range, "%u.%u", &major, &minor) == 2 &&
	    version < major * 1000 + minor)
		return false;
	return sscanf(to + 1, "%u.%u", &major, &minor) != 2 || version <= major * 1000 + minor;
}

/* Is an option of the running kernel's configuration set? No, if nobody can tell. */
static bool is_configured(const char *option)
{
	FILE *f = popen(
		"zcat /proc/config.gz 2>/dev/null || cat /boot/config-$(uname -r) 2>/dev/null",
		"r");
	size_t bytes = strlen(option);
	bool found = false;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		found |= !strncmp(line, option, bytes) && line[bytes] == '=';
	if (f)
		pclose(f);
	return found;
}

/* Its system is there, and it is not, and nothing says that it may be so. */
static bool looks_misspelt(const struct pem_kernel_alternative *alternative)
{
	const char *colon = strchr(alternative->tracepoint, ':');
	char folder[256];
	size_t i;

	if (is_other || !colon || !in_range(alternative->kernel))
		return false;
	for (i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
		if (!strcmp(optional[i].tracepoint, alternative->tracepoint))
			return is_configured(optional[i].option);
	}
	snprintf(folder, sizeof(folder), TRACEFS "/%.*s", (int)(colon - alternative->tracepoint),
		 alternative->tracepoint);
	return access(folder, F_OK) == 0;
}

/* None of the event's tracepoints is in this kernel. */
static void walk_absent(const struct pem_kernel_event *event)
{
	unsigned i;

	for (i = 0; i < event->alternative_count; i++) {
		if (looks_misspelt(&event->alternatives[i])) {
			complain(event->name,
				 "this kernel has the tracepoints of its system, but no %s: is it "
				 "misspelt, or is a kernel='' missing?",
				 event->alternatives[i].tracepoint);
			return;
		}
	}
	print_message("# absent: %s (%s)\n", event->name, event->alternatives[0].tracepoint);
}

/*
 * The alternative that BPF takes must be equal, not only fit; and the module compiles only those
 * for this kernel, so one of these must be equal.
 */
static void walk_present(const struct pem_kernel_event *event)
{
	const struct pem_kernel_alternative *alternative;
	char has[400], wanted[400] = "no alternative is for this kernel";
	const char *tracepoint = NULL;
	enum pem_kernel_match match;
	unsigned i;

	for (i = 0; i < event->alternative_count; i++) {
		alternative = &event->alternatives[i];
		match = pem_kernel_btf__match(kernel, alternative->tracepoint,
					      alternative->arguments);
		if (match != PEM_KERNEL_ABSENT)
			tracepoint = alternative->tracepoint;
		if (!in_range(alternative->kernel))
			continue;
		if (match == PEM_KERNEL_EQUAL)
			return;
		snprintf(wanted, sizeof(wanted), "the last alternative for it says (%s)",
			 alternative->arguments);
	}
	pem_kernel_btf__describe(kernel, tracepoint, has, sizeof(has));
	complain(event->name, "%s has (%s); %s", tracepoint, has, wanted);
}

static bool is_present(const struct pem_kernel_event *event)
{
	unsigned i;

	for (i = 0; i < event->alternative_count; i++) {
		if (pem_kernel_btf__home(kernel, event->alternatives[i].tracepoint))
			return true;
	}
	return false;
}

static void every_tracepoint_has_the_parameters_of_the_specs(void **state)
{
	const struct pem_kernel_event *event;
	unsigned i, present = 0, absent = 0;

	(void)state;
	failures = 0;
	for (i = 0; (event = pem_kernel__event(i)); i++) {
		if (!event->id)
			continue;
		if (is_present(event)) {
			present++;
			walk_present(event);
		} else {
			absent++;
			walk_absent(event);
		}
	}
	print_message("# %u tracepoint events are here, %u are not\n", present, absent);
	assert_true(present > 0);
	assert_int_equal(failures, 0);
}

/* --- members --- */

/* What libbpf said of the relocation under way, and of the first that failed in each program. */
static char relocation[512];
static unsigned relocations;
static char lost[PEM_KRING_EVENTS_MAX][200];

static int hear(enum libbpf_print_level level, const char *format, va_list args)
{
	const struct pem_kernel_event *event;
	char text[1024], program[80];
	const char *what;
	unsigned i, j;

	(void)level;
	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	if (strstr(text, ": relo #") && strchr(text, '<')) {
		snprintf(relocation, sizeof(relocation), "%.500s", text);
		relocations++;
	}
	if (!strstr(text, "substituting insn") ||
	    sscanf(relocation, "libbpf: prog '%79[^']'", program) != 1)
		return 0;
	what = strchr(relocation, '<');
	for (i = 0; (event = pem_kernel__event(i)); i++) {
		for (j = 0; j < event->alternative_count; j++) {
			if (!strcmp(event->alternatives[j].program, program) && !lost[i][0])
				snprintf(lost[i], sizeof(lost[i]), "%.190s", what);
		}
	}
	return 0;
}

/* Let libbpf relocate what BPF would take here, and nothing else. */
static struct bpf_object *relocate(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "pem_walk");
	struct bpf_object *object;
	struct bpf_program *program;
	const struct pem_kernel_event *event;
	struct stat status;
	char file[4096];
	unsigned i;
	int chosen;

	snprintf(file, sizeof(file), "%s%s", path,
		 !stat(path, &status) && S_ISDIR(status.st_mode) ? "/vmlinux" : "");
	options.btf_custom_path = is_other ? file : NULL;
	object = bpf_object__open_mem(
		pem_kernel_object, (size_t)(pem_kernel_object_end - pem_kernel_object), &options);
	assert_non_null(object);
	bpf_object__for_each_program(program, object) bpf_program__set_autoload(program, false);
	for (i = 0; (event = pem_kernel__event(i)); i++) {
		chosen = pem_kernel__choose_in(kernel, event, 0, NULL);
		if (chosen < 0 ||
		    strcmp(pem_kernel_btf__home(kernel, event->alternatives[chosen].tracepoint),
			   "vmlinux") != 0)
			continue;
		program = bpf_object__find_program_by_name(object,
							   event->alternatives[chosen].program);
		assert_non_null(program);
		bpf_program__set_autoload(program, true);
	}
	/* The first to be loaded can't be: all are relocated by then, and none is meant to run. */
	bpf_object__for_each_program(program, object)
	{
		if (bpf_program__autoload(program)) {
			bpf_program__set_type(program, BPF_PROG_TYPE_UNSPEC);
			break;
		}
	}
	assert_int_not_equal(bpf_object__load(object), 0);
	return object;
}

static bool is_poisoned(const struct bpf_program *program)
{
	const struct bpf_insn *insns = bpf_program__insns(program);
	size_t i, count = bpf_program__insn_cnt(program);

	for (i = 0; i < count; i++) {
		if (insns[i].code == (BPF_JMP | BPF_CALL) && insns[i].imm == POISON)
			return true;
	}
	return false;
}

static void every_member_is_there(void **state)
{
	libbpf_print_fn_t before = libbpf_set_print(hear);
	const struct pem_kernel_event *event;
	const struct bpf_program *program;
	struct bpf_object *object;
	unsigned i, count = 0;
	int chosen;

	(void)state;
	failures = 0;
	object = relocate();
	for (i = 0; (event = pem_kernel__event(i)); i++) {
		chosen = pem_kernel__choose_in(kernel, event, 0, NULL);
		if (chosen < 0)
			continue;
		program = bpf_object__find_program_by_name(object,
							   event->alternatives[chosen].program);
		if (!program || !bpf_program__autoload(program))
			continue;
		count++;
		if (is_poisoned(program))
			complain(event->name ? event->name : "context",
				 "a member is not in this kernel: %s", lost[i]);
	}
	bpf_object__close(object);
	libbpf_set_print(before);
	print_message("# %u programs relocated, at %u places\n", count, relocations);
	assert_true(count > 0 && relocations > count);
	assert_int_equal(failures, 0);
}

/* --- loading --- */

static void on_refusal(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	print_message("# %s\n", text);
}

/*
 * How much the kernel verified: nearly all of it is what programs have in common, so that it is to
 * be paid some 300 times.
 */
static void check_steps(const struct bpf_object *object)
{
	struct bpf_program *program;
	struct bpf_prog_info info;
	uint32_t bytes, most = 0, limit;
	int fd;

	bpf_object__for_each_program(program, object)
	{
		fd = bpf_program__fd(program);
		if (fd < 0)
			continue;
		memset(&info, 0, sizeof(info));
		bytes = sizeof(info);
		assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &bytes), 0);
		/* 0: a kernel before 5.16 does not say */
		limit = strncmp(bpf_program__name(program), "pem_joint_", 10) ? STEPS_MAX
									      : STEPS_JOINT_MAX;
		if (info.verified_insns > limit)
			complain(bpf_program__name(program),
				 "the verifier follows %u instructions: a fork too many?",
				 info.verified_insns);
		most = info.verified_insns > most ? info.verified_insns : most;
	}
	print_message("# the verifier follows %u instructions of a program at most\n", most);
}

static void every_program_loads_and_attaches(void **state)
{
	struct subject *s = new_subject();
	struct pem_source_config config = {.size = sizeof(config), .log = on_refusal};
	struct pem_error error = {""};
	struct pem_statistic value = {.size = sizeof(value)};
	size_t i;
	int rc;

	(void)state;
	failures = 0;
	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);

		if (event->source_kind == PEM_SOURCE_TRACEPOINT &&
		    ops->can_deliver(event, &error) > 0)
			add_event(s, event->name, 0, NULL);
	}
	config.events = s->events;
	config.event_count = s->count;
	config.buffer_bytes = 65536;
	rc = ops->open(&config, &s->source, &error);
	if (!rc)
		rc = ops->start(s->source, &error);
	if (rc)
		print_message("# %s\n", error.text);
	assert_int_equal(rc, 0);
	for (i = 0; i < s->count; i++) {
		rc = ops->read_statistic(s->source, i, &value);
		if (rc)
			complain(s->events[i].event->name, "can't be had: %s", strerror(-rc));
	}
	print_message("# %zu programs run in this kernel\n", s->count);
	check_steps(s->source->object);
	close_subject(s);
	assert_int_equal(failures, 0);
}

static unsigned version_of(const char *release)
{
	unsigned major, minor;

	return sscanf(release, "%u.%u", &major, &minor) == 2 ? major * 1000 + minor : 0;
}

int main(void)
{
	const struct CMUnitTest by_types[] = {
		cmocka_unit_test(every_tracepoint_has_the_parameters_of_the_specs),
		cmocka_unit_test(every_member_is_there),
	};
	const struct CMUnitTest here[] = {
		cmocka_unit_test(every_tracepoint_has_the_parameters_of_the_specs),
		cmocka_unit_test(every_member_is_there),
		cmocka_unit_test(every_program_loads_and_attaches),
	};
	const char *release = getenv("PEM_WALK_KERNEL");
	struct utsname name;
	int rc;

	if (getenv("PEM_WALK_BTF")) {
		path = getenv("PEM_WALK_BTF");
		is_other = true;
	} else if (!uname(&name) && !release) {
		release = name.release;
	}
	version = release ? version_of(release) : 0;
	rc = load_plugin();
	if (rc <= 0)
		return -rc;
	kernel = pem_kernel_btf__open(path);
	if (!kernel) {
		print_message("# %s: %s\n", path, strerror(errno));
		return 1;
	}
	rc = is_other ? cmocka_run_group_tests(by_types, NULL, NULL)
		      : cmocka_run_group_tests(here, NULL, NULL);
	pem_kernel_btf__close(kernel);
	return rc;
}
#else
#include <stdio.h>

int main(void)
{
	printf("1..0 # SKIP the kernel source was not built: clang or libbpf is missing\n");
	return 0;
}
#endif
