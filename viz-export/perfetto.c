/* SPDX-License-Identifier: MIT */
/*
 * perfetto.c - exporter: Perfetto's protobuf trace, for ui.perfetto.dev and trace_processor
 *
 * Not here: the messages (perfetto.proto), the list of tracks (perfetto_tracks.c), memory
 * (perfetto_arena.h).
 *
 * Each record becomes one packet, which is written at once. The packet that describes a track comes
 * directly before the first packet on it:
 *	interval-begin, interval-end	a slice, named by role 'name', or else by its group: on the
 *					track of the thread that began it; if its scope is not the
 *					thread, on a track of its scope and group that no other
 * slice is on, for such slices may overlap
 *	counter, gauge			a value on a counter track of its process (and CPU)
 *	sets-thread on a CPU		an ftrace sched_switch, which Perfetto shows as the thread
 *					that runs on the CPU
 *	all others			an instant on the thread's track, with the fields as
 *					annotations
 * A record without a thread goes to its process's track, else its CPU's, else the machine's.
 */
#define _GNU_SOURCE
#include "intervals.h"
#include "output.h"
#include "perfetto_arena.h"
#include "perfetto_fields.h"
#include "perfetto_names.h"
#include "perfetto_tracks.h"
#include "perfetto.pb-c.h"

#include <pem/export.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_RECORDS 65536
/* Priority of a thread with nice value 0. The specs have no other. */
#define DEFAULT_PRIORITY 120
#define NAME_BYTES 64 /* for a process's name, with its NUL and rounding */
#define SEQUENCE_ID 1
#define STATE_CLEARED 1 /* bit of sequence_flags: earlier packets do not matter */

typedef Perfetto__Protos__TracePacket Packet;
typedef Perfetto__Protos__TrackEvent TrackEvent;
typedef Perfetto__Protos__TrackDescriptor TrackDescriptor;
typedef Perfetto__Protos__DebugAnnotation Annotation;

struct perfetto {
	struct pem_trace *trace;
	FILE *out;
	struct pem_tracks tracks;
	struct pem_arena arena;
	struct pem_slice_names names;
	/* Open slices. The data of each is the uuid of its track. */
	struct pem_intervals *open;
	uint8_t *packed;
	size_t packed_size;
	bool any_packet;
};

/* --- memory --- */

/*
 * Make room for the message of a record: an annotation for each field and element, and copies of
 * its strings and of names of processes and threads.
 */
static int prepare(struct pem_arena *arena, const struct pem_record *record)
{
	size_t values = record->event->field_count, want;
	const void *elements;
	unsigned i;
	uint8_t *larger;

	for (i = 0; i < record->event->field_count; i++)
		values += pem_record__list(record, i, &elements);
	want = values * (sizeof(Annotation) + 2 * sizeof(void *) + 32) + record->bytes +
	       6 * NAME_BYTES +
	       (16 + PEM_PERFETTO_WORDS_BYTES) * (size_t)record->event->field_count;
	arena->used = 0;
	if (want <= arena->size)
		return 0;
	larger = realloc(arena->memory, want);
	if (!larger)
		return -ENOMEM;
	arena->memory = larger;
	arena->size = want;
	return 0;
}

/* --- packets --- */

static size_t put_varint(uint8_t *to, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		to[n++] = (uint8_t)(value | 0x80);
	to[n++] = (uint8_t)value;
	return n;
}

/* Write a packet as the next element of Trace.packet. */
static int put_packet(struct perfetto *p, Packet *packet)
{
	size_t bytes, head;
	uint8_t prefix[16], *larger;

	packet->has_trusted_packet_sequence_id = 1;
	packet->trusted_packet_sequence_id = SEQUENCE_ID;
	packet->has_sequence_flags = !p->any_packet;
	packet->sequence_flags = STATE_CLEARED;
	p->any_packet = true;
	bytes = perfetto__protos__trace_packet__get_packed_size(packet);
	if (bytes > p->packed_size) {
		larger = realloc(p->packed, bytes * 2);
		if (!larger)
			return -ENOMEM;
		p->packed = larger;
		p->packed_size = bytes * 2;
	}
	perfetto__protos__trace_packet__pack(packet, p->packed);
	prefix[0] = 1 << 3 | 2; /* field 1, length-delimited */
	head = 1 + put_varint(prefix + 1, bytes);
	fwrite_unlocked(prefix, 1, head, p->out);
	fwrite_unlocked(p->packed, 1, bytes, p->out);
	return 0; /* pem_output__finish reports errors */
}

