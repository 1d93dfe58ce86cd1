/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probing.h - where probes can be put into an object's code, and where the parameters of a function
 * lie as it begins (parameters.c, instructions.c)
 *
 * Addresses are the object's own, as its symbol table has them. Files are hostile input.
 */
#ifndef PEM_NAMES_PROBING_H
#define PEM_NAMES_PROBING_H

#include <stdbool.h>
#include <stdint.h>

struct pem_object;

enum pem_parameter_kind {
	PEM_PARAMETER_NUMBER, /* an integer, enumeration or boolean */
	PEM_PARAMETER_POINTER,
	PEM_PARAMETER_TEXT, /* a pointer to char */
};

#define PEM_PARAMETER_ON_STACK 0xffffu

/* A parameter of a function, or its result. */
struct pem_parameter {
	const char *name; /* until the object is closed; "": it has none */
	/* Why the value can't be read, such as "a structure". NULL: it can be. */
	const char *trouble;
	uint8_t kind; /* enum pem_parameter_kind */
	uint8_t bytes; /* 1, 2, 4 or 8 */
	bool is_signed;
	/*
	 * DWARF's number of the register that holds a parameter, or PEM_PARAMETER_ON_STACK: then it
	 * lies stack_bytes above the stack pointer, whose number is stack_pointer. A result is
	 * where results are.
	 */
	uint16_t in_register, stack_pointer;
	uint32_t stack_bytes;
};

/*
 * The parameters of the function whose first instruction is at an address, by debug information. At
 * most max are written. Returns their count, or -ENOENT: debug information has no function there.
 */
int pem_object__parameters(struct pem_object *object, uint64_t address, struct pem_parameter *list,
			   unsigned max);
/* The same for its result. Returns 1; 0: it has none; or -ENOENT. */
int pem_object__result(struct pem_object *object, uint64_t address, struct pem_parameter *result);

/*
 * Does an instruction begin at an address, which lies in code? Returns 1; 0: the address is within
 * an instruction; -ENOTSUP: that can't be told. is_function: whether a function begins there, as
 * far as is known. The file is decoded from the nearest place before where one is known to begin.
 */
int pem_object__begins(struct pem_object *object, uint64_t address, bool *is_function);

/* The debug file that is used besides the object's own; NULL: there is none. */
const char *pem_object__debug_path(const struct pem_object *object);

#endif
