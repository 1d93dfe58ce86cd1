/* SPDX-License-Identifier: MIT */
/*
 * fuzz_model.c - libFuzzer: any bytes as the text of a model
 *
 * What is accepted must come back from its own text, and its layouts must be safe to read records with.
 */
#include <pem/model.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct pem_model *model = pem_model__new(), *again;
	struct pem_error error;
	char *text;
	size_t i;

	if (!model)
		return 0;
	if (pem_model__add_text(model, (const char *)data, bytes, "fuzz", &error) >= 0) {
		text = pem_model__to_text(model);
		again = pem_model__new();
		if (!text || !again ||
		    pem_model__add_text(again, text, strlen(text), "again", &error) !=
			    (int)pem_model__count(model))
			abort();
		/* The input stands in for a record of each event. */
		for (i = 0; i < pem_model__count(model); i++)
			pem_event__record_bytes(pem_model__event(model, i), data, bytes);
		pem_model__free(again);
		free(text);
	}
	pem_model__free(model);
	return 0;
}
