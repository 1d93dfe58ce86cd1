/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * object.c - the bytes of the BPF object inside the plugin, so that no file and no tool is needed
 * at run time
 *
 * The object itself is GPL-2.0 (kmod/bpf) and runs only in the kernel. Here it is data.
 */
#include "base.h"

#ifndef PEM_BPF_OBJECT
#error "PEM_BPF_OBJECT is the path of kmod/bpf's object, given by build.mk"
#endif

/* clang-format off */
__asm__(".section .rodata.pem_kernel_object, \"a\"\n"
	".balign 16\n"
	".globl pem_kernel_object\n"
	".hidden pem_kernel_object\n"
	"pem_kernel_object:\n"
	".incbin \"" PEM_BPF_OBJECT "\"\n"
	".globl pem_kernel_object_end\n"
	".hidden pem_kernel_object_end\n"
	"pem_kernel_object_end:\n"
	".previous\n");
/* clang-format on */
