// SPDX-License-Identifier: MIT
/*
 * between_collections.c - page faults and cache misses between garbage collections
 *
 * Figure 4 of the paper on Performance and Environment Monitoring (Cascaval, Duesterwald, Sweeney,
 * Wisniewski, IBM J. R&D 50(2/3), 2006) as a program: a callback on an event of one layer, the
 * application, reads statistics of two other layers, the operating system and the hardware. This
 * program observes itself. It could observe any program that raises APP::GC::Start and
 * APP::GC::End.
 *
 *	between_collections [COLLECTIONS [PAGES]]	default: 5 collections, 1000 fresh pages
 *							before each
 *
 * It prints one line for each interval between two collections:
 *
 *	from CLOCK to CLOCK: N page faults, M cache misses
 *
 * Page faults come from the kernel's page fault path, which needs privileges (root, or CAP_BPF and
 * CAP_PERFMON). Without these they come from the kernel's counter HW::Software::PageFaults. It
 * counts the user's own threads for every user, unless kernel.perf_event_paranoid forbids it. If
 * neither is available, the program prints the reason and exits with 2. Cache misses need a
 * processor whose counters are visible. In most virtual machines they are not, and the program
 * prints "n/a".
 */
#include "collector.h"

#include <pem/pem.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * The data that the callbacks share. A callback runs in the thread that raises the event, here
 * always this thread.
 */
struct interval {
	struct pem_statistics *stats;
	uint64_t end_of_last; /* clock at the end of the last collection; 0: there was none yet */
};

/* gcEnd in Figure 4: count from here to the next collection. */
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
 * gcStart in Figure 4: stop counting first, so that neither the collector nor the printing counts.
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
 * Make the event set, with page faults first: the kernel's event if this user may have it, else the
 * counter. Prints to standard error what is not available and why. NULL: there are no page faults
 * at all.
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

/* Register and enable a callback on one event of this thread. NULL after printing the reason. */
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
	pem_event_set__free(set); /* a handle keeps what it needs of a set */
	if (callback)
		pem_callback__enable(callback);
	else
		fprintf(stderr, "no callback on %s: %s\n", name, why.text);
	return callback;
}

/* The observed program: allocate, collect, allocate, collect. */
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
	/* The context in Figure 4: any processor, this process, this thread. */
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
	 * Count each event: no attribute is named. The handle is registered, but not enabled: the
	 * first GC End enables it.
	 */
	interval.stats = pem_session__register_statistics(session, events, &context, NULL, &why);
	if (!interval.stats) {
		fprintf(stderr, "%s\n", why.text);
		goto close;
	}
	/*
	 * Enable once now: this opens the sources, so that they are not opened in the first
	 * interval.
	 */
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
