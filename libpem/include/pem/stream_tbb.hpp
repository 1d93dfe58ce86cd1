/* SPDX-License-Identifier: MIT */
/*
 * stream_tbb.hpp - a concurrent_bounded_queue of oneTBB that can be observed while it works
 *
 *	pem::bounded_queue<job> jobs("jobs", 100);
 *
 *	jobs.push(j);			jobs.pop(j);
 *
 * The functions are those of tbb::concurrent_bounded_queue (C++17, -ltbb -ldl -lpthread), and any
 * thread may call them. Observers see its items, its capacity, and the thread at each end with its
 * waits. An end that two threads have used shows its items and no thread, since it is unknown which
 * of them waited, or worked on which items.
 *
 * Not here: flow graphs and parallel_pipeline. Their threads take any work that is ready, and wait
 * at no queue.
 */
#ifndef PEM_STREAM_TBB_HPP
#define PEM_STREAM_TBB_HPP

#include <pem/stream_shim.h>

#include <atomic>
#include <cstddef>
#include <oneapi/tbb/concurrent_queue.h>
#include <utility>

namespace pem
{

template <typename T> class bounded_queue
{
      public:
	/* name: of at most 31 bytes. capacity: items that fit, from 1 on. */
	bounded_queue(const char *name, std::ptrdiff_t capacity)
	    : stream_(pem_stream_adopt(name, static_cast<std::uint64_t>(capacity)))
	{
		queue_.set_capacity(capacity);
	}
	~bounded_queue()
	{
		pem_stream_release(stream_);
	}
	bounded_queue(const bounded_queue &) = delete;
	bounded_queue &operator=(const bounded_queue &) = delete;

	template <typename U = T> void push(U &&item)
	{
		pass(
			PEM_STREAM_PUSHES, [&] { return queue_.try_push(std::forward<U>(item)); },
			[&] { queue_.push(std::forward<U>(item)); });
	}
	void pop(T &item)
	{
		pass(
			PEM_STREAM_POPS, [&] { return queue_.try_pop(item); },
			[&] { queue_.pop(item); });
	}
	bool try_push(const T &item)
	{
		return try_pass(PEM_STREAM_PUSHES, [&] { return queue_.try_push(item); });
	}
	bool try_pop(T &item)
	{
		return try_pass(PEM_STREAM_POPS, [&] { return queue_.try_pop(item); });
	}
	/* The queue, for its size, its capacity and abort. */
	tbb::concurrent_bounded_queue<T> &queue()
	{
		return queue_;
	}

      private:
	/* A wait of an end's only thread, which an exception may end. */
	struct wait {
		wait(pem_stream *stream, int which) : stream_(stream), which_(which)
		{
			if (stream_)
				pem_stream_wait(stream_, which_);
		}
		~wait()
		{
			if (stream_)
				pem_stream_go_on(stream_, which_, 1);
		}
		pem_stream *stream_;
		int which_;
	};
	struct end {
		std::atomic<std::uint32_t> first{0}; /* the thread that used it first */
		std::atomic<bool> is_shared{false};
	};

	/* Is the calling thread the only one that has used an end? */
	bool is_only(int which)
	{
		end &e = ends_[which];
		std::uint32_t tid = pem_stream_tid(), first = 0;

		/* none: it orders nothing */
		if (!e.first.compare_exchange_strong(first, tid) && first != tid) {
			if (!e.is_shared.exchange(true, std::memory_order_relaxed))
				pem_stream_share(stream_, which);
			return false;
		}
		return !e.is_shared.load(std::memory_order_relaxed);
	}
	void count(int which, bool is_own)
	{
		if (!is_own) {
			if (stream_)
				pem_stream_count(stream_, which, 1);
			return;
		}
		pem_stream_pass(stream_, which, 1);
	}
	template <typename Try, typename Wait> void pass(int which, Try attempt, Wait blocks)
	{
		bool is_own = stream_ && is_only(which);

		if (stream_)
			pem_stream_wake(stream_, which);
		if (!attempt()) {
			wait waits(is_own ? stream_ : nullptr, which);

			blocks();
		}
		count(which, is_own);
	}
	template <typename Try> bool try_pass(int which, Try attempt)
	{
		bool is_own = stream_ && is_only(which), has_passed;

		if (stream_)
			pem_stream_wake(stream_, which);
		has_passed = attempt();
		if (has_passed)
			count(which, is_own);
		return has_passed;
	}

	tbb::concurrent_bounded_queue<T> queue_;
	pem_stream *stream_;
	end ends_[2];
};

} // namespace pem

#endif
