/* SPDX-License-Identifier: MIT */
/*
 * main.c - pem-codegen: event specs to generated files
 */
#include "backend.h"

#include <stdlib.h>
#include <string.h>

static const struct pem_backend *const backends[] = {
	&pem_backend_c,
	&pem_backend_model,
	&pem_backend_ctf,
	&pem_backend_bpf,
	&pem_backend_cxx,
	&pem_backend_fortran,
	&pem_backend_java,
	&pem_backend_python,
	&pem_backend_rust,
	&pem_backend_kmod,
	&pem_backend_man,
	&pem_backend_html,
	&pem_backend_usdt,
	&pem_backend_lttng,
	&pem_backend_none,
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct arguments {
	const struct pem_backend *backend;
	const char *directory;
	int check; /* look for errors, write nothing */
	char **files;
	int file_count;
};

static void print_help(void)
{
	size_t i;

	printf("pem-codegen turns event specs (XML) into the code that raises and reads their "
	       "events.\n\n"
	       "  pem-codegen --backend NAME -o DIR FILE.xml...\n"
	       "  pem-codegen --check FILE.xml...      report errors, write nothing\n\n"
	       "Backends:\n");
	for (i = 0; i < COUNT(backends); i++)
		printf("  %-9s %s\n", backends[i]->name, backends[i]->description);
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
	       "  $ cc -O2 myshop.c -o myshop && pem record -- ./myshop\n\n"
	       "Files whose content would not change are left alone. All errors are reported in "
	       "one run, as\n"
	       "FILE:LINE: error: WHAT; then nothing is written and the exit status is 1. It is 3 "
	       "when a\nfile can't be written.\n"
	       "The language: docs/spec-language.md.\n");
}

static const struct pem_backend *find_backend(const char *name)
{
	size_t i;

	for (i = 0; i < COUNT(backends); i++) {
		if (!strcmp(backends[i]->name, name))
			return backends[i];
	}
	fprintf(stderr, "pem-codegen: error: there is no backend '%s': expected one of", name);
	for (i = 0; i < COUNT(backends); i++)
		fprintf(stderr, "%s '%s'", i ? "," : "", backends[i]->name);
	fprintf(stderr, "\n");
	return NULL;
}

/* The word after option argv[*i], or NULL after a sentence. */
static const char *value_of(int argc, char **argv, int *i)
{
	if (*i + 1 < argc)
		return argv[++*i];
	fprintf(stderr, "pem-codegen: error: '%s' is the last word: expected a value after it\n",
		argv[*i]);
	return NULL;
}

/* 1: go on; 0: done; -1: wrong. */
static int parse_arguments(struct arguments *a, int argc, char **argv)
{
	const char *value;
	int i, words = 0;

	a->files = argv + 1; /* files are moved to the front; never past the word being read */
	for (i = 1; i < argc; i++) {
		if (words || argv[i][0] != '-' || !argv[i][1]) {
			a->files[a->file_count++] = argv[i];
		} else if (!strcmp(argv[i], "--")) {
			words = 1;
		} else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			print_help();
			return 0;
		} else if (!strcmp(argv[i], "--check")) {
			a->check = 1;
		} else if (!strcmp(argv[i], "--backend")) {
			value = value_of(argc, argv, &i);
			a->backend = value ? find_backend(value) : NULL;
			if (!a->backend)
				return -1;
		} else if (!strcmp(argv[i], "-o")) {
			a->directory = value_of(argc, argv, &i);
			if (!a->directory)
				return -1;
		} else {
			fprintf(stderr,
				"pem-codegen: error: there is no option '%s': expected --backend, "
				"-o, "
				"--check or --help\n",
				argv[i]);
			return -1;
		}
	}
	return 1;
}

static int is_complete(const struct arguments *a)
{
	if (!a->file_count)
		fprintf(stderr,
			"pem-codegen: error: no spec was named: expected one or more FILE.xml\n");
	else if (!a->check && !a->backend)
		fprintf(stderr,
			"pem-codegen: error: no backend was named: expected --backend NAME, "
			"see --help\n");
	else if (!a->check && (!a->directory || !a->directory[0]))
		fprintf(stderr,
			"pem-codegen: error: no output folder was named: expected -o DIR\n");
	else
		return 1;
	return 0;
}

/* The statuses of pem, which runs us. */
enum { DONE, WRONG_INPUT, NOT_WRITTEN = 3 };

static int run(const struct arguments *a)
{
	struct pem_spec_set set = {0};
	struct pem_output *out = NULL;
	int i, status;

	for (i = 0; i < a->file_count; i++)
		pem_spec_set__load(&set, a->files[i]);
	pem_spec_set__resolve(&set);
	pem_spec_set__check(&set);
	pem_spec_set__layout(&set);
	pem_spec_set__print_errors(&set, a->check, stderr);
	status = set.error_count != set.warning_count ? WRONG_INPUT : DONE;
	if (status == DONE && !a->check) {
		out = pem_output__new();
		a->backend->emit(&set, out);
		if (pem_output__commit(out, a->directory, stderr))
			status = NOT_WRITTEN;
	}
	pem_output__free(out);
	pem_spec_set__free(&set);
	pem_spec_set__cleanup();
	return status;
}

int main(int argc, char **argv)
{
	struct arguments a = {0};
	int r = parse_arguments(&a, argc, argv);

	if (r <= 0)
		return r < 0 ? WRONG_INPUT : DONE;
	return is_complete(&a) ? run(&a) : WRONG_INPUT;
}
