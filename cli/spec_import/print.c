// SPDX-License-Identifier: MIT
/*
 * print.c - labels from a tracepoint's print format
 *
 * The kernel prints a field by tables in C: __print_symbolic(REC->family, { 2, "AF_INET" }, ...),
 * and __print_flags with bits. Values are small constant expressions. Names in them are enumerators
 * of the kernel, which BTF has. If one value of a table is unknown, the whole table is left out.
 */
#include "btf.h"
#include "labels.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_MAX 1024
#define DEPTH_MAX 32

/* A constant expression during evaluation. */
struct expression {
	struct import_btf *btf;
	const char *at;
	int depth;
	bool bad;
};

static long long evaluate(struct expression *e);

static void skip_blanks(struct expression *e)
{
	while (*e->at == ' ')
		e->at++;
}

/* Skip "( gfp_t)" before a value. It does not change the value. */
static bool skip_cast(struct expression *e)
{
	const char *p = e->at + 1;

	p += strspn(p, " ");
	if (!isalpha((unsigned char)*p) && *p != '_')
		return false;
	while (isalnum((unsigned char)*p) || *p == '_' || *p == ' ')
		p++;
	if (*p != ')' || (p[1] != '(' && p[1] != ' ' && !isalnum((unsigned char)p[1])))
		return false;
	e->at = p + 1;
	return true;
}

static long long enumerator(struct expression *e)
{
	size_t n = strspn(e->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	long long value = 0;
	char name[80];

	if (n == 0 || n >= sizeof(name)) {
		e->bad = true;
		return 0;
	}
	snprintf(name, sizeof(name), "%.*s", (int)n, e->at);
	e->at += n;
	e->bad = e->bad || !import_btf__enumerator(e->btf, name, &value);
	return value;
}

static long long operand(struct expression *e)
{
	long long value;
	char *end;

	skip_blanks(e);
	if (e->depth++ > DEPTH_MAX || *e->at == '\0') {
		e->bad = true;
		return 0;
	}
	if (*e->at == '-' || *e->at == '~') {
		bool minus = *e->at++ == '-';

		value = operand(e);
		return minus ? (long long)-(unsigned long long)value : ~value;
	}
	if (*e->at == '(') {
		if (skip_cast(e))
			return operand(e);
		e->at++;
		value = evaluate(e);
		skip_blanks(e);
		e->bad = e->bad || *e->at != ')';
		e->at += *e->at == ')';
		return value;
	}
	if (!isdigit((unsigned char)*e->at))
		return enumerator(e);
	value = (long long)strtoull(e->at, &end, 0);
	e->at = end + strspn(end, "uUlL");
	return value;
}

/* Evaluate operands with the operators of such tables. Brackets make precedence unnecessary. */
static long long evaluate(struct expression *e)
{
	long long value = operand(e), right;

	while (!e->bad) {
		skip_blanks(e);
		if (e->at[0] == '<' && e->at[1] == '<') {
			e->at += 2;
			right = operand(e);
			e->bad = e->bad || right < 0 || right > 63;
			value = e->bad ? 0 : (long long)((unsigned long long)value << right);
		} else if (*e->at == '|' || *e->at == '+' || *e->at == '-') {
			char sign = *e->at++;

			right = operand(e);
			value = sign == '|'   ? value | right
				: sign == '+' ? (long long)((unsigned long long)value +
							    (unsigned long long)right)
					      : (long long)((unsigned long long)value -
							    (unsigned long long)right);
		} else {
			break;
		}
	}
	return value;
}

/* Does the value fit in the field? */
static bool is_in_range(long long value, size_t size, bool is_signed)
{
	unsigned int bits = (unsigned int)size * 8;

	if (is_signed)
		return bits == 64 || (value >= -(1LL << (bits - 1)) && value < 1LL << (bits - 1));
	return value >= 0 && (bits == 64 || value < 1LL << bits);
}

/*
 * Print the labels of the table that begins after "{". Returns 1: there is at least one; 0: there
 * is none, or one is unknown; -ENOMEM.
 */
static int read_table(struct import_btf *btf, const char *at, bool is_flags, size_t size,
		      bool is_signed, FILE *out)
{
	struct cli_names taken = {0};
	long long values[LABELS_MAX];
	size_t count = 0, i;
	int rc = 0;

	while (rc == 0 && count < LABELS_MAX && *at == '{') {
		struct expression e = {.btf = btf, .at = at + 1};
		long long value = evaluate(&e);
		const char *end;
		char name[64], text[24];

		skip_blanks(&e);
		if (e.bad || *e.at != ',' || !is_in_range(value, size, is_signed))
			break;
		e.at += 1 + strspn(e.at + 1, " ");
		end = *e.at == '"' ? strchr(e.at + 1, '"') : NULL;
		if (end == NULL || end[1 + strspn(end + 1, " ")] != '}')
			break;
		snprintf(name, sizeof(name), "%.*s", (int)(end - e.at - 1), e.at + 1);
		for (i = 0; i < count && values[i] != value; i++)
			;
		if (i == count && !(is_flags && value == 0)) {
			values[count++] = value;
			snprintf(text, sizeof(text), "%lld", value);
			rc = import_put_label(out, &taken, name, text);
		}
		at = strchr(end, '}') + 1;
		at += strspn(at, " ,");
	}
	cli_names__free(&taken);
	return rc < 0 ? rc : *at == ')' && count > 0;
}

/* Find the field's first table: the text after its first "{", and its kind. */
static const char *find_table(const char *format, const char *field, bool *is_flags)
{
	static const char *const calls[] = {"__print_symbolic(", "__print_flags("};
	char record[80];
	const char *at, *text;
	size_t n = (size_t)snprintf(record, sizeof(record), "REC->%s", field);
	int i;

	for (i = 0; i < 2; i++)
		for (at = strstr(format, calls[i]); at != NULL; at = strstr(at, calls[i])) {
			at += strlen(calls[i]);
			text = at;
			if (strncmp(text, "(unsigned long)", 15) == 0)
				text += 15;
			*is_flags = i == 1;
			if (strncmp(text, record, n) != 0 || text[n] != ',')
				continue;
			text = strchr(text, '{');
			if (text != NULL)
				return text;
		}
	return NULL;
}

int import_print_labels(struct import_sets *sets, struct import_btf *btf, const char *format,
			const char *field, size_t size, bool is_signed, char *attribute,
			size_t bytes)
{
	bool is_flags = false;
	const char *table = find_table(format, field, &is_flags), *name;
	const char *element;
	char *labels = NULL;
	size_t length;
	FILE *out;
	int rc;

	*attribute = '\0';
	if (table == NULL)
		return 0;
	out = open_memstream(&labels, &length);
	if (out == NULL)
		return -ENOMEM;
	rc = read_table(btf, table, is_flags, size, is_signed && !is_flags, out);
	if (fclose(out) != 0)
		rc = -ENOMEM;
	if (rc > 0) {
		element = is_flags ? "flags" : "enum";
		name = import_sets__name(sets, element, field, labels);
		rc = name == NULL ? -ENOMEM : 0;
		if (name != NULL)
			snprintf(attribute, bytes, " %s='%s'", element, name);
	}
	free(labels);
	return rc;
}
