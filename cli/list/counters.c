// SPDX-License-Identifier: MIT
/* counters.c - pem list: what counters are counted as, and which of them must take turns */
#include "list.h"

#include <inttypes.h>
#include <string.h>

bool list_has_counters(const struct list *list)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (list->entries[i].is_counter)
			return true;
	return false;
}

/* Some names have all that narrows the event down. */
#define NAME_MOST 44

const char *list_counted_as(const struct list *list, const struct list_entry *entry)
{
	const char *name = entry->as.name;

	if (!entry->is_counted)
		return entry->is_counter ? "-" : "";
	if (strlen(name) > NAME_MOST)
		name = cli_format("%.*s...", NAME_MOST - 3, name);
	if (entry->turn == 0 || list->turns < 2)
		return name;
	return cli_format("%s (turn %" PRIu32 ")", name, entry->turn);
}

const char *list_counted_fact(const struct list_entry *entry)
{
	return cli_format("%s: type %" PRIu32 ", config 0x%" PRIx64 " of perf_event_open; %s",
			  entry->as.name, entry->as.type, entry->as.config,
			  entry->as.takes_counter ? "takes a counter of the processor"
						  : "the kernel counts it, at any time");
}

/* "4 counters for any event and 3 for one event each, as libpfm4 tells"; "": unknown. */
static const char *processor_words(const struct pem_counted_as *as)
{
	if (as->counters == 0)
		return "";
	if (as->fixed_counters == 0)
		return cli_format(" The processor has %" PRIu32 " for a thread, as libpfm4 tells.",
				  as->counters);
	return cli_format(" The processor has %" PRIu32 " for any event of a thread and %" PRIu32
			  " for one event each, as libpfm4 tells.",
			  as->counters, as->fixed_counters);
}

void list_print_counters(const struct list *list)
{
	const struct pem_counted_as *as = NULL;
	size_t i, taking = 0, counted = 0;
	const char *text;

	for (i = 0; i < list->count; i++) {
		const struct list_entry *entry = &list->entries[i];

		if (!entry->is_counted || !entry->as.takes_counter)
			continue;
		as = &entry->as;
		taking++;
		counted += entry->turn != 0;
	}
	if (taking == 0)
		return;
	if (counted == 0)
		text = cli_format("%s a counter of the processor, and this machine offers none.",
				  taking == 1 ? "One of these takes"
					      : cli_format("%zu of these take", taking));
	else if (list->turns == 1)
		text = cli_format("%zu of these take a counter of the processor each. All are "
				  "counted at the same times.%s",
				  counted, processor_words(as));
	else
		text = cli_format("%zu of these take a counter of the processor each. Counted "
				  "together they must share it, in %d turns: what is counted for a "
				  "part of the time is estimated for the rest.%s",
				  counted, list->turns, processor_words(as));
	putchar('\n');
	cli_wrap(stdout, text, 0, 0, cli_width(stdout));
}
