/* SPDX-License-Identifier: MIT */
/*
 * reference.c - the texts of the event reference: pages, partners, sources, costs
 *
 * A cost is described by what is done, not in nanoseconds. Nanoseconds depend on the machine, and
 * pem doctor measures them.
 */
#include "reference.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* --- pages --- */

static int same_class(const struct reference_page *page, const struct pem_spec_event *event)
{
	return !strcmp(page->layer, event->layer) && !strcmp(page->class_name, event->class_name);
}

/* The name of a page, "os-sched". Classes that differ only in capitals get a number. */
static char *page_name(const struct reference *reference, const char *layer, const char *class_name)
{
	char *name = pem_xprintf("%s-%s", layer, class_name), *at;
	size_t i, alike = 1;

	for (at = name; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	for (i = 0; i < reference->count; i++)
		alike += !strncmp(reference->pages[i].name, name, strlen(name)) &&
			 strchr("-", reference->pages[i].name[strlen(name)]) != NULL;
	if (alike > 1) {
		at = pem_xprintf("%s-%zu", name, alike);
		free(name);
		name = at;
	}
	return name;
}

static struct reference_page *page_for(struct reference *reference,
				       const struct pem_spec_event *event)
{
	struct reference_page *page;
	size_t i;

	for (i = 0; i < reference->count; i++)
		if (same_class(&reference->pages[i], event))
			return &reference->pages[i];
	reference->pages = pem_xgrow(reference->pages, reference->count, sizeof(*page));
	page = &reference->pages[reference->count];
	memset(page, 0, sizeof(*page));
	page->layer = event->layer;
	page->class_name = event->class_name;
	page->name = page_name(reference, event->layer, event->class_name);
	reference->count++;
	return page;
}

static int by_class(const void *a, const void *b)
{
	const struct reference_page *x = a, *y = b;
	int order = strcmp(x->layer, y->layer);

	return order ? order : strcmp(x->class_name, y->class_name);
}

static int by_event(const void *a, const void *b)
{
	const struct pem_spec_event *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

struct reference *reference__new(const struct pem_spec_set *set)
{
	struct reference *reference = pem_xrealloc(NULL, 1, sizeof(*reference));
	struct reference_page *page;
	size_t i, k;

	memset(reference, 0, sizeof(*reference));
	reference->set = set;
	for (i = 0; i < set->count; i++) {
		for (k = 0; k < set->specs[i].event_count; k++) {
			page = page_for(reference, &set->specs[i].events[k]);
			page->events = pem_xgrow(page->events, page->count,
						 sizeof(const struct pem_spec_event *));
			page->events[page->count++] = &set->specs[i].events[k];
		}
	}
	if (reference->count)
		qsort(reference->pages, reference->count, sizeof(*reference->pages), by_class);
	for (i = 0; i < reference->count; i++)
		qsort(reference->pages[i].events, reference->pages[i].count,
		      sizeof(const struct pem_spec_event *), by_event);
	return reference;
}

void reference__free(struct reference *reference)
{
	size_t i;

	if (!reference)
		return;
	for (i = 0; i < reference->count; i++) {
		free(reference->pages[i].name);
		free(reference->pages[i].events);
	}
	free(reference->pages);
	free(reference);
}

const struct reference_page *reference__page_of(const struct reference *reference,
						const struct pem_spec_event *event)
{
	size_t i;

	for (i = 0; i < reference->count; i++)
		if (same_class(&reference->pages[i], event))
			return &reference->pages[i];
	return NULL; /* not a spec of this set */
}

const struct pem_spec *reference__next_spec(const struct reference *reference,
					    const struct reference_page *page, size_t *at)
{
	size_t i;

	for (; *at < reference->set->count; (*at)++)
		for (i = 0; i < page->count; i++)
			if (page->events[i]->spec == &reference->set->specs[*at])
				return &reference->set->specs[(*at)++];
	return NULL;
}

/* --- partners --- */

static int pairs_with(const struct pem_spec_event *a, const struct pem_spec_event *b)
{
	static const uint8_t partners[][2] = {
		{PEM_MEANS_INTERVAL_BEGIN, PEM_MEANS_INTERVAL_END},
		{PEM_MEANS_ALLOCATION, PEM_MEANS_RELEASE},
		{PEM_MEANS_SEND, PEM_MEANS_RECEIVE},
		{PEM_MEANS_ACCESS, PEM_MEANS_ALLOCATION},
		{PEM_MEANS_ACCESS, PEM_MEANS_RELEASE},
	};
	size_t i;

	if (!a->group[0] || strcmp(a->group, b->group) != 0)
		return 0;
	for (i = 0; i < sizeof(partners) / sizeof(partners[0]); i++)
		if ((a->meaning == partners[i][0] && b->meaning == partners[i][1]) ||
		    (a->meaning == partners[i][1] && b->meaning == partners[i][0]))
			return 1;
	return 0;
}

const struct pem_spec_event *reference__next_partner(const struct reference *reference,
						     const struct pem_spec_event *event, size_t *at)
{
	size_t i, k, seen = 0;

	for (i = 0; i < reference->count; i++) {
		for (k = 0; k < reference->pages[i].count; k++, seen++) {
			if (seen < *at || !pairs_with(event, reference->pages[i].events[k]))
				continue;
			*at = seen + 1;
			return reference->pages[i].events[k];
		}
	}
	return NULL;
}

/* --- words --- */

const char *reference__layer(const char *layer)
{
	if (!strcmp(layer, "HW"))
		return "hardware";
	if (!strcmp(layer, "OS"))
		return "operating system";
	if (!strcmp(layer, "APP"))
		return "libraries and applications";
	if (!strcmp(layer, "CPO"))
		return "pem and its agents";
	return layer;
}

char *reference__type(const struct pem_spec_field *field)
{
	switch (field->type) {
	case PEM_TYPE_LIST:
		return pem_xprintf("list of up to %u %s", field->max_count,
				   pem_word__type(field->element_type));
	case PEM_TYPE_ARRAY:
		return pem_xprintf("array of %u %s", field->max_count,
				   pem_word__type(field->element_type));
	case PEM_TYPE_STRING:
		return pem_xprintf("string of up to %u bytes", field->max_count - 1);
	default:
		return pem_xstrdup(pem_word__type(field->type));
	}
}

int reference__is_hexadecimal(const struct pem_spec_field *field)
{
	return field->base == 16 && field->type != PEM_TYPE_ADDRESS &&
	       field->element_type != PEM_TYPE_ADDRESS;
}

const char *reference__level(const struct pem_spec_event *event)
{
	if (event->level <= PEM_LEVEL_INFO)
		return "recorded unless a recording names other events";
	if (event->level == PEM_LEVEL_NAMED)
		return "recorded only when named in full";
	return "recorded only when named, in full or by a pattern";
}

const char *reference__meaning(const struct pem_spec_event *event)
{
	static const char *const meanings[PEM_MEANING_COUNT] = {
		[PEM_MEANS_NOTHING] = "",
		[PEM_MEANS_SETS_THREAD] =
			"its CPU runs another thread from now on, which all later "
			"kernel events of the CPU are about",
		[PEM_MEANS_THREAD_START] = "a thread begins to exist",
		[PEM_MEANS_THREAD_END] = "a thread ceases to exist",
		[PEM_MEANS_PROCESS_NAME] = "the process has this name from now on",
		[PEM_MEANS_THREAD_NAME] = "the thread has this name from now on",
		[PEM_MEANS_THREAD_WAKING] = "the current thread is about to wake another one",
		[PEM_MEANS_THREAD_RUNNABLE] = "the thread waits for a CPU from now on",
		[PEM_MEANS_PROCESS_ARGUMENTS] = "the process has these arguments",
		[PEM_MEANS_DESCRIPTOR_NAME] = "the descriptor is this file from now on",
		[PEM_MEANS_CALL_PATH] = "the system call takes this path",
		[PEM_MEANS_THREAD_STATE] = "the recorder found the thread in this state",
		[PEM_MEANS_FRAME] = "a stack of calls is this call from that stack",
		[PEM_MEANS_INTERVAL_BEGIN] = "an interval begins",
		[PEM_MEANS_INTERVAL_END] = "an interval ends",
		[PEM_MEANS_COUNTER] = "a reading of a counter that only grows; its rate is shown",
		[PEM_MEANS_GAUGE] = "a reading of a quantity that goes up and down",
		[PEM_MEANS_ALLOCATION] = "memory is handed out",
		[PEM_MEANS_RELEASE] = "memory is given back",
		[PEM_MEANS_SAMPLE] = "how things stood at a moment of a clock; nothing happened",
		[PEM_MEANS_SEND] = "something leaves for its receiver",
		[PEM_MEANS_RECEIVE] = "something arrives from its sender",
		[PEM_MEANS_ACCESS] =
			"an address is touched, which lies in a block, a mapping or a data "
			"structure",
		[PEM_MEANS_OBJECT] = "a program or library lies in memory there from now on",
	};

	return event->meaning < PEM_MEANING_COUNT ? meanings[event->meaning] : "";
}

/* The names of all fields with a role, as "a, b and c". NULL: there are none. */
static char *fields_of_role(const struct pem_spec_event *event, unsigned role)
{
	char *text = NULL, *longer;
	size_t i, count = 0, seen = 0;

	for (i = 0; i < event->field_count; i++)
		count += event->fields[i].role == role;
	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].role != role)
			continue;
		seen++;
		longer = pem_xprintf("%s%s%s", text ? text : "",
				     seen == 1       ? ""
				     : seen == count ? " and "
						     : ", ",
				     event->fields[i].name);
		free(text);
		text = longer;
	}
	return text;
}

