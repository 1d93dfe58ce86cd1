/* SPDX-License-Identifier: GPL-2.0-or-later */
/* main.c - options, threads, and the entry in the file */
#include "tool.h"

#include "pub_tool_clreq.h"

#include <asm/fcntl.h>

/* Core functions, not for tools in name. */
extern SysRes VG_(am_shared_mmap_file_float_valgrind)(SizeT length, UInt prot, Int fd,
						      Off64T offset);
extern Int VG_(safe_fd)(Int oldfd);
extern Int VG_(fd_hard_limit); /* from here on descriptors are Valgrind's own */
extern const HChar *VG_(clo_log_fname_unexpanded);

#define LOG_FD_MAX 1024 /* the program was started with fewer open */

struct hierarchy hierarchy;
ULong instruction_count;

static const HChar *path;
static struct pem_hardware_file *file;
static struct pem_simulated_process *entry; /* NULL: all are taken, which the file tells */

struct counts {
	ULong counts[PEM_SIMULATED_COUNT];
};
static struct counts *threads; /* by thread, up to when it last stopped */
static struct counts running_since; /* of the process, when the running thread started */

/* --- counts --- */

static ULong count_of(UInt i)
{
	if (i == PEM_SIMULATED_INSTRUCTIONS)
		return instruction_count;
	if (i == PEM_SIMULATED_CYCLES)
		return instruction_count + hierarchy.counts[i];
	return hierarchy.counts[i];
}

static void take_entry(void)
{
	/* Alone: orders nothing. Readers take an entry that is not filled yet as one of zeroes. */
	UInt taken = __atomic_fetch_add(&file->hardware.process_count, 1, __ATOMIC_RELAXED);

	entry = taken < PEM_HARDWARE_PROCESSES_MAX ? &file->processes[taken] : NULL;
	if (entry)
		entry->pid = VG_(getpid)();
}

static void publish(void)
{
	UInt i;

	for (i = 0; entry && i < PEM_SIMULATED_COUNT; i++)
		/* Alone: each count is read by itself. */
		__atomic_store_n(&entry->counts[i], count_of(i), __ATOMIC_RELAXED);
}

/* --- threads --- */

static void thread_starts(ThreadId thread, ULong blocks)
{
	UInt i;

	(void)thread;
	(void)blocks;
	for (i = 0; i < PEM_SIMULATED_COUNT; i++)
		running_since.counts[i] = count_of(i);
}

static void thread_stops(ThreadId thread, ULong blocks)
{
	UInt i;

	(void)blocks;
	for (i = 0; i < PEM_SIMULATED_COUNT; i++)
		threads[thread].counts[i] += count_of(i) - running_since.counts[i];
	publish();
}

/* Valgrind's numbers of threads that ended are used again. */
static void thread_made(ThreadId parent, ThreadId child)
{
	(void)parent;
	VG_(memset)(&threads[child], 0, sizeof(threads[child]));
}

static Bool handle_request(ThreadId thread, UWord *arguments, UWord *answer)
{
	if (arguments[0] != PEM_SIMULATED_REQUEST)
		return False;
	*answer = 0;
	/* The thread has stopped for the request, and its counts are up to date. */
	if (arguments[1] < PEM_SIMULATED_COUNT)
		*answer = PEM_SIMULATED_ANSWER | threads[thread].counts[arguments[1]];
	return True;
}

/* The child has a copy of the caches, as they are, and counts of its own. */
static void forked(ThreadId thread)
{
	VG_(memset)(hierarchy.counts, 0, sizeof(hierarchy.counts));
	VG_(memset)(threads, 0, VG_N_THREADS * sizeof(*threads));
	instruction_count = 0;
	thread_starts(thread, 0);
	take_entry();
}

/* --- start and end --- */

static Bool process_option(const HChar *option)
{
	return VG_STR_CLO(option, "--hardware", path);
}

static void print_usage(void)
{
	VG_(printf)("    --hardware=FILE    made by pem: what to simulate, and where to count\n");
}

static void print_debug_usage(void)
{
	VG_(printf)("    (none)\n");
}

static void fail(const HChar *what)
{
	VG_(fmsg)("%s: %s\n", path ? path : "--hardware", what);
	VG_(exit)(2);
}

/*
 * Valgrind keeps its log open twice: as a descriptor of its own, which the program can't use, and
 * as the lowest that was free, which the program would have found free, too.
 */
static void close_log_of_program(void)
{
	struct vg_stat log, status;
	HChar *name;
	Bool is_open;
	Int fd;

	if (!VG_(clo_log_fname_unexpanded))
		return;
	name = VG_(expand_file_name)("--log-file", VG_(clo_log_fname_unexpanded));
	is_open = !sr_isError(VG_(stat)(name, &log));
	for (fd = 3; is_open && fd < LOG_FD_MAX && fd < VG_(fd_hard_limit); fd++)
		if (!VG_(fstat)(fd, &status) && status.dev == log.dev && status.ino == log.ino)
			VG_(close)(fd);
	VG_(free)(name);
}

static void map_file(void)
{
	struct vg_stat status;
	SysRes mapped;
	Int fd;

	if (!path)
		fail("the file is not named: pem stat --hardware runs this tool");
	fd = VG_(fd_open)(path, VKI_O_RDWR | O_NOFOLLOW, 0);
	if (fd < 0)
		fail("can't be opened");
	if (VG_(fstat)(fd, &status) || !VKI_S_ISREG(status.mode) ||
	    status.size != sizeof(struct pem_hardware_file))
		fail("is no file of counts");
	mapped = VG_(am_shared_mmap_file_float_valgrind)(sizeof(struct pem_hardware_file),
							 VKI_PROT_READ | VKI_PROT_WRITE, fd, 0);
	VG_(close)(fd);
	if (sr_isError(mapped))
		fail("can't be mapped");
	file = (struct pem_hardware_file *)sr_Res(mapped);
}

static void start(void)
{
	struct pem_hardware hardware;
	SizeT bytes;

	close_log_of_program();
	map_file();
	VG_(memcpy)(&hardware, &file->hardware, sizeof(hardware));
	if (!pem_hardware__check(&hardware))
		fail("describes no machine that can be simulated");
	bytes = hierarchy__bytes(&hardware);
	hierarchy__init(&hierarchy, &hardware, VG_(calloc)("hierarchy", 1, bytes));
	threads = VG_(calloc)("threads", VG_N_THREADS, sizeof(*threads));
	take_entry();
	VG_(atfork)(NULL, NULL, forked);
}

static void end(Int status)
{
	(void)status;
	publish();
}

static void init(void)
{
	VG_(details_name)("pem-hardware");
	VG_(details_version)(NULL);
	VG_(details_description)("caches and TLBs that do not exist");
	VG_(details_copyright_author)("Part of pem; GPL-2.0-or-later.");
	VG_(details_bug_reports_to)("the authors of pem");
	VG_(details_avg_translation_sizeB)(500);
	VG_(basic_tool_funcs)(start, instrument, end);
	VG_(needs_command_line_options)(process_option, print_usage, print_debug_usage);
	VG_(needs_client_requests)(handle_request);
	VG_(track_pre_thread_ll_create)(thread_made);
	VG_(track_start_client_code)(thread_starts);
	VG_(track_stop_client_code)(thread_stops);
}

VG_DETERMINE_INTERFACE_VERSION(init)
