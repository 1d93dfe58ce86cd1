/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recover.c - finish a trace whose recorder was killed
 *
 * Records that the recorder had not written yet are still in the programs' pools, in the session's
 * folder. The programs may even be running and logging. So a recovery reads the trace's streams to
 * their ends, drains the pools into further streams beside the trace, and accounts. Only then it
 * puts these streams into the trace (trace_stage.c describes the steps). Records that the recorder
 * had taken from a pool and not written yet are counted as discarded. So are records that it had
 * read and left out, because a callback wanted them and the log, which wants others of the same
 * event, did not. Records in the kernel's rings are lost with the recorder and are not counted; the
 * trace says so.
 *
 * Shared memory stays as it is until all of it is in the trace. So a recovery that fails or is
 * killed can be repeated without a loss.
 */
#include "chunks/chunks.h"
#include "core/binding.h"
#include "core/core.h"
#include "core/demand.h"
#include "core/fault.h"
#include "core/shared_file.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "recovery/recover_count.h"
#include "session/session.h"
#include "writer/log.h"
#include "writer/trace_stage.h"
#include "writer/trace_writer.h"
#include "entry.h"
#include "reader/reader.h"
#include "runtime_dir.h"
#include "util.h"

#include <pem/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Read .pem/session, which is "PID DIRECTORY\n". It is written when the session's log is made, and
 * removed when the log is finished.
 */
static int read_session_file(int trace_fd, pid_t *recorder, char *directory, size_t bytes)
{
	char *text, *space, *end;
	size_t length;
	long pid;

	text = pem_read_file(trace_fd, ".pem/session", PATH_MAX + 32, &length);
	if (!text)
		return -errno;
	pid = strtol(text, &space, 10);
	end = strchr(text, '\n');
	if (pid <= 0 || pid > INT_MAX || *space != ' ' || space[1] != '/' || !end ||
	    (size_t)(end - space) > bytes) {
		free(text);
		return -EINVAL;
	}
	*end = 0;
	strcpy(directory, space + 1);
	*recorder = (pid_t)pid;
	free(text);
	return 0;
}

/*
 * Open the session's folder and page. Only a session that this user made, in this user's runtime
 * directory, is used.
 */
