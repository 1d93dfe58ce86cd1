// SPDX-License-Identifier: GPL-2.0
/*
 * probes.c - the generated probes, compiled and checked against this kernel's tracepoints
 *
 * The compiler checks each probe's parameters against the tracepoint's own, if the kernel's headers declare it. This
 * module registers no probe and makes no session.
 */
#include "pem_kmod.h"

#include <linux/module.h>

#include "pem_kmod_headers.h"
#include "pem_kmod_checks.h"

#include "pem_kmod_events.h"

MODULE_DESCRIPTION("Performance and Environment Monitoring: probes of tracepoints");
MODULE_LICENSE("GPL");
