/* SPDX-License-Identifier: MIT */
/* perfetto_names.c - names of slices and tracks, by roles and groups (contract: perfetto_names.h)
 */
#include "perfetto_names.h"

#include <string.h>

static bool has(const struct pem_event *event, enum pem_role role)
{
	return pem_event__field_by_role(event, role) >= 0;
}

/* Does an event of the end's group begin slices that have names of which the end knows nothing? */
static bool is_nameless(const struct pem_model *model, const struct pem_event *end)
{
	size_t i, count = pem_model__count(model);

	for (i = 0; i < count; i++) {
		const struct pem_event *event = pem_model__event(model, i);

		if (event->meaning == PEM_MEANS_INTERVAL_BEGIN && event->scope == end->scope &&
		    strcmp(event->group, end->group) == 0 &&
		    (has(event, PEM_ROLE_SYSTEM_CALL) ||
		     (has(event, PEM_ROLE_NAME) && !has(end, PEM_ROLE_NAME))))
			return true;
	}
	return false;
}

bool pem_slice_names__is_nameless(struct pem_slice_names *names, const struct pem_trace *trace,
				  const struct pem_event *end)
{
	if (names->end != end) {
		names->end = end;
		names->is_nameless = is_nameless(pem_trace__model(trace), end);
	}
	return names->is_nameless;
}

const char *pem_slice_names__track(const struct pem_event *event)
{
	size_t bytes = strlen(event->layer);

	if (strncmp(event->group, event->layer, bytes) == 0 &&
	    strncmp(event->group + bytes, "::", 2) == 0 && event->group[bytes + 2] != '\0')
		return event->group + bytes + 2;
	return *event->group != '\0' ? event->group : event->class_name;
}
