// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * files.c - opens files of code for unwinding, and shares them among processes
 *
 * Not here: which process has mapped which file, and unwinding (unwind.c).
 *
 * Of a file its headers and call frame information are read into memory, then it is closed: a cut
 * of the file raises no SIGBUS, and libdwfl finds nothing else to read, such as debug information
 * of hundreds of megabytes. Every process that has mapped the file uses the same copy. Files that
 * no process uses any more are kept for a while, for a program that runs again and again.
 *
 * A path is opened as the recorder sees it. In another mount namespace it may name another file:
 * the build id that the kernel told must be the file's.
 */
#include "unwind.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEGMENTS_MAX 16u /* of code and data; linkers make 2 to 6 */
#define PROGRAM_HEADERS_MAX 128u
#define SECTIONS_MAX 16384u
/* Call frame information of a file: that of Chromium takes 20 MiB. */
#define FILE_BYTES_MAX (64ull << 20)
#define ALL_BYTES_MAX (256ull << 20)
#define IDLE_BYTES_MAX (64ull << 20)
#define IDLE_FILES_MAX 128u

#ifdef __x86_64__
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

struct unwind_file {
	struct unwind_file *next;
	unsigned users; /* 0: it is idle */
	uint64_t idle_since;
	uint64_t number;
	struct statx about; /* which file it is, and in which version */
	Elf *elf;
	uint64_t bytes;
	uint8_t id_bytes; /* of its build id; 0: it has none */
	uint8_t id[20];
	bool is_fixed; /* it lies at the addresses that it was linked for */
	unsigned segment_count;
	GElf_Phdr segments[SEGMENTS_MAX];
	uint64_t low, high; /* addresses that the segments were linked for */
};

struct unwind_files {
	bool trusts_files;
	struct unwind_file *first;
	struct unwind_file *vdso; /* NULL: there is none */
	uint64_t numbers; /* given so far */
	uint64_t now; /* counts what became idle */
	uint64_t bytes, idle_bytes;
	unsigned idle;
};

/* --- which files may be opened --- */

static int open_path(const char *path, bool may_wait)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	/* Linux before 5.12, or a filter of system calls, knows no such look-up. */
	if (fd >= 0 || (errno == EAGAIN && !may_wait) ||
	    (errno != EAGAIN && errno != ENOSYS && errno != EINVAL && errno != EPERM))
		return fd;
	return open(path, O_PATH | O_CLOEXEC);
}

/*
 * What keeps files on disks or in memory. Opening a file of another kind can wait for somebody, and
 * one of /proc can be anybody's: a program's root folder decides which path the kernel tells.
 */
static const char *const local_types[] = {
	"ext2",    "ext3",  "ext4",     "xfs", "btrfs",  "f2fs",     "zfs",     "tmpfs", "ramfs",
	"overlay", "erofs", "bcachefs", "jfs", "rootfs", "squashfs", "iso9660", "aufs"};
/* What a user may have named a program on as well. */
static const char *const remote_types[] = {"nfs",      "nfs4", "cifs",  "smb3",   "ceph", "9p",
					   "virtiofs", "fuse", "afs",   "lustre", "gfs2", "fuseblk",
					   "vboxsf",   "vfat", "exfat", "ntfs3"};

static bool is_among(const char *const *types, size_t count, const char *type, size_t bytes)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (strlen(types[i]) == bytes && !strncmp(types[i], type, bytes))
			return true;
	return false;
}

static bool is_storage(const char *type, bool may_wait)
{
	size_t bytes = strcspn(type, " .\n"); /* fuse.NAME */

	return is_among(local_types, sizeof(local_types) / sizeof(local_types[0]), type, bytes) ||
	       (may_wait && is_among(remote_types, sizeof(remote_types) / sizeof(remote_types[0]),
				     type, bytes));
}

/*
 * May files of the mount be opened? The list of mounts says what it is: asking the file system
 * itself may wait.
 */
static bool may_open(uint64_t mount, bool may_wait)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	bool found = false, may = false;
	char *line = NULL;
	size_t room = 0;

	while (mounts && !found && getline(&line, &room, mounts) > 0) {
		const char *type = strstr(line, " - ");

		found = strtoull(line, NULL, 10) == mount;
		if (found && type)
			may = is_storage(type + 3, may_wait);
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return may;
}

