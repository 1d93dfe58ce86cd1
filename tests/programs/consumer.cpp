// SPDX-License-Identifier: MIT
/*
 * consumer.cpp - what tests/e2e/consumer_cxx.py checks of pem.hpp: prints a line for each thing
 * that holds, in TAP's words
 */
#include <pem/pem.hpp>

#include "stubs/gc.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <sched.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>

static int number;

static void holds(bool what, const char *said)
{
	std::printf("%sok %d - %s\n", what ? "" : "not ", ++number, said);
}

static void raise_events(unsigned count)
{
	for (unsigned i = 1; i <= count; i++)
		pem_notify_gc_start(i, i * 100);
}

static void test_statistics()
{
	pem::session session;
	pem::statistics stats = session.register_statistics(
		session.events({"APP::GC::Start"}), pem::context::this_process(), "heapBytes");

	stats.enable();
	raise_events(4);
	stats.disable();
	raise_events(4);
	const pem_statistic &one = stats.read()[0];
	holds(one.count == 4 && one.sum == 1000 && one.min == 100 && one.max == 400,
	      "statistics hold count, sum, least and most");
	stats.reset();
	holds(stats.read()[0].count == 0, "a reset statistic is empty");
}

/* The options, predicates of a part of a set, and costs. */
static void test_as_in_c()
{
	pem::session_options options;

	options.sample_hz = 50;
	options.sample_stacks = PEM_STACKS_FRAMES;
	options.by_process = options.progress = true;
	options.drain_threads = 2;
	pem::session session(options);
	pem::event_set set = session.events({"APP::GC::Start", "APP::GC::End"})
				     .where_of("Start", "heapBytes > 200");
	std::size_t start = set[0].name == std::string("APP::GC::Start") ? 0 : 1;
	holds(set.predicate(start) == "heapBytes > 200" && set.predicate(1 - start).empty(),
	      "a predicate of a part of a set");
	bool costs_time = false;
	for (const pem_event_cost &cost : session.costs())
		costs_time |= cost.kind == std::string("user-log") && cost.ns_each > 0;
	holds(costs_time, "an event's cost");
	pem_counted_as counted = {};
	holds(!session.counted_as(set[0], counted) &&
		      session.counter_turns(set) == std::vector<std::uint32_t>(2),
	      "an event of a program takes no counter");
	holds(!pem::runtime_dir().empty() && pem::clock_hz() > 0, "the library's folder and clock");
}

/* A process that raises no application events. */
static void test_silent()
{
	pem::session session;
	char name[] = "sleep", seconds[] = "100", *argv[] = {name, seconds, nullptr},
	     *none = nullptr;
	std::string why = "?";
	pid_t child;

	holds(posix_spawnp(&child, name, nullptr, nullptr, argv, &none) == 0 &&
		      session.attach(pem::context().process(std::uint32_t(child)), &why) == 0,
	      "none is found");
	holds(why.find("raises no application events") != why.npos, "why there are none is told");
	kill(child, SIGKILL);
	waitpid(child, nullptr, 0);
	session.attach(pem::context::this_process(), &why);
	holds(why.empty(), "of a process that has them nothing is told");
}

/* On any CPU: on the first and, if there is another, on the last. */
static void test_nowhere_in_particular()
{
	pem::session session;
	pem::statistics stats =
		session.register_statistics(session.events({"APP::GC::Start"}), {}, nullptr);
	cpu_set_t allowed, one;
	unsigned first = CPU_SETSIZE, last = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed)) {
			first = cpu < first ? cpu : first;
			last = cpu;
		}
	stats.enable();
	session.attach(pem::context::this_process());
	for (unsigned cpu : {first, last}) {
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		raise_events(4);
	}
	sched_setaffinity(0, sizeof(allowed), &allowed);
	holds(stats.read()[0].count == 8, "{} is a context without bounds");
}

static void test_wide()
{
	pem::session session;
	pem::statistics stats = session.register_statistics(
		session.events({"APP::GC::Start"}), pem::context::this_process(), "heapBytes");
	std::uint64_t parts = 0;
	pem_top room[8];

	stats.keep(PEM_STATISTIC_VARIANCE | PEM_STATISTIC_HISTOGRAM | PEM_STATISTIC_TOP);
	stats.enable();
	raise_events(4);
	raise_events(1);
	stats.each(0, [&](const pem_statistic &part, const pem_statistic_owner &owner) {
		parts += part.count * (owner.tid == static_cast<std::uint32_t>(gettid()));
	});
	holds(parts == 5, "statistics are parted by thread");
	/* 100 to 400, and 100 again: mean 220 */
	holds(stats.read()[0].variance > 13599 && stats.read()[0].variance < 13601,
	      "a variance is kept");
	holds(stats.histogram().bucket[7] == 2 && stats.histogram().bucket[9] == 2,
	      "a histogram is kept");
	pem::span<pem_top> top = stats.top(0, {room, 8});
	holds(top.size() == 4 && top[0].value == 100 && top[0].count == 2,
	      "frequent values are kept");
}

