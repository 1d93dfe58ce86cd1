/* SPDX-License-Identifier: MIT */
/*
 * trace_fixture.h - traces made by hand, packet by packet, for tests of the reader
 *
 * Not here: a recorder; every header field can be set to what no recorder would write.
 */
#ifndef PEM_TRACE_FIXTURE_H
#define PEM_TRACE_FIXTURE_H

#include <pem/trace.h>

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIXTURE_HZ 1000000000ull /* one tick is one nanosecond */
#define FIXTURE_START 5000000000ull

enum {
	EVENT_SWITCH = 0x100,
	EVENT_FAULT,
	EVENT_FORK,
	EVENT_EXEC,
	EVENT_SIMPLE,
	EVENT_MIXED,
	EVENT_BEGIN,
	EVENT_END,
	EVENT_CYCLES,
	EVENT_RENAME,
};

static const char fixture_model[] =
	"pem-model\t2\n"
	"event\t00000100\tOS::Sched::Switch\tOS\tSched\tSwitch\t1\tinfo\tsets-thread\t\t-"
	"\ttracepoint\t"
	"sched:sched_switch\t20\t24\t3\t2\t\t\ta CPU changes thread\n"
	"field\tprevTid\tuint32\t-\t10\tprevious-thread\t8\t1\t\t-\t0\tleaves\n"
	"field\tnextPid\tuint32\t-\t10\tprocess\t12\t1\t\t-\t0\tits process\n"
	"field\tnextTid\tuint32\t-\t10\tthread\t16\t1\t\t-\t0\tcomes\n"
	"event { name = \"OS::Sched::Switch\";\n"
	"\tid = 256; };\n"
	"event\t00000101\tOS::Mem::PageFault\tOS\tMem\tPageFault\t1\tinfo\t-\t\t-\ttracepoint\t"
	"exceptions:page_fault_user\t16\t16\t1\t0\t\t\ta page is missing\n"
	"field\taddress\tuint64\t-\t16\taddress\t8\t1\t\t-\t0\twhere\n"
	"event\t00000102\tOS::Process::Fork\tOS\tProcess\tFork\t1\tinfo\tthread-start\t\t-"
	"\ttracepoint\t"
	"sched:sched_process_fork\t20\t24\t3\t0\t\t\ta thread begins\n"
	"field\tparentPid\tuint32\t-\t10\tparent\t8\t1\t\t-\t0\twho asked\n"
	"field\tchildPid\tuint32\t-\t10\tprocess\t12\t1\t\t-\t0\tits process\n"
	"field\tchildTid\tuint32\t-\t10\tthread\t16\t1\t\t-\t0\tthe thread\n"
	"event\t00000103\tOS::Process::Exec\tOS\tProcess\tExec\t1\tinfo\tprocess-name\t\t-"
	"\ttracepoint\t"
	"sched:sched_process_exec\t12\t80\t2\t0\t\t\ta new program\n"
	"field\tpid\tuint32\t-\t10\tprocess\t8\t1\t\t-\t0\tthe process\n"
	"field\tfilename\tstring\t-\t10\tname\t0\t64\t\t-\t0\tits file\n"
	"event\t00000104\tAPP::Test::Simple\tAPP\tTest\tSimple\t1\tinfo\t-\t\t-"
	"\tstub\t\t16\t16\t1\t0\t\t\tone "
	"number\n"
	"field\tvalue\tuint64\t-\t10\t-\t8\t1\tbytes\t-\t0\ta number\n"
	"event\t00000105\tAPP::Test::Mixed\tAPP\tTest\tMixed\t1\tinfo\t-\t\t-"
	"\tstub\t\t24\t88\t4\t0\t\t\tof each "
	"kind\n"
	"field\tsmall\tint8\t-\t10\t-\t8\t1\t\t-\t0\ta small number\n"
	"field\ttext\tstring\t-\t10\t-\t0\t32\t\t-\t0\ta text\n"
	"field\tlist\tlist\tuint64\t16\t-\t12\t4\t\t-\t0\ta list\n"
	"field\treal\tfloat64\t-\t10\t-\t16\t1\t\t-\t0\ta fraction\n"
	"event\t00000106\tAPP::Phase::Begin\tAPP\tPhase\tBegin\t1\tinfo\tinterval-"
	"begin\tAPP::Phase\tthread\tstub\t\t8\t40\t1\t0\t\t\t\n"
	"field\tname\tstring\t-\t10\tname\t0\t32\t\t-\t0\tphase\n"
	"event\t00000107\tAPP::Phase::End\tAPP\tPhase\tEnd\t1\tinfo\tinterval-end\t\t-"
	"\tstub\t\t8\t40\t1\t0\t\t\t\n"
	"field\tname\tstring\t-\t10\tname\t0\t32\t\t-\t0\tphase\n"
	"event\t00000108\tHW::Counter::Cycles\tHW\tCounter\tCycles\t1\tinfo\tcounter\t\t-"
	"\tperf\tperf::CYCLES\t"
	"16\t16\t1\t0\t\t\tcycles so far\n"
	"field\tvalue\tuint64\t-\t10\tvalue\t8\t1\tcycles\t-\t0\tso far\n"
	"event\t00000109\tOS::Process::Rename\tOS\tProcess\tRename\t1\tdetail\tthread-name\t\t-"
	"\ttracepoint\t"
	"task:task_rename\t12\t32\t2\t0\t\t\ta new name\n"
	"field\ttid\tuint32\t-\t10\tthread\t8\t1\t\t-\t0\tthe thread\n"
	"field\tnewComm\tstring\t-\t10\tname\t0\t16\t\t-\t0\tits name\n";

