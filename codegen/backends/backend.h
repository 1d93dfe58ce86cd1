/* SPDX-License-Identifier: MIT */
/*
 * backend.h - what a backend is, and where its files go
 *
 * A backend turns a checked set of specs into files. To add a backend, write NAME.c, which defines
 * const struct pem_backend pem_backend_NAME, and list it in backends.c.
 */
#ifndef PEM_CODEGEN_BACKEND_H
#define PEM_CODEGEN_BACKEND_H

#include "model.h"

struct pem_output;

struct pem_backend {
	const char *name; /* the value of --backend */
	const char *description; /* one line for --help */
	/* Write all files. Output must depend on the set alone: it has no dates and no paths. */
	void (*emit)(const struct pem_spec_set *set, struct pem_output *out);
};

/* All backends, with NULL at the end. */
extern const struct pem_backend *const pem_backends[];
extern const struct pem_backend pem_backend_c;
extern const struct pem_backend pem_backend_model;
extern const struct pem_backend pem_backend_ctf;
extern const struct pem_backend pem_backend_bpf;
extern const struct pem_backend pem_backend_java;
extern const struct pem_backend pem_backend_python;
extern const struct pem_backend pem_backend_cxx;
extern const struct pem_backend pem_backend_fortran;
extern const struct pem_backend pem_backend_rust;
extern const struct pem_backend pem_backend_kmod;
extern const struct pem_backend pem_backend_man;
extern const struct pem_backend pem_backend_html;
extern const struct pem_backend pem_backend_lttng;
extern const struct pem_backend pem_backend_none;
extern const struct pem_backend pem_backend_usdt;
extern const struct pem_backend pem_backend_agent;

/*
 * Start a file. Text printed to the stream stays in memory until all backends are done. name is
 * relative to the output folder and may have folders. The output owns the stream, which stays open.
 * A backend may write to several files in turn.
 */
FILE *pem_output__file(struct pem_output *out, const char *name);

/* As pem_output__file, of a file for people to edit: one that is there already is left as it is. */
FILE *pem_output__starter(struct pem_output *out, const char *name);

struct pem_output *pem_output__new(void);
/* The name of file i of the output, in the order of pem_output__file calls, or NULL. */
const char *pem_output__name(const struct pem_output *out, size_t i);
/*
 * Write the files whose content differs from the existing file. Each is written to a temporary file
 * and renamed. Returns 0, or the -errno of the first failure after printing a sentence to errors.
 */
int pem_output__commit(struct pem_output *out, const char *directory, FILE *errors);
void pem_output__free(struct pem_output *out);

/*
 * Print a banner as C comment: the specs that the file is made from, and their hashes. spec NULL:
 * all specs of the set.
 */
void pem_banner(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec);
/* Print text as the inside of a C string literal, made of bytes, that every C and C++ accepts. */
void pem_put_c_escaped(FILE *f, const char *text);
/* Print PROVIDER.h as backend c writes it (c.c). */
void pem_put_c_header(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec);

/*
 * Find the event that ends the interval which begin starts, for languages that can tie both to a
 * block. Both must be the only stub events of their provider that begin and end in this group and
 * scope. Fields of one name must have one type. NULL: there is no such event, or begin is not an
 * 'interval-begin' (interval.c).
 */
const struct pem_spec_event *pem_interval__end(const struct pem_spec_event *begin);
/*
 * The interval's name: begin's c_name, without "_begin" if that stays unique. The caller frees it.
 */
char *pem_interval__name(const struct pem_spec_event *begin);
/* Find the field that programs call by this name, or NULL. */
const struct pem_spec_field *pem_spec_event__field(const struct pem_spec_event *event,
						   const char *c_name);

/* Print an event's CTF declaration as lines ended by \n (ctf.c). */
void pem_put_tsdl(FILE *f, const struct pem_spec_event *event);
/*
 * Print the lines of an event and its fields in a model text, without the "pem-model" line
 * (model.c).
 */
void pem_put_model(FILE *f, const struct pem_spec_event *event);
/* Print the lines of a spec's metrics, which stand behind all events of a model text. */
void pem_put_metrics(FILE *f, const struct pem_spec *spec);
/*
 * Print the model text of some specs as lines of C string literals. stubs_only: leave out events of
 * other sources.
 */
void pem_put_model_literal(FILE *f, const struct pem_spec *const *specs, size_t count,
			   int stubs_only);
/* Return the hash of that text, of a provider's own events: shared/model_hash.h. */
uint32_t pem_model_text_hash(const struct pem_spec *spec);

#endif
