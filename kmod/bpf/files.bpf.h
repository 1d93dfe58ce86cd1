/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * files.bpf.h - which file a system call is on, and the arguments of a process
 *
 * A system call's record has a descriptor's number. An event of the file tells once what that is:
 * before, or directly behind, the first call on it, and again when the descriptor has become
 * another file, or none: then with an empty path. Of calls that take a path without a slash in
 * front it tells the folder in which that path begins; PEM_AT_FDCWD is the thread's current
 * folder. pem_files_told remembers what has been told: a word for each descriptor, of a hash of
 * process, descriptor, file and inode. An epoch is hashed, too. User space raises it when a
 * consumer of the records may have missed what was told, and all is told again.
 *
 * Two descriptors may have the same word. Then each tells again after the other. So nothing is
 * claimed that is false, unless two hashes of 64 bits are equal, or a file was freed and another
 * one of the same inode, by another name, came to lie at the same address, or a folder above was
 * renamed since.
 */
#ifndef PEM_FILES_BPF_H
#define PEM_FILES_BPF_H

#define PEM_FILES_TOLD 16384u /* a power of two */
#define PEM_PATH_BYTES 128u /* of a path's field, with its NUL */
#define PEM_PATH_NAMES 16u
#define PEM_TAIL_BYTES (PEM_PATH_BYTES - 4u) /* of a name, behind "..." */
#define PEM_PATH_STEPS 24u /* names and mounts */
#define PEM_ARGUMENTS_BYTES 256u

#define PEM_AT_FDCWD ((uint32_t)-100)
#define PEM_S_IFMT 0170000u
#define PEM_S_IFIFO 0010000u
#define PEM_S_IFSOCK 0140000u

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 8);
	__uint(max_entries, PEM_FILES_TOLD);
} pem_files_told SEC(".maps");

/*
 * A path's field. To the verifier, a write may begin at its last byte and be as long as the field.
 * There is always as much memory behind it: the ring's slack.
 */
struct pem_path_field {
	uint8_t text[2 * PEM_PATH_BYTES];
};

/* What a string field is made from. */
struct pem_file_path {
	struct pem_kevent *e;
};
struct pem_arguments {
	const struct task_struct *task;
};
struct pem_user_path {
	uint64_t path;
};
struct pem_comm {
	const struct task_struct *task;
};

/* One round of a multiplicative hash, with Knuth's constant of 64 bits. */
PEM_INLINE uint64_t pem_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

#include "sockets.bpf.h"

/*
 * Find the current folder of the thread. Returns what differs between two that it is one after the
 * other: also if one is renamed, or the same one on another mount.
 */
PEM_INLINE uint64_t pem_find_folder(struct pem_kevent *e)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fs_struct *fs = BPF_CORE_READ(task, fs);
	struct dentry *folder = BPF_CORE_READ(fs, pwd.dentry);
	uint64_t what;

	e->mount = BPF_CORE_READ(fs, pwd.mnt);
	e->dentry = folder;
	e->inode = BPF_CORE_READ(folder, d_inode);
	what = pem_mix((uint64_t)e->mount, (uint64_t)folder);
	/* The name's hash is of the folder above, too. */
	return pem_mix(what, BPF_CORE_READ(folder, d_name.hash)) | 1;
}

/* The file of a descriptor of the current process. NULL: none. */
PEM_INLINE struct file *pem_file_of(uint32_t descriptor)
{
	struct fdtable *table = bpf_get_current_task_btf()->files->fdt;
	struct file *file = NULL;

	if (descriptor < table->max_fds)
		bpf_probe_read_kernel(&file, sizeof(file), table->fd + descriptor);
	return file;
}

/* Is an argument of the call a path? argument: 0 or 1. */
PEM_INLINE bool pem_is_path_call(uint32_t argument, uint64_t number)
{
	return pem_config.path_calls[argument][number / 64 & (PEM_KCALLS_MAX / 64 - 1)] >>
		       (number & 63) &
	       1;
}

