/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * attach.c - a session's probes: their indexes, their programs loaded, attached and detached
 *
 * The template's instructions are read from the loaded object, with the session's maps in them.
 * assemble.c completes a copy for each probe. A static probe has one copy for each set of argument
 * locations. All programs of a probe count in one cell. They never interrupt each other, because
 * they are at different places of one code.
 */
#define _GNU_SOURCE
#include "assemble.h"
#include "attach.h"
#include "util.h"

#include <pem/kprobe.h>
#include <pem/record_layout.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENOTSUPP 524 /* an errno of the kernel only, which its tracing programs return */
#define LOG_BYTES (1u << 20)
#define LAST_WORDS_BYTES 400

/* --- a probe's index in the session --- */

static int describe_row(struct pem_kernel_probe *probe, const struct pem_event *event)
{
	struct pem_kernel_tail *tail = calloc(event->field_count + 1u, sizeof(*tail));
	unsigned i;

	if (!tail)
		return -ENOMEM;
	probe->row = (struct pem_kernel_event){.id = event->id,
					       .name = event->name,
					       .fixed_bytes = event->fixed_bytes,
					       .ring_bytes = event->max_bytes,
					       .tail = tail};
	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].type != PEM_TYPE_STRING &&
		    event->fields[i].type != PEM_TYPE_LIST)
			continue;
		tail[probe->row.tail_count++] =
			(struct pem_kernel_tail){.max_count = event->fields[i].max_count,
						 .element_bytes = (uint8_t)pem_layout_type_bytes(
							 event->fields[i].element_type),
						 .length_at = event->fields[i].offset};
	}
	return 0;
}

static void enter_id(struct pem_source *source, uint32_t id, size_t at)
{
	uint32_t i = id % PEM_KERNEL_PROBES_BY_ID;

	while (source->probe_by_id[i])
		i = (i + 1) % PEM_KERNEL_PROBES_BY_ID;
	source->probe_by_id[i] = (uint16_t)(at + 1);
}

int pem_source__take_probe(struct pem_source *source, const struct pem_event *event,
			   struct pem_error *error)
{
	unsigned index = pem_source__event_count(source);
	struct pem_kernel_probe *grown, *probe;
	struct pem_probe *found;
	int known = pem_source__find(source, event->id), rc;

	/* the caller finds out that the probe is asked for twice */
	if (known >= 0)
		return known;
	if (index >= PEM_KRING_EVENTS_MAX)
		return pem_error__set(error, -ENOSPC,
				      "a session has room for %u events outside the catalogue",
				      PEM_KRING_EVENTS_MAX - pem_kernel__event_count());
	found = pem_probe__of_event(event, error);
	if (!found)
		return -ENOENT;
	if (event->max_bytes > PEM_KRING_SLACK_BYTES) {
		pem_probe__free(found);
		return pem_error__set(error, -E2BIG,
				      "%s: a record of %u bytes is longer than the %u there is "
				      "room for",
				      event->source_name, event->max_bytes, PEM_KRING_SLACK_BYTES);
	}
	if (!pem_probe__fits(found, event)) {
		pem_probe__free(found);
		return pem_error__set(error, -ESTALE,
				      "%s has other fields here than those it is described with",
				      event->source_name);
	}
	grown = realloc(source->probes, (source->probe_count + 1) * sizeof(*grown));
	if (!grown) {
		pem_probe__free(found);
		return pem_error__set(error, -ENOMEM, "out of memory");
	}
	source->probes = grown;
	probe = &grown[source->probe_count];
	memset(probe, 0, sizeof(*probe));
	probe->probe = found;
	rc = describe_row(probe, event);
	if (rc) {
		pem_probe__free(found);
		return pem_error__set(error, rc, "out of memory");
	}
	enter_id(source, event->id, source->probe_count++);
	return (int)index;
}

/* --- loading --- */

/* Open the types of a kernel module. The caller closes the descriptor. -1: none are loaded. */
static int module_types(const char *name)
{
	struct bpf_btf_info info;
	uint32_t id = 0, bytes;
	char its[64];
	int fd;

	while (!bpf_btf_get_next_id(id, &id)) {
		fd = bpf_btf_get_fd_by_id(id);
		if (fd < 0)
			continue;
		memset(&info, 0, sizeof(info));
		info.name = (uint64_t)(uintptr_t)its;
		info.name_len = sizeof(its);
		bytes = sizeof(info);
		if (!bpf_obj_get_info_by_fd(fd, &info, &bytes) && info.kernel_btf &&
		    !strcmp(its, name))
			return fd;
		close(fd);
	}
	return -1;
}

