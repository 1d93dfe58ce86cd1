/* SPDX-License-Identifier: MIT */
/* apply.c - settings are set and read back, in groups of one file, database or server */
#include "ways.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct settings_way_of *const ways[] = {
	[SETTINGS_FILE] = &settings_file,         [SETTINGS_PRAGMA] = &settings_pragma,
	[SETTINGS_POSTGRES] = &settings_postgres, [SETTINGS_REDIS] = &settings_redis,
	[SETTINGS_SYSCTL] = &settings_sysctl,     [SETTINGS_CGROUP] = &settings_cgroup,
	[SETTINGS_PROGRAM] = &settings_program,
};

const char *settings_way__name(enum settings_way way)
{
	static const char *const names[] = {
		[SETTINGS_FILE] = "file",           [SETTINGS_PRAGMA] = "pragma",
		[SETTINGS_POSTGRES] = "PostgreSQL", [SETTINGS_REDIS] = "redis",
		[SETTINGS_SYSCTL] = "sysctl",       [SETTINGS_CGROUP] = "control group",
		[SETTINGS_PROGRAM] = "program",
	};

	return way < sizeof(names) / sizeof(names[0]) ? names[way] : NULL;
}

bool settings_way__lasts(enum settings_way way, bool own_server)
{
	return settings_way__name(way) && way != SETTINGS_CGROUP &&
	       !(own_server && (way == SETTINGS_POSTGRES || way == SETTINGS_REDIS));
}

/* A file, database or server during one call, with the targets that are of it. */
struct group {
	struct settings_agent *agent;
	const struct settings_way_of *way;
	void *session;
	char in[PATH_MAX];
	const struct settings_target *targets;
	const char *const *values;
	size_t from, count;
	struct settings_refusal *refusal;
	struct pem_error *error;
};

/* --- words --- */

int settings_fail(struct pem_error *error, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (error)
		vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return code;
}

int settings_take(char *value, const char *text, size_t bytes, struct pem_error *error)
{
	for (; bytes && isspace((unsigned char)*text); bytes--)
		text++;
	while (bytes && isspace((unsigned char)text[bytes - 1]))
		bytes--;
	if (bytes >= SETTINGS_VALUE_BYTES)
		return settings_fail(error, -EMSGSIZE, "the value has more than %u bytes",
				     SETTINGS_VALUE_BYTES - 1);
	memcpy(value, text, bytes);
	value[bytes] = '\0';
	return 0;
}

bool settings_number(const char *text, const struct settings_unit *units, double *number)
{
	char *end;

	*number = strtod(text, &end);
	if (end == text || !isfinite(*number))
		return false;
	end += strspn(end, " \t");
	if (!*end)
		return true;
	for (; units->name && strcasecmp(end, units->name); units++)
		;
	*number *= units->factor;
	return units->name;
}

/* --- one group --- */

static const struct settings_way_of *way_of(int way)
{
	return way < 0 || (size_t)way >= sizeof(ways) / sizeof(ways[0]) ? NULL : ways[way];
}

/* Of a program, the parameter's name is the key, and the program the system. */
static const char *key_of(const struct settings_target *target)
{
	return target->way == SETTINGS_PROGRAM ? target->name : target->key;
}

static const char *in_of(const struct settings_target *target)
{
	const char *in = target->way == SETTINGS_PROGRAM ? target->key : target->in;

	return in ? in : "";
}

static bool is_of(const struct group *g, size_t i)
{
	return g->targets[i].way == g->targets[g->from].way &&
	       !strcmp(in_of(&g->targets[i]), in_of(&g->targets[g->from]));
}

static int refuse(struct group *g, size_t i, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct group *g, size_t i, const char *format, ...)
{
	char words[200];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	g->refusal->target = i;
	snprintf(g->refusal->text, sizeof(g->refusal->text), "%.50s: %s", g->targets[i].name,
		 words);
	return 1;
}

static bool same(struct group *g, const char *key, const char *given, const char *taken)
{
	return !strcmp(given, taken) ||
	       (g->way->same && g->way->same(g->session, key, given, taken));
}

/* The value that a target gets: its own, or else the first one; NULL: none. */
static const char *given(const struct group *g, size_t i)
{
	const struct settings_change *change;

	if (g->values[i])
		return g->values[i];
	change = settings_journal__find(g->agent, g->targets[i].way, key_of(&g->targets[i]), g->in);
	return change ? change->first : NULL;
}

