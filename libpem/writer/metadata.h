/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* metadata.h - the CTF metadata of a trace: a frame, and the events' declarations from the model */
#ifndef PEM_METADATA_H
#define PEM_METADATA_H

#include <pem/trace.h>

struct pem_model;

/* Return the metadata as TSDL 1.8 text; the caller frees it. NULL with errno. */
char *pem_metadata__text(const struct pem_model *model, const struct pem_trace_info *info,
			 const uint8_t uuid[16]);

#endif
