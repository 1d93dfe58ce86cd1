/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * parameters.c - parameters of a function and its result: their types, by debug information, and
 * where they lie as the function begins (contract: probing.h)
 *
 * The calling convention holds for functions of C and C++ that callers elsewhere may call, and for
 * all that are not optimized, since these store their parameters first. A compiler may pass them
 * otherwise to a function whose callers it knows all: there it is in the register that debug
 * information has for the first instruction, or it is unknown.
 *
 * Sources: System V ABI for AMD64, 3.2.3; AAPCS64, 6.8.2.
 */
#include "names.h"
#include "probing.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

/* A damaged file's types may refer to each other in circles. */
#define TYPES_MAX 32
#define OTHER_TYPE "its type is not read"

#if defined(__aarch64__)
static const uint16_t argument_registers[] = {0, 1, 2, 3, 4, 5, 6, 7};
#define STACK_POINTER 31
#define FIRST_ON_STACK 0u
#define HAS_RESULT_REGISTER true /* of the address where a large result goes: x8 */
#else
static const uint16_t argument_registers[] = {5, 4, 1, 2, 8, 9};
#define STACK_POINTER 7
#define FIRST_ON_STACK 8u /* after the return address */
#define HAS_RESULT_REGISTER false
#endif
#define ARGUMENT_REGISTERS (sizeof(argument_registers) / sizeof(argument_registers[0]))
#define VECTOR_REGISTERS 8u

/* --- types --- */

/* A type without typedefs and qualifiers. False: it is void, or damaged. */
static bool plain_type(Dwarf_Die *of, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	int i;

	for (i = 0; i < TYPES_MAX; i++) {
		if (!dwarf_attr_integrate(of, DW_AT_type, &attribute) ||
		    !dwarf_formref_die(&attribute, type))
			return false;
		switch (dwarf_tag(type)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			of = type;
			break;
		default:
			return true;
		}
	}
	return false;
}

static uint64_t number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word word;

	if (dwarf_formudata(dwarf_attr_integrate(die, name, &attribute), &word) != 0)
		return 0;
	return word;
}

