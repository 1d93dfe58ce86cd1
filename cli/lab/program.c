// SPDX-License-Identifier: MIT
/*
 * program.c - can the lab run a file: is it a program for its processor, or a script, and has it
 * the libraries and the interpreter that the file needs
 *
 * The kernel and the loader in the lab decide. This says the same before the machine boots, with a
 * way to mend it. The file may be broken: what it says of itself is checked against its size.
 */
#include "lab.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM_HEADERS_MOST 64u
#define DYNAMIC_MOST 1024u

/* An ELF file that is open. */
struct elf {
	int fd;
	size_t count;
	Elf64_Phdr header[PROGRAM_HEADERS_MOST];
};

/* Read so many bytes of a file. False: it has not as many there. */
static bool read_at(int fd, void *data, size_t bytes, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, data, bytes, (off_t)offset) == (ssize_t)bytes;
}

static const char *machine_name(unsigned int machine)
{
	switch (machine) {
	case EM_X86_64:
		return "x86-64";
	case EM_386:
		return "32-bit x86";
	case EM_ARM:
		return "32-bit arm";
	case EM_RISCV:
		return "RISC-V";
	default:
		return "another processor";
	}
}

#define HOW_TO "aarch64-linux-gnu-gcc -O2 -static makes one"

/* Is it a program for arm64? Returns CLI_DONE, or a status after printing a sentence. */
static int check_machine(const char *source, const unsigned char *ident, const Elf64_Ehdr *h)
{
	if (ident[EI_CLASS] == ELFCLASS64 && ident[EI_DATA] == ELFDATA2LSB &&
	    h->e_machine == EM_AARCH64 && (h->e_type == ET_EXEC || h->e_type == ET_DYN))
		return CLI_DONE;
	if (h->e_machine == EM_AARCH64)
		return cli_error(CLI_NOT_EXECUTABLE,
				 "%s is for arm64, and no program that Linux runs: " HOW_TO,
				 source);
	return cli_error(CLI_NOT_EXECUTABLE,
			 "%s is a program for %s, and the lab runs those for arm64: " HOW_TO,
			 source, machine_name(h->e_machine));
}

/* The place of an address in the file. False: the file has nothing there. */
static bool find_offset(const struct elf *elf, uint64_t address, uint64_t *offset)
{
	size_t i;

	for (i = 0; i < elf->count; i++) {
		const Elf64_Phdr *p = &elf->header[i];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz) {
			*offset = p->p_offset + (address - p->p_vaddr);
			return true;
		}
	}
	return false;
}

/* Read a text of the file. An empty one: there is none. */
static void read_text(const struct elf *elf, uint64_t offset, char *text, size_t bytes)
{
	ssize_t got = offset <= INT64_MAX ? pread(elf->fd, text, bytes - 1, (off_t)offset) : -1;

	text[got > 0 ? got : 0] = '\0';
}

/* Is a library of this name in the lab, or does one go along? */
static bool has_library(const struct lab_load *load, const char *name)
{
	const char *slash;
	size_t i;

	if (cli_lab_parts__has(&load->parts, cli_format("/lib/%s", name)) ||
	    cli_lab_parts__has(&load->parts, cli_format("/usr/lib/%s", name)))
		return true;
	for (i = 0; i < load->count; i++) {
		slash = strrchr(load->files[i].path, '/');
		if (slash != NULL && strcmp(slash + 1, name) == 0)
			return true;
	}
	return false;
}

static bool has_file(const struct lab_load *load, const char *path)
{
	size_t i;

	if (cli_lab_parts__has(&load->parts, path))
		return true;
	for (i = 0; i < load->count; i++)
		if (strcmp(load->files[i].path, path) == 0)
			return true;
	return false;
}

static int check_library(const struct lab_load *load, const char *source, const char *name)
{
	if (*name == '\0' || has_library(load, name))
		return CLI_DONE;
	return cli_error(CLI_NOT_EXECUTABLE,
			 "%s needs the library %s, which the lab does not have: take it along with "
			 "--file, or link the program with -static",
			 source, name);
}

/* Check the libraries that a part of the file names, PT_DYNAMIC. */
static int check_libraries(const struct lab_load *load, const char *source, const struct elf *elf,
			   const Elf64_Phdr *part)
{
	Elf64_Dyn entries[DYNAMIC_MOST];
	size_t count = part->p_filesz / sizeof(entries[0]), i;
	uint64_t names = 0;
	char name[NAME_MAX + 1];
	int status = CLI_DONE;

	if (count > DYNAMIC_MOST)
		count = DYNAMIC_MOST;
	if (!read_at(elf->fd, entries, count * sizeof(entries[0]), part->p_offset))
		return cli_error(CLI_NOT_EXECUTABLE, "%s is broken off", source);
	for (i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
		if (entries[i].d_tag == DT_STRTAB &&
		    !find_offset(elf, entries[i].d_un.d_ptr, &names))
			return CLI_DONE;
	for (i = 0; status == CLI_DONE && i < count && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag != DT_NEEDED || names == 0)
			continue;
		read_text(elf, names + entries[i].d_un.d_val, name, sizeof(name));
		status = check_library(load, source, name);
	}
	return status;
}

