/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * parameters.c - the fields of a function in a binary: its parameters and result by debug
 * information, else the registers that may hold them
 *
 * Not here: reading debug information (names/parameters.c).
 */
#define _GNU_SOURCE
#include "probes.h"

#include "names/probing.h"
#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TROUBLE_BYTES 240

static int add_register(struct pem_probe *probe, const char *name, uint16_t offset)
{
	struct pem_probe_field *field = pem_probe__add_field(probe, name);

	if (!field)
		return -ENOMEM;
	pem_probe_field__set_number(field, 8, false);
	field->base = 16;
	field->location.kind = PEM_LOCATION_CONTEXT;
	field->location.load_bytes = 8;
	field->location.offset = offset;
	return 0;
}

int pem_probe__add_registers(struct pem_probe *probe)
{
	char name[16];
	unsigned i;
	int rc = 0;

	if (probe->kind == PEM_PROBE_URETPROBE)
		return add_register(probe, "ret", pem_register__result());
	for (i = 0; i < PEM_PROBE_REGISTERS && !rc; i++) {
		snprintf(name, sizeof(name), "arg%u", i);
		rc = add_register(probe, name, pem_register__argument(i));
	}
	return rc;
}

/* Where the kernel stores a register that DWARF has numbered. */
static uint16_t offset_of(unsigned number)
{
#if defined(__aarch64__)
	char name[8];

	snprintf(name, sizeof(name), number == 31 ? "sp" : "x%u", number);
	return pem_register__offset(name, strlen(name));
#else
	static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
					    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

	return number < PEM_ARRAY_SIZE(names)
		       ? pem_register__offset(names[number], strlen(names[number]))
		       : PEM_LOCATION_NO_REGISTER;
#endif
}

/* Set where a parameter or result is. False: programs do not get that register. */
static bool set_location(struct pem_argument_location *location, const struct pem_probe *probe,
			 const struct pem_parameter *parameter)
{
	bool on_stack = parameter->in_register == PEM_PARAMETER_ON_STACK;

	location->kind = on_stack ? PEM_LOCATION_USER : PEM_LOCATION_CONTEXT;
	location->load_bytes = on_stack ? parameter->bytes : 8;
	location->bytes = parameter->bytes;
	location->is_signed = parameter->is_signed;
	location->index_offset = PEM_LOCATION_NO_REGISTER;
	location->constant = on_stack ? parameter->stack_bytes : 0;
	location->offset =
		probe->kind == PEM_PROBE_URETPROBE
			? pem_register__result()
			: offset_of(on_stack ? parameter->stack_pointer : parameter->in_register);
	return location->offset != PEM_LOCATION_NO_REGISTER;
}

static int add_field(struct pem_probe *probe, const struct pem_parameter *parameter,
		     const char *name)
{
	struct pem_probe_field *field = pem_probe__add_field(probe, name);

	if (!field)
		return -ENOMEM;
	pem_probe_field__set_number(field, parameter->bytes, parameter->is_signed);
	if (parameter->kind == PEM_PARAMETER_POINTER) {
		field->type = PEM_TYPE_ADDRESS;
		field->base = 16;
	} else if (parameter->kind == PEM_PARAMETER_TEXT) {
		field->type = PEM_TYPE_STRING;
		field->is_user_string = true;
		field->max_count = PEM_PROBE_STRING_BYTES;
	}
	if (set_location(&field->location, probe, parameter))
		return 0;
	probe->field_count--;
	return -ENXIO;
}

/* Add "NAME (TROUBLE)" to a text that may be full. */
static void append_trouble(char text[TROUBLE_BYTES], const char *name, const char *trouble)
{
	size_t used = strlen(text);

	snprintf(text + used, TROUBLE_BYTES - used, "%s%.48s (%s)", used ? ", " : "", name,
		 trouble);
}

int pem_probe__add_parameters(struct pem_probe *probe, struct pem_object *object, uint64_t address)
{
	struct pem_parameter parameters[PEM_PROBE_FIELDS_MAX], *its;
	char trouble[TROUBLE_BYTES] = "", unnamed[16];
	const char *name, *why;
	int i, count, rc;

	count = probe->kind == PEM_PROBE_URETPROBE
			? pem_object__result(object, address, parameters)
			: pem_object__parameters(object, address, parameters, PEM_PROBE_FIELDS_MAX);
	if (count < 0)
		return pem_probe__add_registers(probe);
	for (i = 0; i < count; i++) {
		its = &parameters[i];
		snprintf(unnamed, sizeof(unnamed), "arg%d", i);
		name = *its->name ? its->name : unnamed;
		why = its->trouble;
		rc = why ? 0 : add_field(probe, its, name);
		if (rc == -ENXIO)
			why = "its register is not given to programs";
		else if (rc)
			return rc;
		if (why)
			append_trouble(trouble, name, why);
	}
	pem_printable(trouble);
	probe->trouble = *trouble ? strdup(trouble) : NULL;
	return *trouble && !probe->trouble ? -ENOMEM : 0;
}

static bool same_location(const struct pem_argument_location *a,
			  const struct pem_argument_location *b)
{
	return a->kind == b->kind && a->bytes == b->bytes && a->is_signed == b->is_signed &&
	       a->offset == b->offset && a->constant == b->constant;
}

bool pem_probe__has_fields_of(const struct pem_probe *a, const struct pem_probe *b)
{
	unsigned i;

	for (i = 0; i < a->field_count && i < b->field_count; i++) {
		if (strcmp(a->fields[i].name, b->fields[i].name) != 0 ||
		    a->fields[i].type != b->fields[i].type ||
		    !same_location(&a->fields[i].location, &b->fields[i].location))
			return false;
	}
	return a->field_count == b->field_count;
}
