/* SPDX-License-Identifier: MIT */
/*
 * context_fixture.h - traces made by hand for tests of the context stage, with events of every
 * meaning that it knows
 */
#ifndef CONTEXT_FIXTURE_H
#define CONTEXT_FIXTURE_H

#include "trace_fixture.h"

#include <pem/context.h>

#include <setjmp.h>
#include <cmocka.h>

#include "reader_fixture.h"

enum {
	EVENT_LEAVE = 0x200, /* a switch with a state */
	EVENT_RUNNABLE,
	EVENT_WAKING,
	EVENT_EXIT,
	EVENT_CALL,
	EVENT_RETURN,
	EVENT_LOCK,
	EVENT_UNLOCK,
	EVENT_SEND,
	EVENT_RECEIVE,
	EVENT_ALLOC,
	EVENT_FREE,
	EVENT_MOVE,
	EVENT_TOUCH,
	EVENT_REQUEST,
	EVENT_ANSWER,
	EVENT_STAGE,
	EVENT_STAGE_END,
	EVENT_SYSTEM_CALL, /* 0 read, 1 write, 2 getpid, 3 openat, 4 unlink, 5 newfstatat */
	EVENT_RESULT,
	EVENT_FILE,
	EVENT_START, /* process, thread, parent */
	EVENT_PROGRAM,
	EVENT_ARGUMENTS,
	EVENT_JOB, /* named by its place; of the process */
	EVENT_ANY_JOB,
	EVENT_JOB_END,
	EVENT_ANY_JOB_END,
	EVENT_INTERRUPT, /* of the CPU */
	EVENT_INTERRUPT_END,
	EVENT_PATH, /* call, path */
	EVENT_WAKING_HOW, /* thread; 0: by who runs, 1: by an interrupt, 255: by that or a fault */
	EVENT_FOUND, /* the recorder's: state, holder, object */
	EVENT_ONGOING, /* the recorder's: a system call */
	EVENT_EXEC_BY, /* process, the thread that called, name */
};

#define FIELD(name, type, role, at)                                                                \
	"field\t" name "\t" type "\t-\t10\t" role "\t" at "\t1\t\t-\t0\t\n"
/* Two numbers: one of 32 bits, one of 64. */
#define PAIR(id, layer, name, meaning, group, scope, role32, role64)                               \
	"event\t" id "\t" layer "::T::" name "\t" layer "\tT\t" name "\t1\tdetail\t" meaning       \
	"\t" group "\t" scope                                                                      \
	"\tstub\t\t24\t24\t2\t0\t\t\t\n" FIELD("number", "uint32", role32, "8")                    \
		FIELD("place", "uint64", role64, "16")

