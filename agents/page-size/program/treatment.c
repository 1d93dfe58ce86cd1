/* SPDX-License-Identifier: MIT */
/* treatment.c - what is made for a run with directives, and what came of it (apply/apply.h) */
#include "program.h"

#include "apply/apply.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "libpem-page-size.so"
/* No processor addresses more. */
#define BYTES_MAX (INT64_C(1) << 52)
#define REPORT_SITES_MAX 4096

static int fail(struct pem_error *error, const char *what, const char *path)
{
	int code = -errno;

	snprintf(error->text, sizeof(error->text), "%s %.300s: %s", what, path, strerror(-code));
	return code;
}

/* Make a file that only this user may write, for the command to read or to append to. */
static FILE *make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!file && fd >= 0)
		close(fd);
	return file;
}

int page_treatment__begin(struct page_treatment *t, struct pem_error *error)
{
	int rc;

	memset(t, 0, sizeof(*t));
	rc = cli_temporary__folder("pem-page-size", t->folder, sizeof(t->folder));
	if (rc != 0) {
		errno = -rc;
		return fail(error, "a folder can't be made, of this user alone, in",
			    "XDG_RUNTIME_DIR, TMPDIR or /tmp");
	}
	snprintf(t->directives, sizeof(t->directives), "%s/directives", t->folder);
	snprintf(t->report, sizeof(t->report), "%s/report", t->folder);
	t->lines = make_file(t->report);
	t->file = t->lines ? make_file(t->directives) : NULL;
	if (t->file)
		return 0;
	return fail(error, "a file can't be made in", t->folder);
}

/* Bytes that a directive costs; 0: the database has none that can be. */
static uint64_t cost_of(const struct pem_db_directive *directive)
{
	int64_t bytes = directive->cost_bytes;

	return bytes > 0 && bytes < BYTES_MAX ? (uint64_t)bytes : 0;
}

uint64_t page_treatment__planned(const struct pem_db_directive *directives, size_t count)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < count; i++)
		bytes += cost_of(&directives[i]);
	return bytes;
}

int page_treatment__add(struct page_treatment *t, const struct pem_db_directive *directive,
			uint64_t budget_bytes)
{
	struct plan_directive d;
	struct page_site site;

	/* The database may hold anything: what is no directive is not passed on. */
	if (page_site__read(directive->subject, &site) != strlen(directive->subject) ||
	    !*directive->subject || plan_directive__read(&d, directive->text) ||
	    (d.page_size > 4096 && d.page_size < 2u << 20))
		return -EBADMSG;
	t->planned_bytes += cost_of(directive);
	t->share += d.share;
	if (!t->sites++)
		fprintf(t->file, "%s\nbudget %" PRIu64 "\nreport %s\nagent %ld\n", PAGE_APPLY_MAGIC,
			budget_bytes, t->report, (long)getpid());
	if (d.most)
		fprintf(t->file, "part\t%" PRIu64 "\t0\t%" PRIu64 "\t%s\n", d.page_size, d.most,
			directive->subject);
	else
		fprintf(t->file, "site\t%" PRIu64 "\t0\t%s\n", d.page_size, directive->subject);
	return 0;
}

int page_treatment__apply(struct page_treatment *t, struct pem_agent *agent)
{
	const char *others = getenv("LD_PRELOAD");
	char folder[PATH_MAX], *both = NULL;
	int rc = cli_library_file("pem/" LIBRARY, folder, sizeof(folder));
	struct pem_error error;

	if (rc) {
		pem_agent__say(agent, PEM_LOG_WARNING, "%s is missing: large pages can't be given",
			       folder);
		return rc;
	}
	*strrchr(folder, '/') = '\0';
	rc = page_quote_folder(folder, sizeof(folder), &error);
	if (rc) {
		pem_agent__say(agent, PEM_LOG_WARNING, "%s", error.text);
		return rc;
	}
	if (fflush(t->file) || ferror(t->file))
		return -EIO;
	if (asprintf(&both, "%s/" LIBRARY "%s%s", folder, others && *others ? ":" : "",
		     others ? others : "") < 0)
		return -ENOMEM;
	rc = pem_agent__set_variable(agent, "LD_PRELOAD", both);
	free(both);
	return rc ? rc : pem_agent__set_variable(agent, PAGE_APPLY_VARIABLE, t->directives);
}

/* A number of bytes of a line; 0: it has none that can be. */
static uint64_t bytes_of(struct json_object *line, const char *name)
{
	struct json_object *value;
	int64_t bytes = 0;

	if (json_object_object_get_ex(line, name, &value))
		bytes = json_object_get_int64(value);
	return bytes > 0 && bytes < BYTES_MAX ? (uint64_t)bytes : 0;
}

static const char *words_of(struct json_object *line, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(line, name, &value) ? json_object_get_string(value) : NULL;
}

/* Was a line written before its process ended? */
static bool is_alive(struct json_object *line)
{
	struct json_object *value;

	return json_object_object_get_ex(line, "ended", &value) && !json_object_get_boolean(value);
}

/* The first thing that is to be said counts. */
static void say(struct page_outcome *outcome, const char *words)
{
	if (!words || !*words || *outcome->error)
		return;
	snprintf(outcome->error, sizeof(outcome->error), "%.200s", words);
	pem_printable(outcome->error);
}

