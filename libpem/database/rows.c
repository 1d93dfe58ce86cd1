/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* rows.c - rows to and from values, both ways checked: what is in a database is not trusted */
#include "connection.h"
#include "text.h"

#include <pem/sized.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Is a text of at most bytes bytes, with its NUL, fit to be kept and shown? */
static bool is_fit(const char *text, size_t bytes)
{
	size_t at = 0;
	unsigned n;

	while (at < bytes && text[at] != '\0') {
		n = pem_utf8_bytes(text + at, bytes - at);
		if (n == 0 || (n == 1 && ((uint8_t)text[at] < 0x20 || text[at] == 0x7f)) ||
		    (n == 2 && (uint8_t)text[at] == 0xc2 && (uint8_t)text[at + 1] < 0xa0))
			return false;
		at += n;
	}
	return at < bytes;
}

/* Is a value one that its column may have? Says of which table and column if not. */
static int check(const struct pem_db_layout *layout, const struct pem_db_column *column,
		 const struct pem_db_value *value, int code, struct pem_error *error)
{
	if (column->type == PEM_DB_TEXT && !is_fit(value->text, column->bytes))
		return pem_db__fail(error, code,
				    "%s.%s is no UTF-8 of less than %u bytes without control "
				    "characters",
				    layout->name, column->name, column->bytes);
	if (column->type == PEM_DB_TEXT && column->is_key && *value->text == '\0')
		return pem_db__fail(error, code, "%s.%s is part of the key, and empty",
				    layout->name, column->name);
	if (column->type == PEM_DB_REAL && !isfinite(value->real))
		return pem_db__fail(error, code, "%s.%s is not finite", layout->name, column->name);
	if (column->references && value->integer <= 0)
		return pem_db__fail(error, code,
				    "%s.%s is %" PRId64 ": it has to be a row's number",
				    layout->name, column->name, value->integer);
	if (column->labels && (value->integer < 0 || value->integer >= column->labels))
		return pem_db__fail(error, code, "%s.%s is %" PRId64 ": it has to be 0 to %u",
				    layout->name, column->name, value->integer, column->labels - 1);
	return 0;
}

int pem_db__to_values(const struct pem_db_layout *layout, const void *row, void *copy,
		      struct pem_db_value *values, struct pem_error *error)
{
	const struct pem_db_column *column;
	const uint8_t *member;
	size_t i;
	int rc = pem_sized__read(copy, layout->row_bytes, row, layout->row_bytes);

	if (rc)
		return pem_db__fail(error, rc, "a row of %s has a size that no version of it has",
				    layout->name);
	for (i = 0; i < layout->column_count; i++) {
		column = &layout->columns[i];
		member = (const uint8_t *)copy + column->offset;
		values[i] = (struct pem_db_value){.type = (enum pem_db_type)column->type};
		if (column->type == PEM_DB_INTEGER)
			memcpy(&values[i].integer, member, sizeof(values[i].integer));
		else if (column->type == PEM_DB_REAL)
			memcpy(&values[i].real, member, sizeof(values[i].real));
		else
			values[i].text = (const char *)member;
		rc = check(layout, column, &values[i], -EINVAL, error);
		if (rc)
			return rc;
	}
	return 0;
}

int pem_db__check_texts(const struct pem_db_layout *layout, const void *row,
			struct pem_error *error)
{
	const struct pem_db_column *column;
	size_t i;

	for (i = 0; i < layout->column_count; i++) {
		column = &layout->columns[i];
		if (column->type == PEM_DB_TEXT &&
		    !is_fit((const char *)row + column->offset, column->bytes))
			return pem_db__fail(error, -EINVAL,
					    "%s.%s to search for is no UTF-8 of less than %u bytes "
					    "without control characters",
					    layout->name, column->name, column->bytes);
	}
	return 0;
}

/* A value as a column's type. False: it is not one. */
static bool convert(const struct pem_db_value *from, enum pem_db_type type, struct pem_db_value *to)
{
	char *end;

	*to = *from;
	if (from->type == type)
		return true;
	to->type = type;
	if (type == PEM_DB_REAL && from->type == PEM_DB_INTEGER) {
		to->real = (double)from->integer;
		return true;
	}
	if (from->type != PEM_DB_TEXT || *from->text == '\0' || type == PEM_DB_TEXT)
		return false;
	errno = 0;
	if (type == PEM_DB_INTEGER)
		to->integer = strtoll(from->text, &end, 10);
	else
		to->real = strtod(from->text, &end);
	return *end == '\0' && (errno == 0 || type == PEM_DB_REAL);
}

int pem_db__to_row(const struct pem_db_layout *layout, const struct pem_db_value *values,
		   size_t count, void *row, struct pem_error *error)
{
	const struct pem_db_column *column;
	struct pem_db_value value;
	uint8_t *member;
	size_t i;
	int rc;

	memset(row, 0, layout->row_bytes);
	if (count != layout->column_count + 1 || !convert(values, PEM_DB_INTEGER, &value))
		return pem_db__fail(error, -EBADMSG, "a row of %s has other columns than pem's",
				    layout->name);
	memcpy(row, &layout->row_bytes, sizeof(layout->row_bytes));
	memcpy((uint8_t *)row + sizeof(size_t), &value.integer, sizeof(value.integer));
	for (i = 0; i < layout->column_count; i++) {
		column = &layout->columns[i];
		member = (uint8_t *)row + column->offset;
		if (!convert(&values[i + 1], (enum pem_db_type)column->type, &value))
			return pem_db__fail(error, -EBADMSG, "%s.%s has a value of another type",
					    layout->name, column->name);
		rc = check(layout, column, &value, -EBADMSG, error);
		if (rc)
			return rc;
		if (column->type == PEM_DB_INTEGER)
			memcpy(member, &value.integer, sizeof(value.integer));
		else if (column->type == PEM_DB_REAL)
			memcpy(member, &value.real, sizeof(value.real));
		else
			strcpy((char *)member, value.text);
	}
	return 0;
}
