/* SPDX-License-Identifier: MIT */
/*
 * none.c - C stubs that compile to nothing: DIR/<provider>.h with the functions of backend c, all
 * of them empty
 */
#include "c_text.h"

#include <stdlib.h>

static void put_notify(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	pem_c_put_enabled(f, event, "0");
	pem_c_begin_notify(f, event);
	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].type == PEM_TYPE_LIST)
			fprintf(f, "\t(void)%s_count;\n", event->fields[i].c_name);
		fprintf(f, "\t(void)%s;\n", event->fields[i].c_name);
	}
	fprintf(f, "}\n\n");
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	const struct pem_spec *spec;
	char *name;
	size_t i, k;
	FILE *f;

	for (i = 0; i < set->count; i++) {
		spec = &set->specs[i];
		name = pem_xprintf("%s.h", spec->provider);
		f = pem_output__file(out, name);
		pem_c_begin_header(f, set, spec, "#include <stddef.h>\n#include <stdint.h>\n");
		for (k = 0; k < spec->event_count; k++) {
			if (spec->events[k].source_kind == PEM_SOURCE_STUB)
				put_notify(f, &spec->events[k]);
		}
		pem_c_end_header(f);
		free(name);
	}
}

const struct pem_backend pem_backend_none = {
	.name = "none",
	.description = "PROVIDER.h with the stubs of backend c, which compile to nothing",
	.emit = emit,
};
