/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * plan.c - what each event of a trace's model means to the pass, worked out once
 */
#include "pass.h"
#include "hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pem_event__is_phase(const struct pem_event *event)
{
	return event &&
	       (event->meaning == PEM_MEANS_INTERVAL_BEGIN ||
		event->meaning == PEM_MEANS_INTERVAL_END) &&
	       event->level <= PEM_LEVEL_INFO &&
	       (!strcmp(event->layer, "APP") || !strcmp(event->layer, "CPO"));
}

static struct pem_number_at number_at(const struct pem_event *event, enum pem_role role)
{
	struct pem_number_at at = {0};
	int field = pem_event__field_by_role(event, role);
	const struct pem_field *f;

	if (field < 0)
		return at;
	f = &event->fields[field];
	/* Fractions are no keys, sizes or addresses. */
	if (f->type == PEM_TYPE_FLOAT32 || f->type == PEM_TYPE_FLOAT64)
		return at;
	at.offset = f->offset;
	at.bytes = (uint8_t)pem_type__bytes((enum pem_type)f->type);
	at.is_signed = f->type >= PEM_TYPE_INT8 && f->type <= PEM_TYPE_INT64;
	return at;
}

/* Number of a group and scope. Events of another scope never match. */
static uint32_t group_of(struct pem_plans *plans, uint8_t *scopes, const struct pem_event *event)
{
	size_t i;

	if (event->scope == PEM_SCOPE_NONE)
		return PEM_NONE;
	for (i = 0; i < plans->group_count; i++)
		if (scopes[i] == event->scope && !strcmp(plans->groups[i], event->group))
			return (uint32_t)i;
	scopes[i] = event->scope;
	plans->groups[i] = event->group;
	plans->group_count++;
	return (uint32_t)i;
}

static void fill(struct pem_plan *plan, const struct pem_event *event)
{
	unsigned i;

	plan->event = event;
	plan->meaning = event->meaning;
	plan->scope = event->scope;
	plan->is_phase = pem_event__is_phase(event);
	plan->shows_observed = event->meaning != PEM_MEANS_SETS_THREAD &&
			       event->meaning != PEM_MEANS_THREAD_WAKING &&
			       event->meaning != PEM_MEANS_THREAD_RUNNABLE &&
			       event->meaning != PEM_MEANS_THREAD_START &&
			       event->meaning != PEM_MEANS_THREAD_END &&
			       event->meaning != PEM_MEANS_THREAD_NAME &&
			       event->meaning != PEM_MEANS_PROCESS_NAME &&
			       event->scope != PEM_SCOPE_SYSTEM && event->scope != PEM_SCOPE_CPU;
	plan->name = (int16_t)pem_event__field_by_role(event, PEM_ROLE_NAME);
	for (i = 0; i < event->field_count && plan->key_count < PEM_KEYS_MAX; i++)
		if (event->fields[i].role == PEM_ROLE_KEY)
			plan->keys[plan->key_count++] = (uint8_t)i;
	plan->ends_elsewhere = event->scope == PEM_SCOPE_THREAD && plan->name >= 0 &&
			       !plan->key_count && plan->is_phase;
	plan->process = number_at(event, PEM_ROLE_PROCESS);
	plan->thread = number_at(event, PEM_ROLE_THREAD);
	plan->previous_thread = number_at(event, PEM_ROLE_PREVIOUS_THREAD);
	plan->parent = number_at(event, PEM_ROLE_PARENT);
	plan->state = number_at(event, PEM_ROLE_STATE);
	plan->address = number_at(event, PEM_ROLE_ADDRESS);
	plan->old_address = number_at(event, PEM_ROLE_OLD_ADDRESS);
	plan->size = number_at(event, PEM_ROLE_SIZE);
	plan->code = number_at(event, PEM_ROLE_CODE);
	plan->stack = number_at(event, PEM_ROLE_STACK);
	plan->system_call = number_at(event, PEM_ROLE_SYSTEM_CALL);
	plan->descriptor = number_at(event, PEM_ROLE_DESCRIPTOR);
	plan->file_kind = number_at(event, PEM_ROLE_FILE_KIND);
	plan->interrupt = number_at(event, PEM_ROLE_INTERRUPT);
	plan->holder = number_at(event, PEM_ROLE_HOLDER);
	plan->is_of_proc = event->source_kind == PEM_SOURCE_PROC;
}

/* scopes has a byte for each group. */
static void find_named(struct pem_plans *plans, uint8_t *scopes)
{
	struct pem_plan *plan, *end = plans->entries + plans->entry_count;

	memset(scopes, 0, plans->group_count);
	for (plan = plans->entries; plan < end; plan++)
		if (plan->event && plan->group != PEM_NONE && plan->name >= 0)
			scopes[plan->group] = 1;
	for (plan = plans->entries; plan < end; plan++)
		plan->is_named = plan->event && plan->group != PEM_NONE && scopes[plan->group];
}

int pem_plans__build(struct pem_plans *plans, const struct pem_event_table *table,
		     const struct pem_model *model)
{
	size_t i, count = pem_model__count(model);
	uint8_t *scopes = calloc(count + 1, 1);

	plans->entry_count = table->mask + 1ul;
	plans->entries = calloc(plans->entry_count, sizeof(*plans->entries));
	plans->groups = calloc(count + 1, sizeof(*plans->groups));
	if (!plans->entries || !plans->groups || !scopes) {
		free(scopes);
		return -ENOMEM;
	}
	for (i = 0; i < count; i++) {
		const struct pem_event *event = pem_model__event(model, i);
		size_t at = (size_t)(pem_event_table__find(table, event->id) - table->entries);

		fill(&plans->entries[at], event);
		plans->entries[at].group = group_of(plans, scopes, event);
		plans->has_access |= event->meaning == PEM_MEANS_ACCESS;
		if (pem_files__plan(&plans->entries[at]))
			break;
	}
	find_named(plans, scopes);
	free(scopes);
	return i < count ? -ENOMEM : 0;
}

void pem_plans__free(struct pem_plans *plans)
{
	size_t i;

	for (i = 0; plans->entries && i < plans->entry_count; i++)
		free(plans->entries[i].call_kinds);
	free(plans->entries);
	free(plans->groups);
}

static uint64_t hash_field(const struct pem_record *record, unsigned field)
{
	if (record->event->fields[field].type == PEM_TYPE_STRING)
		return pem_hash__text(PEM_HASH_START, pem_record__string(record, field));
	return (uint64_t)pem_record__i64(record, field);
}

uint64_t pem_plan__hash_keys(const struct pem_plan *plan, const struct pem_record *record)
{
	uint64_t hash = 0;
	unsigned i;

	for (i = 0; i < plan->key_count; i++)
		hash = pem_mix2(hash + i + 1, hash_field(record, plan->keys[i]));
	return hash;
}

uint64_t pem_plan__hash_name(const struct pem_plan *plan, const struct pem_record *record)
{
	/* Mixed: numbers that differ in the last bit would be one name. */
	return pem_mix(hash_field(record, (unsigned)plan->name)) | 1;
}
