// SPDX-License-Identifier: GPL-2.0
/*
 * declared.c - the headers that declare tracepoints, and nothing else: preprocessed only, to see
 * which headers this kernel has and which of the specs' tracepoints they declare (kmod/declared)
 */
#include "tracepoints.h"
#include "pem_kmod_headers.h"