static bool is_composite(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static bool is_float(Dwarf_Die *type)
{
	uint64_t encoding = number(type, DW_AT_encoding);

	return dwarf_tag(type) == DW_TAG_base_type &&
	       (encoding == DW_ATE_float || encoding == DW_ATE_complex_float ||
		encoding == DW_ATE_imaginary_float || encoding == DW_ATE_decimal_float);
}

static bool is_char(Dwarf_Die *type)
{
	const char *name = dwarf_diename(type);

	return dwarf_tag(type) == DW_TAG_base_type && number(type, DW_AT_byte_size) == 1 &&
	       name != NULL && strcmp(name, "char") == 0;
}

static void set_number(struct pem_parameter *parameter, uint64_t bytes, uint64_t encoding)
{
	parameter->bytes = (uint8_t)bytes;
	parameter->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
		parameter->trouble = OTHER_TYPE;
	switch (encoding) {
	case DW_ATE_signed:
	case DW_ATE_signed_char:
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_boolean:
	case DW_ATE_UTF:
	case DW_ATE_address:
		break;
	default:
		parameter->trouble = OTHER_TYPE;
	}
}

static void set_type(struct pem_parameter *parameter, Dwarf_Die *type)
{
	Dwarf_Die to;

	switch (dwarf_tag(type)) {
	case DW_TAG_base_type:
		set_number(parameter, number(type, DW_AT_byte_size), number(type, DW_AT_encoding));
		if (is_float(type))
			parameter->trouble = "a floating-point number";
		return;
	case DW_TAG_enumeration_type:
		/* Without a type of its numbers it is of a C that has no negative ones. */
		set_number(parameter, number(type, DW_AT_byte_size),
			   plain_type(type, &to) ? number(&to, DW_AT_encoding) : DW_ATE_unsigned);
		return;
	case DW_TAG_pointer_type:
		parameter->kind = plain_type(type, &to) && is_char(&to) ? PEM_PARAMETER_TEXT
									: PEM_PARAMETER_POINTER;
		parameter->bytes = 8;
		return;
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		parameter->kind = PEM_PARAMETER_POINTER;
		parameter->bytes = 8;
		return;
	default:
		parameter->trouble = is_composite(type) ? "a structure" : OTHER_TYPE;
	}
}

/* --- locations --- */

/* How far the calling convention has been followed. */
struct convention {
	bool is_kept; /* the function keeps it */
	bool is_external; /* callers that the compiler does not know need it */
	bool knows_registers, knows_stack; /* up to the next parameter */
	unsigned registers, vectors, stack_words; /* that are taken */
};

enum language { OTHER, C, C_PLUS_PLUS };

static enum language language_of(const struct pem_unit *unit)
{
	Dwarf_Die die = unit->root;

	switch (dwarf_srclang(&die)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case 0x2c: /* C17 */
		return C;
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2a: /* C++17 */
	case 0x2b: /* C++20 */
		return C_PLUS_PLUS;
	default:
		return OTHER;
	}
}

/*
 * A clone's symbol has a point in its name, such as "f.isra.0". clang marks a function whose
 * parameters it changed.
 */
static bool keeps_convention(const struct pem_object *object, const struct pem_unit *unit,
			     Dwarf_Die *die, uint64_t address)
{
	const struct pem_symbol *symbol =
		pem_symbols__find(&object->symbols, address + object->symbol_bias);
	uint64_t calling = number(die, DW_AT_calling_convention);

	return language_of(unit) != OTHER && symbol != NULL &&
	       symbol->start == address + object->symbol_bias &&
	       strchr(symbol->name, '.') == NULL && (calling == 0 || calling == DW_CC_normal);
}

/* A result that is a large structure goes where the first argument points to. */
static void pass_result(struct convention *convention, const struct pem_unit *unit, Dwarf_Die *die)
{
	uint64_t calling;
	Dwarf_Die type;

	if (HAS_RESULT_REGISTER || !plain_type(die, &type) || !is_composite(&type))
		return;
	calling = number(&type, DW_AT_calling_convention);
	if (number(&type, DW_AT_byte_size) > 16 || calling == DW_CC_pass_by_reference)
		convention->registers++;
	else if (calling != DW_CC_pass_by_value && language_of(unit) != C)
		convention->knows_registers = convention->knows_stack = false;
}

/* Pass a parameter by the convention. False: where it lies is unknown. */
static bool pass(struct convention *convention, struct pem_parameter *parameter, Dwarf_Die *type)
{
	if (parameter->trouble == NULL && convention->registers < ARGUMENT_REGISTERS) {
		parameter->in_register = argument_registers[convention->registers++];
		return convention->knows_registers;
	}
	if (parameter->trouble == NULL) {
		parameter->in_register = PEM_PARAMETER_ON_STACK;
		parameter->stack_pointer = STACK_POINTER;
		parameter->stack_bytes = FIRST_ON_STACK + 8 * convention->stack_words++;
		return convention->knows_stack;
	}
	if (is_float(type) && number(type, DW_AT_byte_size) <= 8 &&
	    number(type, DW_AT_encoding) == DW_ATE_float) {
		if (convention->vectors++ >= VECTOR_REGISTERS)
			convention->stack_words++;
		return false;
	}
	/* Others may take any number of registers. */
	convention->knows_registers &= is_float(type);
	convention->knows_stack = false;
	return false;
}

/*
 * Where debug information has a parameter at the function's first instruction. Returns 1: in this
 * register; 0: somewhere in memory, as it is all the time; -1: elsewhere, or nowhere.
 */
static int location_at(Dwarf_Die *die, Dwarf_Addr entry, uint16_t *in_register)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *operations;
	size_t count;

	if (!dwarf_attr(die, DW_AT_location, &attribute) ||
	    dwarf_getlocation_addr(&attribute, entry, &operations, &count, 1) != 1 || count != 1)
		return -1;
	if (operations->atom >= DW_OP_reg0 && operations->atom <= DW_OP_reg31) {
		*in_register = (uint16_t)(operations->atom - DW_OP_reg0);
		return 1;
	}
	if (operations->atom != DW_OP_fbreg &&
	    (operations->atom < DW_OP_breg0 || operations->atom > DW_OP_breg31))
		return -1;
	/* Of a list that depends on the instruction this fails. */
	return dwarf_getlocation(&attribute, &operations, &count) == 0 ? 0 : -1;
}

