// SPDX-License-Identifier: MIT
/*
 * lab.c - pem lab: runs pem record or pem stat in an emulated machine that has counters and is the
 * same in every run
 *
 * What happens: the words of the sub-verb are checked here and become a script; the script and the
 * user's files become an archive behind that of the lab's file system; the machine boots and runs
 * the script (machine.c); the trace that it sends back is unpacked beside its name (extract.c) and
 * renamed when it is complete.
 */
#include "extract.h"
#include "lab.h"
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPUS_MOST 8u /* The board's interrupt controller has no more. */
#define MEMORY_LEAST_MIB 256u
#define MEMORY_MOST_MIB 65536u
#define MEMORY_MIB 1024u
/* The user's files get this part of it: they lie there twice while the kernel unpacks them. */
#define FILES_SHARE 4u
#define SHIFT_MOST 10u
#define LIMIT_MOST_S 1000000u
#define MEMBERS_MOST 100000u /* files of a trace */

enum { OPT_CPUS = 256, OPT_MEMORY, OPT_FILE, OPT_LIMIT, OPT_SHIFT };

static const struct cli_option options[] = {
	{'o', "output", "DIR",
	 "The trace's folder, which must not exist or be empty. Default: pem-trace-COMMAND-N "
	 "here."},
	{OPT_FILE, "file", "PATH",
	 "Take this file along, too: it lies at the same path in the lab. Libraries are found by "
	 "the "
	 "loader. May be given several times."},
	{OPT_CPUS, "cpus", "N", "Processors of the machine, 1 to 8, which take turns. Default: 1."},
	{OPT_MEMORY, "memory", "MIB", "Its memory, which holds its files, too. Default: 1024."},
	{OPT_SHIFT, "shift", "N",
	 "An instruction takes 2^N ns of its time, N 0 to 10. Default: 1."},
	{OPT_LIMIT, "limit", "S", "End it after so many seconds of this machine. Default: never."},
	{0},
};

struct lab {
	const struct cli_verb *verb, *sub; /* sub: what runs in the lab */
	struct lab_machine machine;
	struct lab_load load;
	struct cli_names files; /* of --file */
	struct cli_names words; /* options for the sub-verb */
	char **command;
	const char *directory; /* of the trace, as the user wrote it, or NULL */
	char path[PATH_MAX]; /* the folder of the trace that is used */
	/* This program made the folder. It removes it if there is no trace. */
	bool made;
};

/* --- options --- */

static int parse_number(struct lab *lab, const char *name, uint64_t least, uint64_t most,
			uint64_t *number)
{
	if (cli_parse_number(optarg, most, number) == 0 && *number >= least)
		return CLI_DONE;
	return cli_usage_error(lab->verb, "--%s %s is no number from %u to %u", name, optarg,
			       (unsigned int)least, (unsigned int)most);
}

static int parse_own(struct lab *lab, int argc, char **argv)
{
	struct lab_machine *m = &lab->machine;
	int code, rc = CLI_DONE;

	while (rc == CLI_DONE && (code = cli_option__next(lab->verb, argc, argv)) != -1) {
		switch (code) {
		case 'o':
			lab->directory = optarg;
			break;
		case OPT_CPUS:
			rc = parse_number(lab, "cpus", 1, CPUS_MOST, &m->cpus);
			break;
		case OPT_MEMORY:
			rc = parse_number(lab, "memory", MEMORY_LEAST_MIB, MEMORY_MOST_MIB,
					  &m->memory_mib);
			break;
		case OPT_FILE:
			if (cli_names__add(&lab->files, optarg) < 0)
				rc = cli_error(CLI_FAILED, "no memory");
			break;
		case OPT_LIMIT:
			rc = parse_number(lab, "limit", 1, LIMIT_MOST_S, &m->limit_s);
			break;
		case OPT_SHIFT:
			rc = parse_number(lab, "shift", 0, SHIFT_MOST, &m->shift);
			break;
		default:
			rc = CLI_WRONG_INPUT;
		}
	}
	return rc;
}

static const struct cli_option *find_option(const struct cli_verb *verb, int code)
{
	const struct cli_option *o = verb->options;

	while (o->code != 0 && o->code != code)
		o++;
	return o;
}

/* Why an option of the sub-verb makes no sense in the lab, or NULL. */
static const char *senseless(const struct lab *lab, const struct cli_option *o, const char *value)
{
	static const char *const attach[] = {"pid", "program", "cgroup"};
	size_t i;

	for (i = 0; i < sizeof(attach) / sizeof(attach[0]); i++)
		if (strcmp(o->name, attach[i]) == 0)
			return "no program but the command runs in the lab";
	if (strcmp(o->name, "trigger") == 0)
		return "its snapshots would stay in the lab";
	if (lab->sub == &cli_stat && o->code == 'o' && strcmp(value, "-") != 0)
		return "the file would stay in the lab; -o - prints to standard output";
	return NULL;
}

