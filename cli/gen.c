// SPDX-License-Identifier: MIT
/*
 * gen.c - pem gen: makes stubs from event specs in a language, by running pem-codegen, and prints
 * how to use them
 */
#include "cli.h"

#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_LANG = 256, OPT_BACKEND, OPT_AGENT };

static const struct cli_option options[] = {
	{OPT_LANG, "lang", "LANG",
	 "Language of the stubs: c, c++, fortran, java, python or rust. Default: c."},
	{OPT_BACKEND, "backend", "NAME",
	 "With --lang c, who gets the events: pem (the default), usdt (probes for bpftrace and "
	 "perf), lttng-ust, "
	 "or none (the calls compile to nothing)."},
	{OPT_AGENT, "agent", NULL,
	 "Make no stubs, but a program in C that reads a trace: typed handlers for each event, "
	 "with "
	 "process, thread, phase and duration. What you have changed in it stays."},
	{'o', "output", "DIR", "Folder to write into. Default: the current one."},
	{'q', "quiet", NULL, "Say nothing but what is wrong."},
	{0},
};

/*
 * How to build a program with the result. %o is the folder as a word of a command, %f the folder in
 * a text, %i the include flag for pem's headers, %e the variable for them, %p the provider, %l what
 * links with libpem. In a call %c is the event: shop_sale, and %C as Java has it: ShopSale.
 */
struct language {
	const char *name;
	const char *backend; /* name of the backend of pem-codegen */
	const char *build;
	const char *call; /* of a stub; NULL: there are none */
	const char *run; /* what to record; NULL: pem can't record its events */
};

static const struct language languages[] = {
	{"c", "c", "cc -O2 -I%o%i program.c -o program -ldl", "pem_notify_%c()", "./program"},
	{"c++", "c++", "c++ -std=c++17 -O2 -I%o%i program.cpp -o program -ldl", "pem_notify_%c()",
	 "./program"},
	{"fortran", "fortran",
	 "cc -O2 -c -I%o%i %o/%p_symbols.c && gfortran -O2 %o/%p.f90 program.f90 %p_symbols.o -o "
	 "program -ldl",
	 "pem_notify_%c()", "./program"},
	{"java", "java",
	 "cc -O2 -shared -fPIC -I%o%i -I$JAVA_HOME/include -I$JAVA_HOME/include/linux %o/%p_jni.c "
	 "-o "
	 "libpem_%p_java.so && javac -d . -sourcepath %o Program.java",
	 "notify%C()", "java -Djava.library.path=. Program"},
	{"python", "python", "nothing to build: import pem_%p", "pem_%p.notify_%c()",
	 "env PYTHONPATH=%o python3 program.py"},
	{"rust", "rust",
	 "%ecargo build, with pem_%p = { path = \"%f/pem_%p\" } under [dependencies] of Cargo.toml",
	 "pem_%p::notify_%c()", "target/debug/PROGRAM"},
};

/* For C: the tracers that the stubs may serve. */
static const struct language servers[] = {
	{"pem", "c", "cc -O2 -I%o%i program.c -o program -ldl", "pem_notify_%c()", "./program"},
	{"usdt", "usdt", "cc -O2 -I%o%i program.c -o program", "pem_notify_%c()", NULL},
	{"lttng-ust", "lttng-ust",
	 "cc -O2 -I%o%i program.c %o/%p_lttng.c -o program -llttng-ust -ldl", "pem_notify_%c()",
	 NULL},
	{"none", "none", "cc -O2 -I%o program.c -o program", "pem_notify_%c()", NULL},
};

