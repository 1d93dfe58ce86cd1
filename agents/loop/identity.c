/* SPDX-License-Identifier: MIT */
/* identity.c - which application and which machine: what directives are kept for */
#include "loop.h"

#include <pem/sized.h>

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

/* --- a hash of contents: FNV-1a of 128 bits (Fowler, Noll and Vo) --- */

struct hash {
	unsigned __int128 value;
};

static void begin_hash(struct hash *hash)
{
	hash->value = (unsigned __int128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
}

static void add_bytes(struct hash *hash, const void *bytes, size_t count)
{
	const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
	const uint8_t *b = bytes;
	size_t i;

	for (i = 0; i < count; i++)
		hash->value = (hash->value ^ b[i]) * prime;
}

/* A text with its end, so that "a", "b" and "ab" differ. */
static void add_text(struct hash *hash, const char *text)
{
	add_bytes(hash, text, strlen(text) + 1);
}

static void write_hash(const struct hash *hash, const char *head, char *text, size_t bytes)
{
	snprintf(text, bytes, "%s%016" PRIx64 "%016" PRIx64, head, (uint64_t)(hash->value >> 64),
		 (uint64_t)hash->value);
}

/* --- the application --- */

/* Copy a text to a member of a row: cut, and with '?' for what a row must not have. */
static void copy_text(char *to, size_t bytes, const char *from)
{
	size_t n = strlen(from);

	if (n >= bytes)
		n = bytes - 1;
	/* No character is cut in two: pem_printable would make two '?' of it, which does no harm.
	 */
	memcpy(to, from, n);
	to[n] = '\0';
	pem_printable(to);
}

/* The note GNU build-id of an ELF file. False: it has none. */
static bool read_build_id(Elf *elf, char *text, size_t bytes)
{
	size_t count, i, at, next, name, value, b;
	GElf_Phdr header;
	GElf_Nhdr note;
	Elf_Data *data;
	const uint8_t *id;

	if (elf_getphdrnum(elf, &count))
		return false;
	for (i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_NOTE)
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz,
					    header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		for (at = 0; data && (next = gelf_getnote(data, at, &note, &name, &value)) > 0;
		     at = next) {
			if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
			    memcmp((char *)data->d_buf + name, "GNU", 4) || note.n_descsz < 8 ||
			    note.n_descsz >= bytes / 2)
				continue;
			id = (const uint8_t *)data->d_buf + value;
			for (b = 0; b < note.n_descsz; b++)
				snprintf(text + 2 * b, 3, "%02x", id[b]);
			return true;
		}
	}
	return false;
}

static int hash_file(int fd, char *text, size_t bytes)
{
	char block[16384];
	struct hash hash;
	off_t at = 0;
	ssize_t n;

	begin_hash(&hash);
	while ((n = pread(fd, block, sizeof(block), at)) > 0) {
		add_bytes(&hash, block, (size_t)n);
		at += n;
	}
	write_hash(&hash, "content:", text, bytes);
	return n < 0 ? -errno : 0;
}

static int read_id(int fd, char *text, size_t bytes)
{
	Elf *elf = NULL;
	bool found;

	if (elf_version(EV_CURRENT) != EV_NONE)
		elf = elf_begin(fd, ELF_C_READ, NULL);
	found = elf && elf_kind(elf) == ELF_K_ELF && read_build_id(elf, text, bytes);
	elf_end(elf);
	return found ? 0 : hash_file(fd, text, bytes);
}

static int try_file(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || access(path, X_OK))
		return -EACCES;
	return 0;
}

/* Search the program as execvp does. */
static int find_program(const char *name, char *file)
{
	const char *path = getenv("PATH"), *end;
	int rc = -ENOENT, one;

	if (strchr(name, '/')) {
		one = snprintf(file, PATH_MAX, "%s", name);
		return one >= PATH_MAX ? -ENAMETOOLONG : try_file(file);
	}
	if (!path)
		path = "/bin:/usr/bin";
	for (; *name; path = end + 1) {
		end = strchrnul(path, ':');
		one = snprintf(file, PATH_MAX, "%.*s/%s", (int)(end - path), path, name);
		if (end == path)
			one = snprintf(file, PATH_MAX, "./%s", name);
		one = one >= PATH_MAX ? -ENAMETOOLONG : try_file(file);
		if (!one || one == -EACCES)
			rc = one;
		if (!one || !*end)
			break;
	}
	return rc;
}

