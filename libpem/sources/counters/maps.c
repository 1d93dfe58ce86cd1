// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * maps.c - the events that say what lies in memory: what processes have mapped, and their records
 *
 * Not here: what is mapped later, which the kernel tells beside samples (ring.c).
 */
#include "counters.h"

#include <dirent.h>
#include <fcntl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_word(const struct pem_field *field)
{
	return field->type == PEM_TYPE_UINT64 || field->type == PEM_TYPE_ADDRESS;
}

int map__layout(const struct pem_event *event, struct map_layout *layout)
{
	struct map_layout found = {.fixed_bytes = event->fixed_bytes};
	unsigned i, strings = 0;

	for (i = 0; i < event->field_count; i++) {
		const struct pem_field *field = &event->fields[i];

		if (!strcmp(field->name, "address") && is_word(field))
			found.address = field->offset;
		else if (!strcmp(field->name, "length") && is_word(field))
			found.length = field->offset;
		else if (!strcmp(field->name, "offset") && is_word(field))
			found.offset = field->offset;
		else if (field->type != PEM_TYPE_STRING || strings > 1 ||
			 strcmp(field->name, strings++ ? "path" : "buildId") != 0 ||
			 field->max_count < 2 * sizeof(((struct ring_map *)0)->build_id) + 1)
			return -ENOTSUP;
	}
	if (!found.address || !found.length || !found.offset || strings != 2 ||
	    event->max_bytes > MAP_RECORD_BYTES_MAX)
		return -ENOTSUP;
	found.path_max = event->fields[event->field_count - 1].max_count;
	*layout = found;
	return 0;
}

size_t map__put(const struct map_layout *layout, const struct ring_map *map, uint8_t *record)
{
	size_t at = layout->fixed_bytes, bytes = strlen(map->path);
	unsigned i;

	memset(record + sizeof(struct pem_record_header), 0,
	       layout->fixed_bytes - sizeof(struct pem_record_header));
	memcpy(record + layout->address, &map->address, 8);
	memcpy(record + layout->length, &map->length, 8);
	memcpy(record + layout->offset, &map->offset, 8);
	for (i = 0; i < map->build_id_bytes; i++, at += 2) {
		record[at] = (uint8_t) "0123456789abcdef"[map->build_id[i] >> 4];
		record[at + 1] = (uint8_t) "0123456789abcdef"[map->build_id[i] & 15];
	}
	record[at++] = 0;
	if (bytes > layout->path_max - 1)
		bytes = layout->path_max - 1;
	memcpy(record + at, map->path, bytes);
	record[at + bytes] = 0;
	return at + bytes + 1;
}

/*
 * A line of /proc/PID/maps (proc(5)). Returns whether it is of a file's code, or of the vdso; with
 * all, whether it is of memory.
 */
static int parse_line(const char *line, int all, struct ring_map *map)
{
	uint64_t end;
	char rights[8];
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &map->address, &end,
		   rights, &map->offset, &path) != 4 ||
	    !path || end <= map->address)
		return 0;
	if (!all &&
	    (rights[2] != 'x' || (line[path] != '/' && strncmp(line + path, "[vdso]", 6) != 0)))
		return 0;
	map->is_file = line[path] == '/';
	map->length = end - map->address;
	snprintf(map->path, sizeof(map->path), "%.*s", (int)strcspn(line + path, "\n"),
		 line + path);
	/* As the kernel tells it beside samples. */
	if (!*map->path)
		snprintf(map->path, sizeof(map->path), "//anon");
	return 1;
}

/*
 * Opening the maps of a process waits for an exec, and reading them for its memory's lock: another
 * user may make both wait for ever (docs/security.md).
 */
int maps__is_own_at(int process)
{
	int fd = openat(process, "status", O_RDONLY | O_CLOEXEC), found = 0;
	unsigned id[4], i, own = (unsigned)geteuid();
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[128];

	if (fd >= 0 && !f)
		close(fd);
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "Uid: %u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4;
	if (f)
		fclose(f);
	for (i = 0; found && i < 4; i++)
		found = id[i] == own;
	return found;
}

int maps__open_process(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int maps__is_own(pid_t pid)
{
	int process = maps__open_process(pid), is_own = 0;

	if (process >= 0) {
		is_own = maps__is_own_at(process);
		close(process);
	}
	return is_own;
}

static void each_of_process(pid_t pid, int all, void (*take)(void *arg, const struct ring_map *map),
			    void *arg)
{
	struct ring_map map = {.pid = (uint32_t)pid, .tid = (uint32_t)pid};
	char path[32], *line = NULL;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && getline(&line, &room, f) > 0)
		if (parse_line(line, all, &map))
			take(arg, &map);
	free(line);
	if (f)
		fclose(f);
}

void maps__each(pid_t pid, int all, void (*take)(void *arg, const struct ring_map *map), void *arg)
{
	struct dirent *entry;
	DIR *processes;

	if (pid > 0) {
		each_of_process(pid, all, take, arg);
		return;
	}
	processes = opendir("/proc");
	while (processes && (entry = readdir(processes))) {
		pid_t one = (pid_t)strtol(entry->d_name, NULL, 10);

		if (one > 0 && maps__is_own(one))
			each_of_process(one, all, take, arg);
	}
	if (processes)
		closedir(processes);
}
