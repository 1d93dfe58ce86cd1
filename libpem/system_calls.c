/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * system_calls.c - the names of the system calls of the architecture that this library is built for
 *
 * A system call's number has another meaning on each architecture, so no spec can name it. The
 * built-in catalogue is of this machine: its fields of role 'system-call' get these labels. They
 * travel in the models of traces, so that a reader on another machine has the right names.
 *
 * Not here: numbers of 32-bit programs on a 64-bit kernel, which are those of another architecture.
 * The kernel's event does not tell them apart.
 */
#include "model_internal.h"

#include <pthread.h>

/* Without pointers, which the loader would have to change in every process that raises events. */
static const struct {
	char name[30], description[1];
	uint16_t number;
} system_calls[] = {
#include "system_calls.h"
};

#define COUNT (sizeof(system_calls) / sizeof(system_calls[0]))
static struct pem_label labels[COUNT];

static void make_labels(void)
{
	size_t i;

	for (i = 0; i < COUNT; i++)
		labels[i] = (struct pem_label){.name = system_calls[i].name,
					       .description = system_calls[i].description,
					       .value = system_calls[i].number};
}

_Static_assert(COUNT > 200 && COUNT <= PEM_MODEL_LABELS_MAX, "a label for each system call");

void pem_model__name_system_calls(struct pem_model *model)
{
	static pthread_once_t made = PTHREAD_ONCE_INIT;
	size_t i;
	unsigned k;

	pthread_once(&made, make_labels);
	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);

		for (k = 0; k < event->field_count; k++) {
			/* The model owns its fields and may change them. */
			struct pem_field *field = (struct pem_field *)(uintptr_t)&event->fields[k];

			if (field->role != PEM_ROLE_SYSTEM_CALL || field->label_count)
				continue;
			field->label_kind = PEM_LABELS_ENUM;
			field->label_count = COUNT;
			field->labels = labels;
		}
	}
}
