/* SPDX-License-Identifier: MIT */
/* perfetto_names.c - names of slices, by roles and groups (contract: perfetto_names.h) */
#include "perfetto_names.h"

#include <string.h>

/* Does an event of the end's group begin slices that are named by system calls? */
static bool is_nameless(const struct pem_model *model, const struct pem_event *end)
{
	size_t i, count = pem_model__count(model);

	for (i = 0; i < count; i++) {
		const struct pem_event *event = pem_model__event(model, i);

		if (event->meaning == PEM_MEANS_INTERVAL_BEGIN && event->scope == end->scope &&
		    strcmp(event->group, end->group) == 0 &&
		    pem_event__field_by_role(event, PEM_ROLE_SYSTEM_CALL) >= 0)
			return true;
	}
	return false;
}

char *pem_slice_names__of(struct pem_slice_names *names, const struct pem_trace *trace,
			  const struct pem_record *record)
{
	const struct pem_event *event = record->event;
	int field = pem_event__field_by_role(event, PEM_ROLE_SYSTEM_CALL);
	const char *name = NULL;

	if (event->meaning == PEM_MEANS_INTERVAL_END) {
		if (names->end != event) {
			names->end = event;
			names->end_is_nameless = is_nameless(pem_trace__model(trace), event);
		}
		return names->end_is_nameless ? NULL : (char *)(uintptr_t)event->class_name;
	}
	if (field >= 0)
		name = pem_field__label(&event->fields[field],
					(uint64_t)pem_record__i64(record, (unsigned)field));
	return (char *)(uintptr_t)(name != NULL ? name : event->class_name);
}