/* Not stubs: what reads the events. */
static const struct language reader = {
	"agent", "agent", "cc -O2 %o/%p_agent.c -o %p_agent%l && ./%p_agent TRACE", NULL, NULL};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct language *find(const struct language *table, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

/*
 * The languages of a table that this pem-codegen supports, as "c, c++ and java". The result stays
 * valid as long as one of cli_format.
 */
static const char *those_there(const struct language *table, size_t count)
{
	struct cli_words words = {0};
	char *out = NULL, *line;
	const char *text = "";
	size_t i;

	if (cli_words__add(&words, "--backends") &&
	    cli_codegen__read(&words, &out, NULL) == CLI_DONE) {
		for (i = 0; i < count; i++) {
			line = strstr(out, cli_format("%s\n", table[i].backend));
			if (line != NULL && (line == out || line[-1] == '\n'))
				text = cli_format("%s%s%s", text, *text != '\0' ? ", " : "",
						  table[i].name);
		}
	}
	cli_words__free(&words);
	free(out);
	return text;
}

static const struct language *choose(const struct cli_verb *verb, const char *language,
				     const char *backend)
{
	const struct language *chosen = find(languages, COUNT(languages), language);

	if (chosen == NULL) {
		cli_usage_error(verb, "no stubs in language '%s': there is %s", language,
				those_there(languages, COUNT(languages)));
		return NULL;
	}
	if (backend == NULL)
		return chosen;
	if (strcmp(language, "c") != 0) {
		cli_usage_error(verb, "--backend goes with --lang c alone: stubs in %s are pem's",
				language);
		return NULL;
	}
	chosen = find(servers, COUNT(servers), backend);
	if (chosen == NULL)
		cli_usage_error(verb, "no backend '%s': there is %s", backend,
				those_there(servers, COUNT(servers)));
	return chosen;
}

/* The folder of pem's headers. "" if the compiler searches there anyway. */
static const char *include_folder(void)
{
	static const char *const locations[] = {"/../include", "/../../spec/abi",
						"/../../../spec/abi"};
	static char path[PATH_MAX];
	char folder[PATH_MAX];
	size_t i;

	if (cli_program_folder(folder, sizeof(folder)) < 0)
		return "";
	for (i = 0; i < COUNT(locations); i++) {
		if (realpath(cli_format("%s%s", folder, locations[i]), path) != NULL &&
		    access(cli_format("%s/pem/stub.h", path), R_OK) == 0)
			return strcmp(path, "/usr/include") == 0 ||
					       strcmp(path, "/usr/local/include") == 0
				       ? ""
				       : path;
	}
	return "";
}

/* Print a folder as a word of a command, behind the beginning of that word. */
static void put_before(const char *beginning, const char *folder)
{
	fputs(beginning, stdout);
	cli_put_word(stdout, folder);
}

/* Flags to compile and link with libpem: of the installed one, or of this build tree. */
static void print_libpem_flags(void)
{
	static const char tree[] = "/spec/abi";
	const char *include = include_folder();
	size_t n = strlen(include), m = strlen(tree);
	char folder[PATH_MAX], lib[PATH_MAX], headers[PATH_MAX + sizeof("/libpem/include")];

	if (n < m || strcmp(include + n - m, tree) != 0 ||
	    cli_program_folder(folder, sizeof(folder)) < 0 ||
	    realpath(cli_format("%s/../lib", folder), lib) == NULL) {
		fputs(" $(pkg-config --cflags --libs libpem)", stdout);
		return;
	}
	snprintf(headers, sizeof(headers), "%.*s/libpem/include", (int)(n - m), include);
	put_before(" -I", headers);
	put_before(" -I", include);
	put_before(" -L", lib);
	put_before(" -lpem -Wl,-rpath,", lib);
}

static void print_part(char part, const char *output, const char *provider)
{
	const char *include = include_folder();

	if (part == 'o') {
		cli_put_word(stdout, output);
	} else if (part == 'f') {
		cli_put_text(stdout, output);
	} else if (part == 'i' && *include != '\0') {
		put_before(" -I", include);
	} else if (part == 'e' && *include != '\0') {
		put_before("PEM_INCLUDE=", include);
		putchar(' ');
	} else if (part == 'l') {
		print_libpem_flags();
	} else if (part == 'p') {
		fputs(provider, stdout);
	}
}

static void print_form(const char *title, const char *form, const char *output,
		       const char *provider)
{
	fputs(title, stdout);
	for (; *form != '\0'; form++) {
		if (*form != '%')
			putchar(*form);
		else
			print_part(*++form, output, provider);
	}
	putchar('\n');
}

/* Write a name in capitals of words: ShopSale for shop_sale. */
static void put_camel(const char *name)
{
	bool begins = true;

	for (; *name != '\0'; name++) {
		if (*name != '_')
			putchar(begins ? toupper((unsigned char)*name) : *name);
		begins = *name == '_';
	}
}

static void print_call(const char *form, const char *event, const char *provider)
{
	for (; *form != '\0'; form++) {
		if (*form != '%')
			putchar(*form);
		else if (*++form == 'C')
			put_camel(event);
		else
			fputs(*form == 'c' ? event : provider, stdout);
	}
}

/* names has the lines "provider NAME", "event NAME" and "file NAME". */
static void print_calls(const struct language *chosen, const char *names, const char *provider)
{
	size_t events = 0;
	char event[256];

	for (; names != NULL && *names != '\0';
	     names = strchr(names, '\n'), names += names != NULL) {
		if (sscanf(names, "event %255s", event) != 1)
			continue;
		if (events < 4) {
			fputs(events != 0 ? " " : "call:         ", stdout);
			print_call(chosen->call, event, provider);
		}
		events++;
	}
	if (events > 4)
		printf(" and %zu more", events - 4);
	if (events != 0)
		putchar('\n');
}

/* names is as for print_calls. */
static void tell(const struct language *chosen, const char *output, char *names)
{
	char *line, *provider = NULL, *all = strdup(names);
	size_t files = 0;

	printf("wrote:        ");
	while ((line = strsep(&names, "\n")) != NULL) {
		if (strncmp(line, "provider ", 9) == 0 && provider == NULL)
			provider = line + 9;
		if (strncmp(line, "file ", 5) != 0)
			continue;
		if (files < 4) {
			put_before(files != 0 ? " " : "", output);
			printf("/%s", line + 5);
		}
		files++;
	}
	if (files > 4)
		printf(" and %zu more", files - 4);
	putchar('\n');
	if (provider == NULL)
		provider = "PROVIDER";
	if (chosen->call != NULL && all != NULL)
		print_calls(chosen, all, provider);
	free(all);
	print_form("build with:   ", chosen->build, output, provider);
	if (chosen->run != NULL)
		print_form("and record:   pem record -- ", chosen->run, output, provider);
}

static int generate(const struct language *chosen, const char *output, char **files, int count,
		    bool quiet)
{
	struct cli_words words = {0};
	int status = CLI_FAILED, i;
	char *names = NULL;

	if (!cli_words__add(&words, "--names") || !cli_words__add(&words, "--backend") ||
	    !cli_words__add(&words, chosen->backend) || !cli_words__add(&words, "-o") ||
	    !cli_words__add(&words, output) || !cli_words__add(&words, "--"))
		goto end;
	for (i = 0; i < count; i++)
		if (!cli_words__add(&words, files[i]))
			goto end;
	status = cli_codegen__read(&words, &names, NULL);
	if (status == CLI_DONE && !quiet)
		tell(chosen, output, names);
end:
	cli_words__free(&words);
	free(names);
	return status;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	const char *language = "c", *backend = NULL, *output = ".";
	const struct language *chosen;
	bool quiet = false, agent = false, has_language = false;
	int code;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
		if (code == OPT_LANG) {
			language = optarg;
			has_language = true;
		} else if (code == OPT_AGENT)
			agent = true;
		else if (code == OPT_BACKEND)
			backend = optarg;
		else if (code == 'q')
			quiet = true;
		else
			output = optarg;
	}
	if (agent && (has_language || backend != NULL))
		return cli_usage_error(verb, "--agent makes a program in C and no stubs: leave out "
					     "--lang and --backend");
	chosen = agent ? &reader : choose(verb, language, backend);
	if (chosen == NULL)
		return CLI_WRONG_INPUT;
	if (optind == argc)
		return cli_usage_error(verb, "no spec given");
	if (*output == '\0')
		return cli_usage_error(verb, "-o needs the name of a folder");
	return cli_finish_output(generate(chosen, output, argv + optind, argc - optind, quiet));
}

