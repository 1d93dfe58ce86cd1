/* SPDX-License-Identifier: MIT */
/* ways.h - what the ways of giving a value share: the struct of a way, the journal, texts of files
 */
#ifndef PEM_SETTINGS_WAYS_H
#define PEM_SETTINGS_WAYS_H

#include "settings.h"

#include <stdbool.h>
#include <sys/stat.h>

#define SETTINGS_VALUE_BYTES 4096u
#define SETTINGS_FILE_BYTES (16u << 20)

/* A setting, or a whole, that was changed. */
struct settings_change {
	int way;
	char *key, *in;
	char *first; /* NULL: it had no value; of a file, where in the folder its content is */
	int64_t written[2]; /* hashes of what was written to a file last, and before that */
};

/* One way. A session is one file, database or server, for one call of settings_agent__apply. */
struct settings_way_of {
	enum settings_phase phase;
	/* set builds a new whole from first values, so it gets all values; the journal has the
	 * whole. */
	bool whole;
	/* in: PATH_MAX bytes. It becomes what the journal calls the file, database or server. */
	int (*open)(struct settings_agent *agent, char *in, void **session,
		    struct pem_error *error);
	/* value: SETTINGS_VALUE_BYTES. -ENOENT: there is no such setting. */
	int (*get)(void *session, const char *key, char *value, struct pem_error *error);
	/* For the journal, if it is not what get reads. Returns 1: the setting has none. NULL: get.
	 */
	int (*first)(void *session, const char *key, char *value, struct pem_error *error);
	/* value NULL: as if it was never set. Returns 1: refused, and error says why. */
	int (*set)(void *session, const char *key, const char *value, struct pem_error *error);
	int (*commit)(void *session, struct pem_error *error); /* NULL: set is enough */
	/* Does a value mean the same as the one that get read last? NULL: the texts are equal. */
	bool (*same)(void *session, const char *key, const char *given, const char *taken);
	void (*close)(void *session);
	/* NULL: set to the first value. */
	int (*restore)(struct settings_agent *agent, const struct settings_change *change,
		       struct pem_error *error);
};

extern const struct settings_way_of settings_file, settings_pragma, settings_redis, settings_sysctl,
	settings_cgroup, settings_program;
/* Its address is NULL if pem was built without libpq; settings_tree__find's, without libyaml. */
extern const struct settings_way_of settings_postgres __attribute__((weak));

/* Fill error, which may be NULL, and return code. */
int settings_fail(struct pem_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Copy a value without white space at its ends. -EMSGSIZE with error: it is longer than a value
 * can be.
 */
int settings_take(char *value, const char *text, size_t bytes, struct pem_error *error);

/* A unit of a system's documentation. A table ends with a name of NULL. */
struct settings_unit {
	const char *name;
	double factor;
};
/* Read "64", "64 MB". False: it is not a number with one of these units, or without. */
bool settings_number(const char *text, const struct settings_unit *units, double *number);

/* --- journal.c --- */

struct settings_agent {
	int folder; /* locked */
	char *path;
	struct settings_change *changes;
	size_t count, capacity;
	char *cgroup;
};

/* Open the folder and read its journal. */
int settings_journal__open(struct settings_agent *agent, const char *folder,
			   struct pem_error *error);
struct settings_change *settings_journal__find(const struct settings_agent *agent,
					       enum settings_way way, const char *key,
					       const char *in);
/* Write a change that is about to be made to the disk. first may be NULL. */
int settings_journal__add(struct settings_agent *agent, enum settings_way way, const char *key,
			  const char *in, const char *first, struct pem_error *error);
/* Write the list to the disk. */
int settings_journal__save(struct settings_agent *agent, struct pem_error *error);
void settings_change__free(struct settings_change *change);

/* A text file, with a zero after it. */
struct settings_content {
	char *text;
	size_t bytes;
	struct stat stat;
};
/*
 * Read a regular file that is not too large. -ENOENT, -EFBIG, -EINVAL with error: it is something
 * else, or not text. Absolute path; -ELOOP: it is a symbolic link, or leads through one.
 */
int settings_content__read(struct settings_content *content, const char *path,
			   struct pem_error *error);
int64_t settings_content__hash(const struct settings_content *content);
/*
 * Replace a file, or make it, by renaming: on the disk when this returns. path: absolute, without
 * symbolic links. like: a file whose owner, mode and attributes it gets; dated: and its times.
 */
int settings_content__write(const struct settings_content *content, const char *path,
			    const char *like, bool dated, struct pem_error *error);

/* --- lines.c and tree.c: where a value is in a text. They need no file. --- */

struct settings_spot {
	unsigned found; /* how often the key is there; 0: value and positions are not valid */
	unsigned line, second_line; /* of the first two */
	size_t at, end; /* bytes of the value, with its quotes */
	char quote; /* around the value, or 0 */
	char value[SETTINGS_VALUE_BYTES]; /* without quotes */
	bool exact; /* the key is a whole path */
	/* If nothing was found: where it can be appended. */
	bool appends;
	size_t append_at;
	const char *append_key; /* the last part of the key */
	char between; /* keys and values: '=' or ' ' */
};

/* A value was found at a path: does the key mean it? Then the spot is the caller's to fill. */
bool settings_spot__takes(struct settings_spot *spot, const char *path, const char *key,
			  unsigned line);
/* -EBADMSG with error: the text can't be understood. */
int settings_lines__find(struct settings_spot *spot, const char *text, size_t bytes,
			 const char *key, struct pem_error *error);
int settings_tree__find(struct settings_spot *spot, const char *text, size_t bytes, const char *key,
			struct pem_error *error) __attribute__((weak));

#endif
