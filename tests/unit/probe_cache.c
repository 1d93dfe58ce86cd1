/* SPDX-License-Identifier: MIT */
/*
 * probe_cache.c - what a search found in a binary is had again by its name, and not once that name
 * leads to another file
 */
#ifdef PEM_TEST_LIBBPF
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "libpem/sources/kernel/probes/probes.h"

#define NAME "uprobe:prog:f"

static char path[] = "/tmp/pem-probe-cache-XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || write(fd, "one", 3) != 3)
		return -1;
	return close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static struct pem_probe *found_as(enum pem_probe_kind kind, const char *name, const char *binary)
{
	struct pem_probe *probe = pem_probe__new(kind, name, "APP", "prog", "f");

	probe->path = realpath(path, NULL);
	probe->binary = strdup(binary);
	assert_int_equal(stat(path, &probe->file), 0);
	probe->description = strdup("entry of f");
	probe->sites = calloc(2, sizeof(*probe->sites));
	probe->sites[0].offset = 0x1000;
	probe->sites[1].semaphore = 7;
	probe->site_count = 2;
	strcpy(pem_probe__add_field(probe, "arg0")->name, "arg0");
	return probe;
}

static struct pem_probe *found(enum pem_probe_kind kind, const char *name)
{
	return found_as(kind, name, path);
}

static void a_copy_is_had_by_its_name(void **state)
{
	struct pem_probe *probe, *again;

	(void)state;
	assert_null(pem_probe_cache__find(NAME));
	pem_probe_cache__keep(found(PEM_PROBE_UPROBE, NAME));
	probe = pem_probe_cache__find(NAME);
	again = pem_probe_cache__find(NAME);
	assert_non_null(probe);
	assert_non_null(again);
	assert_ptr_not_equal(probe->sites, again->sites);
	assert_string_equal(probe->specifier, "f");
	assert_string_equal(probe->description, "entry of f");
	assert_string_equal(probe->fields[0].name, "arg0");
	assert_int_equal(probe->field_count, 1);
	assert_int_equal(probe->site_count, 2);
	assert_int_equal(probe->sites[0].offset, 0x1000);
	assert_int_equal(probe->sites[1].semaphore, 7);
	pem_probe__free(probe);
	pem_probe__free(again);
	assert_null(pem_probe_cache__find("uprobe:prog:g"));
}

static void other_kinds_are_not_kept(void **state)
{
	(void)state;
	pem_probe_cache__keep(found(PEM_PROBE_KPROBE, "kprobe:f"));
	assert_null(pem_probe_cache__find("kprobe:f"));
}

static void a_changed_binary_is_searched_anew(void **state)
{
	FILE *file;

	(void)state;
	pem_probe_cache__keep(found(PEM_PROBE_UPROBE, NAME));
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("another", file);
	assert_int_equal(fclose(file), 0);
	assert_null(pem_probe_cache__find(NAME));
}

static void copy_file(const char *from, const char *to)
{
	char buffer[4096];
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	size_t n;

	assert_non_null(in);
	assert_non_null(out);
	while ((n = fread(buffer, 1, sizeof(buffer), in)) > 0)
		assert_int_equal(fwrite(buffer, 1, n, out), n);
	assert_int_equal(fclose(out), 0);
	fclose(in);
}

struct search {
	const char *binary;
	bool replaces; /* once it has been read */
	char name[PATH_MAX + 64];
};

static int keep_found(void *arg, struct pem_probe *probe)
{
	struct search *search = arg;
	char other[PATH_MAX];

	snprintf(search->name, sizeof(search->name), "%s", probe->name);
	if (search->replaces) {
		snprintf(other, sizeof(other), "%s.new", search->binary);
		copy_file(path, other);
		assert_int_equal(rename(other, search->binary), 0);
	}
	pem_probe_cache__keep(probe);
	return 0;
}

static void one_replaced_while_it_was_read_is_searched_anew(void **state)
{
	char binary[64], pattern[128];
	struct search search = {.binary = binary};
	struct pem_probe *probe;

	(void)state;
	snprintf(binary, sizeof(binary), "%s-binary", path);
	copy_file("/proc/self/exe", binary);
	snprintf(pattern, sizeof(pattern), "uprobe:%s:main", binary);
	assert_int_equal(pem_probe__find(pattern, keep_found, &search, NULL), 1);
	probe = pem_probe_cache__find(search.name);
	assert_non_null(probe);
	pem_probe__free(probe);
	search.replaces = true;
	assert_int_equal(pem_probe__find(pattern, keep_found, &search, NULL), 1);
	assert_null(pem_probe_cache__find(search.name));
	unlink(binary);
}