/*
 * Does this call depend on a descriptor, its first argument: because it is on that descriptor's
 * file, as fstat of the C library is, too (its path is empty), or because its path begins there?
 */
PEM_INLINE bool pem_is_on_descriptor(struct pem_kevent *e, uint64_t first, uint64_t second,
				     uint64_t number)
{
	bool is_path = pem_is_path_call(0, number);
	char slash = '/';

	if (number >= PEM_KCALLS_MAX)
		return false;
	e->descriptor = is_path ? PEM_AT_FDCWD : (uint32_t)first;
	if (pem_config.descriptor_calls[number / 64 & (PEM_KCALLS_MAX / 64 - 1)] >> (number & 63) &
	    1)
		return true;
	if (!is_path && !pem_is_path_call(1, number))
		return false;
	return !bpf_probe_read_user(&slash, sizeof(slash),
				    (const void *)(is_path ? first : second)) &&
	       slash != '/';
}

/* Is this call on a file, or in a folder, that has not been told yet? */
__attribute__((unused)) PEM_INLINE bool pem_new_file(struct pem_kevent *e,
						     const struct pt_regs *regs, uint64_t number)
{
	uint64_t thread = bpf_get_current_pid_tgid(), hash, what, mark, last;
	struct inode *inode;
	struct file *file = NULL;
	uint32_t index;
	bool is_folder;

	if (pem_config.no_reading || !pem_is_on_descriptor(e, PT_REGS_PARM1_SYSCALL(regs),
							   PT_REGS_PARM2_SYSCALL(regs), number))
		return false;
	e->sock = NULL;
	e->address = 0;
	e->address_bytes = 0;
	/* Descriptors are those of the process; threads may have a current folder each. */
	is_folder = e->descriptor == PEM_AT_FDCWD;
	if (is_folder) {
		what = pem_find_folder(e);
	} else {
		file = pem_file_of(e->descriptor);
		inode = BPF_CORE_READ(file, f_inode); /* NULL without a file */
		e->inode = inode;
		what = (uint64_t)file;
		if ((BPF_CORE_READ(inode, i_mode) & PEM_S_IFMT) == PEM_S_IFSOCK)
			what = pem_mix(what, pem_find_peer(e, file, regs, number));
	}
	hash = pem_mix(pem_mix(0, is_folder ? thread : thread >> 32), e->descriptor);
	index = hash >> 40 & (PEM_FILES_TOLD - 1);
	mark = pem_mix(pem_mix(hash, what), (uint64_t)e->inode);
	mark = pem_mix(mark, PEM_LOAD(pem_control.told_epoch)) | 1;
	e->told = bpf_map_lookup_elem(&pem_files_told, &index);
	if (!e->told)
		return false;
	last = PEM_LOAD(*e->told);
	/* That a descriptor has no file is told only where another file may have been told. */
	if (last == mark || !(what | last))
		return false;
	e->told_mark = mark;
	if (!is_folder) {
		e->mount = BPF_CORE_READ(file, f_path.mnt);
		e->dentry = BPF_CORE_READ(file, f_path.dentry);
	}
	/* Read again: a number that was compared makes another way of each comparison to the
	 * verifier. */
	inode = e->inode;
	e->kind = BPF_CORE_READ(inode, i_mode) >> 12;
	/* A record that is lost has told nothing. Without a record the event is only counted. */
	if (!(e->flags & PEM_ACTION_LOG))
		PEM_STORE(*e->told, mark);
	return true;
}

/* Does this call take a path? */
__attribute__((unused)) PEM_INLINE bool pem_takes_path(struct pem_kevent *e, uint64_t first,
						       uint64_t second, uint64_t number)
{
	if (number >= PEM_KCALLS_MAX)
		return false;
	e->path = pem_is_path_call(0, number) ? first : second;
	return pem_is_path_call(0, number) || pem_is_path_call(1, number);
}

