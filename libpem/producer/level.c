/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * level.c - the levels of events of this process's own providers, from their model texts
 *
 * A level is needed only when a session wants all events up to a level. Every recorded process may
 * then have to answer, so each text is read once. Parsing models is in model_parse.c.
 */
#include "model_internal.h"
#include "producer/producer.h"

#include <stdlib.h>
#include <string.h>

#define LEVEL_CELL 7 /* of an event's line; see model_parse.c */

static uint8_t level_of(const char *line)
{
	size_t length;
	unsigned cell;

	for (cell = 0; cell < LEVEL_CELL; cell++) {
		line += strcspn(line, "\t\n");
		if (*line != '\t')
			return PEM_LEVEL_INFO;
		line++;
	}
	length = strcspn(line, "\t\n");
	for (cell = PEM_LEVEL_ERROR; cell < PEM_LEVEL_COUNT; cell++) {
		if (strlen(pem_level_words[cell]) == length &&
		    !memcmp(pem_level_words[cell], line, length))
			return (uint8_t)cell;
	}
	return PEM_LEVEL_INFO;
}

/*
 * The text has the events in the provider's order. An event in another place gets the level of the
 * line there.
 */
static void read_levels(const struct pem_provider *provider)
{
	static const char start[] = "\nevent\t";
	uint8_t *levels = &pem_process.event_level[provider->event_base];
	const char *line = provider->model;
	uint32_t i = 0, id, k;

	memset(levels, PEM_LEVEL_INFO, provider->event_count);
	while ((line = strstr(line, start))) {
		line += sizeof(start) - 1;
		id = (uint32_t)strtoul(line, NULL, 16);
		for (k = 0; k < provider->event_count && provider->event_ids[i] != id; k++)
			i = (i + 1) % provider->event_count;
		if (k < provider->event_count)
			levels[i] = level_of(line - 1 - strlen("event"));
	}
}

unsigned pem_provider__level(const struct pem_provider *provider, uint32_t i)
{
	if (!pem_process.event_level[provider->event_base + i])
		read_levels(provider);
	return pem_process.event_level[provider->event_base + i];
}