static int put_descriptor(struct perfetto *p, TrackDescriptor *descriptor)
{
	Packet packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACK_DESCRIPTOR;
	packet.track_descriptor = descriptor;
	return put_packet(p, &packet);
}

/* --- tracks --- */

static int describe_process(struct perfetto *p, uint64_t uuid, uint32_t pid)
{
	Perfetto__Protos__ProcessDescriptor process = PERFETTO__PROTOS__PROCESS_DESCRIPTOR__INIT;
	TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	const char *name = pem_trace__process_name(p->trace, pid);

	track.has_uuid = 1;
	track.uuid = uuid;
	track.process = &process;
	process.has_pid = 1;
	process.pid = (int32_t)pid;
	process.process_name = *name ? pem_arena__text(&p->arena, name) : NULL;
	return put_descriptor(p, &track);
}

/* Find the process's track. 0: no memory. */
static uint64_t process_track(struct perfetto *p, uint32_t pid)
{
	struct pem_track_key key = {.kind = PEM_TRACK_PROCESS, .a = pid};
	bool is_new;
	uint64_t uuid = pem_tracks__uuid(&p->tracks, &key, &is_new);

	if (uuid && is_new && describe_process(p, uuid, pid))
		return 0;
	return uuid;
}

static int describe_thread(struct perfetto *p, uint64_t uuid, uint32_t pid, uint32_t tid)
{
	Perfetto__Protos__ThreadDescriptor thread = PERFETTO__PROTOS__THREAD_DESCRIPTOR__INIT;
	TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	const char *known = pem_trace__thread_name(p->trace, tid);
	char name[32];

	track.has_uuid = 1;
	track.uuid = uuid;
	if (pid) {
		track.thread = &thread;
		thread.has_pid = thread.has_tid = 1;
		thread.pid = (int32_t)pid;
		thread.tid = (int32_t)tid;
		thread.thread_name = *known ? pem_arena__text(&p->arena, known) : NULL;
	} else { /* Perfetto has no thread without a process */
		snprintf(name, sizeof(name), "Thread %u", tid);
		track.name = name;
	}
	return put_descriptor(p, &track);
}

/* Find the thread's track. 0: no memory. */
static uint64_t thread_track(struct perfetto *p, uint32_t pid, uint32_t tid)
{
	struct pem_track_key key = {.kind = PEM_TRACK_THREAD, .a = pid, .b = tid};
	uint64_t uuid;
	bool is_new;

	if (pid && !process_track(p, pid))
		return 0;
	uuid = pem_tracks__uuid(&p->tracks, &key, &is_new);
	if (uuid && is_new && describe_thread(p, uuid, pid, tid))
		return 0;
	return uuid;
}

/* Describe a track if it is new. parent: a track's uuid, or 0. Returns uuid; 0: no memory. */
static uint64_t named_track(struct perfetto *p, uint64_t uuid, bool is_new, char *name,
			    uint64_t parent)
{
	TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;

	track.has_uuid = 1;
	track.uuid = uuid;
	track.name = name;
	track.has_parent_uuid = parent != 0;
	track.parent_uuid = parent;
	return uuid && is_new && put_descriptor(p, &track) ? 0 : uuid;
}

/* Find the track of a CPU, or of the machine if the record has none. 0: no memory. */
static uint64_t cpu_track(struct perfetto *p, const struct pem_record *record)
{
	struct pem_track_key key = {.kind = PEM_TRACK_MACHINE};
	char name[32] = "Machine";
	uint64_t uuid;
	bool is_new;

	if (record->cpu != PEM_NO_CPU) {
		key.kind = PEM_TRACK_CPU;
		key.a = record->cpu;
		snprintf(name, sizeof(name), "CPU %u", record->cpu);
	}
	uuid = pem_tracks__uuid(&p->tracks, &key, &is_new);
	return named_track(p, uuid, is_new, name, 0);
}

/* Find the track of an instant, or of a slice of a thread. 0: no memory. */
static uint64_t record_track(struct perfetto *p, const struct pem_record *record)
{
	if (record->tid)
		return thread_track(p, record->pid, record->tid);
	if (record->pid)
		return process_track(p, record->pid);
	return cpu_track(p, record);
}

/*
 * Find a track without an open slice for a slice of a process, CPU or machine. Perfetto shows
 * tracks of one name and parent as one. 0: no memory.
 */
