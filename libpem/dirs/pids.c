/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pids.c - what /proc tells of a process: its pid in this process's pid namespace, its owner, its
 * start, its seccomp filters
 */
#include "dirs/dirs.h"
#include "util.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The pid is the last number of the line 'NSpid:', which has one number for each namespace that the
 * process is in.
 */
uint32_t pem_inner_pid(const char *process, unsigned *namespaces)
{
	char path[300], line[256];
	uint32_t pid = 0;
	const char *at;
	FILE *file;

	*namespaces = 0;
	snprintf(path, sizeof(path), "/proc/%s/status", process);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		for (at = strchr(line, '\t'); at; at = strchr(at + 1, '\t')) {
			pid = (uint32_t)strtoul(at, NULL, 10);
			++*namespaces;
		}
		break;
	}
	if (file)
		fclose(file);
	return pid;
}

/*
 * The owner of the process's folder in /proc is not used: that is root if nobody may read the
 * process. A set-user-ID program still belongs to its former user, too.
 */
static bool find_owner(uint32_t pid, uid_t owner, bool *matches)
{
	char path[300], line[256];
	bool found = false;
	unsigned id[4], i;
	FILE *file;

	*matches = false;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "Uid: %u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4;
	for (i = 0; found && i < 4; i++)
		*matches |= id[i] == owner;
	if (file)
		fclose(file);
	return found;
}

bool pem_is_anothers(uint32_t pid, uid_t owner)
{
	bool matches;

	return find_owner(pid, owner, &matches) && !matches;
}

/* The start is field 22, after the name. The name may contain any character. */
uint64_t pem_start_of(uint32_t pid)
{
	char path[32], line[1024];
	const char *at = NULL;
	FILE *file;
	int field;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file))
		at = strrchr(line, ')');
	if (file)
		fclose(file);
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) + 1 : 0;
}

/* The start comes first: the owner is then that of this process, or of a later one. */
uint64_t pem_dir__start(uid_t owner, uint32_t pid)
{
	uint64_t start = pem_start_of(pid);
	bool matches;

	if (owner != geteuid() && !(find_owner(pid, owner, &matches) && matches))
		return 0;
	return start;
}

uint32_t pem_dir__pid(uid_t owner, uint32_t pid, uint32_t pid_namespace)
{
	struct dirent *entry;
	unsigned namespaces;
	uint32_t found = 0;
	struct stat st;
	char path[300];
	DIR *proc;

	if (!pid_namespace || pid_namespace == pem_pid_namespace()) {
		/*
		 * A process can't pass for one of another user. A process that has ended may have
		 * been any user's.
		 */
		return owner != geteuid() && pem_is_anothers(pid, owner) ? 0 : pid;
	}
	proc = opendir("/proc");
	while (proc && !found && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		if ((uint32_t)pem_namespace_of((uint32_t)strtoul(entry->d_name, NULL, 10),
					       PEM_NAMESPACE_PID) != pid_namespace)
			continue;
		snprintf(path, sizeof(path), "/proc/%s", entry->d_name);
		if (!stat(path, &st) && st.st_uid == owner &&
		    pem_inner_pid(entry->d_name, &namespaces) == pid)
			found = (uint32_t)strtoul(entry->d_name, NULL, 10);
	}
	if (proc)
		closedir(proc);
	return found;
}

/* The number in a line of a process's status; name: "NAME:". 0: there is no such line. */
static uint32_t status_number(uint32_t pid, const char *name)
{
	char path[32], line[256];
	long count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, strlen(name)))
			count = strtol(line + strlen(name), NULL, 10);
	}
	if (file)
		fclose(file);
	return count < 0 ? 0 : (uint32_t)(count % 1000000);
}

uint32_t pem_filters_of(uint32_t pid)
{
	return status_number(pid, "Seccomp_filters:");
}

bool pem_has_filter(uint32_t pid)
{
	return status_number(pid, "Seccomp:") == 1 ||
	       pem_filters_of(pid) > pem_filters_of((uint32_t)getpid());
}