/* Take the options of the sub-verb, which are those of record or stat, and keep their words. */
static int parse_sub(struct lab *lab, int argc, char **argv)
{
	const char *why;
	int code;

	optind = 1;
	while ((code = cli_option__next(lab->sub, argc, argv)) != -1) {
		const struct cli_option *o;

		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
		o = find_option(lab->sub, code);
		why = senseless(lab, o, optarg);
		if (why != NULL)
			return cli_usage_error(lab->verb, "--%s: %s", o->name, why);
		if (lab->sub == &cli_record && code == 'o') {
			lab->directory = optarg;
			continue;
		}
		if (cli_names__add(&lab->words, cli_format("--%s", o->name)) < 0 ||
		    (o->argument != NULL && cli_names__add(&lab->words, optarg) < 0))
			return cli_error(CLI_FAILED, "no memory");
	}
	lab->command = argv + optind;
	return CLI_DONE;
}

static int parse(struct lab *lab, int argc, char **argv)
{
	int rc = parse_own(lab, argc, argv);

	if (rc != CLI_DONE)
		return rc;
	lab->sub = &cli_record;
	lab->command = argv + optind;
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0) {
		if (strcmp(argv[optind], "stat") == 0)
			lab->sub = &cli_stat;
		else if (strcmp(argv[optind], "record") != 0)
			return cli_usage_error(lab->verb,
					       "pem lab runs record or stat; a command goes behind "
					       "--, as in: pem lab -- %s",
					       argv[optind]);
		rc = parse_sub(lab, argc - optind, argv + optind);
	}
	if (rc == CLI_DONE && lab->command[0] == NULL)
		rc = cli_usage_error(lab->verb, "no command to run in the lab: put it after --");
	if (rc == CLI_DONE && lab->directory != NULL &&
	    (*lab->directory == '\0' || lab->sub == &cli_stat))
		rc = cli_usage_error(lab->verb,
				     *lab->directory == '\0'
					     ? "-o needs the name of a folder"
					     : "pem lab stat makes no trace: leave -o out");
	return rc;
}

/* --- what goes along --- */

/* Take the command and the files of --file along. */
static int load_files(struct lab *lab)
{
	struct lab_load *load = &lab->load;
	int status;
	size_t i;

	if (getcwd(load->cwd, sizeof(load->cwd)) == NULL)
		return cli_error(CLI_FAILED, "the current folder is not known: %s",
				 strerror(errno));
	if (lab_path__is_hidden(load->cwd))
		return cli_error(CLI_WRONG_INPUT,
				 "the lab has a %s of its own: start this elsewhere", load->cwd);
	for (i = 0; i < lab->files.count; i++)
		if (lab_load__add(load, lab->files.names[i], &status) == NULL)
			return status == CLI_NOT_FOUND ? CLI_WRONG_INPUT : status;
	status = lab_program__take(load, lab->command[0]);
	if (status == CLI_DONE)
		status = lab_program__check_all(load);
	if (status == CLI_DONE && load->bytes > (lab->machine.memory_mib << 20) / FILES_SHARE)
		status = cli_error(CLI_WRONG_INPUT,
				   "files of %s do not fit into a memory of %s MiB, of which they "
				   "get a quarter: give more with --memory",
				   cli_bytes(load->bytes), cli_count(lab->machine.memory_mib));
	return status;
}

/* Write a text as one word of a shell's. */
static void put_quoted(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text != '\0'; text++)
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text, out);
	fputs("' ", out);
}

