# SPDX-License-Identifier: MIT
"""rates_tbb: pem rates sees the threads at the ends of queues of oneTBB, by pem/stream_tbb.hpp"""
import json
import os
import re
import sys

from tap import BUILD, OTHER_USER, PEM, ROOT, equal, need, need_reach, run, run_all, skip, test, tmp

USER = [*OTHER_USER] if os.geteuid() == 0 else []
if not os.path.exists(BUILD + "/bin/pem-rates"):
    print("1..0 # SKIP pem rates was not built: json-c is missing")
    sys.exit(77)

PROGRAM = r"""#include <pem/stream_tbb.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <thread>
#include <vector>
static std::uint64_t cpu_ns()
{
	timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (std::uint64_t)now.tv_sec * 1000000000u + (std::uint64_t)now.tv_nsec;
}
/* COUNT ends COPIES WORK...: as many items pass a stage for each WORK: 300 us, or s300: asleep. The last stage has COPIES threads. */
int main(int argc, char **argv)
{
	long count = atol(argv[1]), copies = atol(argv[2]), stages = argc - 3;
	std::vector<std::unique_ptr<pem::bounded_queue<std::vector<long>>>> queues;
	std::vector<std::thread> threads;
	pem::bounded_queue<int> lent("lent", 2);
	std::atomic<bool> is_lent{false};
	std::thread lender([&] {
		while (!is_lent)
			std::this_thread::yield();
		lent.push(2);
	});
	lent.push(1); /* for the only time */
	is_lent = true;
	lender.join();
	for (long i = 1; i < stages; i++)
		queues.push_back(std::make_unique<pem::bounded_queue<std::vector<long>>>(("q" + std::to_string(i)).c_str(), 30));
	auto stage = [&](long i, long copy) {
		bool sleeps = argv[i + 3][0] == 's';
		std::uint64_t us = std::strtoull(argv[i + 3] + sleeps, nullptr, 10);
		long items = 0;
		std::uint64_t all_ns = 0;
		pthread_setname_np(pthread_self(), ("s" + std::to_string(i + 1)).c_str());
		for (long item = 0; i || item < count; item++) {
			std::vector<long> value{item};
			if (i && !(item % 8 ? (queues[i - 1]->pop(value), true) : queues[i - 1]->try_pop(value)))
				queues[i - 1]->pop(value);
			if (value.empty())
				break;
			std::uint64_t begin = cpu_ns();
			while (!sleeps && cpu_ns() - begin < us * 1000)
				;
			if (sleeps)
				std::this_thread::sleep_for(std::chrono::microseconds(us));
			all_ns += cpu_ns() - begin;
			items++;
			if (i + 1 < stages)
				queues[i]->push(std::move(value));
		}
		if (i + 1 < stages)
			for (long c = 0; c < (i + 2 == stages ? copies : 1); c++)
				queues[i]->push({});
		if (!copy)
			fprintf(stderr, "s%ld %d %d %ld %llu\n", i + 1, (int)getpid(), (int)pem_stream_tid(), items, (unsigned long long)all_ns);
	};
	for (long i = 0; i < stages; i++)
		for (long c = 0; c < (i + 1 == stages ? copies : 1); c++)
			threads.emplace_back(stage, i, c);
	for (auto &thread : threads)
		thread.join();
	pem::bounded_queue<int> last("last", 1);
	std::thread waits([&] {
		int item;
		try {
			last.pop(item);
		} catch (const tbb::user_abort &) {
			return;
		}
		abort();
	});
	while (last.queue().size() >= 0) /* a thread that waits counts as -1 */
		std::this_thread::yield();
	last.queue().abort();
	waits.join();
	/* Queues that are destroyed would show their numbers no more. */
	_exit(last.try_push(1) && !last.try_push(2) && last.queue().capacity() == 1 ? 0 : 1);
}
"""