/* Set one target, after its first value is on the disk. *sets: something was set. */
static int set(struct group *g, size_t i, bool *sets)
{
	const char *key = key_of(&g->targets[i]), *value = given(g, i);
	enum settings_way way = g->targets[i].way;
	char now[SETTINGS_VALUE_BYTES], first[SETTINGS_VALUE_BYTES];
	bool known = settings_journal__find(g->agent, way, key, g->in), none = false;
	struct pem_error why = {0};
	int rc;

	*sets = *sets || g->way->whole;
	if (!value && !known)
		return 0; /* it has its first value */
	rc = g->way->whole ? 0 : g->way->get(g->session, key, now, g->error);
	if (rc || (!g->way->whole && value && same(g, key, value, now)))
		return rc;
	if (!known && !g->way->whole) {
		if (g->way->first)
			rc = g->way->first(g->session, key, first, g->error);
		none = rc == 1;
		if (rc >= 0)
			rc = settings_journal__add(g->agent, way, key, g->in,
						   none            ? NULL
						   : g->way->first ? first
								   : now,
						   g->error);
		if (rc)
			return rc;
	}
	*sets = true;
	rc = g->way->set(g->session, key, value, &why);
	if (rc < 0)
		return settings_fail(g->error, rc, "%s", why.text);
	return rc ? refuse(g, i, "%.40s was refused: %s", value ? value : "its first value",
			   why.text)
		  : 0;
}

/* Words for a system. The address of a server may have a password. */
static const char *system_of(const struct group *g)
{
	const char *slash = strrchr(g->in, '/');

	return g->way == &settings_postgres ? "PostgreSQL"
	       : g->way == &settings_redis  ? "redis"
	       : slash                      ? slash + 1
					    : "the system";
}

static int check(struct group *g, size_t i)
{
	const char *key = key_of(&g->targets[i]), *value = given(g, i);
	char now[SETTINGS_VALUE_BYTES];
	int rc;

	if (!value)
		return 0;
	rc = g->way->get(g->session, key, now, g->error);
	if (rc || same(g, key, value, now))
		return rc;
	return refuse(g, i, "%.60s was given; %.50s has %.60s", value, system_of(g),
		      *now ? now : "nothing");
}

static int apply_group(struct group *g)
{
	bool sets = false;
	size_t i;
	int rc, saved = 0;

	snprintf(g->in, sizeof(g->in), "%s", in_of(&g->targets[g->from]));
	rc = g->way->open(g->agent, g->in, &g->session, g->error);
	if (rc)
		return rc;
	for (i = g->from; !rc && i < g->count; i++) {
		if (is_of(g, i))
			rc = set(g, i, &sets);
	}
	/* After a refusal as well: the next get has to read what was set before it. */
	if (sets && g->way->commit)
		saved = g->way->commit(g->session, rc < 0 ? NULL : g->error);
	if (rc >= 0 && saved)
		rc = saved;
	for (i = g->from; !rc && i < g->count; i++) {
		if (is_of(g, i))
			rc = check(g, i);
	}
	g->way->close(g->session);
	return rc;
}

/* --- all --- */

int settings_agent__apply(struct settings_agent *agent, enum settings_phase phase,
			  const struct settings_target *targets, const char *const *values,
			  size_t count, struct settings_refusal *refusal, struct pem_error *error)
{
	struct group g = {.agent = agent,
			  .targets = targets,
			  .values = values,
			  .count = count,
			  .refusal = refusal,
			  .error = error};
	size_t i;
	int rc = 0;

	settings_fail(error, 0, "no memory is left"); /* of what has no other sentence */
	for (g.from = 0; !rc && g.from < count; g.from++) {
		g.way = way_of((int)targets[g.from].way);
		if (!g.way && targets[g.from].way == SETTINGS_POSTGRES)
			return settings_fail(error, -ENOTSUP, "pem was built without libpq");
		if (!g.way || g.way->phase != phase)
			continue;
		for (i = 0; i < g.from && !is_of(&g, i); i++)
			;
		if (i == g.from)
			rc = apply_group(&g);
	}
	return rc;
}

int settings_target__check(const struct settings_target *target, struct pem_error *error)
{
	struct settings_agent none = {.folder = -1};
	struct group g = {.agent = &none, .way = way_of((int)target->way), .error = error};
	char now[SETTINGS_VALUE_BYTES];
	int rc;

	if (!g.way && target->way == SETTINGS_POSTGRES)
		return settings_fail(error, -ENOTSUP, "pem was built without libpq");
	if (!g.way || target->way == SETTINGS_CGROUP)
		return 0;
	settings_fail(error, 0, "no memory is left");
	snprintf(g.in, sizeof(g.in), "%s", in_of(target));
	rc = g.way->open(&none, g.in, &g.session, error);
	if (rc)
		return rc;
	if (target->way != SETTINGS_PROGRAM)
		rc = g.way->get(g.session, key_of(target), now, error);
	g.way->close(g.session);
	return rc;
}

