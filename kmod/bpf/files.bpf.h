/* SPDX-License-Identifier: GPL-2.0 */
/*
 * files.bpf.h - which file a system call is on, and the arguments of a process
 *
 * A system call's record has a descriptor's number. An event of the file tells once what that is:
 * before, or directly behind, the first call on it, and again when the descriptor has become
 * another file. pem_files_told remembers what has been told: a word for each descriptor, of a hash
 * of process, descriptor, file and inode. The losses of all CPUs are hashed too, for a consumer
 * that misses records forgets what it was told.
 *
 * Two descriptors may have the same word. Then each tells again after the other. So nothing is
 * claimed that is false, unless two hashes of 64 bits are equal, or a file was freed and another
 * one of the same inode, by another name, came to lie at the same address.
 */
#ifndef PEM_FILES_BPF_H
#define PEM_FILES_BPF_H

#define PEM_FILES_TOLD 16384u /* a power of two */
#define PEM_PATH_BYTES 128u /* of a path's field, with its NUL */
#define PEM_PATH_NAMES 16u
#define PEM_PATH_STEPS 24u /* names and mounts */
#define PEM_ARGUMENTS_BYTES 256u

#define PEM_S_IFMT 0170000u
#define PEM_S_IFIFO 0010000u
#define PEM_S_IFSOCK 0140000u

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 8);
	__uint(max_entries, PEM_FILES_TOLD);
} pem_files_told SEC(".maps");

/* What a string field is made from. */
struct pem_file_path {
	struct pem_kevent *e;
};
struct pem_arguments {
	const struct task_struct *task;
};

/* One round of a multiplicative hash, with Knuth's constant of 64 bits. */
PEM_INLINE uint64_t pem_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* The file of a descriptor of the current process. NULL: none. */
PEM_INLINE struct file *pem_file_of(uint32_t descriptor)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = NULL;

	if (descriptor >= BPF_CORE_READ(table, max_fds))
		return NULL;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), files + descriptor);
	return file;
}

/* Is this call on a file that has not been told yet? */
__attribute__((unused)) PEM_INLINE bool pem_new_file(struct pem_kevent *e, uint32_t descriptor,
						     uint64_t number)
{
	uint64_t thread = bpf_get_current_pid_tgid();
	uint64_t hash = pem_mix(pem_mix(0, thread >> 32), descriptor), mark;
	struct file *file;
	uint32_t slot = hash >> 40 & (PEM_FILES_TOLD - 1);

	if (number >= PEM_KCALLS_MAX || pem_config.no_reading ||
	    !(pem_config.descriptor_calls[number / 64 & (PEM_KCALLS_MAX / 64 - 1)] >>
		      (number & 63) &
	      1))
		return false;
	file = pem_file_of(descriptor);
	if (!file)
		return false;
	e->file = file;
	mark = pem_mix(hash, (uint64_t)file);
	mark = pem_mix(mark, (uint64_t)BPF_CORE_READ(file, f_inode));
	mark = pem_mix(mark, PEM_LOAD(pem_control.losses)) | 1;
	e->told = bpf_map_lookup_elem(&pem_files_told, &slot);
	if (!e->told || PEM_LOAD(*e->told) == mark)
		return false;
	e->told_mark = mark;
	/* A record that is lost has told nothing. Without a record the event is only counted. */
	if (!(e->flags & PEM_ACTION_LOG))
		PEM_STORE(*e->told, mark);
	return true;
}

/* The inode of the event's file. */
__attribute__((unused)) PEM_INLINE struct inode *pem_inode(const struct pem_kevent *e)
{
	struct file *file = e->file;

	return BPF_CORE_READ(file, f_inode);
}

__attribute__((unused)) PEM_INLINE struct pem_file_path pem_file_path(struct pem_kevent *e)
{
	return (struct pem_file_path){e};
}

__attribute__((unused)) PEM_INLINE struct pem_arguments pem_arguments(const struct task_struct *task)
{
	return (struct pem_arguments){task};
}

/* --- strings --- */

/* A string that grows. to has PEM_PATH_BYTES, of which at most the last one is not written. */
struct pem_text {
	uint8_t *to;
	uint32_t bytes;
};

PEM_INLINE void pem_text_byte(struct pem_text *text, uint8_t byte)
{
	if (text->bytes < PEM_PATH_BYTES - 1)
		text->to[text->bytes++ & (PEM_PATH_BYTES - 1)] = byte;
}

/* Append a kernel string, as far as there is room. */
PEM_INLINE void pem_text_name(struct pem_text *text, const void *name)
{
	uint32_t at = text->bytes & (PEM_PATH_BYTES - 1);
	long copied = bpf_probe_read_kernel_str(text->to + at, PEM_PATH_BYTES - at, name);

	if (copied > 0)
		text->bytes += (copied - 1) & (PEM_PATH_BYTES - 1);
}

