/* SPDX-License-Identifier: MIT */
/* condition.c - which configurations are allowed, and which settings mean something in them */
#include "condition.h"

#include "grow.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation { IS_ON, EQUAL, DIFFERS, LESS, AT_MOST, GREATER, AT_LEAST };

/* One comparison. */
struct term {
	bool negated;
	bool starts_alternative; /* 'or' stands before it */
	enum operation operation;
	uint32_t left;
	bool right_is_parameter;
	uint32_t right;
	char value[128]; /* if it is not a parameter */
};

struct settings_condition {
	struct term *terms;
	size_t count, capacity;
};

struct reading {
	const char *text, *at;
	const struct pem_explore_space *space;
	struct pem_error *error;
};

static bool refuse(struct reading *reading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool refuse(struct reading *reading, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reading->error->text, sizeof(reading->error->text), format, args);
	va_end(args);
	return false;
}

static void skip_spaces(struct reading *reading)
{
	reading->at += strspn(reading->at, " \t\r\n");
}

/* Read a name or a value; false: there is none. */
static bool read_word(struct reading *reading, char *word, size_t bytes, const char *what)
{
	size_t n;

	skip_spaces(reading);
	n = strcspn(reading->at, " \t\r\n=!<>()");
	if (!n)
		return refuse(reading, "expected %s here, and not '%.20s'", what, reading->at);
	if (n >= bytes)
		return refuse(reading, "'%.20s...' is too long", reading->at);
	memcpy(word, reading->at, n);
	word[n] = '\0';
	reading->at += n;
	return true;
}

static bool find_parameter(const struct pem_explore_space *space, const char *name, uint32_t *found)
{
	for (*found = 0; *found < space->parameter_count; ++*found) {
		if (!strcmp(space->parameters[*found].name, name))
			return true;
	}
	return false;
}

static enum operation read_operation(struct reading *reading)
{
	static const struct {
		const char *text;
		enum operation operation;
	} all[] = {{"==", EQUAL},    {"=", EQUAL}, {"!=", DIFFERS}, {"<=", AT_MOST},
		   {">=", AT_LEAST}, {"<", LESS},  {">", GREATER}};
	size_t i;

	skip_spaces(reading);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!strncmp(reading->at, all[i].text, strlen(all[i].text))) {
			reading->at += strlen(all[i].text);
			return all[i].operation;
		}
	}
	return IS_ON;
}

static bool as_number(const char *text, double *number)
{
	char *end;

	*number = strtod(text, &end);
	return end != text && !*end;
}

/* Less than 0, 0 or greater, as numbers if both are. */
static double compare(const char *a, const char *b)
{
	double x, y;

	if (as_number(a, &x) && as_number(b, &y))
		return x < y ? -1 : x > y;
	return strcmp(a, b);
}

static bool has_value(const struct pem_explore_parameter *parameter, const char *value)
{
	uint32_t i;

	for (i = 0; i < parameter->levels; i++) {
		if (compare(parameter->values[i], value) == 0)
			return true;
	}
	return false;
}

/* A comparison that no configuration can decide is a mistake. */
static bool check_value(struct reading *reading, const struct term *term)
{
	const struct pem_explore_parameter *left = &reading->space->parameters[term->left];
	double number;

	if (term->operation == EQUAL || term->operation == DIFFERS) {
		if (term->right_is_parameter || has_value(left, term->value))
			return true;
		return refuse(reading, "'%.60s' has no value '%.60s'", left->name, term->value);
	}
	if (!left->is_ordered)
		return refuse(reading,
			      "the values of '%.60s' have no order: use = or !=", left->name);
	if (term->right_is_parameter ? reading->space->parameters[term->right].is_ordered
				     : as_number(term->value, &number))
		return true;
	return refuse(reading, "'%.60s' is not a number", term->value);
}

