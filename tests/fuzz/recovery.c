/* SPDX-License-Identifier: MIT */
/*
 * recovery.c - libFuzzer: a killed recorder's trace, into whose folder somebody has reached
 *
 * The input is steps of eight bytes: what, which file, which name, a byte, and a number of four
 * bytes. Files of the trace and of its session are changed, cut, grown into sparse ones, moved and
 * removed; folders, links, fifos and files that are not pem's come by the names of streams and
 * others. Then the trace is recovered and read, twice. What is not pem's is the same as before, and
 * no descriptor stays open.
 */
#define _GNU_SOURCE

#include "chunks/chunks.h"
#include "core/core.h"
#include "core/demand.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "writer/log.h"
#include "programs/probe.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define FILES_MAX 32
#define PAGE 4096u

/* A file as the recorder left it: pages that are not zeros, for pools are sparse. */
struct kept {
	char path[200];
	size_t size;
	struct kept_page {
		size_t at, bytes;
		uint8_t data[PAGE];
	} * pages;
	size_t page_count;
};

static char folder[64], trace[96], outside[96], stream[64];
static struct kept files[FILES_MAX];
static unsigned file_count;
static volatile uint64_t sink;

static void must(bool sure, const char *what)
{
	if (sure)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	abort();
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* --- a killed recorder --- */

static void record(void)
{
	const char *pattern = "APP::Probe::Tick";
	struct pem_session_options options = {
		.size = sizeof(options), .chunk_bytes = 4096, .chunk_count = 8};
	struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_session *session = pem_session__open(&options, NULL);
	struct pem_event_set *set = pem_event_set__new(session, &pattern, 1, NULL);
	struct pem_log *log = pem_session__register_log(session, set, &self, trace, NULL);
	unsigned i;

	must(log && !pem_log__enable(log), "cannot record");
	for (i = 0; i < 400; i++)
		pem_notify_probe_tick(0, i);
	pem_session__scan_producers(session);
	pem_session__drain_producer(session, session->processes->producers, false);
	for (i = 0; i < 100; i++)
		pem_notify_probe_tick(0, i);
	_exit(0);
}

static void keep_pages(struct kept *f, int fd)
{
	static const uint8_t zeros[PAGE];
	struct kept_page page;
	off_t at = 0;
	ssize_t got;

	while ((at = lseek(fd, at, SEEK_DATA)) >= 0) {
		at &= ~(off_t)(PAGE - 1);
		got = pread(fd, page.data, PAGE, at);
		must(got > 0, f->path);
		page.at = (size_t)at;
		page.bytes = (size_t)got;
		at += got;
		if (!memcmp(page.data, zeros, page.bytes))
			continue;
		f->pages = realloc(f->pages, (f->page_count + 1) * sizeof(page));
		must(f->pages, "out of memory");
		f->pages[f->page_count++] = page;
	}
}

static int keep(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path + ftw->base;
	struct kept *f = &files[file_count];
	int fd;

	if (type != FTW_F || !strncmp(name, "control-", 8))
		return 0;
	must(file_count < FILES_MAX, "too many files");
	snprintf(f->path, sizeof(f->path), "%s", path);
	f->size = (size_t)st->st_size;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	must(fd >= 0, path);
	keep_pages(f, fd);
	close(fd);
	if (!strncmp(name, "u_", 2))
		snprintf(stream, sizeof(stream), "%s", name);
	file_count++;
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct kept *)a)->path, ((const struct kept *)b)->path);
}

