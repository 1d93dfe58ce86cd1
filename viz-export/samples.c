/* SPDX-License-Identifier: MIT */
/* samples.c - samples by stack of functions (contract: samples.h) */
#include "samples.h"
#include "grow.h"
#include "hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pem_samples__init(struct pem_samples *samples, enum pem_samples_of of,
		      const struct pem_trace *trace)
{
	memset(samples, 0, sizeof(*samples));
	samples->of = of;
	samples->heap.trace = trace;
	samples->code = pem_code__new();
	return samples->code ? 0 : -ENOMEM;
}

void pem_samples__free(struct pem_samples *samples)
{
	size_t i;

	for (i = 0; i < samples->function_count; i++) {
		free(samples->functions[i].name);
		free(samples->functions[i].object);
	}
	free(samples->functions);
	free(samples->nodes);
	free(samples->entries);
	free(samples->amounts);
	pem_heap__free(&samples->heap);
	pem_number_map__free(&samples->entry_at);
	pem_code__free(samples->code);
	memset(samples, 0, sizeof(*samples));
}

/* --- as the trace is read --- */

/* Samples that a clock took, and not another event. */
static bool is_sample(const struct pem_event *event)
{
	return event->meaning == PEM_MEANS_SAMPLE && event->source_kind == PEM_SOURCE_SAMPLE &&
	       pem_event__field_by_role(event, PEM_ROLE_CODE) >= 0;
}

static bool is_allocation(const struct pem_event *event)
{
	return event->meaning == PEM_MEANS_ALLOCATION &&
	       pem_event__field_by_role(event, PEM_ROLE_STACK) >= 0;
}

bool pem_samples__needs_blocks(const struct pem_trace *trace)
{
	const struct pem_model *model = pem_trace__model(trace);
	size_t i;

	for (i = 0; i < pem_model__count(model); i++)
		if (pem_model__event(model, i)->meaning == PEM_MEANS_FRAME)
			return true;
	return false;
}

bool pem_samples__wants(const struct pem_samples *samples, const struct pem_event *event)
{
	if (event->meaning == PEM_MEANS_OBJECT)
		return true;
	if (samples->of == PEM_SAMPLES_OF_CPU)
		return is_sample(event);
	return event->meaning == PEM_MEANS_FRAME || event->meaning == PEM_MEANS_ALLOCATION ||
	       event->meaning == PEM_MEANS_RELEASE || event->meaning == PEM_MEANS_PROCESS_NAME;
}

/* Returns the index of the entry of a stack and a time, a new one if there is none, or -ENOMEM. */
static int64_t entry_of(struct pem_samples *samples, uint32_t node, uint16_t group,
			uint64_t time_ns)
{
	uint64_t bin = samples->bin_ns ? time_ns / samples->bin_ns : 0, key;
	struct pem_samples_entry *entry;
	uint32_t *at;

	if (samples->bin_ns && bin >= samples->bin_count)
		bin = samples->bin_count - 1;
	key = (uint64_t)node << 32 | (uint64_t)group << 16 | bin;
	at = pem_number_map__at(&samples->entry_at, key);
	if (!at)
		return -ENOMEM;
	if (*at != PEM_SAMPLES_NONE)
		return *at;
	if (pem_grow(&samples->entries, sizeof(*samples->entries), samples->entry_count + 1,
		     &samples->entry_capacity) < 0 ||
	    (samples->of == PEM_SAMPLES_OF_ALLOCATIONS &&
	     pem_grow(&samples->amounts, sizeof(*samples->amounts), samples->entry_count + 1,
		      &samples->amounts_capacity) < 0))
		return -ENOMEM;
	entry = &samples->entries[samples->entry_count];
	*entry = (struct pem_samples_entry){node, group, (uint16_t)bin, 0};
	if (samples->of == PEM_SAMPLES_OF_ALLOCATIONS) {
		entry->count = samples->entry_count;
		samples->amounts[entry->count] = (struct pem_amounts){{0}};
	}
	*at = (uint32_t)samples->entry_count++;
	return *at;
}