/* Has a setting its first value? Returns 0: yes. 1: no. Or -errno. */
static int is_first(struct group *g, const struct settings_change *change)
{
	char now[SETTINGS_VALUE_BYTES];
	int rc = g->way->get(g->session, change->key, now, g->error);

	return rc ? rc : !same(g, change->key, change->first, now);
}

static int restore(struct settings_agent *agent, const struct settings_change *change,
		   struct pem_error *error)
{
	struct group g = {.agent = agent, .way = way_of(change->way), .error = error};
	int rc;

	if (!g.way)
		return settings_fail(error, -EBADMSG, "the journal has an unknown way");
	if (g.way->restore)
		return g.way->restore(agent, change, error);
	snprintf(g.in, sizeof(g.in), "%s", change->in);
	rc = g.way->open(agent, g.in, &g.session, error);
	if (rc == -ENOENT)
		return -ESTALE; /* a database that was removed */
	if (rc)
		/* CONFIG SET ends with its server. */
		return rc == -ECONNREFUSED && change->way == SETTINGS_REDIS ? 0 : rc;
	rc = 1;
	/* Both are paths without links, unless the owner of a folder has made one since. */
	if (strcmp(g.in, change->in))
		rc = settings_fail(error, -ESTALE,
				   "%s leads to %s now, which stays as it is; its first %s was %s",
				   change->in, g.in, change->key, change->first ?: "unset");
	else if (!g.way->first)
		rc = is_first(&g, change);
	if (rc == 1)
		rc = g.way->set(g.session, change->key, change->first, error);
	if (!rc && g.way->commit)
		rc = g.way->commit(g.session, error);
	if (!rc && change->first && is_first(&g, change) == 1)
		rc = settings_fail(error, -EIO, "%s of %s can't be set to %s again", change->key,
				   system_of(&g), change->first);
	g.way->close(g.session);
	return rc > 0 ? -EPERM : rc;
}

/* Restore all changes of a phase and later ones. *restored: how many. */
static int restore_from(struct settings_agent *agent, enum settings_phase from, size_t *restored,
			struct pem_error *error)
{
	struct pem_error why;
	size_t i;
	int rc, first = 0;

	*restored = 0;
	for (i = agent->count; i-- > 0;) {
		struct settings_change change = agent->changes[i];

		if (way_of(change.way) && way_of(change.way)->phase < from)
			continue;
		settings_fail(&why, 0, "no memory is left");
		rc = restore(agent, &change, &why);
		if (!rc || rc == -ESTALE) {
			*restored += !rc;
			memmove(&agent->changes[i], &agent->changes[i + 1],
				(--agent->count - i) * sizeof(change));
			if (settings_journal__save(agent, &why))
				rc = -EIO;
			settings_change__free(&change);
		}
		if (rc && !first)
			first = settings_fail(error, rc, "%s", why.text);
	}
	return first;
}

struct settings_agent *settings_agent__open(const char *folder, size_t *recovered,
					    struct pem_error *error)
{
	struct settings_agent *agent = calloc(1, sizeof(*agent));
	size_t restored;
	int rc = -ENOMEM;

	settings_fail(error, 0, "no memory is left");
	if (agent) {
		agent->folder = -1;
		rc = settings_journal__open(agent, folder, error);
	}
	if (rc) {
		settings_agent__close(agent);
		errno = -rc;
		return NULL;
	}
	settings_fail(error, 0, "%s", "");
	restore_from(agent, SETTINGS_BEFORE_START, recovered ? recovered : &restored, error);
	return agent;
}

const char *settings_agent__cgroup(const struct settings_agent *agent)
{
	return agent->cgroup;
}

int settings_agent__restore(struct settings_agent *agent, enum settings_phase from,
			    struct pem_error *error)
{
	size_t restored;

	return restore_from(agent, from, &restored, error);
}

int settings_agent__keep(struct settings_agent *agent, struct pem_error *error)
{
	size_t count = agent->count, i;
	int rc;

	agent->count = 0;
	rc = settings_journal__save(agent, error);
	if (rc) {
		agent->count = count;
		return rc;
	}
	for (i = 0; i < count; i++)
		settings_change__free(&agent->changes[i]);
	return 0;
}

void settings_agent__close(struct settings_agent *agent)
{
	if (!agent)
		return;
	while (agent->count)
		settings_change__free(&agent->changes[--agent->count]);
	free(agent->changes);
	free(agent->path);
	free(agent->cgroup);
	if (agent->folder >= 0)
		close(agent->folder);
	free(agent);
}