static bool may_read(const struct unwind_files *files, const struct statx *about)
{
	if (!S_ISREG(about->stx_mode))
		return false;
	if (files->trusts_files)
		return true;
	return about->stx_uid == 0 || about->stx_uid == geteuid();
}

/*
 * Find a file without opening it: a device or a pipe would do something, or block. Returns a
 * descriptor of O_PATH, or -1.
 */
static int find(const struct unwind_files *files, const char *path, struct statx *about)
{
	int handle = open_path(path, files->trusts_files);

	if (handle < 0)
		return -1;
	if (!statx(handle, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_MNT_ID,
		   about) &&
	    may_read(files, about))
		return handle;
	close(handle);
	return -1;
}

/* O_NONBLOCK: another process's lease on the file is not waited for. */
static int open_found(const struct unwind_files *files, int handle, const struct statx *about)
{
	char self[32];

	/* Linux before 5.8 tells no mount. */
	if (about->stx_mask & STATX_MNT_ID ? !may_open(about->stx_mnt_id, files->trusts_files)
					   : !files->trusts_files)
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
	return open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static bool is_same(const struct statx *one, const struct statx *other)
{
	return one->stx_dev_major == other->stx_dev_major &&
	       one->stx_dev_minor == other->stx_dev_minor && one->stx_ino == other->stx_ino &&
	       one->stx_size == other->stx_size &&
	       one->stx_mtime.tv_sec == other->stx_mtime.tv_sec &&
	       one->stx_mtime.tv_nsec == other->stx_mtime.tv_nsec;
}

/* --- what is read of them --- */

/* Is it a header of this machine's code, with tables of a common size? */
static bool is_usable(const Elf64_Ehdr *head)
{
	return !memcmp(head->e_ident, ELFMAG, SELFMAG) && head->e_ident[EI_CLASS] == ELFCLASS64 &&
	       head->e_ident[EI_DATA] == ELFDATA2LSB &&
	       (head->e_type == ET_EXEC || head->e_type == ET_DYN) && head->e_machine == MACHINE &&
	       head->e_phnum != 0 && head->e_phnum <= PROGRAM_HEADERS_MAX &&
	       head->e_shnum <= SECTIONS_MAX && (head->e_shnum != 0 || head->e_shoff == 0);
}

static int keep_segments(struct unwind_file *file)
{
	size_t count = 0, i;
	GElf_Phdr segment;

	if (elf_getphdrnum(file->elf, &count) != 0)
		return -ENOEXEC;
	for (i = 0; i < count && i < PROGRAM_HEADERS_MAX; i++) {
		if (!gelf_getphdr(file->elf, (int)i, &segment))
			return -ENOEXEC;
		if (segment.p_type != PT_LOAD)
			continue;
		if (file->segment_count == SEGMENTS_MAX || !segment.p_align ||
		    segment.p_align & (segment.p_align - 1) ||
		    segment.p_memsz > UINT64_MAX - segment.p_vaddr)
			return -ENOEXEC;
		/* libdwfl counts from the first one, and ELF wants them in order. */
		if (!file->segment_count)
			file->low = segment.p_vaddr & -segment.p_align;
		if (segment.p_vaddr < file->low)
			return -ENOEXEC;
		if (segment.p_vaddr + segment.p_memsz > file->high)
			file->high = segment.p_vaddr + segment.p_memsz;
		file->segments[file->segment_count++] = segment;
	}
	return file->low < file->high ? 0 : -ENOEXEC;
}

/* How much memory the call frame information takes at most. */
static uint64_t frame_bytes(const struct unwind_file *file)
{
	uint64_t bytes = 0;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names) != 0 || !elf_nextscn(file->elf, NULL))
		return file->about.stx_size;
	while ((section = elf_nextscn(file->elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(file->elf, names, header.sh_name);
		if (name && (!strcmp(name, ".eh_frame") || !strcmp(name, ".eh_frame_hdr"))) {
			if (header.sh_size > FILE_BYTES_MAX)
				return UINT64_MAX;
			bytes += header.sh_size;
		}
	}
	return bytes;
}

/* Read what unwinding needs. libelf keeps it. Returns 0 or -ENOEXEC. */
static int read_frames(struct unwind_file *file, uint64_t most)
{
	Dwarf_CFI *frames;

	file->bytes = frame_bytes(file);
	if (file->bytes > most || unwind_frames__check(file->elf) < 0)
		return -ENOEXEC;
	frames = dwarf_getcfi_elf(file->elf);
	if (!frames)
		return -ENOEXEC;
	dwarf_cfi_end(frames);
	return keep_segments(file);
}

/* The build id among a segment's notes (elf(5)), if it is there. */
static void keep_id_of_notes(struct unwind_file *file, const uint8_t *notes, size_t bytes)
{
	Elf64_Nhdr note;

	while (bytes >= sizeof(note)) {
		size_t name, whole;

		memcpy(&note, notes, sizeof(note));
		name = sizeof(note) + (((size_t)note.n_namesz + 3) & ~(size_t)3);
		whole = name + (((size_t)note.n_descsz + 3) & ~(size_t)3);
		if (whole > bytes)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    !memcmp(notes + sizeof(note), "GNU", sizeof("GNU")) &&
		    note.n_descsz <= sizeof(file->id)) {
			file->id_bytes = (uint8_t)note.n_descsz;
			memcpy(file->id, notes + name, note.n_descsz);
			return;
		}
		notes += whole;
		bytes -= whole;
	}
}

