// SPDX-License-Identifier: MIT
/* page.c - HTML pages that agents write: a page that is built in, and its data */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* JSON inside of a script element: "<" could end it. */
static void put_data(FILE *out, struct json_object *data)
{
	const char *text = json_object_to_json_string_ext(data, JSON_C_TO_STRING_PLAIN);

	for (; *text != '\0'; text++) {
		if (*text == '<')
			fputs("\\u003c", out);
		else
			fputc(*text, out);
	}
}

int cli_page__write(const char *path, const char *page, const char *end, struct json_object *data)
{
	static const char mark[] = "\n@data@\n";
	const char *at;
	int fd, rc;
	FILE *out;

	at = memmem(page, (size_t)(end - page), mark, sizeof(mark) - 1);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (out == NULL)
		return cli_error(errno == EEXIST ? CLI_WRONG_INPUT : CLI_FAILED,
				 "%s can't be made: %s", path, strerror(errno));
	fwrite(page, 1, (size_t)(at - page) + 1, out);
	put_data(out, data);
	at += sizeof(mark) - 2;
	fwrite(at, 1, (size_t)(end - at), out);
	rc = ferror(out);
	if (fclose(out) != 0 || rc != 0) {
		unlink(path);
		return cli_error(CLI_FAILED, "%s can't be written: %s", path, strerror(errno));
	}
	cli_say("%s is the page: open it in a browser", path);
	return CLI_DONE;
}
