// SPDX-License-Identifier: MIT
/*
 * polyglot.cpp - raises every type of field N times; the same in each language, see tests/e2e/polyglot.py
 */
#include "programs/polyglot.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr auto L = pem::polyglot::Language::cxx;

void numbers(std::uint32_t i)
{
	const auto s = static_cast<std::int32_t>(i);
	const std::int64_t big = std::int64_t{s} * 1000000007;

	pem::notify_polyglot_numbers(L, static_cast<std::int8_t>(-(s % 100)), static_cast<std::uint8_t>(i % 256),
				     static_cast<std::int16_t>(-(s % 30000)), static_cast<std::uint16_t>(i % 65536),
				     -(s % 1000000) * 2, i * 3, -big, static_cast<std::uint64_t>(big),
				     static_cast<float>(i) / 4, i / 8.0, 0x1000 + std::uint64_t{i} * 16,
				     static_cast<pem::polyglot::Access>(i % 8));
}

void texts(std::uint32_t i)
{
	std::vector<std::int32_t> samples;

	for (std::uint32_t k = 0; k < i % 9; k++)
		samples.push_back(static_cast<std::int32_t>(k * i) - 4);
	pem::notify_polyglot_texts(L, "näme-" + std::to_string(i), samples, "t" + std::to_string(i % 10));
}

void shapes(std::uint32_t i)
{
	const auto weight = static_cast<std::uint16_t>(i % 1000);
	const std::array<std::uint16_t, 3> weights = {weight, static_cast<std::uint16_t>(weight + 1),
						      static_cast<std::uint16_t>(weight + 2)};

	pem::notify_polyglot_shapes(L, static_cast<std::uint8_t>(i % 256), i * 0.5, i * 0.25, i * 1.5, i * 1.25,
				    weights, i);
}

} // namespace

int main(int argc, char **argv)
{
	const auto n = argc > 1 ? static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 0;

	for (std::uint32_t i = 0; i < n; i++) {
		const pem::polyglot_work_scope work(L, i);

		numbers(i);
		texts(i);
		shapes(i);
	}
}
