/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace_resume.c - going on with a trace that was cut off: its streams as they are, each packet
 * checked
 *
 * Nothing here changes a file of the trace. What is written goes to the stage beside it
 * (trace_stage.h).
 */
#include "core/core.h"
#include "packed.h"
#include "writer/trace_stage.h"
#include "writer/trace_writer.h"
#include "writer/trace_writer_internal.h"
#include "util.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define METADATA_BYTES_MAX (64u << 20)
#define PACKET_BYTES_MAX (64u << 20)

static bool parse_uuid(const char *metadata, uint8_t uuid[16])
{
	const char *at = strstr(metadata, "uuid = \"");
	char digits[3] = "";
	unsigned i;

	if (!at)
		return false;
	at += strlen("uuid = \"");
	for (i = 0; i < 16; i++, at += 2) {
		if (*at == '-')
			at++;
		/* The text may end after the first digit. */
		if (!isxdigit((unsigned char)at[0]) || !isxdigit((unsigned char)at[1]))
			return false;
		memcpy(digits, at, 2);
		uuid[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return true;
}

int pem_trace__read_uuid(int trace_fd, uint8_t uuid[16])
{
	size_t bytes;
	char *metadata = pem_read_file(trace_fd, "metadata", METADATA_BYTES_MAX, &bytes);
	int result = metadata ? -EINVAL : -errno;

	if (metadata && parse_uuid(metadata, uuid))
		result = 0;
	free(metadata);
	return result;
}

/* --- stream files --- */

int pem_stream_file__open(int trace_fd, const char *name, int access, struct stat *st)
{
	int fd;

	/* Only regular files are opened: opening a device may already do something. */
	if (!pem_is_stream_name(name) || fstatat(trace_fd, name, st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st->st_mode))
		return -ENOENT;
	fd = openat(trace_fd, name, access | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, st) && S_ISREG(st->st_mode))
		return fd;
	close(fd);
	return -ENOENT;
}

/* A stream's bytes, as they were before they were compressed. */
struct raw_file {
	int fd;
	struct pem_packed *packed; /* NULL: they are the file's */
};

/* Fill in a file; *bytes becomes the stream's. Returns 0, or -errno. */
static int open_raw(struct raw_file *f, int fd, uint64_t *bytes)
{
	int result = pem_packed__open(fd, *bytes, &f->packed);

	f->fd = fd;
	if (!result && f->packed)
		*bytes = pem_packed__raw_bytes(f->packed);
	return result;
}

/* Returns whether all bytes were read. */
static bool read_raw(const struct raw_file *f, void *to, size_t bytes, uint64_t offset)
{
	ssize_t n = f->packed ? pem_packed__read(f->packed, f->fd, to, bytes, offset)
			      : pread(f->fd, to, bytes, (off_t)offset);

	return n == (ssize_t)bytes;
}

/* Read the header at an offset. False: it can't be a header of this trace. */
static bool read_header(const struct raw_file *f, uint64_t offset, const uint8_t uuid[16],
			struct pem_packet *header)
{
	return read_raw(f, header, sizeof(*header), offset) && header->magic == PEM_CTF_MAGIC &&
	       !memcmp(header->uuid, uuid, sizeof(header->uuid)) && !(header->content_size % 8) &&
	       !(header->packet_size % 64) && header->content_size <= header->packet_size &&
	       header->content_size / 8 >= sizeof(*header) &&
	       header->packet_size / 8 <= PACKET_BYTES_MAX;
}

/* Does a header of this trace begin at the offset and go beyond the end of the file? */
static bool is_cut_header(const struct raw_file *f, uint64_t offset, uint64_t left,
			  const uint8_t uuid[16])
{
	struct pem_packet whole = {.magic = PEM_CTF_MAGIC}, header;
	size_t known = offsetof(struct pem_packet, uuid) + sizeof(whole.uuid);

	if (!left || left >= sizeof(header) || (!offset && left < known))
		return false;
	memcpy(whole.uuid, uuid, sizeof(whole.uuid));
	if (known > left)
		known = (size_t)left;
	return read_raw(f, &header, known, offset) && !memcmp(&header, &whole, known);
}

/* Go over the packets of a stream of so many bytes, up to one that is not whole. */
static void measure(const struct raw_file *f, uint64_t stream_bytes, const uint8_t uuid[16],
		    struct pem_stream_extent *extent)
{
	struct pem_packet header;
	uint64_t left;

	for (;;) {
		left = stream_bytes - extent->bytes;
		if (!read_header(f, extent->bytes, uuid, &header)) {
			extent->torn = is_cut_header(f, extent->bytes, left, uuid);
			return;
		}
		if (header.packet_size / 8 > left) {
			extent->torn = true;
			return;
		}
		extent->bytes += header.packet_size / 8;
		extent->packets++;
		extent->last = header;
	}
}

int pem_stream_file__measure(int fd, uint64_t file_bytes, const uint8_t uuid[16],
			     struct pem_stream_extent *extent)
{
	uint64_t stream_bytes = file_bytes;
	struct raw_file f;
	int result = open_raw(&f, fd, &stream_bytes);

	memset(extent, 0, sizeof(*extent));
	if (result)
		return result;
	measure(&f, stream_bytes, uuid, extent);
	extent->whole_bytes = extent->bytes;
	/* A block is written at once and has whole packets: if the stream is, the last block may be
	 * cut. */
	if (f.packed) {
		extent->whole_bytes = pem_packed__whole_bytes(f.packed);
		extent->torn = extent->packets && extent->bytes == stream_bytes &&
			       pem_packed__is_torn(f.packed);
	}
	pem_packed__free(f.packed);
	return 0;
}

/*
 * Remember a file, if it is a stream of this trace. Returns 0, or -errno: the stream can't be read.
 */
static int add_earlier(struct pem_trace_writer *w, const char *name)
{
	struct pem_stream_extent extent;
	struct pem_earlier_stream *grown, *s;
	struct stat st;
	int fd = pem_stream_file__open(w->earlier_fd, name, O_RDONLY, &st), result;

	if (fd < 0)
		return fd == -ENOENT || fd == -ELOOP ? 0 : fd;
	result = pem_stream_file__measure(fd, (uint64_t)st.st_size, w->uuid, &extent);
	close(fd);
	if (result || !extent.packets)
		return result;
	if (w->earlier_count == w->earlier_capacity) {
		grown = realloc(w->earlier, (w->earlier_capacity * 2 + 16) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		w->earlier = grown;
		w->earlier_capacity = w->earlier_capacity * 2 + 16;
	}
	s = &w->earlier[w->earlier_count++];
	pem_copy_text(s->name, sizeof(s->name), name);
	s->bytes = extent.bytes;
	s->last_clock = extent.last.timestamp_end;
	s->discarded = extent.last.events_discarded;
	s->overwritten = extent.last.events_overwritten;
	if (extent.last.stream_instance_id >= w->next_instance &&
	    extent.last.stream_instance_id < UINT32_MAX)
		w->next_instance = extent.last.stream_instance_id + 1;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct pem_earlier_stream *)a)->name,
		      ((const struct pem_earlier_stream *)b)->name);
}

