/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * prototype.h - the C parameters of a tracepoint, as a spec writes them
 */
#ifndef PEM_SOURCES_KERNEL_PROTOTYPE_H
#define PEM_SOURCES_KERNEL_PROTOTYPE_H

#include <stdbool.h>
#include <stdint.h>

enum pem_c_kind {
	PEM_C_VOID,
	PEM_C_INTEGER,
	PEM_C_STRUCT,
	PEM_C_UNION,
	PEM_C_ENUM,
	PEM_C_NAMED, /* named by a typedef */
};

struct pem_c_type {
	enum pem_c_kind kind;
	unsigned pointers; /* number of '*' */
	uint32_t bytes; /* of an integer, on 64-bit Linux */
	bool is_signed;
	char name[64]; /* name of a structure, union, enumeration or typedef */
};

/*
 * Parse the next parameter, such as "const struct sk_buff *skb", and move *text past its comma.
 * Returns 1; 0 if no parameter is left; -EINVAL if the text is not a parameter.
 */
int pem_prototype__next(const char **text, struct pem_c_type *type);

#endif
