// SPDX-License-Identifier: MIT
/*
 * watch.c - prints which files a program opens, while it runs: asynchronous callbacks on another
 * process
 *
 *	watch COMMAND [ARGUMENT...]
 *
 * The program runs at full speed. Its events are read asynchronously, in the order of their time,
 * from all of its threads and processes. A callback function is called for each event. It may do
 * anything and may take long. Events that find no room meanwhile are counted. Each open has one
 * line, and a line of counts follows at the end:
 *
 *	PID NAME
 *	N opens, late: N, lost: N, allocated: N bytes
 *
 * The exit status is the command's.
 */
#include <pem/pem.h>

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_open(const struct pem_record *record, void *arg)
{
	int name = pem_event__field(record->event, "path");

	(void)arg;
	printf("%" PRIu32 " %s\n", record->pid, pem_record__string(record, (unsigned)name));
}

/* Make the set of one event. NULL with why. */
static struct pem_event_set *event(struct pem_session *session, const char *name,
				   struct pem_error *why)
{
	return pem_event_set__new(session, &name, 1, why);
}

static struct pem_callback *call_back(struct pem_session *session, const char *name,
				      struct pem_error *why)
{
	/* Call back at most 5 ms late. pem.h says what a larger delay saves. */
	const struct pem_async_options options = {sizeof(options), 5000};
	struct pem_event_set *set = event(session, name, why);
	struct pem_callback *callback = NULL;

	if (set)
		callback = pem_session__register_async_callback(session, set, NULL, on_open, NULL,
								&options, why);
	pem_event_set__free(set); /* a handle keeps what it needs of a set */
	if (callback)
		pem_callback__enable(callback);
	return callback;
}

/* Also count how many bytes the program allocates, as a statistic. */
static struct pem_statistics *count_bytes(struct pem_session *session, struct pem_error *why)
{
	struct pem_event_set *set = event(session, "APP::Libc::Malloc", why);
	struct pem_statistics *statistics = NULL;

	if (set)
		statistics = pem_session__register_statistics(session, set, NULL, "size", why);
	pem_event_set__free(set);
	if (statistics)
		pem_statistics__enable(statistics);
	return statistics;
}

/* Run the command to its end. Returns its status as a shell gives it, or -1. */
static int run(struct pem_session *session, char **command, struct pem_error *why)
{
	const struct pem_run_options options = {.size = sizeof(options), .preload_libc = 1};
	int status = 0;

	if (pem_session__run(session, command, &options, why) < 0)
		return -1;
	while (!pem_session__poll(session, 100, &status))
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct pem_callback_counts counts = {.size = sizeof(counts)};
	struct pem_statistics *statistics;
	struct pem_statistic bytes = {.size = sizeof(bytes)};
	struct pem_callback *callback;
	struct pem_session *session;
	struct pem_error why;
	int status = -1;

	if (argc < 2) {
		fprintf(stderr, "watch: name a command\n");
		return 1;
	}
	session = pem_session__open(NULL, &why);
	callback = session ? call_back(session, "APP::File::Open", &why) : NULL;
	statistics = callback ? count_bytes(session, &why) : NULL;
	if (statistics)
		status = run(session, argv + 1, &why);
	if (status < 0) {
		fprintf(stderr, "watch: %s\n", why.text);
		status = 3;
	} else {
		pem_statistics__read(statistics, &bytes, 1);
		pem_callback__settle(callback); /* those of the last opens may still be pending */
		pem_callback__counts(callback, &counts);
		printf("%" PRIu64 " opens, late: %" PRIu64 ", lost: %" PRIu64
		       ", allocated: %" PRIu64 " bytes\n",
		       counts.called, counts.late, counts.lost, bytes.sum);
	}
	pem_session__close(session); /* closes its handles, too */
	return status;
}
