// SPDX-License-Identifier: MIT
/*
 * text.c - a calibration as JSON, and back
 *
 * All numbers are integers, in units small enough: so the text is the same in every locale. The
 * reader wants the members in the order in which they are written; white space is free.
 */
#include "calibrate.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of a member's unit in the text. */
#define PS 1e-3 /* in ns */
#define FS 1e-6
#define MILLI 1e-3
#define MICRO 1e-6
/* No number of a calibration is larger: it is exact in a double. */
#define NUMBER_MAX (1ull << 53)

/* Writes or reads: one list of the members serves both. */
struct text {
	char *out; /* NULL: read */
	size_t room, length; /* length: written so far, or that would be */
	const char *in;
	int failed;
};

static void put(struct text *text, const char *format, ...)
{
	size_t left = text->length < text->room ? text->room - text->length : 0;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(left ? text->out + text->length : NULL, left, format, args);
	va_end(args);
	text->length += n > 0 ? (size_t)n : 0;
}

static void skip_space(struct text *text)
{
	while (*text->in && strchr(" \t\r\n", *text->in))
		text->in++;
}

/* A word of the syntax. */
static void token(struct text *text, const char *word)
{
	int quoted = 0;

	if (text->out) {
		put(text, "%s", word);
		return;
	}
	for (; *word && !text->failed; word++) {
		/* Within quotes every byte counts. */
		if (!quoted)
			skip_space(text);
		quoted ^= *word == '"';
		if (*text->in == *word)
			text->in++;
		else
			text->failed = 1;
	}
	if (!text->failed)
		skip_space(text);
}

static void integer(struct text *text, uint64_t *value, uint64_t max)
{
	uint64_t n = 0;

	if (text->out) {
		put(text, "%llu", (unsigned long long)*value);
		return;
	}
	skip_space(text);
	/* JSON has no leading zeros. */
	if (!isdigit((unsigned char)*text->in) ||
	    (*text->in == '0' && isdigit((unsigned char)text->in[1])))
		text->failed = 1;
	while (!text->failed && isdigit((unsigned char)*text->in)) {
		n = n * 10 + (uint64_t)(*text->in++ - '0');
		if (n > max)
			text->failed = 1;
	}
	skip_space(text);
	if (!text->failed)
		*value = n;
}

static void integer32(struct text *text, uint32_t *value, uint32_t max)
{
	uint64_t wide = *value;

	integer(text, &wide, max);
	*value = (uint32_t)wide;
}

static void real(struct text *text, double *value, double unit)
{
	double units = *value / unit;
	uint64_t n = 0;

	/* Negative and unknown times count as 0, and those beyond years as years. */
	if (text->out && units > 0)
		n = units < (double)NUMBER_MAX ? (uint64_t)llround(units) : NUMBER_MAX;
	integer(text, &n, NUMBER_MAX);
	if (!text->out)
		*value = (double)n * unit;
}

static void reals(struct text *text, const char *name, double *values, uint32_t count, double unit)
{
	uint32_t i;

	token(text, name);
	for (i = 0; i < count; i++) {
		token(text, i ? "," : "[");
		real(text, &values[i], unit);
	}
	token(text, "]");
}

static void shifts(struct text *text, const char *name, uint32_t *values, uint32_t count)
{
	uint32_t i;

	token(text, name);
	for (i = 0; i < count; i++) {
		token(text, i ? "," : "[");
		integer32(text, &values[i], 63);
	}
	token(text, "]");
}

/* [hit_ps, hidden_ps, group_shift, pools, [sizes, entries, ways, replacement], ...] */
static void level(struct text *text, struct page_level *l)
{
	uint32_t i, replacement;

	token(text, "[");
	real(text, &l->hit_ns, PS);
	token(text, ",");
	real(text, &l->hidden_ns, PS);
	token(text, ",");
	integer32(text, &l->group_shift, 63);
	token(text, ",");
	integer32(text, &l->pool_count, PAGE_POOLS_MAX);
	for (i = 0; i < l->pool_count && !text->failed; i++) {
		struct page_pool *pool = &l->pools[i];

		token(text, ",[");
		integer32(text, &pool->sizes, 7);
		token(text, ",");
		integer32(text, &pool->entries, PAGE_ENTRIES_MAX);
		token(text, ",");
		integer32(text, &pool->ways, PAGE_ENTRIES_MAX);
		token(text, ",");
		replacement = pool->replacement;
		integer32(text, &replacement, PAGE_TREE_PLRU);
		pool->replacement = (enum page_replacement)replacement;
		token(text, "]");
	}
	token(text, "]");
}

static void calibration(struct text *text, struct page_calibration *c)
{
	struct page_geometry *g = &c->geometry;
	uint32_t i;

	token(text, "{\"page_calibration\":2,\"sizes\":");
	integer32(text, &g->size_count, PAGE_SIZES_MAX);
	token(text, ",\"levels\":");
	integer32(text, &g->level_count, PAGE_LEVELS_MAX);
	if (text->failed || !g->size_count || !g->level_count) {
		text->failed = 1;
		return;
	}
	shifts(text, ",\"shifts\":", g->shifts, g->size_count);
	shifts(text, ",\"entry_shifts\":", g->entry_shifts, g->size_count);
	token(text, ",\"tlb\":");
	for (i = 0; i < g->level_count && !text->failed; i++) {
		token(text, i ? "," : "[");
		level(text, &g->levels[i]);
	}
	token(text, "]");
	reals(text, ",\"walk_latency_ps\":", g->walk_latency_ns, g->size_count, PS);
	reals(text, ",\"walk_throughput_ps\":", g->walk_throughput_ns, g->size_count, PS);
	token(text, ",\"window\":");
	real(text, &g->window_instructions, 1);
	reals(text, ",\"first_touch_ps\":", g->first_touch_ns, g->size_count, PS);
	reals(text, ",\"collapse_ps\":", c->collapse_ns, g->size_count, PS);
	reals(text, ",\"copy_ps\":", c->copy_ns, g->size_count, PS);
	token(text, ",\"supply_bytes\":");
	for (i = 0; i < g->size_count; i++) {
		token(text, i ? "," : "[");
		integer(text, &c->supply_bytes[i], NUMBER_MAX);
	}
	token(text, "],\"instruction_fs\":");
	real(text, &c->ns_per_instruction, FS);
	token(text, ",\"noise_ppm\":");
	real(text, &c->noise, MICRO);
	token(text, ",\"calibration_ms\":");
	real(text, &c->seconds, MILLI);
	token(text, "}");
}

int page_calibration__write(const struct page_calibration *from, char *out, size_t bytes)
{
	struct page_calibration copy = *from;
	struct text text = {.out = out, .room = bytes};

	if (page_geometry__check(&from->geometry, NULL) < 0)
		return -EINVAL;
	if (!bytes)
		return -ENOSPC;
	calibration(&text, &copy);
	return text.failed || text.length >= bytes ? -ENOSPC : (int)text.length;
}

int page_calibration__read(struct page_calibration *to, const char *in)
{
	struct page_calibration copy = {0};
	struct text text = {.in = in};

	skip_space(&text);
	calibration(&text, &copy);
	if (text.failed || *text.in || page_geometry__check(&copy.geometry, NULL) < 0)
		return -EBADMSG;
	*to = copy;
	return 0;
}