char *reference__matching(const struct pem_spec_event *event)
{
	static const char *const scopes[PEM_SCOPE_COUNT] = {
		[PEM_SCOPE_NONE] = "anywhere",
		[PEM_SCOPE_THREAD] = "in the same thread",
		[PEM_SCOPE_PROCESS] = "in the same process",
		[PEM_SCOPE_CPU] = "on the same CPU",
		[PEM_SCOPE_SYSTEM] = "anywhere on the machine",
	};
	const char *scope = event->scope < PEM_SCOPE_COUNT ? scopes[event->scope] : "";
	char *keys, *text;

	if (!event->group[0])
		return pem_xstrdup("");
	keys = fields_of_role(event, PEM_ROLE_KEY);
	if (!keys)
		keys = fields_of_role(event, PEM_ROLE_ADDRESS);
	if (!keys)
		keys = fields_of_role(event, PEM_ROLE_NAME);
	if (keys)
		text = pem_xprintf("group %s, %s, same %s", event->group, scope, keys);
	else
		text = pem_xprintf("group %s, %s", event->group, scope);
	free(keys);
	return text;
}

const char *reference__origin(const struct pem_spec_event *event)
{
	static const char *const origins[PEM_SOURCE_COUNT] = {
		[PEM_SOURCE_STUB] = "whoever calls the generated stub",
		[PEM_SOURCE_TRACEPOINT] = "the kernel, at a tracepoint",
		[PEM_SOURCE_PERF] = "the recorder, reading a counter that libpfm4 names",
		[PEM_SOURCE_SAMPLE] = "the recorder, from samples taken by a clock",
		[PEM_SOURCE_USDT] = "a static probe (USDT) of a binary",
		[PEM_SOURCE_MODULE] = "the kernel module, which looks for itself",
		[PEM_SOURCE_SIMULATED] = "a simulated machine (pem stat --hardware)",
		[PEM_SOURCE_PROBE] = "a place in the kernel or a binary",
		[PEM_SOURCE_UPROBE] = "a function of a binary, as it begins",
		[PEM_SOURCE_PROC] = "the recorder, reading /proc as it begins and ends",
	};

	if (event->source_kind == PEM_SOURCE_STUB && event->source_count &&
	    event->sources[0].name[0])
		return "a library";
	return event->source_kind < PEM_SOURCE_COUNT ? origins[event->source_kind] : "";
}

