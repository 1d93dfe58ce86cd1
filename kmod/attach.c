// SPDX-License-Identifier: GPL-2.0-only
/*
 * attach.c - finds tracepoints by name, and registers probes with them
 *
 * The kernel's own tracepoints are looked up once. A module's tracepoints come and go with the
 * module, and a notifier of the kernel tells when. The kernel calls it for modules that are already
 * loaded, too, when it is registered. (for_each_module_tracepoint() is exported only since 6.13,
 * and is not needed.) Names of the kernel's own tracepoints are unique, because they are linker
 * symbols. A module's tracepoint is used only if its trace event belongs to the system in the spec,
 * because another module may have a tracepoint of this name with other parameters.
 *
 * One lock protects the table and what is registered, of all sessions. So when a module goes, its
 * probes are either registered or not, but never about to be registered. The lock may be taken
 * under the kernel's lock of modules' tracepoints. Under it no function is called that takes the
 * kernel's lock.
 */
#include "module.h"

#include <linux/module.h>
#include <linux/sort.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>

/* The tracepoint of an event's probe. */
struct attach_point {
	struct tracepoint *tracepoint; /* NULL: this kernel does not have it now */
	struct module *owner; /* NULL: the kernel itself */
};

static DEFINE_MUTEX(attach_lock);
static LIST_HEAD(sessions);
static struct attach_point *attach_points; /* by the event's index */
/* Indexes of events with probes, sorted by the names of their tracepoints. */
static unsigned int *by_name;
static unsigned int by_name_count;

static const char *name_of(unsigned int index)
{
	return strchr(pem_kmod_probes[index].tracepoint, ':') + 1;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(name_of(*(const unsigned int *)a), name_of(*(const unsigned int *)b));
}

/* The first entry of by_name whose name is not less. */
static unsigned int lower_bound(const char *name)
{
	unsigned int low = 0, high = by_name_count, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (strcmp(name_of(by_name[middle]), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Enter a tracepoint for the events of its name. system NULL: the events of any system. */
static void note_tracepoint(struct tracepoint *tracepoint, const char *system, struct module *owner)
{
	unsigned int at = lower_bound(tracepoint->name), index;
	size_t system_chars = system ? strlen(system) : 0;

	for (; at < by_name_count && !strcmp(name_of(by_name[at]), tracepoint->name); at++) {
		index = by_name[at];
		if (attach_points[index].tracepoint ||
		    (system && (strncmp(pem_kmod_probes[index].tracepoint, system, system_chars) ||
				pem_kmod_probes[index].tracepoint[system_chars] != ':')))
			continue;
		attach_points[index].tracepoint = tracepoint;
		attach_points[index].owner = owner;
	}
}

static void note_kernel_tracepoint(struct tracepoint *tracepoint, void *unused)
{
	note_tracepoint(tracepoint, NULL, NULL);
}

static void module_comes(struct module *module)
{
	struct trace_event_call *call;
	unsigned int i;

	for (i = 0; i < module->num_trace_events; i++) {
		call = module->trace_events[i];
		if ((call->flags & TRACE_EVENT_FL_TRACEPOINT) && call->tp)
			note_tracepoint(call->tp, call->class->system, module);
	}
}

static int set_locked(struct pem_kmod_session *session, unsigned int index, bool on)
{
	struct tracepoint *tracepoint = attach_points[index].tracepoint;
	int rc;

	if (session->events[index].is_attached == on)
		return 0;
	if (pem_kmod_probes[index].is_emitted) {
		session->events[index].is_attached = on;
		return 0;
	}
	if (!tracepoint)
		return -EOPNOTSUPP;
	if (on)
		rc = tracepoint_probe_register(tracepoint, pem_kmod_probes[index].probe,
					       &session->probe_data);
	else
		rc = tracepoint_probe_unregister(tracepoint, pem_kmod_probes[index].probe,
						 &session->probe_data);
	if (!rc)
		session->events[index].is_attached = on;
	return rc;
}

static void module_goes(struct module *module)
{
	struct pem_kmod_session *session;
	unsigned int i;

	for (i = 0; i < pem_kmod_probe_count; i++) {
		if (!attach_points[i].tracepoint || attach_points[i].owner != module)
			continue;
		list_for_each_entry(session, &sessions, all)
			set_locked(session, i, false);
		attach_points[i].tracepoint = NULL;
		attach_points[i].owner = NULL;
	}
}

static int notified(struct notifier_block *block, unsigned long what, void *data)
{
	struct module *module = ((struct tp_module *)data)->mod;

	mutex_lock(&attach_lock);
	if (what == MODULE_STATE_COMING)
		module_comes(module);
	else if (what == MODULE_STATE_GOING)
		module_goes(module);
	mutex_unlock(&attach_lock);
	return NOTIFY_OK;
}

static struct notifier_block notifier = {.notifier_call = notified};

int pem_attach__init(void)
{
	unsigned int i;
	int rc = -ENOMEM;

	attach_points = kvcalloc(pem_kmod_probe_count, sizeof(*attach_points), GFP_KERNEL_ACCOUNT);
	by_name = kvcalloc(pem_kmod_probe_count, sizeof(*by_name), GFP_KERNEL_ACCOUNT);
	if (!attach_points || !by_name)
		goto fail;
	for (i = 0; i < pem_kmod_probe_count; i++) {
		if (pem_kmod_probes[i].probe)
			by_name[by_name_count++] = i;
	}
	sort(by_name, by_name_count, sizeof(*by_name), compare_names, NULL);
	mutex_lock(&attach_lock);
	for_each_kernel_tracepoint(note_kernel_tracepoint, NULL);
	mutex_unlock(&attach_lock);
	rc = register_tracepoint_module_notifier(&notifier);
	if (!rc)
		return 0;
fail:
	kvfree(by_name);
	kvfree(attach_points);
	return rc;
}

void pem_attach__exit(void)
{
	unregister_tracepoint_module_notifier(&notifier);
	kvfree(by_name);
	kvfree(attach_points);
}

void pem_attach__add_session(struct pem_kmod_session *session)
{
	mutex_lock(&attach_lock);
	list_add(&session->all, &sessions);
	mutex_unlock(&attach_lock);
}

void pem_attach__remove_session(struct pem_kmod_session *session)
{
	mutex_lock(&attach_lock);
	list_del(&session->all);
	mutex_unlock(&attach_lock);
}

bool pem_attach__has(unsigned int index)
{
	return pem_kmod_probes[index].is_emitted || READ_ONCE(attach_points[index].tracepoint);
}

int pem_attach__set(struct pem_kmod_session *session, unsigned int index, bool on)
{
	int rc;

	mutex_lock(&attach_lock);
	rc = set_locked(session, index, on);
	mutex_unlock(&attach_lock);
	return rc;
}

struct tracepoint_search {
	const char *name;
	struct tracepoint *found;
};

static void match(struct tracepoint *tracepoint, void *arg)
{
	struct tracepoint_search *search = arg;

	if (!strcmp(tracepoint->name, search->name))
		search->found = tracepoint;
}

struct tracepoint *pem_attach__find(const char *name)
{
	struct tracepoint_search search = {.name = name};

	for_each_kernel_tracepoint(match, &search);
	return search.found;
}
