/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * types_block.h - block devices, the journal of file systems, io_uring (see kernel_types.h)
 */
#ifndef PEM_TYPES_BLOCK_H
#define PEM_TYPES_BLOCK_H

#include "types_base.h"

/* --- block devices --- */

struct block_device {
	dev_t bd_dev;
};

struct gendisk {
	struct block_device *part0;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	blk_opf_t cmd_flags;
	unsigned int __data_len;
	sector_t __sector;
};

struct bvec_iter {
	sector_t bi_sector;
	unsigned int bi_size;
};

struct bio {
	struct block_device *bi_bdev;
	blk_opf_t bi_opf;
	blk_status_t bi_status;
	struct bvec_iter bi_iter;
};

struct buffer_head {
	sector_t b_blocknr;
	size_t b_size;
};

/* --- the journal --- */

struct journal_s {
	struct block_device *j_fs_dev;
};
typedef struct journal_s journal_t;

struct transaction_s {
	tid_t t_tid;
};
typedef struct transaction_s transaction_t;

struct transaction_run_stats_s {
	unsigned long rs_running;
	unsigned long rs_locked;
	unsigned long rs_logging;
	u32 rs_blocks_logged;
};

/* --- io_uring --- */

struct io_ring_ctx;

struct io_cqe {
	u64 user_data;
};

struct io_kiocb {
	u8 opcode;
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
};

struct io_uring_cqe {
	u64 user_data;
	s32 res;
	u32 flags;
};

#endif
