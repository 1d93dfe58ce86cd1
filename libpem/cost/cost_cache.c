/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cost_cache.c - remember measured costs (calibrate.c) in the user's cache folder, until the next
 * boot
 *
 * Each build of this library has a file of its own there, named by its build id. The first line
 * says what has to be equal for the costs to be valid. The second line has the
 * costs: of each kind logged and counted, with warm caches and with cold ones, and how long
 * programs work between such events; of a page of a pool and of a lost event; and the name of the
 * source that served the kernel's events. Each further line has what processes cost that one set of
 * events and counters observes. A cost that was not measured yet is 0. A process that adds costs
 * holds a lock on the folder, so the costs of two processes that measure at the same time are both
 * kept.
 */
#include "cost/cost.h"
#include "runtime_dir.h"
#include "util.h"

#include <pem/pem.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME "observation-costs"
#define FILE_NAME_BYTES 64
#define ID_BYTES 16 /* of a build id */
#define KEY_BYTES 384
#define TEXT_BYTES_MAX (KEY_BYTES + 32 * (6 * PEM_COST_KINDS + 3 + 4 * PEM_PROCESS_COSTS))
/*
 * A process holds the lock for a moment. A stopped process must not delay a recording for longer
 * than these tries.
 */
#define LOCK_TRIES 50
#define LOCK_PAUSE_NS 1000000

/*
 * Open a folder that belongs to this user. If root keeps the user's HOME, the folder may belong to
 * another user, who may also have put a link to a folder of root's in it. There nothing is read,
 * made or written.
 */
static int open_own(int parent, const char *path, bool make)
{
	int follow = geteuid() ? 0 : O_NOFOLLOW, fd;
	struct stat st;

	if (make)
		mkdirat(parent, path, 0700);
	fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
	if (fd < 0 || (!fstat(fd, &st) && st.st_uid == geteuid()))
		return fd;
	close(fd);
	return -1;
}

/* Open the folder 'pem' in the user's cache folder. Returns -1 where there is none. */
static int open_folder(bool make)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	bool own = cache && cache[0] == '/';
	int base, parent, fd;

	if (!own && !(home && home[0] == '/'))
		return -1;
	base = open_own(AT_FDCWD, own ? cache : home, own && make);
	parent = base < 0 || own ? base : open_own(base, ".cache", make);
	fd = parent < 0 ? -1 : open_own(parent, "pem", make);
	if (parent >= 0 && parent != base)
		close(parent);
	if (base >= 0)
		close(base);
	return fd;
}

/*
 * Read the processor's name from Linux: a virtual machine may move to another processor while it
 * runs.
 */
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

/* Make the line of what must be equal for costs to be equal: pem, boot, kernel, processor. */
static bool read_key(char *key, size_t bytes)
{
	char boot[PEM_BOOT_ID_BYTES], processor[128];
	struct utsname system;

	if (!pem_boot_id(boot) || uname(&system))
		return false;
	read_processor(processor, sizeof(processor));
	snprintf(key, bytes, "%s %s %.64s%s", pem_version(), boot, system.release, processor);
	return true;
}

/* The build id in some notes. bytes: where it ends; 0: there is none. */
static const uint8_t *find_build_id(const uint8_t *at, const uint8_t *end, size_t *bytes)
{
	const Elf64_Nhdr *note; /* the 32-bit one is the same */

	for (*bytes = 0; at + sizeof(*note) <= end;
	     at += sizeof(*note) + (note->n_namesz + 3) / 4 * 4 + (note->n_descsz + 3) / 4 * 4) {
		note = (const void *)at;
		if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != sizeof("GNU") ||
		    memcmp(note + 1, "GNU", sizeof("GNU")))
			continue;
		*bytes = note->n_descsz;
		return (const uint8_t *)(note + 1) + sizeof("GNU");
	}
	return NULL;
}

/* The beginning of what this library, or the program that it is linked into, is mapped from. */
extern const uint8_t __ehdr_start[] __attribute__((visibility("hidden")));

