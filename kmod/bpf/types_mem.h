/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * types_mem.h - memory, and files in memory (see kernel_types.h)
 */
#ifndef PEM_TYPES_MEM_H
#define PEM_TYPES_MEM_H

#include "types_base.h"

/* Only the size of these types matters here. It is an int's. */
enum compact_priority { PEM_COMPACT_PRIORITY };
enum compact_result { PEM_COMPACT_RESULT };
enum migrate_mode { PEM_MIGRATE_MODE };
enum migrate_reason { PEM_MIGRATE_REASON };
enum zone_type { PEM_ZONE_TYPE };

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
};

struct vm_unmapped_area_info {
	unsigned long flags;
	unsigned long length;
	unsigned long low_limit;
	unsigned long high_limit;
};

struct kmem_cache {
	unsigned int object_size;
};

struct zone {
	int node;
	const char *name;
	unsigned int compact_considered;
	unsigned int compact_defer_shift;
};

struct shrinker {
	unsigned long (*scan_objects)(void);
};

struct reclaim_stat {
	unsigned int nr_dirty;
	unsigned int nr_writeback;
};

/* --- files --- */

struct super_block {
	dev_t s_dev;
};

struct qstr {
	u32 hash;
	u32 len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct fs_struct {
	struct path pwd; /* the current folder */
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_nlink;
	loff_t i_size;
	u64 i_blocks;
};

struct address_space {
	struct inode *host;
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	struct address_space *f_mapping;
	errseq_t f_wb_err;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct mm_struct {
	unsigned long arg_start, arg_end;
};

struct file_ra_state {
	unsigned int size;
	unsigned int async_size;
};

struct kiocb {
	struct file *ki_filp;
	loff_t ki_pos;
};

struct iov_iter {
	size_t count;
};

/* --- writing back --- */

struct writeback_control {
	long nr_to_write;
	loff_t range_start;
};

struct backing_dev_info {
	char dev_name[64];
};

struct bdi_writeback {
	struct backing_dev_info *bdi;
	unsigned long avg_write_bandwidth;
};

#endif
