/* SPDX-License-Identifier: MIT */
/* text.c - a site of a plan as the text of its directive, and back */
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* By enum profile_source. */
static const char *const sources[] = {"", "valgrind", "hooks", "samples"};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))

const char *plan_source__word(uint32_t source)
{
	return source < SOURCES ? sources[source] : "";
}

int plan_directive__write(const struct plan_directive *d, char *text, size_t bytes)
{
	const char *source = plan_source__word(d->source);
	int n = snprintf(text, bytes,
			 "page_size=%" PRIu64 " bytes=%" PRIu64 " most=%" PRIu64
			 " share=%.6f chained=%.6f saved_ms=%.3f%s%s name=%s",
			 d->page_size, d->bytes, d->most, d->share, d->chained, d->saved_ms,
			 *source ? " observer=" : "", source, d->name);

	return n < 0 || (size_t)n >= bytes ? -ENOSPC : n;
}

/* " observer=WORD name=": how long it is, or 0. Earlier versions had no observer. */
static int read_source(const char *text, uint32_t *source)
{
	static const char name[] = " name=";
	char word[16] = "";
	int n = 0;

	if (sscanf(text, " observer=%15[a-z]%n", word, &n) == 1) {
		while (++*source < SOURCES && strcmp(word, sources[*source]))
			;
		if (*source == SOURCES)
			return 0;
	}
	return strncmp(text + n, name, sizeof(name) - 1) ? 0 : n + (int)sizeof(name) - 1;
}

int plan_directive__read(struct plan_directive *directive, const char *text)
{
	struct plan_directive d = {0};
	int n = 0, more;

	if (sscanf(text,
		   "page_size=%" SCNu64 " bytes=%" SCNu64 " most=%" SCNu64
		   " share=%lf chained=%lf saved_ms=%lf%n",
		   &d.page_size, &d.bytes, &d.most, &d.share, &d.chained, &d.saved_ms, &n) != 6)
		return -EBADMSG;
	more = read_source(text + n, &d.source);
	n += more;
	if (!more || strlen(text + n) >= sizeof(d.name))
		return -EBADMSG;
	if (!isfinite(d.share) || !isfinite(d.chained) || !isfinite(d.saved_ms))
		return -EBADMSG;
	/* A power of two from a small page to the largest that processors have. */
	if (d.page_size < 4096 || d.page_size > UINT64_C(1) << 34 ||
	    d.page_size & (d.page_size - 1))
		return -EBADMSG;
	strcpy(d.name, text + n);
	*directive = d;
	return 0;
}

void plan_name__shorten(char *name)
{
	static const char constant[] = ") const";
	size_t length = strlen(name), end = length;
	uint32_t depth = 0;

	if (length >= sizeof(constant) - 1 &&
	    !strcmp(name + length - sizeof(constant) + 1, constant))
		end -= sizeof(constant) - 2;
	if (!end || name[end - 1] != ')')
		return;
	while (end) {
		end--;
		depth += name[end] == ')';
		depth -= name[end] == '(';
		if (!depth)
			break;
	}
	/* "(anonymous)" is a name, too. */
	if (!depth && end)
		name[end] = '\0';
}
