/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * live.c - a pass over records that the caller hands over, while they happen (contract:
 * pem/context.h)
 *
 * In place of a trace it has the session's model, and names that records and the caller tell. Who
 * raised a record is known already: the asynchronous callback that got it says so.
 */
#include "pass.h"
#include "sized.h"
#include "util.h"

#include <pem/pem.h>

#include <errno.h>
#include <stdlib.h>

static int make_live(struct pem_pass *pass, const struct pem_model *model,
		     const struct pem_pass_options *given)
{
	int rc = pem_event_table__build(&pass->live.events, model);

	pass->live.names = pem_context_table__new();
	pass->live.hz = pem_clock__hz();
	if (rc || !pass->live.names || !pass->live.hz)
		return -ENOMEM;
	rc = pem_pass__make_parts(pass, &pass->live.events, model, 1);
	return rc ? rc
		  : pem_pass__observe(pass, (uint32_t)given->command_pid,
				      given->is_whole_machine != 0);
}

struct pem_pass *pem_pass__new_live(const struct pem_model *model,
				    const struct pem_pass_options *options, struct pem_error *error)
{
	struct pem_pass_options given;
	struct pem_pass *pass = NULL;
	int rc = model ? 0 : pem_error__lacks(error, "model");

	if (!rc)
		rc = pem_pass__allocate(&pass, &given, options, error);
	if (!rc)
		rc = make_live(pass, model, &given);
	if (!rc)
		return pass;
	pem_pass__free(pass);
	if (rc == -ENOMEM)
		pem_error__set(error, rc, "no memory for a pass");
	errno = -rc;
	return NULL;
}

uint64_t pem_pass__live_ns(const struct pem_pass *pass, uint64_t clock)
{
	if (clock < pass->live.first_clock)
		return 0;
	return (uint64_t)((unsigned __int128)(clock - pass->live.first_clock) * 1000000000u /
			  pass->live.hz);
}

int pem_pass__call(struct pem_pass *pass, uint32_t pid, uint32_t tid, const char *name)
{
	int rc;

	if (!pass || !name || !pid || pass->trace)
		return -EINVAL;
	rc = tid ? pem_context_table__call_thread(pass->live.names, pid, tid, name)
		 : pem_context_table__set_name(pass->live.names, pid, name);
	return rc ? rc : pem_life__call(pass, pid, tid);
}

static int take_live(struct pem_pass *pass, struct pem_record *record, struct pem_error *error)
{
	const struct pem_event_info *info =
		pem_event_table__find(&pass->live.events, record->event->id);
	int rc = 0;

	if (!info || info->event != record->event)
		return pem_error__set(error, -EINVAL, "%s is not an event of the pass's model",
				      record->event->name);
	if (!pass->live.first_clock)
		pass->live.first_clock = record->clock;
	record->time_ns = pem_pass__live_ns(pass, record->clock);
	record->stream = 0;
	if (pem_event_info__tells_names(info))
		rc = pem_context_table__learn_names(pass->live.names, info, record);
	if (!rc)
		rc = pem_pass__take_record(
			pass, &pass->plans.entries[info - pass->live.events.entries], record);
	return rc ? pem_pass__no_memory(error) : 0;
}

int pem_pass__take(struct pem_pass *pass, struct pem_record *record, struct pem_around *around,
		   struct pem_error *error)
{
	struct pem_around whole = {.size = sizeof(whole)};
	struct pem_record copy = {.size = sizeof(copy)};
	int rc;

	if (!pass || pass->trace || pass->finished || !record || !record->event || !record->data)
		return pem_error__set(error, -EINVAL,
				      "pem_pass__take takes records of a live pass that goes on");
	if (pem_sized__check(record) || pem_sized__check(around))
		return pem_error__set(error, -EINVAL,
				      "the record's or the around's size is not set: set it to "
				      "sizeof");
	pem_sized__write(&copy, 0, record,
			 sizeof(copy) < record->size ? sizeof(copy) : record->size);
	pem_pass__begin_record(pass, &whole);
	rc = take_live(pass, &copy, error);
	if (rc)
		return rc;
	record->time_ns = copy.time_ns;
	pem_sized__write(around, 0, &whole, sizeof(whole));
	return 0;
}

int pem_pass__lose(struct pem_pass *pass)
{
	uint32_t cpu;
	uint64_t end;
	int rc = 0;

	if (!pass || pass->trace)
		return -EINVAL;
	end = pass->now_clock + 1; /* the next record is later than what was lost */
	pass->unknown.losses++;
	pass->losses_seen++;
	pass->user_loss = end;
	for (cpu = 0; !rc && cpu < PEM_CPUS_MAX; cpu++)
		if (pass->cpus[cpu].is_known)
			rc = pem_states__lose(pass, cpu, pass->now_clock, end);
	pass->kernel_loss = end;
	return rc;
}

int pem_pass__end(struct pem_pass *pass, struct pem_around *around, struct pem_error *error)
{
	struct pem_around whole = {.size = sizeof(whole), .cpu = PEM_NO_CPU};
	int rc;

	if (!pass || pass->trace || pem_sized__check(around))
		return pem_error__set(error, -EINVAL, "pem_pass__end ends a live pass");
	pem_pass__begin_record(pass, &whole);
	rc = pem_pass__finish(pass);
	pem_sized__write(around, 0, &whole, sizeof(whole));
	return rc ? pem_pass__no_memory(error) : 0;
}
