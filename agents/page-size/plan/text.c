/* SPDX-License-Identifier: MIT */
/* text.c - a site of a plan as the text of its directive, and back */
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int plan_directive__write(const struct plan_directive *d, char *text, size_t bytes)
{
	int n = snprintf(text, bytes,
			 "page_size=%" PRIu64 " bytes=%" PRIu64 " most=%" PRIu64
			 " share=%.6f chained=%.6f saved_ms=%.3f name=%s",
			 d->page_size, d->bytes, d->most, d->share, d->chained, d->saved_ms,
			 d->name);

	return n < 0 || (size_t)n >= bytes ? -ENOSPC : n;
}

int plan_directive__read(struct plan_directive *directive, const char *text)
{
	struct plan_directive d = {0};
	int n = 0;

	if (sscanf(text,
		   "page_size=%" SCNu64 " bytes=%" SCNu64 " most=%" SCNu64
		   " share=%lf chained=%lf saved_ms=%lf name=%n",
		   &d.page_size, &d.bytes, &d.most, &d.share, &d.chained, &d.saved_ms, &n) != 6 ||
	    !n || strlen(text + n) >= sizeof(d.name))
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