/* The script that the lab's init runs. The caller frees it. NULL: no memory. */
static char *make_script(const struct lab *lab)
{
	char *text = NULL, **word;
	size_t bytes, i;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		return NULL;
	fputs("cd ", out);
	put_quoted(out, lab->load.cwd);
	fputs("|| exit 3\n", out);
	for (i = 0; i < lab->load.count; i++)
		if (lab_is_library(lab->load.files[i].path)) {
			fputs("export LD_LIBRARY_PATH=/lab/lib\n", out);
			break;
		}
	fprintf(out, "exec pem %s ", lab->sub->name);
	if (lab->sub == &cli_record) {
		fputs("-o ", out);
		put_quoted(out, lab->path);
	}
	for (i = 0; i < lab->words.count; i++)
		put_quoted(out, lab->words.names[i]);
	fputs("-- ", out);
	for (word = lab->command; *word != NULL; word++)
		put_quoted(out, *word);
	fputc('\n', out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* Copy the lab's file system into out. Returns 0 or -errno. */
static int copy_image(const char *path, FILE *out)
{
	char buffer[16384];
	FILE *in = fopen(path, "re");
	size_t n;
	int rc = 0;

	if (in == NULL)
		return -errno;
	while (rc == 0 && (n = fread(buffer, 1, sizeof(buffer), in)) != 0)
		rc = fwrite(buffer, 1, n, out) == n ? 0 : -EIO;
	if (ferror(in))
		rc = -EIO;
	fclose(in);
	return rc;
}

static int put_load(const struct lab *lab, const char *script, FILE *out)
{
	struct lab_archive archive;
	char path[PATH_MAX], parent[PATH_MAX + 3];
	const char *slash;
	size_t i;

	lab_archive__begin(&archive, out);
	lab_archive__folder(&archive, lab->load.cwd);
	lab_archive__folder(&archive, "/lab/lib");
	lab_archive__text(&archive, "/lab/run", script);
	for (i = 0; i < lab->load.count; i++) {
		const struct lab_file *file = &lab->load.files[i];

		snprintf(path, sizeof(path), "%s", file->path);
		*strrchr(path, '/') = '\0';
		lab_archive__folder(&archive, path);
		lab_archive__file(&archive, file->path, file->source);
		slash = strrchr(file->path, '/');
		if (lab_is_library(slash))
			lab_archive__link(&archive, cli_format("/lab/lib%s", slash), file->path);
	}
	if (lab->sub == &cli_record) {
		if (lab_path(lab->load.cwd, lab->path, path, sizeof(path)) < 0)
			return -ENAMETOOLONG;
		lab_archive__link(&archive, "/lab/trace", path);
		snprintf(parent, sizeof(parent), "%s/..", path);
		if (lab_path("", parent, path, sizeof(path)) == 0)
			lab_archive__folder(&archive, path);
	}
	return lab_archive__end(&archive);
}

/* Make the file system of the machine. Returns a descriptor, or -1 after printing a sentence. */
static int make_image(const struct lab *lab)
{
	int fd = lab_temporary(), copy = -1, rc = fd < 0 ? fd : 0;
	char *script = make_script(lab);
	FILE *out = NULL;

	if (rc == 0) {
		copy = dup(fd);
		out = copy >= 0 ? fdopen(copy, "w") : NULL;
		rc = script == NULL || out == NULL ? -ENOMEM : 0;
	}
	if (rc == 0)
		rc = copy_image(lab->load.parts.image, out);
	if (rc == 0)
		rc = put_load(lab, script, out);
	if (out != NULL && fclose(out) != 0 && rc == 0)
		rc = -errno;
	free(script);
	if (rc == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	cli_error(0, "cannot make the lab's file system: %s", strerror(-rc));
	return -1;
}

/* --- the trace --- */

static int make_folder(struct lab *lab)
{
	int status;

	if (lab->sub != &cli_record)
		return CLI_DONE;
	if (lab->directory == NULL) {
		status = cli_folder__make("pem-trace", lab->command[0], lab->path,
					  sizeof(lab->path));
		lab->made = status == CLI_DONE;
		return status;
	}
	if ((size_t)snprintf(lab->path, sizeof(lab->path), "%s", lab->directory) >=
	    sizeof(lab->path))
		return cli_error(CLI_WRONG_INPUT, "the name of the trace's folder is too long");
	/* An empty folder may stay: the complete trace replaces it. */
	if (rmdir(lab->path) < 0 && errno != ENOENT)
		return cli_error(CLI_WRONG_INPUT, "%s is in the way of the trace: %s", lab->path,
				 strerror(errno));
	if (mkdir(lab->path, 0777) < 0)
		return cli_error(cli_status_of_errno(errno),
				 "cannot make the folder %s for the trace: %s", lab->path,
				 strerror(errno));
	lab->made = true;
	return CLI_DONE;
}

/* Was pem told to end? The signals are blocked by now. */
static bool is_to_end(void)
{
	sigset_t set;

	return sigpending(&set) == 0 && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
					 sigismember(&set, SIGHUP) || sigismember(&set, SIGQUIT));
}

/* Unpack the trace into a folder beside its own, and then rename that. */
static int take_back(struct lab *lab)
{
	const struct lab_limits limits = {.bytes = lab->machine.memory_mib << 20,
					  .members = MEMBERS_MOST};
	char fresh[PATH_MAX + 16], why[256];
	struct cli_folder folder;
	struct stat st;
	int fd, rc;

	snprintf(fresh, sizeof(fresh), "%s.lab-XXXXXX", lab->path);
	if (stat(lab->path, &st) < 0 || mkdtemp(fresh) == NULL)
		return cli_error(CLI_FAILED, "cannot write the trace beside %s: %s", lab->path,
				 strerror(errno));
	rc = cli_folder__made(fresh, &folder);
	if (rc < 0)
		return cli_error(CLI_FAILED, "cannot write the trace beside %s: %s", lab->path,
				 strerror(-rc));
	fd = open(fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	rc = fd >= 0 ? lab_extract(lab->machine.back, fd, &limits, why, sizeof(why)) : -errno;
	if (fd < 0)
		snprintf(why, sizeof(why), "%s", strerror(-rc));
	if (rc >= 0 && fchmod(fd, st.st_mode & 0777) < 0) {
		rc = -errno;
		snprintf(why, sizeof(why), "%s", strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	if (rc >= 0 && is_to_end()) {
		rc = -EINTR;
		snprintf(why, sizeof(why), "%s", strerror(EINTR));
	}
	if (rc >= 0 && rename(fresh, lab->path) < 0) {
		rc = -errno;
		snprintf(why, sizeof(why), "%s", strerror(errno));
	}
	if (rc >= 0) {
		lab->made = false;
		return CLI_DONE;
	}
	cli_folder__remove(fresh, &folder);
	return rc == -EINTR ? 128 + SIGINT
			    : cli_error(CLI_FAILED, "the lab's trace is refused: %s", why);
}

/* --- all together --- */

static int run_lab(struct lab *lab)
{
	struct lab_machine *m = &lab->machine;
	int status = load_files(lab);

	if (status == CLI_DONE)
		status = make_folder(lab);
	if (status != CLI_DONE)
		return status;
	m->kernel = lab->load.parts.kernel;
	m->image = make_image(lab);
	status = m->image >= 0 ? lab_machine__run(m) : CLI_FAILED;
	/* Without a trace there is a sentence of the pem in the lab, and its status. */
	if (status == CLI_DONE && lab->sub == &cli_record && lseek(m->back, 0, SEEK_END) > 0) {
		lseek(m->back, 0, SEEK_SET);
		status = take_back(lab);
	}
	if (status == CLI_DONE)
		status = m->status;
	if (m->image >= 0)
		close(m->image);
	if (m->back >= 0)
		close(m->back);
	if (lab->made)
		rmdir(lab->path);
	return status;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct lab *lab = calloc(1, sizeof(*lab));
	struct pem_error error = {{0}};
	int status;

	if (lab == NULL)
		return cli_error(CLI_FAILED, "no memory");
	lab->verb = verb;
	lab->machine = (struct lab_machine){
		.cpus = 1, .memory_mib = MEMORY_MIB, .shift = 1, .image = -1, .back = -1};
	status = parse(lab, argc, argv);
	if (status == CLI_DONE && cli_lab_parts__find(&lab->load.parts, &error) < 0)
		status = cli_error(CLI_NOT_HERE, "%s", error.text);
	if (status == CLI_DONE)
		status = run_lab(lab);
	cli_lab_parts__free(&lab->load.parts);
	cli_names__free(&lab->files);
	cli_names__free(&lab->words);
	free(lab);
	return status;
}

const struct cli_verb cli_lab = {
	.name = "lab",
	.summary = "record or count a program in an emulated machine, exactly",
	.usage = "lab [OPTIONS] -- COMMAND [ARGUMENT...]\n"
		 "lab [OPTIONS] record|stat [ITS OPTIONS] -- COMMAND [ARGUMENT...]",
	.text = "Boots an arm64 machine under QEMU and runs pem record or pem stat in it: with "
		"counters, as root, with every event of the kernel, and the same to the "
		"instruction in every run. Time there counts instructions: it compares runs, and "
		"says little of a real processor. The command has an empty standard input, and no "
		"file of "
		"yours but itself and those of --file. The other commands there are busybox's.",
	.examples =
		"aarch64-linux-gnu-gcc -O2 -static loop.c -o loop\n"
		"                            a program for the lab\n"
		"pem lab stat -e UserInstructions,cycles -- ./loop\n"
		"                            its instructions without the kernel's, the cycles "
		"with\n"
		"pem lab -- ./loop\n"
		"                            a trace, pem-trace-loop-1, as pem record makes it\n"
		"pem lab --cpus 2 --file loop record -e 'OS::Sched::*' -- sh -c './loop & ./loop'\n"
		"                            of two processes on two CPUs",
	.options = options,
	.status = "the command's own, or 128 plus the signal that ended it, as pem record's; and\n"
		  "1    wrong usage\n"
		  "2    the lab is not built, or there is no emulator\n"
		  "3    failed: the machine stopped, or what it sent back was refused\n"
		  "126, 127  the command cannot run in the lab, or is not there",
	.runs_command = true,
	.run = run,
};