static uint64_t free_track(struct perfetto *p, const struct pem_record *record)
{
	const struct pem_event *event = record->event;
	struct pem_track_key key = {.kind = PEM_TRACK_SLICES, .a = event->id};
	uint64_t parent = 0, uuid;
	bool is_new;

	if (event->scope == PEM_SCOPE_PROCESS && record->pid) {
		parent = process_track(p, record->pid);
		if (!parent)
			return 0;
		key.b = (uint32_t)parent;
	} else if (event->scope == PEM_SCOPE_CPU && record->cpu != PEM_NO_CPU) {
		key.kind = PEM_TRACK_CPU_SLICES;
		key.b = record->cpu;
		parent = cpu_track(p, record);
		if (!parent)
			return 0;
	}
	uuid = pem_tracks__take(&p->tracks, &key, &is_new);
	return named_track(p, uuid, is_new, (char *)pem_slice_names__track(event), parent);
}

static uint64_t counter_track(struct perfetto *p, const struct pem_record *record, const char *unit)
{
	Perfetto__Protos__CounterDescriptor counter = PERFETTO__PROTOS__COUNTER_DESCRIPTOR__INIT;
	TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	struct pem_track_key key = {.kind = PEM_TRACK_COUNTER, .a = record->event->id};
	char name[160], cpu[24] = "";
	bool is_new;

	key.c = record->cpu;
	track.has_uuid = 1;
	if (record->pid) {
		track.parent_uuid = process_track(p, record->pid);
		track.has_parent_uuid = 1;
		if (!track.parent_uuid)
			return 0;
		key.b = (uint32_t)track.parent_uuid;
	}
	track.uuid = pem_tracks__uuid(&p->tracks, &key, &is_new);
	if (!track.uuid || !is_new)
		return track.uuid;
	if (record->cpu != PEM_NO_CPU)
		snprintf(cpu, sizeof(cpu), " CPU %u", record->cpu);
	snprintf(name, sizeof(name), "%.100s%s", record->event->name, cpu);
	track.name = name;
	track.counter = &counter;
	counter.has_unit = 1;
	counter.unit = strcmp(unit, "ns") == 0
			       ? PERFETTO__PROTOS__COUNTER_DESCRIPTOR__UNIT__UNIT_TIME_NS
		       : strcmp(unit, "bytes") == 0
			       ? PERFETTO__PROTOS__COUNTER_DESCRIPTOR__UNIT__UNIT_SIZE_BYTES
			       : PERFETTO__PROTOS__COUNTER_DESCRIPTOR__UNIT__UNIT_COUNT;
	return put_descriptor(p, &track) ? 0 : track.uuid;
}

/* --- records --- */

static int put_event(struct perfetto *p, const struct pem_record *record, TrackEvent *e)
{
	Packet packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

	e->has_track_uuid = 1;
	if (!e->track_uuid)
		return -ENOMEM;
	packet.has_timestamp = 1;
	packet.timestamp = record->time_ns;
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACK_EVENT;
	packet.track_event = e;
	return put_packet(p, &packet);
}

static int put_counter(struct perfetto *p, const struct pem_record *record, unsigned field)
{
	const struct pem_field *f = &record->event->fields[field];
	TrackEvent e = PERFETTO__PROTOS__TRACK_EVENT__INIT;

	e.has_type = 1;
	e.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_COUNTER;
	e.track_uuid = counter_track(p, record, f->unit);
	if (f->type == PEM_TYPE_FLOAT32 || f->type == PEM_TYPE_FLOAT64) {
		e.counter_value_field_case =
			PERFETTO__PROTOS__TRACK_EVENT__COUNTER_VALUE_FIELD_DOUBLE_COUNTER_VALUE;
		e.double_counter_value = pem_record__f64(record, field);
	} else {
		e.counter_value_field_case =
			PERFETTO__PROTOS__TRACK_EVENT__COUNTER_VALUE_FIELD_COUNTER_VALUE;
		e.counter_value = pem_record__i64(record, field);
	}
	return put_event(p, record, &e);
}

/* The event's name without its layer. The layer is the category. */
static char *short_name(const struct pem_event *event)
{
	return (char *)event->name + strlen(event->layer) + 2;
}

/* Set the parts that slices and instants share. category: for the event's categories. */
static void init_event(TrackEvent *e, const struct pem_event *event, char **category)
{
	perfetto__protos__track_event__init(e);
	*category = (char *)event->layer;
	e->n_categories = 1;
	e->categories = category;
	e->has_type = 1;
}