static bool is_by_multi(const struct pem_probe *probe)
{
	return probe->kind >= PEM_PROBE_UPROBE && pem_kernel__has_uprobe_multi();
}

static int load_program(const struct pem_probe *probe, const struct bpf_insn *insns, size_t count,
			char *log)
{
	static const struct {
		enum bpf_prog_type type;
		enum bpf_attach_type attach;
	} types[PEM_PROBE_KINDS] = {
		[PEM_PROBE_TRACEPOINT] = {BPF_PROG_TYPE_TRACEPOINT, 0},
		[PEM_PROBE_FENTRY] = {BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY},
		[PEM_PROBE_FEXIT] = {BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT},
		[PEM_PROBE_KPROBE] = {BPF_PROG_TYPE_KPROBE, 0},
		[PEM_PROBE_KRETPROBE] = {BPF_PROG_TYPE_KPROBE, 0},
		[PEM_PROBE_UPROBE] = {BPF_PROG_TYPE_KPROBE, 0},
		[PEM_PROBE_URETPROBE] = {BPF_PROG_TYPE_KPROBE, 0},
		[PEM_PROBE_USDT] = {BPF_PROG_TYPE_KPROBE, 0},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type =
			    is_by_multi(probe) ? PEM_UPROBE_MULTI : types[probe->kind].attach);
	int types_fd = -1, fd;

	if (types[probe->kind].type == BPF_PROG_TYPE_TRACING) {
		options.attach_btf_id = probe->type_id;
		types_fd = probe->module ? module_types(probe->module) : -1;
		options.attach_btf_obj_fd = types_fd > 0 ? (uint32_t)types_fd : 0;
	}
	if (log) {
		options.log_level = 1;
		options.log_buf = log;
		options.log_size = LOG_BYTES;
	}
	fd = bpf_prog_load(types[probe->kind].type, PEM_KPROBE_PROGRAM, "GPL", insns, count,
			   &options);
	fd = fd < 0 ? -errno : fd;
	if (types_fd >= 0)
		close(types_fd);
	return fd;
}

/* Log why the kernel refused the program: the verifier's last lines. */
static void say_refused(const struct pem_source *source, const struct pem_probe *probe,
			const struct bpf_insn *insns, size_t count, int rc)
{
	char *log = calloc(1, LOG_BYTES), last[LAST_WORDS_BYTES] = "";
	int fd = log ? load_program(probe, insns, count, log) : -ENOMEM;

	if (log)
		pem_kernel__keep_last(last, sizeof(last), log, log + strlen(log));
	if (fd >= 0)
		close(fd);
	pem_source__log(source, PEM_LOG_WARNING, "%s: the kernel refuses its program: %s%s%s",
			probe->name, strerror(-rc), *last ? ": " : "", last);
	free(log);
}

/* The demand for a probe's event. */
static struct pem_source_demand *demand_of(const struct pem_source *source, size_t i)
{
	return pem_source__demand_of(source, pem_kernel__event_count() + (unsigned)i);
}

static int add_program(struct pem_source *source, size_t i, const struct pem_probe_site *site,
		       const struct bpf_insn *template, size_t count)
{
	struct pem_kernel_probe *probe = &source->probes[i];
	const struct pem_source_demand *demand = demand_of(source, i);
	struct bpf_insn *insns = malloc(count * sizeof(*insns));
	struct pem_probe_program *grown =
		realloc(probe->programs, (probe->program_count + 1) * sizeof(*grown));
	const struct pem_assembly assembly = {.probe = probe->probe,
					      .site = site,
					      .event = demand->event,
					      .tests = demand->tests,
					      .test_count = demand->test_count,
					      .index = demand->index};
	struct pem_error error = {"out of memory"};
	ssize_t rc = insns && grown ? 0 : -ENOMEM;

	if (grown)
		probe->programs = grown;
	if (!rc) {
		memcpy(insns, template, count * sizeof(*insns));
		rc = pem_assemble(&assembly, insns, count, &error);
	}
	if (rc < 0) {
		pem_source__log(source, PEM_LOG_WARNING, "%s: %s", probe->probe->name, error.text);
	} else {
		count = (size_t)rc;
		rc = load_program(probe->probe, insns, count, NULL);
		if (rc < 0)
			say_refused(source, probe->probe, insns, count, (int)rc);
		else
			grown[probe->program_count++] =
				(struct pem_probe_program){.fd = (int)rc, .like = site};
	}
	free(insns);
	return rc < 0 ? (int)rc : 0;
}

