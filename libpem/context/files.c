/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * files.c - which file a descriptor is, and so the file that a system call is on
 *
 * The kernel tells what a descriptor is when a system call first uses it, and again when it has
 * become another file, or none: then the name is empty (meaning 'descriptor-name'). A record that
 * tells may be lost. So what was told before a loss of the kernel's is unknown; the kernel tells it
 * again.
 *
 * A call that takes a path is on the file of that path. It is told with each such call (meaning
 * 'call-path'), directly before its begin or behind it. A path without a slash in front begins in
 * the folder that the call's descriptor is, or in the current folder of the thread, which is told
 * as one more descriptor.
 *
 * A socket's name is its peer's address. The kernel writes IPv6 addresses with all their digits;
 * here they are as short as elsewhere.
 */
#include "pass.h"
#include "grow.h"
#include "hash.h"
#include "call_kinds.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FILES_MAX 1000000u /* more are unknown: some 250 MB of names */
#define ADDRESS_DIGITS 39u /* eight groups of four, and the colons between */
#define AT_CURRENT ((uint32_t)-100) /* AT_FDCWD */

/* What a descriptor of a process is. */
struct pem_descriptor {
	struct pem_pass_file *file;
	uint64_t told_clock;
};

/* --- which system calls take a descriptor, and which a path --- */

#define WORDS (PEM_CALLS_MAX / 64) /* of one kind's bits */

enum kind { TAKES_DESCRIPTOR, TAKES_PATH, TAKES_FOLDER, MAY_BE_EMPTY, KINDS };

int pem_files__plan(struct pem_plan *plan)
{
	int at = pem_event__field_by_role(plan->event, PEM_ROLE_SYSTEM_CALL);
	const struct pem_field *field;
	unsigned i;
	int argument;

	if (at < 0 || plan->meaning != PEM_MEANS_INTERVAL_BEGIN)
		return 0;
	plan->call_kinds = calloc(KINDS * WORDS, sizeof(uint64_t));
	if (!plan->call_kinds)
		return -ENOMEM;
	field = &plan->event->fields[at];
	for (i = 0; i < field->label_count; i++) {
		uint64_t call = field->labels[i].value, bit = 1ull << call % 64;

		if (call >= PEM_CALLS_MAX)
			continue;
		if (plan->descriptor.bytes && pem_call__takes_descriptor(field->labels[i].name))
			plan->call_kinds[TAKES_DESCRIPTOR * WORDS + call / 64] |= bit;
		argument = pem_call__path_argument(field->labels[i].name);
		if (argument >= 0)
			plan->call_kinds[TAKES_PATH * WORDS + call / 64] |= bit;
		if (argument == 1)
			plan->call_kinds[TAKES_FOLDER * WORDS + call / 64] |= bit;
		if (pem_call__takes_empty_path(field->labels[i].name))
			plan->call_kinds[MAY_BE_EMPTY * WORDS + call / 64] |= bit;
	}
	return 0;
}

static bool takes(enum kind kind, const struct pem_plan *plan, const struct pem_record *record)
{
	uint64_t call = pem_number__load(plan->system_call, record->data);

	return plan->call_kinds && call < PEM_CALLS_MAX &&
	       plan->call_kinds[kind * WORDS + call / 64] >> call % 64 & 1;
}

/* --- files by their path --- */

static struct pem_pass_file *file_of(struct pem_pass *pass, const char *path)
{
	struct pem_files *files = &pass->files;
	void **first;
	struct pem_pass_file *file;

	if (files->count >= FILES_MAX) {
		pass->unknown.left_out++;
		return NULL;
	}
	first = pem_keys__at(&files->by_path, pem_hash__text(PEM_HASH_START, path) | 1);
	if (!first)
		return NULL;
	/* Two paths of one hash: the second one is unknown. */
	if (*first) {
		file = *first;
		return strcmp(file->path, path) ? NULL : file;
	}
	if (pem_grow(&files->all, sizeof(*files->all), files->count + 1, &files->capacity))
		return NULL;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->number = (uint32_t)files->count;
	snprintf(file->path, sizeof(file->path), "%s", path);
	files->all[files->count++] = file;
	*first = file;
	return file;
}

/* --- descriptors --- */

