// SPDX-License-Identifier: MIT
/*
 * between_collections.cpp - between_collections.c in C++: page faults and cache misses between garbage collections
 *
 * Figure 4 of the paper on Performance and Environment Monitoring (Cascaval, Duesterwald, Sweeney, Wisniewski, IBM
 * J. R&D 50(2/3), 2006): a callback on an event of the application reads statistics of the operating system and of
 * the hardware. The C program says what is printed and what privilege it takes; this one prints the same.
 */
extern "C" {
#include "collector.h"
}

#include <pem/pem.hpp>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

static const char *const kernel_faults = "OS::Mem::PageFault";
static const char *const counted_faults = "HW::Software::PageFaults";
static const char *const misses = "HW::HWPerf::CacheMisses";

/* Page faults first: the kernel's if this user may have them, else the counter's. What can't be had is said. */
static std::optional<pem::event_set> choose_events(pem::session &session)
{
	for (const char *faults : {kernel_faults, counted_faults}) {
		pem::event_set set = session.events({faults, misses});
		std::string why;

		if (!session.can_deliver(set[0], &why)) {
			std::fprintf(stderr, "no %s: %s\n", faults, why.c_str());
			continue;
		}
		if (!session.can_deliver(set[1], &why))
			std::fprintf(stderr, "no %s: %s\n", misses, why.c_str());
		return set;
	}
	return {};
}

static void print_count(const pem_statistic &value, const char *what)
{
	if (value.unavailable)
		std::printf("n/a %s", what);
	else
		std::printf("%" PRIu64 " %s", value.count, what);
}

/* The program that is watched: allocate, collect, allocate, collect. */
static bool run_program(std::size_t collections, std::size_t pages)
{
	heap *h = heap_new((collections + 2) * pages + 1);
	bool good = h != nullptr;

	for (std::size_t i = 0; good && i < collections; i++)
		good = !heap_allocate(h, pages) && !heap_collect(h);
	heap_free(h);
	return good;
}

static int watch(std::size_t collections, std::size_t pages)
{
	/* Figure 4's context: any processor, this process, this thread. */
	const pem::context here = pem::context::this_thread();
	pem::session session;
	std::optional<pem::event_set> events = choose_events(session);

	if (!events)
		return 2;
	pem::statistics stats = session.register_statistics(*events, here);
	/* Enabling opens the sources, once: now, and not in the middle of the first interval. */
	stats.enable();
	stats.disable();

	std::uint64_t end_of_last =
		0; /* clock at the last collection's end; 0: there was none yet */

	/* Figure 4's gcStart: stop counting first, so that neither the collector nor the printing counts. */
	pem::callback start = session.register_callback(
		session.events({"APP::GC::Start"}), here, [&](pem::record record) {
			stats.disable();
			if (!end_of_last)
				return;
			pem::span<const pem_statistic> values = stats.read();

			std::printf("from %" PRIu64 " to %" PRIu64 ": ", end_of_last,
				    record.clock());
			print_count(values[0], "page faults, ");
			print_count(values[1], "cache misses\n");
		});
	/* Figure 4's gcEnd: from here to the next collection, count. */
	pem::callback end = session.register_callback(session.events({"APP::GC::End"}), here,
						      [&](pem::record record) {
							      end_of_last = record.clock();
							      stats.reset();
							      stats.enable();
						      });

	start.enable();
	end.enable();
	return run_program(collections, pages) ? 0 : 3;
}

int main(int argc, char **argv)
{
	try {
		return watch(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 5,
			     argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1000);
	} catch (const pem::error &error) {
		std::fprintf(stderr, "%s\n", error.what());
		return 3;
	}
}