/* Find the program of a probe for a site with these argument locations. NULL: there is none yet. */
static struct pem_probe_program *program_like(const struct pem_kernel_probe *probe,
					      const struct pem_probe_site *site)
{
	size_t i;

	for (i = 0; i < probe->program_count; i++) {
		if (probe->probe->kind != PEM_PROBE_USDT ||
		    pem_usdt_arguments__same(probe->programs[i].like, site))
			return &probe->programs[i];
	}
	return NULL;
}

static int load_probe(struct pem_source *source, size_t i, const struct bpf_insn *template,
		      size_t count)
{
	const struct pem_kernel_probe *probe = &source->probes[i];
	const struct pem_probe *its = probe->probe;
	size_t k;
	int rc = 0;

	if (its->kind != PEM_PROBE_USDT)
		return add_program(source, i, NULL, template, count);
	for (k = 0; k < its->site_count && !rc; k++) {
		if (!program_like(probe, &its->sites[k]))
			rc = add_program(source, i, &its->sites[k], template, count);
	}
	return rc;
}

/* The descriptors for probes. The catalogue's programs are loaded and get their links later. */
static size_t descriptors_for_probes(const struct pem_source *source)
{
	/* a perf event needs one until it has its link */
	size_t spare = pem_kernel__spare_descriptors(), links = 1;
	unsigned i;

	for (i = 0; i < pem_kernel__event_count(); i++)
		links += source->programs[i].program != NULL;
	return spare > links ? spare - links : 0;
}

void pem_source__load_probes(struct pem_source *source)
{
	const struct bpf_program *program =
		source->probe_count
			? bpf_object__find_program_by_name(source->object, PEM_KPROBE_PROGRAM)
			: NULL;
	size_t i, need, room, count = program ? bpf_program__insn_cnt(program) : 0;
	const struct pem_probe *probe;
	struct pem_progress progress;
	struct pem_source_demand *demand;
	int rc;

	pem_progress__start(&progress);
	room = program ? descriptors_for_probes(source) : 0;
	for (i = 0; i < source->probe_count; i++) {
		demand = demand_of(source, i);
		if (!demand)
			continue;
		probe = source->probes[i].probe;
		need = pem_probe__descriptors(probe, is_by_multi(probe));
		rc = !program      ? -EINVAL
		     : need > room ? -EMFILE
				   : load_probe(source, i, bpf_program__insns(program), count);
		if (rc)
			demand->error = rc;
		else
			room -= need;
		pem_progress__update(&progress, source, i, source->probe_count);
	}
	pem_progress__end(&progress, source);
}

/* --- attaching --- */

static bool ends_slowly(const struct pem_probe *probe)
{
	return probe->kind != PEM_PROBE_FENTRY && probe->kind != PEM_PROBE_FEXIT;
}

/*
 * Is a place in a binary wanted in this process alone? Other processes that run this code then have
 * no breakpoint. For another process than this one a demand would live longer than the process.
 */
static bool only_here(const struct pem_probe *probe, const struct pem_context *context)
{
	return probe->kind >= PEM_PROBE_UPROBE && !context->follow &&
	       context->pid == (uint32_t)getpid();
}

