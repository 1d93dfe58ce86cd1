// SPDX-License-Identifier: MIT
/* lttng_peer.c - loads the loops of LTTng-UST while a session daemon waits for them */
#include "bench/lttng_peer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TRIES 300
#define TRY_US 100000

static void *load_beside(void)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 32);
	char *slash;

	if (length < 0)
		return NULL;
	path[length] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "peer-lttng.so");
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

int lttng_peer__load(struct lttng_peer *peer, unsigned events, char *reason, size_t size)
{
	struct lttng_peer loops;
	unsigned (*enabled)(void);
	void *library = load_beside();
	int i;

	*(void **)&enabled = library ? dlsym(library, "peer_lttng_enabled") : NULL;
	*(void **)&loops.run_disabled = library ? dlsym(library, "peer_lttng_disabled") : NULL;
	*(void **)&loops.run_log = library ? dlsym(library, "peer_lttng_log") : NULL;
	*(void **)&loops.run_log_ids = library ? dlsym(library, "peer_lttng_log_ids") : NULL;
	*(void **)&loops.run_filtered = library ? dlsym(library, "peer_lttng_filtered") : NULL;
	if (!enabled || !loops.run_disabled || !loops.run_log || !loops.run_log_ids ||
	    !loops.run_filtered) {
		snprintf(reason, size, "%.200s", dlerror());
		return -1;
	}
	for (i = 0; i < TRIES; i++) {
		if (enabled() == events) {
			*peer = loops;
			return 0;
		}
		usleep(TRY_US);
	}
	snprintf(reason, size,
		 "its session daemon enabled events %u and not %u within %d s: see lttng_peer.h",
		 enabled(), events, TRIES * TRY_US / 1000000);
	return -1;
}
