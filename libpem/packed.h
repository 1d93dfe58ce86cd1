/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * packed.h - stream files whose packets were compressed with zstd (pem record --compress)
 *
 * Such a file is a sequence of blocks. Each has whole packets, and is written at once:
 *
 *	struct pem_packed_head	a skippable frame of zstd's format
 *	a frame of zstd		packed_bytes long, raw_bytes when it is decompressed
 *
 * 'zstd -dc' makes the stream file of it that would have been written otherwise. By the heads a
 * reader finds a block without decompressing those before it. Offsets below are those in the
 * decompressed stream, unless they are called file offsets.
 *
 * The library libzstd.so.1 is loaded when it is first needed, since libpem is preloaded and needs
 * only the C library.
 */
#ifndef PEM_PACKED_H
#define PEM_PACKED_H

#include <pem/pem.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PEM_PACKED_MAGIC 0x184D2A5Eu /* RFC 8878, 3.1.2: skippable frames */
/* No block has more when it is decompressed: the greatest chunk of a pool has as many. */
#define PEM_PACKED_RAW_MAX (16u << 20)

struct pem_packed_head {
	uint32_t magic;
	uint32_t bytes; /* of what follows in this frame: 8 */
	uint32_t packed_bytes;
	uint32_t raw_bytes;
};

/* --- writing --- */

struct pem_packer;

/* NULL with errno and error: libzstd is missing (ENOPKG), or there is no memory. */
struct pem_packer *pem_packer__new(struct pem_error *error);
/* NULL is accepted. */
void pem_packer__free(struct pem_packer *packer);
/*
 * Compress raw bytes and append them to a file as one block. Returns the bytes written, or -errno:
 * a part may have been written. Several threads may call it at once. Blocks on the file.
 */
ssize_t pem_packer__write(struct pem_packer *packer, int fd, const void *raw, size_t bytes);

/* --- reading --- */

struct pem_packed;

/*
 * Find the blocks of a file. Returns 0, and *packed, which the caller frees; NULL: the file is not
 * compressed. -ENOPKG: it is, and libzstd is missing; -ENOMEM, or -errno of a read.
 */
int pem_packed__open(int fd, uint64_t file_bytes, struct pem_packed **packed);
/* NULL is accepted. */
void pem_packed__free(struct pem_packed *packed);
/* Bytes of the whole blocks, raw; and the file offset at which the last one ends. */
uint64_t pem_packed__raw_bytes(const struct pem_packed *packed);
uint64_t pem_packed__whole_bytes(const struct pem_packed *packed);
/* Behind the last whole block, is there the beginning of one more? Or something else? */
bool pem_packed__is_torn(const struct pem_packed *packed);
bool pem_packed__is_damaged(const struct pem_packed *packed);
/*
 * As pread, in the decompressed stream. Returns fewer bytes at its end, or where the file has
 * become shorter; -EBADMSG: a block is damaged; another -errno. One block is kept decompressed
 * between calls. The caller sees to it that one thread calls this at a time.
 */
ssize_t pem_packed__read(struct pem_packed *packed, int fd, void *to, size_t bytes,
			 uint64_t offset);
/* Keep no block that is larger than so many bytes between calls. */
void pem_packed__keep(struct pem_packed *packed, size_t bytes);
/* Keep none now. NULL is accepted. */
void pem_packed__drop(struct pem_packed *packed);

#endif
