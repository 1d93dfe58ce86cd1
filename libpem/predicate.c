/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * predicate.c - a predicate's text, parsed into a tree
 *
 * The parser is a recursive descent: each parenthesis takes one level of the C stack. The text may
 * come from anybody, so PEM_PREDICATE_DEPTH_MAX limits the depth. Fields and labels are looked up
 * later, in each event (predicate_compile.c).
 */
#include "predicate.h"
#include "util.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	struct pem_expression *expression;
	struct pem_error *error;
	size_t at;
	uint32_t depth, comparisons;
	int result;
};

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* '.' belongs to names: a structure's member is called structure.member. */
static bool is_word(char c)
{
	return is_letter(c) || is_digit(c) || c == '.';
}

int pem_expression__fail(const struct pem_expression *expression, size_t at,
			 struct pem_error *error, const char *format, ...)
{
	char sentence[400];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	return pem_error__set(error, -EINVAL, "predicate '%.60s%s', column %zu: %s",
			      expression->text, strlen(expression->text) > 60 ? "..." : "", at + 1,
			      sentence);
}

static char here(const struct parser *p)
{
	return p->expression->text[p->at];
}

static void skip_spaces(struct parser *p)
{
	while (is_space(here(p)))
		p->at++;
}

/* Take a sign if it stands here. A '&' that begins '&&' is not the sign '&'. */
static bool take(struct parser *p, const char *sign)
{
	size_t bytes = strlen(sign);

	skip_spaces(p);
	if (strncmp(p->expression->text + p->at, sign, bytes))
		return false;
	if (!strcmp(sign, "&") && p->expression->text[p->at + 1] == '&')
		return false;
	p->at += bytes;
	return true;
}

/* Describe what stands here, for an error: a word, a sign, or the end. */
static const char *found(const struct parser *p, char *text, size_t bytes)
{
	const char *from = p->expression->text + p->at;
	size_t n = 0;

	while (is_word(from[n]))
		n++;
	if (!*from)
		snprintf(text, bytes, "the end");
	else
		snprintf(text, bytes, "'%.*s'", (int)(n ? (n > 40 ? 40 : n) : 1), from);
	return text;
}

static bool fail(struct parser *p, const char *expected)
{
	char text[64];

	skip_spaces(p);
	p->result = pem_expression__fail(p->expression, p->at, p->error, "%s, and not %s", expected,
					 found(p, text, sizeof(text)));
	return false;
}

static bool too_big(struct parser *p, const char *what, unsigned most)
{
	p->result = pem_error__set(
		p->error, -E2BIG,
		"a predicate has at most %u %s: test less, or in several sessions", most, what);
	return false;
}

/* --- numbers --- */

/* Read a real number as C does, whatever the program's locale. */
static bool read_real(struct parser *p, const char *from, size_t bytes, double *value)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	char *end = NULL;

	if (!c) {
		p->result = pem_error__set(p->error, -ENOMEM, "out of memory");
		return false;
	}
	*value = strtod_l(from, &end, c);
	freelocale(c);
	if (end != from + bytes)
		return fail(p, "a number belongs here, such as 4096, -1, 0x1000 or 0.5");
	if (*value > 1.7976931348623157e308 || *value < -1.7976931348623157e308)
		return fail(p, "a number that is not too large for any field belongs here");
	return true;
}

static bool read_integer(const char *digits, size_t bytes, unsigned base, uint64_t *value)
{
	unsigned digit;
	size_t i;

	*value = 0;
	for (i = 0; i < bytes; i++) {
		digit = (unsigned)(is_digit(digits[i]) ? digits[i] - '0'
						       : (digits[i] | 32) - 'a' + 10);
		if (digit >= base || *value > (UINT64_MAX - digit) / base)
			return false;
		*value = *value * base + digit;
	}
	return bytes > 0;
}

/* Return the number's characters. A sign may stand inside only after an exponent's e. */
static size_t number_bytes(const char *from, bool *is_hex, bool *is_real)
{
	size_t n = from[0] == '-';

	*is_hex = from[n] == '0' && (from[n + 1] | 32) == 'x';
	*is_real = false;
	for (; is_word(from[n]) ||
	       (*is_real && (from[n] == '-' || from[n] == '+') && (from[n - 1] | 32) == 'e');
	     n++) {
		if (!*is_hex && (from[n] == '.' || (from[n] | 32) == 'e'))
			*is_real = true;
	}
	return n;
}

static bool parse_number(struct parser *p, struct pem_operand *operand)
{
	const char *from = p->expression->text + p->at;
	bool is_hex, is_real;
	size_t n = number_bytes(from, &is_hex, &is_real), skip = from[0] == '-';

	operand->negative = skip;
	skip += is_hex ? 2 : 0;
	operand->kind = is_real ? PEM_OPERAND_REAL : PEM_OPERAND_INTEGER;
	operand->bytes = (uint16_t)n;
	if (is_real && !read_real(p, from, n, &operand->real))
		return false;
	if (!is_real && !read_integer(from + skip, n - skip, is_hex ? 16 : 10, &operand->magnitude))
		return fail(p, "a number of at most 64 bits belongs here, such as 4096, -1, 0x1000 "
			       "or 0.5");
	p->at += n;
	return true;
}

