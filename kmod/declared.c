// SPDX-License-Identifier: GPL-2.0
/*
 * declared.c - the headers that declare tracepoints, and nothing else: preprocessed only, to see which of the specs'
 * tracepoints this kernel declares (kmod/declared)
 */
#include "compat.h"
#include "pem_kmod_headers.h"
