/* SPDX-License-Identifier: MIT */
/* check.c - what a trial would miss here: files, databases, servers, settings, events */
#include "trial/document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void drop(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)text;
	(void)arg;
}

static int check_setting(const struct trial_experiment *e, uint32_t index, struct pem_error *error)
{
	const struct settings_target *target = &e->targets[index];

	/* A server that a trial starts does not run now. */
	if (e->start && (target->way == SETTINGS_POSTGRES || target->way == SETTINGS_REDIS))
		return 0;
	return settings_target__check(target, error);
}

/* Observe one metric as a trial does. */
static int check_metric(const struct trial_experiment *e, const struct trial_measure *metric,
			struct pem_session *session, struct pem_error *error)
{
	struct trial_experiment *one = calloc(1, sizeof(*one));
	struct trial_readings *readings;

	if (!one)
		return -ENOMEM;
	*one = *e;
	one->metrics[0] = *metric;
	one->metric_count = 1;
	readings = trial_readings__begin(one, session, error);
	trial_readings__free(readings);
	free(one);
	return readings ? 0 : -EINVAL;
}

int trial_experiment__check(const struct trial_experiment *e, const char *program,
			    struct pem_error *error)
{
	const struct pem_session_options options = {.size = sizeof(options), .log = drop};
	struct pem_session *session = NULL;
	const struct settings_xml_node *node;
	struct settings_xml *xml = NULL;
	struct pem_error why = {.text = ""};
	uint32_t parameter = 0;
	size_t metric = 0;
	int rc = settings_xml__open(&xml, e->path, trial_schema, "exploration.xsd", error), wrong;

	if (!rc && trial_experiment__needs_session(e)) {
		session = pem_session__open(&options, error);
		rc = session ? 0 : -errno;
		if (session)
			pem_session__describe(session, PEM_ANY, program, NULL);
	}
	for (node = rc ? NULL : settings_xml__first(settings_xml__root(xml)); node && !rc;
	     node = settings_xml__next(node)) {
		const char *name = settings_xml__name(node);

		wrong = 0;
		if (!strcmp(name, "parameter"))
			wrong = check_setting(e, parameter++, &why);
		else if (!strcmp(name, "metric") && e->metrics[metric++].event)
			wrong = check_metric(e, &e->metrics[metric - 1], session, &why);
		if (wrong)
			rc = settings_xml__refuse(xml, node, "name", 0, "%s", why.text);
	}
	pem_session__close(session);
	settings_xml__close(xml);
	return rc;
}