static void clean(void)
{
	nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char runtime[96];
	pid_t recorder;

	(void)argc;
	(void)argv;
	snprintf(folder, sizeof(folder), "%s/pem-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	must(mkdtemp(folder), folder);
	snprintf(trace, sizeof(trace), "%s/trace", folder);
	snprintf(outside, sizeof(outside), "%s/outside", folder);
	snprintf(runtime, sizeof(runtime), "%s/runtime", folder);
	setenv("PEM_RUNTIME_DIR", runtime, 1);
	recorder = fork();
	if (!recorder)
		record();
	must(waitpid(recorder, NULL, 0) == recorder, "wait");
	must(!nftw(folder, keep, 16, FTW_PHYS) && stream[0], "no trace");
	/* So that an input does the same in each run. */
	qsort(files, file_count, sizeof(files[0]), compare_paths);
	return atexit(clean);
}

static void write_pages(int fd, const struct kept *f)
{
	size_t i;

	for (i = 0; i < f->page_count; i++)
		must(pwrite(fd, f->pages[i].data, f->pages[i].bytes, (off_t)f->pages[i].at) ==
			     (ssize_t)f->pages[i].bytes,
		     f->path);
}

static void write_kept(const struct kept *f)
{
	int fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(fd >= 0 && !ftruncate(fd, (off_t)f->size), f->path);
	write_pages(fd, f);
	close(fd);
}

/*
 * What links lead to: a stream with a torn packet at its end, which would be cut if it were the
 * trace's.
 */
static void write_outside(const struct kept *f)
{
	int fd = open(outside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(fd >= 0, outside);
	write_pages(fd, f);
	must(pwrite(fd, f->pages[0].data, 100, (off_t)f->size) == 100, outside);
	close(fd);
}

static void restore(void)
{
	char path[200];
	unsigned i;
	char *slash;

	clean();
	must(!mkdir(folder, 0700), folder);
	for (i = 0; i < file_count; i++) {
		snprintf(path, sizeof(path), "%s", files[i].path);
		for (slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
			*slash = 0;
			mkdir(path, 0700);
			*slash = '/';
		}
		write_kept(&files[i]);
	}
	for (i = 0; i < file_count; i++) {
		if (strstr(files[i].path, stream))
			write_outside(&files[i]);
	}
}

/* --- what somebody does --- */

static void name_path(unsigned which, char *path, size_t bytes)
{
	static const char *const names[] = {
		"u_1_1_0",
		"notes.txt",
		"metadata",
		"k_0",
		"recorder",
		"u_1111111111111111111111111111111111111111111111111111",
		"c_0",
		".pem/recovery",
		".pem/recovery/u_1_1_0",
		".pem/balance",
		".pem/session",
		".pem/recovery/balance",
		".pem/names",
		".pem/model",
		".pem/recovery/metadata",
		".pem/run",
		".pem/reserve",
		".pem/recovery.new",
		".pem",
		"metadata.new",
		".pem/recovery.new/mine",
	};
	unsigned count = PEM_ARRAY_SIZE(names);

	which %= count + 3;
	if (which < count)
		snprintf(path, bytes, "%s/%s", trace, names[which]);
	else
		snprintf(path, bytes, "%s/%s%s%s", trace,
			 which == count + 2 ? ".pem/recovery/" : "", stream,
			 which == count + 1 ? "_r1" : "");
}

static void overwrite(const char *path, const uint8_t *step, uint32_t number)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size)
		must(pwrite(fd, step + 3, 1, (off_t)(number % (uint64_t)st.st_size)) == 1, path);
	if (fd >= 0)
		close(fd);
}

static void make_file(const char *path, uint8_t byte, uint32_t number)
{
	uint8_t text[300];
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	memset(text, byte, sizeof(text));
	if (fd < 0)
		return;
	must(write(fd, text, number % sizeof(text)) >= 0, path);
	close(fd);
}

static void do_step(const uint8_t *step)
{
	const char *file = files[step[1] % file_count].path;
	uint32_t number;
	struct stat st;
	char name[200];
	int done = 0;

	memcpy(&number, step + 4, sizeof(number));
	name_path(step[2], name, sizeof(name));
	switch (step[0] % 10) {
	case 0:
		overwrite(file, step, number);
		break;
	case 1:
		if (!lstat(file, &st) && S_ISREG(st.st_mode))
			done = truncate(file,
					step[3] % 2 ? (off_t)number << 6 : (off_t)number % 65536);
		break;
	case 2:
		done = mkdir(name, step[3] % 2 ? 0700 : 0777);
		break;
	case 3:
		done = symlink(step[3] % 2 ? outside : trace, name);
		break;
	case 4:
		done = mkfifo(name, 0600);
		break;
	case 5:
		make_file(name, step[3], number);
		break;
	case 6:
		done = link(outside, name);
		break;
	case 7:
		done = rename(file, name);
		break;
	case 8:
		done = remove(file);
		break;
	case 9:
		if (!strncmp(file, trace, strlen(trace))) /* shared memory is given back */
			done = link(file, name);
		break;
	}
	sink += (unsigned)done; /* what can't be done here is not done */
}

