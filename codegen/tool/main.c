/* SPDX-License-Identifier: MIT */
/* main.c - pem-codegen: makes files from event specs */
#include "backends/backend.h"
#include "catalogue.h"
#include "compare.h"
#include "hardware/hardware.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

enum mode { GENERATE, CHECK, MODELS, HARDWARE };

/* A backend to run, and its output folder. */
struct job {
	const struct pem_backend *backend;
	const char *directory;
};

struct arguments {
	struct job *jobs;
	int job_count;
	const char *directory; /* of jobs that have no folder of their own */
	enum mode mode;
	int part, strict, json, summary, names;
	char **files;
	int file_count;
	char **old_files; /* --against */
	int old_count;
};

static void print_help(void)
{
	size_t i;

	printf("pem-codegen turns event specs (XML) into the code that raises and reads their "
	       "events.\n\n"
	       "  pem-codegen --backend NAME -o DIR [--backend NAME -o DIR]... [--names] "
	       "FILE.xml...\n"
	       "  pem-codegen --check [--against OLD.xml]... [--part] [--strict] [--json] "
	       "[--summary] FILE.xml...\n"
	       "  pem-codegen --models FILE.xml...\n"
	       "  pem-codegen --hardware FILE.xml\n"
	       "  pem-codegen --backends\n\n"
	       "  --names      print the providers, their events with stubs, and the files "
	       "written\n"
	       "  --check      report mistakes, write nothing\n"
	       "  --against    also report what changed incompatibly since OLD.xml\n"
	       "  --part       what OLD.xml has of providers that FILE.xml lacks is no mistake\n"
	       "  --strict     warnings are errors\n"
	       "  --json       report as a JSON array\n"
	       "  --summary    end with how many mistakes there are\n"
	       "  --models     print a model of each file, as PEMAPI takes it to know the events\n"
	       "  --hardware   print what a simulated machine is, in binary (pem/hardware.h)\n"
	       "  --backends   print the backends' names\n\n"
	       "Backends:\n");
	for (i = 0; pem_backends[i]; i++)
		printf("  %-10s %s\n", pem_backends[i]->name, pem_backends[i]->description);
	printf("\nA first spec, shop.xml:\n\n"
	       "  <spec provider='shop' description='What the shop does'>\n"
	       "    <event name='APP::Shop::Sale' description='a customer paid'>\n"
	       "      <layerId value='APP'/><classId value='Shop'/><specifier value='Sale'/>\n"
	       "      <fields>\n"
	       "        <field name='cents' type='uint64' unit='cents' description='price paid'/>\n"
	       "        <field name='item' type='string' max='32' description='what was sold'/>\n"
	       "      </fields>\n"
	       "    </event>\n"
	       "  </spec>\n\n"
	       "  $ pem-codegen --backend c -o . shop.xml     writes ./shop.h\n\n"
	       "  #include \"shop.h\"\n"
	       "  ... pem_notify_shop_sale(1250, \"tea\");     costs next to nothing until "
	       "recorded\n\n"
	       "  $ cc -O2 myshop.c -o myshop -ldl && pem record -- ./myshop\n\n"
	       "Files whose content would not change are left alone. All mistakes are reported in "
	       "one "
	       "run, as\n"
	       "FILE:LINE:COLUMN: error: WHAT; then nothing is written and the exit status is 1. "
	       "It "
	       "is 3 when a\n"
	       "file can't be written. What only deserves a warning is reported by --check and "
	       "does "
	       "not change\n"
	       "the status, unless --strict. The language: docs/spec-language.md.\n");
}

static const struct pem_backend *find_backend(const char *name)
{
	char *known = NULL;
	size_t bytes, i;
	FILE *f;

	for (i = 0; pem_backends[i]; i++) {
		if (!strcmp(pem_backends[i]->name, name))
			return pem_backends[i];
	}
	f = open_memstream(&known, &bytes);
	for (i = 0; f && pem_backends[i]; i++)
		fprintf(f, "%s'%s'", i ? ", " : "", pem_backends[i]->name);
	if (f && !fclose(f))
		pem_complain(stderr, "there is no backend '%s': expected one of %s", name, known);
	free(known);
	return NULL;
}

static void print_backends(void)
{
	size_t i;

	for (i = 0; pem_backends[i]; i++)
		printf("%s\n", pem_backends[i]->name);
}