static int open_session_directory(struct pem_session *s, pid_t recorder)
{
	struct stat st;
	char *slash;
	void *page;
	int fd;

	slash = strrchr(s->directory, '/');
	if (pem_runtime_dir(s->runtime, sizeof(s->runtime)) ||
	    strlen(s->runtime) != (size_t)(slash - s->directory) ||
	    memcmp(s->directory, s->runtime, (size_t)(slash - s->directory)) ||
	    strncmp(slash, "/session-", 9))
		return -EPERM;
	s->directory_fd = open(s->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->directory_fd < 0)
		return -errno;
	if (fstat(s->directory_fd, &st) || st.st_uid != geteuid())
		return -EPERM;
	/* In another pid namespace the recorder's process id shows nothing, but its lock does. */
	s->alive_fd = pem_alive__hold(s->directory_fd);
	if (s->alive_fd < 0)
		return s->alive_fd == -EWOULDBLOCK ? -EBUSY : s->alive_fd;
	fd = openat(s->directory_fd, "config", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	page = MAP_FAILED;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    (uint64_t)st.st_size >= sizeof(*s->page))
		page = mmap(NULL, sizeof(*s->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return -EINVAL;
	s->page = page;
	if (pem_fault__watch(s->page, sizeof(*s->page), &s->page_cut))
		return -ENOSPC;
	s->geometry = pem_pool_geometry__of_page(s->page);
	if (s->page->magic != PEM_SESSION_MAGIC || s->page->abi_version != PEM_ABI_VERSION ||
	    s->page->consumer_pid != (uint32_t)recorder || !pem_pool_geometry__valid(&s->geometry))
		return -EINVAL;
	/*
	 * Processes that still run know the session by this id. The session is switched off in them
	 * before they are read.
	 */
	s->id = __atomic_load_n(&s->page->id, __ATOMIC_RELAXED);
	pem_session__reopen_public(s);
	return 0;
}

/*
 * Mark the events that only callbacks wanted. They do not belong in the trace, and are not missing
 * there.
 */
static void leave_callback_only_out(struct pem_session *s)
{
	/* ui */
	uint32_t count = __atomic_load_n(&s->page->rule_count, __ATOMIC_ACQUIRE), i;
	const struct pem_event *event;
	struct pem_demand *demand;

	for (i = 0; i < count && i < PEM_RULES_MAX; i++) {
		if (!(s->page->rules[i].flags & PEM_RULE_CALLBACK_ONLY))
			continue;
		event = pem_model__by_id(s->model, s->page->rules[i].event_id);
		demand = event ? pem_session__demand(s, event) : NULL;
		if (demand)
			demand->async_ever = true;
	}
}

/*
 * Let the log's demand of an event have what the log's rule says. Any process of the session may
 * have written in the page. Returns 0, or -ENOMEM.
 */
static int take_rule_of_log(struct pem_session *s, const struct pem_rule *rule)
{
	const struct pem_event *event = pem_model__by_id(s->model, rule->event_id);
	struct pem_demand *demand = event ? pem_session__demand(s, event) : NULL;
	const struct pem_session_page *page = s->page;
	struct pem_test tests[PEM_TESTS_MAX];

	if (!demand || rule->context >= PEM_CONTEXTS_MAX || rule->test_count > PEM_TESTS_MAX ||
	    rule->test_first > PEM_SESSION_TESTS_MAX - rule->test_count)
		return 0;
	memcpy(tests, &page->tests[rule->test_first], rule->test_count * sizeof(*tests));
	if (rule->test_count) {
		demand->predicate =
			pem_session__intern_predicate(s, "", tests, rule->test_count, NULL);
		if (!demand->predicate)
			return -ENOMEM;
	}
	demand->page_context = rule->context;
	demand->context.tid = page->contexts[rule->context].tid;
	demand->want_log = demand->records_differ = true;
	return 0;
}

/* Of events that others took records of, too, the log gets what passes its own rules. */
static int take_rules_of_log(struct pem_session *s)
{
	/* ui */
	uint32_t count = __atomic_load_n(&s->page->rule_count, __ATOMIC_ACQUIRE), i;
	struct pem_rule rule;
	int result = 0;

	for (i = 0; !result && i < count && i < PEM_RULES_MAX; i++) {
		memcpy(&rule, &s->page->rules[i], sizeof(rule));
		if (rule.flags & PEM_RULE_OF_LOG)
			result = take_rule_of_log(s, &rule);
	}
	return result;
}

/*
 * Make the session's log. Its log wants every event of the trace, so that records of sources are
 * counted too. The session gets a complete log or none.
 */
static int make_log(struct pem_session *s, int trace_fd, int stage_fd,
		    const struct pem_trace_info *info, struct pem_error *error)
{
	struct pem_log *log = calloc(1, sizeof(*log));
	int result = log ? pem_recovery__demand_for_all(s) : -ENOMEM;

	if (!result) {
		log->session = s;
		log->info = *info;
		log->finished = true; /* finished here, and not when the session is closed */
		log->model = pem_model__new();
		result = log->model ? 0 : -ENOMEM;
	}
	if (result) {
		free(log);
		return pem_error__set(error, result, "out of memory");
	}
	pem_log__model_grew(log); /* the session's model is the trace's */
	log->writer = pem_trace_writer__resume(trace_fd, stage_fd, log->model, &log->info, error);
	if (!log->writer) {
		result = -errno;
		pem_model__free(log->model);
		free(log);
		return result;
	}
	s->log = log;
	return 0;
}

/*
 * Skip chunks that were written already: those that began before or with the last record of their
 * stream. The lane continues behind this record.
 */
static void skip_written(struct pem_session *s, struct pem_producer *p)
{
	const struct pem_packet *packet;
	uint32_t i, word, lane;
	uint64_t seq;

	for (i = 0; i < p->chunk_limit; i++) {
		/* rb, rd, rf */
		word = __atomic_load_n(&p->ring.chunk_state[i], __ATOMIC_ACQUIRE);
		lane = PEM_CHUNK_LANE(word);
		if (PEM_CHUNK_STATE(word) == PEM_CHUNK_FREE || !lane || lane >= p->ring.lane_count)
			continue;
		packet = (const struct pem_packet *)(p->ring.chunks +
						     (uint64_t)i * p->ring.chunk_bytes);
		seq = __atomic_load_n(&packet->packet_seq_num, __ATOMIC_RELAXED);
		if (packet->timestamp_begin <= pem_session__stream_clock(s, p, lane) &&
		    seq >= p->next_seq[lane])
			p->next_seq[lane] = seq + 1;
	}
}

/* Returns 0, or -ENOMEM before anything was drained. */
static int drain_producers(struct pem_session *s)
{
	const struct timespec pause = {0, 2000000};
	struct pem_producer *p;
	int result;

	pem_session__scan_producers(s); /* and read their models */
	leave_callback_only_out(s);
	result = take_rules_of_log(s);
	if (result)
		return result;
	for (p = s->processes->producers; p; p = p->next) {
		if (p->member)
			pem_session__apply_to(s, p->member);
		pem_recovery__take_over_counts(s, p);
	}
	nanosleep(&pause, NULL); /* events under way come to their end */
	for (p = s->processes->producers; p; p = p->next) {
		p->recovering = true;
		skip_written(s, p);
		pem_session__drain_producer(s, p, true);
		pem_session__account(s, p);
	}
	return 0;
}

static void finish_info(struct pem_session *s, struct pem_trace_info *info)
{
	uint64_t last = pem_trace_writer__last_clock(s->log->writer);
	struct pem_trace_gap *gap;
	double still;

	if (last > info->start_clock && info->clock_hz)
		info->duration_ns = (uint64_t)((unsigned __int128)(last - info->start_clock) *
					       1000000000u / info->clock_hz);
	/* A coarse clock stands still since the recorder died. */
	if (s->geometry.flags & PEM_POOL_COARSE && info->clock_hz) {
		still = ((double)pem_clock() -
			 (double)__atomic_load_n(&s->page->coarse_clock, __ATOMIC_RELAXED)) *
			1e9 / (double)info->clock_hz;
		still = still > 0 ? still : 0;
		info->coarse_late_ns += (uint64_t)still + 1;
		info->clock_error_ns += (uint64_t)still;
	}
	info->complete = 1;
	if (info->gap_count < PEM_ARRAY_SIZE(info->gaps)) {
		gap = &info->gaps[info->gap_count++];
		pem_copy_text(gap->source, sizeof(gap->source), "recorder");
		pem_copy_text(gap->reason, sizeof(gap->reason),
			      "it was killed: what the kernel's rings held then is lost, "
			      "uncounted; events of programs "
			      "were recovered from shared memory");
	}
}

/* A recorder that was just killed may still be exiting. A recovery waits this long for it. */
#define DYING_MS 500

static bool is_running(pid_t pid)
{
	struct pollfd pollfd = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	bool gone;

	if (pollfd.fd < 0)
		return errno != ESRCH;
	gone = poll(&pollfd, 1, DYING_MS) == 1;
	close(pollfd.fd);
	return !gone;
}

/* A trace that is being recovered. */
struct recovery {
	const char *directory;
	int trace_fd;
	int private_fd; /* the trace's folder .pem */
	struct pem_session *session; /* of the recorder that died */
	struct pem_error *error;
};

/*
 * Open a trace of this user. A recovery writes in the trace's folder, so it needs the user who
 * could have recorded the trace.
 */
static int open_own_trace(struct recovery *r)
{
	struct stat st;

	r->trace_fd = open(r->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->trace_fd < 0 || fstat(r->trace_fd, &st))
		return pem_error__set(r->error, -errno, "cannot open trace '%s': %s", r->directory,
				      strerror(errno));
	if (st.st_uid != geteuid())
		return pem_error__set(
			r->error, -EPERM,
			"trace '%s' belongs to user %u, and its recorder did not finish: "
			"what programs had logged can be recovered by that user, with "
			"'pem report'",
			r->directory, (unsigned)st.st_uid);
	r->private_fd =
		openat(r->trace_fd, ".pem", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (r->private_fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return pem_trace__is_none(r->directory, r->error);
	if (r->private_fd < 0 || fstat(r->private_fd, &st))
		return pem_error__set(r->error, -errno, "cannot open '%s/.pem': %s", r->directory,
				      strerror(errno));
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return pem_error__set(
			r->error, -EPERM,
			"'%s/.pem' belongs to user %u, and its mode is %03o: its trace is "
			"recovered "
			"if it is yours and nobody else may write there; see chown and chmod go-w",
			r->directory, (unsigned)st.st_uid, (unsigned)st.st_mode & 0777);
	if (flock(r->trace_fd, LOCK_EX | LOCK_NB))
		return pem_error__set(r->error, -EBUSY,
				      "trace '%s' is being recovered by another process",
				      r->directory);
	return 0;
}

static int refuse_complete(struct recovery *r, const struct pem_trace *trace)
{
	if (!pem_trace__info(trace)->complete)
		return 0;
	return pem_error__set(r->error, -EALREADY,
			      "trace '%s' has nothing to recover: it is complete", r->directory);
}

/* Fail without '.pem/session': a recorder that finishes its trace removes it. */
static int no_session_file(struct recovery *r, int code)
{
	struct pem_trace *trace = pem_trace__open_folder(r->trace_fd, r->directory, r->error);
	int result = trace ? refuse_complete(r, trace) : -errno;

	pem_trace__close(trace);
	return result ? result
		      : pem_error__set(r->error, code,
				       "trace '%s' has nothing to recover: '.pem/session', which "
				       "names its recorder, can't be read: %s",
				       r->directory, strerror(-code));
}

static int find_session(struct recovery *r)
{
	struct pem_session *s = r->session = pem_session__new_empty();
	pid_t recorder = 0;
	int result =
		s ? read_session_file(r->trace_fd, &recorder, s->directory, sizeof(s->directory))
		  : -ENOMEM;

	if (result)
		return no_session_file(r, result);
	result = is_running(recorder) ? -EBUSY : open_session_directory(s, recorder);
	if (result == -EBUSY)
		return pem_error__set(r->error, result,
				      "trace '%s' is still being recorded by process %d",
				      r->directory, (int)recorder);
	return result ? pem_error__set(r->error, result,
				       "what trace '%s' left in shared memory is gone: %s",
				       r->directory, strerror(-result))
		      : 0;
}

/* Report a failure before the trace was changed, when all of shared memory is still there. */
static int cannot_recover(const struct recovery *r, int code, const char *why)
{
	pem_error__set(r->error, code,
		       "cannot recover trace '%s': %.300s; nothing is lost, and it can be tried "
		       "again",
		       r->directory, why);
	pem_error__advise_space(r->error, code, " first");
	return code;
}

/* Bring all that is known of the session into the log, and finish the log. */
static int finish_log(struct recovery *r)
{
	struct pem_session *s = r->session;
	int result;

	/* none: nothing is ordered by it */
	__atomic_store_n(&s->page->closed, 1, __ATOMIC_RELEASE);
	result = drain_producers(s);
	if (!result)
		result = pem_recovery__account_gone(s);
	if (!result)
		result = pem_recovery__account_sources(s);
	if (!result)
		result = pem_trace_writer__failed(s->log->writer);
	finish_info(s, &s->log->info);
	if (!result)
		result = pem_trace_writer__finish(s->log->writer, &s->log->info);
	if (!result)
		result = pem_stage__commit(r->private_fd);
	/* The session's note is not needed any more, should this process end now. */
	if (!result)
		pem_session__note_log(s, false);
	return result ? cannot_recover(r, result, strerror(-result)) : 0;
}

static int fill_stage(struct recovery *r)
{
	struct pem_trace *trace = pem_trace__open_folder(r->trace_fd, r->directory, r->error);
	int stage_fd = -1, result = trace ? 0 : -errno;
	struct pem_error why = {""};

	if (!result)
		result = refuse_complete(r, trace);
	if (!result)
		result = pem_session__load_trace_model(r->session, pem_trace__model(trace),
						       r->error);
	if (!result) {
		stage_fd = pem_stage__begin(r->private_fd);
		if (stage_fd < 0)
			result = cannot_recover(r, stage_fd, strerror(-stage_fd));
	}
	if (!result) {
		result = make_log(r->session, r->trace_fd, stage_fd, pem_trace__info(trace), &why);
		if (result)
			cannot_recover(r, result, why.text);
	}
	pem_trace__close(trace);
	if (!result)
		result = finish_log(r);
	if (stage_fd >= 0)
		close(stage_fd);
	if (stage_fd >= 0 && result)
		pem_stage__discard(r->private_fd);
	return result;
}

/* Close a session that was not recovered. Its shared memory stays for the next try. */
static void leave_session(struct pem_session *s)
{
	struct pem_producer *p;

	if (!s)
		return;
	while ((p = s->processes->producers)) {
		s->processes->producers = p->next;
		pem_producer__free(p);
	}
	if (s->page)
		pem_shared_file__unmap(s->page, sizeof(*s->page));
	s->page = NULL;
	if (s->directory_fd >= 0)
		close(s->directory_fd);
	s->directory_fd = -1;
	s->runtime[0] = 0;
	pem_session__close(s);
}

int pem_trace__recover(const char *directory, struct pem_error *error)
{
	struct recovery r = {
		.directory = directory, .trace_fd = -1, .private_fd = -1, .error = error};
	int result;

	if (!directory || !*directory)
		return pem_error__lacks(error, "directory of a trace");
	result = open_own_trace(&r);
	if (!result && !pem_stage__is_whole(r.private_fd)) {
		result = find_session(&r);
		if (!result)
			result = fill_stage(&r);
	}
	if (!result) {
		result = pem_stage__publish(r.trace_fd, r.private_fd);
		if (result)
			pem_error__set(error, 0,
				       "cannot finish trace '%s': %s; what was recovered waits in "
				       "its folder '.pem/recovery', it can be tried again",
				       directory, strerror(-result));
	}
	if (result)
		leave_session(r.session);
	/* Closing removes the session's folder with its pools. */
	else
		pem_session__close(r.session);
	if (r.private_fd >= 0)
		close(r.private_fd);
	if (r.trace_fd >= 0)
		close(r.trace_fd);
	return result;
}
