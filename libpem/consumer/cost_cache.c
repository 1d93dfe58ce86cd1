/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cost_cache.c - what was measured of costs (calibrate.c), remembered in the user's cache folder until the next boot or version
 *
 * One line says what has to be the same, the next the costs: of each kind logged and counted, of a process's start, and the
 * source that the kernel's are of. What was not measured yet is 0. Who adds to it holds a lock on its folder, so that what
 * two measure at a time is kept of both.
 */
#include "consumer/costs.h"
#include "util.h"

#include <pem/pem.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define KEY_BYTES 384
/* Others hold the lock for a moment; a stopped one must not hold up a recording for more than that. */
#define LOCK_TRIES 50
#define LOCK_PAUSE_NS 1000000

static bool cache_path(char *path, size_t bytes, bool make)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool own = cache && cache[0] == '/';
	int length;

	if (!own && !(home && home[0] == '/'))
		return false;
	length = snprintf(path, bytes, "%s%s", own ? cache : home, own ? "" : "/.cache");
	if (length < 0 || (size_t)length + sizeof("/pem/costs") > bytes)
		return false;
	if (make)
		mkdir(path, 0700);
	strcpy(path + length, "/pem");
	if (make)
		mkdir(path, 0700);
	strcpy(path + length, "/pem/costs");
	return true;
}

/* The processor, as Linux names it: a virtual machine may move to another one while it runs. */
static void read_processor(char *name, size_t bytes)
{
	static const char *const keys[] = {"model name", "CPU part"};
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], *value;
	size_t i;

	*name = 0;
	while (f && !*name && fgets(line, sizeof(line), f)) {
		value = strchr(line, ':');
		for (i = 0; value && i < PEM_ARRAY_SIZE(keys); i++) {
			if (!strncmp(line, keys[i], strlen(keys[i])))
				pem_copy_text(name, bytes, value + 1);
		}
	}
	name[strcspn(name, "\n")] = 0;
	if (f)
		fclose(f);
}

/* What must be the same for costs to be the same: pem, boot, kernel, processor. */
static bool read_key(char *key, size_t bytes)
{
	char boot[64], processor[128];
	struct utsname system;
	bool known;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f)
		return false;
	known = fgets(boot, sizeof(boot), f) && !uname(&system);
	fclose(f);
	if (!known)
		return false;
	boot[strcspn(boot, "\n")] = 0;
	read_processor(processor, sizeof(processor));
	snprintf(key, bytes, "%s %s %.64s%s", pem_version(), boot, system.release, processor);
	return true;
}

static bool is_start_cost(double ns)
{
	return ns >= 0 && ns < 1e9;
}

static bool is_cost(double ns)
{
	return ns >= 0 && ns < 1e6;
}

static bool read_costs(FILE *f, struct pem_costs *costs)
{
	unsigned i;

	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (fscanf(f, "%lf %lf", &costs->each[i].log_ns, &costs->each[i].stat_ns) != 2 ||
		    !is_cost(costs->each[i].log_ns) || !is_cost(costs->each[i].stat_ns))
			return false;
	}
	return fscanf(f, "%lf %lf %15s", &costs->start_ns[0], &costs->start_ns[1],
		      costs->kernel_source) == 3 &&
	       is_start_cost(costs->start_ns[0]) && is_start_cost(costs->start_ns[1]);
}

bool pem_costs__load(struct pem_costs *costs)
{
	char path[PATH_MAX], key[KEY_BYTES], line[KEY_BYTES];
	struct pem_costs found;
	bool known = false;
	FILE *f;

	if (!read_key(key, sizeof(key)) || !cache_path(path, sizeof(path), false))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		known = !strcmp(line, key) && read_costs(f, &found);
	}
	fclose(f);
	if (known)
		*costs = found;
	return known;
}

/* What others have stored meanwhile, and these do not know. What is beyond all reason would have the whole file refused. */
static void complete(struct pem_costs *costs)
{
	struct pem_costs other;
	bool known = pem_costs__load(&other);
	unsigned i;

	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (!is_cost(costs->each[i].log_ns) || !is_cost(costs->each[i].stat_ns))
			costs->each[i] = (struct pem_cost){0, 0};
		if (!known || costs->each[i].log_ns > 0 || other.each[i].log_ns <= 0)
			continue;
		costs->each[i] = other.each[i];
		if (i == PEM_COST_KERNEL)
			pem_copy_text(costs->kernel_source, sizeof(costs->kernel_source),
				      other.kernel_source);
	}
	for (i = 0; i < PEM_ARRAY_SIZE(costs->start_ns); i++) {
		if (!is_start_cost(costs->start_ns[i]))
			costs->start_ns[i] = 0;
		if (known && costs->start_ns[i] <= 0)
			costs->start_ns[i] = other.start_ns[i];
	}
	if (!*costs->kernel_source)
		strcpy(costs->kernel_source, "-");
}

/* Lock a folder if that can be done soon: without it, what another measures meanwhile may be lost. */
static void lock_folder(int fd)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
	int tries;

	for (tries = 0; tries < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB); tries++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return;
		nanosleep(&pause, NULL);
	}
}

void pem_costs__store(const struct pem_costs *known)
{
	struct pem_costs all = *known, *costs = &all;
	char path[PATH_MAX], key[KEY_BYTES], text[KEY_BYTES + 32 * (2 * PEM_COST_KINDS + 3)];
	char *slash;
	unsigned i;
	int n, fd;

	if (!read_key(key, sizeof(key)) || !cache_path(path, sizeof(path), true))
		return;
	slash = strrchr(path, '/');
	*slash = 0;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	lock_folder(fd);
	complete(costs);
	n = snprintf(text, sizeof(text), "%s\n", key);
	for (i = 0; i < PEM_COST_KINDS; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%.3f %.3f ",
			      costs->each[i].log_ns, costs->each[i].stat_ns);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "%.3f %.3f %s\n", costs->start_ns[0],
		      costs->start_ns[1], costs->kernel_source);
	pem_replace_file(fd, slash + 1, text, (size_t)n);
	flock(fd, LOCK_UN); /* whom another thread forked meanwhile has it, too */
	close(fd);
}
