// SPDX-License-Identifier: MIT
/*
 * attach.c - what verbs that observe running programs share: options, attaching, waiting
 */
#include "attach.h"
#include "processes.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct pem_context *add(struct cli_attach *a, const struct cli_verb *verb)
{
	if (a->count == CLI_ATTACH_MAX) {
		cli_usage_error(verb, "more than %d processes, programs and groups to attach to",
				CLI_ATTACH_MAX);
		return NULL;
	}
	a->contexts[a->count] = (struct pem_context){.size = sizeof(struct pem_context)};
	a->pidfds[a->count] = -1;
	return &a->contexts[a->count++];
}

static int add_pids(struct cli_attach *a, const struct cli_verb *verb, const char *list)
{
	struct pem_context *context;
	char word[24];
	uint64_t pid;
	size_t n;

	for (;; list += n + 1) {
		n = strcspn(list, ",");
		snprintf(word, sizeof(word), "%.*s", (int)(n < 20 ? n : 20), list);
		if (cli_parse_number(word, 1u << 30, &pid) < 0)
			return -cli_usage_error(verb, "-p %s is no number of a process", word);
		context = add(a, verb);
		if (context == NULL)
			return -CLI_WRONG_INPUT;
		context->pid = (uint32_t)pid;
		a->pidfds[a->count - 1] = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
		if (list[n] == '\0')
			return 1;
	}
}

static int add_cgroup(struct cli_attach *a, const struct cli_verb *verb, const char *path)
{
	struct pem_context *context = add(a, verb);
	uint64_t root;
	int rc;

	if (context == NULL)
		return -CLI_WRONG_INPUT;
	rc = pem_cgroup_id(path, &context->cgroup);
	if (rc == 0)
		return 1;
	if (pem_cgroup_id("", &root) < 0)
		return -cli_error(CLI_NOT_HERE,
				  "--cgroup %s: control groups of version 2 are not mounted in "
				  "/sys/fs/cgroup or /sys/fs/cgroup/unified: mount -t cgroup2 "
				  "cgroup2 /sys/fs/cgroup/unified",
				  path);
	if (rc == -ENOENT)
		return -cli_usage_error(verb, "there is no control group %s%s", path,
					*path == '/' ? "" : " below /sys/fs/cgroup");
	return -cli_usage_error(verb, "--cgroup %s is no version 2 control group: %s", path,
				strerror(-rc));
}

/* Counters of a group are its own, and a session has one set of them. */
static bool has_group_beside_others(const struct cli_attach *a)
{
	size_t i;

	for (i = 0; i < a->count; i++)
		if (a->contexts[i].cgroup != 0 && a->count > 1)
			return true;
	return false;
}

int cli_attach__option(struct cli_attach *a, const struct cli_verb *verb, int code)
{
	struct pem_context *context;

	switch (code) {
	case 'p':
		return add_pids(a, verb, optarg);
	case 'a':
		a->all = true;
		return add(a, verb) != NULL ? 1 : -CLI_WRONG_INPUT;
	case CLI_OPT_PROGRAM:
		if (*optarg == '\0')
			return -cli_usage_error(verb, "--program needs the name of one");
		context = add(a, verb);
		if (context == NULL)
			return -CLI_WRONG_INPUT;
		snprintf(context->program, sizeof(context->program), "%s", optarg);
		return 1;
	case CLI_OPT_CGROUP:
		return add_cgroup(a, verb, optarg);
	case CLI_OPT_NO_FOLLOW:
		a->no_follow = true;
		return 1;
	default:
		return 0;
	}
}

int cli_attach__check(struct cli_attach *a, const struct cli_verb *verb, bool has_command)
{
	a->beside_command = has_command;
	if (has_group_beside_others(a))
		return cli_usage_error(verb, "--cgroup observes one group: take it, or the others; "
					     "two observers at once do both");
	/* A shell ignores SIGINT for a command with '&', and SIGINT ends what has no command. */
	if (!has_command)
		signal(SIGINT, SIG_DFL);
	if (!has_command || a->count == 0 || (a->all && a->count == 1))
		return CLI_DONE;
	return cli_usage_error(verb, "a command, or what runs already: take one; two observers at "
				     "once do both");
}