/* Of a process that could not look at its end, what it was granted is all that is known. */
static uint64_t large_bytes(struct json_object *line)
{
	uint64_t large = bytes_of(line, "large_bytes"), granted = bytes_of(line, "granted_bytes");

	return is_alive(line) && granted > large ? granted : large;
}

/* Bytes that were refused for a reason that passes: words of apply/apply.h. */
static uint64_t short_bytes(struct json_object *line)
{
	static const char *const passing[] = {"budget", "supply", "limit of the control group",
					      "turn",   "kernel", "account"};
	const char *reason = words_of(line, "reason");
	size_t i;

	for (i = 0; reason && i < sizeof(passing) / sizeof(passing[0]); i++) {
		if (!strcmp(reason, passing[i]))
			return bytes_of(line, "refused_bytes");
	}
	return 0;
}

/* Of several lines of a process and a site the last counts. */
static void count_line(struct json_object *seen, struct json_object *line,
		       struct page_outcome *outcome)
{
	const char *pid = words_of(line, "pid"), *site = words_of(line, "site");
	struct json_object *before;
	char key[PAGE_SITE_TEXT + 32];

	snprintf(key, sizeof(key), "%.20s %.128s", pid ? pid : "", site ? site : "");
	if (json_object_object_get_ex(seen, key, &before)) {
		outcome->large_bytes -= large_bytes(before);
		outcome->refused_bytes -= bytes_of(before, "refused_bytes");
		outcome->short_bytes -= short_bytes(before);
	}
	if (json_object_object_length(seen) >= REPORT_SITES_MAX) {
		say(outcome, "its report names too many processes and sites");
		return;
	}
	outcome->large_bytes += large_bytes(line);
	outcome->refused_bytes += bytes_of(line, "refused_bytes");
	outcome->short_bytes += short_bytes(line);
	json_object_object_add(seen, key, json_object_get(line));
}

/* Add a line of the report: what it says is the command's processes' word, and is not trusted. */
static void take_line(struct json_object *seen, const char *text, struct page_outcome *outcome)
{
	struct json_object *line = json_tokener_parse(text);
	const char *words;

	if (json_object_is_type(line, json_type_object)) {
		words = words_of(line, "error");
		if (!words && words_of(line, "site"))
			count_line(seen, line, outcome);
		if (!words && bytes_of(line, "refused_bytes"))
			words = words_of(line, "reason");
		say(outcome, words);
	}
	json_object_put(line);
}

void page_treatment__outcome(struct page_treatment *t, struct page_outcome *outcome)
{
	struct json_object *seen = json_object_new_object();
	char line[PAGE_REPORT_LINE_MAX];
	size_t bytes = 0;
	struct stat st;

	memset(outcome, 0, sizeof(*outcome));
	if (t->lines)
		rewind(t->lines);
	while (bytes < PAGE_REPORT_BYTES_MAX && t->lines && fgets(line, sizeof(line), t->lines)) {
		take_line(seen, line, outcome);
		bytes += strlen(line) + 1;
	}
	if (t->lines && !fstat(fileno(t->lines), &st) && !st.st_nlink)
		say(outcome, "its report is gone");
	if (bytes >= PAGE_REPORT_BYTES_MAX)
		say(outcome, "its report is too long to be read");
	json_object_object_foreach(seen, key, last)
	{
		(void)key;
		outcome->killed |= is_alive(last);
	}
	json_object_put(seen);
}

bool page_treatment__is_far_less(uint64_t had_bytes, uint64_t wanted_bytes)
{
	return had_bytes < wanted_bytes / 2;
}

bool page_treatment__is_short(const struct page_treatment *t, const struct page_outcome *outcome)
{
	uint64_t wanted = outcome->large_bytes + outcome->short_bytes;

	/* What a site frees and asks for again is refused again and again. */
	if (wanted > t->planned_bytes)
		wanted = t->planned_bytes;
	return page_treatment__is_far_less(outcome->large_bytes, wanted);
}

const char *page_treatment__in_words(const char *reason)
{
	static const char *const words[][2] = {
		{"budget", "the budget has no more"},
		{"supply", "the machine has no more to give"},
		{"kernel",
		 "the kernel gave none: too few were free, or the command protected, locked "
		 "or forked that memory"},
		{"mappings", "it has more mappings than are followed"},
		{"limit of the control group", "the control group may have no more memory"},
		{"turn", "another process in the control group was being given some"},
		{"account", "the file in which they are counted can't be used"},
		{"seccomp", "the command has given up rights, and may not count them"},
		{"signal", "a handler of a signal asked for them"}};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(words[i][0], reason))
			return words[i][1];
	}
	return reason;
}

/* The folder is this run's alone: the library and the observer make files there, too. */
static void remove_files(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
}

void page_treatment__end(struct page_treatment *t)
{
	if (t->file)
		fclose(t->file);
	if (t->lines)
		fclose(t->lines);
	t->file = t->lines = NULL;
	if (!*t->folder)
		return;
	remove_files(t->folder);
	rmdir(t->folder);
	*t->folder = '\0';
}