/* Descriptors are those of a process; threads may have a current folder each. */
static uint64_t key_of(const struct pem_life_process *p, const struct pem_life_thread *t,
		       uint32_t number)
{
	if (number == AT_CURRENT)
		return t ? 1ull << 63 | (t->thread.number + 1ull) << 32 | number : 0;
	return p ? (p->process.number + 1ull) << 32 | number : 0;
}

/* key 0: of nothing that is known. */
static struct pem_descriptor *find(const struct pem_pass *pass, uint64_t key)
{
	void **first = key ? pem_keys__find(&pass->files.by_descriptor, key) : NULL;

	return first ? *first : NULL;
}

static struct pem_descriptor *add(struct pem_pass *pass, uint64_t key)
{
	struct pem_files *files = &pass->files;
	struct pem_descriptor *d;
	void **first;

	if (files->descriptor_count >= pass->open_max) {
		pass->unknown.left_out++;
		return NULL;
	}
	first = pem_keys__at(&files->by_descriptor, key);
	d = first ? calloc(1, sizeof(*d)) : NULL;
	if (!d)
		return NULL;
	*first = d;
	files->descriptor_count++;
	return d;
}

static uint32_t descriptor_of(const struct pem_open *open)
{
	return (uint32_t)pem_number__load(open->plan->descriptor, open->interval.begin.data);
}

/* The system call that the record was made for, if it has begun: the thread's innermost interval.
 */
static void name_begun_call(struct pem_pass *pass, uint32_t number, struct pem_pass_file *file)
{
	struct pem_life_thread *t = pass->thread;
	struct pem_open *open = t && t->open_count ? t->open[t->open_count - 1] : NULL;

	if (open &&
	    (open->is_on_descriptor ||
	     takes(TAKES_DESCRIPTOR, open->plan, &open->interval.begin)) &&
	    descriptor_of(open) == number)
		open->interval.file = file;
}

/* tcp:[0000:...:0001]:80 is tcp:[::1]:80. Returns the path, or what is in text. */
static const char *with_short_address(const char *path, char text[INET6_ADDRSTRLEN + 64])
{
	char digits[ADDRESS_DIGITS + 1], address[INET6_ADDRSTRLEN];
	const char *begin = strchr(path, '['), *end;
	struct in6_addr bytes;

	if (*path == '/' || !begin || begin - path > 8)
		return path;
	end = strchr(begin, ']');
	if (!end || end - begin - 1 != ADDRESS_DIGITS || strlen(end) > 32)
		return path;
	memcpy(digits, begin + 1, ADDRESS_DIGITS);
	digits[ADDRESS_DIGITS] = 0;
	if (inet_pton(AF_INET6, digits, &bytes) != 1 ||
	    !inet_ntop(AF_INET6, &bytes, address, sizeof(address)))
		return path;
	snprintf(text, INET6_ADDRSTRLEN + 64, "%.*s%s%s", (int)(begin + 1 - path), path, address,
		 end);
	return text;
}

void pem_files__learn(struct pem_pass *pass, const struct pem_plan *plan,
		      const struct pem_record *record)
{
	uint32_t number = (uint32_t)pem_number__load(plan->descriptor, record->data);
	uint64_t key = key_of(pass->process, pass->thread, number);
	char text[INET6_ADDRSTRLEN + 64];
	struct pem_descriptor *d;
	const char *path;

	if (!key || plan->name < 0 || record->event->fields[plan->name].type != PEM_TYPE_STRING)
		return;
	d = find(pass, key);
	if (!d)
		d = add(pass, key);
	if (!d)
		return;
	path = with_short_address(pem_record__string(record, (unsigned)plan->name), text);
	d->file = *path ? file_of(pass, path) : NULL;
	if (d->file && plan->file_kind.bytes)
		d->file->kind = (uint32_t)pem_number__load(plan->file_kind, record->data);
	d->told_clock = record->clock;
	name_begun_call(pass, number, d->file);
}

/* The file of a descriptor as a system call begins. NULL: it is unknown. */
static const struct pem_pass_file *file_of_descriptor(const struct pem_pass *pass,
						      const struct pem_open *open, uint32_t number)
{
	const struct pem_descriptor *d;

	if (!open->plan->descriptor.bytes)
		return NULL;
	d = find(pass, key_of(open->process, open->thread, number));
	return d && d->told_clock >= pass->kernel_loss ? d->file : NULL;
}

/* --- paths --- */

