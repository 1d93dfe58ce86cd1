/* SPDX-License-Identifier: GPL-2.0-or-later */
/* main.c - options, threads, and the events of Valgrind's core */
#include "tool.h"
#include "pub_tool_replacemalloc.h"
#include "pub_tool_vkiscnums.h"

#include <linux/mman.h>

/* A core function; that for tools is for client requests only. */
extern void VG_(discard_translations)(Addr start, ULong range, const HChar *who);

struct options options = {
	.burst = PROFILE_BURST_MAX,
	.keep = 64ull << 20,
	.limit = 60,
	.follow_fork = True,
};

#define WINDOWS_MIN 8u
/* Stacks may grow much further than they do. */
#define USUAL_STACK_BYTES (UINT64_C(8) << 20)

static Bool discarded;

/* --- options --- */

static Bool process_option(const HChar *option)
{
	if (VG_STR_CLO(option, "--profile", options.profile)) {
	} else if (VG_BINT_CLO(option, "--burst", options.burst, 1024, PROFILE_BURST_MAX)) {
	} else if (VG_BINT_CLO(option, "--keep", options.keep, 1 << 16, 1ll << 40)) {
	} else if (VG_BINT_CLO(option, "--limit", options.limit, 0, 1ll << 31)) {
	} else if (VG_BOOL_CLO(option, "--follow-exec", options.follow_exec)) {
		if (options.follow_exec)
			VG_(clo_trace_children) = True;
	} else if (VG_BOOL_CLO(option, "--follow-fork", options.follow_fork)) {
	} else {
		return VG_(replacement_malloc_process_cmd_line_option)(option);
	}
	return True;
}

static void print_usage(void)
{
	VG_(printf)
	("    --profile=FILE     write the profile there. If FILE exists, and for a child\n"
	 "                       of fork or exec, it is FILE.PID. [pem-page-size.profile]\n"
	 "    --burst=COUNT      references that are kept together [1048576]\n"
	 "    --keep=BYTES       at most, of references [67108864]\n"
	 "    --follow-fork=no|yes  observe children of fork, too? [yes]\n"
	 "    --limit=SECONDS    then observe no more; 0: until the end [60]\n"
	 "    --follow-exec=yes  observe what the process becomes by exec, into FILE in\n"
	 "                       place of what it was, and none of its children [no]\n");
}

static void print_debug_usage(void)
{
	VG_(printf)("    (none)\n");
}

/* --- memory --- */

ULong fork_count;

/* What the mmap system call of this thread asks for, which the event does not tell. */
static Bool private_anonymous;
/* And could the allocator give large pages to it (../apply/maps.c)? */
static Bool can_be_large;
/* Whose memory the mremap system call of this thread changes. */
static UInt remapped_site = NO_SITE;

static Bool is_servable(Addr address, UWord protection, UWord flags)
{
	const UWord never = MAP_HUGETLB | MAP_GROWSDOWN | MAP_LOCKED | MAP_FIXED_NOREPLACE;

	if (!(protection & VKI_PROT_WRITE) || flags & never)
		return False;
	if (flags & VKI_MAP_FIXED)
		return !(flags & MAP_POPULATE);
	return !address && !(flags & MAP_32BIT);
}

static void before_call(ThreadId thread, UInt number, UWord *arguments, UInt count)
{
	(void)thread;
	exec__before(number, arguments);
	/* The parent of a vfork waits until its child has other memory. */
	fork_count += number == __NR_fork || (number == __NR_clone && count > 0 &&
					      !(arguments[0] & (VKI_CLONE_VM | VKI_CLONE_VFORK)));
	private_anonymous = number == __NR_mmap && count > 3 && arguments[3] & VKI_MAP_ANONYMOUS &&
			    arguments[3] & VKI_MAP_PRIVATE;
	remapped_site =
		number == __NR_mremap && count > 0 ? output__site_at(arguments[0]) : NO_SITE;
	can_be_large = private_anonymous && is_servable(arguments[0], arguments[2], arguments[3]);
}

static void after_call(ThreadId thread, UInt number, UWord *arguments, UInt count, SysRes result)
{
	(void)thread;
	(void)number;
	(void)arguments;
	(void)count;
	(void)result;
	private_anonymous = False;
	remapped_site = NO_SITE;
}

static UInt mapping_site(ThreadId thread)
{
	struct context *context = sites__context(thread, PAGE_SITE_MAP);

	/* Calls within the C library don't go by the function that the allocator replaces. */
	if (!can_be_large || sites__is_inner(thread, context))
		context = sites__context(thread, PAGE_SITE_RESERVED);
	return sites__number(context);
}

static void mapped(Addr start, SizeT bytes, Bool r, Bool w, Bool x, ULong handle)
{
	ThreadId thread = VG_(get_running_tid)();
	UInt site = remapped_site;

	(void)r;
	(void)w;
	(void)handle;
	if (x)
		objects__mapped(start, bytes);
	/* The data of objects has its site already. */
	if (objects__hold(start))
		return;
	if (private_anonymous && thread != VG_INVALID_THREADID)
		site = mapping_site(thread);
	output__range(start, start + bytes, site, site == NO_SITE ? 0 : bytes);
}

