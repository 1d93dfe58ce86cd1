// SPDX-License-Identifier: MIT
/*
 * model.c - fuzz target: model text, as a trace or another process may hand it to us
 *
 * Whatever the text, it is taken whole or refused with a sentence; what was taken prints as text
 * that is taken again.
 */
#include <pem/model.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Walk everything a reader of the model may touch. */
static void touch(const struct pem_model *model, const uint8_t *data, size_t bytes)
{
	size_t i, f;

	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);

		const struct pem_event *first = pem_model__by_name(model, event->name);

		/* Of several versions the one added first. */
		if (pem_model__by_id(model, event->id) != event || !first ||
		    (first != event && first->version == event->version))
			abort();
		if (!pem_event__matches(event, event->name))
			abort();
		for (f = 0; f < event->field_count; f++)
			if (pem_event__field(event, event->fields[f].name) != (int)f)
				abort();
		if (pem_event__record_bytes(event, data, bytes) > (int)bytes)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct pem_model *model = pem_model__new(), *again = pem_model__new();
	struct pem_error error = {.text = ""};
	char *text = NULL;
	int added;

	if (!model || !again)
		goto out;
	added = pem_model__add_text(model, (const char *)data, bytes, "fuzz", &error);
	if (added < 0) {
		/* refused without a sentence, or half taken */
		if (!error.text[0] || pem_model__count(model))
			abort();
		goto out;
	}
	touch(model, data, bytes);
	text = pem_model__to_text(model);
	if (!text || pem_model__add_text(again, text, strlen(text), "again", &error) !=
			     (int)pem_model__count(model))
		abort();
out:
	free(text);
	pem_model__free(again);
	pem_model__free(model);
	return 0;
}
