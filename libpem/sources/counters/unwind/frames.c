// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * frames.c - is the call frame information of a file fit for libdw?
 *
 * libdw follows what .eh_frame says without a limit: an entry may push registers tens of millions
 * of times. So each entry is bounded here. A search table (.eh_frame_hdr) and an entry's own
 * pointer to the common one lead libdw to entries, too: they are followed, and must lead to the
 * begin of one. (Linux Standard Base Core, 10.6: Exception Frames.)
 */
#include "unwind.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Of 2.2 million entries of Debian's programs and libraries the longest has 20 KiB. */
#define ENTRY_BYTES_MAX (64u << 10)
#define TABLE_VERSION 1u
#define TABLE_HEAD_BYTES 12u

struct frames {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;
	uint8_t *begins; /* a bit for each byte at which an entry begins */
};

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static bool is_begin(const struct frames *f, uint64_t offset)
{
	return offset < f->size && f->begins[offset / 8] >> offset % 8 & 1;
}

/* Mark where entries begin. Returns false if one is too long, or not as compilers write it. */
static bool mark_entries(struct frames *f)
{
	size_t at;
	uint32_t length;

	for (at = 0; at + 4 <= f->size; at += 4 + length) {
		length = word(f->bytes + at);
		if (!length)
			break;
		if (length < 4 || length > ENTRY_BYTES_MAX || length > f->size - at - 4)
			return false;
		f->begins[at / 8] |= (uint8_t)(1u << at % 8);
	}
	return true;
}

/* Does each entry of a function name the begin of an entry as its common one? */
static bool has_common_entries(const struct frames *f)
{
	size_t at;
	uint32_t distance;

	for (at = 0; at + 8 <= f->size && word(f->bytes + at); at += 4 + word(f->bytes + at)) {
		distance = word(f->bytes + at + 4); /* 0: this is a common one */
		if (distance && (distance > at + 4 || !is_begin(f, at + 4 - distance)))
			return false;
	}
	return true;
}

/*
 * Does each line of the search table name the begin of an entry? A table is a version, three
 * encodings, the address of .eh_frame, the number of lines, and the lines: two signed words each,
 * distances of function and entry from the table.
 */
static bool has_fit_table(const struct frames *f, const uint8_t *table, size_t size,
			  uint64_t address)
{
	uint64_t entry;
	uint32_t count, i;

	if (size < TABLE_HEAD_BYTES || table[0] != TABLE_VERSION)
		return false;
	if (table[2] == DW_EH_PE_omit || table[3] == DW_EH_PE_omit)
		return true; /* libdw does not use it, either */
	count = word(table + 8);
	if (table[1] != (DW_EH_PE_pcrel | DW_EH_PE_sdata4) || table[2] != DW_EH_PE_udata4 ||
	    table[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4) ||
	    count > (size - TABLE_HEAD_BYTES) / 8)
		return false;
	for (i = 0; i < count; i++) {
		entry = address +
			(uint64_t)(int64_t)(int32_t)word(table + TABLE_HEAD_BYTES + 8ull * i + 4);
		if (!is_begin(f, entry - f->address))
			return false;
	}
	return true;
}

/* Find a section with contents by its name. Returns its contents, or NULL. */
static const Elf_Data *find(Elf *elf, const char *wanted, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	const char *name;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, header) ||
		    !(name = elf_strptr(elf, names, header->sh_name)) || strcmp(name, wanted) != 0)
			continue;
		return header->sh_type != SHT_NOBITS ? elf_rawdata(section, NULL) : NULL;
	}
	return NULL;
}

int unwind_frames__check(struct Elf *elf)
{
	GElf_Shdr header, table_header;
	const Elf_Data *data = find(elf, ".eh_frame", &header);
	const Elf_Data *table = find(elf, ".eh_frame_hdr", &table_header);
	struct frames f;
	bool is_fit;

	if (!data || !data->d_buf)
		return -ENOEXEC;
	f = (struct frames){.bytes = data->d_buf, .size = data->d_size, .address = header.sh_addr};
	f.begins = calloc(1, f.size / 8 + 1);
	if (!f.begins)
		return -ENOMEM;
	is_fit = mark_entries(&f) && has_common_entries(&f) &&
		 (!table || !table->d_buf ||
		  has_fit_table(&f, table->d_buf, table->d_size, table_header.sh_addr));
	free(f.begins);
	return is_fit ? 0 : -ENOEXEC;
}
