/* SPDX-License-Identifier: MIT */
/* observer.c - what a command is observed with, and which commands can be */
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TOOL "pem-page-size"
#define STACK_MIN (UINT64_C(1) << 20)
#define HOOKS "libpem-page-size-hooks.so"
#define NEEDED_MAX 256u

struct image {
	int fd;
	Elf64_Ehdr head;
};

static bool read_head(int fd, Elf64_Ehdr *head)
{
	return pread(fd, head, sizeof(*head), 0) == sizeof(*head) &&
	       !memcmp(head->e_ident, ELFMAG, SELFMAG);
}

/* Is an ELF file for this program's processor, and of its size of words? */
static bool is_native(const Elf64_Ehdr *head)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr own;
	bool known = fd >= 0 && read_head(fd, &own);

	if (fd >= 0)
		close(fd);
	return !known || (own.e_ident[EI_CLASS] == head->e_ident[EI_CLASS] &&
			  own.e_machine == head->e_machine);
}

static bool get_program(const struct image *image, unsigned i, Elf64_Phdr *program)
{
	return i < image->head.e_phnum &&
	       pread(image->fd, program, sizeof(*program),
		     (off_t)(image->head.e_phoff + i * sizeof(*program))) == sizeof(*program);
}

/* Where the file has what is mapped at an address; 0: nowhere. */
static off_t offset_of(const struct image *image, Elf64_Addr at)
{
	Elf64_Phdr program;
	unsigned i;

	for (i = 0; get_program(image, i, &program); i++) {
		if (program.p_type == PT_LOAD && at >= program.p_vaddr &&
		    at - program.p_vaddr < program.p_filesz)
			return (off_t)(program.p_offset + (at - program.p_vaddr));
	}
	return 0;
}

static void get_text(const struct image *image, off_t at, char *text, size_t bytes)
{
	ssize_t got = pread(image->fd, text, bytes - 1, at);

	text[got > 0 ? got : 0] = '\0';
}

/* Does a program need a library whose name begins with one of these? NULL ends them. */
static bool needs_library(const struct image *image, const Elf64_Phdr *dynamic,
			  const char *const *names)
{
	Elf64_Dyn entries[NEEDED_MAX];
	ssize_t got = pread(image->fd, entries, sizeof(entries), (off_t)dynamic->p_offset);
	size_t count = got > 0 ? (size_t)got / sizeof(entries[0]) : 0, i, j;
	off_t strings = 0;
	char name[sizeof(HOOKS)];

	for (i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_STRTAB)
			strings = offset_of(image, entries[i].d_un.d_ptr);
	}
	for (i = 0; strings && i < count && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag != DT_NEEDED)
			continue;
		get_text(image, strings + (off_t)entries[i].d_un.d_val, name, sizeof(name));
		for (j = 0; names[j]; j++) {
			if (!strncmp(name, names[j], strlen(names[j])))
				return true;
		}
	}
	return false;
}

/* Does a program need a library that has to be loaded before all others? */
static bool needs_sanitizer(const struct image *image, const Elf64_Phdr *dynamic)
{
	static const char *const first[] = {"libasan.so", "libtsan.so", "liblsan.so",
					    "libhwasan.so", NULL};

	return needs_library(image, dynamic, first);
}

/* Why nothing can be preloaded; NULL: it can. A script's interpreter is what counts. */
static const char *refusal(struct image *image)
{
	bool is_dynamic = false;
	Elf64_Phdr program;
	char text[64];
	unsigned i;

	if (!read_head(image->fd, &image->head))
		return NULL;
	if (!is_native(&image->head))
		return "is for another processor, or of 32 bits: nothing of this pem can be "
		       "preloaded into it";
	for (i = 0; get_program(image, i, &program); i++) {
		if (program.p_type == PT_DYNAMIC && needs_sanitizer(image, &program))
			return "is built with a sanitizer, which has to come before all that is "
			       "preloaded";
		if (program.p_type != PT_INTERP)
			continue;
		is_dynamic = true;
		get_text(image, (off_t)program.p_offset, text, sizeof(text));
		if (strstr(text, "/ld-musl"))
			return "is linked with musl, and what is preloaded needs the GNU C library";
	}
	/* The kernel says what is wrong with a file that is cut. */
	return is_dynamic || i < image->head.e_phnum
		       ? NULL
		       : "is linked statically: nothing can be preloaded into it";
}

int page_program__check(const char *file, struct pem_error *error)
{
	struct image image = {.fd = open(file, O_RDONLY | O_CLOEXEC)};
	const char *why = NULL;

	/* Who can't be read is refused by the loop. */
	if (image.fd >= 0) {
		why = refusal(&image);
		close(image.fd);
	}
	if (!why)
		return 0;
	snprintf(error->text, sizeof(error->text),
		 "%.300s %s, so its pages can't be chosen; run it without an agent", file, why);
	return -EOPNOTSUPP;
}

