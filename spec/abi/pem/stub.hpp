/* SPDX-License-Identifier: MIT */
/*
 * stub.hpp - what generated C++ headers (PROVIDER.hpp) take their parameters as, C++17 and later
 *
 * Not here: raising events, which is C's (stub.h). Nothing allocates or throws.
 */
#ifndef PEM_STUB_HPP
#define PEM_STUB_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>
#include <type_traits>

namespace pem {
namespace detail {

/*
 * A list parameter: elements that lie side by side, for as long as the call takes. Made from any
 * container that has data() and size() (std::vector, std::array, std::span), from an array, or from
 * {pointer, count}.
 */
template <typename T> class list {
public:
	constexpr list() noexcept = default;
	constexpr list(const T *data, ::std::size_t count) noexcept : data_(data), count_(count)
	{
	}
	template <typename Container,
		  typename Element = ::std::remove_pointer_t<
			  decltype(::std::data(::std::declval<const Container &>()))>,
		  typename = ::std::enable_if_t<
			  ::std::is_same<::std::remove_cv_t<Element>, T>::value>>
	constexpr list(const Container &from) noexcept
		: data_(::std::data(from)), count_(::std::size(from))
	{
	}
	constexpr const T *data() const noexcept
	{
		return data_;
	}
	constexpr ::std::uint32_t count() const noexcept
	{
		return count_ > UINT32_MAX ? UINT32_MAX : static_cast<::std::uint32_t>(count_);
	}

private:
	const T *data_ = nullptr;
	::std::size_t count_ = 0;
};

/*
 * A string that C may read: a copy, ended by a NUL, of as many bytes of text as a field of Max
 * bytes can tell apart. One byte more than it holds is kept: C looks at it, so as not to cut within
 * a UTF-8 character.
 */
template <::std::size_t Max> struct text {
	char bytes[Max + 1];

	explicit text(::std::string_view from) noexcept
	{
		const ::std::size_t count = from.size() < Max ? from.size() : Max;

		if (count)
			::std::memcpy(bytes, from.data(), count);
		bytes[count] = '\0';
	}
};

} // namespace detail
} // namespace pem
#endif
