/* SPDX-License-Identifier: MIT */
/*
 * files.c - settings in configuration files
 *
 * A file's content is always its first content with the values of one configuration. The first
 * content is kept in the agent's folder, and the journal has hashes of what was written: a file
 * with another content was changed by somebody else.
 */
#include "ways.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct file {
	struct settings_agent *agent;
	const char *path; /* the group's */
	struct settings_content first, now;
	bool is_tree, is_json;
};

static void close_file(void *session)
{
	struct file *file = session;

	free(file->first.text);
	free(file->now.text);
	free(file);
}

static bool same_content(const struct settings_content *a, const struct settings_content *b)
{
	return a->bytes == b->bytes && !memcmp(a->text, b->text, a->bytes);
}

/* Is this a content that the file had before the exploration, or by it? */
static bool is_known(const struct settings_change *change, const struct settings_content *now,
		     const struct settings_content *first)
{
	int64_t hash = settings_content__hash(now);

	return hash == settings_content__hash(first) || hash == change->written[0] ||
	       hash == change->written[1];
}

static int read_first(const struct settings_agent *agent, const struct settings_change *change,
		      struct settings_content *first, struct pem_error *error)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%.30s", agent->path, change->first);
	return settings_content__read(first, path, error);
}

static int open_file(struct settings_agent *agent, char *in, void **session,
		     struct pem_error *error)
{
	const struct settings_change *change;
	struct file *file = calloc(1, sizeof(*file));
	char path[PATH_MAX], *dot;
	int rc;