/* Write the name of this build's file. A build without an id shares one with others of its kind. */
static void name_file(char *name)
{
	const ElfW(Ehdr) *file = (const void *)__ehdr_start;
	const uint8_t *at = __ehdr_start, *id = NULL;
	const ElfW(Phdr) *headers = (const void *)(at + file->e_phoff);
	size_t bytes = 0, i;
	int n;

	for (i = 0; i < file->e_phnum; i++) {
		if (headers[i].p_type == PT_LOAD && !headers[i].p_offset)
			at -= headers[i].p_vaddr;
	}
	for (i = 0; !id && i < file->e_phnum; i++) {
		if (headers[i].p_type == PT_NOTE)
			id = find_build_id(at + headers[i].p_vaddr,
					   at + headers[i].p_vaddr + headers[i].p_memsz, &bytes);
	}
	n = snprintf(name, FILE_NAME_BYTES, FILE_NAME);
	for (i = 0; i < bytes && i < ID_BYTES; i++)
		n += snprintf(name + n, FILE_NAME_BYTES - (size_t)n, "%s%02x", i ? "" : "-", id[i]);
}

static bool is_start_cost(double ns)
{
	return ns >= 0 && ns < 1e9;
}

static bool is_cost(double ns)
{
	return ns >= 0 && ns < 1e6;
}

static bool is_possible(const struct pem_cost *each)
{
	return is_cost(each->log_ns) && is_cost(each->stat_ns) && is_cost(each->cold_log_ns) &&
	       is_cost(each->cold_stat_ns) && is_cost(each->warm_gap_ns) &&
	       is_cost(each->half_gap_ns);
}

static bool is_process(const struct pem_process_cost *process)
{
	return is_cost(process->switch_ns) && is_cost(process->fault_ns) &&
	       is_start_cost(process->start_ns);
}

const struct pem_process_cost *pem_costs__of_set(const struct pem_costs *costs, uint64_t set)
{
	unsigned i;

	for (i = 0; i < PEM_PROCESS_COSTS && costs->processes[i].set; i++) {
		if (costs->processes[i].set == set)
			return &costs->processes[i];
	}
	return NULL;
}

void pem_costs__add_set(struct pem_costs *costs, const struct pem_process_cost *process)
{
	const struct pem_process_cost *known = pem_costs__of_set(costs, process->set);
	size_t before = known ? (size_t)(known - costs->processes) : PEM_PROCESS_COSTS - 1;

	memmove(&costs->processes[1], &costs->processes[0], before * sizeof(*process));
	costs->processes[0] = *process;
}

static bool read_processes(FILE *f, struct pem_process_cost *processes)
{
	unsigned i;
	int n = 4;

	for (i = 0; i < PEM_PROCESS_COSTS && n == 4; i++) {
		struct pem_process_cost one = {0};

		n = fscanf(f, "%" SCNu64 " %lf %lf %lf", &one.set, &one.switch_ns, &one.fault_ns,
			   &one.start_ns);
		if (n == 4 && !(one.set && is_process(&one)))
			return false;
		processes[i] = n == 4 ? one : (struct pem_process_cost){0};
	}
	return n == 4 || n == EOF;
}

static bool read_costs(FILE *f, struct pem_costs *costs)
{
	unsigned i;

	*costs = (struct pem_costs){0};

	for (i = 0; i < PEM_COST_KINDS; i++) {
		struct pem_cost *each = &costs->each[i];

		if (fscanf(f, "%lf %lf %lf %lf %lf %lf", &each->log_ns, &each->stat_ns,
			   &each->cold_log_ns, &each->cold_stat_ns, &each->warm_gap_ns,
			   &each->half_gap_ns) != 6 ||
		    !is_possible(each))
			return false;
	}
	return fscanf(f, "%lf %lf %15s", &costs->page_ns, &costs->lost_ns, costs->kernel_source) ==
		       3 &&
	       is_cost(costs->page_ns) && is_cost(costs->lost_ns) &&
	       read_processes(f, costs->processes);
}

static bool load(int folder, const char *key, struct pem_costs *costs)
{
	char name[FILE_NAME_BYTES], *text, *end;
	struct pem_costs found;
	bool known = false;
	size_t bytes;
	FILE *f;

	name_file(name);
	text = pem_read_file(folder, name, TEXT_BYTES_MAX, &bytes);
	end = text ? strchr(text, '\n') : NULL;
	if (end) {
		*end = 0;
		f = fmemopen(end + 1, bytes - (size_t)(end + 1 - text), "r");
		known = !strcmp(text, key) && f && read_costs(f, &found);
		if (f)
			fclose(f);
	}
	free(text);
	if (known)
		*costs = found;
	return known;
}

