/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* packed.c - stream files whose packets were compressed: libzstd, blocks written, blocks read */
#include "packed.h"
#include "files.h"
#include "util.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEVEL 1 /* the quickest: events are much alike, and higher levels gain little */
/* Bytes of a raw block of a zstd frame, at most (RFC 8878, 3.1.1.2.4). */
#define STORED_BYTES (128u << 10)

/* --- libzstd: functions of its stable interface --- */

static struct {
	size_t (*bound)(size_t bytes);
	void *(*new_context)(void);
	size_t (*free_context)(void *context);
	size_t (*compress)(void *context, void *to, size_t capacity, const void *from, size_t bytes,
			   int level);
	size_t (*decompress)(void *to, size_t capacity, const void *from, size_t bytes);
	unsigned (*is_error)(size_t code);
	bool is_there;
} zstd;

static pthread_once_t zstd_once = PTHREAD_ONCE_INIT;

static void find_zstd(void)
{
	void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return;
	*(void **)&zstd.bound = dlsym(library, "ZSTD_compressBound");
	*(void **)&zstd.new_context = dlsym(library, "ZSTD_createCCtx");
	*(void **)&zstd.free_context = dlsym(library, "ZSTD_freeCCtx");
	*(void **)&zstd.compress = dlsym(library, "ZSTD_compressCCtx");
	*(void **)&zstd.decompress = dlsym(library, "ZSTD_decompress");
	*(void **)&zstd.is_error = dlsym(library, "ZSTD_isError");
	zstd.is_there = zstd.bound && zstd.new_context && zstd.free_context && zstd.compress &&
			zstd.decompress && zstd.is_error;
}

static bool has_zstd(void)
{
	pthread_once(&zstd_once, find_zstd);
	return zstd.is_there;
}

/* --- writing --- */

/* What one thread needs to compress; kept for the next one. */
struct pack_work {
	void *context;
	uint8_t *out; /* a head, and what is compressed */
	size_t capacity;
	struct pack_work *next;
};

struct pem_packer {
	pthread_mutex_t lock;
	struct pack_work *idle; /* protected by lock */
};

struct pem_packer *pem_packer__new(struct pem_error *error)
{
	struct pem_packer *packer;

	if (!has_zstd()) {
		pem_error__set(error, 0,
			       "a trace can't be compressed: libzstd.so.1 is missing; install "
			       "package libzstd1");
		errno = ENOPKG;
		return NULL;
	}
	packer = calloc(1, sizeof(*packer));
	if (!packer) {
		pem_error__set(error, 0, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&packer->lock, NULL);
	return packer;
}

static void free_work(struct pack_work *work)
{
	if (!work)
		return;
	if (work->context)
		zstd.free_context(work->context);
	free(work->out);
	free(work);
}

void pem_packer__free(struct pem_packer *packer)
{
	struct pack_work *work;

	if (!packer)
		return;
	while ((work = packer->idle)) {
		packer->idle = work->next;
		free_work(work);
	}
	pthread_mutex_destroy(&packer->lock);
	free(packer);
}

/* Take what a thread needs to compress so many bytes; NULL: out of memory. */
static struct pack_work *take_work(struct pem_packer *packer, size_t bytes)
{
	size_t capacity = sizeof(struct pem_packed_head) + zstd.bound(bytes);
	struct pack_work *work;
	uint8_t *larger;

