/* SPDX-License-Identifier: MIT */
/*
 * name_code.c - names offsets of an object, as they come by standard input in hexadecimal
 *
 * Use: name_code PATH BUILD_ID FOLDERS [TIMES]. "-" stands for unknown; a BUILD_ID of 16 digits
 * behind '=' is an object number. A line for each offset: its names, each as function, file, line
 * and source, from the innermost outwards. With TIMES all offsets are named so often, and instead
 * of the names two numbers are printed: nanoseconds to open the object and to name.
 *
 * Exit status: 0, or 1 with the error and its sentence.
 */
#include <pem/names.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAMES_MAX 16u

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const char *known(const char *argument)
{
	return strcmp(argument, "-") != 0 ? argument : NULL;
}

static void read_id(const char *text, uint8_t *build_id, struct pem_object_query *query)
{
	if (*text == '=') {
		query->number = strtoull(text + 1, NULL, 16);
		return;
	}
	query->build_id = build_id;
	for (; sscanf(text, "%2hhx", &build_id[query->build_id_bytes]) == 1; text += 2)
		query->build_id_bytes++;
}

static void print(const struct pem_name *names, unsigned int count)
{
	static const char *const sources[] = {"none", "symbol", "debug"};
	unsigned int i;

	for (i = 0; i < count; i++)
		printf("%s%s\t%s\t%u\t%s\t%llx", i != 0 ? "\t" : "",
		       names[i].function ? names[i].function : "?",
		       names[i].file ? names[i].file : "?", names[i].line, sources[names[i].source],
		       (unsigned long long)names[i].start);
	putchar('\n');
}

int main(int argc, char **argv)
{
	uint8_t build_id[256] = {0};
	struct pem_object_query query = {.size = sizeof(query)};
	struct pem_name names[NAMES_MAX];
	struct pem_error error = {""};
	uint64_t start = now_ns(), opened, *offsets = NULL, offset, found = 0;
	size_t count = 0, i;
	long times = argc > 4 ? atol(argv[4]) : 0;
	struct pem_object *object;

	if (argc < 4)
		return 2;
	query.path = known(argv[1]);
	query.debug_folders = known(argv[3]);
	if (known(argv[2]))
		read_id(argv[2], build_id, &query);
	object = pem_object__open(&query, &error);
	if (!object) {
		printf("%s\t%s\n", strerrorname_np(errno), error.text);
		return 1;
	}
	opened = now_ns();
	while (scanf("%llx", (unsigned long long *)&offset) == 1) {
		if ((count & (count - 1)) == 0)
			offsets = realloc(offsets, (count ? 2 * count : 1) * sizeof(*offsets));
		offsets[count++] = offset;
	}
	if (times != 0) {
		uint64_t begin = now_ns();

		while (times-- > 0) {
			for (i = 0; i < count; i++)
				found +=
					pem_object__find(object, offsets[i], names, NAMES_MAX) != 0;
		}
		printf("%llu %llu %llu\n", (unsigned long long)(opened - start),
		       (unsigned long long)(now_ns() - begin), (unsigned long long)found);
	}
	for (i = 0; argc <= 4 && i < count; i++)
		print(names, pem_object__find(object, offsets[i], names, NAMES_MAX));
	if (argc <= 4)
		fprintf(stderr, "%s\t%016llx\n", pem_object__path(object),
			(unsigned long long)pem_object__number(object));
	free(offsets);
	pem_object__close(object);
	return 0;
}