/* clang-format off */
static const char context_model[] =
	"event\t00000200\tOS::T::Leave\tOS\tT\tLeave\t1\tdetail\tsets-thread"
	"\t\t-\ttracepoint\ts:w\t24\t24\t4\t0\t\t\t\n"
	FIELD("prev", "uint32", "previous-thread", "8") FIELD("state", "uint32", "state", "12")
	FIELD("pid", "uint32", "process", "16") FIELD("tid", "uint32", "thread", "20")
	PAIR("00000201", "OS", "Runnable", "thread-runnable", "", "-", "thread", "-")
	PAIR("00000202", "OS", "Waking", "thread-waking", "", "-", "thread", "-")
	PAIR("00000203", "OS", "Exit", "thread-end", "", "-", "thread", "-")
	PAIR("00000204", "OS", "Call", "interval-begin", "OS::Call", "thread", "-", "-")
	PAIR("00000205", "OS", "Return", "interval-end", "OS::Call", "thread", "-", "-")
	PAIR("00000206", "APP", "Lock", "interval-begin", "APP::Hold", "thread", "-", "key")
	PAIR("00000207", "APP", "Unlock", "interval-end", "APP::Hold", "thread", "-", "key")
	PAIR("00000208", "APP", "Send", "send", "APP::Wire", "system", "key", "-")
	PAIR("00000209", "APP", "Receive", "receive", "APP::Wire", "system", "key", "-")
	PAIR("0000020a", "APP", "Alloc", "allocation", "APP::Heap", "process", "size", "address")
	PAIR("0000020b", "APP", "Free", "release", "APP::Heap", "process", "-", "address")
	"event\t0000020c\tAPP::T::Move\tAPP\tT\tMove\t1\tdetail\tallocation"
	"\tAPP::Heap\tprocess\tstub\t\t32\t32\t3\t0\t\t\t\n"
	FIELD("size", "uint64", "size", "8") FIELD("old", "uint64", "old-address", "16")
	FIELD("place", "uint64", "address", "24")
	PAIR("0000020d", "APP", "Touch", "access", "", "-", "-", "address")
	PAIR("0000020e", "OS", "Request", "interval-begin", "OS::Disk", "system", "key", "-")
	PAIR("0000020f", "OS", "Answer", "interval-end", "OS::Disk", "system", "key", "-")
	"event\t00000210\tAPP::T::Stage\tAPP\tT\tStage\t1\tinfo\tinterval-begin"
	"\tAPP::Stage\tthread\tstub\t\t8\t40\t1\t0\t\t\t\n"
	"field\tname\tstring\t-\t10\tname\t0\t32\t\t-\t0\t\n"
	"event\t00000211\tAPP::T::StageEnd\tAPP\tT\tStageEnd\t1\tinfo\tinterval-end"
	"\tAPP::Stage\tthread\tstub\t\t8\t40\t1\t0\t\t\t\n"
	"field\tname\tstring\t-\t10\tname\t0\t32\t\t-\t0\t\n"
	"event\t00000212\tOS::T::Enter\tOS\tT\tEnter\t1\tdetail\tinterval-begin"
	"\tOS::T\tthread\ttracepoint\ts:e\t24\t24\t2\t0\t\t\t\n"
	"field\tnumber\tuint32\t-\t10\tsystem-call\t8\t1\t\tenum\t6\t\n"
	"label\t0000000000000000\tread\t\nlabel\t0000000000000001\twrite\t\n"
	"label\t0000000000000002\tgetpid\t\nlabel\t0000000000000003\topenat\t\n"
	"label\t0000000000000004\tunlink\t\nlabel\t0000000000000005\tnewfstatat\t\n"
	FIELD("argument", "uint64", "descriptor", "16")
	PAIR("00000213", "OS", "Leave2", "interval-end", "OS::T", "thread", "-", "value")
	"event\t00000214\tOS::T::File\tOS\tT\tFile\t1\tdetail\tdescriptor-name"
	"\t\t-\ttracepoint\ts:f\t12\t144\t2\t0\t\t\t\n"
	FIELD("descriptor", "int32", "descriptor", "8")
	"field\tpath\tstring\t-\t10\tname\t0\t128\t\t-\t0\t\n"
	"event\t00000215\tOS::T::Start\tOS\tT\tStart\t1\tdetail\tthread-start"
	"\t\t-\ttracepoint\ts:s\t20\t24\t3\t0\t\t\t\n"
	FIELD("pid", "uint32", "process", "8") FIELD("tid", "uint32", "thread", "12")
	FIELD("parent", "uint32", "parent", "16")
	"event\t00000216\tOS::T::Exec\tOS\tT\tExec\t1\tdetail\tprocess-name"
	"\t\t-\ttracepoint\ts:x\t12\t48\t2\t0\t\t\t\n"
	FIELD("pid", "uint32", "process", "8")
	"field\tname\tstring\t-\t10\tname\t0\t32\t\t-\t0\t\n"
	"event\t00000217\tOS::T::Arguments\tOS\tT\tArguments\t1\tdetail\tprocess-arguments"
	"\t\t-\ttracepoint\ts:a\t12\t48\t2\t0\t\t\t\n"
	FIELD("pid", "uint32", "process", "8")
	"field\ttext\tstring\t-\t10\tname\t0\t32\t\t-\t0\t\n"
	PAIR("00000218", "APP", "Job", "interval-begin", "APP::Jobs", "process", "-", "name")
	PAIR("00000219", "APP", "AnyJob", "interval-begin", "APP::Jobs", "process", "-", "-")
	PAIR("0000021a", "APP", "JobEnd", "interval-end", "APP::Jobs", "process", "-", "name")
	PAIR("0000021b", "APP", "AnyJobEnd", "interval-end", "APP::Jobs", "process", "-", "-")
	PAIR("0000021c", "OS", "Interrupt", "interval-begin", "OS::Irq", "cpu", "-", "-")
	PAIR("0000021d", "OS", "InterruptEnd", "interval-end", "OS::Irq", "cpu", "-", "-")
	"event\t0000021e\tOS::T::Path\tOS\tT\tPath\t1\tdetail\tcall-path"
	"\t\t-\ttracepoint\ts:p\t12\t144\t2\t0\t\t\t\n"
	FIELD("number", "int32", "system-call", "8")
	"field\tpath\tstring\t-\t10\tname\t0\t128\t\t-\t0\t\n"
	PAIR("0000021f", "OS", "WakingHow", "thread-waking", "", "-", "thread", "interrupt")
	"event\t00000220\tOS::T::Found\tOS\tT\tFound\t1\tdetail\tthread-state"
	"\t\t-\tproc\tthread\t16\t144\t3\t0\t\t\t\n"
	FIELD("state", "uint32", "state", "8") FIELD("holder", "uint32", "holder", "12")
	"field\tobject\tstring\t-\t10\tname\t0\t128\t\t-\t0\t\n"
	"event\t00000221\tOS::T::Ongoing\tOS\tT\tOngoing\t1\tdetail\tinterval-begin"
	"\tOS::T\tthread\tproc\tcall\t24\t24\t2\t0\t\t\t\n"
	"field\tnumber\tuint32\t-\t10\tsystem-call\t8\t1\t\tenum\t2\t\n"
	"label\t0000000000000000\tread\t\nlabel\t0000000000000001\twrite\t\n"
	FIELD("argument", "uint64", "descriptor", "16")
	"event\t00000222\tOS::T::ExecBy\tOS\tT\tExecBy\t1\tdetail\tprocess-name"
	"\t\t-\ttracepoint\ts:b\t16\t48\t3\t0\t\t\t\n"
	FIELD("pid", "uint32", "process", "8") FIELD("old", "uint32", "previous-thread", "12")
	"field\tname\tstring\t-\t10\tname\t0\t32\t\t-\t0\t\n";
