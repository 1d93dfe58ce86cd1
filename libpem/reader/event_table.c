/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* event_table.c - the table that finds a trace's events by their ids */
#include "model_internal.h"
#include "reader.h"

#include <errno.h>
#include <stdlib.h>

static void fill_info(struct pem_event_info *info, const struct pem_event *event)
{
	unsigned i;

	info->event = event;
	info->id = event->id;
	info->fixed_bytes = event->fixed_bytes;
	for (i = 0; i < event->field_count; i++)
		info->has_tail |= event->fields[i].type == PEM_TYPE_STRING ||
				  event->fields[i].type == PEM_TYPE_LIST;
	info->sets_context = event->meaning == PEM_MEANS_SETS_THREAD ||
			     event->meaning == PEM_MEANS_THREAD_START ||
			     event->meaning == PEM_MEANS_THREAD_END ||
			     event->meaning == PEM_MEANS_PROCESS_NAME ||
			     event->meaning == PEM_MEANS_THREAD_NAME;
	info->process = (int16_t)pem_event__field_by_role(event, PEM_ROLE_PROCESS);
	info->thread = (int16_t)pem_event__field_by_role(event, PEM_ROLE_THREAD);
	info->previous_thread = (int16_t)pem_event__field_by_role(event, PEM_ROLE_PREVIOUS_THREAD);
	info->parent = (int16_t)pem_event__field_by_role(event, PEM_ROLE_PARENT);
	info->name = (int16_t)pem_event__field_by_role(event, PEM_ROLE_NAME);
}

int pem_event_table__build(struct pem_event_table *table, const struct pem_model *model)
{
	size_t i, size = 64;
	uint32_t at;

	while (size < PEM_EVENT_TABLE_SPACE * pem_model__count(model))
		size *= 2;
	table->entries = calloc(size, sizeof(*table->entries));
	if (!table->entries)
		return -ENOMEM;
	table->mask = (uint32_t)size - 1;
	for (i = 0; i < pem_model__count(model); i++) {
		at = pem_event_table__hash(pem_model__event(model, i)->id);
		while (table->entries[at & table->mask].event)
			at++;
		fill_info(&table->entries[at & table->mask], pem_model__event(model, i));
	}
	return 0;
}

void pem_event_table__free(struct pem_event_table *table)
{
	free(table->entries);
}
