/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace_resume.c - going on with a trace that was cut off: its streams as they are, each packet checked
 */
#include "consumer/trace_writer_internal.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool parse_uuid(const char *metadata, uint8_t uuid[16])
{
	const char *at = strstr(metadata, "uuid = \"");
	unsigned value, i;

	if (!at)
		return false;
	at += strlen("uuid = \"");
	for (i = 0; i < 16; i++) {
		if (*at == '-')
			at++;
		if (sscanf(at, "%2x", &value) != 1)
			return false;
		uuid[i] = (uint8_t)value;
		at += 2;
	}
	return true;
}

/* One packet at an offset, checked, in memory of the caller; NULL at the end or a torn packet. */
static struct pem_packet *read_packet(int fd, uint64_t offset, size_t *content, size_t *size)
{
	struct pem_packet header, *packet;

	if (pread(fd, &header, sizeof(header), (off_t)offset) != sizeof(header) ||
	    header.magic != PEM_CTF_MAGIC || header.content_size % 8 || header.packet_size % 64 ||
	    header.content_size > header.packet_size || header.content_size / 8 < sizeof(header) ||
	    header.packet_size / 8 > 64u << 20)
		return NULL;
	*content = header.content_size / 8;
	*size = header.packet_size / 8;
	packet = malloc(*size);
	if (packet && pread(fd, packet, *size, (off_t)offset) == (ssize_t)*size)
		return packet;
	free(packet);
	return NULL;
}

static int resume_stream(struct pem_trace_writer *w, const char *name)
{
	int fd = openat(w->directory_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK),
	    result = 0;
	struct pem_stream *s = pem_trace_writer__stream(w, name);
	struct pem_packet *packet;
	size_t content, size;

	if (fd < 0)
		return -errno;
	while (s && (packet = read_packet(fd, s->bytes, &content, &size))) {
		s->bytes += size;
		s->packets++;
		s->last_clock = packet->timestamp_end;
		s->stated = packet->events_discarded;
		s->instance = packet->stream_instance_id;
		if (s->instance >= w->next_instance && s->instance < UINT32_MAX)
			w->next_instance = s->instance + 1;
		free(packet);
	}
	if (!s)
		result = -ENOMEM;
	else if (ftruncate(fd, (off_t)s->bytes))
		result = -errno;
	close(fd);
	return result;
}

static int resume_streams(struct pem_trace_writer *w)
{
	DIR *directory = pem_list_folder(w->directory_fd);
	struct dirent *entry;
	int result = 0;

	if (!directory)
		return -errno;
	while (!result && (entry = readdir(directory))) {
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "metadata"))
			result = resume_stream(w, entry->d_name);
	}
	closedir(directory);
	return result;
}

struct pem_trace_writer *pem_trace_writer__resume(const char *directory,
						  const struct pem_model *model,
						  const struct pem_trace_info *info,
						  struct pem_error *error)
{
	struct pem_trace_writer *w = calloc(1, sizeof(*w));
	char *metadata = NULL;
	int result = -ENOMEM;
	size_t bytes;

	if (!w)
		return NULL;
	w->private_fd = -1;
	w->model = model;
	w->info = *info;
	w->balance = open_memstream(&w->balance_text, &w->balance_bytes);
	w->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->directory_fd >= 0)
		w->private_fd = openat(w->directory_fd, ".pem",
				       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (!w->balance || w->private_fd < 0)
		goto fail;
	metadata = pem_read_file(w->directory_fd, "metadata", 64u << 20, &bytes);
	result = metadata && parse_uuid(metadata, w->uuid) ? resume_streams(w) : -EINVAL;
	free(metadata);
	/* Whoever died may have come to write the model's file, and not the metadata, about a new event. */
	if (!result)
		result = pem_trace_writer__model_changed(w);
	if (!result)
		return w;
fail:
	pem_error__set(error, 0, "cannot go on with trace '%s': %s", directory, strerror(-result));
	pem_trace_writer__free(w);
	errno = -result;
	return NULL;
}

void pem_trace_writer__walk(struct pem_trace_writer *w,
			    void (*see)(void *arg, const char *stream,
					const struct pem_packet *packet, size_t content_bytes),
			    void *arg)
{
	struct pem_packet *packet;
	size_t i, content, size;
	uint64_t at;
	int fd;

	for (i = 0; i < w->stream_count; i++) {
		fd = openat(w->directory_fd, w->streams[i].name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		for (at = 0; fd >= 0 && at < w->streams[i].bytes; at += size) {
			packet = read_packet(fd, at, &content, &size);
			if (!packet)
				break;
			see(arg, w->streams[i].name, packet, content);
			free(packet);
		}
		if (fd >= 0)
			close(fd);
	}
}