__attribute__((unused)) PEM_INLINE struct pem_user_path pem_call_path(const struct pem_kevent *e)
{
	return (struct pem_user_path){e->path};
}

/* The inode of the event's file; NULL: it has none. */
__attribute__((unused)) PEM_INLINE struct inode *pem_inode(const struct pem_kevent *e)
{
	return e->inode;
}

/* The kind of the event's file: st_mode >> 12; 0: it has none. */
__attribute__((unused)) PEM_INLINE uint32_t pem_file_kind(const struct pem_kevent *e)
{
	return e->kind;
}

/* The descriptor that the event's file is. */
__attribute__((unused)) PEM_INLINE uint32_t pem_descriptor(const struct pem_kevent *e)
{
	return e->descriptor;
}

__attribute__((unused)) PEM_INLINE struct pem_file_path pem_file_path(struct pem_kevent *e)
{
	return (struct pem_file_path){e};
}

__attribute__((unused)) PEM_INLINE struct pem_arguments
pem_arguments(const struct task_struct *task)
{
	return (struct pem_arguments){task};
}

__attribute__((unused)) PEM_INLINE struct pem_comm pem_comm(const struct task_struct *task)
{
	return (struct pem_comm){task};
}

/* --- strings --- */

/* Loops are bpf_loop()'s: the verifier walks a loop's body once, whatever the rounds. */

static const char pem_cut_text[] SEC(".rodata.texts") = "...";
static const char pem_unread_text[] SEC(".rodata.texts") = "?";
static const char pem_descriptor_text[] SEC(".rodata.texts") = "(descriptor)";
static const char pem_pipe_text[] SEC(".rodata.texts") = "pipe:[%lu]";
static const char pem_socket_text[] SEC(".rodata.texts") = "socket:[%lu]";

/*
 * What is in no folder, as /proc/PID/fd shows it: pipe:[1234], socket:[77], or its own name, which
 * is "/" for the root.
 */
PEM_INLINE void pem_put_nameless(uint8_t *to, struct dentry *dentry)
{
	uint32_t kind = BPF_CORE_READ(dentry, d_inode, i_mode) & PEM_S_IFMT;
	__u64 number = BPF_CORE_READ(dentry, d_inode, i_ino);

	if (kind == PEM_S_IFIFO)
		bpf_snprintf((char *)to, PEM_PATH_BYTES, pem_pipe_text, &number, sizeof(number));
	else if (kind == PEM_S_IFSOCK)
		bpf_snprintf((char *)to, PEM_PATH_BYTES, pem_socket_text, &number, sizeof(number));
	else
		bpf_probe_read_kernel_str(to, PEM_PATH_BYTES, BPF_CORE_READ(dentry, d_name.name));
}

/* The way from a file's name up to the root of its mount namespace. */
struct pem_walk {
	struct dentry *dentry;
	struct vfsmount *point;
	uint64_t bytes; /* of the names so far, as a path */
	uint64_t count;
	uint64_t is_cut; /* There are more names than fit into a field. */
	uint64_t written; /* to 'to' */
	uint64_t is_tail; /* 1: the last name itself is too long, and name[0] is its end */
	const void *name[PEM_PATH_NAMES]; /* the last one of the path first */
	uint8_t *to; /* PEM_PATH_BYTES */
};

/*
 * Copy what changes in a walk onto itself. To the verifier, what a helper has written is any
 * number. Otherwise it would walk the loop's body for each value.
 */
PEM_INLINE void pem_hide_walk(struct pem_walk *walk)
{
	bpf_probe_read_kernel(walk, offsetof(struct pem_walk, name), walk);
}