bool pem_costs__load(struct pem_costs *costs)
{
	int folder = open_folder(false);
	char key[KEY_BYTES];
	bool known = folder >= 0 && read_key(key, sizeof(key)) && load(folder, key, costs);

	if (folder >= 0)
		close(folder);
	return known;
}

/* Put the sets that are known here in front of those that other processes have stored. */
static void complete_processes(struct pem_costs *costs, const struct pem_costs *stored)
{
	struct pem_costs all = *stored;
	unsigned i = PEM_PROCESS_COSTS;

	while (i-- > 0) {
		if (costs->processes[i].set && is_process(&costs->processes[i]))
			pem_costs__add_set(&all, &costs->processes[i]);
	}
	memcpy(costs->processes, all.processes, sizeof(all.processes));
}

/*
 * Add costs that other processes have stored meanwhile and that are not known here. Drop impossible
 * values: they would make the whole file invalid.
 */
static void complete(struct pem_costs *costs)
{
	struct pem_costs other = {0};
	bool known = pem_costs__load(&other);
	unsigned i;

	complete_processes(costs, &other);
	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (!is_possible(&costs->each[i]))
			costs->each[i] = (struct pem_cost){0};
		if (!known || costs->each[i].log_ns > 0 || other.each[i].log_ns <= 0)
			continue;
		costs->each[i] = other.each[i];
		if (i == PEM_COST_SYSCALL || i == PEM_COST_KERNEL)
			pem_copy_text(costs->kernel_source, sizeof(costs->kernel_source),
				      other.kernel_source);
	}
	if (!is_cost(costs->page_ns))
		costs->page_ns = 0;
	if (!is_cost(costs->lost_ns))
		costs->lost_ns = 0;
	if (known && costs->page_ns <= 0)
		costs->page_ns = other.page_ns;
	if (known && costs->lost_ns <= 0)
		costs->lost_ns = other.lost_ns;
	if (!*costs->kernel_source)
		strcpy(costs->kernel_source, "-");
}

/*
 * Lock a folder if that is possible soon. Without the lock, costs that another process stores at
 * the same time may be lost.
 */
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

/* Is this costs of a build, and of another boot? */
static bool is_outdated(int folder, const char *name, const char *boot)
{
	bool outdated = false;
	char *text = NULL;
	size_t bytes;

	if (!strncmp(name, FILE_NAME, strlen(FILE_NAME)))
		text = pem_read_file(folder, name, TEXT_BYTES_MAX, &bytes);
	if (text) {
		text[strcspn(text, "\n")] = 0;
		outdated = !strstr(text, boot);
	}
	free(text);
	return outdated;
}

/* Builds come and go: nothing reads a file of another boot again. */
static void remove_outdated(int folder)
{
	DIR *dir = pem_list_folder(folder);
	char boot[PEM_BOOT_ID_BYTES];
	struct dirent *entry;

	while (dir && pem_boot_id(boot) && (entry = readdir(dir))) {
		if (is_outdated(folder, entry->d_name, boot))
			unlinkat(folder, entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

void pem_costs__store(const struct pem_costs *known)
{
	struct pem_costs all = *known, *costs = &all;
	char key[KEY_BYTES], text[TEXT_BYTES_MAX], name[FILE_NAME_BYTES];
	unsigned i;
	int n, fd;

	if (!read_key(key, sizeof(key)))
		return;
	fd = open_folder(true);
	if (fd < 0)
		return;
	lock_folder(fd);
	complete(costs);
	n = snprintf(text, sizeof(text), "%s\n", key);
	for (i = 0; i < PEM_COST_KINDS; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%.3f %.3f %.3f %.3f %.3f %.3f ",
			      costs->each[i].log_ns, costs->each[i].stat_ns,
			      costs->each[i].cold_log_ns, costs->each[i].cold_stat_ns,
			      costs->each[i].warm_gap_ns, costs->each[i].half_gap_ns);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "%.3f %.3f %s\n", costs->page_ns,
		      costs->lost_ns, costs->kernel_source);
	for (i = 0; i < PEM_PROCESS_COSTS && costs->processes[i].set; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%" PRIu64 " %.3f %.3f %.3f\n",
			      costs->processes[i].set, costs->processes[i].switch_ns,
			      costs->processes[i].fault_ns, costs->processes[i].start_ns);
	name_file(name);
	pem_replace_file(fd, name, text, (size_t)n);
	remove_outdated(fd);
	flock(fd,
	      LOCK_UN); /* a child that another thread forked meanwhile has the descriptor too */
	close(fd);
}