static int find_earlier(struct pem_trace_writer *w, struct pem_error *error)
{
	DIR *directory = pem_list_folder(w->earlier_fd);
	struct dirent *entry;
	int result = 0;

	if (!directory)
		return pem_error__set(error, -errno, "cannot list the trace's files: %s",
				      strerror(errno));
	while (!result && (entry = readdir(directory))) {
		result = add_earlier(w, entry->d_name);
		if (result)
			pem_error__set(error, 0, "cannot read stream '%.60s': %s", entry->d_name,
				       strerror(-result));
	}
	closedir(directory);
	if (w->earlier_count)
		qsort(w->earlier, w->earlier_count, sizeof(*w->earlier), compare_names);
	return result;
}

const struct pem_earlier_stream *pem_trace_writer__earlier(const struct pem_trace_writer *w,
							   const char *name)
{
	struct pem_earlier_stream key;

	if (!w->earlier_count || !pem_is_stream_name(name))
		return NULL;
	pem_copy_text(key.name, sizeof(key.name), name);
	return bsearch(&key, w->earlier, w->earlier_count, sizeof(key), compare_names);
}

/* --- going on --- */

static int resume(struct pem_trace_writer *w, int trace_fd, int stage_fd, struct pem_error *error)
{
	int result;

	w->earlier_fd = fcntl(trace_fd, F_DUPFD_CLOEXEC, 0);
	w->directory_fd = fcntl(stage_fd, F_DUPFD_CLOEXEC, 0);
	w->private_fd = fcntl(stage_fd, F_DUPFD_CLOEXEC, 0);
	if (w->earlier_fd < 0 || w->directory_fd < 0 || w->private_fd < 0)
		return pem_error__set(error, -errno, "cannot hold the trace's folder open: %s",
				      strerror(errno));
	w->balance = open_memstream(&w->balance_text, &w->balance_bytes);
	if (!w->balance)
		return pem_error__set(error, -ENOMEM, "out of memory");
	result = pem_trace__read_uuid(trace_fd, w->uuid);
	if (result)
		return pem_error__set(error, result, "cannot read the uuid in 'metadata': %s",
				      strerror(-result));
	result = find_earlier(w, error);
	if (result)
		return result;
	/*
	 * The recorder may have written the model's file about a new event and died before it wrote
	 * the metadata.
	 */
	result = pem_trace_writer__model_changed(w);
	return result ? pem_error__set(error, result, "cannot write in its folder '.pem': %s",
				       strerror(-result))
		      : 0;
}