static size_t word_bytes(const struct parser *p)
{
	size_t n = 0;

	if (!is_letter(here(p)))
		return 0;
	while (is_word(p->expression->text[p->at + n]))
		n++;
	return n;
}

static bool parse_operand(struct parser *p, struct pem_operand *operand)
{
	size_t bytes;

	skip_spaces(p);
	operand->at = (uint16_t)p->at;
	if (is_digit(here(p)) || here(p) == '-' || here(p) == '.')
		return parse_number(p, operand);
	bytes = word_bytes(p);
	if (!bytes)
		return fail(p, "a number or a label of the field belongs here");
	operand->kind = PEM_OPERAND_WORD;
	operand->bytes = (uint16_t)bytes;
	p->at += bytes;
	return true;
}

/* --- the tree --- */

static struct pem_node *add_node(struct parser *p, enum pem_node_kind kind)
{
	struct pem_node *node = &p->expression->node[p->expression->node_count++];

	memset(node, 0, sizeof(*node));
	node->kind = (uint8_t)kind;
	return node;
}

static bool take_operator(struct parser *p, struct pem_node *node)
{
	static const struct {
		const char *sign;
		enum pem_operator op;
	} operators[] = {{"==", PEM_EQ}, {"!=", PEM_NE}, {"<=", PEM_LE},
			 {">=", PEM_GE}, {"<", PEM_LT},  {">", PEM_GT}};
	size_t i;

	for (i = 0; i < PEM_ARRAY_SIZE(operators); i++) {
		if (take(p, operators[i].sign)) {
			node->op = (uint8_t)operators[i].op;
			return true;
		}
	}
	return false;
}

/* --- gates --- */

/* Take a word if it stands here. */
static bool take_word(struct parser *p, const char *word)
{
	skip_spaces(p);
	if (word_bytes(p) != strlen(word) ||
	    strncmp(p->expression->text + p->at, word, strlen(word)))
		return false;
	p->at += strlen(word);
	return true;
}

/* The bytes of a name of an event or a group, 'LAYER::Class::Specifier', that stands here; else 0.
 */
static size_t name_bytes(const char *from)
{
	size_t n = 0;
	bool has_colons = false;

	while (is_word(from[n]) || from[n] == ':' || from[n] == '@') {
		has_colons |= from[n] == ':' && from[n + 1] == ':';
		n++;
	}
	return has_colons && is_letter(from[0]) ? n : 0;
}

static bool parse_name(struct parser *p, uint16_t *at, uint16_t *bytes)
{
	skip_spaces(p);
	*at = (uint16_t)p->at;
	*bytes = (uint16_t)name_bytes(p->expression->text + p->at);
	if (!*bytes)
		return fail(p, "an event's name, such as APP::Phase::Begin, belongs here");
	p->at += *bytes;
	return true;
}

/* Does a gate stand here? A field may be called 'inside' or 'from', but no name follows it. */
static bool is_gate(const struct parser *p, const char *word)
{
	const char *text = p->expression->text + p->at;
	size_t n = strlen(word);

	if (word_bytes(p) != n || strncmp(text, word, n))
		return false;
	while (is_space(text[n]))
		n++;
	return name_bytes(text + n) > 0;
}

static bool parse_scope(struct parser *p, struct pem_gate_term *gate)
{
	if (!take_word(p, "per"))
		return true;
	if (take_word(p, "thread"))
		gate->scope = PEM_SCOPE_THREAD;
	else if (take_word(p, "process"))
		gate->scope = PEM_SCOPE_PROCESS;
	return gate->scope || fail(p, "'thread' or 'process' belongs here");
}

static bool parse_gate(struct parser *p)
{
	struct pem_expression *e = p->expression;
	struct pem_gate_term *gate = &e->gate[e->gate_count];
	struct pem_node *node;

	if (e->gate_count == PEM_GATES_MAX)
		return too_big(p, "gates", PEM_GATES_MAX);
	node = add_node(p, PEM_NODE_GATE);
	node->gate = (uint8_t)e->gate_count++;
	node->field_at = (uint16_t)p->at;
	memset(gate, 0, sizeof(*gate));
	gate->is_from = take_word(p, "from");
	if (!gate->is_from)
		take_word(p, "inside");
	if (!parse_name(p, &gate->at, &gate->bytes))
		return false;
	if (gate->is_from && !take_word(p, "to"))
		return fail(p, "'to' and the event at which counting ends belong here");
	if (gate->is_from && !parse_name(p, &gate->to_at, &gate->to_bytes))
		return false;
	return parse_scope(p, gate);
}

#define NO_NODE UINT32_MAX

/*
 * Take the gates that are joined to the rest by && out of a tree. Returns the index of the node
 * that is left, or NO_NODE.
 */