/* --- functions --- */

/* The function that begins at an address, and was not inlined. NULL: none is known. */
static Dwarf_Die *function_at(struct pem_object *object, uint64_t offset, struct pem_unit **unit,
			      Dwarf_Addr *entry)
{
	uint64_t address = offset + object->symbol_bias - object->debug_bias;
	uint32_t i;

	*unit = pem_units__find(&object->units, address);
	i = *unit != NULL ? pem_spans__find(&(*unit)->spans, address) : PEM_SPAN_NONE;
	while (i != PEM_SPAN_NONE && (*unit)->functions[i].outer != PEM_NO_FUNCTION)
		i = (*unit)->functions[i].outer;
	if (i == PEM_SPAN_NONE || dwarf_entrypc(&(*unit)->functions[i].die, entry) != 0 ||
	    *entry != address)
		return NULL;
	return &(*unit)->functions[i].die;
}

static void describe(struct convention *convention, struct pem_parameter *parameter, Dwarf_Die *die,
		     Dwarf_Addr entry)
{
	uint16_t in_register = 0;
	int location = location_at(die, entry, &in_register);
	const char *name = dwarf_diename(die);
	bool is_passed = false;
	Dwarf_Die type;

	*parameter = (struct pem_parameter){.name = name != NULL ? name : ""};
	if (!plain_type(die, &type)) {
		parameter->trouble = OTHER_TYPE;
		convention->knows_registers = convention->knows_stack = false;
		return;
	}
	set_type(parameter, &type);
	is_passed = pass(convention, parameter, &type);
	if (parameter->trouble != NULL)
		return;
	if (convention->is_kept && is_passed && (convention->is_external || location == 0))
		return;
	parameter->in_register = in_register;
	if (location != 1)
		parameter->trouble = "its location as the function begins is unknown";
}

int pem_object__parameters(struct pem_object *object, uint64_t address, struct pem_parameter *list,
			   unsigned max)
{
	struct convention convention = {.knows_registers = true, .knows_stack = true};
	struct pem_unit *unit;
	Dwarf_Addr entry;
	Dwarf_Die *die = function_at(object, address, &unit, &entry), child;
	bool is_there = die != NULL && pem_die__go(dwarf_child, die, &child);
	unsigned count = 0;

	if (die == NULL)
		return -ENOENT;
	convention.is_kept = keeps_convention(object, unit, die, address);
	convention.is_external = dwarf_hasattr_integrate(die, DW_AT_external) != 0;
	pass_result(&convention, unit, die);
	for (; is_there && count < max; is_there = pem_die__go(dwarf_siblingof, &child, &child)) {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter)
			describe(&convention, &list[count++], &child, entry);
	}
	return (int)count;
}

int pem_object__result(struct pem_object *object, uint64_t address, struct pem_parameter *result)
{
	struct pem_unit *unit;
	Dwarf_Addr entry;
	Dwarf_Die *die = function_at(object, address, &unit, &entry), type;
	Dwarf_Attribute attribute;

	if (die == NULL)
		return -ENOENT;
	if (!dwarf_attr_integrate(die, DW_AT_type, &attribute))
		return 0;
	*result = (struct pem_parameter){.name = "ret"};
	if (plain_type(die, &type))
		set_type(result, &type);
	else
		result->trouble = OTHER_TYPE;
	return 1;
}