	if (!file)
		return -ENOMEM;
	*file = (struct file){.agent = agent, .path = in};
	if (!realpath(in, path))
		rc = settings_fail(error, -errno, "%s can't be read: %m", in);
	else
		rc = settings_content__read(&file->now, strcpy(in, path), error);
	change = settings_journal__find(agent, SETTINGS_FILE, "", in);
	if (!rc && change)
		rc = read_first(agent, change, &file->first, error);
	else if (!rc)
		rc = settings_content__read(&file->first, in, error);
	if (!rc && change && !is_known(change, &file->now, &file->first))
		rc = settings_fail(error, -ESTALE,
				   "%s was changed by another program; its first content is %s/%s",
				   in, agent->path, change->first);
	if (!rc && file->now.stat.st_nlink > 1)
		rc = settings_fail(error, -EMLINK,
				   "%s has %lu names, which replacing it would part", in,
				   (unsigned long)file->now.stat.st_nlink);
	if (!rc && access(in, W_OK))
		rc = settings_fail(error, -errno, "%s can't be written: %m", in);
	dot = strrchr(in, '.');
	file->is_json = dot && !strcmp(dot, ".json");
	file->is_tree = file->is_json || (dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml")));
	if (!rc && file->is_tree && !settings_tree__find)
		rc = settings_fail(error, -ENOTSUP, "%s: pem was built without libyaml", in);
	if (rc) {
		close_file(file);
		return rc;
	}
	*session = file;
	return 0;
}

static int find(const struct file *file, struct settings_spot *spot,
		const struct settings_content *content, const char *key, struct pem_error *error)
{
	struct pem_error why;
	int rc = (file->is_tree ? settings_tree__find : settings_lines__find)(
		spot, content->text, content->bytes, key, &why);

	if (rc)
		return settings_fail(error, rc, "%s: %s", file->path, why.text);
	if (spot->found > 1)
		return settings_fail(error, -EINVAL,
				     "%s has '%s' in lines %u and %u: name one by its whole path",
				     file->path, key, spot->line, spot->second_line);
	if (!spot->found && !spot->appends)
		return settings_fail(error, -ENOENT, "%s has no '%s': add it with any value",
				     file->path, key);
	return 0;
}

static int get(void *session, const char *key, char *value, struct pem_error *error)
{
	struct file *file = session;
	struct settings_content content;
	struct settings_spot spot;
	int rc = settings_content__read(&content, file->path, error);

	if (!rc)
		rc = find(file, &spot, &content, key, error);
	if (!rc)
		strcpy(value, spot.found ? spot.value : "");
	free(content.text);
	return rc;
}

/* Is a value one that a tree can have without quotes? */
static bool is_plain(const struct file *file, const char *value)
{
	char *end;

	if (!file->is_json)
		return *value && !value[strspn(value, "abcdefghijklmnopqrstuvwxyz_./+-0123456789"
						      "ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
	if (!strcmp(value, "true") || !strcmp(value, "false") || !strcmp(value, "null"))
		return true;
	strtod(value, &end);
	return isdigit((unsigned char)value[*value == '-']) && !*end &&
	       !value[strspn(value, "0123456789+-.eE")];
}

/* A value as it is written at a spot. */
static void encode(const struct file *file, const struct settings_spot *spot, const char *value,
		   FILE *out)
{
	char quote = spot->quote;

	if (file->is_tree && (quote || !is_plain(file, value)))
		quote = '"';
	if (!file->is_tree && !*value && spot->between == ' ')
		quote = '"'; /* or else the key would have no value */
	if (quote)
		fputc(quote, out);
	for (; *value; value++) {
		if (file->is_tree && quote && (*value == '"' || *value == '\\'))
			fputc('\\', out);
		if (file->is_tree && (unsigned char)*value < ' ')
			fprintf(out, "\\u%04x", *value);
		else
			fputc(*value, out);
	}
	if (quote)
		fputc(quote, out);
}

static int set(void *session, const char *key, const char *value, struct pem_error *error)
{
	struct file *file = session;
	struct settings_content next = {0};
	struct settings_spot *spot = calloc(1, sizeof(*spot));
	FILE *out = open_memstream(&next.text, &next.bytes);
	size_t at, end;
	int rc = spot && out ? find(file, spot, &file->first, key, error) : -ENOMEM;

	if (!rc) {
		const char *text = file->first.text;

		at = spot->found ? spot->at : spot->append_at;
		end = spot->found ? spot->end : at;
		fwrite(text, 1, at, out);
		if (!spot->found)
			fprintf(out, "%s%s%s", at && text[at - 1] != '\n' ? "\n" : "",
				spot->append_key, spot->between == '=' ? " = " : " ");
		else if (at == end && at && !isspace((unsigned char)text[at - 1]))
			fputs(text[at - 1] == '=' ? "" : " ", out);
		encode(file, spot, value, out);
		if (!spot->found)
			fputc('\n', out);
		fwrite(text + end, 1, file->first.bytes - end, out);
	}
	if (out && fclose(out) && !rc)
		rc = -ENOMEM;
	/* Is it there, and nothing else? A value that ends its line would make two settings of one.
	 */
	if (!rc && (strpbrk(value, "\r\n") || find(file, spot, &next, key, NULL) || !spot->found ||
		    strcmp(spot->value, value)))
		rc = settings_fail(error, 1, "it can't be written as one value");
	if (!rc) {
		free(file->first.text);
		file->first.text = next.text;
		file->first.bytes = next.bytes;
		next.text = NULL;
	}
	free(next.text);
	free(spot);
	return rc;
}

/* first has become the content of the configuration. */
static int commit(void *session, struct pem_error *error)
{
	struct file *file = session;
	struct settings_agent *agent = file->agent;
	struct settings_change *change;
	struct settings_content path_text = {.text = (char *)file->path,
					     .bytes = strlen(file->path)};
	char name[32], path[PATH_MAX + 32];
	int rc = 0;

	if (same_content(&file->now, &file->first))
		return 0;
	change = settings_journal__find(agent, SETTINGS_FILE, "", file->path);
	if (!change) {
		snprintf(name, sizeof(name), "first-%016llx",
			 (unsigned long long)settings_content__hash(&path_text));
		snprintf(path, sizeof(path), "%s/%s", agent->path, name);
		rc = settings_content__write(&file->now, path, file->path, true, error);
		if (!rc)
			rc = settings_journal__add(agent, SETTINGS_FILE, "", file->path, name,
						   error);
		if (rc)
			return rc;
		change = settings_journal__find(agent, SETTINGS_FILE, "", file->path);
	}
	change->written[1] = change->written[0];
	change->written[0] = settings_content__hash(&file->first);
	rc = settings_journal__save(agent, error);
	if (!rc)
		rc = settings_content__write(&file->first, file->path, file->path, false, error);
	return rc;
}

static int restore(struct settings_agent *agent, const struct settings_change *change,
		   struct pem_error *error)
{
	struct settings_content first, now = {0};
	char path[PATH_MAX + 32], kept[64];
	int rc = read_first(agent, change, &first, error);

	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/%.30s", agent->path, change->first);
	rc = settings_content__read(&now, change->in, error);
	if (rc == -ENOENT || (!rc && is_known(change, &now, &first))) {
		rc = settings_content__write(&first, change->in, path, true, error);
		/* It may be the first file still, in a folder that can't be written. */
		if (rc && now.text && same_content(&now, &first) &&
		    !memcmp(&now.stat.st_mtim, &first.stat.st_mtim, sizeof(now.stat.st_mtim)))
			rc = 0;
	} else {
		snprintf(kept, sizeof(kept), "kept-%.30s-%lld", change->first,
			 (long long)time(NULL));
		if (renameat(agent->folder, change->first, agent->folder, kept))
			rc = -errno;
		else
			rc = settings_fail(error, -ESTALE,
					   "%s was changed by another program and stays as it is; "
					   "its first content is %s/%s",
					   change->in, agent->path, kept);
	}
	free(first.text);
	free(now.text);
	return rc;
}

const struct settings_way_of settings_file = {
	.phase = SETTINGS_BEFORE_START,
	.whole = true,
	.open = open_file,
	.get = get,
	.set = set,
	.commit = commit,
	.close = close_file,
	.restore = restore,
};
