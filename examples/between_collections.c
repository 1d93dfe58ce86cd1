// SPDX-License-Identifier: MIT
/*
 * between_collections.c - page faults and cache misses between garbage collections
 *
 * Figure 4 of the paper on Performance and Environment Monitoring (Cascaval, Duesterwald, Sweeney,
 * Wisniewski, IBM J. R&D 50(2/3), 2006), for real: a callback on an event of one layer, the
 * application, reads statistics of two others, the operating system and the hardware. The program
 * watched is this one; it could be any that raises APP::GC::Start and APP::GC::End.
 *
 *	between_collections [COLLECTIONS [PAGES]]	default: 5 collections, 1000 fresh pages
 *							before each
 *
 * It prints one line for each interval between two collections:
 *
 *	from CLOCK to CLOCK: N page faults, M cache misses
 *
 * Page faults come from the kernel's page fault path, which takes privilege (root, or CAP_BPF and
 * CAP_PERFMON). Without it they come from the kernel's counter HW::Software::PageFaults, which
 * counts those of one's own threads for anybody unless kernel.perf_event_paranoid forbids it. Where
 * neither can be had, the program says why and exits with 2. Cache misses take a processor whose
 * counters can be seen, as in most virtual machines they can't: then "n/a".
 */
#include "collector.h"

#include <pem/pem.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What the callbacks share. They run in the thread that raises the event, here always this one. */
struct interval {
	struct pem_statistics *stats;
	uint64_t end_of_last; /* clock at the last collection's end; 0: there was none yet */
};

/* Figure 4's gcEnd: from here to the next collection, count. */
static void gc_end(const struct pem_record *record, void *arg)
{
	struct interval *interval = arg;

	interval->end_of_last = record->clock;
	pem_statistics__reset(interval->stats);
	pem_statistics__enable(interval->stats);
}

static void print_count(const struct pem_statistic *value, const char *what)
{
	if (value->unavailable)
		printf("n/a %s", what);
	else
		printf("%" PRIu64 " %s", value->count, what);
}

/*
 * Figure 4's gcStart: stop counting first, so that neither the collector nor the printing counts.
 */
static void gc_start(const struct pem_record *record, void *arg)
{
	struct interval *interval = arg;
	struct pem_statistic values[2] = {{.size = sizeof(values[0])}};

	pem_statistics__disable(interval->stats);
	if (!interval->end_of_last)
		return;
	pem_statistics__read(interval->stats, values, 2);
	printf("from %" PRIu64 " to %" PRIu64 ": ", interval->end_of_last, record->clock);
	print_count(&values[0], "page faults, ");
	print_count(&values[1], "cache misses\n");
}

/*
 * The event set, page faults first: the kernel's if this user may have them, else the counter's.
 * Says on standard error what can't be had and why. NULL: no page faults at all.
 */
static struct pem_event_set *choose_events(struct pem_session *session)
{
	const char *patterns[] = {"OS::Mem::PageFault", "HW::HWPerf::CacheMisses"};
	struct pem_event_set *set;
	struct pem_error why;
	int attempt;

	for (attempt = 0; attempt < 2; attempt++) {
		set = pem_event_set__new(session, patterns, 2, &why);
		if (set && pem_session__can_deliver(session, pem_event_set__event(set, 0), &why))
			break;
		fprintf(stderr, "no %s: %s\n", patterns[0], why.text);
		pem_event_set__free(set);
		set = NULL;
		patterns[0] = "HW::Software::PageFaults";
	}
	if (set && !pem_session__can_deliver(session, pem_event_set__event(set, 1), &why))
		fprintf(stderr, "no %s: %s\n", patterns[1], why.text);
	return set;
}

/* A callback on one event of this thread; enabled. NULL, and the reason is printed. */
static struct pem_callback *call_back_on(struct pem_session *session,
					 const struct pem_context *context, const char *name,
					 void (*function)(const struct pem_record *, void *),
					 struct interval *interval)
{
	struct pem_callback *callback = NULL;
	struct pem_event_set *set;
	struct pem_error why;

	set = pem_event_set__new(session, &name, 1, &why);
	if (set)
		callback = pem_session__register_callback(session, set, context, function, interval,
							  &why);
	pem_event_set__free(set); /* handles keep what they need of a set */
	if (callback)
		pem_callback__enable(callback);
	else
		fprintf(stderr, "no callback on %s: %s\n", name, why.text);
	return callback;
}

/* The program that is watched: allocate, collect, allocate, collect. */
static int run_program(size_t collections, size_t pages)
{
	struct heap *heap = heap_new((collections + 2) * pages + 1);
	int result = heap ? 0 : -1;
	size_t i;

	for (i = 0; !result && i < collections; i++) {
		result = heap_allocate(heap, pages);
		if (!result)
			result = heap_collect(heap);
	}
	heap_free(heap);
	return result;
}

int main(int argc, char **argv)
{
	size_t collections = argc > 1 ? strtoul(argv[1], NULL, 10) : 5;
	size_t pages = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	/* Figure 4's context: any processor, this process, this thread. */
	struct pem_context context = {0};
	struct pem_callback *start = NULL, *end = NULL;
	struct interval interval = {NULL, 0};
	struct pem_session *session;
	struct pem_event_set *events;
	struct pem_error why;
	int status = 2;

	context.pid = (uint32_t)getpid();
	context.tid = (uint32_t)gettid();
	session = pem_session__open(NULL, &why);
	if (!session) {
		fprintf(stderr, "%s\n", why.text);
		return 3;
	}
	events = choose_events(session);
	if (!events)
		goto close;
	status = 3;
	/*
	 * COUNT of each event: no attribute is named. Registered, not enabled: the first GC End
	 * does that.
	 */
	interval.stats = pem_session__register_statistics(session, events, &context, NULL, &why);
	if (!interval.stats) {
		fprintf(stderr, "%s\n", why.text);
		goto close;
	}
	/* Enabling opens the sources, once: now, and not in the middle of the first interval. */
	pem_statistics__enable(interval.stats);
	pem_statistics__disable(interval.stats);
	start = call_back_on(session, &context, "APP::GC::Start", gc_start, &interval);
	end = call_back_on(session, &context, "APP::GC::End", gc_end, &interval);
	if (start && end && !run_program(collections, pages))
		status = 0;
	pem_callback__unregister(start);
	pem_callback__unregister(end);
	pem_statistics__unregister(interval.stats);
close:
	pem_event_set__free(events);
	pem_session__close(session);
	return status;
}
