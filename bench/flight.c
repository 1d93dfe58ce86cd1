// SPDX-License-Identifier: MIT
/* flight.c - a session of this process alone, with its log in memory */
#include "bench/flight.h"

#include <pem/trace.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void tell(enum pem_log_level level, const char *text, void *arg)
{
	(void)level, (void)arg;
	fprintf(stderr, "bench: pem: %s\n", text);
}

int flight__start(struct flight *flight, const char *event, uint32_t coarse_clock,
		  struct pem_error *error)
{
	struct pem_session_options options = {.size = sizeof(options),
					      .chunk_bytes = FLIGHT_CHUNK_BYTES,
					      .chunk_count = FLIGHT_CHUNK_COUNT,
					      .overwrite = 1,
					      .log = tell,
					      .coarse_clock = coarse_clock};
	const struct pem_context here = {.pid = (uint32_t)getpid()};

	memset(flight, 0, sizeof(*flight));
	flight->session = pem_session__open(&options, error);
	if (!flight->session)
		return -1;
	flight->events = pem_event_set__new(flight->session, &event, 1, error);
	if (!flight->events)
		return -1;
	strcpy(flight->directory, "/dev/shm/pem-bench-XXXXXX");
	if (!mkdtemp(flight->directory)) {
		snprintf(error->text, sizeof(error->text),
			 "cannot make a directory in /dev/shm: %s", strerror(errno));
		flight->directory[0] = '\0';
		return -1;
	}
	flight->log = pem_session__register_log(flight->session, flight->events, &here,
						flight->directory, error);
	if (!flight->log)
		return -1;
	snprintf(error->text, sizeof(error->text), "the log could not be enabled");
	return pem_log__enable(flight->log) ? -1 : 0;
}

int flight__check(struct flight *flight, uint64_t raised, struct pem_error *error)
{
	struct pem_balance balance = {0};
	struct pem_trace *trace;

	if (pem_log__finish(flight->log, error) < 0)
		return -1;
	trace = pem_trace__open(flight->directory, error);
	if (!trace)
		return -1;
	balance = pem_trace__total_balance(trace);
	pem_trace__close(trace);
	if (balance.produced == raised && balance.discarded == 0 && balance.delivered > 0 &&
	    balance.delivered + balance.overwritten == balance.produced)
		return 0;
	snprintf(error->text, sizeof(error->text),
		 "of %llu events raised the log says %llu produced, %llu delivered, %llu "
		 "discarded, %llu overwritten",
		 (unsigned long long)raised, (unsigned long long)balance.produced,
		 (unsigned long long)balance.delivered, (unsigned long long)balance.discarded,
		 (unsigned long long)balance.overwritten);
	return -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	remove(path);
	return 0;
}

void flight__stop(struct flight *flight)
{
	pem_log__unregister(flight->log);
	pem_event_set__free(flight->events);
	pem_session__close(flight->session);
	if (flight->directory[0])
		nftw(flight->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int floor_ring__make(struct floor_ring *ring)
{
	int fd = memfd_create("pem-bench-floor", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)FLIGHT_BYTES) < 0)
		return -1;
	ring->start =
		mmap(NULL, FLIGHT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	close(fd);
	if (ring->start == MAP_FAILED)
		return -1;
	ring->next = ring->start;
	ring->end = ring->start + FLIGHT_BYTES / sizeof(*ring->start);
	return 0;
}