/* The word after option argv[*i]. NULL after an error message. */
static const char *value_of(int argc, char **argv, int *i)
{
	if (*i + 1 < argc)
		return argv[++*i];
	pem_complain(stderr, "'%s' is the last word: expected a value after it", argv[*i]);
	return NULL;
}

/* Handle an option without value. Returns 0 if the word is another one. */
static int parse_flag(struct arguments *a, const char *word)
{
	if (!strcmp(word, "--check"))
		a->mode = CHECK;
	else if (!strcmp(word, "--models"))
		a->mode = MODELS;
	else if (!strcmp(word, "--hardware"))
		a->mode = HARDWARE;
	else if (!strcmp(word, "--part"))
		a->part = 1;
	else if (!strcmp(word, "--strict"))
		a->strict = 1;
	else if (!strcmp(word, "--json"))
		a->json = 1;
	else if (!strcmp(word, "--summary"))
		a->summary = 1;
	else if (!strcmp(word, "--names"))
		a->names = 1;
	else
		return 0;
	return 1;
}

/* A folder is for the backends named before it that have no folder yet. */
static void set_directory(struct arguments *a, const char *directory)
{
	int i;

	a->directory = directory;
	for (i = 0; i < a->job_count; i++) {
		if (!a->jobs[i].directory)
			a->jobs[i].directory = directory;
	}
}

/* Handle an option with a value. Returns 1, or -1 after an error message. */
static int parse_valued(struct arguments *a, int argc, char **argv, int *i)
{
	const char *word = argv[*i], *value;

	if (strcmp(word, "--backend") && strcmp(word, "-o") && strcmp(word, "--against")) {
		pem_complain(stderr,
			     "there is no option '%s': expected --backend, -o, "
			     "--check, "
			     "--models or --help",
			     word);
		return -1;
	}
	value = value_of(argc, argv, i);
	if (!value)
		return -1;
	if (!strcmp(word, "-o")) {
		set_directory(a, value);
	} else if (!strcmp(word, "--against")) {
		a->old_files[a->old_count++] = argv[*i];
	} else {
		a->jobs[a->job_count].backend = find_backend(value);
		if (!a->jobs[a->job_count++].backend)
			return -1;
	}
	return 1;
}

/* Returns 1: go on; 0: done; -1: an error, reported. */
static int parse_arguments(struct arguments *a, int argc, char **argv)
{
	int i, words = 0, r;

	a->files = argv + 1; /* file names are moved to the front, never past the word being read */
	a->old_files = pem_xrealloc(NULL, (size_t)argc + 1, sizeof(*a->old_files));
	a->jobs = pem_xrealloc(NULL, (size_t)argc + 1, sizeof(*a->jobs));
	memset(a->jobs, 0, ((size_t)argc + 1) * sizeof(*a->jobs));
	for (i = 1; i < argc; i++) {
		if (words || argv[i][0] != '-' || !argv[i][1]) {
			a->files[a->file_count++] = argv[i];
		} else if (!strcmp(argv[i], "--")) {
			words = 1;
		} else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			print_help();
			return 0;
		} else if (!strcmp(argv[i], "--backends")) {
			print_backends();
			return 0;
		} else if (!parse_flag(a, argv[i])) {
			r = parse_valued(a, argc, argv, &i);
			if (r < 0)
				return r;
		}
	}
	return 1;
}

static int is_complete(const struct arguments *a)
{
	if (!a->file_count)
		pem_complain(stderr, "no spec was named: expected one or more FILE.xml");
	else if (a->mode == GENERATE && !a->job_count)
		pem_complain(stderr, "no backend was named: expected --backend NAME, "
				     "see --help");
	else if (a->mode == GENERATE && (!a->directory || !a->directory[0]))
		pem_complain(stderr, "no output folder was named: expected -o DIR");
	else if (a->mode == HARDWARE && a->file_count != 1)
		pem_complain(stderr, "--hardware reads one FILE.xml");
	else if (a->mode != CHECK && (a->old_count || a->strict || a->json || a->summary))
		pem_complain(stderr, "--against, --strict, --json and --summary go "
				     "with --check");
	else
		return 1;
	return 0;
}

/* The statuses of pem, which runs this program. */
enum { DONE, WRONG_INPUT, NOT_WRITTEN = 3 };