/* --- what has to stay --- */

/*
 * A file of the trace's folder that is not the trace's, by its name or its first bytes; or the one
 * outside.
 */
struct foreign {
	char name[256];
	struct stat st;
	uint8_t bytes[PAGE];
	size_t read;
};

static void look_at(int folder_fd, const char *name, struct foreign *f)
{
	int fd;

	snprintf(f->name, sizeof(f->name), "%s", name);
	memset(&f->st, 0, sizeof(f->st));
	f->read = 0;
	if (fstatat(folder_fd, name, &f->st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(f->st.st_mode))
		return;
	fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	f->read = (size_t)pread(fd, f->bytes, sizeof(f->bytes), 0);
	close(fd);
}

static bool is_foreign(const struct foreign *f)
{
	uint32_t magic = 0;

	if (!strcmp(f->name, ".pem") || !strcmp(f->name, "metadata") || !strcmp(f->name, ".") ||
	    !strcmp(f->name, ".."))
		return false;
	if (!pem_is_stream_name(f->name) || !S_ISREG(f->st.st_mode) || f->st.st_nlink > 1)
		return true;
	memcpy(&magic, f->bytes, f->read < 4 ? f->read : 4);
	return magic != PEM_CTF_MAGIC;
}

static size_t find_foreign(int folder_fd, struct foreign *found, size_t most)
{
	DIR *listing = pem_list_folder(folder_fd);
	struct dirent *entry;
	size_t count = 0;

	must(listing != NULL, trace);
	while ((entry = readdir(listing)) && count < most) {
		look_at(folder_fd, entry->d_name, &found[count]);
		count += is_foreign(&found[count]);
	}
	closedir(listing);
	return count;
}

static void check_same(int folder_fd, const struct foreign *before)
{
	struct foreign now;

	look_at(folder_fd, before->name, &now);
	if (now.st.st_ino == before->st.st_ino && now.st.st_mode == before->st.st_mode &&
	    (S_ISDIR(now.st.st_mode) || now.st.st_size == before->st.st_size) &&
	    now.read == before->read && !memcmp(now.bytes, before->bytes, now.read))
		return;
	fprintf(stderr, "'%s' is not what it was: %lld bytes now, %lld before\n", before->name,
		(long long)now.st.st_size, (long long)before->st.st_size);
	abort();
}

static void read_trace(void)
{
	struct pem_error error;
	struct pem_trace *t = pem_trace__open(trace, &error);
	struct pem_record record = {.size = sizeof(record)};

	if (!t)
		return;
	while (pem_trace__next(t, &record, &error))
		sink += record.bytes;
	pem_trace__close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct foreign before[FILES_MAX + 1];
	struct pem_error error;
	int folder_fd, free_fd;
	size_t count, i, round;

	restore();
	for (i = 0; i + 8 <= bytes && i < 32 * 8; i += 8)
		do_step(data + i);
	folder_fd = open(trace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(folder_fd >= 0, trace);
	count = find_foreign(folder_fd, before, FILES_MAX);
	look_at(AT_FDCWD, outside, &before[count++]);
	free_fd = dup(folder_fd);
	close(free_fd);
	for (round = 0; round < 2; round++) {
		error.text[0] = 0;
		if (pem_trace__recover(trace, &error) && !error.text[0]) {
			fprintf(stderr, "it failed and does not say why\n");
			abort();
		}
		read_trace();
		for (i = 0; i < count; i++)
			check_same(folder_fd, &before[i]);
		must(dup(folder_fd) == free_fd, "a descriptor stayed open");
		close(free_fd);
	}
	close(folder_fd);
	return 0;
}
