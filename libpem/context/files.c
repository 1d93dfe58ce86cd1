/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * files.c - which file a descriptor is, and so the file that a system call is on
 *
 * The kernel tells what a descriptor is when a system call first uses it, and again when it has
 * become another file, or none: then the name is empty (meaning 'descriptor-name'). A record that
 * tells may be lost. So what was told before a loss of the kernel's is unknown; the kernel tells it
 * again.
 */
#include "pass.h"
#include "grow.h"
#include "hash.h"
#include "call_kinds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FILES_MAX 1000000u /* more are unknown: some 250 MB of names */

/* What a descriptor of a process is. */
struct pem_descriptor {
	struct pem_pass_file *file;
	uint64_t told_clock;
};

/* --- which system calls take one --- */

int pem_files__plan(struct pem_plan *plan)
{
	int at = pem_event__field_by_role(plan->event, PEM_ROLE_SYSTEM_CALL);
	const struct pem_field *field;
	unsigned i;

	if (at < 0 || !plan->descriptor.bytes)
		return 0;
	plan->descriptor_calls = calloc(PEM_CALLS_MAX / 64, sizeof(uint64_t));
	if (!plan->descriptor_calls)
		return -ENOMEM;
	field = &plan->event->fields[at];
	for (i = 0; i < field->label_count; i++)
		if (field->labels[i].value < PEM_CALLS_MAX &&
		    pem_call__takes_descriptor(field->labels[i].name))
			plan->descriptor_calls[field->labels[i].value / 64] |=
				1ull << field->labels[i].value % 64;
	return 0;
}

static bool takes_descriptor(const struct pem_plan *plan, const struct pem_record *record)
{
	uint64_t call = pem_number__load(plan->system_call, record->data);

	return plan->descriptor_calls && call < PEM_CALLS_MAX &&
	       plan->descriptor_calls[call / 64] >> call % 64 & 1;
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

static uint64_t key_of(const struct pem_life_process *p, uint32_t number)
{
	return (p->process.number + 1ull) << 32 | number;
}

static struct pem_descriptor *find(const struct pem_pass *pass, const struct pem_life_process *p,
				   uint32_t number)
{
	void **first = pem_keys__find(&pass->files.by_descriptor, key_of(p, number));

	return first ? *first : NULL;
}

static struct pem_descriptor *add(struct pem_pass *pass, const struct pem_life_process *p,
				  uint32_t number)
{
	struct pem_files *files = &pass->files;
	struct pem_descriptor *d;
	void **first;

	if (files->descriptor_count >= pass->open_max) {
		pass->unknown.left_out++;
		return NULL;
	}
	first = pem_keys__at(&files->by_descriptor, key_of(p, number));
	d = first ? calloc(1, sizeof(*d)) : NULL;
	if (!d)
		return NULL;
	*first = d;
	files->descriptor_count++;
	return d;
}

/* The system call that the record was made for, if it has begun: the thread's innermost interval.
 */
static void name_begun_call(struct pem_pass *pass, uint32_t number, struct pem_pass_file *file)
{
	struct pem_life_thread *t = pass->thread;
	struct pem_open *open = t && t->open_count ? t->open[t->open_count - 1] : NULL;

	if (open && takes_descriptor(open->plan, &open->interval.begin) &&
	    (uint32_t)pem_number__load(open->plan->descriptor, open->interval.begin.data) == number)
		open->interval.file = file;
}

void pem_files__learn(struct pem_pass *pass, const struct pem_plan *plan,
		      const struct pem_record *record)
{
	uint32_t number = (uint32_t)pem_number__load(plan->descriptor, record->data);
	struct pem_descriptor *d;
	const char *path;

	if (!pass->process || plan->name < 0 ||
	    record->event->fields[plan->name].type != PEM_TYPE_STRING)
		return;
	d = find(pass, pass->process, number);
	if (!d)
		d = add(pass, pass->process, number);
	if (!d)
		return;
	path = pem_record__string(record, (unsigned)plan->name);
	d->file = *path ? file_of(pass, path) : NULL;
	d->told_clock = record->clock;
	name_begun_call(pass, number, d->file);
}

const struct pem_pass_file *pem_files__of(const struct pem_pass *pass, const struct pem_plan *plan,
					  const struct pem_record *record)
{
	const struct pem_descriptor *d;

	if (!pass->process || !takes_descriptor(plan, record))
		return NULL;
	d = find(pass, pass->process, (uint32_t)pem_number__load(plan->descriptor, record->data));
	return d && d->told_clock >= pass->kernel_loss ? d->file : NULL;
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
	return pass->files.count;
}

const struct pem_pass_file *pem_pass__file(const struct pem_pass *pass, size_t number)
{
	return number < pass->files.count ? pass->files.all[number] : NULL;
}