static uint32_t take_gates(struct pem_expression *e, uint32_t i)
{
	struct pem_node *node = &e->node[i];
	uint32_t left, right;

	if (node->kind == PEM_NODE_GATE) {
		e->gate[node->gate].negated = node->negated;
		return NO_NODE;
	}
	if (node->kind != PEM_NODE_AND || node->negated)
		return i;
	left = take_gates(e, node->left);
	right = take_gates(e, node->right);
	if (left == NO_NODE || right == NO_NODE)
		return left == NO_NODE ? right : left;
	node->left = (uint8_t)left;
	node->right = (uint8_t)right;
	return i;
}

/* A gate that is left in the tree below a node. NULL: none is. */
static const struct pem_node *find_gate(const struct pem_expression *e, uint32_t i)
{
	const struct pem_node *node = &e->node[i], *found;

	if (node->kind == PEM_NODE_GATE)
		return node;
	if (node->kind == PEM_NODE_COMPARISON)
		return NULL;
	found = find_gate(e, node->left);
	return found ? found : find_gate(e, node->right);
}

static bool separate_gates(struct parser *p)
{
	struct pem_expression *e = p->expression;
	uint32_t root = take_gates(e, e->node_count - 1);
	const struct pem_node *left = root == NO_NODE ? NULL : find_gate(e, root);

	e->node_count = root == NO_NODE ? 0 : root + 1;
	if (!left)
		return true;
	p->at = left->field_at;
	return fail(p, "'inside' and 'from' are joined to the rest by '&&' alone");
}

/* --- comparisons, and what joins them --- */

/* Parse a comparison. Without OP it tests that the field is not 0. */
static bool parse_comparison(struct parser *p)
{
	struct pem_node *node;
	size_t bytes;

	skip_spaces(p);
	if (is_gate(p, "inside") || is_gate(p, "from"))
		return parse_gate(p);
	bytes = word_bytes(p);
	if (!bytes)
		return fail(p, "a field's name, '!' or '(' belongs here");
	if (p->comparisons++ == PEM_TESTS_MAX)
		return too_big(p, "comparisons", PEM_TESTS_MAX);
	node = add_node(p, PEM_NODE_COMPARISON);
	node->field_at = (uint16_t)p->at;
	node->field_bytes = (uint16_t)bytes;
	p->at += bytes;
	node->op = PEM_NE;
	node->has_bits = take(p, "&");
	if (node->has_bits && !parse_operand(p, &node->bits))
		return false;
	if (take_operator(p, node))
		return parse_operand(p, &node->value);
	skip_spaces(p);
	if (here(p) == '=')
		return fail(p, "'==' compares, as do != < <= > >=");
	return true;
}

static bool parse_or(struct parser *p);

static bool parse_not(struct parser *p)
{
	bool negated = false, parsed;

	while (take(p, "!"))
		negated = !negated;
	if (take(p, "(")) {
		if (p->depth == PEM_PREDICATE_DEPTH_MAX)
			return too_big(p, "parentheses in one another", PEM_PREDICATE_DEPTH_MAX);
		p->depth++;
		parsed = parse_or(p);
		p->depth--;
		if (!parsed)
			return false;
		if (!take(p, ")"))
			return fail(p, "')', '&&', '||' or a comparison belongs here");
	} else if (!parse_comparison(p)) {
		return false;
	}
	p->expression->node[p->expression->node_count - 1].negated ^= negated;
	return true;
}

/* Parse a chain: parse { sign parse }, from left to right. */
static bool parse_chain(struct parser *p, const char *sign, enum pem_node_kind kind,
			bool (*parse)(struct parser *p))
{
	struct pem_node *node;
	uint32_t left;

	if (!parse(p))
		return false;
	while (take(p, sign)) {
		left = p->expression->node_count - 1;
		if (!parse(p))
			return false;
		node = add_node(p, kind);
		node->left = (uint8_t)left;
		node->right = (uint8_t)(p->expression->node_count - 2);
	}
	return true;
}

static bool parse_and(struct parser *p)
{
	return parse_chain(p, "&&", PEM_NODE_AND, parse_not);
}

static bool parse_or(struct parser *p)
{
	return parse_chain(p, "||", PEM_NODE_OR, parse_and);
}

int pem_expression__parse(struct pem_expression *expression, const char *text,
			  struct pem_error *error)
{
	struct parser p = {.expression = expression, .error = error};

	if (strlen(text) > PEM_PREDICATE_TEXT_MAX) {
		too_big(&p, "characters", PEM_PREDICATE_TEXT_MAX);
		return p.result;
	}
	strcpy(expression->text, text);
	expression->node_count = expression->gate_count = 0;
	if (!parse_or(&p))
		return p.result;
	skip_spaces(&p);
	if (here(&p))
		fail(&p, "a comparison (== != < <= > >=), '&&', '||' or the end belongs here");
	else
		separate_gates(&p);
	return p.result;
}
