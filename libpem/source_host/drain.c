/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* drain.c - takes the packets that instances of source plugins write: counts, callbacks, the log */
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/demand.h"
#include "delivery/delivery.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "util.h"

#include <errno.h>
#include <string.h>

/*
 * Is a record for the log? first, demand: the event's first demand, and the one of the instance
 * that delivers it. An instance that tells who runs without being asked is not accounted for, so
 * such records are for callbacks alone.
 */
static bool is_logged(const struct pem_session *s, struct pem_demand *first,
		      const struct pem_demand *demand, uint64_t clock)
{
	return pem_session__is_logging(s) && demand->want_log &&
	       demand->instance == s->sources->draining && pem_log__wants(s->log, first, clock);
}

/*
 * Remove the records that are not for the log from a packet, and count the rest as delivered.
 * Returns where the content now ends: behind the last record that is left and that fits its
 * description.
 */
static size_t keep_for_log(struct pem_session *s, struct pem_packet *packet, size_t content)
{
	const struct pem_record_header *header;
	const struct pem_event *event = NULL;
	uint8_t *base = (uint8_t *)packet;
	size_t at = PEM_PACKET_HEADER_BYTES, to = at, end = at;
	uint64_t clock = packet->timestamp_begin;
	struct pem_demand *first = NULL, *demand = NULL;
	int bytes;

	while (at + sizeof(*header) <= content) {
		header = (const struct pem_record_header *)(base + at);
		if (!event || event->id != header->event_id) {
			event = pem_model__by_id(s->model, header->event_id);
			first = event ? pem_session__demand(s, event) : NULL;
			demand = pem_demand__of_instance(first, s->sources->draining);
		}
		bytes = event ? pem_event__record_bytes(event, base + at, content - at) : -EINVAL;
		if (bytes < 0)
			break;
		clock += (uint32_t)(header->clock_low - (uint32_t)clock);
		if (demand && !is_logged(s, first, demand, clock)) {
			demand->callback_only++;
			packet->record_count--;
		} else {
			if (first)
				first->delivered++;
			if (to != at)
				memmove(base + to, base + at, (size_t)bytes);
			end = to + (size_t)bytes;
			to += ((size_t)bytes + 7) & ~(size_t)7;
		}
		at += ((size_t)bytes + 7) & ~(size_t)7;
	}
	packet->content_size = (uint64_t)end * 8;
	return end;
}

void pem_session__count_records(struct pem_session *s, const struct pem_packet *packet,
				size_t content, int delivered, int lost)
{
	const struct pem_record_header *header;
	const struct pem_event *event;
	const uint8_t *base = (const uint8_t *)packet;
	size_t at = PEM_PACKET_HEADER_BYTES;
	struct pem_demand *demand;
	int bytes;

	while (at + sizeof(*header) <= content) {
		header = (const struct pem_record_header *)(base + at);
		event = pem_model__by_id(s->model, header->event_id);
		bytes = event ? pem_event__record_bytes(event, base + at, content - at) : -EINVAL;
		if (bytes < 0)
			return;
		demand = pem_session__demand(s, event);
		if (demand) {
			demand->delivered += (uint64_t)delivered;
			demand->lost += (uint64_t)lost;
		}
		at += ((size_t)bytes + 7) & ~(size_t)7;
	}
}

/*
 * Count a packet that could not be written. Its records had been counted as delivered, and are
 * lost.
 */
static void count_lost(struct pem_session *s, const struct pem_packet *packet, size_t content)
{
	pem_session__count_records(s, packet, content, -1, 1);
}

static size_t padded(size_t bytes)
{
	return (bytes + PEM_RECORD_ALIGN - 1) & ~(size_t)(PEM_RECORD_ALIGN - 1);
}

/*
 * Give a packet's records to callbacks, and keep the rest for the log. Returns the bytes of its
 * content, now and before.
 */
static int take_packet(struct pem_session *s, const char *name, struct pem_packet *packet,
		       size_t room, size_t *content, size_t *before)
{
	*before = packet->content_size / 8;
	if (packet->content_size % 8 || *before < PEM_PACKET_HEADER_BYTES || *before > room)
		return -EINVAL;
	pem_async__take_packet(s, name, s->sources->draining, packet, *before);
	*content = keep_for_log(s, packet, *before);
	return 0;
}

static void count_lost_packets(struct pem_session *s, const uint8_t *packets, size_t bytes)
{
	const struct pem_packet *packet;
	size_t at;

	for (at = 0; at < bytes; at += padded(packet->content_size / 8)) {
		packet = (const struct pem_packet *)(packets + at);
		count_lost(s, packet, packet->content_size / 8);
	}
}

/* Move the rest of the packets together and write it at once. */
static int write_packets(struct pem_session *s, const char *name, uint8_t *packets, size_t bytes)
{
	size_t at, content, before, to = 0;
	int result = 0, one;

	for (at = 0; at + sizeof(struct pem_packet) <= bytes; at += padded(before)) {
		result = take_packet(s, name, (struct pem_packet *)(packets + at), bytes - at,
				     &content, &before);
		if (result)
			break;
		memmove(packets + to, packets + at, content);
		to += padded(content);
	}
	if (!to || !pem_session__is_logging(s))
		return result;
	one = pem_trace_writer__packets(s->log->writer, name, packets, to);
	if (one)
		count_lost_packets(s, packets, to);
	return result ? result : one;
}

static int sink_write(void *arg, const char *name, struct pem_packet *packet, size_t bytes)
{
	struct pem_session *s = arg;
	size_t content = packet->content_size / 8, before;
	int result;

	s->sources->moved = true;
	if (padded(content) < bytes)
		return write_packets(s, name, (uint8_t *)packet, bytes);
	result = take_packet(s, name, packet, bytes, &content, &before);
	if (result || !pem_session__is_logging(s))
		return result;
	result = pem_trace_writer__packet(s->log->writer, name, packet, content);
	if (result)
		count_lost(s, packet, content);
	return result;
}

static uint64_t sink_clock_at(void *arg, uint64_t monotonic_ns)
{
	return pem_clock_sync__cycles_at(&((struct pem_session *)arg)->clock, monotonic_ns);
}

/* A copy that can't be made costs names alone. */
static void sink_keep_file(void *arg, const uint8_t *build_id, size_t build_id_bytes, int fd,
			   uint64_t file_bytes)
{
	struct pem_session *s = arg;

	if (pem_session__is_logging(s) && !pem_trace_writer__failed(s->log->writer))
		(void)pem_trace_writer__keep_file(s->log->writer, build_id, build_id_bytes, fd,
						  file_bytes);
}

void pem_session__drain_sources(struct pem_session *s, enum pem_drain_stage how)
{
	const struct pem_source_sink sink = {
		.arg = s,
		.write = sink_write,
		.clock_at = sink_clock_at,
		.keep_file = sink_keep_file,
	};
	const struct pem_instance *instance;
	int i, result;

	pem_clock_sync__update(&s->clock);
	for (i = 0; i < s->sources->instance_count; i++) {
		s->sources->draining = i;
		instance = &s->sources->instances[i];
		result = how != PEM_DRAIN_END ? instance->ops->drain(instance->source, &sink,
								     how == PEM_DRAIN_FINAL)
			 : instance->ops->end ? instance->ops->end(instance->source, &sink)
					      : 0;
		if (result < 0 && s->log && !pem_trace_writer__failed(s->log->writer))
			pem_session__say(s, PEM_LOG_WARNING, "%s: %s", instance->ops->name,
					 strerror(-result));
	}
}
