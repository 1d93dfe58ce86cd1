// SPDX-License-Identifier: MIT
/*
 * between_collections.c - page faults of a Java program between and during its garbage collections
 *
 * Figure 4 of the paper on Performance and Environment Monitoring (Cascaval, Duesterwald, Sweeney,
 * Wisniewski, IBM J. R&D 50(2/3), 2006) as a program: statistics of one layer, the operating
 * system, that count between two events of another layer, the application. In the paper, callbacks
 * on these events enable and disable the statistics, and so does the observed thread itself. Here
 * the observed program runs outside, and nothing waits for a callback: the predicate 'from ... to'
 * is judged where each page fault happens, by a word that the program's own library sets at the two
 * events.
 *
 *	between_collections COMMAND [ARGUMENT...]
 *	between_collections java -agentpath:LIBRARIES/libpem-jvm.so -cp . Program
 *
 * It prints, once the command has ended:
 *
 *	N collections, F page faults between them, D during them, U unknown
 *
 * Unknown are the faults before the first event of a collection, and until this program has learnt
 * of the Java process. The kernel's event needs privileges (root, or CAP_BPF and CAP_PERFMON).
 * Without them the program prints the reason and exits with 2; else with the command's status.
 */
#include <pem/pem.h>

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

#define FAULT "OS::Mem::PageFault"
#define BEGIN "APP::Collector::PauseBegin"
#define END "APP::Collector::PauseEnd"

/* Register and enable a statistic over one event. NULL after printing the reason. */
static struct pem_statistics *count(struct pem_session *session, const char *event,
				    const char *where)
{
	struct pem_statistics *statistics = NULL;
	struct pem_event_set *set;
	struct pem_error why;

	set = pem_event_set__new(session, &event, 1, &why);
	if (set && !pem_event_set__where(set, where, &why))
		statistics = pem_session__register_statistics(session, set, NULL, NULL, &why);
	pem_event_set__free(set); /* a handle keeps what it needs of a set */
	if (statistics)
		pem_statistics__enable(statistics);
	else
		fprintf(stderr, "no statistic of %s: %s\n", event, why.text);
	return statistics;
}

static struct pem_statistic value_of(struct pem_statistics *statistics)
{
	struct pem_statistic value = {.size = sizeof(value)};

	pem_statistics__read(statistics, &value, 1);
	return value;
}

static int is_available(struct pem_session *session)
{
	const char *name = FAULT;
	struct pem_error why = {""};
	struct pem_event_set *set = pem_event_set__new(session, &name, 1, &why);
	int available =
		set && pem_session__can_deliver(session, pem_event_set__event(set, 0), &why) == 1;

	if (!available)
		fprintf(stderr, "no %s: %s\n", FAULT, why.text);
	pem_event_set__free(set);
	return available;
}

/* Run the command to its end, and print what was counted. Returns the exit status. */
static int observe(struct pem_session *session, char **command)
{
	struct pem_statistics *between = count(session, FAULT, "from " END " to " BEGIN);
	struct pem_statistics *during = count(session, FAULT, "inside " BEGIN);
	struct pem_statistics *collections = count(session, BEGIN, NULL);
	struct pem_error why;
	int status = 0;

	if (!between || !during || !collections)
		return 3;
	if (pem_session__run(session, command, NULL, &why) < 0) {
		fprintf(stderr, "%s\n", why.text);
		return 3;
	}
	while (!pem_session__poll(session, 100, &status))
		;
	printf("%" PRIu64 " collections, %" PRIu64 " page faults between them, %" PRIu64
	       " during them, %" PRIu64 " unknown\n",
	       value_of(collections).count, value_of(between).count, value_of(during).count,
	       value_of(during).undecided);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct pem_session *session;
	struct pem_error why;
	int status;

	if (argc < 2) {
		fprintf(stderr, "usage: between_collections COMMAND [ARGUMENT...]\n");
		return 1;
	}
	session = pem_session__open(NULL, &why);
	if (!session) {
		fprintf(stderr, "%s\n", why.text);
		return 3;
	}
	status = is_available(session) ? observe(session, argv + 1) : 2;
	pem_session__close(session);
	return status;
}
