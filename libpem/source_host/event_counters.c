/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * event_counters.c - counters that threads read at events of programs
 *
 * A source knows how the kernel calls a counter. The session's file "counters" says so to programs,
 * whose threads open them (producer/counters.c).
 */
#include "core/binding.h"
#include "core/core.h"
#include "core/demand.h"
#include "source_host/source_host.h"
#include "util.h"

#include <pem/counted.h>
#include <pem/trace.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns 0, or -errno with error. */
static int encode(struct pem_session *s, const char *names, struct pem_counter *counter,
		  struct pem_error *error)
{
	const struct pem_source_plugin *plugin;
	struct pem_error said;
	int rc, refused = 0;

	pem_session__load_plugins(s);
	for (plugin = s->sources->plugins; plugin; plugin = plugin->next) {
		if (plugin->ops->size < offsetof(struct pem_source_ops, encode_counter) +
						sizeof(plugin->ops->encode_counter) ||
		    !plugin->ops->encode_counter)
			continue;
		said.text[0] = '\0';
		rc = plugin->ops->encode_counter(names, counter, &said);
		if (!rc)
			return 0;
		/* A source says nothing of what is another's. */
		if (*said.text)
			refused = pem_error__set(error, rc, "%s", said.text);
	}
	if (refused)
		return refused;
	return pem_error__set(
		error, -ENOTSUP,
		"can't be counted: pem was built without libpfm4, which names counters");
}

/* Say why a counter can't be read, now and in the trace. */
static void refuse(struct pem_session *s, const char *name, const char *reason)
{
	struct pem_session_sources *sources = s->sources;
	char text[sizeof(sources->refused_counters[0])];

	snprintf(text, sizeof(text), "%.60s %.160s", name, reason);
	pem_session__say(s, PEM_LOG_WARNING, "%s", text);
	if (sources->refused_counter_count < PEM_ARRAY_SIZE(sources->refused_counters))
		memcpy(sources->refused_counters[sources->refused_counter_count++], text,
		       sizeof(text));
}

/*
 * Find how the session's counters are opened, in the order of their names, which the trace has. Of
 * those that threads can't read here it is said why. Returns how many there are, -ENOTSUP: none can
 * be read, or -ENOMEM.
 */
static int encode_all(struct pem_session *s, struct pem_counter counters[PEM_COUNTERS_MAX])
{
	char *sources = strdup(s->sources->counters), *shown = strdup(s->sources->counter_names);
	char *source_rest = sources, *shown_rest = shown, *name, *called;
	int count = 0, usable = 0, rc = sources && shown ? 0 : -ENOMEM;
	struct pem_error why;

	while (!rc && count < (int)PEM_COUNTERS_MAX && (name = strsep(&source_rest, ",")) &&
	       (called = strsep(&shown_rest, ","))) {
		if (encode(s, name, &counters[count], &why)) {
			counters[count] = (struct pem_counter){.type = PEM_COUNTER_NONE};
			refuse(s, called, why.text);
		} else {
			usable++;
		}
		count++;
	}
	free(sources);
	free(shown);
	return rc ? rc : usable ? count : -ENOTSUP;
}

static int write_file(struct pem_session *s, const struct pem_counter *counters, int count,
		      struct pem_error *error)
{
	size_t bytes = (size_t)count * sizeof(*counters);
	int fd = openat(s->directory_fd, "counters",
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	ssize_t written = fd >= 0 ? write(fd, counters, bytes) : -1;
	int err = errno;

	if (fd >= 0)
		close(fd);
	if (written == (ssize_t)bytes) {
		memcpy(s->sources->thread_counters, counters, bytes);
		s->sources->thread_counter_count = (uint32_t)count;
		return 0;
	}
	return pem_error__set(error, written < 0 ? -err : -ENOSPC, "cannot write in '%s': %s",
			      s->directory, strerror(written < 0 ? err : ENOSPC));
}

/* Mark the demands of the set's events. Returns how many programs raise, or -ENOMEM. */
static int mark(struct pem_session *s, const struct pem_event_set *set)
{
	struct pem_demand *demand;
	size_t i;
	int marked = 0;

	for (i = 0; i < set->count; i++) {
		if (set->events[i]->source_kind != PEM_SOURCE_STUB ||
		    !strcmp(set->events[i]->name, PEM_THREAD_COUNTERS_EVENT))
			continue;
		demand = pem_session__demand(s, set->events[i]);
		if (!demand)
			return -ENOMEM;
		demand->counters = true;
		marked++;
	}
	return marked;
}

void pem_session__note_counters(const struct pem_session *s, struct pem_trace_info *info)
{
	struct pem_trace_gap *gap;
	unsigned i;

	for (i = 0;
	     i < s->sources->refused_counter_count && info->gap_count < PEM_ARRAY_SIZE(info->gaps);
	     i++) {
		gap = &info->gaps[info->gap_count++];
		pem_copy_text(gap->source, sizeof(gap->source), "counters");
		pem_copy_text(gap->reason, sizeof(gap->reason), s->sources->refused_counters[i]);
	}
}

int pem_session__count_at(struct pem_session *s, const struct pem_event_set *set,
			  struct pem_error *error)
{
	struct pem_counter counters[PEM_COUNTERS_MAX];
	int rc, count;

	rc = pem_event_set__check(s, set, error);
	if (!rc)
		rc = pem_session__is_too_late(s, "pem_session__count_at", error);
	if (rc)
		return rc;
	memset(counters, 0, sizeof(counters));
	pem_session__lock(s);
	if (!s->sources->counters) {
		rc = pem_error__set(
			error, -EINVAL,
			"no counters are named: pem_session__set_counters() comes first");
		goto out;
	}
	count = encode_all(s, counters);
	rc = count < 0 ? count : mark(s, set);
	if (rc > 0)
		rc = write_file(s, counters, count, error);
	else if (!rc)
		rc = pem_error__set(error, -ENOENT,
				    "none of these events is raised by a program: at events "
				    "of the kernel pem.ko reads the session's counters "
				    "(pem record: --counters)");
	else if (rc == -ENOTSUP)
		pem_error__set(error, rc, "threads can read none of the counters here");
	else
		pem_error__set(error, rc, "out of memory");
out:
	pem_session__unlock(s);
	return rc;
}
