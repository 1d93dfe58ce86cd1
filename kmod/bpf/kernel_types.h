/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel_types.h - the members of kernel structures that specs name, relocated at load time (CO-RE)
 *
 * The structures are not complete: libbpf finds where each member lies in the running kernel. If
 * the `from` of a spec names another member, add the member here, in the header of its subsystem. A
 * structure that is only pointed to needs no declaration. A type that is passed by value does.
 */
#ifndef PEM_KERNEL_TYPES_H
#define PEM_KERNEL_TYPES_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#include "types_base.h"

#include "types_block.h"
#include "types_mem.h"
#include "types_net.h"
#include "types_task.h"

#pragma clang attribute pop

#endif