char *reference__source(const struct pem_spec_event *event, size_t source)
{
	const struct pem_spec_source *s = &event->sources[source];

	if (event->source_kind == PEM_SOURCE_STUB && !s->name[0])
		return pem_xprintf("pem_notify_%s() in C", event->c_name);
	if (s->kernel)
		return pem_xprintf("%s (kernels %s)", s->name, s->kernel);
	if (s->binary)
		return pem_xprintf("%s (in %s)", s->name, s->binary);
	return pem_xstrdup(s->name);
}

/* --- cost --- */

char *reference__size(const struct pem_spec_event *event)
{
	unsigned least = (event->fixed_bytes + 7u) & ~7u;

	if (event->has_tail)
		return pem_xprintf("%u to %u bytes per record, its header included", least,
				   event->max_bytes);
	return pem_xprintf("%u bytes per record, its header included", least);
}

/* Number of stores that a stub makes: the header's two words, each number, each length. */
static size_t stores(const struct pem_spec_event *event)
{
	size_t i, count = 2;

	for (i = 0; i < event->field_count; i++)
		count += event->fields[i].type != PEM_TYPE_STRING &&
			 event->fields[i].type != PEM_TYPE_ARRAY;
	return count;
}

char *reference__cost(const struct pem_spec_event *event)
{
	switch (event->source_kind) {
	case PEM_SOURCE_STUB:
		return pem_xprintf("off: one load, a test and a branch; logged: one clock read and "
				   "about %zu stores%s",
				   stores(event),
				   event->has_tail ? ", and a copy of its texts and lists" : "");
	case PEM_SOURCE_TRACEPOINT:
		return pem_xstrdup("off: nothing, the tracepoint is not attached to; recorded: a "
				   "program in the kernel at each occurrence");
	case PEM_SOURCE_PERF:
		return pem_xstrdup("no cost per occurrence: hardware or kernel counts anyway; one "
				   "system call per reading and counter");
	case PEM_SOURCE_SIMULATED:
		return pem_xstrdup("the program runs some fifty times slower, under Valgrind");
	case PEM_SOURCE_SAMPLE:
		return pem_xstrdup("off: nothing; recorded: an interrupt per sample");
	case PEM_SOURCE_UPROBE:
	case PEM_SOURCE_USDT:
		return pem_xprintf("off: %s; recorded: a trap into the kernel at each occurrence",
				   event->source_kind == PEM_SOURCE_USDT
					   ? "one instruction that does nothing"
					   : "nothing");
	case PEM_SOURCE_MODULE:
		return pem_xstrdup("off: nothing; recorded: what looking costs, as often as it is "
				   "asked for");
	case PEM_SOURCE_PROC:
		return pem_xstrdup("no cost to the program; the recorder reads some files in /proc "
				   "for each thread");
	default:
		return pem_xstrdup("");
	}
}

/* --- small things --- */

char *reference__label_value(const struct pem_spec_field *field, const struct pem_spec_label *label)
{
	if (field->labels->kind == PEM_LABELS_FLAGS || field->base == 16)
		return pem_xprintf("0x%llx", (unsigned long long)label->value);
	if (label->is_negative)
		return pem_xprintf("%lld", (long long)label->value);
	return pem_xprintf("%llu", (unsigned long long)label->value);
}
