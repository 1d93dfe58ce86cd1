/* SPDX-License-Identifier: MIT */
/*
 * backend.h - what a backend is, and where its files go
 *
 * A backend turns a checked set of specs into files. To add one: write NAME.c, which defines
 * const struct pem_backend pem_backend_NAME, and list it in backends.c.
 */
#ifndef PEM_CODEGEN_BACKEND_H
#define PEM_CODEGEN_BACKEND_H

#include "model.h"

struct pem_output;

struct pem_backend {
	const char *name; /* what follows --backend */
	const char *description; /* one line for --help */
	/* Write all files. Output must depend on the set alone: no dates, no paths. */
	void (*emit)(const struct pem_spec_set *set, struct pem_output *out);
};

/* All of them, NULL at the end. */
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

/*
 * Start a file: what is printed to the stream is kept in memory until all backends are done. name
 * is relative to the output folder, and may have folders of its own. The stream belongs to the
 * output and stays open; a backend may write to several in turn.
 */
FILE *pem_output__file(struct pem_output *out, const char *name);

struct pem_output *pem_output__new(void);
/* The name of file i of the output, in the order of pem_output__file, or NULL. */
const char *pem_output__name(const struct pem_output *out, size_t i);
/*
 * Write the files whose content differs from what is there, each through a temporary file and
 * rename. 0, or -errno of the first that failed, after a sentence to errors.
 */
int pem_output__commit(struct pem_output *out, const char *directory, FILE *errors);
void pem_output__free(struct pem_output *out);

/*
 * A banner as C comment: which specs the file is made from, and their hashes. spec NULL: all of the
 * set's.
 */
void pem_banner(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec);
/* Text as the inside of a C string literal, valid in every C and C++, of bytes only. */
void pem_put_c_escaped(FILE *f, const char *text);
/* PROVIDER.h, as backend c writes it (c.c). */
void pem_put_c_header(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec);

/*
 * The event that ends the interval which begin starts, for languages that can tie both to a block:
 * both are the only stub events of their provider that begin and end in this group and scope, and
 * fields of one name have one type. NULL: there is none, or begin is no 'interval-begin'
 * (interval.c).
 */
const struct pem_spec_event *pem_interval__end(const struct pem_spec_event *begin);
/*
 * The interval's name: begin's c_name, without "_begin" where that stays unique. The caller frees
 * it.
 */
char *pem_interval__name(const struct pem_spec_event *begin);
/* The field that is called so in programs, or NULL. */
const struct pem_spec_field *pem_spec_event__field(const struct pem_spec_event *event,
						   const char *c_name);

/* An event's CTF declaration: lines ended by \n (ctf.c). */
void pem_put_tsdl(FILE *f, const struct pem_spec_event *event);
/* An event's and its fields' lines of a model text, without the "pem-model" line (model.c). */
void pem_put_model(FILE *f, const struct pem_spec_event *event);
/*
 * The model text of some specs as lines of C string literals; stubs_only: without events of other
 * sources.
 */
void pem_put_model_literal(FILE *f, const struct pem_spec *const *specs, size_t count,
			   int stubs_only);

#endif
