// SPDX-License-Identifier: MIT
/* json.c - pem db: rows to and from JSON, by the columns of their tables */
#include "db.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

void db_row__begin(struct db_row *row, const struct pem_db_layout *layout)
{
	memset(row, 0, sizeof(*row));
	memcpy(row->bytes, &layout->row_bytes, sizeof(layout->row_bytes));
}

int64_t db_row__id(const void *row)
{
	int64_t id;

	memcpy(&id, (const uint8_t *)row + sizeof(size_t), sizeof(id));
	return id;
}

int64_t db_row__integer(const void *row, const struct pem_db_column *column)
{
	int64_t value;

	memcpy(&value, (const uint8_t *)row + column->offset, sizeof(value));
	return value;
}

void db_row__set_integer(void *row, const struct pem_db_column *column, int64_t value)
{
	memcpy((uint8_t *)row + column->offset, &value, sizeof(value));
}

double db_row__real(const void *row, const struct pem_db_column *column)
{
	double value;

	memcpy(&value, (const uint8_t *)row + column->offset, sizeof(value));
	return value;
}

enum pem_db_table db_table_of(const char *name)
{
	enum pem_db_table table;

	for (table = 1; table <= PEM_DB_TABLES; table++)
		if (strcmp(pem_database__layout(table)->name, name) == 0)
			return table;
	return 0;
}

struct json_object *db_json__of_row(const struct pem_db_layout *layout, const void *row)
{
	struct json_object *object = json_object_new_object();
	size_t i;

	json_object_object_add(object, "id", json_object_new_int64(db_row__id(row)));
	for (i = 0; i < layout->column_count; i++) {
		const struct pem_db_column *column = &layout->columns[i];
		struct json_object *value;

		if (column->type == PEM_DB_TEXT)
			value = json_object_new_string((const char *)row + column->offset);
		else if (column->type == PEM_DB_REAL)
			value = json_object_new_double(db_row__real(row, column));
		else if (column->labels != 0)
			value = json_object_new_string(column->label[db_row__integer(row, column)]);
		else
			value = json_object_new_int64(db_row__integer(row, column));
		json_object_object_add(object, column->name, value);
	}
	return object;
}

static int take_label(const struct pem_db_column *column, const char *word, void *row)
{
	uint32_t i;

	for (i = 0; i < column->labels; i++)
		if (strcmp(column->label[i], word) == 0) {
			db_row__set_integer(row, column, i);
			return 0;
		}
	return -EINVAL;
}

/* Put a JSON value into a row. -EINVAL: it has another type, or does not fit. */
static int take_value(const struct pem_db_column *column, struct json_object *value, void *row)
{
	enum json_type type = json_object_get_type(value);
	double real;

	if (column->labels != 0)
		return type == json_type_string
			       ? take_label(column, json_object_get_string(value), row)
			       : -EINVAL;
	switch (column->type) {
	case PEM_DB_TEXT:
		if (type != json_type_string ||
		    strlen(json_object_get_string(value)) !=
			    (size_t)json_object_get_string_len(value) ||
		    (size_t)json_object_get_string_len(value) >= column->bytes)
			return -EINVAL;
		strcpy((char *)row + column->offset, json_object_get_string(value));
		return 0;
	case PEM_DB_REAL:
		if (type != json_type_double && type != json_type_int)
			return -EINVAL;
		real = json_object_get_double(value);
		memcpy((uint8_t *)row + column->offset, &real, sizeof(real));
		return 0;
	default:
		/* json-c cuts a number that is below INT64_MIN or, as int64, above INT64_MAX. */
		if (type != json_type_int || json_object_get_int64(value) == INT64_MIN ||
		    (json_object_get_int64(value) == INT64_MAX &&
		     json_object_get_uint64(value) != INT64_MAX))
			return -EINVAL;
		db_row__set_integer(row, column, json_object_get_int64(value));
		return 0;
	}
}

int db_json__to_row(const struct pem_db_layout *layout, struct json_object *object,
		    struct db_row *row, struct pem_error *error)
{
	struct json_object *value;
	size_t i;
	int64_t id;

	db_row__begin(row, layout);
	if (!json_object_object_get_ex(object, "id", &value) ||
	    json_object_get_type(value) != json_type_int) {
		snprintf(error->text, sizeof(error->text), "it has no id");
		return -EINVAL;
	}
	id = json_object_get_int64(value);
	memcpy(row->bytes + sizeof(size_t), &id, sizeof(id));
	for (i = 0; i < layout->column_count; i++) {
		const struct pem_db_column *column = &layout->columns[i];

		if (!json_object_object_get_ex(object, column->name, &value) ||
		    take_value(column, value, row->bytes) < 0) {
			snprintf(error->text, sizeof(error->text),
				 "'%s' is missing, or no %s that a %s can have", column->name,
				 column->labels != 0           ? "word"
				 : column->type == PEM_DB_TEXT ? "text"
							       : "number",
				 layout->name);
			return -EINVAL;
		}
	}
	/* "table" and "id", too. */
	if ((size_t)json_object_object_length(object) != layout->column_count + 2) {
		snprintf(error->text, sizeof(error->text),
			 "it has other members than those of a %s: a newer pem wrote it",
			 layout->name);
		return -EINVAL;
	}
	return 0;
}
