// SPDX-License-Identifier: GPL-2.0-only
/*
 * declared.c - includes only the headers that declare tracepoints
 *
 * It is preprocessed but not compiled. kmod/declared reads the result to see which headers this
 * kernel has, and which of the specs' tracepoints they declare.
 */
#include "tracepoints.h"
#include "pem_kmod_headers.h"
