/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export.h - the plugin interface of exporters
 *
 * An exporter writes a trace in another format. It is a shared object 'export-NAME.so' in the
 * plugin folder (PEM_PLUGIN_PATH, else LIBDIR/pem; man pem), which defines one symbol: const struct
 * pem_exporter pem_exporter. viz-export/csv.c is the smallest one.
 *
 * Both structs begin with their size and are read by the rules of <pem/sized.h>: the host reads
 * pem_exporter, the exporter reads pem_export_options with pem_export__options().
 */
#ifndef PEM_EXPORT_H
#define PEM_EXPORT_H

#include <pem/sized.h>
#include <pem/trace.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEM_EXPORT_ABI_VERSION 2u

struct pem_export_options {
	size_t size; /* of this struct; 0: as in version 0.2.0 */
	const char *title; /* for people; may be NULL */
	/*
	 * Called now and then in long work, by the thread that called run; may be NULL. done and
	 * total are numbers of records.
	 */
	void (*progress)(uint64_t done, uint64_t total, void *arg);
	void *progress_arg;
	/*
	 * Another run, which is to be shown beside the trace; NULL: none. Only exporters with
	 * takes_other get one. other_title is for people; may be NULL.
	 */
	struct pem_trace *other;
	const char *other_title;
	/*
	 * The user's choice of an amount, a word that the exporter knows; NULL: none. Only
	 * exporters with takes_amount get one. They refuse another word with -EINVAL.
	 */
	const char *amount;
};

struct pem_exporter {
	size_t size; /* of this struct */
	uint32_t abi_version; /* PEM_EXPORT_ABI_VERSION */
	uint32_t reserved;
	const char *name; /* what follows --to */
	const char *description; /* one line */
	const char *suffix; /* suffix of the default output file, with its dot */
	/*
	 * Write the whole trace, from its start, to path: a new file, which may replace a regular
	 * one, never through a link. '-' is standard output, if the format allows it. pem export
	 * passes it for pipes, devices and links that its user names. options may be NULL. On
	 * failure no file is left at path. Returns 0, or -errno with error set. May block on files.
	 */
	int (*run)(struct pem_trace *trace, const char *path,
		   const struct pem_export_options *options, struct pem_error *error);
	uint32_t takes_other; /* not 0: run reads pem_export_options.other */
	uint32_t takes_amount; /* not 0: run reads pem_export_options.amount */
};

/*
 * Copy the options that run got. given NULL: the copy has the defaults. Returns 0, or -errno with
 * error: the options set members that this exporter does not know. Thread-safe, async-signal-safe
 * without error, does not block.
 */
static inline int pem_export__options(struct pem_export_options *copy,
				      const struct pem_export_options *given,
				      struct pem_error *error)
{
	int result;

	memset(copy, 0, sizeof(*copy));
	copy->size = sizeof(*copy);
	if (!given)
		return 0;
	result = pem_sized__read(copy, sizeof(*copy), given, sizeof(*copy));
	if (result && error)
		snprintf(
			error->text, sizeof(error->text),
			"this exporter does not know all options that it is given; build it again");
	return result;
}

#ifdef __cplusplus
}
#endif
#endif