/*
 * The entry of a block's stack becomes *origin, if it has one. A stack whose records were lost is
 * the group's itself. Returns 0 or -ENOMEM.
 */
static int origin_of(struct pem_samples *samples, const struct pem_block *block, uint32_t pid,
		     const struct pem_pass_process *process, uint16_t group, uint32_t *origin)
{
	int64_t entry = PEM_HEAP_NO_ORIGIN;

	if (block->stack)
		entry = entry_of(samples,
				 pem_code__numbered(samples->code, pid, process, block->stack),
				 group, block->begin_ns);
	*origin = (uint32_t)entry;
	return entry < 0 ? -ENOMEM : 0;
}

/* An allocation that failed has no block. */
static int begin_block(struct pem_samples *samples, const struct pem_record *record,
		       const struct pem_around *around, uint16_t group)
{
	uint32_t origins[PEM_HEAP_ORIGINS] = {PEM_HEAP_NO_ORIGIN, PEM_HEAP_NO_ORIGIN};
	const struct pem_block *block = around->block;
	struct pem_amounts *amounts;

	if (origin_of(samples, block, record->pid, around->process, group, &origins[0]))
		return -ENOMEM;
	if (origins[0] != PEM_HEAP_NO_ORIGIN) {
		amounts = &samples->amounts[origins[0]];
		amounts->of[PEM_AMOUNT_BYTES] += block->size;
		amounts->of[PEM_AMOUNT_CALLS]++;
		samples->count++;
	}
	return around->process ? pem_heap__begin(&samples->heap, around->process, block, origins)
			       : 0;
}

static int take_block(struct pem_samples *samples, const struct pem_record *record,
		      const struct pem_around *around, uint16_t group)
{
	const struct pem_block *ended = pem_heap__ended(record->event, around);
	uint32_t origins[PEM_HEAP_ORIGINS] = {PEM_HEAP_NO_ORIGIN, PEM_HEAP_NO_ORIGIN};

	if (pem_heap__record(&samples->heap, record, around->process))
		return -ENOMEM;
	if (around->process && ended &&
	    (origin_of(samples, ended, record->pid, around->process, group, &origins[0]) ||
	     pem_heap__end(&samples->heap, around->process, ended, origins)))
		return -ENOMEM;
	return is_allocation(record->event) && around->block
		       ? begin_block(samples, record, around, group)
		       : 0;
}

int pem_samples__record(struct pem_samples *samples, const struct pem_record *record,
			const struct pem_around *around, uint16_t group)
{
	int64_t node, entry;

	if (record->event->meaning == PEM_MEANS_OBJECT)
		return pem_code__map(samples->code, record);
	if (record->event->meaning == PEM_MEANS_FRAME)
		return pem_code__frame(samples->code, record, around->process);
	if (samples->of == PEM_SAMPLES_OF_ALLOCATIONS)
		return take_block(samples, record, around, group);
	node = pem_code__sample(samples->code, record, around->process);
	entry = node < 0 ? node : entry_of(samples, (uint32_t)node, group, record->time_ns);
	if (entry < 0)
		return -ENOMEM;
	samples->entries[entry].count++;
	samples->count++;
	return 0;
}

uint64_t pem_samples__value(const struct pem_samples *samples,
			    const struct pem_samples_entry *entry, enum pem_amount amount)
{
	return samples->of == PEM_SAMPLES_OF_CPU ? entry->count
						 : samples->amounts[entry->count].of[amount];
}