/* Read the name of a process from /proc. */
static void name_process(uint32_t pid, char *name, size_t bytes)
{
	pem_proc__name((pid_t)pid, name, bytes);
	if (*name == '\0')
		snprintf(name, bytes, "%u", pid);
	pem_printable(name);
}

void cli_attach__name(struct cli_attach *a)
{
	const struct pem_context *first = &a->contexts[0];

	if (first->pid != 0)
		name_process(first->pid, a->name, sizeof(a->name));
	else if (*first->program != '\0')
		snprintf(a->name, sizeof(a->name), "%s", first->program);
	else if (a->count != 0)
		snprintf(a->name, sizeof(a->name), first->cgroup != 0 ? "cgroup" : "all");
}

static void say_nobody(const char *program)
{
	if (*program == '\0')
		cli_say("no program that raises application events runs there now; one started "
			"with 'pem run -- COMMAND' will be observed");
	else
		cli_say("no program named '%s' that raises application events runs now; one "
			"started with 'pem run -- %s' will be observed",
			program, program);
}

int cli_attach__start(struct cli_attach *a, struct pem_session *session)
{
	struct pem_error error = {{0}};
	int rc, found = 0;
	size_t i;

	if (a->count != 0)
		cli_run__catch(session);
	for (i = 0; i < a->count; i++) {
		a->contexts[i].follow = a->contexts[i].pid != 0 && !a->no_follow;
		rc = pem_session__attach(session, &a->contexts[i], &error);
		if (rc < 0)
			return cli_error(rc == -ESRCH ? CLI_WRONG_INPUT : CLI_NOT_HERE, "%s",
					 *error.text != '\0' ? error.text : strerror(-rc));
		found += rc;
	}
	if (a->all && geteuid() != 0)
		cli_say("the kernel's events of other processes than yours are not observed: that "
			"needs root");
	if (a->count != 0 && found == 0 && a->contexts[0].pid == 0 && !a->beside_command)
		say_nobody(a->contexts[0].program);
	return CLI_DONE;
}

bool cli_attach__ended(void *arg)
{
	struct cli_attach *a = arg;
	struct pollfd pollfd = {.events = POLLIN};
	size_t i;

	for (i = 0; i < a->count; i++) {
		pollfd.fd = a->pidfds[i];
		if (pollfd.fd < 0 || poll(&pollfd, 1, 0) != 1)
			return false;
	}
	return a->count != 0;
}

int cli_attach__watch(struct cli_attach *a, struct cli_run *run, const char *doing)
{
	run->has_ended = cli_attach__ended;
	run->ended_arg = a;
	if (doing != NULL)
		cli_say("%s %s until it ends or you interrupt", doing, a->name);
	cli_run__watch(run);
	return run->error == 0 ? CLI_DONE
			       : cli_error(CLI_FAILED, "watching %s failed: %s", a->name,
					   strerror(-run->error));
}

void cli_attach__free(struct cli_attach *a)
{
	size_t i;

	for (i = 0; i < a->count; i++)
		if (a->pidfds[i] >= 0)
			close(a->pidfds[i]);
	a->count = 0;
}

const char *cli_attach__program(const struct cli_attach *a, char *path, size_t bytes)
{
	const char *slash;
	ssize_t n;

	if (a->count == 0 || a->contexts[0].pid == 0)
		return NULL;
	n = readlink(cli_format("/proc/%u/exe", a->contexts[0].pid), path, bytes - 1);
	if (n <= 0)
		return NULL;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (slash != NULL && cli_specs__trusts(cli_format("%.*s/", (int)(slash - path), path)))
		return path;
	path[0] = '\0';
	return NULL;
}
