// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * code_apart.c - has locations in a file that another user can change named by another process
 *
 * That process is a copy of this one. It names what it has, and tells the names as a trace keeps
 * them (code_kept.c), which this one reads as it would read a trace's.
 */
#include "code_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
	struct pem_code *code;
	struct naming *n;
};

/* In the other process. */
static int name_all(void *arg, FILE *out)
{
	struct job *job = arg;
	struct pem_code *code = job->code;
	int rc;

	code->is_apart = true;
	code->keeps_segments = true;
	code->kept_files[0] = '\0';
	job->n->was_opened = false;
	rc = code__name_file(code, job->n);
	return rc ? rc : code__write(code, out, job->n->object);
}

int code__begin_apart(struct pem_code *code, struct naming *n, uint32_t holder,
		      struct pem_error *error)
{
	struct code_object *object = &code->objects[n->object];
	struct job job = {code, n};
	struct code_kept *kept = NULL;
	char why[APART_WHY_BYTES] = "the process that reads it told nonsense";
	char *text = NULL;
	unsigned number;
	int rc;

	rc = apart__run(&code->apart, holder, name_all, &job, &text, why);
	if (!rc)
		rc = code__parse_kept(text, &kept, &number);
	if (rc == -ENOMEM)
		return rc;
	if (!kept) {
		snprintf(error->text, sizeof(error->text), "%.200s was not read: %s", object->path,
			 why);
		return 0;
	}
	n->before = code->kept;
	code->kept = kept;
	n->is_apart = true;
	return code__adopt(code, n);
}

int code__adopt(struct pem_code *code, struct naming *n)
{
	struct code_object *object = &code->objects[n->object];
	int64_t kept = code__kept_object(code, object);

	if (kept < 0)
		return -ENOMEM;
	n->kept = (uint32_t)kept;
	object->is_named = true;
	if (kept == PEM_CODE_NONE)
		return 0;
	free(object->trouble);
	object->trouble = NULL;
	if (code__copy(code__kept_trouble(code, n->kept), &object->trouble) < 0)
		return -ENOMEM;
	return code->keeps_segments && object->is_by_file
		       ? code__take_segments(code, object, n->kept)
		       : 0;
}

void code__end_apart(struct pem_code *code, struct naming *n)
{
	if (!n->is_apart)
		return;
	code__free_kept(code->kept);
	code->kept = n->before;
	n->is_apart = false;
}
