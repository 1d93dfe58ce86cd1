// SPDX-License-Identifier: MIT
/*
 * agent.c - a whole agent: large pages for the heap of a program that nobody changes
 *
 *	agent COMMAND [ARG...]		run it some times: the first run is observed, the next ones
 *					are with and without large pages, by chance, until it is
 *					clear which is faster; from then on the better way is used
 *
 * What it learns is in the database that 'pem db' shows. The model is the simplest there is: a
 * program that takes much memory from malloc may gain by large pages. glibc 2.35 and later asks for
 * them if GLIBC_TUNABLES says so. The exit status is the command's.
 *
 * For your own agent: other events in observe, a better model, another way to apply.
 */
#include <pem/agent.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST_BYTES (64u << 20) /* of allocations of a page and more: below, nothing is gained */

/* What the functions of this agent share. */
struct heap_agent {
	struct pem_event_set *set;
	struct pem_statistics *statistics;
};

static int observe(struct pem_agent *agent, struct pem_session *session, void *arg)
{
	static const char *const names[] = {"APP::Libc::Malloc"};
	struct heap_agent *heap = arg;
	struct pem_error error = {""};

	heap->set = pem_event_set__new(session, names, 1, &error);
	if (heap->set && pem_event_set__where(heap->set, "size >= 4096", &error) == 0)
		heap->statistics =
			pem_session__register_statistics(session, heap->set, NULL, "size", &error);
	if (heap->statistics && pem_statistics__enable(heap->statistics) == 0)
		return 0;
	pem_agent__say(agent, PEM_LOG_WARNING, "malloc can't be observed: %s", error.text);
	return -1;
}

static int model(struct pem_agent *agent, struct pem_session *session, void *arg)
{
	struct pem_db_directive huge = {.size = sizeof(huge),
					.subject = "heap",
					.text = "glibc.malloc.hugetlb=1",
					.rank = 1,
					.predicted = 5,
					.predicted_high = 50};
	struct pem_statistic bytes = {.size = sizeof(bytes)};
	struct heap_agent *heap = arg;
	int rc = pem_statistics__read(heap->statistics, &bytes, 1);

	(void)session;
	pem_event_set__free(heap->set);
	if (rc < 0)
		return rc;
	pem_agent__note(agent, "large allocations", "bytes", (double)bytes.sum, PEM_DB_MEASURED);
	if (bytes.sum < LEAST_BYTES)
		return 0;
	huge.cost_bytes = (int64_t)bytes.sum;
	return pem_agent__propose(agent, &huge);
}

static int apply(struct pem_agent *agent, const struct pem_db_directive *directive, void *arg)
{
	(void)arg;
	return pem_agent__set_variable(agent, "GLIBC_TUNABLES", directive->text);
}

static void say(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	fprintf(stderr, "agent: %s\n", text);
}

int main(int argc, char **argv)
{
	static const char *const purposes[] = {"alone", "observed", "with large pages", "without"};
	const struct pem_agent_ops ops = {.size = sizeof(ops),
					  .name = "example-heap",
					  .observe = observe,
					  .model = model,
					  .apply = apply};
	const struct pem_agent_options options = {
		.size = sizeof(options), .preload_libc = 1, .log = say};
	struct pem_agent_report report = {.size = sizeof(report)};
	struct pem_error error = {""};
	struct heap_agent heap = {0};
	int status;

	if (argc < 2) {
		fprintf(stderr, "usage: agent COMMAND [ARG...]\n");
		return 1;
	}
	status = pem_agent__run(&ops, &heap, argv + 1, &options, &report, &error);
	if (status < 0) {
		fprintf(stderr, "agent: %s\n", error.text);
		return 127;
	}
	fprintf(stderr, "agent: run %" PRId64 ", %s: %.3f s", report.run, purposes[report.purpose],
		report.seconds);
	if (report.treated + report.controls > 2)
		fprintf(stderr, "; gain %.1f %% (%.1f to %.1f) in %u and %u runs", report.gain,
			report.gain_low, report.gain_high, report.treated, report.controls);
	fprintf(stderr, "\n");
	return status;
}