const struct cli_verb cli_gen = {
	.name = "gen",
	.summary = "make stubs out of an event spec",
	.usage = "gen [--lang c|c++|fortran|java|python|rust] [-o DIR] [-q] FILE.xml...\n"
		 "gen --lang c --backend pem|usdt|lttng-ust|none [-o DIR] [-q] FILE.xml...\n"
		 "gen --agent [-o DIR] [-q] FILE.xml...",
	.text = "Makes, for each spec, one function per event in the language of your program, and "
		"says what was "
		"written, which functions to call (pem_notify_PROVIDER_EVENT in C) and how to "
		"build with it. Call the function where the event happens, and "
		"pem record sees "
		"it, beside everyone else's. While nobody records, a call costs next to nothing, "
		"and without pem "
		"at run time it does nothing. A spec that is wrong gets every mistake named, and "
		"then nothing is "
		"written; files that would not change are left alone.",
	.examples = "pem gen shop.xml            ./shop.h, for C\n"
		    "pem gen --lang python shop.xml -o gen\n"
		    "                            a module pem_shop in gen/\n"
		    "pem gen --lang c --backend usdt shop.xml\n"
		    "                            the same calls as probes for bpftrace\n"
		    "pem gen --agent shop.xml    a program that reads a trace, to be edited\n"
		    "pem spec check shop.xml     only look whether it is right",
	.options = options,
	.run = run,
};
