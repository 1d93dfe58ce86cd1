/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * environment.c - the environment of a started program, so that it raises application events: the
 * preloaded libraries and the session
 *
 * Starting the program is in run.c.
 */
#include "core/core.h"
#include "core/demand.h"
#include "core/gate.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "producer/program_file.h"
#include "runtime_dir.h"
#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each has libpem in it (libpem/together): a process loads one library in less time than two. */
#define ALL_ADAPTERS "libpem-adapters.so"
#define LIBC_ADAPTER "libpem-preload.so"
/* Of a list of libraries. */
#define LIBRARIES_BYTES (5u * PATH_MAX)

/*
 * Replace a folder that has a space or a colon in its name by a symbolic link in the runtime
 * directory. LD_PRELOAD has no quoting. The link is never removed, since processes that outlive the
 * session still start other programs with it.
 */
static void quote_folder(const char *runtime, char *folder, size_t bytes)
{
	uint32_t hash = 2166136261u;
	char link[PATH_MAX];
	const char *c;

	if (!strpbrk(folder, " :"))
		return;
	for (c = folder; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	snprintf(link, sizeof(link), "%s/lib-%08x", runtime, hash);
	if (!symlink(folder, link) || errno == EEXIST)
		pem_copy_text(folder, bytes, link);
}

/* The variables that the program gets anew. A value is NULL where memory ran out. */
struct variables {
	char *session, *preload, *asan, *filters;
	/*
	 * OMP_TOOL_LIBRARIES. NULL: the command has this variable already, or no OpenMP adapter is
	 * needed.
	 */
	char *adapter;
};

static void free_variables(struct variables *v)
{
	free(v->session);
	free(v->preload);
	free(v->asan);
	free(v->filters);
	free(v->adapter);
}

static char *format(const char *form, const char *a, const char *b, const char *c)
{
	char *text;

	return asprintf(&text, form, a, b, c) < 0 ? NULL : text;
}

/*
 * Does the session want any event that this library raises? The library is preloaded only then,
 * since a preloaded library costs time even where nothing uses it.
 */
static bool is_wanted(const struct pem_session *s, const char *library)
{
	const struct pem_demand *demand;
	size_t i;

	/* A consumer that attaches later may want any event. */
	if (!s)
		return true;
	for (i = 0; i < s->demand_count; i++) {
		demand = &s->demands[i];
		if (demand->event->source_kind != PEM_SOURCE_STUB ||
		    strcmp(demand->event->source_name, library) != 0)
			continue;
		if (pem_session__gates_use(s, demand->event))
			return true;
		for (; demand; demand = demand->next)
			if (PEM_ACTION_FLAGS(pem_demand__action(demand)) &
			    (PEM_ACTION_LOG | PEM_ACTION_STAT))
				return true;
	}
	return false;
}

/* Append folder/name to a list of libraries. Returns false if this file can't be read. */
static bool add_library(char *list, size_t bytes, const char *folder, const char *name)
{
	size_t used = strlen(list);
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (access(path, R_OK))
		return false;
	snprintf(list + used, bytes - used, "%s%s", used ? ":" : "", path);
	return true;
}

/* The last part of a list's first entry, which ends at a colon or space. length: of that part. */
static const char *first_name(const char *list, size_t *length)
{
	const char *name = list, *end = list + strcspn(list, ": "), *at;

	for (at = list; at < end; at++)
		if (*at == '/')
			name = at + 1;
	*length = (size_t)(end - name);
	return name;
}

/* Does a list of preloaded libraries have one of this name, in whatever folder? */
static bool has_library(const char *list, const char *wanted)
{
	const char *name;
	size_t length;

	for (; list; list = name[length] ? name + length + 1 : NULL) {
		name = first_name(list, &length);
		if (length == strlen(wanted) && !memcmp(name, wanted, length))
			return true;
	}
	return false;
}

/* Is it the name of a library that make_variables() adds? */
static bool is_added(const char *name, size_t length)
{
	static const char *const names[] = {"libpem.so.1",   "libpem-libc.so",   LIBC_ADAPTER,
					    "libpem-mpi.so", "libpem-sqlite.so", ALL_ADAPTERS};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (length == strlen(names[i]) && !memcmp(name, names[i], length))
			return true;
	return false;
}

/*
 * Append the entries of a list that are not pem's. A pem that runs under another one preloads what
 * both want once: two adapters would raise each event twice. Returns NULL where memory ran out.
 */
static char *join_others(const char *libraries, const char *before)
{
	char *list = malloc(strlen(libraries) + strlen(before) + 2);
	const char *name, *end;
	size_t length, used;

	if (!list)
		return NULL;
	strcpy(list, libraries);
	for (used = strlen(list); before; before = *end ? end + 1 : NULL) {
		name = first_name(before, &length);
		end = name + length;
		if (end == before || is_added(name, length))
			continue;
		if (used)
			list[used++] = ':';
		memcpy(list + used, before, (size_t)(end - before));
		used += (size_t)(end - before);
		list[used] = 0;
	}
	return list;
}

/* As is_wanted(); also where a pem that this one runs under wants it. */
static bool is_wanted_here(const struct pem_session *s, const char *before, const char *library)
{
	return is_wanted(s, library) || has_library(before, library) ||
	       has_library(before, ALL_ADAPTERS);
}

/* Append libpem and, where adapters are wanted, that of the C library and those on demand. */
static void add_libraries(const struct pem_session *s, const char *before, bool adapters,
			  char *list, size_t bytes, const char *folder)
{
	static const char *const on_demand[] = {"libpem-mpi.so", "libpem-sqlite.so"};
	const size_t count = sizeof(on_demand) / sizeof(on_demand[0]);
	size_t i, wanted = 0;

	for (i = 0; adapters && i < count; i++)
		wanted += is_wanted_here(s, before, on_demand[i]);
	if (wanted == count && add_library(list, bytes, folder, ALL_ADAPTERS))
		return;
	if (!adapters || !add_library(list, bytes, folder, LIBC_ADAPTER)) {
		add_library(list, bytes, folder, "libpem.so.1");
		if (adapters)
			add_library(list, bytes, folder, "libpem-libc.so");
	}
	for (i = 0; adapters && i < count; i++)
		if (is_wanted_here(s, before, on_demand[i]))
			add_library(list, bytes, folder, on_demand[i]);
}

/*
 * May libraries be preloaded into the program? False for a program that they would harm (32-bit,
 * musl). True for a static program: it loads none, but the programs that it starts may raise
 * events.
 */
static bool can_preload(struct pem_session *s, const char *program, bool adapters)
{
	static const char *const reasons[] = {
		[PEM_PROGRAM_32_BIT] = "it is a 32-bit program",
		[PEM_PROGRAM_MUSL] = "it uses another C library, musl",
		[PEM_PROGRAM_STATIC] = "it is linked statically",
		[PEM_PROGRAM_PRIVILEGED] =
			"it gains rights as it starts (setuid, setgid or file capabilities)",
	};
	const char *folders = getenv("PATH"), *why;
	enum pem_program_kind kind = PEM_PROGRAM_USUAL;

	if (program)
		kind = pem_program_file__kind(program, folders ? folders : "/bin:/usr/bin",
					      PEM_PROGRAM_KIND);
	why = reasons[kind];
	if (why && s && adapters && is_wanted(s, "libpem-libc.so"))
		pem_session__say(s, PEM_LOG_WARNING,
				 "'%s' raises no events of the C library: %s, and nothing can be "
				 "preloaded into it",
				 program, why);
	return kind != PEM_PROGRAM_32_BIT && kind != PEM_PROGRAM_MUSL;
}

void pem_environment__library_path(char path[PEM_LIBRARY_PATH_BYTES + 1])
{
	char folder[PATH_MAX], runtime[PATH_MAX - 128];

	path[0] = '\0';
	if (!pem_library_folder(folder, sizeof(folder)))
		return;
	if (!pem_runtime_dir(runtime, sizeof(runtime)))
		quote_folder(runtime, folder, sizeof(folder));
	if (snprintf(path, PEM_LIBRARY_PATH_BYTES + 1, "%s/libpem", folder) >
	    (int)PEM_LIBRARY_PATH_BYTES)
		path[0] = '\0';
}

/*
 * session is the folder of the session; NULL: the program is started in no session. Returns false
 * where memory ran out.
 */
static bool make_variables(struct pem_session *s, const char *session, const char *program,
			   const struct pem_run_options *options, struct variables *v)
{
	bool preload = !options || !options->no_preload || (s && pem_session__used_gates(s));
	bool adapters = preload && options && options->preload_libc;
	const char *before = getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "",
		   *asan = getenv("ASAN_OPTIONS");
	char *others, *libraries = calloc(1, LIBRARIES_BYTES);
	char runtime[PATH_MAX - 128], folder[PATH_MAX], ompt[PATH_MAX + 32] = "";

	/* A session that observes this process goes on in the program. */
	if (!session && !s)
		session = secure_getenv("PEM_SESSION");
	v->session = format("PEM_SESSION=%s%s%s", session ? session : "", "", "");
	if (libraries && preload && can_preload(s, program, adapters) &&
	    pem_library_folder(folder, sizeof(folder))) {
		if (!pem_runtime_dir(runtime, sizeof(runtime)))
			quote_folder(runtime, folder, sizeof(folder));
		add_libraries(s, before,
			      adapters || has_library(before, "libpem-libc.so") ||
				      has_library(before, LIBC_ADAPTER) ||
				      has_library(before, ALL_ADAPTERS),
			      libraries, LIBRARIES_BYTES, folder);
		if (adapters && !getenv("OMP_TOOL_LIBRARIES") && is_wanted(s, "libpem-ompt.so"))
			add_library(ompt, sizeof(ompt), folder, "libpem-ompt.so");
	}
	if (ompt[0])
		v->adapter = format("OMP_TOOL_LIBRARIES=%s%s%s", ompt, "", "");
	/* Without libraries of pem's the program has what this process has. */
	others = !libraries ? NULL : libraries[0] ? join_others(libraries, before) : strdup(before);
	v->preload = others ? format("LD_PRELOAD=%s%s%s", others, "", "") : NULL;
	free(others);
	free(libraries);
	/*
	 * A program built with AddressSanitizer refuses to start when another library stands before
	 * its own.
	 */
	v->asan = format("ASAN_OPTIONS=%s%s%s", asan ? asan : "", asan && preload ? ":" : "",
			 preload ? "verify_asan_link_order=0" : "");
	/*
	 * This process may have seccomp filters already, as in a container. These filters let pem's
	 * calls pass, and the variable tells the program how many they are. See producer/rights.c.
	 */
	if (asprintf(&v->filters, PEM_FILTERS_VARIABLE "=%0*u", PEM_FILTERS_DIGITS,
		     pem_filters_of((uint32_t)getpid())) < 0)
		v->filters = NULL;
	return v->session && v->preload && v->asan && v->filters;
}

static bool same_name(const char *a, const char *b)
{
	size_t length = strcspn(a, "=");

	return !strncmp(a, b, length + 1);
}

/*
 * Make this process's environment with the variables replaced. Call it before fork: the child of a
 * process with several threads cannot allocate. Returns NULL where memory ran out.
 */
static char **make_environment(const struct variables *v)
{
	size_t count = 0, used = 0, i;
	char **environment;

	while (environ[count])
		count++;
	environment = calloc(count + 6, sizeof(*environment));
	if (!environment)
		return NULL;
	for (i = 0; i < count; i++) {
		if (!same_name(v->session, environ[i]) && !same_name(v->preload, environ[i]) &&
		    !same_name(v->asan, environ[i]) && !same_name(v->filters, environ[i]))
			environment[used++] = environ[i];
	}
	if (v->session[strlen("PEM_SESSION=")])
		environment[used++] = v->session;
	if (v->preload[strlen("LD_PRELOAD=")])
		environment[used++] = v->preload;
	if (v->asan[strlen("ASAN_OPTIONS=")])
		environment[used++] = v->asan;
	environment[used++] = v->filters;
	environment[used] = v->adapter;
	return environment;
}

struct pem_environment {
	struct variables variables;
	char **all;
};

struct pem_environment *pem_environment__new(struct pem_session *s, const char *session,
					     const char *program,
					     const struct pem_run_options *options)
{
	struct pem_environment *e = calloc(1, sizeof(*e));

	if (e && make_variables(s, session, program, options, &e->variables))
		e->all = make_environment(&e->variables);
	if (e && !e->all) {
		pem_environment__free(e);
		e = NULL;
	}
	return e;
}

char **pem_environment__variables(const struct pem_environment *e)
{
	return e->all;
}

void pem_environment__free(struct pem_environment *e)
{
	if (!e)
		return;
	free(e->all);
	free_variables(&e->variables);
	free(e);
}