/* Is the program linked with the runtime of compiler hooks? */
static bool has_hooks(const char *command)
{
	static const char *const hooks[] = {HOOKS, NULL};
	struct image image = {.fd = -1};
	Elf64_Phdr program;
	char file[PATH_MAX];
	bool found = false;
	unsigned i;

	if (cli_command__check(command, file, sizeof(file)) == CLI_DONE)
		image.fd = open(file, O_RDONLY | O_CLOEXEC);
	if (image.fd < 0)
		return false;
	if (read_head(image.fd, &image.head)) {
		for (i = 0; !found && get_program(&image, i, &program); i++)
			found = program.p_type == PT_DYNAMIC &&
				needs_library(&image, &program, hooks);
	}
	close(image.fd);
	return found;
}

static int refuse(struct pem_error *error, const char *sentence)
{
	snprintf(error->text, sizeof(error->text), "%s", sentence);
	return -ENOENT;
}

/*
 * Valgrind lets the main thread's stack grow to what it is told at its start, and to 16 MiB if it
 * is not. Linux goes by the limit of the moment, which a program may raise. What it is told costs
 * addresses only.
 */
static uint64_t stack_bytes(void)
{
	const uint64_t most = UINT64_C(32) << 30, may_raise = UINT64_C(1) << 30;
	struct rlimit limit;
	uint64_t bytes;

	if (getrlimit(RLIMIT_STACK, &limit))
		return may_raise;
	bytes = limit.rlim_max < may_raise ? limit.rlim_max : may_raise;
	if (limit.rlim_cur > bytes)
		bytes = limit.rlim_cur < most ? limit.rlim_cur : most;
	/* Valgrind takes no less. */
	return bytes > STACK_MIN ? bytes : STACK_MIN;
}

static int find_valgrind(struct page_observer *observer, const char *profile, uint32_t limit_s,
			 struct pem_error *error)
{
	static char tool[] = "--tool=" TOOL, quiet[] = "-q", others[] = "--follow-exec=yes";
	static char forks[] = "--follow-fork=no";
	/* The user's options are for another tool. */
	static char alone[] = "--command-line-only=yes";
	char file[PATH_MAX];
	char *slash;
	int rc;

	if (cli_library_file("pem/valgrind/" TOOL "-amd64-linux", file, sizeof(file)))
		return refuse(error, "there is no observer here: pem was built without Valgrind's "
				     "libraries; install them, then build pem again");
	slash = strrchr(file, '/');
	*slash = '\0';
	strcpy(observer->folder, file);
	/* Valgrind preloads its own libraries from there. */
	rc = page_quote_folder(observer->folder, sizeof(observer->folder), error);
	if (rc)
		return rc;
	observer->variables[0][0] = "VALGRIND_LIB";
	observer->variables[0][1] = observer->folder;
	if (cli_command__check("valgrind", observer->program, sizeof(observer->program)) !=
	    CLI_DONE)
		return refuse(error, "there is no observer here: install Valgrind (package "
				     "valgrind)");
	snprintf(observer->profile_option, sizeof(observer->profile_option), "--profile=%s",
		 profile);
	snprintf(observer->limit_option, sizeof(observer->limit_option), "--limit=%u", limit_s);
	snprintf(observer->stack_option, sizeof(observer->stack_option),
		 "--main-stacksize=%" PRIu64, stack_bytes());
	observer->words[0] = observer->program;
	observer->words[1] = tool;
	observer->words[2] = quiet;
	observer->words[3] = others;
	observer->words[4] = observer->profile_option;
	observer->words[5] = observer->limit_option;
	observer->words[6] = forks;
	observer->words[7] = alone;
	observer->words[8] = observer->stack_option;
	observer->words[9] = NULL;
	return 0;
}

int page_observer__find(struct page_observer *observer, const char *command, const char *profile,
			uint32_t limit_s, struct pem_error *error)
{
	memset(observer, 0, sizeof(*observer));
	observer->source = PROFILE_VALGRIND;
	if (!has_hooks(command))
		return find_valgrind(observer, profile, limit_s, error);
	observer->source = PROFILE_COMPILER;
	snprintf(observer->profile_option, sizeof(observer->profile_option), "%s", profile);
	snprintf(observer->limit_option, sizeof(observer->limit_option), "limit=%u", limit_s);
	observer->variables[0][0] = "PEM_PAGE_SIZE_PROFILE";
	observer->variables[0][1] = observer->profile_option;
	observer->variables[1][0] = "PEM_PAGE_SIZE_PROFILE_OPTIONS";
	observer->variables[1][1] = observer->limit_option;
	return 0;
}

const char *page_observer__name(enum profile_source source)
{
	return source == PROFILE_VALGRIND   ? "Valgrind"
	       : source == PROFILE_COMPILER ? "compiler hooks"
					    : "samples";
}
