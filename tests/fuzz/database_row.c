/* SPDX-License-Identifier: MIT */
/* database_row.c - libFuzzer: a file as a CPO database, opened for reading; every row is walked */
#define _GNU_SOURCE

#include <pem/database.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char folder[64], path[96];

static void clean_up(void)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
	char name[128];
	size_t i;

	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		unlink(name);
	}
	rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	strcpy(folder, "/tmp/pem-fuzz-XXXXXX");
	if (!mkdtemp(folder))
		abort();
	snprintf(path, sizeof(path), "%s/cpo.db", folder);
	atexit(clean_up);
	return 0;
}

static int check_row(const void *row, void *arg)
{
	const struct pem_db_layout *layout = arg;
	const struct pem_db_column *column;
	size_t i;

	for (i = 0; i < layout->column_count; i++) {
		column = &layout->columns[i];
		if (column->type == PEM_DB_TEXT &&
		    !memchr((const char *)row + column->offset, '\0', column->bytes))
			abort();
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct pem_database_options options = {.size = sizeof(options), .read_only = 1};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct pem_database *db;
	struct pem_error error;
	enum pem_db_table table;

	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	close(fd);
	db = pem_database__open(path, &options, &error);
	for (table = 1; db && table <= PEM_DB_TABLES; table++)
		pem_database__each(db, table, NULL, check_row,
				   (void *)(uintptr_t)pem_database__layout(table), &error);
	pem_database__close(db);
	return 0;
}