/* clang-format on */

/* Give a trace this model. more: further lines of .pem/run. */
static inline void context_model_of(const struct fixture *f, const char *more)
{
	static char model[sizeof(fixture_model) + sizeof(context_model)];
	char run[256];

	snprintf(model, sizeof(model), "%s%s", fixture_model, context_model);
	fixture_text(f, ".pem/model", model);
	snprintf(run, sizeof(run),
		 "command=a test\nstart_clock=%llu\nclock_hz=%llu\ncomplete=1\n"
		 "command_process=50\tsh\n%s",
		 FIXTURE_START, FIXTURE_HZ, more);
	fixture_text(f, ".pem/run", run);
}

static __attribute__((unused)) int context_set_up(void **state)
{
	set_up(state);
	context_model_of(&fixture, "");
	return 0;
}

static inline void packet_pair(uint64_t clock, uint32_t id, uint32_t number, uint64_t place)
{
	uint8_t body[16] = {0};

	memcpy(body, &number, sizeof(number));
	memcpy(body + 8, &place, sizeof(place));
	packet_add(&packet, clock, id, body, sizeof(body));
}

static inline void packet_leave(uint64_t clock, uint32_t prev, uint32_t state, uint32_t pid,
				uint32_t tid)
{
	uint32_t body[4] = {prev, state, pid, tid};

	packet_add(&packet, clock, EVENT_LEAVE, body, sizeof(body));
}

static inline void packet_phase(uint64_t clock, uint32_t id, const char *name)
{
	packet_add(&packet, clock, id, name, strlen(name) + 1);
}

/* A number and a text: what a descriptor is, or a process's name or arguments. */
static inline void packet_text(uint64_t clock, uint32_t id, uint32_t number, const char *text)
{
	uint8_t body[160] = {0};

	memcpy(body, &number, sizeof(number));
	memcpy(body + 4, text, strlen(text) + 1);
	packet_add(&packet, clock, id, body, 4 + strlen(text) + 1);
}

static inline void packet_start(uint64_t clock, uint32_t pid, uint32_t tid, uint32_t parent)
{
	uint32_t body[3] = {pid, tid, parent};

	packet_add(&packet, clock, EVENT_START, body, sizeof(body));
}

/* --- reading --- */

static struct pem_trace *trace;
static struct pem_pass *pass;
static struct pem_record record = {.size = sizeof(record)};
static struct pem_around around = {.size = sizeof(around)};

static inline void start_pass(void)
{
	struct pem_pass_options options = {.size = sizeof(options), .has_paths = 1};
	struct pem_error error = {""};

	trace = open_trace();
	pass = pem_pass__new(trace, &options, &error);
	if (!pass)
		fail_msg("%s", error.text);
}

static inline void end_pass(void)
{
	struct pem_error error = {""};
	int rc;

	do {
		rc = pem_pass__next(pass, &record, &around, &error);
	} while (rc == 1);
	assert_int_equal(rc, 0);
	pem_pass__free(pass);
	pem_trace__close(trace);
}

/* Read on to the record at T(n). Nothing may have ended before it. */
static inline void go_to(int n)
{
	struct pem_error error = {"the end"};

	do {
		if (pem_pass__next(pass, &record, &around, &error) != 1)
			fail_msg("at %d: %s", n, error.text);
	} while (record.clock < T(n));
	if (record.clock != T(n))
		fail_msg("no record at %d", n);
}

static inline void expect_span(size_t i, uint32_t tid, enum pem_thread_state state, int begin,
			       int end)
{
	const struct pem_span *span = &around.spans[i];

	assert_true(i < around.span_count);
	if (span->thread->tid != tid || span->state != state || span->begin_ns != (uint64_t)begin ||
	    span->end_ns != (uint64_t)end)
		fail_msg("span %zu: thread %u, state %d, %d to %d", i, span->thread->tid,
			 (int)span->state, (int)span->begin_ns, (int)span->end_ns);
}

static inline void expect_end(size_t i, enum pem_interval_outcome outcome, int begin, int end)
{
	const struct pem_ended *ended = &around.ended[i];

	assert_true(i < around.ended_count);
	if (ended->outcome != outcome || ended->interval->begin.time_ns != (uint64_t)begin ||
	    ended->end_ns != (uint64_t)end)
		fail_msg("interval %zu: outcome %d, %d to %d", i, (int)ended->outcome,
			 (int)ended->interval->begin.time_ns, (int)ended->end_ns);
}

#endif