def compiled(*flags):
    """The program, compiled by a user of the header; skips if the compiler or oneTBB is missing."""
    need("g++")
    folder = tmp()
    os.chmod(folder, 0o755)
    with open(folder + "/tbb.cc", "w", encoding="utf-8") as out:
        out.write(PROGRAM)
    if run(["g++", "-std=c++17", "-fsyntax-only", "-include", "oneapi/tbb/concurrent_queue.h", "-x", "c++", "/dev/null"])[0]:
        skip("oneTBB is not installed (libtbb-dev)")
    rc, _, err = run(["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", *flags, "-I" + ROOT + "/spec/abi", "-I" + ROOT + "/libpem/include",
                      "-o", folder + "/tbb", folder + "/tbb.cc", "-ltbb", "-ldl", "-lpthread"], timeout=120)
    equal(rc, 0, "compiled: " + err)
    return folder + "/tbb"


def rates(*command):
    need_reach()
    rc, out, err = run([*USER, PEM, "rates", "--json", "--", *command], timeout=300, env={"PEM_RUNTIME_DIR": None})
    equal(rc, 0, "status: " + err)
    return json.loads(out), {name: (int(tid), int(items), int(ns) / 1e9)
                             for name, tid, items, ns in re.findall(r"^(s\d) \d+ (\d+) (\d+) (\d+)$", err, re.M)}


@test
def rates_of_threads_that_work():
    "each thread's rate is its items over its own CPU time"
    found, known = rates(compiled(), "2000", "1", "300", "600", "400")
    equal({s["tid"] for s in found["stages"]}, {tid for tid, _, _ in known.values()}, "stages")
    equal(sorted((q["name"], q["capacity"], q["items"]) for q in found["queues"] if q["name"] in ("q1", "q2")),
          [("q1", 30, 2001), ("q2", 30, 2001)], "queues")
    for stage in found["stages"]:
        _, items, seconds = known[stage["name"]]
        assert abs(stage["rate_per_s"] * seconds / items - 1) <= 0.3, (stage, items / seconds)
        if stage["waiting_for_cpu"] > 0.1 * stage["lifetime"]:
            skip("this machine is too busy: %s waited for a CPU for %g s" % (stage["name"], stage["waiting_for_cpu"]))
        assert abs(stage["rate_per_s"] * seconds / items - 1) <= 0.05, (stage, items / seconds)


@test
def the_bottleneck_is_the_slowest_stage():
    "whichever stage is slow, it is the bottleneck; those before it find no space, those after it no item"
    program = compiled()
    for slow in range(3):
        found, _ = rates(program, "400", "1", *["s2000" if slow == i else "50" for i in range(3)])
        equal(found["bottleneck"], "s%d" % (slow + 1), "bottleneck")
        for i, stage in enumerate(found["stages"]):
            key = "other_waits" if i == slow else "blocked_out" if i < slow else "blocked_in"
            assert stage[key] > 0.5 * stage["lifetime"], (slow, stage)


@test
def an_end_that_threads_share():
    "an end that two threads use shows all of its items, and neither of the threads"
    found, _ = rates(compiled(), "600", "2", "50", "s1500")
    queue = [q for q in found["queues"] if q["name"] == "q1"][0]
    equal((queue["items"], queue["from"]), (602, ["s1"]), "items and producer")
    equal([q["from"] for q in found["queues"] if q["name"] == "lent"], [[]], "producer of a queue that another thread used once before")
    assert [s["rate_per_s"] for s in found["stages"] if s["name"].startswith("s2")] in ([], [None]), found["stages"]


@test
def no_race_and_no_fault():
    "the queue works under sanitizers: threads, addresses, undefined behaviour"
    for flags in (["-fsanitize=address,undefined"], ["-fsanitize=thread", "-Wno-tsan"]):
        program = compiled(*flags)
        rc, _, err = run(["setarch", "-R", program, "300", "3", "5", "5", "5"], timeout=120, env={"ASAN_OPTIONS": "detect_leaks=0"})
        equal((rc, "WARNING: ThreadSanitizer" in err), (0, False), "status and races: " + err)


run_all()