/* As an upgrade does it with a library's. */
static void a_link_that_leads_elsewhere_is_searched_anew(void **state)
{
	char link[64], other[64];
	struct pem_probe *probe;

	(void)state;
	snprintf(link, sizeof(link), "%s-link", path);
	snprintf(other, sizeof(other), "%s-other", path);
	copy_file(path, other);
	assert_int_equal(symlink(path, link), 0);
	pem_probe_cache__keep(found_as(PEM_PROBE_UPROBE, NAME, link));
	probe = pem_probe_cache__find(NAME);
	assert_non_null(probe);
	pem_probe__free(probe);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink(other, link), 0);
	assert_null(pem_probe_cache__find(NAME));
	unlink(link);
	unlink(other);
}

static void a_name_is_looked_for_where_it_is_now(void **state)
{
	char *folders = strdup(getenv("PATH")), *before = getcwd(NULL, 0), relative[64];
	const char *name = strrchr(path, '/') + 1;
	struct pem_probe *probe;

	(void)state;
	assert_int_equal(setenv("PATH", "/tmp", 1), 0);
	pem_probe_cache__keep(found_as(PEM_PROBE_UPROBE, NAME, name));
	probe = pem_probe_cache__find(NAME);
	assert_non_null(probe);
	pem_probe__free(probe);
	setenv("PATH", folders, 1);
	assert_null(pem_probe_cache__find(NAME));
	free(folders);

	snprintf(relative, sizeof(relative), "./%s", name);
	assert_int_equal(chdir("/tmp"), 0);
	pem_probe_cache__keep(found_as(PEM_PROBE_UPROBE, NAME, relative));
	probe = pem_probe_cache__find(NAME);
	assert_non_null(probe);
	pem_probe__free(probe);
	assert_int_equal(chdir("/"), 0);
	assert_null(pem_probe_cache__find(NAME));
	assert_int_equal(chdir(before), 0);
	free(before);
}

static void *go_on(void *arg)
{
	for (;;) {
		pem_probe_cache__keep(found(PEM_PROBE_UPROBE, NAME));
		pem_probe__free(pem_probe_cache__find(NAME));
	}
	return arg;
}

/*
 * A destructor takes all out while another thread goes on: or was in there when this process was
 * forked.
 */
static void a_process_ends_while_it_is_used(void **state)
{
	pthread_t thread;
	int i, status;
	pid_t child;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	print_message("# what a thread holds at a fork is a leak of the child's to its checker\n");
	skip();
#endif
	for (i = 0; i < 50; i++) {
		child = fork();
		if (!child) {
			if (pthread_create(&thread, NULL, go_on, NULL))
				_exit(1);
			usleep(1000);
			child = fork();
			if (!child)
				exit(0);
			exit(waitpid(child, &status, 0) == child && !status ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

static void the_oldest_makes_room(void **state)
{
	struct pem_probe *probe;
	char name[64];
	unsigned i;

	(void)state;
	for (i = 0; i <= PEM_PROBES_MAX; i++) {
		snprintf(name, sizeof(name), "uprobe:prog:f%u", i);
		pem_probe_cache__keep(found(PEM_PROBE_UPROBE, name));
	}
	probe = pem_probe_cache__find(name);
	assert_non_null(probe);
	pem_probe__free(probe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_had_by_its_name),
		cmocka_unit_test(other_kinds_are_not_kept),
		cmocka_unit_test(a_changed_binary_is_searched_anew),
		cmocka_unit_test(one_replaced_while_it_was_read_is_searched_anew),
		cmocka_unit_test(a_link_that_leads_elsewhere_is_searched_anew),
		cmocka_unit_test(a_name_is_looked_for_where_it_is_now),
		cmocka_unit_test(a_process_ends_while_it_is_used),
		cmocka_unit_test(the_oldest_makes_room),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
#else
#include <stdio.h>

int main(void)
{
	printf("1..0 # SKIP the kernel source was not built: clang or libbpf is missing\n");
	return 0;
}
#endif