struct pem_trace_writer *pem_trace_writer__resume(int trace_fd, int stage_fd,
						  const struct pem_model *model,
						  const struct pem_trace_info *info,
						  struct pem_error *error)
{
	struct pem_trace_writer *w = calloc(1, sizeof(*w));
	int result;

	if (!w) {
		pem_error__set(error, 0, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&w->lock, NULL);
	w->directory_fd = w->private_fd = w->earlier_fd = -1;
	w->model = model;
	w->info = *info;
	result = resume(w, trace_fd, stage_fd, error);
	if (!result)
		return w;
	pem_trace_writer__free(w);
	errno = -result;
	return NULL;
}

/*
 * Read one packet's content; the caller frees it. NULL: the file has changed since its packets were
 * checked, or out of memory.
 */
static struct pem_packet *read_packet(const struct raw_file *f, uint64_t offset,
				      const uint8_t uuid[16])
{
	struct pem_packet header, *packet;
	size_t content;

	if (!read_header(f, offset, uuid, &header))
		return NULL;
	content = header.content_size / 8;
	packet = malloc(content);
	if (packet && read_raw(f, packet, content, offset) &&
	    !memcmp(packet, &header, sizeof(header)))
		return packet;
	free(packet);
	return NULL;
}

void pem_trace_writer__walk(struct pem_trace_writer *w,
			    bool (*wants)(const void *arg, const char *stream),
			    void (*see)(void *arg, const char *stream,
					const struct pem_packet *packet, size_t content_bytes),
			    void *arg)
{
	const struct pem_earlier_stream *s;
	struct pem_packet *packet;
	struct raw_file f;
	uint64_t at, bytes;
	struct stat st;
	size_t i;
	int fd;

	for (i = 0; i < w->earlier_count; i++) {
		s = &w->earlier[i];
		fd = wants(arg, s->name)
			     ? pem_stream_file__open(w->earlier_fd, s->name, O_RDONLY, &st)
			     : -1;
		if (fd < 0)
			continue;
		bytes = (uint64_t)st.st_size;
		for (at = open_raw(&f, fd, &bytes) ? s->bytes : 0; at < s->bytes;) {
			packet = read_packet(&f, at, w->uuid);
			if (!packet)
				break;
			see(arg, s->name, packet, packet->content_size / 8);
			at += packet->packet_size / 8;
			free(packet);
		}
		pem_packed__free(f.packed);
		close(fd);
	}
}
