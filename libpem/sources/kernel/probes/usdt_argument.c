/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * usdt_argument.c - finds argument locations of a static probe in the text of its note, and
 * registers
 *
 *	x86	-4@%eax  8@-16(%rbp)  8@(%rax,%rbx,8)  8@16(,%rax,8)  4@$5  4@8+name(%rip)
 *	arm64	-4@x0    8@[sp, 96]   8@[x0]           8@[x1, x2]     4@5    4@[x1, w2, sxtw 2]
 *
 * SIZE@PLACE: the size in bytes, with a '-' if it is signed. Floating-point numbers ("8f@%xmm0")
 * are in registers that a program does not get. The text is hostile input.
 */
#include "elf_probes.h"
#include "probes.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/ptrace.h>
#include <asm/ptrace.h>

struct named_register {
	const char *name;
	uint16_t offset;
};

#if defined(__x86_64__)
#define REGISTER(field) offsetof(struct pt_regs, field)
static const struct named_register registers[] = {
	{"rax", REGISTER(rax)}, {"eax", REGISTER(rax)}, {"ax", REGISTER(rax)},
	{"al", REGISTER(rax)},  {"rbx", REGISTER(rbx)}, {"ebx", REGISTER(rbx)},
	{"bx", REGISTER(rbx)},  {"bl", REGISTER(rbx)},  {"rcx", REGISTER(rcx)},
	{"ecx", REGISTER(rcx)}, {"cx", REGISTER(rcx)},  {"cl", REGISTER(rcx)},
	{"rdx", REGISTER(rdx)}, {"edx", REGISTER(rdx)}, {"dx", REGISTER(rdx)},
	{"dl", REGISTER(rdx)},  {"rsi", REGISTER(rsi)}, {"esi", REGISTER(rsi)},
	{"si", REGISTER(rsi)},  {"sil", REGISTER(rsi)}, {"rdi", REGISTER(rdi)},
	{"edi", REGISTER(rdi)}, {"di", REGISTER(rdi)},  {"dil", REGISTER(rdi)},
	{"rbp", REGISTER(rbp)}, {"ebp", REGISTER(rbp)}, {"bp", REGISTER(rbp)},
	{"bpl", REGISTER(rbp)}, {"rsp", REGISTER(rsp)}, {"esp", REGISTER(rsp)},
	{"sp", REGISTER(rsp)},  {"spl", REGISTER(rsp)}, {"rip", REGISTER(rip)},
	{"r8", REGISTER(r8)},   {"r9", REGISTER(r9)},   {"r10", REGISTER(r10)},
	{"r11", REGISTER(r11)}, {"r12", REGISTER(r12)}, {"r13", REGISTER(r13)},
	{"r14", REGISTER(r14)}, {"r15", REGISTER(r15)},
};
static const uint16_t by_convention[] = {REGISTER(rdi), REGISTER(rsi), REGISTER(rdx),
					 REGISTER(rcx), REGISTER(r8),  REGISTER(r9)};
