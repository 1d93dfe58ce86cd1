// SPDX-License-Identifier: MIT
/*
 * between_collections.cpp - between_collections.c in C++: page faults of a Java program between and during its garbage
 * collections
 *
 * Figure 4 of the paper on Performance and Environment Monitoring (Cascaval, Duesterwald, Sweeney, Wisniewski, IBM
 * J. R&D 50(2/3), 2006). The C program says what is printed and what privilege it takes; this one prints the same.
 */
#include <pem/pem.hpp>

#include <cstdio>
#include <iostream>
#include <string>
#include <sys/wait.h>
#include <vector>

static const char *const fault = "OS::Mem::PageFault";
static const char *const begin = "APP::Collector::PauseBegin";
static const char *const in_between =
	"from APP::Collector::PauseEnd to APP::Collector::PauseBegin";
static const char *const in_pause = "inside APP::Collector::PauseBegin";

static int observe(const std::vector<std::string> &command)
{
	pem::session session;
	pem::event_set faults = session.events({fault});
	std::string why;
	int status = 0;

	if (!session.can_deliver(faults[0], &why)) {
		std::cerr << "no " << fault << ": " << why << '\n';
		return 2;
	}
	pem::statistics between = session.register_statistics(faults.where(in_between));
	pem::statistics during = session.register_statistics(faults.where(in_pause));
	pem::statistics collections = session.register_statistics(session.events({begin}));

	for (pem::statistics *statistics : {&between, &during, &collections})
		statistics->enable();
	session.run(command);
	while (!session.poll(100, &status))
		;
	std::cout << collections.read()[0].count << " collections, " << between.read()[0].count
		  << " page faults between them, " << during.read()[0].count << " during them, "
		  << during.read()[0].undecided << " unknown\n";
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		std::cerr << "usage: between_collections COMMAND [ARGUMENT...]\n";
		return 1;
	}
	try {
		return observe({argv + 1, argv + argc});
	} catch (const pem::error &error) {
		std::cerr << error.what() << '\n';
		return 3;
	}
}