static int check_interpreter(const struct lab_load *load, const char *source, const char *path)
{
	if (*path == '\0' || has_file(load, path))
		return CLI_DONE;
	return cli_error(CLI_NOT_EXECUTABLE,
			 "%s needs %s, which the lab does not have: take it along with --file%s",
			 source, path,
			 strstr(path, "/ld-") != NULL ? ", or link the program with -static" : "");
}

static int check_elf(const struct lab_load *load, const char *source, int fd)
{
	struct elf elf = {.fd = fd};
	Elf64_Ehdr head;
	char text[PATH_MAX];
	size_t i;
	int status;

	if (!read_at(fd, &head, sizeof(head), 0))
		return cli_error(CLI_NOT_EXECUTABLE, "%s is broken off", source);
	status = check_machine(source, head.e_ident, &head);
	if (status != CLI_DONE)
		return status;
	elf.count = head.e_phnum < PROGRAM_HEADERS_MOST ? head.e_phnum : PROGRAM_HEADERS_MOST;
	if (head.e_phentsize != sizeof(elf.header[0]) ||
	    !read_at(fd, elf.header, elf.count * sizeof(elf.header[0]), head.e_phoff))
		return cli_error(CLI_NOT_EXECUTABLE, "%s is broken off", source);
	for (i = 0; status == CLI_DONE && i < elf.count; i++) {
		if (elf.header[i].p_type == PT_INTERP) {
			read_text(&elf, elf.header[i].p_offset, text, sizeof(text));
			status = check_interpreter(load, source, text);
		} else if (elf.header[i].p_type == PT_DYNAMIC) {
			status = check_libraries(load, source, &elf, &elf.header[i]);
		}
	}
	return status;
}

/* Check the interpreter of a script; text begins behind "#!". */
static int check_script(const struct lab_load *load, const char *source, char *text)
{
	char *path = text + strspn(text, " \t"), *name;
	size_t n;

	path[strcspn(path, "\n")] = '\0';
	n = strcspn(path, " \t");
	name = path + n + strspn(path + n, " \t");
	path[n] = '\0';
	if (strcmp(path, "/usr/bin/env") == 0 && *name != '\0') {
		name[strcspn(name, " \t")] = '\0';
		if (cli_lab_parts__has(&load->parts, cli_format("/bin/%s", name)))
			return CLI_DONE;
		path = name;
	}
	return check_interpreter(load, source, path);
}

/*
 * Check one file. needs_program: one that is neither a program nor a script is an error, too.
 * Returns CLI_DONE, or a status after printing a sentence.
 */
static int check(const struct lab_load *load, const char *source, bool needs_program)
{
	int fd = open(source, O_RDONLY | O_CLOEXEC), status = CLI_DONE;
	char head[256];
	ssize_t got = -1;

	if (fd >= 0)
		got = pread(fd, head, sizeof(head) - 1, 0);
	if (got < 0) {
		status = cli_error(CLI_NOT_EXECUTABLE, "cannot read %s: %s", source,
				   strerror(errno));
	} else {
		head[got] = '\0';
		if (got >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0)
			status = check_elf(load, source, fd);
		else if (needs_program && strncmp(head, "#!", 2) == 0)
			status = check_script(load, source, head + 2);
		else if (needs_program)
			status = cli_error(
				CLI_NOT_EXECUTABLE,
				"%s is neither a program for arm64 nor a script: " HOW_TO, source);
	}
	if (fd >= 0)
		close(fd);
	return status;
}

int lab_program__take(struct lab_load *load, const char *command)
{
	struct lab_file *file;
	int status;

	if (strchr(command, '/') == NULL) {
		if (cli_lab_parts__has(&load->parts, cli_format("/bin/%s", command)))
			return CLI_DONE;
		if (access(command, F_OK) == 0)
			return cli_error(CLI_NOT_FOUND,
					 "the lab has no program %s; write ./%s to take this "
					 "folder's along",
					 command, command);
		return cli_error(CLI_NOT_FOUND,
				 "the lab has no program %s: it has busybox's, and those that are "
				 "named with a path, such as ./%s, go along",
				 command, command);
	}
	if (cli_lab_parts__has(&load->parts, command))
		return CLI_DONE;
	file = lab_load__add(load, command, &status);
	if (file == NULL)
		return status;
	if (access(command, X_OK) < 0)
		return cli_error(CLI_NOT_EXECUTABLE, "%s may not be executed: %s", command,
				 strerror(errno));
	return check(load, command, true);
}

int lab_program__check_all(const struct lab_load *load)
{
	int status = CLI_DONE;
	size_t i;

	for (i = 0; status == CLI_DONE && i < load->count; i++)
		status = check(load, load->files[i].source, false);
	return status;
}

bool lab_is_library(const char *path)
{
	const char *name = strrchr(path, '/'), *so = strstr(name != NULL ? name : path, ".so");

	return so != NULL && (so[3] == '\0' || so[3] == '.');
}