/* Are all ends of blocks seen that have stacks? Returns 1, 0 or -ENOMEM. */
static int sees_ends(const struct pem_trace *trace)
{
	const struct pem_model *model = pem_trace__model(trace);
	struct pem_model *catalogue = pem_model__new();
	struct pem_error error = {""};
	int sees = catalogue && pem_model__add_catalogue(catalogue, &error) >= 0 ? 1 : -ENOMEM;
	size_t i;

	for (i = 0; sees == 1 && i < pem_model__count(model); i++)
		if (is_allocation(pem_model__event(model, i)))
			sees = pem_heap__sees_ends(trace, catalogue,
						   pem_model__event(model, i)->group);
	pem_model__free(catalogue);
	return sees;
}

/* What follows from releases is added to amounts if it is known. Returns 0 or -ENOMEM. */
static int add_ends(struct pem_samples *s, const struct pem_trace *trace,
		    const struct pem_pass *pass)
{
	int sees = sees_ends(trace);
	size_t i;

	s->knows_ends = sees == 1 && pem_heap__is_complete(trace, pass);
	pem_heap__finish(&s->heap);
	for (i = 0; s->knows_ends && i < s->heap.row_count; i++) {
		const struct pem_heap_row *row = &s->heap.rows[i];
		uint64_t *of = s->amounts[row->origin].of;

		of[PEM_AMOUNT_PEAK] += row->peak;
		of[PEM_AMOUNT_LEAKED] += row->now;
		of[PEM_AMOUNT_TEMPORARY] += row->temporary;
	}
	return sees < 0 ? sees : 0;
}

/* --- the tree of functions --- */