static int put_instant(struct perfetto *p, const struct pem_record *record)
{
	char *category;
	TrackEvent e;
	int rc;

	init_event(&e, record->event, &category);
	e.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT;
	e.name = short_name(record->event);
	rc = pem_perfetto__annotate(&p->arena, &e, record, -1);
	if (rc)
		return rc;
	e.track_uuid = record_track(p, record);
	return put_event(p, record, &e);
}

/* The track of a slice that the record begins, or that is open already. 0: no memory. */
static uint64_t begin_slice(struct perfetto *p, const struct pem_record *record, bool *is_open)
{
	bool is_of_thread = record->event->scope == PEM_SCOPE_THREAD;
	uint64_t uuid = is_of_thread ? record_track(p, record) : free_track(p, record);
	uint64_t oldest;

	if (!uuid)
		return 0;
	oldest = (uintptr_t)pem_intervals__begin(p->open, record, (void *)(uintptr_t)uuid);
	pem_tracks__release(&p->tracks, oldest);
	*is_open = oldest == uuid && record->event->source_kind == PEM_SOURCE_PROC;
	return uuid;
}

/* The track of the slice that the record ends. 0: it ends none that the trace begins. */
static uint64_t end_slice(struct perfetto *p, const struct pem_record *record)
{
	uint64_t uuid = (uintptr_t)pem_intervals__end(p->open, record);

	pem_tracks__release(&p->tracks, uuid);
	return uuid;
}

static int put_slice(struct perfetto *p, const struct pem_record *record)
{
	const struct pem_event *event = record->event;
	int name = pem_event__field_by_role(event, PEM_ROLE_NAME), rc;
	bool begins = event->meaning == PEM_MEANS_INTERVAL_BEGIN, is_open = false;
	char *category;
	TrackEvent e;

	init_event(&e, event, &category);
	e.type = begins ? PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN
			: PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END;
	if (begins || !pem_slice_names__is_nameless(&p->names, p->trace, event)) {
		e.name = pem_arena__text(&p->arena, pem_interval__name(record));
		if (!e.name)
			return -ENOMEM;
	}
	rc = pem_perfetto__annotate(&p->arena, &e, record, name);
	if (rc)
		return rc;
	if (begins) {
		e.track_uuid = begin_slice(p, record, &is_open);
	} else {
		e.track_uuid = end_slice(p, record);
		if (!e.track_uuid)
			return put_instant(p, record);
	}
	return is_open ? 0 : put_event(p, record, &e);
}

static uint32_t role_value(const struct pem_record *record, enum pem_role role)
{
	int field = pem_event__field_by_role(record->event, role);

	return field >= 0 ? (uint32_t)pem_record__u64(record, (unsigned)field) : 0;
}

static char *task_name(struct perfetto *p, uint32_t tid, uint32_t pid)
{
	const char *name = pem_trace__thread_name(p->trace, tid);

	if (!tid)
		return "swapper";
	return pem_arena__text(&p->arena, *name ? name : pem_trace__process_name(p->trace, pid));
}

static int put_switch(struct perfetto *p, const struct pem_record *record)
{
	Perfetto__Protos__SchedSwitchFtraceEvent sw =
		PERFETTO__PROTOS__SCHED_SWITCH_FTRACE_EVENT__INIT;
	Perfetto__Protos__FtraceEventBundle bundle = PERFETTO__PROTOS__FTRACE_EVENT_BUNDLE__INIT;
	Perfetto__Protos__FtraceEvent event = PERFETTO__PROTOS__FTRACE_EVENT__INIT;
	Perfetto__Protos__FtraceEvent *events = &event;
	Packet packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	uint32_t previous = role_value(record, PEM_ROLE_PREVIOUS_THREAD);
	uint32_t next = role_value(record, PEM_ROLE_THREAD);
	uint32_t next_process = role_value(record, PEM_ROLE_PROCESS);
	/* The kernel's task state, if the event has it. */
	int state = pem_event__field(record->event, "prevState");

	if (record->pid && record->tid && !thread_track(p, record->pid, record->tid))
		return -ENOMEM;
	if (next && next_process && !thread_track(p, next_process, next))
		return -ENOMEM;
	sw.has_prev_pid = sw.has_next_pid = 1;
	sw.prev_pid = (int32_t)previous;
	sw.next_pid = (int32_t)next;
	sw.prev_comm = task_name(p, previous, record->pid);
	sw.next_comm = task_name(p, next, next_process);
	sw.has_prev_prio = sw.has_next_prio = sw.has_prev_state = 1;
	sw.prev_prio = sw.next_prio = DEFAULT_PRIORITY;
	sw.prev_state = previous && state >= 0 ? pem_record__i64(record, (unsigned)state) : 0;
	event.has_timestamp = event.has_pid = 1;
	event.timestamp = record->time_ns;
	event.pid = previous;
	event.event_case = PERFETTO__PROTOS__FTRACE_EVENT__EVENT_SCHED_SWITCH;
	event.sched_switch = &sw;
	bundle.has_cpu = 1;
	bundle.cpu = record->cpu;
	bundle.n_event = 1;
	bundle.event = &events;
	packet.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_FTRACE_EVENTS;
	packet.ftrace_events = &bundle;
	return put_packet(p, &packet);
}

