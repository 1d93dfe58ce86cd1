// SPDX-License-Identifier: MIT
// stub_cxx.cpp - C++'s loops of stub.c
#include "bench_stubs/bench.hpp"

#include <cstdint>

extern "C" void bench_log_cxx(std::uint64_t n)
{
	for (std::uint64_t i = 0; i < n; i++)
		pem::notify_bench_log(i, ~i);
}

extern "C" void bench_off_cxx(std::uint64_t n)
{
	for (std::uint64_t i = 0; i < n; i++)
		pem::notify_bench_disabled(i, ~i);
}