/* Has a program more rights than its user? The loader ignores variables then, and so do agents. */
static bool has_rights(int fd, const struct stat *st)
{
	return st->st_mode & (S_ISUID | S_ISGID) ||
	       fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static int identify_application(struct pem_agent *agent, struct pem_error *error)
{
	struct pem_db_application *app = &agent->application;
	char whole[PATH_MAX];
	struct stat st;
	int fd, rc = find_program(agent->argv[0], agent->file);
	const char *slash;

	if (rc) {
		snprintf(error->text, sizeof(error->text), "%.400s: %s", agent->argv[0],
			 rc == -ENOENT ? "there is no such command" : strerror(-rc));
		return rc;
	}
	fd = open(agent->file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		rc = -errno;
		snprintf(error->text, sizeof(error->text), "%.400s can't be read: %s", agent->file,
			 strerror(errno));
	} else if (has_rights(fd, &st)) {
		rc = -EPERM;
		snprintf(error->text, sizeof(error->text),
			 "%.300s runs with other rights than yours (setuid, or capabilities of its "
			 "file): no agent changes such a program; start it without one",
			 agent->file);
	} else {
		rc = read_id(fd, app->build_id, sizeof(app->build_id));
		if (rc)
			snprintf(error->text, sizeof(error->text), "%.400s can't be read: %s",
				 agent->file, strerror(-rc));
	}
	if (fd >= 0)
		close(fd);
	app->size = sizeof(*app);
	copy_text(app->path, sizeof(app->path), realpath(agent->file, whole) ? whole : agent->file);
	slash = strrchr(agent->file, '/');
	copy_text(app->name, sizeof(app->name), slash ? slash + 1 : agent->file);
	return rc;
}

/* Make another application of the program with each list of arguments, in each folder: they may
 * name files of it. */
static void add_arguments(struct pem_agent *agent)
{
	struct pem_db_application *app = &agent->application;
	char words[sizeof(app->name)], folder[PATH_MAX];
	size_t used, i;
	struct hash hash;

	begin_hash(&hash);
	if (getcwd(folder, sizeof(folder)))
		add_text(&hash, folder);
	add_text(&hash, app->build_id);
	add_text(&hash, agent->run.workload);
	write_hash(&hash, "command:", app->build_id, sizeof(app->build_id));
	memcpy(words, app->name, sizeof(words));
	used = strlen(words);
	for (i = 1; agent->argv[i] && used < sizeof(words) - 1; i++)
		used += (size_t)snprintf(words + used, sizeof(words) - used, " %s", agent->argv[i]);
	copy_text(app->name, sizeof(app->name), words);
}

/* --- the machine --- */

/* The value of the first line of a file that begins with a word, behind ": ". */
static void read_line(const char *path, const char *word, char *text, size_t bytes)
{
	FILE *file = fopen(path, "re");
	char line[512], *value;

	copy_text(text, bytes, "");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, word, strlen(word)))
			continue;
		value = strchr(line, ':');
		value = value && *word ? value + 1 + strspn(value + 1, " ") : line;
		value[strcspn(value, "\n")] = '\0';
		copy_text(text, bytes, value);
		break;
	}
	if (file)
		fclose(file);
}

static void identify_machine(struct pem_db_machine *machine)
{
	char part[64];
	struct hash hash;
	struct utsname names;

	machine->size = sizeof(*machine);
	read_line("/proc/cpuinfo", "model name", machine->processor, sizeof(machine->processor));
	if (!*machine->processor) { /* arm64 has numbers */
		read_line("/proc/cpuinfo", "CPU implementer", machine->processor,
			  sizeof(machine->processor));
		read_line("/proc/cpuinfo", "CPU part", part, sizeof(part));
		snprintf(machine->processor + strlen(machine->processor),
			 sizeof(machine->processor) - strlen(machine->processor), " %s", part);
	}
	if (!uname(&names))
		copy_text(machine->kernel, sizeof(machine->kernel), names.release);
	read_line("/sys/class/dmi/id/sys_vendor", "", machine->hypervisor,
		  sizeof(machine->hypervisor));
	begin_hash(&hash);
	add_text(&hash, machine->processor);
	add_text(&hash, machine->kernel);
	add_text(&hash, machine->hypervisor);
	write_hash(&hash, "", machine->fingerprint, sizeof(machine->fingerprint));
}

int agent_identify(struct pem_agent *agent, struct pem_error *error)
{
	struct hash hash;
	size_t i;
	int rc;

	/* Equal arguments are taken for equal work. */
	begin_hash(&hash);
	for (i = 0; agent->argv[i]; i++)
		add_text(&hash, agent->argv[i]);
	write_hash(&hash, "", agent->run.workload, sizeof(agent->run.workload));
	identify_machine(&agent->machine);
	rc = identify_application(agent, error);
	if (!rc && agent->options.by_arguments)
		add_arguments(agent);
	return rc;
}

int pem_agent__identify(const char *command, struct pem_db_application *application,
			struct pem_db_machine *machine, struct pem_error *error)
{
	char *argv[] = {(char *)(uintptr_t)command, NULL};
	struct pem_agent *agent = calloc(1, sizeof(*agent));
	struct pem_error own;
	int rc = agent ? 0 : -ENOMEM;

	if (!error)
		error = &own;
	if (!agent)
		snprintf(error->text, sizeof(error->text), "out of memory");
	if (!rc && (pem_sized__check(application) || pem_sized__check(machine))) {
		snprintf(error->text, sizeof(error->text),
			 "a struct has a size that no version of it has");
		rc = -EINVAL;
	}
	if (!rc) {
		agent->argv = argv;
		rc = agent_identify(agent, error);
	}
	if (!rc) {
		pem_sized__write(application, 0, &agent->application, sizeof(*application));
		pem_sized__write(machine, 0, &agent->machine, sizeof(*machine));
	}
	free(agent);
	return rc;
}