static void load(struct pem_spec_set *set, char **files, int count)
{
	int i;

	for (i = 0; i < count; i++)
		pem_spec_set__load(set, files[i]);
	pem_spec_set__resolve(set);
	pem_spec_set__check(set);
	pem_spec_set__layout(set);
	if (!set->is_part)
		pem_spec_set__compare_catalogue(set);
}

static int is_sound(const struct pem_spec_set *set)
{
	return set->error_count == set->warning_count;
}

static int generate(const struct arguments *a)
{
	struct pem_output **out = pem_xrealloc(NULL, (size_t)a->job_count, sizeof(*out));
	struct pem_spec_set set = {0};
	int status, i, count = 0;

	load(&set, a->files, a->file_count);
	pem_spec_set__print_errors(&set, 0, stderr);
	status = is_sound(&set) ? DONE : WRONG_INPUT;
	for (; status == DONE && count < a->job_count; count++) {
		out[count] = pem_output__new();
		a->jobs[count].backend->emit(&set, out[count]);
	}
	for (i = 0; i < count && status == DONE; i++) {
		const char *own = a->jobs[i].directory;

		if (pem_output__commit(out[i], own ? own : a->directory, stderr))
			status = NOT_WRITTEN;
		else if (a->names)
			pem_print_names(&set, out[i], stdout);
	}
	for (i = 0; i < count; i++)
		pem_output__free(out[i]);
	free(out);
	pem_spec_set__free(&set);
	return status;
}

static int check(const struct arguments *a)
{
	struct pem_spec_set set = {0}, old = {.is_part = 1};
	int status;

	load(&set, a->files, a->file_count);
	load(&old, a->old_files, a->old_count);
	if (!is_sound(&old)) {
		pem_spec_set__print_errors(&old, 0, stderr);
		pem_complain(stderr, "what --against names is wrong itself: expected a "
				     "spec that was in use");
		status = WRONG_INPUT;
	} else {
		if (a->old_count && is_sound(&set))
			pem_spec_set__compare(&set, &old, !a->part);
		status = !is_sound(&set) || (a->strict && set.warning_count) ? WRONG_INPUT : DONE;
		if (a->json)
			pem_print_json(&set, stdout);
		else
			pem_spec_set__print_errors(&set, 1, stderr);
		if (a->summary)
			pem_print_summary(&set, a->json ? stderr : stdout);
	}
	pem_spec_set__free(&set);
	pem_spec_set__free(&old);
	return status;
}

/*
 * Handle each file by itself. A file that is wrong, or that contradicts another one, does not
 * affect the others.
 */
static int print_models(const struct arguments *a)
{
	struct pem_spec_set set = {0};
	int i, status = DONE;

	for (i = 0; i < a->file_count; i++) {
		set.is_part = 1;
		load(&set, &a->files[i], 1);
		pem_spec_set__print_errors(&set, 0, stderr);
		if (is_sound(&set))
			pem_print_model(&set, stdout);
		else
			status = WRONG_INPUT;
		pem_spec_set__free(&set);
	}
	return status;
}

static int print_hardware(const struct arguments *a)
{
	struct pem_spec_set set = {0};
	struct pem_hardware hardware;
	int status = WRONG_INPUT;

	pem_hardware__read(&set, a->files[0], &hardware);
	pem_spec_set__print_errors(&set, 0, stderr);
	if (is_sound(&set))
		status = fwrite(&hardware, sizeof(hardware), 1, stdout) == 1 ? DONE : NOT_WRITTEN;
	pem_spec_set__free(&set);
	return status;
}

static int run(const struct arguments *a)
{
	switch (a->mode) {
	case HARDWARE:
		return print_hardware(a);
	case CHECK:
		return check(a);
	case MODELS:
		return print_models(a);
	default:
		return generate(a);
	}
}

int main(int argc, char **argv)
{
	struct arguments a = {0};
	int r = parse_arguments(&a, argc, argv), status = r < 0 ? WRONG_INPUT : DONE;

	if (r > 0)
		status = is_complete(&a) ? run(&a) : WRONG_INPUT;
	free(a.old_files);
	free(a.jobs);
	pem_spec_set__cleanup();
	pem_catalogue__cleanup();
	if (fflush(stdout) && status == DONE)
		status = NOT_WRITTEN;
	return status;
}