struct fixture {
	char path[64];
};

static inline void fixture_write(const struct fixture *f, const char *name, const void *data,
				 size_t bytes, const char *mode)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	file = fopen(path, mode);
	if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file))
		abort();
}

static inline void fixture_text(const struct fixture *f, const char *name, const char *text)
{
	fixture_write(f, name, text, strlen(text), "w");
}

/* A trace without streams. */
static inline void fixture_new(struct fixture *f)
{
	char path[160], run[160];

	snprintf(f->path, sizeof(f->path), "/tmp/pem-fixture-XXXXXX");
	if (!mkdtemp(f->path))
		abort();
	snprintf(path, sizeof(path), "%s/.pem", f->path);
	if (mkdir(path, 0755))
		abort();
	snprintf(run, sizeof(run), "command=a test\nstart_clock=%llu\nclock_hz=%llu\ncomplete=1\n",
		 FIXTURE_START, FIXTURE_HZ);
	fixture_text(f, "metadata", "/* CTF 1.8 */\n");
	fixture_text(f, ".pem/run", run);
	fixture_text(f, ".pem/model", fixture_model);
	fixture_text(f, ".pem/balance", "end\n");
}

static inline void fixture_free(struct fixture *f)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf '%s'", f->path);
	if (system(command))
		abort();
}

/* A packet under construction. */
struct packet {
	struct pem_packet header;
	uint8_t records[65536];
	size_t end; /* of the last record */
};

static inline void packet_new(struct packet *p, uint32_t source, uint32_t pid, uint32_t tid,
			      uint32_t cpu, uint64_t begin)
{
	memset(p, 0, sizeof(*p));
	p->header.magic = PEM_CTF_MAGIC;
	memset(p->header.uuid, 0x55, sizeof(p->header.uuid));
	p->header.timestamp_begin = begin;
	p->header.timestamp_end = begin;
	p->header.pid = pid;
	p->header.tid = tid;
	p->header.cpu = cpu;
	p->header.source = source;
	p->header.content_size = sizeof(p->header) * 8;
	p->header.packet_size = p->header.content_size;
}

/* Append a record: its header, then body. */
static inline void packet_add(struct packet *p, uint64_t clock, uint32_t id, const void *body,
			      size_t bytes)
{
	struct pem_record_header header = {(uint32_t)clock, id};
	size_t at = (p->end + 7) & ~(size_t)7;

	assert(at + sizeof(header) + bytes <= sizeof(p->records));
	memcpy(p->records + at, &header, sizeof(header));
	if (bytes)
		memcpy(p->records + at + sizeof(header), body, bytes);
	p->end = at + sizeof(header) + bytes;
	p->header.timestamp_end = clock;
	p->header.record_count++;
	p->header.content_size = (sizeof(p->header) + p->end) * 8;
	p->header.packet_size = (sizeof(p->header) + ((p->end + 7) & ~(size_t)7)) * 8;
}

static inline void packet_simple(struct packet *p, uint64_t clock, uint64_t value)
{
	packet_add(p, clock, EVENT_SIMPLE, &value, sizeof(value));
}

static inline void packet_fault(struct packet *p, uint64_t clock)
{
	uint64_t address = 0xabc000;

	packet_add(p, clock, EVENT_FAULT, &address, sizeof(address));
}

static inline void packet_switch(struct packet *p, uint64_t clock, uint32_t prev_tid,
				 uint32_t next_pid, uint32_t next_tid)
{
	uint32_t body[3] = {prev_tid, next_pid, next_tid};

	packet_add(p, clock, EVENT_SWITCH, body, sizeof(body));
}

static inline void packet_fork(struct packet *p, uint64_t clock, uint32_t parent, uint32_t pid,
			       uint32_t tid)
{
	uint32_t body[3] = {parent, pid, tid};

	packet_add(p, clock, EVENT_FORK, body, sizeof(body));
}

static inline void packet_exec(struct packet *p, uint64_t clock, uint32_t pid, const char *file)
{
	uint8_t body[4 + 64] = {0};

	memcpy(body, &pid, sizeof(pid));
	memcpy(body + sizeof(pid), file, strlen(file) + 1);
	packet_add(p, clock, EVENT_EXEC, body, sizeof(pid) + strlen(file) + 1);
}

static inline void packet_rename(struct packet *p, uint64_t clock, uint32_t tid, const char *name)
{
	uint8_t body[4 + 16] = {0};

	memcpy(body, &tid, sizeof(tid));
	memcpy(body + sizeof(tid), name, strlen(name) + 1);
	packet_add(p, clock, EVENT_RENAME, body, sizeof(tid) + strlen(name) + 1);
}

/* Append the packet, as its header says, to a stream file. */
static inline void packet_write(const struct packet *p, const struct fixture *f, const char *stream)
{
	static const uint8_t padding[1 << 16];
	size_t bytes = sizeof(p->header) + p->end, size = p->header.packet_size / 8;

	fixture_write(f, stream, &p->header, sizeof(p->header), "a");
	fixture_write(f, stream, p->records, p->end, "a");
	if (size > bytes && size - bytes <= sizeof(padding))
		fixture_write(f, stream, padding, size - bytes, "a");
}

/* The packet after p in the same stream, at clock. */
static inline void packet_next(struct packet *p, uint64_t begin)
{
	struct pem_packet before = p->header;

	packet_new(p, before.source, before.pid, before.tid, before.cpu, begin);
	p->header.packet_seq_num = before.packet_seq_num + 1;
	p->header.events_discarded = before.events_discarded;
	p->header.events_overwritten = before.events_overwritten;
	p->header.stream_instance_id = before.stream_instance_id;
}

#endif
