/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export.h - the plugin interface of exporters
 *
 * An exporter is a shared object 'export-NAME.so' in the plugin folder (PEM_PLUGIN_PATH, else LIBDIR/pem), which
 * defines one symbol: const struct pem_exporter pem_exporter.
 */
#ifndef PEM_EXPORT_H
#define PEM_EXPORT_H

#include <pem/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEM_EXPORT_ABI_VERSION 1u

struct pem_export_options {
	size_t size; /* of this struct, for growth */
	const char *title; /* for people; may be NULL */
	/* Called now and then on long work, from the caller's thread; may be NULL. done and total in records. */
	void (*progress)(uint64_t done, uint64_t total, void *arg);
	void *progress_arg;
};

struct pem_exporter {
	uint32_t abi_version;
	uint32_t size; /* of this struct */
	const char *name; /* what follows --to */
	const char *description; /* one line */
	const char *suffix; /* of the default output file, with its dot */
	/*
	 * Write the whole trace, from its start, to path ('-': standard output where that makes sense). On failure
	 * nothing is left at path. 0, or -errno with error set. May block on files.
	 */
	int (*run)(struct pem_trace *trace, const char *path,
		   const struct pem_export_options *options, struct pem_error *error);
};

#ifdef __cplusplus
}
#endif
#endif