static bool read_term(struct reading *reading, struct term *term)
{
	const char *began;

	skip_spaces(reading);
	if (*reading->at == '!') {
		reading->at++;
		term->negated = true;
	}
	skip_spaces(reading);
	began = reading->at;
	if (!read_word(reading, term->value, sizeof(term->value), "the name of a parameter"))
		return false;
	if (!find_parameter(reading->space, term->value, &term->left)) {
		reading->at = began;
		return refuse(reading, "there is no parameter '%.60s'", term->value);
	}
	term->operation = read_operation(reading);
	if (term->operation == IS_ON)
		return true;
	skip_spaces(reading);
	began = reading->at;
	if (!read_word(reading, term->value, sizeof(term->value), "a value"))
		return false;
	/* A value of the left one, if there is such a value; else another parameter. */
	if (!has_value(&reading->space->parameters[term->left], term->value))
		term->right_is_parameter =
			find_parameter(reading->space, term->value, &term->right);
	if (check_value(reading, term))
		return true;
	reading->at = began;
	return false;
}

/* Take "and" or "or". */
static bool read_link(struct reading *reading, bool *is_or)
{
	const char *began;
	char word[8];

	skip_spaces(reading);
	began = reading->at;
	if (*began && read_word(reading, word, sizeof(word), "'and' or 'or'")) {
		*is_or = !strcmp(word, "or");
		if (*is_or || !strcmp(word, "and"))
			return true;
	}
	reading->at = began;
	return refuse(reading, "expected 'and' or 'or' here, and not '%.20s'", began);
}

struct settings_condition *settings_condition__parse(const char *text,
						     const struct pem_explore_space *space,
						     size_t *at, struct pem_error *error)
{
	struct reading reading = {.text = text, .at = text, .space = space, .error = error};
	struct settings_condition *condition = calloc(1, sizeof(*condition));
	bool fine = condition != NULL, is_or = false;

	while (fine) {
		struct term *term;

		fine = !pem_grow(&condition->terms, sizeof(*term), condition->count + 1,
				 &condition->capacity);
		if (!fine) {
			refuse(&reading, "out of memory");
			break;
		}
		term = &condition->terms[condition->count++];
		*term = (struct term){.starts_alternative = is_or};
		fine = read_term(&reading, term);
		skip_spaces(&reading);
		if (!fine || !*reading.at)
			break;
		fine = read_link(&reading, &is_or);
	}
	if (fine)
		return condition;
	*at = (size_t)(reading.at - text);
	settings_condition__free(condition);
	return NULL;
}

void settings_condition__free(struct settings_condition *condition)
{
	if (condition)
		free(condition->terms);
	free(condition);
}

static bool is_on(const char *value)
{
	static const char *const off[] = {"off", "no", "false", "none", "0", ""};
	size_t i;

	for (i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		if (!strcmp(value, off[i]))
			return false;
	}
	return true;
}

static bool term_holds(const struct term *term, const struct pem_explore_space *space,
		       const uint32_t *levels, const bool *means_something)
{
	const char *left = space->parameters[term->left].values[levels[term->left]];
	const char *right = term->value;
	double order;

	if (means_something && (!means_something[term->left] ||
				(term->right_is_parameter && !means_something[term->right])))
		return term->negated;
	if (term->operation == IS_ON)
		return is_on(left) != term->negated;
	if (term->right_is_parameter)
		right = space->parameters[term->right].values[levels[term->right]];
	order = compare(left, right);
	switch (term->operation) {
	case EQUAL:
		return (order == 0) != term->negated;
	case DIFFERS:
		return (order != 0) != term->negated;
	case LESS:
		return (order < 0) != term->negated;
	case AT_MOST:
		return (order <= 0) != term->negated;
	case GREATER:
		return (order > 0) != term->negated;
	default:
		return (order >= 0) != term->negated;
	}
}

bool settings_condition__holds(const struct settings_condition *condition,
			       const struct pem_explore_space *space, const uint32_t *levels,
			       const bool *means_something)
{
	bool holds = true;
	size_t i;

	for (i = 0; i < condition->count; i++) {
		if (condition->terms[i].starts_alternative) {
			if (holds)
				return true;
			holds = true;
		}
		holds = holds && term_holds(&condition->terms[i], space, levels, means_something);
	}
	return holds;
}
