// SPDX-License-Identifier: MIT
/*
 * losses.c - which windows lack records, of which source (contract: series.h)
 *
 * Programs, the kernel and counters lose records each by themselves: a flight recorder reaches back
 * as far as the memory of each does.
 */
#include "cli.h"
#include "series.h"

static enum pem_doubt_source source_of(const struct pem_event *event)
{
	if (event->source_kind == PEM_SOURCE_STUB)
		return PEM_DOUBT_PROGRAMS;
	return cli_event__is_counter(event) || event->source_kind == PEM_SOURCE_SAMPLE
		       ? PEM_DOUBT_COUNTERS
		       : PEM_DOUBT_KERNEL;
}

/* What each source lost, by the events that it has. */
struct lost {
	uint64_t discarded[PEM_DOUBT_SOURCES], overwritten[PEM_DOUBT_SOURCES];
	uint64_t unnamed; /* raised where nothing could count them by name */
	uint64_t by_ended; /* overwritten, of programs that ended long ago */
};

static void count(const struct compare_series *s, struct lost *lost)
{
	const struct pem_model *model = pem_trace__model(s->trace);
	struct pem_balance total = pem_trace__total_balance(s->trace);
	size_t i;

	*lost = (struct lost){.unnamed = total.discarded};
	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);
		struct pem_balance b = pem_trace__event_balance(s->trace, event);

		lost->discarded[source_of(event)] += b.discarded;
		lost->overwritten[source_of(event)] += b.overwritten;
		lost->unnamed -= b.discarded < lost->unnamed ? b.discarded : lost->unnamed;
	}
	lost->by_ended = lost->overwritten[PEM_DOUBT_PROGRAMS];
	for (i = 0; i < pem_trace__producer_count(s->trace); i++) {
		const struct pem_trace_producer *p = pem_trace__producer(s->trace, i);

		if (p->pid != 0)
			lost->by_ended -= p->balance.overwritten < lost->by_ended
						  ? p->balance.overwritten
						  : lost->by_ended;
	}
}

/* Leave out what streams say. Returns which sources said something, as bits. */
static unsigned int mark_streams(struct compare_series *s, const struct lost *lost)
{
	struct pem_trace_loss loss = {.size = sizeof(loss)};
	size_t i, losses = pem_trace__loss_count(s->trace);
	unsigned int said = 0;

	for (i = 0; i < losses; i++) {
		enum pem_doubt_source source;

		if (pem_trace__loss(s->trace, i, &loss) < 0)
			continue;
		source = pem_doubt__source(loss.source);
		said |= 1u << source;
		/*
		 * Where a flight recorder gave up the oldest records and no others, what is lost
		 * lies before the first record that a stream still has.
		 */
		if (lost->discarded[source] == 0 && s->damaged == 0 && s->info->complete &&
		    loss.begin_ns != 0)
			continue;
		compare_series__lose(s, source, loss.begin_ns, loss.end_ns);
	}
	return said;
}

void compare_series__find_losses(struct compare_series *s)
{
	unsigned int source, said;
	struct lost lost;

	count(s, &lost);
	said = mark_streams(s, &lost);
	/* The recorder's memory has the kernel's and the counters' packets in one order. */
	for (source = PEM_DOUBT_KERNEL; source < PEM_DOUBT_SOURCES; source++)
		if (lost.overwritten[source] != 0)
			compare_series__lose(s, source, 0,
					     s->reaches_ns[PEM_DOUBT_KERNEL] != 0
						     ? s->reaches_ns[PEM_DOUBT_KERNEL]
						     : s->reaches_ns[source]);
	for (source = 0; source < PEM_DOUBT_SOURCES; source++)
		s->unlocated[source] = !s->info->complete || (s->damaged != 0 && said == 0) ||
				       (lost.discarded[source] != 0 && !(said >> source & 1));
	if (lost.unnamed != 0 || lost.by_ended != 0)
		s->unlocated[PEM_DOUBT_PROGRAMS] = true;
	for (source = 0; source < PEM_DOUBT_SOURCES; source++)
		s->has_losses |= s->unlocated[source];
}

bool compare_series__is_lost(const struct compare_series *s, enum pem_doubt_source source,
			     size_t window)
{
	return s->unlocated[source] || s->lost[source][window];
}

bool compare_series__lacks(const struct compare_series *s, const struct compare_metric *m,
			   size_t window)
{
	if (m->kind != COMPARE_RATIO && m->kind != COMPARE_DIFFERENCE)
		return compare_series__is_lost(s, m->source, window);
	return compare_series__is_lost(s, s->metrics[m->above].source, window) ||
	       compare_series__is_lost(s, s->metrics[m->below].source, window);
}

const char *compare_series__losses(const struct compare_series *s)
{
	static const char *const words[] = {
		[PEM_DOUBT_PROGRAMS] = "programs",
		[PEM_DOUBT_KERNEL] = "the kernel",
		[PEM_DOUBT_COUNTERS] = "counters",
	};
	const char *text = "";
	unsigned int source;
	size_t i;

	if (!s->has_losses)
		return NULL;
	for (source = 0; source < PEM_DOUBT_SOURCES; source++) {
		size_t lost = 0;

		for (i = 0; i < s->window_count; i++)
			lost += compare_series__is_lost(s, source, i);
		if (lost != 0)
			text = cli_format("%s%s%zu of %s%s", text, *text != '\0' ? ", " : "", lost,
					  words[source],
					  s->unlocated[source] ? " (nothing says when)" : "");
	}
	return cli_format("of %zu windows some are left out, as records of them were lost: %s",
			  s->window_count, text);
}