static const uint16_t result = REGISTER(rax);
#elif defined(__aarch64__)
/* struct user_pt_regs: 31 registers, sp, pc. The kernel's own structure begins with it. */
static const struct named_register registers[] = {{"sp", 31 * 8}, {"pc", 32 * 8}};
static const uint16_t by_convention[] = {0, 8, 16, 24, 32, 40, 48, 56};
static const uint16_t result = 0;
#else
static const struct named_register registers[] = {{"", PEM_LOCATION_NO_REGISTER}};
static const uint16_t by_convention[] = {PEM_LOCATION_NO_REGISTER};
static const uint16_t result = PEM_LOCATION_NO_REGISTER;
#endif
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#if defined(__x86_64__)
/* "r8d", "r8w", "r8b" */
static uint16_t numbered_register(const char *name, size_t bytes)
{
	return bytes >= 3 && name[0] == 'r' && isdigit((unsigned char)name[1]) &&
			       (name[bytes - 1] == 'd' || name[bytes - 1] == 'w' ||
				name[bytes - 1] == 'b')
		       ? pem_register__offset(name, bytes - 1)
		       : PEM_LOCATION_NO_REGISTER;
}
#else
/* "x0" to "x30", "w0" to "w30" */
static uint16_t numbered_register(const char *name, size_t bytes)
{
	unsigned n = 0;
	size_t i;

	if (bytes < 2 || bytes > 3 || (name[0] != 'x' && name[0] != 'w'))
		return PEM_LOCATION_NO_REGISTER;
	for (i = 1; i < bytes; i++) {
		if (!isdigit((unsigned char)name[i]))
			return PEM_LOCATION_NO_REGISTER;
		n = n * 10 + (unsigned)(name[i] - '0');
	}
	return n <= 30 ? (uint16_t)(n * 8) : PEM_LOCATION_NO_REGISTER;
}
#endif

uint16_t pem_register__offset(const char *name, size_t bytes)
{
	size_t i;

	for (i = 0; i < COUNT(registers); i++) {
		if (strlen(registers[i].name) == bytes && !memcmp(registers[i].name, name, bytes))
			return registers[i].offset;
	}
	return numbered_register(name, bytes);
}

uint16_t pem_register__argument(unsigned n)
{
	return n < COUNT(by_convention) ? by_convention[n] : PEM_LOCATION_NO_REGISTER;
}

uint16_t pem_register__result(void)
{
	return result;
}

/* --- arguments --- */

/* Parse a register, with or without '%'. False: there is no known register. */
static bool take_register(const char **text, uint16_t *offset)
{
	const char *name = *text + (**text == '%'), *end = name;

	while (isalnum((unsigned char)*end))
		end++;
	*offset = end > name ? pem_register__offset(name, (size_t)(end - name))
			     : PEM_LOCATION_NO_REGISTER;
	if (*offset == PEM_LOCATION_NO_REGISTER)
		return false;
	*text = end;
	return true;
}