/* Sessions live as long as the last of their handles. */
static void test_order()
{
	pem::statistics stats;
	pem::callback callback;
	unsigned called = 0;
	{
		pem::session session;
		pem::event_set set = session.events({"APP::GC::Start"});

		stats = session.register_statistics(set, pem::context::this_process());
		callback = session.register_callback(set, pem::context::this_process(),
						     [&](pem::record) { called++; });
	}
	stats.enable();
	callback.enable();
	raise_events(3);
	holds(stats.read()[0].count == 3 && called == 3,
	      "handles outlive the object of their session");
	stats = {};
	callback = {};
	raise_events(1);
	holds(called == 3, "a destroyed callback is not called");
}

static void test_callback()
{
	pem::session session;
	pem::event_set set = session.events({"APP::GC::Start", "APP::GC::End"});
	const unsigned heap = pem::field(set[0], "heapBytes");
	std::unordered_map<std::string, double> sums;
	/* Neither copyable nor small: callables are moved in and live where they are. */
	auto owned = std::make_unique<unsigned>(0);
	unsigned &calls = *owned;
	pem::callback first = session.register_callback(
		set, pem::context::this_thread(), [&, o = std::move(owned)](pem::record r) {
			++*o;
			sums[std::string(r.name())] += r.get<double>(heap);
			sums["by name"] += static_cast<double>(r.get<std::uint64_t>("heapBytes"));
		});
	pem::callback moved = std::move(first);

	moved.enable();
	raise_events(2);
	pem_notify_gc_end(1, 7, 0);
	holds(calls == 3 && sums["APP::GC::Start"] == 300 && sums["APP::GC::End"] == 7 &&
		      sums["by name"] == 307,
	      "a callback of any callable gets records and their fields");
	moved.disable();
	raise_events(2);
	holds(calls == 3, "a disabled callback is not called");
}

static void test_async()
{
	std::uint64_t sum = 0, last = 0, backwards = 0;
	pem::session session;
	pem::callback callback = session.register_async_callback(
		session.events({"APP::GC::Start"}), pem::context::this_process(),
		[&](pem::record record) { /* one thread of the session's calls it */
					  sum += record.get<std::uint64_t>("heapBytes");
					  backwards += record.clock() < last;
					  last = record.clock();
		},
		2000);

	callback.enable();
	raise_events(100);
	for (int i = 0; i < 2000 && callback.counts().called < 100; i++)
		usleep(10000);
	callback.disable();
	holds(callback.counts().called == 100 && callback.counts().lost == 0,
	      "an asynchronous callback counts its events");
	callback = {}; /* after this nobody else writes sum */
	holds(sum == 100 * 101 / 2 * 100 && backwards == 0, "and gets them in order");
}

static void test_errors()
{
	pem::session session;
	int code = 0;
	std::string said;

	try {
		session.events({"APP::GC::Strat"});
	} catch (const pem::error &error) {
		code = error.code();
		said = error.what();
	}
	holds(code == ENOENT && said.find("Strat") != std::string::npos,
	      "an error carries the library's sentence and errno");
	code = 0;
	try {
		pem::event_set set = session.events({"APP::GC::Start"});

		pem::field(set[0], "heapByte");
	} catch (const pem::error &error) {
		code = error.code();
	}
	holds(code == ENOENT, "a field that is not there is an error");
}

/* Calls that return errno alone in C throw a sentence with the next step. */
template <typename F> static bool says(F &&call, int code, const char *words)
{
	try {
		call();
	} catch (const pem::error &error) {
		return error.code() == code &&
		       std::string(error.what()).find(words) != std::string::npos;
	}
	return false;
}

