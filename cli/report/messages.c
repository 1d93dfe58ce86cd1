// SPDX-License-Identifier: MIT
/*
 * messages.c - how long messages were under way, from each kind of send to each kind of receive
 *
 * Which send a receive belongs to is told by the pass (pem/context.h). A message whose receive lies
 * before its send, as that of fork may, has taken no time.
 */
#include "grow.h"
#include "times.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 1024u

struct report_message {
	const struct pem_event *send, *receive;
	uint64_t count, total_ns, most_ns;
	uint64_t bytes; /* by the send's field of role 'size' */
	struct pem_sketch sketch; /* of times */
};

static uint64_t key_of(const struct pem_event *send, const struct pem_event *receive)
{
	return (uint64_t)send->id << 32 | receive->id;
}

static struct report_message *row_of(struct report_times *t, const struct pem_event *send,
				     const struct pem_event *receive)
{
	uint32_t *at = pem_number_map__at(&t->message_at, key_of(send, receive));
	struct report_message *row;

	if (at == NULL)
		return NULL;
	if (*at != UINT32_MAX)
		return &t->messages[*at];
	if (pem_grow(&t->messages, sizeof(*t->messages), t->message_count + 1,
		     &t->message_capacity) < 0)
		return NULL;
	row = &t->messages[t->message_count];
	*row = (struct report_message){.send = send, .receive = receive};
	*at = (uint32_t)t->message_count++;
	return row;
}

int report_messages__add(struct report_times *t, const struct pem_record *record,
			 const struct pem_partner *partner)
{
	bool is_receive = record->event->meaning == PEM_MEANS_RECEIVE;
	const struct pem_event *send = is_receive ? partner->event : record->event;
	const struct pem_event *receive = is_receive ? record->event : partner->event;
	uint64_t ns = is_receive && record->time_ns > partner->time_ns
			      ? record->time_ns - partner->time_ns
			      : 0;
	int size = pem_event__field_by_role(send, PEM_ROLE_SIZE);
	struct report_message *row;

	if (t->message_count >= ROWS_MAX &&
	    pem_number_map__value(&t->message_at, key_of(send, receive)) == UINT32_MAX) {
		t->messages_left_out++;
		return 0;
	}
	row = row_of(t, send, receive);
	if (row == NULL)
		return -ENOMEM;
	row->count++;
	cli_sum__add(&row->total_ns, ns);
	row->most_ns = ns > row->most_ns ? ns : row->most_ns;
	if (pem_sketch__add(&row->sketch, (double)ns) < 0)
		return -ENOMEM;
	if (is_receive)
		cli_sum__add(&row->bytes, partner->size);
	else if (size >= 0)
		cli_sum__add(&row->bytes, pem_record__u64(record, (unsigned)size));
	return 0;
}

void report_messages__free(struct report_times *t)
{
	size_t i;

	for (i = 0; i < t->message_count; i++)
		pem_sketch__free(&t->messages[i].sketch);
	free(t->messages);
	pem_number_map__free(&t->message_at);
}

void report_messages__print(const struct report *r, enum report_by by)
{
	const struct report_times *t = r->times;
	struct pem_pass_unknown unknown = {.size = sizeof(unknown)};
	struct cli_table *table;
	size_t i;

	if (t->message_count == 0 || (by != REPORT_ALL && by != REPORT_MESSAGE))
		return;
	table = cli_table__new(stdout);
	cli_table__column(table, "MESSAGES", CLI_RIGHT);
	cli_table__column(table, "MEAN", CLI_RIGHT);
	cli_percentiles__columns(table);
	cli_table__column(table, "LONGEST", CLI_RIGHT);
	cli_table__column(table, "BYTES", CLI_RIGHT);
	cli_table__column(table, "FROM, TO", CLI_CUT);
	for (i = 0; i < t->message_count; i++) {
		const struct report_message *row = &t->messages[i];

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, cli_count(row->count));
		cli_table__cell(table, cli_sum__mean_duration(row->total_ns, row->count));
		cli_percentiles__durations(&row->sketch, row->most_ns, table);
		cli_table__cell(table, cli_duration(row->most_ns));
		cli_table__cell(table, row->bytes != 0 ? cli_sum__bytes(row->bytes) : "");
		cli_table__cell(table, cli_format("%s, %s", row->send->name, row->receive->name));
	}
	report__heading("Messages, from send to receive");
	cli_table__print(table);
	if (t->messages_left_out != 0)
		printf("and %s messages between more kinds of sends and receives\n",
		       cli_count(t->messages_left_out));
	pem_pass__unknown(t->pass, &unknown);
	if (unknown.receives != 0)
		printf("%s receives without a known send\n", cli_count(unknown.receives));
}

void report_messages__json(const struct report *r, struct cli_json_stream *json)
{
	struct json_object *entry;
	const struct report_times *t = r->times;
	size_t i;

	cli_json_stream__open(json, "messages", '[');
	for (i = 0; i < t->message_count; i++) {
		const struct report_message *row = &t->messages[i];

		entry = json_object_new_object();
		cli_json__text(entry, "send", row->send->name);
		cli_json__text(entry, "receive", row->receive->name);
		cli_json__count(entry, "count", row->count);
		cli_json__count(entry, "total_ns", row->total_ns);
		cli_percentiles__json(&row->sketch, &row->most_ns, "_ns", entry);
		cli_json__count(entry, "longest_ns", row->most_ns);
		cli_json__count(entry, "bytes", row->bytes);
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
}
