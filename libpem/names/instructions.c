/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* instructions.c - where instructions and functions of an object begin (contract: probing.h) */
#include "decoder.h"
#include "names.h"
#include "probing.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

/* Bytes that are decoded. Only code without symbols and unwind tables is further on. */
#define DECODED_MAX (1u << 20)

/* The section of code that an address is in. False: there is none. */
static bool find_section(Elf *elf, uint64_t address, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, header) != NULL && header->sh_flags & SHF_EXECINSTR &&
		    address >= header->sh_addr && address - header->sh_addr < header->sh_size)
			return true;
	return false;
}

/*
 * The last place at or before an address where code of the unwind table begins, by the table's
 * index
 * (.eh_frame_hdr) in the form that linkers write: 0 if there is none.
 */
static uint64_t frame_begin(Elf *elf, uint64_t address)
{
	static const uint8_t form[4] = {1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4,
					DW_EH_PE_datarel | DW_EH_PE_sdata4};
	Elf_Data *table = NULL;
	GElf_Phdr segment;
	uint64_t begin, last = 0;
	uint32_t entries;
	int32_t distance;
	size_t count, i;

	for (i = 0; elf_getphdrnum(elf, &count) == 0 && i < count && table == NULL; i++)
		if (gelf_getphdr(elf, (int)i, &segment) != NULL &&
		    segment.p_type == PT_GNU_EH_FRAME)
			table = elf_getdata_rawchunk(elf, (int64_t)segment.p_offset,
						     segment.p_filesz, ELF_T_BYTE);
	if (table == NULL || table->d_buf == NULL || table->d_size < 12 ||
	    memcmp(table->d_buf, form, sizeof(form)) != 0)
		return 0;
	memcpy(&entries, (const char *)table->d_buf + 8, sizeof(entries));
	for (i = 0; i < entries && i < (table->d_size - 12) / 8; i++) {
		memcpy(&distance, (const char *)table->d_buf + 12 + 8 * i, sizeof(distance));
		begin = segment.p_vaddr + (uint64_t)(int64_t)distance;
		if (begin <= address && begin > last)
			last = begin;
	}
	return last;
}

/* Bytes of the file from an address to another, and those of one more instruction if it has them.
 */
static Elf_Data *code_at(const struct pem_object *object, Elf *elf, uint64_t from, uint64_t to)
{
	const struct pem_segment *at = object->segments, *end = at + object->segment_count;
	uint64_t before, bytes;

	while (at < end && !(from >= at->address && to - at->address < at->bytes))
		at++;
	if (at == end)
		return NULL;
	before = from - at->address;
	bytes = to - from + PEM_OPERAND_INSTRUCTION_MAX;
	bytes = bytes < at->bytes - before ? bytes : at->bytes - before;
	return elf_getdata_rawchunk(elf, (int64_t)(at->file_offset + before), bytes, ELF_T_BYTE);
}

/* Decode from where an instruction begins up to an address. As pem_object__begins. */
static int decode_to(const struct pem_object *object, Elf *elf, uint64_t from, uint64_t to)
{
	struct pem_decoder *decoder;
	size_t at = 0, length = 1;
	Elf_Data *code;

	if (PEM_INSTRUCTION_BYTES != 0)
		return (to & (PEM_INSTRUCTION_BYTES - 1)) == 0;
	if (to - from > DECODED_MAX || gelf_getclass(elf) != ELFCLASS64)
		return -ENOTSUP;
	code = code_at(object, elf, from, to);
	decoder = code != NULL && code->d_buf != NULL ? pem_decoder__new() : NULL;
	if (decoder == NULL)
		return -ENOTSUP;
	while (at < to - from && length != 0) {
		length = pem_decoder__length(decoder, (const uint8_t *)code->d_buf + at,
					     code->d_size - at);
		at += length;
	}
	pem_decoder__free(decoder);
	return length == 0 ? -ENOTSUP : at == to - from;
}

int pem_object__begins(struct pem_object *object, uint64_t address, bool *is_function)
{
	struct pem_symbol *symbol =
		pem_symbols__find(&object->symbols, address + object->symbol_bias);
	uint64_t begin = symbol != NULL ? symbol->start - object->symbol_bias : 0;
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(object->module, &bias);
	uint64_t from = frame_begin(elf, address);
	GElf_Shdr section;

	*is_function = address == from || address == begin;
	from = begin > from ? begin : from;
	if (find_section(elf, address, &section) && section.sh_addr > from)
		from = section.sh_addr;
	if (from == 0 || from > address)
		return -ENOTSUP;
	return address == from ? 1 : decode_to(object, elf, from, address);
}