/*
 * Read the build id as the kernel does. libdw's function for it leaks memory if headers are damaged
 * (elfutils 0.188).
 */
static void keep_build_id(struct unwind_file *file, int fd)
{
	uint8_t notes[4096];
	GElf_Phdr segment;
	size_t count = 0, i;

	if (elf_getphdrnum(file->elf, &count) != 0)
		return;
	for (i = 0; i < count && i < PROGRAM_HEADERS_MAX && !file->id_bytes; i++) {
		ssize_t bytes;

		if (!gelf_getphdr(file->elf, (int)i, &segment) || segment.p_type != PT_NOTE ||
		    segment.p_filesz > sizeof(notes) || segment.p_offset > INT64_MAX)
			continue;
		bytes = pread(fd, notes, segment.p_filesz, (off_t)segment.p_offset);
		if (bytes > 0)
			keep_id_of_notes(file, notes, (size_t)bytes);
	}
}

static bool has_build_id(const struct unwind_file *file, const struct ring_map *map)
{
	return !map->build_id_bytes || (map->build_id_bytes == file->id_bytes &&
					!memcmp(map->build_id, file->id, file->id_bytes));
}

static void free_file(struct unwind_file *file)
{
	if (!file)
		return;
	elf_end(file->elf);
	free(file);
}

/* Returns a file that is nobody's yet, or NULL. */
static struct unwind_file *read_file(int fd, const struct statx *about, const struct ring_map *map,
				     uint64_t most)
{
	struct unwind_file *file;
	Elf64_Ehdr head;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) || !is_usable(&head))
		return NULL;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->about = *about;
	file->is_fixed = head.e_type == ET_EXEC;
	file->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (file->elf)
		keep_build_id(file, fd);
	if (!file->elf || !has_build_id(file, map) || read_frames(file, most) < 0) {
		free_file(file);
		return NULL;
	}
	elf_cntl(file->elf, ELF_C_FDDONE);
	return file;
}

/* The kernel's own library, as it lies in this process: it is the same in all. */
static struct unwind_file *read_vdso(void)
{
	/* performance-no-int-to-ptr: the kernel passes the address as a number. */
	char *image = (char *)getauxval(AT_SYSINFO_EHDR); /* NOLINT(performance-no-int-to-ptr) */
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)image;
	struct unwind_file *file;

	if (!image || !is_usable(head) || !head->e_shnum)
		return NULL;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->elf = elf_memory(image, head->e_shoff + (size_t)head->e_shnum * sizeof(Elf64_Shdr));
	if (!file->elf || read_frames(file, FILE_BYTES_MAX) < 0) {
		free_file(file);
		return NULL;
	}
	return file;
}

/* --- who uses them --- */

struct unwind_files *unwind_files__open(bool trusts_files)
{
	struct unwind_files *files = calloc(1, sizeof(*files));

	if (!files)
		return NULL;
	elf_version(EV_CURRENT);
	files->trusts_files = trusts_files;
	files->vdso = read_vdso();
	return files;
}