/* The file of a path that begins in a folder. An unknown folder is told as "?". */
static struct pem_pass_file *file_in(struct pem_pass *pass, const struct pem_pass_file *folder,
				     const char *path)
{
	const char *base = folder ? folder->path : "?";
	char text[sizeof(folder->path) + sizeof(folder->path)];
	size_t bytes = strlen(base), most = sizeof(folder->path) - 1, path_bytes;

	while (!strncmp(path, "./", 2))
		path += 2 + strspn(path + 2, "/");
	if (!*path || !strcmp(path, "."))
		return file_of(pass, base);
	memcpy(text, base, bytes);
	if (base[bytes - 1] != '/')
		text[bytes++] = '/';
	path_bytes = strlen(path); /* both are those of files, so they fit */
	memcpy(text + bytes, path, path_bytes + 1);
	bytes += path_bytes;
	if (bytes <= most)
		return file_of(pass, text);
	memcpy(text + bytes - most, "...", 3);
	return file_of(pass, text + bytes - most);
}

/* Say which path a call has that has begun. told: the path as the program gave it; NULL: unknown.
 */
static void put_path(struct pem_pass *pass, struct pem_open *open, struct pem_pass_file *told,
		     bool is_empty)
{
	bool has_folder = takes(TAKES_FOLDER, open->plan, &open->interval.begin);
	const struct pem_pass_file *folder =
		file_of_descriptor(pass, open, has_folder ? descriptor_of(open) : AT_CURRENT);

	/* Of other calls an empty path is no file: they fail. */
	open->is_on_descriptor = is_empty && takes(MAY_BE_EMPTY, open->plan, &open->interval.begin);
	if (is_empty)
		open->interval.file = open->is_on_descriptor ? folder : NULL;
	else if (!told || *told->path == '/')
		open->interval.file = told;
	else
		open->interval.file = file_in(pass, folder, told->path);
}

void pem_files__learn_path(struct pem_pass *pass, const struct pem_plan *plan,
			   const struct pem_record *record)
{
	uint32_t call = (uint32_t)pem_number__load(plan->system_call, record->data);
	struct pem_life_thread *t = pass->thread;
	struct pem_open *open = t && t->open_count ? t->open[t->open_count - 1] : NULL;
	struct pem_pass_file *file;
	const char *path;
	bool is_empty;

	if (!t || plan->name < 0 || record->event->fields[plan->name].type != PEM_TYPE_STRING)
		return;
	path = pem_record__string(record, (unsigned)plan->name);
	is_empty = strcmp(path, "(descriptor)") == 0;
	file = *path && !is_empty && strcmp(path, "?") != 0 ? file_of(pass, path) : NULL;
	if (open && takes(TAKES_PATH, open->plan, &open->interval.begin) &&
	    (uint32_t)pem_number__load(open->plan->system_call, open->interval.begin.data) ==
		    call) {
		put_path(pass, open, file, is_empty);
		return;
	}
	t->path = file;
	t->path_call = call;
	t->path_is_told = true;
	t->path_is_empty = is_empty;
	t->path_clock = record->clock;
}

void pem_files__begin(struct pem_pass *pass, struct pem_open *open)
{
	uint32_t call =
		(uint32_t)pem_number__load(open->plan->system_call, open->interval.begin.data);
	struct pem_life_thread *t = open->thread;

	if (takes(TAKES_DESCRIPTOR, open->plan, &open->interval.begin))
		open->interval.file = file_of_descriptor(pass, open, descriptor_of(open));
	else if (t && t->path_is_told && t->path_call == call &&
		 t->path_clock >= pass->kernel_loss &&
		 takes(TAKES_PATH, open->plan, &open->interval.begin))
		put_path(pass, open, t->path, t->path_is_empty);
	if (t)
		t->path_is_told = false;
}

void pem_files__free(struct pem_files *files)
{
	size_t i;

	for (i = 0; i < files->by_descriptor.size; i++)
		if (files->by_descriptor.entries[i].key)
			free(files->by_descriptor.entries[i].first);
	for (i = 0; i < files->count; i++)
		free(files->all[i]);
	free(files->all);
	pem_keys__free(&files->by_descriptor);
	pem_keys__free(&files->by_path);
}

/* --- what callers ask --- */

size_t pem_pass__file_count(const struct pem_pass *pass)
{
	return pass ? pass->files.count : 0;
}

const struct pem_pass_file *pem_pass__file(const struct pem_pass *pass, size_t number)
{
	return number < pem_pass__file_count(pass) ? pass->files.all[number] : NULL;
}