static void test_sentences(const char *directory)
{
	pem::session session;
	pem::event_set set = session.events({"APP::GC::Start"});
	pem::statistics counts = session.register_statistics(set),
			sizes = session.register_statistics(set, {}, "heapBytes");
	pem::log log = session.register_log(set, (std::string(directory) + ".none").c_str());

	log.finish();
	holds(says([&] { session.set_budget(7); }, EINVAL, "a share of the programs' CPU time") &&
		      says([&] { session.set_page_sampling(3, 3); }, EINVAL, "1000 us or more") &&
		      says([&] { counts.keep(PEM_STATISTIC_TOP); }, EINVAL, "name an attribute") &&
		      says([&] { sizes.histogram(); }, ENODATA, "call keep() before enable()") &&
		      says([&] { sizes.histogram(9); }, EINVAL, "no event of this number") &&
		      says([&] { log.enable(); }, EINVAL, "the log is finished"),
	      "calls that return errno alone in C throw a sentence");
}

static void test_sources()
{
	pem::session session;
	std::vector<pem_source_state> sources = session.sources();
	pem::event_set pages = session.events({"OS::Pages::Pass"});
	std::string why;
	int code = 0;

	holds(sources.size() > 2 && std::string(sources[1].name) == "module",
	      "the module is the first of the kernel's sources");
	holds(session.source_of(session.events({"APP::GC::Start"})[0]) == "stub" &&
		      session.source_of(pages[0], &why).empty() != why.empty(),
	      "an event has a source, or a sentence why not");
	try {
		session.add_probes("no such pattern");
	} catch (const pem::error &error) {
		code = error.code();
	}
	holds(code == EINVAL, "what is no place of a probe is refused");
	session.set_counters("ContextSwitches,MinorFaults");
	try {
		code = 0;
		session.set_page_sampling(1000, 5000);
	} catch (const pem::error &error) {
		code = error.code();
	}
	holds(code == EINVAL, "regions of memory that are no power of two are refused");
}

static void test_trace(const char *directory)
{
	std::uint64_t count = 0, sum = 0;
	{
		pem::session session;
		pem::log log = session.register_log(session.events({"APP::GC::Start"}), directory,
						    pem::context::this_process());

		log.enable();
		raise_events(10);
		log.finish();
	}
	pem::trace trace(directory);

	for (int pass = 0; pass < 2; pass++)
		for (pem::record record : trace) {
			count++;
			sum += record.get<std::uint64_t>("heapBytes");
		}
	holds(count == 20 && sum == 11000, "a trace is read by a for loop, and again");
	holds(trace.info().complete == 1, "a finished log is a complete trace");
}

static void test_recorder(const std::string &folder)
{
	pem::session_options options;
	std::atomic<bool> over(false);
	std::uint64_t count = 0, mine = 0;

	options.overwrite = true;
	pem::session session(options);
	pem::log log =
		session.register_log(session.events({"APP::GC::Start"}),
				     (folder + "-flight").c_str(), pem::context::this_process());

	log.enable();
	raise_events(7);
	std::thread polling([&] {
		while (!over)
			session.poll(10);
	});
	for (const pem_recorder &one : pem::recorders())
		if (one.pid == static_cast<std::uint32_t>(getpid())) {
			mine += one.is_running && one.trace == folder + "-flight";
			pem::snapshot(one, (folder + "-now").c_str(), "a test");
		}
	over = true;
	polling.join();
	holds(mine == 1, "a flight recorder is found");
	pem::trace trace((folder + "-now").c_str());

	for (pem::record record : trace)
		count += record.get<std::uint64_t>("heapBytes") > 0;
	holds(count == 7 && std::string(trace.info().snapshot) == "a test",
	      "a recorder writes a snapshot when asked to");
}

static int code_of_poll(pem::session &session)
{
	try {
		session.poll(1000);
	} catch (const pem::error &error) {
		return error.code();
	}
	return 0;
}

static void test_poll()
{
	pem::session session, failed;
	int code = 0;

	try {
		failed.run({"pem-no-such-command"});
	} catch (const pem::error &error) {
		code = error.code();
	}
	holds(code == ENOENT && code_of_poll(failed) == ECHILD && failed.elapsed_ns() == 0,
	      "a command that could not be started is not waited for");
	session.interrupt();
	holds(code_of_poll(session) == EINTR, "an interrupted poll differs from time that is up");
}

int main(int argc, char **argv)
{
	test_poll();
	test_as_in_c();
	test_statistics();
	test_nowhere_in_particular();
	test_silent();
	test_wide();
	test_order();
	test_callback();
	test_async();
	test_errors();
	test_sources();
	if (argc > 1) {
		test_sentences(argv[1]);
		test_trace(argv[1]);
		test_recorder(argv[1]);
	}
	std::printf("1..%d\n", number);
	return 0;
}