static void drop(struct unwind_files *files, struct unwind_file **at)
{
	struct unwind_file *file = *at;

	*at = file->next;
	files->bytes -= file->bytes;
	files->idle_bytes -= file->bytes;
	files->idle--;
	free_file(file);
}

/* Drop idle files, the longest idle first, until the rest takes at most these bytes. */
static void keep_idle(struct unwind_files *files, uint64_t bytes)
{
	while (files->idle && (files->idle > IDLE_FILES_MAX || files->idle_bytes > bytes)) {
		struct unwind_file **at, **oldest = NULL;

		for (at = &files->first; *at; at = &(*at)->next)
			if (!(*at)->users && (!oldest || (*at)->idle_since < (*oldest)->idle_since))
				oldest = at;
		drop(files, oldest);
	}
}

static struct unwind_file *use(struct unwind_files *files, struct unwind_file *file)
{
	if (!file->users++) {
		files->idle--;
		files->idle_bytes -= file->bytes;
	}
	return file;
}

static struct unwind_file *add(struct unwind_files *files, int handle, const struct statx *about,
			       const struct ring_map *map)
{
	int fd = open_found(files, handle, about);
	struct unwind_file *file;
	uint64_t used;

	if (fd < 0)
		return NULL;
	used = files->bytes - files->idle_bytes;
	file = read_file(fd, about, map,
			 FILE_BYTES_MAX < ALL_BYTES_MAX - used ? FILE_BYTES_MAX
							       : ALL_BYTES_MAX - used);
	close(fd);
	if (!file)
		return NULL;
	file->number = ++files->numbers;
	file->users = 1;
	file->next = files->first;
	files->first = file;
	files->bytes += file->bytes;
	used += file->bytes;
	keep_idle(files,
		  IDLE_BYTES_MAX < ALL_BYTES_MAX - used ? IDLE_BYTES_MAX : ALL_BYTES_MAX - used);
	return file;
}

struct unwind_file *unwind_files__get(struct unwind_files *files, const struct ring_map *map)
{
	struct unwind_file *file;
	struct statx about = {0};
	int handle;

	if (!strcmp(map->path, "[vdso]"))
		return files->vdso;
	if (map->path[0] != '/')
		return NULL;
	handle = find(files, map->path, &about);
	if (handle < 0)
		return NULL;
	for (file = files->first; file && !is_same(&file->about, &about);)
		file = file->next;
	if (!file)
		file = add(files, handle, &about, map);
	else
		file = has_build_id(file, map) ? use(files, file) : NULL;
	close(handle);
	return file;
}

void unwind_files__put(struct unwind_files *files, struct unwind_file *file)
{
	if (!file || file == files->vdso || --file->users)
		return;
	files->idle++;
	files->idle_bytes += file->bytes;
	file->idle_since = ++files->now;
	keep_idle(files, IDLE_BYTES_MAX);
}

void unwind_files__close(struct unwind_files *files)
{
	if (!files)
		return;
	while (files->first) {
		struct unwind_file *file = files->first;

		files->first = file->next;
		free_file(file);
	}
	free_file(files->vdso);
	free(files);
}

uint64_t unwind_file__number(const struct unwind_file *file)
{
	return file->number;
}

struct Elf *unwind_file__elf(const struct unwind_file *file)
{
	return elf_begin(-1, ELF_C_READ, file->elf);
}

int unwind_file__extent(const struct unwind_file *file, const struct ring_map *map, uint64_t *low,
			uint64_t *high)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bias;
	const GElf_Phdr *segment = NULL;
	unsigned i;

	for (i = 0; i < file->segment_count; i++) {
		const GElf_Phdr *s = &file->segments[i];

		/* Two segments may share a page of the file: code is what was mapped. */
		if (map->offset >= (s->p_offset & -page) &&
		    map->offset - (s->p_offset & -page) <
			    s->p_filesz + (s->p_offset & (page - 1)) &&
		    (!segment || s->p_flags & PF_X))
			segment = s;
	}
	if (!segment)
		return -EINVAL;
	bias = map->address - (segment->p_vaddr + (map->offset - segment->p_offset));
	if (bias & (page - 1) || (file->is_fixed && bias) ||
	    file->high + bias <= file->low + bias || map->address < file->low + bias ||
	    map->address >= file->high + bias)
		return -EINVAL;
	*low = file->low + bias;
	*high = file->high + bias;
	return 0;
}