/* Make a perf event for one place. Returns its descriptor, or -errno. */
static int open_event(const struct pem_probe *probe, const struct pem_probe_site *site,
		      const struct pem_context *context)
{
	bool returns = probe->kind == PEM_PROBE_KRETPROBE || probe->kind == PEM_PROBE_URETPROBE;
	struct perf_event_attr attr;
	/* A pid here means all threads with its memory. */
	pid_t pid = only_here(probe, context) ? getpid() : -1;
	int type = PERF_TYPE_TRACEPOINT;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	if (probe->kind == PEM_PROBE_TRACEPOINT) {
		attr.config = probe->type_id;
	} else {
		type = pem_kernel__perf_type(site ? "uprobe" : "kprobe");
		if (type < 0)
			return type;
		attr.config = returns ? 1 : 0;
		attr.config1 = (uint64_t)(uintptr_t)probe->path;
		attr.config2 = site ? site->offset : probe->offset;
		if (site)
			attr.config |= site->semaphore << 32;
	}
	attr.type = (uint32_t)type;
	fd = syscall(SYS_perf_event_open, &attr, pid, pid < 0 ? 0 : -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* Attach a program to a place. Returns 0 or -errno. */
static int attach_to(const struct pem_probe *probe, struct pem_probe_program *program,
		     const struct pem_probe_site *site, const struct pem_context *context)
{
	int *link = realloc(program->link_fds, (program->attached + 1) * sizeof(*link));
	int perf_fd = -1, link_fd, rc;

	if (!link)
		return -ENOMEM;
	program->link_fds = link;
	if (!ends_slowly(probe)) {
		link_fd = bpf_raw_tracepoint_open(NULL, program->fd);
	} else {
		perf_fd = open_event(probe, site, context);
		if (perf_fd < 0)
			return perf_fd;
		link_fd = bpf_link_create(program->fd, perf_fd, BPF_PERF_EVENT, NULL);
		if (link_fd >= 0 && ioctl(perf_fd, PERF_EVENT_IOC_ENABLE, 0)) {
			rc = -errno;
			close(link_fd);
			close(perf_fd);
			return rc;
		}
	}
	rc = link_fd < 0 ? -errno : 0;
	/* the link holds it */
	if (perf_fd >= 0)
		close(perf_fd);
	if (!rc)
		link[program->attached++] = link_fd;
	return rc;
}

/* Attach a program to all of its places by one link. Returns 0 or -errno. */
static int attach_to_all(const struct pem_kernel_probe *probe, struct pem_probe_program *program,
			 const struct pem_context *context)
{
	const struct pem_probe *its = probe->probe;
	const struct pem_probe_site **sites = calloc(its->site_count + 1, sizeof(*sites));
	size_t i, count = 0;
	int rc = -ENOMEM;

	program->link_fds = program->link_fds ?: calloc(1, sizeof(*program->link_fds));
	if (!sites || !program->link_fds)
		goto out;
	for (i = 0; i < its->site_count; i++) {
		if (program_like(probe, &its->sites[i]) == program)
			sites[count++] = &its->sites[i];
	}
	rc = pem_kernel__link_uprobes(its, program->fd, sites, count, only_here(its, context));
	if (rc >= 0)
		program->link_fds[program->attached++] = rc;
out:
	free(sites);
	return rc < 0 ? rc : 0;
}

static int attach_probe(struct pem_kernel_probe *probe, const struct pem_context *context)
{
	const struct pem_probe *its = probe->probe;
	struct pem_probe_program *program;
	size_t i;
	int rc = 0;

	if (is_by_multi(its)) {
		for (i = 0; i < probe->program_count && !rc; i++)
			rc = attach_to_all(probe, &probe->programs[i], context);
		return rc;
	}
	if (!its->site_count)
		return attach_to(its, &probe->programs[0], NULL, context);
	for (i = 0; i < its->site_count && !rc; i++) {
		program = program_like(probe, &its->sites[i]);
		rc = program ? attach_to(its, program, &its->sites[i], context) : -EINVAL;
	}
	return rc;
}

/*
 * Detach a program if that is fast. Others stay attached (leave_behind.c): their demand has ended,
 * which the program sees in its control word. Returns whether any was attached.
 */
static bool detach_program(const struct pem_probe *probe, struct pem_probe_program *program)
{
	size_t i;

	for (i = 0; i < program->attached && !ends_slowly(probe); i++) {
		if (program->link_fds[i] >= 0) {
			close(program->link_fds[i]);
			program->link_fds[i] = -1;
		}
	}
	return program->attached != 0;
}

static void close_links(struct pem_probe_program *program)
{
	size_t i;

	for (i = 0; i < program->attached; i++) {
		if (program->link_fds[i] >= 0)
			close(program->link_fds[i]);
	}
	program->attached = 0;
}

static void say_not_attached(const struct pem_source *source, const struct pem_probe *probe, int rc)
{
	bool by_perf = probe->kind >= PEM_PROBE_KPROBE;
	const char *hint = "";

	if (rc == -ENOTSUPP)
		hint = ": this kernel can't put programs into functions on this architecture "
		       "(arm64 can "
		       "since Linux 6.4): name a kprobe: or a tracepoint";
	else if ((rc == -ENOENT || rc == -EINVAL) &&
		 (probe->kind == PEM_PROBE_KPROBE || probe->kind == PEM_PROBE_KRETPROBE))
		hint = ": the kernel has no such place, or takes no kprobe there";
	else if ((rc == -EACCES || rc == -EPERM) && by_perf)
		hint = ": the kernel wants more than CAP_PERFMON and CAP_BPF for it: run as root, "
		       "or give "
		       "pem CAP_SYS_ADMIN";
	else if (rc == -EACCES || rc == -EPERM)
		hint = ": run as root, or give pem CAP_PERFMON and CAP_BPF";
	pem_source__log(source, PEM_LOG_WARNING, "can't attach to %s: %s%s", probe->name,
			rc == -ENOTSUPP ? "not supported" : strerror(-rc), hint);
}

void pem_source__attach_probes(struct pem_source *source)
{
	struct pem_source_demand *demand;
	size_t i, k;
	int rc;

	for (i = 0; i < source->probe_count; i++) {
		demand = demand_of(source, i);
		if (!demand)
			continue;
		rc = attach_probe(&source->probes[i], &demand->context);
		if (!rc)
			continue;
		for (k = 0; k < source->probes[i].program_count; k++)
			close_links(&source->probes[i].programs[k]);
		demand->error = rc;
		if (rc != -EMFILE) /* for EMFILE the caller logs one sentence for all probes */
			say_not_attached(source, source->probes[i].probe, rc);
	}
	pem_source__say_uncounted(source);
	pem_source__say_left_out(source);
}

bool pem_source__detach_probes(struct pem_source *source)
{
	bool any = false;
	size_t i, k;

	for (i = 0; i < source->probe_count; i++) {
		for (k = 0; k < source->probes[i].program_count; k++)
			any |= detach_program(source->probes[i].probe,
					      &source->probes[i].programs[k]);
	}
	return any;
}

/* List the links of programs still attached. Returns how many. The caller frees *fds. */
static size_t list_links(const struct pem_source *source, int **fds)
{
	const struct pem_probe_program *program;
	size_t i, k, n, count = 0;
	int *grown;

	*fds = NULL;
	for (i = 0; i < source->probe_count; i++) {
		for (k = 0; k < source->probes[i].program_count; k++) {
			program = &source->probes[i].programs[k];
			if (!ends_slowly(source->probes[i].probe))
				continue;
			grown = realloc(*fds, (count + program->attached + 1) * sizeof(*grown));
			if (!grown)
				return count;
			*fds = grown;
			for (n = 0; n < program->attached; n++)
				grown[count++] = program->link_fds[n];
		}
	}
	return count;
}

void pem_source__unload_probes(struct pem_source *source)
{
	struct pem_kernel_probe *probe;
	size_t i, k, count;
	int *fds, held;

	count = list_links(source, &fds);
	held = pem_leave_behind(fds, count);
	free(fds);
	for (i = 0; i < source->probe_count; i++) {
		probe = &source->probes[i];
		for (k = 0; k < probe->program_count; k++) {
			close_links(&probe->programs[k]);
			free(probe->programs[k].link_fds);
			close(probe->programs[k].fd);
		}
		free(probe->programs);
		probe->programs = NULL;
		probe->program_count = 0;
	}
	if (held >= 0)
		close(held);
}

void pem_source__free_probes(struct pem_source *source)
{
	size_t i;

	for (i = 0; i < source->probe_count; i++) {
		pem_probe__free(source->probes[i].probe);
		free((void *)(uintptr_t)source->probes[i].row.tail);
	}
	free(source->probes);
	source->probes = NULL;
	source->probe_count = 0;
}
