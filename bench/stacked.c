// SPDX-License-Identifier: MIT
/*
 * stacked.c - a program with deep and varied stacks, for symbolize.py: it makes nested lists,
 * writes them as text, parses the text by recursive descent, and adds up what it reads
 *
 *	stacked SECONDS
 *
 * It is compiled with frame pointers, so that every way of following calls works.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH_MAX 24
#define TEXT_BYTES (256u << 10)

struct value {
	struct value *first, *next; /* of a list; and in the list that this is in */
	uint64_t number;
	int is_list;
};

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static char *write_value(char *to, const char *end, int depth);

static char *write_list(char *to, const char *end, int depth)
{
	unsigned i, count = 2 + next_random() % 3;

	*to++ = '[';
	for (i = 0; i < count && to < end; i++) {
		if (i > 0)
			*to++ = ',';
		to = write_value(to, end, depth + 1);
	}
	*to++ = ']';
	return to;
}

static char *write_value(char *to, const char *end, int depth)
{
	if (to + 2 * DEPTH_MAX + 16 < end && depth < DEPTH_MAX && next_random() % 8 > 2)
		return write_list(to, end, depth);
	return to + sprintf(to, "%u", (unsigned)(next_random() % 1000));
}

static struct value *parse_value(const char **at);

static struct value *parse_list(const char **at)
{
	struct value *list = calloc(1, sizeof(*list)), **end;

	if (!list)
		exit(1);
	list->is_list = 1;
	end = &list->first;
	do {
		++*at; /* the bracket, or a comma */
		*end = parse_value(at);
		end = &(*end)->next;
	} while (**at == ',');
	++*at;
	return list;
}

static struct value *parse_number(const char **at)
{
	struct value *value = calloc(1, sizeof(*value));

	if (!value)
		exit(1);
	while (isdigit((unsigned char)**at))
		value->number = value->number * 10 + (uint64_t)(*(*at)++ - '0');
	return value;
}

static struct value *parse_value(const char **at)
{
	return **at == '[' ? parse_list(at) : parse_number(at);
}

static uint64_t sum_of(const struct value *value);

static uint64_t sum_of_list(const struct value *list)
{
	const struct value *one;
	uint64_t sum = 0;

	for (one = list->first; one; one = one->next)
		sum += sum_of(one);
	return sum;
}

static uint64_t sum_of(const struct value *value)
{
	return value->is_list ? sum_of_list(value) : value->number;
}

static void free_value(struct value *value)
{
	struct value *one, *next;

	for (one = value->first; one; one = next) {
		next = one->next;
		free_value(one);
	}
	free(value);
}

static uint64_t work(char *text)
{
	const char *at = text;
	struct value *value;
	uint64_t sum;

	*write_list(text, text + TEXT_BYTES - 4096, 0) = '\0';
	value = parse_value(&at);
	sum = sum_of(value);
	free_value(value);
	return sum;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	char *text = malloc(TEXT_BYTES);
	uint64_t sum = 0;

	if (!text)
		return 1;
	while (time(NULL) < end)
		sum += work(text);
	printf("%llu\n", (unsigned long long)sum);
	free(text);
	return 0;
}