/* While the tree is made. */
struct making {
	struct pem_samples *samples;
	struct pem_number_map function_at; /* key: hash of object, name and number */
	struct pem_number_map location_at; /* key: location and inlined name: its function */
	struct pem_number_map node_at; /* key: parent, function */
	uint32_t more; /* the function "(more)" */
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/*
 * The function with this object, name and number, a new one if there is none. Returns it or
 * -ENOMEM.
 */
static int64_t function_of(struct making *m, const char *object, const char *name, uint32_t number,
			   bool is_kernel)
{
	struct pem_samples *s = m->samples;
	uint64_t key =
		pem_hash__text(pem_hash__text((PEM_HASH_START ^ number) + is_kernel, object), name);
	struct pem_samples_function *function;
	uint32_t *at;

	/* Another function may have the same hash. */
	for (; (at = pem_number_map__at(&m->function_at, key)) && *at != PEM_SAMPLES_NONE; key++) {
		function = &s->functions[*at];
		if (function->is_kernel == is_kernel && function->number == number &&
		    !strcmp(function->name, name) && !strcmp(function->object, object))
			return *at;
	}
	if (!at || pem_grow(&s->functions, sizeof(*s->functions), s->function_count + 1,
			    &s->function_capacity) < 0)
		return -ENOMEM;
	function = &s->functions[s->function_count];
	function->name = strdup(name);
	function->object = strdup(object);
	function->number = number;
	function->is_kernel = is_kernel;
	if (!function->name || !function->object) {
		free(function->name);
		free(function->object);
		return -ENOMEM;
	}
	*at = (uint32_t)s->function_count++;
	return *at;
}

/* The function of a location, i of those that were inlined into each other there. */
static int64_t function_at(struct making *m, uint32_t location, uint32_t i)
{
	const struct pem_code_location *at = pem_code__location(m->samples->code, location);
	const char *object = at->is_kernel ? "[kernel]" : "", *name = NULL;
	uint32_t number = PEM_CODE_NONE;
	char no_name[128] = "[unknown]";
	uint32_t *known = pem_number_map__at(&m->location_at, (uint64_t)location << 8 | (i & 0xff));
	int64_t function;

	if (!known)
		return -ENOMEM;
	if (*known != PEM_SAMPLES_NONE)
		return *known;
	if (at->object != PEM_CODE_NONE)
		object = pem_code__object(m->samples->code, at->object)->path;
	if (i < at->name_count) {
		name = at->names[i].function;
		number = at->names[i].number;
	}
	if (!name && at->is_kernel) {
		snprintf(no_name, sizeof(no_name), "[kernel]");
	} else if (!name && *object) {
		snprintf(no_name, sizeof(no_name), "[%.100s]", base_of(object));
		pem_printable(no_name);
	}
	function = function_of(m, object, name ? name : no_name, number, at->is_kernel != 0);
	if (function >= 0)
		*known = (uint32_t)function;
	return function;
}

static int64_t node_of(struct making *m, uint32_t parent, uint32_t function)
{
	struct pem_samples *s = m->samples;
	uint32_t *at = pem_number_map__at(&m->node_at, (uint64_t)parent << 32 | function);

	if (!at)
		return -ENOMEM;
	if (*at != PEM_SAMPLES_NONE)
		return *at;
	if (pem_grow(&s->nodes, sizeof(*s->nodes), s->node_count + 1, &s->node_capacity) < 0)
		return -ENOMEM;
	s->nodes[s->node_count] = (struct pem_samples_node){.parent = parent, .function = function};
	*at = (uint32_t)s->node_count++;
	return *at;
}

/* Is the node one of this function, which has no name? */
static bool is_in(const struct pem_samples *s, uint32_t node, uint32_t function)
{
	return s->functions[function].number == PEM_CODE_NONE &&
	       s->nodes[node].function == function && s->nodes[node].parent != PEM_SAMPLES_NONE;
}

/* Go down from a node by the functions of a location, outermost first. */
static int64_t descend(struct making *m, int64_t node, uint32_t location)
{
	uint32_t count = pem_code__location(m->samples->code, location)->name_count, i;
	int64_t function;

	for (i = count ? count : 1; node >= 0 && i-- > 0;) {
		function = function_at(m, location, i);
		if (function < 0)
			return function;
		if (!is_in(m->samples, (uint32_t)node, (uint32_t)function))
			node = node_of(m, (uint32_t)node, (uint32_t)function);
	}
	return node;
}

/* The tree's node of a stack of addresses, and of a group. */
static int64_t node_of_stack(struct making *m, uint32_t leaf, uint16_t group)
{
	const struct pem_code *code = m->samples->code;
	uint32_t path[1 + PEM_CODE_CALLERS_MAX], depth = 0;
	int64_t node = node_of(m, PEM_SAMPLES_NONE, group);

	for (; leaf != PEM_CODE_NONE && depth <= PEM_CODE_CALLERS_MAX;
	     leaf = pem_code__caller(code, leaf))
		path[depth++] = pem_code__node_location(code, leaf);
	while (depth-- > 0 && node >= 0)
		node = descend(m, node, path[depth]);
	return node;
}

static int by_node_and_bin(const void *a, const void *b)
{
	const struct pem_samples_entry *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->bin > y->bin) - (x->bin < y->bin);
}

static void join(struct pem_samples *s, struct pem_samples_entry *to,
		 const struct pem_samples_entry *from)
{
	unsigned i;

	if (s->of == PEM_SAMPLES_OF_CPU)
		to->count += from->count;
	for (i = 0; s->of == PEM_SAMPLES_OF_ALLOCATIONS && i < PEM_AMOUNTS; i++)
		s->amounts[to->count].of[i] += s->amounts[from->count].of[i];
}

/* Sort entries, join those of one node and bin, and add up. */
static void add_up(struct pem_samples *s)
{
	size_t i, used = 0;

	if (s->entry_count)
		qsort(s->entries, s->entry_count, sizeof(*s->entries), by_node_and_bin);
	for (i = 0; i < s->entry_count; i++) {
		if (used && !by_node_and_bin(&s->entries[used - 1], &s->entries[i]))
			join(s, &s->entries[used - 1], &s->entries[i]);
		else
			s->entries[used++] = s->entries[i];
	}
	s->entry_count = used;
	for (i = 0; i < s->node_count; i++)
		s->nodes[i].own = s->nodes[i].total = 0;
	for (i = 0; i < used; i++)
		s->nodes[s->entries[i].node].own +=
			pem_samples__value(s, &s->entries[i], s->amount);
	for (i = s->node_count; i-- > 0;) { /* parents have smaller numbers */
		s->nodes[i].total += s->nodes[i].own;
		if (s->nodes[i].parent != PEM_SAMPLES_NONE)
			s->nodes[s->nodes[i].parent].total += s->nodes[i].total;
	}
}