/* Describe a thread or process that has a new name. The default process is the record's. */
static int describe_again(struct perfetto *p, const struct pem_record *record)
{
	uint32_t pid = role_value(record, PEM_ROLE_PROCESS);
	uint32_t tid = role_value(record, PEM_ROLE_THREAD);
	uint64_t uuid;

	pid = pid ? pid : record->pid;
	if (!pid)
		return 0;
	if (record->event->meaning == PEM_MEANS_PROCESS_NAME) {
		uuid = process_track(p, pid);
		return uuid ? describe_process(p, uuid, pid) : -ENOMEM;
	}
	uuid = tid ? thread_track(p, pid, tid) : 0;
	return !tid ? 0 : uuid ? describe_thread(p, uuid, pid, tid) : -ENOMEM;
}

static int put_record(struct perfetto *p, const struct pem_record *record)
{
	const struct pem_event *event = record->event;
	int value, rc = prepare(&p->arena, record);

	if (rc)
		return rc;
	switch (event->meaning) {
	case PEM_MEANS_COUNTER:
	case PEM_MEANS_GAUGE:
		value = pem_event__field_by_role(event, PEM_ROLE_VALUE);
		if (value >= 0)
			return put_counter(p, record, (unsigned)value);
		break;
	case PEM_MEANS_SETS_THREAD:
		if (record->cpu != PEM_NO_CPU)
			return put_switch(p, record);
		break;
	case PEM_MEANS_PROCESS_NAME:
	case PEM_MEANS_THREAD_NAME:
		rc = describe_again(p, record);
		if (rc)
			return rc;
		break;
	case PEM_MEANS_INTERVAL_BEGIN:
	case PEM_MEANS_INTERVAL_END:
		return put_slice(p, record);
	default:
		break;
	}
	return put_instant(p, record);
}

static int put_records(struct perfetto *p, const struct pem_export_options *options,
		       struct pem_error *error)
{
	uint64_t done = 0, total = pem_trace__total_balance(p->trace).delivered;
	struct pem_record record = {.size = sizeof(record)};
	int rc;

	while ((rc = pem_trace__next(p->trace, &record, error)) > 0) {
		rc = put_record(p, &record);
		if (rc)
			return rc;
		pem_tracks__take_start(&p->tracks, &record);
		if (++done % PROGRESS_RECORDS)
			continue;
		if (options && options->progress)
			options->progress(done, total, options->progress_arg);
		/* pem_output__finish reports the reason */
		if (ferror(p->out))
			return 0;
	}
	return rc;
}

static int perfetto_run(struct pem_trace *trace, const char *path,
			const struct pem_export_options *given, struct pem_error *error)
{
	struct perfetto p = {.trace = trace};
	struct pem_export_options options;
	struct pem_output output;
	int rc;

	rc = pem_export__options(&options, given, error);
	if (rc)
		return rc;
	rc = pem_output__open(&output, path, error);
	if (rc)
		return rc;
	p.out = output.file;
	p.open = pem_intervals__new();
	rc = p.open ? pem_trace__rewind(trace) : -ENOMEM;
	if (!rc)
		rc = put_records(&p, &options, error);
	if (rc == -ENOMEM && error)
		snprintf(error->text, sizeof(error->text), "no memory to export the trace");
	rc = pem_output__finish(&output, rc, error);
	pem_intervals__free(p.open);
	pem_tracks__free(&p.tracks);
	free(p.arena.memory);
	free(p.packed);
	return rc;
}

__attribute__((visibility("default"))) extern const struct pem_exporter pem_exporter;
const struct pem_exporter pem_exporter = {
	.size = sizeof(struct pem_exporter),
	.abi_version = PEM_EXPORT_ABI_VERSION,
	.name = "perfetto",
	.description = "Perfetto's protobuf trace, for ui.perfetto.dev and trace_processor",
	.suffix = ".pftrace",
	.run = perfetto_run,
};