	pthread_mutex_lock(&packer->lock);
	work = packer->idle;
	if (work)
		packer->idle = work->next;
	pthread_mutex_unlock(&packer->lock);
	if (!work)
		work = calloc(1, sizeof(*work));
	if (!work)
		return NULL;
	if (!work->context)
		work->context = zstd.new_context();
	if (work->capacity < capacity) {
		larger = realloc(work->out, capacity);
		if (larger) {
			work->out = larger;
			work->capacity = capacity;
		}
	}
	if (work->context && work->capacity >= capacity)
		return work;
	free_work(work);
	return NULL;
}

static void give_back_work(struct pem_packer *packer, struct pack_work *work)
{
	pthread_mutex_lock(&packer->lock);
	work->next = packer->idle;
	packer->idle = work;
	pthread_mutex_unlock(&packer->lock);
}

/*
 * Append bytes as a block that is not compressed, which takes no memory: a frame of raw blocks (RFC
 * 8878, 3.1.1). Returns the bytes written, or -errno.
 */
static ssize_t store(int fd, const uint8_t *raw, size_t bytes)
{
	size_t blocks = (bytes + STORED_BYTES - 1) / STORED_BYTES, part, at;
	uint32_t frame_bytes = (uint32_t)(9 + 3 * blocks + bytes), size = (uint32_t)bytes, block;
	/* A single segment, whose size takes four bytes. */
	uint8_t frame[9] = {0x28, 0xB5, 0x2F, 0xFD, 0xA0}, header[3];
	struct pem_packed_head head = {PEM_PACKED_MAGIC, 8, frame_bytes, size};
	int result = pem_write_all(fd, &head, sizeof(head));

	memcpy(frame + 5, &size, sizeof(size));
	if (!result)
		result = pem_write_all(fd, frame, sizeof(frame));
	for (at = 0; at < bytes && !result; at += part) {
		part = bytes - at < STORED_BYTES ? bytes - at : STORED_BYTES;
		block = (uint32_t)(part << 3) | (at + part == bytes);
		memcpy(header, &block, sizeof(header)); /* little-endian, as all that pem writes */
		result = pem_write_all(fd, header, sizeof(header));
		if (!result)
			result = pem_write_all(fd, raw + at, part);
	}
	return result ? result : (ssize_t)(sizeof(head) + frame_bytes);
}

ssize_t pem_packer__write(struct pem_packer *packer, int fd, const void *raw, size_t bytes)
{
	struct pem_packed_head head = {.magic = PEM_PACKED_MAGIC, .bytes = 8};
	struct pack_work *work;
	size_t packed;
	int result;

	if (bytes > PEM_PACKED_RAW_MAX)
		return -EFBIG;
	work = take_work(packer, bytes);
	if (!work)
		return store(fd, raw, bytes);
	packed = zstd.compress(work->context, work->out + sizeof(head),
			       work->capacity - sizeof(head), raw, bytes, LEVEL);
	if (zstd.is_error(packed)) {
		give_back_work(packer, work);
		return store(fd, raw, bytes);
	}
	head.packed_bytes = (uint32_t)packed;
	head.raw_bytes = (uint32_t)bytes;
	memcpy(work->out, &head, sizeof(head));
	result = pem_write_all(fd, work->out, sizeof(head) + packed);
	give_back_work(packer, work);
	return result ? result : (ssize_t)(sizeof(head) + packed);
}

/* --- reading --- */

struct block {
	uint64_t at; /* file offset of its frame */
	uint64_t offset; /* in the raw stream */
};

struct pem_packed {
	/* The last one is no block: it says where the one before ends. */
	struct block *blocks;
	size_t count, capacity;
	uint64_t file_bytes;
	bool is_torn, is_damaged; /* what is behind the last whole block */
	/* The block that is decompressed. */
	uint8_t *raw;
	size_t raw_index, raw_bytes, keep_bytes;
};

static bool add_block(struct pem_packed *p, uint64_t at, uint64_t offset)
{
	struct block *larger;

	if (p->count == p->capacity) {
		larger = realloc(p->blocks, (p->capacity * 2 + 64) * sizeof(*larger));
		if (!larger)
			return false;
		p->blocks = larger;
		p->capacity = p->capacity * 2 + 64;
	}
	p->blocks[p->count++] = (struct block){at, offset};
	return true;
}

/* Is this the head of a block, whether or not its frame is whole? */
static bool is_head(const struct pem_packed_head *head)
{
	return head->magic == PEM_PACKED_MAGIC && head->bytes == 8 &&
	       head->raw_bytes >= PEM_PACKET_HEADER_BYTES &&
	       head->raw_bytes <= PEM_PACKED_RAW_MAX && head->packed_bytes &&
	       head->packed_bytes <= zstd.bound(head->raw_bytes);
}

/* Are these bytes, fewer than a head, the beginning of one? */
static bool begins_head(const struct pem_packed_head *head, size_t bytes)
{
	const struct pem_packed_head whole = {.magic = PEM_PACKED_MAGIC, .bytes = 8};
	size_t known = offsetof(struct pem_packed_head, packed_bytes);

	return !memcmp(head, &whole, bytes < known ? bytes : known);
}

/* Find the blocks of a file, and what its end is. */
static int find_blocks(struct pem_packed *p, int fd)
{
	struct pem_packed_head head;
	uint64_t at = 0, offset = 0, left;
	ssize_t n;

	for (;;) {
		left = p->file_bytes - at;
		n = pem_read_at(fd, &head, left < sizeof(head) ? (size_t)left : sizeof(head), at);
		if (n < 0)
			return (int)n;
		if (n < (ssize_t)sizeof(head)) {
			p->is_torn = n > 0 && begins_head(&head, (size_t)n);
			p->is_damaged = n > 0 && !p->is_torn;
			break;
		}
		p->is_damaged = !is_head(&head);
		p->is_torn = !p->is_damaged && head.packed_bytes > left - sizeof(head);
		if (p->is_damaged || p->is_torn)
			break;
		if (!add_block(p, at + sizeof(head), offset))
			return -ENOMEM;
		at += sizeof(head) + head.packed_bytes;
		offset += head.raw_bytes;
	}
	/* A frame ends where the head of the next one begins. */
	return add_block(p, at + sizeof(head), offset) ? 0 : -ENOMEM;
}

int pem_packed__open(int fd, uint64_t file_bytes, struct pem_packed **packed)
{
	uint32_t magic = 0;
	struct pem_packed *p;
	ssize_t n = pem_read_at(fd, &magic, sizeof(magic), 0);
	int result;

	*packed = NULL;
	if (n < 0)
		return (int)n;
	if (file_bytes < sizeof(magic) || n < (ssize_t)sizeof(magic) || magic != PEM_PACKED_MAGIC)
		return 0;
	if (!has_zstd())
		return -ENOPKG;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->file_bytes = file_bytes;
	p->keep_bytes = PEM_PACKED_RAW_MAX;
	result = find_blocks(p, fd);
	if (result)
		pem_packed__free(p);
	else
		*packed = p;
	return result;
}

void pem_packed__free(struct pem_packed *p)
{
	if (!p)
		return;
	free(p->raw);
	free(p->blocks);
	free(p);
}

uint64_t pem_packed__raw_bytes(const struct pem_packed *p)
{
	return p->blocks[p->count - 1].offset;
}

uint64_t pem_packed__whole_bytes(const struct pem_packed *p)
{
	return p->blocks[p->count - 1].at - sizeof(struct pem_packed_head);
}

bool pem_packed__is_torn(const struct pem_packed *p)
{
	return p->is_torn;
}

bool pem_packed__is_damaged(const struct pem_packed *p)
{
	return p->is_damaged;
}

/* The block that an offset below the stream's end is in. */
static size_t block_of(const struct pem_packed *p, uint64_t offset)
{
	size_t low = 0, high = p->count - 1, middle;

	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (p->blocks[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Decompress a block into p->raw. Returns 0, or -errno; -ENODATA: the file has become shorter. */
static int unpack(struct pem_packed *p, int fd, size_t index)
{
	const struct block *block = &p->blocks[index];
	size_t bytes = (size_t)(block[1].offset - block->offset);
	size_t packed_bytes = (size_t)(block[1].at - block->at) - sizeof(struct pem_packed_head);
	uint8_t *packed;
	ssize_t n = 0;
	int result = 0;

	if (p->raw && p->raw_index == index)
		return 0;
	free(p->raw);
	p->raw = malloc(bytes);
	packed = malloc(packed_bytes);
	if (!p->raw || !packed)
		result = -ENOMEM;
	else
		n = pem_read_at(fd, packed, packed_bytes, block->at);
	if (n < 0)
		result = (int)n;
	else if (!result && (size_t)n < packed_bytes)
		result = -ENODATA;
	else if (!result && zstd.decompress(p->raw, bytes, packed, packed_bytes) != bytes)
		result = -EBADMSG;
	free(packed);
	p->raw_index = index;
	p->raw_bytes = bytes;
	if (!result)
		return 0;
	free(p->raw);
	p->raw = NULL;
	return result;
}

ssize_t pem_packed__read(struct pem_packed *p, int fd, void *to, size_t bytes, uint64_t offset)
{
	uint64_t all = pem_packed__raw_bytes(p), within;
	size_t done = 0, part, index;
	int result;

	if (offset >= all)
		return 0;
	if (bytes > all - offset)
		bytes = (size_t)(all - offset);
	while (done < bytes) {
		index = block_of(p, offset + done);
		result = unpack(p, fd, index);
		if (result == -ENODATA)
			break;
		if (result)
			return result;
		within = offset + done - p->blocks[index].offset;
		part = p->raw_bytes - (size_t)within;
		if (part > bytes - done)
			part = bytes - done;
		memcpy((uint8_t *)to + done, p->raw + within, part);
		done += part;
	}
	if (p->raw && p->raw_bytes > p->keep_bytes)
		pem_packed__drop(p);
	return (ssize_t)done;
}

void pem_packed__keep(struct pem_packed *p, size_t bytes)
{
	p->keep_bytes = bytes;
}

void pem_packed__drop(struct pem_packed *p)
{
	if (!p)
		return;
	free(p->raw);
	p->raw = NULL;
}
