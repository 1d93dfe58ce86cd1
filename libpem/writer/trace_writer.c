/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace_writer.c - the folder of a trace, its model, and its closing files
 *
 * Not here: stream files (stream_files.c), the text of metadata (metadata.c) and of .pem/run
 * (run.c).
 */
#include "core/core.h"
#include "writer/metadata.h"
#include "writer/trace_writer.h"
#include "writer/trace_writer_internal.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESERVE_BYTES (256u << 10)

/* --- beginning --- */

bool pem_folder_is_empty(int fd)
{
	DIR *directory = pem_list_folder(fd);
	struct dirent *entry;
	bool empty = true;

	if (!directory)
		return false;
	while ((entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			empty = false;
	}
	closedir(directory);
	return empty;
}

static int open_directories(struct pem_trace_writer *w, const char *directory,
			    struct pem_error *error)
{
	int result;

	if (mkdir(directory, 0700) && errno != EEXIST)
		return pem_error__set(error, -errno,
				      "cannot make trace directory '%s': %s; choose another",
				      directory, strerror(errno));
	/* Where others may write beside the folder, a link may have taken its place. */
	w->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (w->directory_fd < 0)
		return pem_error__no_folder(error, "trace directory", directory);
	result = pem_check_owner(w->directory_fd, geteuid(), directory, error);
	if (result)
		return result;
	if (!pem_folder_is_empty(w->directory_fd))
		return pem_error__set(
			error, -EEXIST,
			"trace directory '%s' is not empty; choose another or remove what is in it",
			directory);
	if (mkdirat(w->directory_fd, ".pem", 0700))
		return pem_error__set(error, -errno, "cannot write in trace directory '%s': %s",
				      directory, strerror(errno));
	w->private_fd =
		openat(w->directory_fd, ".pem", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (w->private_fd < 0)
		return pem_error__set(error, -errno, "cannot open '%s/.pem': %s", directory,
				      strerror(errno));
	return pem_check_owner(w->private_fd, geteuid(), directory, error);
}

/* Reserve blocks for the closing files. They are given back just before those files are written. */
static int reserve_space(struct pem_trace_writer *w)
{
	int fd = openat(w->private_fd, "reserve", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600),
	    result;

	if (fd < 0)
		return -errno;
	result = -posix_fallocate(fd, 0, RESERVE_BYTES);
	close(fd);
	return result;
}

int pem_trace_writer__model_changed(struct pem_trace_writer *w)
{
	char *text = pem_model__to_text(w->model);
	int result;

	if (!text)
		return -errno;
	result = pem_replace_file(w->private_fd, "model", text, strlen(text));
	free(text);
	if (result)
		return result;
	text = pem_metadata__text(w->model, &w->info, w->uuid);
	if (!text)
		return -errno;
	result = pem_replace_file(w->directory_fd, "metadata", text, strlen(text));
	free(text);
	return result;
}

int pem_trace_writer__set_info(struct pem_trace_writer *w, const struct pem_trace_info *info)
{
	int result;

	w->info = *info;
	result = pem_trace_writer__write_run(w, info);
	return result ? result : pem_trace_writer__model_changed(w);
}

struct pem_trace_writer *pem_trace_writer__new(const char *directory, const struct pem_model *model,
					       const struct pem_trace_info *info,
					       struct pem_error *error)
{
	struct pem_trace_writer *w = calloc(1, sizeof(*w));
	int result = -ENOMEM;

	if (!w) {
		pem_error__set(error, 0, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&w->lock, NULL);
	w->directory_fd = w->private_fd = w->earlier_fd = -1;
	w->model = model;
	w->info = *info;
	if (getrandom(w->uuid, sizeof(w->uuid), 0) != sizeof(w->uuid)) {
		result =
			pem_error__set(error, -EIO, "cannot get random bytes for the trace's UUID");
		goto fail;
	}
	w->uuid[6] = (w->uuid[6] & 0x0f) | 0x40; /* RFC 4122, version 4 */
	w->uuid[8] = (w->uuid[8] & 0x3f) | 0x80;
	w->balance = open_memstream(&w->balance_text, &w->balance_bytes);
	if (!w->balance) {
		pem_error__set(error, 0, "out of memory");
		goto fail;
	}
	result = open_directories(w, directory, error);
	if (result)
		goto fail;
	result = reserve_space(w);
	if (!result)
		result = pem_trace_writer__model_changed(w);
	if (!result)
		result = pem_trace_writer__write_run(w, info);
	if (!result)
		return w;
	pem_error__set(error, 0, "cannot write in trace directory '%s': %s", directory,
		       strerror(-result));
	pem_error__advise_space(error, result, " or choose another");
fail:
	pem_trace_writer__free(w);
	errno = -result;
	return NULL;
}

/* --- what goes into it --- */

int pem_trace_writer__failed(const struct pem_trace_writer *w)
{
	return w->failed;
}

void pem_trace_writer__keep_in(struct pem_trace_writer *w, const struct pem_packet_store *store)
{
	w->store = store;
}

void pem_trace_writer__compress(struct pem_trace_writer *w, struct pem_packer *packer)
{
	w->packer = packer;
}

void pem_trace_writer__begin_span(struct pem_trace_writer *w)
{
	w->span_clock = 0;
}

uint64_t pem_trace_writer__span_clock(const struct pem_trace_writer *w)
{
	return w->span_clock;
}

uint64_t pem_trace_writer__last_clock(const struct pem_trace_writer *w)
{
	uint64_t last = 0;
	size_t i;

	for (i = 0; i < w->stream_count; i++) {
		if (w->streams[i]->last_clock > last)
			last = w->streams[i]->last_clock;
	}
	for (i = 0; i < w->earlier_count; i++) {
		if (w->earlier[i].last_clock > last)
			last = w->earlier[i].last_clock;
	}
	return last;
}

int pem_trace_writer__note_session(struct pem_trace_writer *w, const char *session_directory)
{
	char text[PATH_MAX + 32];
	int n;

	if (!session_directory)
		return unlinkat(w->private_fd, "session", 0) ? -errno : 0;
	n = snprintf(text, sizeof(text), "%d %s\n", (int)getpid(), session_directory);
	return pem_replace_file(w->private_fd, "session", text, (size_t)n);
}

/* --- the end --- */

int pem_trace_writer__balance(struct pem_trace_writer *w, uint32_t pid, const char *name,
			      uint64_t start_clock, const struct pem_balance_entry *entries,
			      size_t count)
{
	const struct pem_balance *b;
	char shown[PEM_NAME_BYTES];
	size_t i;

	if (w->store)
		return w->store->balance(w->store->arg, pid, name, start_clock, entries, count);
	pem_copy_text(shown, sizeof(shown), name);
	fprintf(w->balance, "producer\t%u\t%s\t%llu\n", pid, pem_printable(shown),
		(unsigned long long)start_clock);
	for (i = 0; i < count; i++) {
		b = &entries[i].balance;
		if (!b->produced && !b->delivered && !b->discarded && !b->overwritten)
			continue;
		fprintf(w->balance, "event\t%08x\t%llu\t%llu\t%llu\t%llu\n", entries[i].event_id,
			(unsigned long long)b->produced, (unsigned long long)b->delivered,
			(unsigned long long)b->discarded, (unsigned long long)b->overwritten);
	}
	return ferror(w->balance) ? -ENOMEM : 0;
}

int pem_trace_writer__finish(struct pem_trace_writer *w, const struct pem_trace_info *info)
{
	int result;

	fprintf(w->balance, "end\n");
	if (fflush(w->balance))
		return -ENOMEM;
	unlinkat(w->private_fd, "reserve", 0);
	result = pem_trace_writer__write_names(w);
	if (!result)
		result = pem_trace_writer__write_run(w, info);
	/* balance is last: it makes the trace complete, and a complete trace is not recovered. */
	return result ? result
		      : pem_replace_file(w->private_fd, "balance", w->balance_text,
					 w->balance_bytes);
}

void pem_trace_writer__free(struct pem_trace_writer *w)
{
	size_t i;

	if (!w)
		return;
	for (i = 0; i < w->stream_count; i++) {
		if (w->streams[i]->fd >= 0)
			close(w->streams[i]->fd);
		free(w->streams[i]);
	}
	pthread_mutex_destroy(&w->lock);
	if (w->earlier_fd >= 0)
		close(w->earlier_fd);
	if (w->private_fd >= 0)
		close(w->private_fd);
	if (w->directory_fd >= 0)
		close(w->directory_fd);
	if (w->balance)
		fclose(w->balance);
	if (w->names)
		fclose(w->names);
	free(w->balance_text);
	free(w->names_text);
	free(w->streams);
	free(w->earlier);
	free(w);
}