static bool take_number(const char **text, int64_t *number)
{
	char *end;

	if (**text != '-' && !isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*number = strtoll(*text, &end, 0);
	if (errno || end == *text)
		return false;
	*text = end;
	return true;
}

static void skip_blanks(const char **text)
{
	while (**text == ' ')
		(*text)++;
}

static bool take_word(const char **text, const char *word)
{
	size_t bytes = strlen(word);

	if (strncmp(*text, word, bytes) != 0)
		return false;
	*text += bytes;
	return true;
}

/* Parse "(%rax,%rbx,8)", "(%rax)", "(,%rax,8)" after an offset. */
static bool take_bracket(const char **text, struct pem_argument_location *location)
{
	int64_t scale = 1;

	(*text)++;
	if (**text != ',' && !take_register(text, &location->offset))
		return false;
	if (**text == ',') {
		(*text)++;
		if (!take_register(text, &location->index_offset))
			return false;
		if (**text == ',') {
			(*text)++;
			if (!take_number(text, &scale))
				return false;
		}
	}
	if ((scale != 1 && scale != 2 && scale != 4 && scale != 8) || **text != ')')
		return false;
	location->shift = (uint8_t)__builtin_ctzll((unsigned long long)scale);
	(*text)++;
	return true;
}

/* Parse after an index: ", lsl 3", ", sxtw 2", ", uxtw", or nothing. */
static bool take_scale(const char **text, struct pem_argument_location *location)
{
	int64_t shift = 0;

	if (**text != ',')
		return true;
	(*text)++;
	skip_blanks(text);
	if (take_word(text, "sxtw"))
		location->index = PEM_INDEX_SIGNED_WORD;
	else if (take_word(text, "uxtw"))
		location->index = PEM_INDEX_WORD;
	else if (!take_word(text, "lsl"))
		return false;
	skip_blanks(text);
	if (**text != ']' && !take_number(text, &shift))
		return false;
	location->shift = (uint8_t)shift;
	return shift >= 0 && shift <= 3;
}

/* "[sp, 96]", "[x0]", "[x1, x2]", "[x1, w2, sxtw 2]" */
static bool take_square(const char **text, struct pem_argument_location *location)
{
	(*text)++;
	if (!take_register(text, &location->offset))
		return false;
	if (**text == ',') {
		(*text)++;
		skip_blanks(text);
		if (!take_number(text, &location->constant) &&
		    (!take_register(text, &location->index_offset) || !take_scale(text, location)))
			return false;
	}
	if (**text != ']')
		return false;
	(*text)++;
	return true;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Parse "name(%rip)", "name+8(%rip)"; of "8+name(%rip)" the part after the plus. */
static bool take_relative(const char **text, struct pem_usdt_argument *argument)
{
	const char *name = *text, *at = name;
	int64_t more = 0;

	while (is_name(*at))
		at++;
	argument->symbol_bytes = (size_t)(at - name);
	if (*at == '+') {
		at++;
		if (!take_number(&at, &more))
			return false;
	} else if (*at == '-' && !take_number(&at, &more)) {
		return false;
	}
	if (!argument->symbol_bytes || strncmp(at, "(%rip)", 6) != 0 ||
	    __builtin_add_overflow(argument->location.constant, more, &argument->location.constant))
		return false;
	argument->location.offset = pem_register__offset("rip", 3);
	argument->symbol = name;
	*text = at + 6;
	return argument->location.offset != PEM_LOCATION_NO_REGISTER;
}

static bool take_location(const char **text, struct pem_usdt_argument *argument)
{
	struct pem_argument_location *location = &argument->location;
	uint16_t offset;

	*location = (struct pem_argument_location){.kind = PEM_LOCATION_USER,
						   .offset = PEM_LOCATION_NO_REGISTER,
						   .index_offset = PEM_LOCATION_NO_REGISTER};
	if (**text == '$') {
		(*text)++;
		location->kind = PEM_LOCATION_CONSTANT;
		return take_number(text, &location->constant);
	}
	if (**text == '[')
		return take_square(text, location);
	if (**text == '(')
		return take_bracket(text, location);
	if (take_number(text, &location->constant)) {
		/* the address counts from the next instruction, which is unknown */
		if (!strncmp(*text, "(%rip", 5))
			return false;
		if (**text == '(')
			return take_bracket(text, location);
		if (**text == '+') {
			(*text)++;
			return take_relative(text, argument);
		}
		location->kind = PEM_LOCATION_CONSTANT; /* arm64 has no mark for a constant */
		return true;
	}
	if (**text != '%' && strstr(*text, "(%rip)"))
		return take_relative(text, argument);
	if (!take_register(text, &offset))
		return false;
	location->kind = PEM_LOCATION_CONTEXT;
	location->offset = offset;
	return true;
}

int pem_usdt_argument__next(const char **text, struct pem_usdt_argument *argument)
{
	struct pem_usdt_value value;
	uint8_t bytes;

	if (!pem_usdt_value__next(text, &value))
		return 0;
	memset(argument, 0, sizeof(*argument));
	bytes = value.bytes;
	if (value.is_float || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) ||
	    !take_location(&value.location, argument) || value.location != value.end)
		return -EINVAL;
	argument->is_signed = value.is_signed;
	argument->bytes = bytes;
	argument->location.bytes = argument->bytes;
	argument->location.is_signed = argument->is_signed;
	argument->location.load_bytes =
		argument->location.kind == PEM_LOCATION_USER ? argument->bytes : 8;
	return 1;
}

bool pem_usdt_arguments__same(const struct pem_probe_site *a, const struct pem_probe_site *b)
{
	return !memcmp(a->arguments, b->arguments, sizeof(a->arguments));
}
