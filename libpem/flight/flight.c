/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flight.c - a flight recorder's memory of packets (contract: flight.h)
 *
 * A ring is a row of entries, oldest first. An entry is its head and its packet. No entry lies
 * across the ring's end:
 *
 *	|  entry  entry  entry  (pad) |
 *	      ^tail               ^head
 *
 * Positions run free: an entry lies at its position modulo the ring's size.
 */
#include "flight/flight.h"
#include "flight/flight_context.h"
#include "writer/trace_writer.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A process that ended and of which records are left here. */
struct ended {
	uint32_t pid;
	char name[PEM_NAME_BYTES];
	uint64_t start_clock;
	uint32_t packets; /* packets that are left */
	uint64_t account_bytes;
	size_t count;
	struct pem_balance_entry *entries;
	struct ended *next; /* the next process that ended */
};

struct entry {
	uint32_t bytes; /* bytes of the whole entry, a multiple of 8 */
	uint32_t packet_bytes; /* 0: a pad */
	struct ended *process; /* NULL: the packet is a source's */
	char stream[PEM_STREAM_FILE_BYTES];
};

struct ring {
	uint8_t *memory;
	uint64_t bytes;
	uint64_t head, tail;
};

struct pem_flight {
	const struct pem_model *model;
	void (*overwritten)(void *arg, const struct pem_event *event);
	void *arg;
	struct ring sources, ended;
	struct pem_flight_context *context;
	/*
	 * Processes in the order of their ends. The last one, current, has packets coming in and no
	 * account yet.
	 */
	struct ended *oldest, *youngest;
	struct ended *current;
	uint32_t process_count;
	uint64_t account_bytes;
	struct pem_balance_entry *folded; /* sum of accounts of processes whose records are gone */
	size_t folded_count, folded_capacity;
	bool any_overwritten;
	char last_stream[PEM_STREAM_FILE_BYTES];
	uint64_t last_clock;
	struct pem_packet_store store;
};

static bool ring__make(struct ring *ring, uint64_t bytes)
{
	ring->bytes = bytes;
	ring->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ring->memory == MAP_FAILED)
		ring->memory = NULL;
	return ring->memory != NULL;
}

static struct entry *ring__at(const struct ring *ring, uint64_t position)
{
	return (struct entry *)(ring->memory + position % ring->bytes);
}

static int store_packet(void *arg, const char *stream, const struct pem_packet *packet,
			size_t bytes)
{
	return pem_flight__packet(arg, stream, packet, bytes);
}

static int store_balance(void *arg, uint32_t pid, const char *name, uint64_t start_clock,
			 const struct pem_balance_entry *entries, size_t count)
{
	return pem_flight__balance(arg, pid, name, start_clock, entries, count);
}

static uint64_t stored_clock(const void *arg, const char *stream)
{
	return pem_flight__stream_clock(arg, stream);
}

const struct pem_packet_store *pem_flight__store(const struct pem_flight *f)
{
	return &f->store;
}

struct pem_flight *pem_flight__new(const struct pem_model *model, uint64_t bytes,
				   void (*overwritten)(void *arg, const struct pem_event *event),
				   void *arg)
{
	struct pem_flight *flight = calloc(1, sizeof(*flight));

	if (!flight)
		return NULL;
	flight->store =
		(struct pem_packet_store){flight, store_packet, store_balance, stored_clock};
	if (bytes < PEM_FLIGHT_BYTES_MIN)
		bytes = PEM_FLIGHT_BYTES_MIN;
	bytes &= ~(uint64_t)4095;
	flight->model = model;
	flight->overwritten = overwritten;
	flight->arg = arg;
	flight->context = pem_flight_context__new();
	if (flight->context && ring__make(&flight->sources, bytes) &&
	    ring__make(&flight->ended, bytes))
		return flight;
	pem_flight__free(flight);
	return NULL;
}

static void free_process(struct ended *process)
{
	free(process->entries);
	free(process);
}

void pem_flight__free(struct pem_flight *flight)
{
	struct ended *process;

	if (!flight)
		return;
	if (flight->sources.memory)
		munmap(flight->sources.memory, flight->sources.bytes);
	if (flight->ended.memory)
		munmap(flight->ended.memory, flight->ended.bytes);
	while ((process = flight->oldest)) {
		flight->oldest = process->next;
		free_process(process);
	}
	pem_flight_context__free(flight->context);
	free(flight->folded);
	free(flight);
}

/* --- accounts --- */

