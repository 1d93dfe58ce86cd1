/* SPDX-License-Identifier: MIT */
/*
 * stream.hpp - the queue of pem/stream.h in C++17, for items of one type
 *
 *	pem::stream<word> words("words", 1024);
 *
 *	words.push(w);			while (words.pop(w))
 *	words.close();				count(w);
 *
 * pem/stream.h is the contract. Header-only, over its functions and nothing else. Items are copied
 * as bytes, so their type has to be trivially copyable.
 */
#ifndef PEM_STREAM_HPP
#define PEM_STREAM_HPP

#include <pem/stream.h>

#include <cstddef>
#include <new>
#include <type_traits>

namespace pem
{

template <typename T> class stream
{
	static_assert(std::is_trivially_copyable_v<T>, "items are copied as bytes");

      public:
	/* Without exceptions, ask is_made(). */
	stream(const char *name, std::size_t capacity)
	    : stream_(pem_stream__make(name, capacity, sizeof(T)))
	{
#if defined(__cpp_exceptions)
		if (!stream_)
			throw std::bad_alloc();
#endif
	}
	~stream()
	{
		pem_stream__free(stream_);
	}
	stream(const stream &) = delete;
	stream &operator=(const stream &) = delete;

	bool is_made() const noexcept
	{
		return stream_ != nullptr;
	}
	/* false: the queue was closed. */
	bool push(const T &item) noexcept
	{
		return pem_stream_push(stream_, &item, sizeof(T), 1) == 0;
	}
	/* false: the queue was closed and is empty. */
	bool pop(T &item) noexcept
	{
		return pem_stream_pop(stream_, &item, sizeof(T), 1) == 0;
	}
	/* 0, or -EAGAIN or -EPIPE. */
	int try_push(const T &item) noexcept
	{
		return pem_stream_push(stream_, &item, sizeof(T), 0);
	}
	int try_pop(T &item) noexcept
	{
		return pem_stream_pop(stream_, &item, sizeof(T), 0);
	}
	/* The number of items, or -EPIPE. */
	std::ptrdiff_t push_many(const T *items, std::size_t count) noexcept
	{
		return pem_stream_push_many(stream_, items, count, sizeof(T), 1);
	}
	std::ptrdiff_t try_push_many(const T *items, std::size_t count) noexcept
	{
		return pem_stream_push_many(stream_, items, count, sizeof(T), 0);
	}
	std::ptrdiff_t pop_many(T *items, std::size_t count) noexcept
	{
		return pem_stream_pop_many(stream_, items, count, sizeof(T), 1);
	}
	std::ptrdiff_t try_pop_many(T *items, std::size_t count) noexcept
	{
		return pem_stream_pop_many(stream_, items, count, sizeof(T), 0);
	}
	void close() noexcept
	{
		pem_stream__close(stream_);
	}

      private:
	struct pem_stream *stream_;
};

} // namespace pem

#endif