static const char pem_cut_text[] SEC(".rodata.texts") = "...";
static const char pem_pipe_text[] SEC(".rodata.texts") = "pipe:[%lu]";
static const char pem_socket_text[] SEC(".rodata.texts") = "socket:[%lu]";

/* A file without a folder, as /proc/PID/fd shows it: pipe:[1234], socket:[77], or its name. */
PEM_INLINE void pem_put_pseudo(struct pem_text *text, struct file *file)
{
	uint32_t kind = BPF_CORE_READ(file, f_inode, i_mode) & PEM_S_IFMT;
	__u64 number = BPF_CORE_READ(file, f_inode, i_ino);

	if (kind == PEM_S_IFIFO)
		bpf_snprintf((char *)text->to, PEM_PATH_BYTES, pem_pipe_text, &number,
			     sizeof(number));
	else if (kind == PEM_S_IFSOCK)
		bpf_snprintf((char *)text->to, PEM_PATH_BYTES, pem_socket_text, &number,
			     sizeof(number));
	else
		bpf_probe_read_kernel_str(text->to, PEM_PATH_BYTES,
					  BPF_CORE_READ(file, f_path.dentry, d_name.name));
}

/* The way from a file's name up to the root of its mount namespace. */
struct pem_walk {
	struct dentry *dentry;
	struct vfsmount *point;
	uint64_t bytes; /* of the names so far, as a path */
	uint64_t count;
	uint64_t is_cut; /* There are more names than fit into a field. */
	uint64_t is_pseudo; /* The file is in no folder. */
	const void *name[PEM_PATH_NAMES]; /* the last one of the path first */
};

/* One step of pem_walk: a name, or from a mount to what it is mounted on. Returns 1 at the end. */
static long pem_step(__u32 step, struct pem_walk *walk)
{
	struct dentry *dentry = walk->dentry, *parent = BPF_CORE_READ(dentry, d_parent);
	struct vfsmount *point = walk->point;
	struct mount *mount, *up;
	uint32_t length;

	(void)step;
	if (dentry == BPF_CORE_READ(point, mnt_root)) {
		mount = (void *)point - bpf_core_field_offset(struct mount, mnt);
		up = BPF_CORE_READ(mount, mnt_parent);
		walk->is_cut = up != mount;
		walk->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		walk->point = (void *)up + bpf_core_field_offset(struct mount, mnt);
		return up == mount;
	}
	walk->is_cut = dentry != parent;
	walk->is_pseudo = dentry == parent && !walk->count;
	if (dentry == parent)
		return 1;
	length = BPF_CORE_READ(dentry, d_name.len);
	walk->bytes += length + 1;
	if (walk->count >= PEM_PATH_NAMES || length >= PEM_PATH_BYTES ||
	    walk->bytes >= PEM_PATH_BYTES)
		return 1;
	walk->name[walk->count & (PEM_PATH_NAMES - 1)] = BPF_CORE_READ(dentry, d_name.name);
	walk->count++;
	walk->dentry = parent;
	return 0;
}

/*
 * The path of the event's file. Of one that is too long or too deep, the end behind "...". max is
 * PEM_PATH_BYTES.
 */
__attribute__((unused)) PEM_INLINE void pem_put_file_path(uint8_t *to, uint32_t max,
							  struct pem_file_path from)
{
	struct file *file = from.e->file;
	struct pem_text text = {.to = to};
	struct pem_walk walk = {.dentry = BPF_CORE_READ(file, f_path.dentry),
				.point = BPF_CORE_READ(file, f_path.mnt),
				.bytes = 4};
	uint64_t i, count;

	(void)max;
	PEM_STORE(*from.e->told, from.e->told_mark);
	bpf_loop(PEM_PATH_STEPS, pem_step, &walk, 0);
	/* The verifier would walk all code behind for each count. */
	count = pem_number_of(from.e, from.e->index, walk.count);
	if (walk.is_pseudo) {
		pem_put_pseudo(&text, file);
		return;
	}
	if (walk.is_cut)
		text.bytes = bpf_probe_read_kernel_str(to, 4, pem_cut_text) > 0 ? 3 : 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < PEM_PATH_NAMES; i++) {
		if (i >= count)
			break;
		pem_text_byte(&text, '/');
		pem_text_name(&text, walk.name[(count - 1 - i) & (PEM_PATH_NAMES - 1)]);
	}
	if (!count && !walk.is_cut)
		pem_text_byte(&text, '/');
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
	uint32_t i;

	(void)max;
	if (bytes > PEM_ARGUMENTS_BYTES - 1)
		bytes = PEM_ARGUMENTS_BYTES - 1;
	if (!bytes || bpf_probe_read_user(to, bytes & (PEM_ARGUMENTS_BYTES - 1),
					  (const void *)begin))
		return;
	/* The last NUL stays. */
#pragma clang loop unroll(disable)
	for (i = 0; i < PEM_ARGUMENTS_BYTES - 1; i++) {
		if (i + 1 >= bytes)
			break;
		if (!to[i])
			to[i] = ' ';
	}
}

#endif
