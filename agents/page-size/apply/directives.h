/* SPDX-License-Identifier: MIT */
/* directives.h - reads the file of directives (apply.h), which is taken to be hostile */
#ifndef PAGE_APPLY_DIRECTIVES_H
#define PAGE_APPLY_DIRECTIVES_H

#include "sites/site.h"
#include "apply.h"

#include <limits.h>
#include <stdbool.h>

#define DIRECTIVES_ERROR 160u

struct directive {
	struct page_site site;
	uint64_t page_size, least; /* bytes */
	uint64_t most; /* bytes of large pages; 0: as many as the budget has */
	char text[PAGE_SITE_TEXT];
};

struct directives {
	uint64_t budget;
	uint64_t agent; /* the process that starts the command; 0: nobody says */
	char path[PATH_MAX]; /* of the file itself */
	char report[PATH_MAX]; /* "": none */
	uint32_t count;
	struct directive list[PAGE_APPLY_SITES_MAX];
};

/*
 * Read the file at path. false: it is refused, nothing in directives but the report's path may be
 * used, and error is a sentence. Calls no allocator. Changes errno.
 */
bool directives__read(struct directives *directives, const char *path,
		      char error[DIRECTIVES_ERROR]);
/* The same of a text that ends with NUL. */
bool directives__parse(struct directives *directives, const char *text,
		       char error[DIRECTIVES_ERROR]);

#endif