static void mapped_at_start(Addr start, SizeT bytes, Bool r, Bool w, Bool x, ULong handle)
{
	(void)r;
	(void)w;
	(void)handle;
	if (x)
		objects__mapped(start, bytes);
}

static void protection_changed(Addr start, SizeT bytes, Bool r, Bool w, Bool x)
{
	(void)r;
	(void)w;
	if (x)
		objects__mapped(start, bytes);
}

static void unmapped(Addr start, SizeT bytes)
{
	objects__unmapped(start, bytes);
	sites__unmapped(start, bytes);
	output__range(start, start + bytes, NO_SITE, 0);
}

/* It stays its site's: the allocator that applies knows who mapped it, too. */
static void moved(Addr from, Addr to, SizeT bytes)
{
	UInt site = remapped_site;

	output__range(from, from + bytes, NO_SITE, 0);
	output__range(to, to + bytes, site, site == NO_SITE ? 0 : bytes);
}

/* The main thread's stack, and where it ends. */
static UInt stack_site = NO_SITE;
static Addr stack_start, stack_end;

static void tell_stack(ThreadId thread)
{
	const struct page_site site = {.kind = PAGE_SITE_STACK};
	SizeT bytes = VG_(thread_get_stack_size)(thread);

	stack_end = (VG_(thread_get_stack_max)(thread) + SMALL_PAGE) & -SMALL_PAGE;
	stack_start = stack_end - bytes;
	stack_site = sites__add(&site);
	output__range(stack_start, stack_end, stack_site,
		      bytes < USUAL_STACK_BYTES ? bytes : USUAL_STACK_BYTES);
}

/* How far it grew, if that was far. */
static void tell_stack_depth(void)
{
	const NSegment *segment = VG_(am_find_nsegment)(stack_end - 1);

	if (stack_site != NO_SITE && segment && stack_end - segment->start > USUAL_STACK_BYTES)
		output__range(stack_start, stack_end, stack_site, stack_end - segment->start);
}

/* --- threads --- */

static void put_register(ThreadId thread, PtrdiffT offset, ULong value)
{
	VG_(set_shadow_regs_area)(thread, 1, offset, sizeof(value), (const UChar *)&value);
}

static ULong get_register(ThreadId thread, PtrdiffT offset)
{
	ULong value;

	VG_(get_shadow_regs_area)(thread, (UChar *)&value, 1, offset, sizeof(value));
	return value;
}

/* The shadow registers are right only while the thread runs: a signal handler's end restores them.
 */
static void thread_starts(ThreadId thread, ULong blocks)
{
	(void)blocks;
	if (running_thread == VG_INVALID_THREADID)
		tell_stack(thread);
	else if (thread != running_thread)
		bursts__take();
	running_thread = thread;
	put_register(thread, POSITION_REGISTER, (ULong)position);
	put_register(thread, COUNT_REGISTER, instruction_count);
}

static void thread_stops(ThreadId thread, ULong blocks)
{
	(void)blocks;
	if (!discarded) {
		position = (ULong *)get_register(thread, POSITION_REGISTER);
		instruction_count = get_register(thread, COUNT_REGISTER);
	}
	if (stopped && !discarded) {
		/*
		 * From now on the program runs without the stores. Its code does not run here, and
		 * the core knows that translations may go before it links two of them.
		 */
		position = buffer;
		VG_(discard_translations)(0x1000, ~0xfffull, "pem-page-size");
		discarded = True;
	}
}

static void forked(ThreadId thread)
{
	(void)thread;
	if (options.follow_exec)
		VG_(clo_trace_children) = False;
	output__forked();
	if (options.follow_fork && !discarded)
		bursts__restart();
	else
		bursts__leave();
}

/* --- start and end --- */

static void start(void)
{
	/* One window is always kept: there must be some. */
	while (options.burst * (Long)sizeof(ULong) * WINDOWS_MIN > options.keep)
		options.burst /= 2;
	output__init(options.profile ? options.profile : "pem-page-size.profile");
	VG_(atfork)(NULL, NULL, forked);
}

static void end(Int status)
{
	(void)status;
	bursts__take();
	heap__tell();
	tell_stack_depth();
	bursts__end();
}

static void init(void)
{
	VG_(details_name)("pem-page-size");
	VG_(details_version)(NULL);
	VG_(details_description)("references to memory, by allocation site");
	VG_(details_copyright_author)("Part of pem; GPL-2.0-or-later.");
	VG_(details_bug_reports_to)("the authors of pem");
	VG_(details_avg_translation_sizeB)(400);
	VG_(basic_tool_funcs)(start, instrument, end);
	VG_(needs_command_line_options)(process_option, print_usage, print_debug_usage);
	VG_(needs_syscall_wrapper)(before_call, after_call);
	heap__init();
	VG_(track_new_mem_startup)(mapped_at_start);
	VG_(track_new_mem_mmap)(mapped);
	VG_(track_change_mem_mprotect)(protection_changed);
	VG_(track_copy_mem_remap)(moved);
	VG_(track_die_mem_munmap)(unmapped);
	VG_(track_start_client_code)(thread_starts);
	VG_(track_stop_client_code)(thread_stops);
}

VG_DETERMINE_INTERFACE_VERSION(init)
