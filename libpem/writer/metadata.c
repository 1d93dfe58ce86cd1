/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * metadata.c - the frame of a trace's CTF metadata: trace, clock, environment, the one stream class
 *
 * Layout: struct pem_packet and struct pem_record_header in abi.h, member by member.
 */
#include "writer/metadata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Write a TSDL string literal. Characters that could end or confuse it are left out. */
static void write_quoted(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if ((unsigned char)*text >= 32 && *text != '"' && *text != '\\')
			fputc(*text, f);
	}
	fputc('"', f);
}

static void write_trace_block(FILE *f, const char *uuid)
{
	fprintf(f,
		"/* CTF 1.8 */\n\n"
		"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
		"typealias integer { size = 32; align = 32; signed = false; } := uint32_t;\n"
		"typealias integer { size = 64; align = 64; signed = false; } := uint64_t;\n\n"
		"trace {\n"
		"\tmajor = 1;\n\tminor = 8;\n\tuuid = \"%s\";\n\tbyte_order = le;\n"
		"\tpacket.header := struct {\n"
		"\t\tuint32_t magic;\n\t\tuint8_t uuid[16];\n\t\tuint32_t stream_id;\n"
		"\t\tuint64_t stream_instance_id;\n"
		"\t};\n};\n\n",
		uuid);
}

/*
 * Write the clock with its origin: its value 0 lies so many seconds and cycles after the epoch
 * (never before it, for a sane host).
 */
static void write_clock_block(FILE *f, const struct pem_trace_info *info)
{
	unsigned __int128 cycles =
		(unsigned __int128)info->start_time_ns * info->clock_hz / 1000000000u;
	uint64_t offset_s, offset;

	cycles = cycles > info->start_clock ? cycles - info->start_clock : 0;
	offset_s = (uint64_t)(cycles / info->clock_hz);
	offset = (uint64_t)(cycles % info->clock_hz);
	fprintf(f,
		"clock {\n"
		"\tname = \"cycles\";\n"
		"\tdescription = \"raw cycle counter\";\n"
		"\tfreq = %llu;\n\tprecision = %llu;\n\toffset_s = %llu;\n\toffset = "
		"%llu;\n\tabsolute = true;\n"
		"};\n\n",
		(unsigned long long)info->clock_hz,
		(unsigned long long)((unsigned __int128)info->clock_error_ns * info->clock_hz /
				     1000000000u),
		(unsigned long long)offset_s, (unsigned long long)offset);
	fprintf(f, "typealias integer { size = 64; align = 64; signed = false; map = "
		   "clock.cycles.value; }"
		   " := clock64_t;\n"
		   "typealias integer { size = 32; align = 32; signed = false; map = "
		   "clock.cycles.value; }"
		   " := clock32_t;\n\n");
}

static void write_stream_block(FILE *f)
{
	fprintf(f, "stream {\n\tid = 0;\n"
		   "\tpacket.context := struct {\n"
		   "\t\tclock64_t timestamp_begin;\n\t\tclock64_t timestamp_end;\n"
		   "\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n"
		   "\t\tuint64_t events_discarded;\n\t\tuint64_t packet_seq_num;\n"
		   "\t\tuint64_t events_overwritten;\n"
		   "\t\tuint32_t pid;\n\t\tuint32_t tid;\n\t\tuint32_t cpu;\n\t\tuint32_t source;\n"
		   "\t\tuint64_t record_count;\n"
		   "\t};\n"
		   "\tevent.header := struct {\n\t\tclock32_t timestamp;\n\t\tuint32_t id;\n\t} "
		   "align(64);\n"
		   "};\n\n");
}

char *pem_metadata__text(const struct pem_model *model, const struct pem_trace_info *info,
			 const uint8_t uuid[16])
{
	char *text = NULL, name[37];
	size_t bytes = 0, i;
	FILE *f = open_memstream(&text, &bytes);

	if (!f)
		return NULL;
	snprintf(name, sizeof(name),
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", uuid[0],
		 uuid[1], uuid[2], uuid[3], uuid[4], uuid[5], uuid[6], uuid[7], uuid[8], uuid[9],
		 uuid[10], uuid[11], uuid[12], uuid[13], uuid[14], uuid[15]);
	write_trace_block(f, name);
	fprintf(f, "env {\n\ttracer_name = \"pem\";\n\thostname = ");
	write_quoted(f, info->host);
	fprintf(f, ";\n\tcommand = ");
	write_quoted(f, info->command);
	fprintf(f, ";\n};\n\n");
	write_clock_block(f, info);
	write_stream_block(f);
	for (i = 0; i < pem_model__count(model); i++)
		fprintf(f, "%s\n", pem_model__event(model, i)->tsdl);
	if (fclose(f)) {
		free(text);
		errno = ENOMEM;
		return NULL;
	}
	return text;
}