static int add_entry(struct pem_balance_entry **entries, size_t *count, size_t *capacity,
		     uint32_t event_id, struct pem_balance **balance)
{
	struct pem_balance_entry *larger;
	size_t i;

	for (i = 0; i < *count; i++) {
		if ((*entries)[i].event_id == event_id) {
			*balance = &(*entries)[i].balance;
			return 0;
		}
	}
	if (*count == *capacity) {
		larger = realloc(*entries, (*capacity * 2 + 16) * sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		*entries = larger;
		*capacity = *capacity * 2 + 16;
	}
	memset(&(*entries)[*count], 0, sizeof(**entries));
	(*entries)[*count].event_id = event_id;
	*balance = &(*entries)[(*count)++].balance;
	return 0;
}

static void fold(struct pem_flight *flight, const struct ended *process)
{
	const struct pem_balance *from;
	struct pem_balance *to;
	size_t i;

	for (i = 0; i < process->count; i++) {
		if (add_entry(&flight->folded, &flight->folded_count, &flight->folded_capacity,
			      process->entries[i].event_id, &to))
			continue;
		from = &process->entries[i].balance;
		to->produced += from->produced;
		to->delivered += from->delivered;
		to->discarded += from->discarded;
		to->overwritten += from->overwritten;
	}
}

/*
 * Fold the accounts of processes of which no packet is left. The oldest comes first: packets are
 * pushed out in the order of ends.
 */
static void fold_empty(struct pem_flight *flight)
{
	struct ended *process;

	while ((process = flight->oldest) && !process->packets && process != flight->current) {
		flight->oldest = process->next;
		if (!flight->oldest)
			flight->youngest = NULL;
		flight->process_count--;
		flight->account_bytes -= process->account_bytes;
		fold(flight, process);
		free_process(process);
	}
}

/* --- pushing out --- */

static void lose_record(struct pem_flight *flight, struct ended *process,
			const struct pem_event *event)
{
	size_t capacity = process ? process->count : 0;
	struct pem_balance *balance;

	flight->any_overwritten = true;
	if (!process) {
		flight->overwritten(flight->arg, event);
		return;
	}
	/* The process's account may still be to come, and adds what was delivered. */
	if (add_entry(&process->entries, &process->count, &capacity, event->id, &balance))
		return;
	balance->delivered--;
	balance->overwritten++;
}

static void lose_packet(struct pem_flight *flight, const struct entry *entry)
{
	const struct pem_packet *packet = (const struct pem_packet *)(entry + 1);
	const uint8_t *base = (const uint8_t *)packet;
	size_t at = PEM_PACKET_HEADER_BYTES, content = packet->content_size / 8;
	uint64_t clock = packet->timestamp_begin;
	const struct pem_event *event = NULL, *kept;
	const struct pem_record_header *header;
	int bytes;

	while (at + sizeof(*header) <= content) {
		header = (const struct pem_record_header *)(base + at);
		if (!event || event->id != header->event_id)
			event = pem_model__by_id(flight->model, header->event_id);
		bytes = event ? pem_event__record_bytes(event, base + at, content - at) : -EINVAL;
		/* Packets that are not sound do not come in. */
		if (bytes < 0)
			return;
		clock += (uint32_t)(header->clock_low - (uint32_t)clock);
		kept = event;
		if (!entry->process)
			kept = pem_flight_context__learn(flight->context, entry->stream, packet,
							 event, base + at, (uint32_t)bytes, clock);
		if (kept)
			lose_record(flight, entry->process, kept);
		at += ((size_t)bytes + 7) & ~(size_t)7;
	}
}

static void push_out(struct pem_flight *flight, struct ring *ring)
{
	const struct entry *entry = ring__at(ring, ring->tail);

	/* A pad may be shorter than an entry's head. */
	if (entry->packet_bytes) {
		lose_packet(flight, entry);
		if (entry->process)
			entry->process->packets--;
	}
	ring->tail += entry->bytes;
	fold_empty(flight);
}

/* Make room for an entry at the ring's head. NULL: the entry is too large for the ring. */
static struct entry *make_room(struct pem_flight *flight, struct ring *ring, uint64_t bytes)
{
	uint64_t rest = ring->bytes - ring->head % ring->bytes, pad = rest < bytes ? rest : 0;
	struct entry *entry;

	if (bytes + sizeof(*entry) > ring->bytes / 2)
		return NULL;
	while (ring->head - ring->tail + pad + bytes > ring->bytes)
		push_out(flight, ring);
	if (pad) {
		entry = ring__at(ring, ring->head);
		entry->bytes = (uint32_t)pad;
		entry->packet_bytes = 0;
		ring->head += pad;
	}
	return ring__at(ring, ring->head);
}

/* --- coming in --- */

static struct ended *current_process(struct pem_flight *flight)
{
	struct ended *process = flight->current;

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	if (flight->youngest)
		flight->youngest->next = process;
	else
		flight->oldest = process;
	flight->youngest = flight->current = process;
	flight->process_count++;
	return process;
}

int pem_flight__packet(struct pem_flight *flight, const char *stream,
		       const struct pem_packet *packet, size_t bytes)
{
	bool user = packet->source == PEM_PACKET_USER;
	struct ring *ring = user ? &flight->ended : &flight->sources;
	size_t content = (packet->content_size + 7) / 8;
	uint64_t size = (sizeof(struct entry) + content + 7) & ~7ull;
	struct ended *process = user ? current_process(flight) : NULL;
	struct entry *entry;

	if (content > bytes || content < PEM_PACKET_HEADER_BYTES ||
	    strlen(stream) >= sizeof(entry->stream))
		return -EINVAL;
	if (user && !process)
		return -ENOMEM;
	entry = make_room(flight, ring, size);
	if (!entry)
		return -EINVAL;
	memset(entry, 0, sizeof(*entry));
	entry->bytes = (uint32_t)size;
	entry->packet_bytes = (uint32_t)content;
	entry->process = process;
	strcpy(entry->stream, stream);
	memcpy(entry + 1, packet, content);
	ring->head += size;
	if (process)
		process->packets++;
	memcpy(flight->last_stream, entry->stream, sizeof(flight->last_stream));
	flight->last_clock = packet->timestamp_end;
	return 0;
}

uint64_t pem_flight__stream_clock(const struct pem_flight *flight, const char *stream)
{
	return strcmp(flight->last_stream, stream) ? 0 : flight->last_clock;
}

int pem_flight__balance(struct pem_flight *flight, uint32_t pid, const char *name,
			uint64_t start_clock, const struct pem_balance_entry *entries, size_t count)
{
	struct ended *process = current_process(flight);
	struct pem_balance *balance;
	size_t capacity, i;

	if (!process)
		return -ENOMEM;
	process->pid = pid;
	pem_copy_text(process->name, sizeof(process->name), name);
	process->start_clock = start_clock;
	capacity = process->count;
	for (i = 0; i < count; i++) {
		if (add_entry(&process->entries, &process->count, &capacity, entries[i].event_id,
			      &balance))
			return -ENOMEM;
		balance->produced += entries[i].balance.produced;
		balance->delivered += entries[i].balance.delivered;
		balance->discarded += entries[i].balance.discarded;
		balance->overwritten += entries[i].balance.overwritten;
		flight->any_overwritten |= entries[i].balance.overwritten != 0;
	}
	process->account_bytes = process->count * sizeof(*process->entries);
	flight->account_bytes += process->account_bytes;
	flight->current = NULL;
	fold_empty(flight);
	while (flight->process_count > PEM_FLIGHT_PROCESSES_MAX ||
	       flight->account_bytes > flight->ended.bytes)
		push_out(flight, &flight->ended);
	return 0;
}

bool pem_flight__has_overwritten(const struct pem_flight *flight)
{
	return flight->any_overwritten;
}

/* --- going out --- */

static int write_ring(const struct ring *ring, struct pem_trace_writer *writer)
{
	/* The packet is copied because a writer fills in its header. */
	struct pem_packet *copy = malloc(ring->bytes / 2);
	const struct entry *entry;
	uint64_t at;
	int result = copy ? 0 : -ENOMEM, one;

	for (at = ring->tail; copy && at != ring->head; at += entry->bytes) {
		entry = ring__at(ring, at);
		if (!entry->packet_bytes)
			continue;
		memcpy(copy, entry + 1, entry->packet_bytes);
		one = pem_trace_writer__packet(writer, entry->stream, copy, entry->packet_bytes);
		result = result ? result : one;
	}
	free(copy);
	return result;
}

int pem_flight__write(const struct pem_flight *flight, struct pem_trace_writer *writer)
{
	const struct ended *process;
	int result, one;

	pem_flight_context__write(flight->context, writer);
	pem_trace_writer__begin_span(writer);
	result = write_ring(&flight->sources, writer);
	one = write_ring(&flight->ended, writer);
	for (process = flight->oldest; process; process = process->next)
		pem_trace_writer__balance(writer, process->pid, process->name, process->start_clock,
					  process->entries, process->count);
	if (flight->folded_count)
		pem_trace_writer__balance(writer, 0, "ended", 0, flight->folded,
					  flight->folded_count);
	return result ? result : one;
}
