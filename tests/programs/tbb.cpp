/* SPDX-License-Identifier: MIT */
/*
 * tbb.cpp - stages in threads that know their own service, with queues of oneTBB between
 *
 * Use: tbb COUNT COPIES MICROSECONDS MICROSECONDS...: COUNT items pass a stage for each number,
 * which works so long for an item, by its CPU time; or sleeps: s300. The last stage has COPIES
 * threads.
 *
 * At its end it prints to standard error, for each stage: NAME PID TID ITEMS CPU_NS, the time of
 * its work alone. Two more queues are used by several threads, and by one that is aborted.
 */
#include <pem/stream_tbb.hpp>

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

/* Push once here, and once in another thread. */
static void lend(pem::bounded_queue<int> &lent)
{
	std::atomic<bool> is_lent{false};
	std::thread lender([&] {
		while (!is_lent)
			std::this_thread::yield();
		lent.push(2);
	});

	lent.push(1);
	is_lent = true;
	lender.join();
}

/* Does a wait end when the queue is aborted, and the queue work afterwards? */
static bool ends_by_abort()
{
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
	return last.try_push(1) && !last.try_push(2) && last.queue().capacity() == 1;
}

int main(int argc, char **argv)
{
	long count = atol(argv[1]), copies = atol(argv[2]), stages = argc - 3;
	std::vector<std::unique_ptr<pem::bounded_queue<std::vector<long>>>> queues;
	std::vector<std::thread> threads;
	pem::bounded_queue<int> lent("lent", 2);

	lend(lent);
	for (long i = 1; i < stages; i++)
		queues.push_back(std::make_unique<pem::bounded_queue<std::vector<long>>>(
			("q" + std::to_string(i)).c_str(), 30));
	auto stage = [&](long i, long copy) {
		bool sleeps = argv[i + 3][0] == 's';
		std::uint64_t us = std::strtoull(argv[i + 3] + sleeps, nullptr, 10);
		long items = 0;
		std::uint64_t all_ns = 0;
		pthread_setname_np(pthread_self(), ("s" + std::to_string(i + 1)).c_str());
		for (long item = 0; i || item < count; item++) {
			std::vector<long> value{item};
			if (i && !(item % 8 ? (queues[i - 1]->pop(value), true)
					    : queues[i - 1]->try_pop(value)))
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
			fprintf(stderr, "s%ld %d %d %ld %llu\n", i + 1, (int)getpid(),
				(int)pem_stream_tid(), items, (unsigned long long)all_ns);
	};
	for (long i = 0; i < stages; i++)
		for (long c = 0; c < (i + 1 == stages ? copies : 1); c++)
			threads.emplace_back(stage, i, c);
	for (auto &thread : threads)
		thread.join();
	/* Observers see the last numbers of queues that are not destroyed. */
	_exit(ends_by_abort() ? 0 : 1);
}
