/* SPDX-License-Identifier: MIT */
/* site.c - the text of a site, and the numbers of objects */
#include "site.h"

static const char *const kinds[] = {"heap", "map", "data", "stack", "reserved"};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static size_t put_word(char *to, const char *word)
{
	size_t n = 0;

	for (; word[n]; n++)
		to[n] = word[n];
	return n;
}

/* At least digits hexadecimal digits. */
static size_t put_number(char *to, uint64_t number, unsigned digits)
{
	size_t n = 0;
	int shift;

	for (shift = 60; shift >= 0; shift -= 4) {
		if (n || number >> shift || shift < (int)(4 * digits))
			to[n++] = "0123456789abcdef"[number >> shift & 15];
	}
	return n;
}

size_t page_site__write(const struct page_site *site, char text[PAGE_SITE_TEXT])
{
	size_t n = put_word(text, kinds[site->kind]);
	uint32_t i;

	for (i = 0; i < site->frame_count; i++) {
		text[n++] = ' ';
		n += put_number(text + n, site->frames[i].object, 16);
		if (site->kind == PAGE_SITE_DATA)
			continue;
		text[n++] = '+';
		/* Offsets of more than 32 bits have no place: no object is that large. */
		n += put_number(text + n, site->frames[i].offset & 0xffffffff, 1);
	}
	text[n] = '\0';
	return n;
}

/* Up to max hexadecimal digits; how many there were. */
static size_t get_number(const char *text, size_t max, uint64_t *number)
{
	size_t n = 0;
	int digit;

	for (*number = 0; n < max; n++) {
		if (text[n] >= '0' && text[n] <= '9')
			digit = text[n] - '0';
		else if (text[n] >= 'a' && text[n] <= 'f')
			digit = text[n] - 'a' + 10;
		else
			break;
		*number = *number << 4 | (uint64_t)digit;
	}
	return n;
}

static size_t get_kind(const char *text, uint32_t *kind)
{
	size_t n;

	for (*kind = 0; *kind < KINDS; ++*kind) {
		for (n = 0; kinds[*kind][n] && kinds[*kind][n] == text[n];)
			n++;
		if (!kinds[*kind][n])
			return n;
	}
	return 0;
}

/* " OBJECT+OFFSET", of data " OBJECT"; 0: it is none. */
static size_t get_frame(const char *text, uint32_t kind, struct page_frame *frame)
{
	size_t n = 1, digits;

	frame->offset = 0;
	if (text[0] != ' ' || get_number(text + n, 16, &frame->object) != 16)
		return 0;
	n += 16;
	if (kind == PAGE_SITE_DATA)
		return n;
	if (text[n++] != '+')
		return 0;
	digits = get_number(text + n, 8, &frame->offset);
	return digits ? n + digits : 0;
}

static int is_end(char c)
{
	return !c || c == '\t' || c == '\n';
}

size_t page_site__read(const char *text, struct page_site *site)
{
	struct page_site s = {0};
	size_t n = get_kind(text, &s.kind), more;
	uint32_t most = s.kind == PAGE_SITE_STACK  ? 0
			: s.kind == PAGE_SITE_DATA ? 1
						   : PAGE_FRAMES_MAX;

	if (!n)
		return 0;
	for (; s.frame_count < most && !is_end(text[n]); n += more, s.frame_count++) {
		more = get_frame(text + n, s.kind, &s.frames[s.frame_count]);
		if (!more)
			return 0;
	}
	if (!is_end(text[n]) || (most && !s.frame_count))
		return 0;
	*site = s;
	return n;
}

uint64_t page_object__of_build_id(const unsigned char *build_id, size_t count)
{
	uint64_t number = 0;
	size_t i;

	for (i = 0; i < 8; i++)
		number = number << 8 | (i < count ? build_id[i] : 0);
	return number;
}

/* FNV-1a of Fowler, Noll and Vo, with their 64-bit offset basis and prime. */
static uint64_t fnv(uint64_t hash, const unsigned char *bytes, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t page_object__of_headers(const void *elf_header, size_t header_bytes, const void *programs,
				 size_t program_bytes)
{
	return fnv(fnv(UINT64_C(0xcbf29ce484222325), elf_header, header_bytes), programs,
		   program_bytes);
}