/* One step of pem_walk: a name, or from a mount to what it is mounted on. Returns 1 at the end. */
static long pem_step(__u32 step, struct pem_walk *walk)
{
	struct dentry *dentry, *parent;
	struct vfsmount *point;
	struct mount *mount, *up;
	uint32_t length;

	(void)step;
	pem_hide_walk(walk);
	dentry = walk->dentry;
	parent = BPF_CORE_READ(dentry, d_parent);
	point = walk->point;
	if (dentry == BPF_CORE_READ(point, mnt_root)) {
		mount = (void *)point - bpf_core_field_offset(struct mount, mnt);
		up = BPF_CORE_READ(mount, mnt_parent);
		if (up == mount) {
			walk->is_cut = 0;
			return 1;
		}
		walk->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		walk->point = (void *)up + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	if (dentry == parent) {
		walk->is_cut = 0;
		return 1;
	}
	length = BPF_CORE_READ(dentry, d_name.len);
	walk->bytes += length + 1;
	if (walk->count >= PEM_PATH_NAMES || length >= PEM_PATH_BYTES ||
	    walk->bytes >= PEM_PATH_BYTES) {
		if (walk->count == 0) {
			walk->is_tail = 1;
			walk->count = 1;
			walk->name[0] = BPF_CORE_READ(dentry, d_name.name) +
					(length > PEM_TAIL_BYTES ? length - PEM_TAIL_BYTES : 0);
		}
		return 1;
	}
	walk->name[walk->count & (PEM_PATH_NAMES - 1)] = BPF_CORE_READ(dentry, d_name.name);
	walk->count++;
	walk->dentry = parent;
	return 0;
}

/*
 * Write the name of a round, a slash before it unless it is the end of one. The first round writes
 * the first name.
 */
static long pem_write_name(__u32 round, struct pem_walk *walk)
{
	uint32_t at, room;
	long copied;

	pem_hide_walk(walk);
	at = walk->written & (PEM_PATH_BYTES - 1);
	if (round >= walk->count || at >= PEM_PATH_BYTES - 1)
		return 1;
	walk->to[at] = '/';
	at = (at + 1 - (walk->is_tail & 1)) & (PEM_PATH_BYTES - 1);
	room = PEM_PATH_BYTES - at;
	copied = bpf_probe_read_kernel_str(
		walk->to + at, room, walk->name[(walk->count - 1 - round) & (PEM_PATH_NAMES - 1)]);
	walk->written = at + (copied > 0 ? copied - 1 : 0);
	return 0;
}

/*
 * Write a path. Of one that is too long or too deep, the end behind "...". This is a
 * global function, as pem_take_more() is: the verifier walks it once, not for each way to the call.
 */
__attribute__((noinline)) uint32_t pem_write_path(struct pem_path_field *field, uint64_t dentry,
						  uint64_t mount)
{
	struct pem_walk walk = {.dentry = (struct dentry *)dentry,
				.point = (struct vfsmount *)mount,
				.bytes = 4,
				.is_cut = 1};

	if (!field || !dentry)
		return 0;
	walk.to = field->text;
	bpf_loop(PEM_PATH_STEPS, pem_step, &walk, 0);
	pem_hide_walk(&walk);
	if (!walk.count && !walk.is_cut) {
		pem_put_nameless(walk.to, (struct dentry *)dentry);
		return 0;
	}
	if (walk.is_cut &&
	    bpf_probe_read_kernel_str(walk.to, sizeof(pem_cut_text), pem_cut_text) > 0)
		walk.written = sizeof(pem_cut_text) - 1;
	bpf_loop(PEM_PATH_NAMES, pem_write_name, &walk, 0);
	return 0;
}

/* The path of the event's file. max is PEM_PATH_BYTES. */
__attribute__((unused)) PEM_INLINE void pem_put_file_path(uint8_t *to, uint32_t max,
							  struct pem_file_path from)
{
	(void)max;
	PEM_STORE(*from.e->told, from.e->told_mark);
	if (from.e->sock && pem_write_peer((struct pem_path_field *)to, (uint64_t)from.e->sock,
					   from.e->address, from.e->address_bytes))
		return;
	pem_write_path((struct pem_path_field *)to, (uint64_t)from.e->dentry,
		       (uint64_t)from.e->mount);
}

/*
 * A path in the program's memory. It is "?" where the program has not touched that memory yet: a
 * BPF program can't wait for it. An empty one is told in words, since babeltrace2 2.0 shows an
 * empty text as that of the event before. max is PEM_PATH_BYTES.
 */
__attribute__((unused)) PEM_INLINE void pem_put_user_path(uint8_t *to, uint32_t max,
							  struct pem_user_path from)
{
	long bytes = bpf_probe_read_user_str(to, max, (const void *)from.path);

	if (bytes < 0)
		bpf_probe_read_kernel_str(to, sizeof(pem_unread_text), pem_unread_text);
	else if (bytes <= 1)
		bpf_probe_read_kernel_str(to, sizeof(pem_descriptor_text), pem_descriptor_text);
}

struct pem_arguments_walk {
	uint8_t *to; /* PEM_ARGUMENTS_BYTES */
	uint64_t bytes; /* that are used */
};

/* The NUL behind each argument but the last one becomes a space. */
static long pem_space(__u32 i, struct pem_arguments_walk *walk)
{
	uint32_t at = i & (PEM_ARGUMENTS_BYTES - 1);

	if (i + 1 >= walk->bytes)
		return 1;
	if (!walk->to[at])
		walk->to[at] = ' ';
	return 0;
}

/*
 * The arguments of a process whose program has just begun, a space between each. max is
 * PEM_ARGUMENTS_BYTES. exec has just written them, so they are in memory.
 */
__attribute__((unused)) PEM_INLINE void pem_put_arguments(uint8_t *to, uint32_t max,
							  struct pem_arguments from)
{
	const struct task_struct *task = from.task;
	unsigned long begin = BPF_CORE_READ(task, mm, arg_start);
	unsigned long bytes = BPF_CORE_READ(task, mm, arg_end) - begin;
	struct pem_arguments_walk walk = {.to = to};

	(void)max;
	if (bytes > PEM_ARGUMENTS_BYTES - 1)
		bytes = PEM_ARGUMENTS_BYTES - 1;
	if (!bytes ||
	    bpf_probe_read_user(to, bytes & (PEM_ARGUMENTS_BYTES - 1), (const void *)begin))
		return;
	walk.bytes = bytes;
	bpf_loop(PEM_ARGUMENTS_BYTES, pem_space, &walk, 0);
}

/*
 * Copy a kernel string of at most max bytes, including the NUL. A string that can't be read becomes
 * "". Where the kernel is locked down, no string can be read, and each becomes "?".
 */
__attribute__((unused)) PEM_INLINE void pem_put_string(uint8_t *to, uint32_t max, const void *from)
{
	if (pem_config.no_reading) {
		to[0] = '?';
		to[1] = '\0';
		return;
	}
	bpf_probe_read_kernel_str(to, max, from);
}

/* A program may load what is in a task itself, also where the kernel is locked down. */
__attribute__((unused)) PEM_INLINE void pem_put_comm(uint8_t *to, uint32_t max,
						     struct pem_comm from)
{
	(void)max;
	if (PEM_HAS(from.task))
		__builtin_memcpy(to, from.task->comm, sizeof(from.task->comm));
	else
		to[0] = '\0';
}

/* A string is copied from the kernel, or is what a function here stands for. */
#define pem_string(to, max, from)                                                                  \
	_Generic((from), struct pem_file_path                                                      \
		 : pem_put_file_path, struct pem_arguments                                         \
		 : pem_put_arguments, struct pem_user_path                                         \
		 : pem_put_user_path, struct pem_comm                                              \
		 : pem_put_comm, default                                                           \
		 : pem_put_string)(to, max, from)

#endif
