/* SPDX-License-Identifier: MIT */
/* settings_text.c - libFuzzer: a key, a line's end, and any bytes as a configuration file */
#include "agents/settings/ways.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static volatile size_t sink;

static void check(const struct settings_spot *spot, const char *text, size_t bytes)
{
	size_t i;

	if (!memchr(spot->value, '\0', sizeof(spot->value)))
		abort();
	if (spot->found) {
		if (spot->at > spot->end || spot->end > bytes)
			abort();
		for (i = spot->at; i < spot->end; i++)
			sink += (unsigned char)text[i];
	} else if (spot->appends && (spot->append_at > bytes || !spot->append_key)) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct settings_spot spot;
	const uint8_t *end = memchr(data, '\n', bytes);
	struct pem_error error;
	char *key, *text;
	size_t left;

	if (!end || memchr(data, '\0', bytes))
		return 0;
	key = strndup((const char *)data, (size_t)(end - data));
	left = bytes - (size_t)(end + 1 - data);
	/* Without a zero after it, so that reading on is found. */
	text = malloc(left ? left : 1);
	if (!key || !text)
		abort();
	memcpy(text, end + 1, left);
	if (!settings_lines__find(&spot, text, left, key, &error))
		check(&spot, text, left);
	if (settings_tree__find && !settings_tree__find(&spot, text, left, key, &error))
		check(&spot, text, left);
	free(key);
	free(text);
	return 0;
}
