/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * messages.c - which send a receive belongs to
 *
 * Ends of messages with one key (group, scope and fields of role 'key') belong together in their
 * order: the first receive is of the first send, as the paper's message passing libraries and pipes
 * keep it. The records of a message may come in either order: fork returns in the child before it
 * does in the parent. So a list holds ends of one kind only, which wait for the other kind.
 *
 * A lost end would shift all later pairs of its key, and nobody can know of which key it was. So
 * no pair is claimed in a scope that has lost records.
 */
#include "pass.h"

#include <errno.h>
#include <stdlib.h>

struct pem_message {
	struct pem_message *next;
	struct pem_message *last; /* of the first: the last of the list */
	struct pem_partner partner;
	uint8_t meaning;
};

static void free_all(struct pem_message *message)
{
	struct pem_message *next;

	for (; message; message = next) {
		next = message->next;
		free(message);
	}
}

void pem_messages__free(struct pem_messages *messages)
{
	size_t i;

	for (i = 0; i < messages->by_key.size; i++)
		if (messages->by_key.entries[i].key)
			free_all(messages->by_key.entries[i].first);
	free_all(messages->free);
	pem_keys__free(&messages->by_key);
}

/* Let the record wait for its other end. */
static int wait_for_other(struct pem_pass *pass, const struct pem_plan *plan,
			  const struct pem_record *record, uint64_t key)
{
	struct pem_messages *all = &pass->messages;
	struct pem_message *message = all->free, *first;
	void **at;

	if (all->waiting >= pass->open_max) {
		pass->unknown.left_out++;
		return 0;
	}
	at = pem_keys__at(&all->by_key, key);
	if (message)
		all->free = message->next;
	else
		message = malloc(sizeof(*message));
	if (!at || !message) {
		free(message);
		return -ENOMEM;
	}
	message->next = NULL;
	message->last = message;
	message->meaning = plan->meaning;
	message->partner = (struct pem_partner){
		.time_ns = record->time_ns,
		.event = record->event,
		.thread = pass->thread ? &pass->thread->thread : NULL,
		.size = pem_number__load(plan->size, record->data),
	};
	first = *at;
	if (first) {
		first->last->next = message;
		first->last = message;
	} else {
		*at = message;
	}
	all->waiting++;
	return 0;
}

static void pair_up(struct pem_pass *pass, void **at)
{
	struct pem_messages *all = &pass->messages;
	struct pem_message *first = *at;

	all->partner = first->partner;
	pass->around->partner = &all->partner;
	if (first->next)
		first->next->last = first->last;
	*at = first->next;
	if (!first->next)
		pem_keys__remove(&all->by_key, at);
	first->next = all->free;
	all->free = first;
	all->waiting--;
}

int pem_messages__record(struct pem_pass *pass, const struct pem_plan *plan,
			 const struct pem_record *record)
{
	bool is_receive = plan->meaning == PEM_MEANS_RECEIVE;
	struct pem_message *first;
	uint64_t key;
	void **at;

	if (plan->group == PEM_NONE)
		return 0;
	if (!pem_pass__is_placed(pass, plan, record) ||
	    pem_pass__loss(pass, plan->scope, record->source, pass->process, pass->thread,
			   record->cpu)) {
		pass->unknown.receives += is_receive;
		pass->around->is_unmatched = is_receive;
		return 0;
	}
	key = pem_pass__key(pass, plan, record,
			    pem_mix2(pem_plan__keys(plan, record), pem_plan__name(plan, record)));
	at = pem_keys__find(&pass->messages.by_key, key);
	first = at ? *at : NULL;
	if (first && first->meaning != plan->meaning) {
		pass->unknown.receives -= first->meaning == PEM_MEANS_RECEIVE;
		pair_up(pass, at);
		return 0;
	}
	pass->unknown.receives += is_receive;
	pass->around->is_unmatched = is_receive;
	return wait_for_other(pass, plan, record, key);
}
