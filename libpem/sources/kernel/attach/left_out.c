/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* left_out.c - the sentence on parameters of functions that are no fields (contract: attach.h) */
#include "attach.h"

#include <stddef.h>

void pem_source__say_left_out(const struct pem_source *source)
{
	const struct pem_probe *first = NULL, *probe;
	size_t count = 0, i;

	for (i = 0; i < source->probe_count; i++) {
		probe = source->probes[i].probe;
		if (!probe->trouble)
			continue;
		if (!count++)
			first = probe;
	}
	if (count == 1)
		pem_source__log(source, PEM_LOG_WARNING,
				"%s is recorded without parameters that can't be read: %s",
				first->name, first->trouble);
	else if (count)
		pem_source__log(
			source, PEM_LOG_WARNING,
			"%s and %zu other functions are recorded without parameters that can't be "
			"read: pem list shows which",
			first->name, count - 1);
}