static int by_total_descending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

/* The least total of nodes that are kept: with one for the rest of each there are nodes_max. */
static uint64_t least_total(const struct pem_samples *s, size_t nodes_max)
{
	uint64_t *totals = calloc(s->node_count + 1, sizeof(*totals)), least = 0;
	size_t i;

	for (i = 0; totals && i < s->node_count; i++)
		totals[i] = s->nodes[i].total;
	if (totals) {
		qsort(totals, s->node_count, sizeof(*totals), by_total_descending);
		least = totals[nodes_max / 2] + 1;
	}
	free(totals);
	return least;
}

/* Keep larger nodes alone. Returns 0 or -ENOMEM. */
static int prune(struct making *m, size_t nodes_max)
{
	struct pem_samples *s = m->samples;
	uint64_t least = least_total(s, nodes_max);
	size_t i, count = s->node_count;
	struct pem_samples_node *old = s->nodes;
	uint32_t *now = calloc(count + 1, sizeof(*now));
	int64_t node = 0;

	if (!now || !least) {
		free(now);
		return -ENOMEM;
	}
	s->nodes = NULL;
	s->node_count = s->node_capacity = 0;
	pem_number_map__free(&m->node_at);
	m->node_at = (struct pem_number_map){0};
	for (i = 0; node >= 0 && i < count; i++) {
		uint32_t parent = old[i].parent, above;
		bool is_root = parent == PEM_SAMPLES_NONE;

		above = is_root ? PEM_SAMPLES_NONE : now[parent];
		if (is_root || old[i].total >= least)
			node = node_of(m, above, old[i].function);
		else if (s->nodes[above].function == m->more &&
			 s->nodes[above].parent != PEM_SAMPLES_NONE)
			node = above;
		else
			node = node_of(m, above, m->more);
		now[i] = (uint32_t)node;
	}
	for (i = 0; node >= 0 && i < s->entry_count; i++)
		s->entries[i].node = now[s->entries[i].node];
	free(old);
	free(now);
	if (node < 0)
		return -ENOMEM;
	add_up(s);
	return 0;
}

static int make_tree(struct making *m, size_t nodes_max)
{
	struct pem_samples *s = m->samples;
	int64_t more = function_of(m, "", "(more)", PEM_CODE_NONE, false), node;
	size_t i;

	if (more < 0)
		return -ENOMEM;
	m->more = (uint32_t)more;
	for (i = 0; i < s->entry_count; i++) {
		node = node_of_stack(m, s->entries[i].node, s->entries[i].group);
		if (node < 0)
			return -ENOMEM;
		s->entries[i].node = (uint32_t)node;
	}
	add_up(s);
	return nodes_max && s->node_count > nodes_max ? prune(m, nodes_max) : 0;
}

int pem_samples__finish(struct pem_samples *samples, const struct pem_trace *trace,
			const struct pem_pass *pass, size_t nodes_max)
{
	struct making making = {.samples = samples};
	int rc = pem_code__name(samples->code, trace);

	if (!rc && samples->of == PEM_SAMPLES_OF_ALLOCATIONS)
		rc = add_ends(samples, trace, pass);
	if (!rc)
		rc = make_tree(&making, nodes_max);
	pem_number_map__free(&making.function_at);
	pem_number_map__free(&making.location_at);
	pem_number_map__free(&making.node_at);
	return rc;
}
