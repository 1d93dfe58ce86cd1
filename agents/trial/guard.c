/* SPDX-License-Identifier: MIT */
/*
 * guard.c - a process that ends and restores everything if the explorer is killed
 *
 * pem explore run is two processes. The one that a person sees only waits. The other one explores;
 * if it dies of kill -9, its commands become children of the first one, a subreaper too, which ends
 * them and restores what was configured. If the first one is killed, the other one is told to stop.
 */
#include "trial/trial.h"

#include "cli.h"
#include "hash.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int trial_interrupted;
char trial_scratch[PATH_MAX];
static volatile pid_t explorer;

static void on_signal(int number)
{
	trial_interrupted = number;
	if (explorer > 0)
		kill(explorer, number);
}

static void take_signals(void)
{
	static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART},
			 usual = {.sa_handler = SIG_DFL}, old;
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		/* What a shell's & or nohup ignores, stays ignored. */
		sigaction(all[i], NULL, &old);
		if (old.sa_handler != SIG_IGN)
			sigaction(all[i], &action, NULL);
	}
	sigaction(SIGCHLD, &usual, NULL);
}

void trial_guard__node(char node[TRIAL_NODE_BYTES])
{
	const char *slurm = getenv("SLURMD_NODENAME");
	char host[HOST_NAME_MAX + 1] = "";
	size_t i;

	gethostname(host, sizeof(host) - 1);
	slurm = slurm && *slurm ? slurm : host;
	/* Names that are long differ at their end. */
	if (strlen(slurm) < TRIAL_NODE_BYTES)
		strcpy(node, slurm);
	else
		snprintf(node, TRIAL_NODE_BYTES, "%.14s-%016llx", slurm,
			 (unsigned long long)pem_hash__text(PEM_HASH_START, slurm));
	/* It becomes the name of a folder. */
	for (i = 0; node[i]; i++) {
		if (!isalnum((unsigned char)node[i]) && (!i || !strchr("-_.", node[i])))
			node[i] = '_';
	}
	if (!i)
		strcpy(node, "unknown");
}

/*
 * The folder of this machine in which changes are noted until they are restored. Returns 0 or
 * -errno with error.
 */
static int find_folder(char *path, size_t bytes, struct pem_error *error)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	const char *database = getenv("PEM_DB");
	bool is_shared = database && (!strncmp(database, "postgresql://", 13) ||
				      !strncmp(database, "postgres://", 11));
	char node[TRIAL_NODE_BYTES] = "", *slash;
	struct stat st;
	int rc = 0, first = 0;

	/* Root makes nothing in another user's folder, where that user may put links. */
	if (!stat(state && *state == '/' ? state
		  : home                 ? home
					 : "/",
		  &st) &&
	    st.st_uid != geteuid())
		rc = -EPERM;
	/* Machines that explore together may have one home; without a server one explores. */
	if (is_shared)
		trial_guard__node(node);
	if (state && *state == '/')
		snprintf(path, bytes, "%s/pem/explore%s%s", state, *node ? "/" : "", node);
	else
		snprintf(path, bytes, "%s/.local/state/pem/explore%s%s", home ? home : "",
			 *node ? "/" : "", node);
	for (slash = strchr(path + 1, '/'); slash && !rc; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		rc = mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
		*slash = '/';
		/* What can't be made may be there, or the next one fails. */
		if (rc == -EACCES || rc == -EROFS) {
			first = first ? first : rc;
			rc = 0;
		}
	}
	if (!rc && mkdir(path, 0700) && errno != EEXIST)
		rc = first ? first : -errno;
	if (!rc && (lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid()))
		rc = -EPERM;
	if (rc)
		snprintf(error->text, sizeof(error->text),
			 "the folder %.300s can't be used, in which changes of settings are noted "
			 "until they are restored: %s; set XDG_STATE_HOME to another one",
			 path, strerror(-rc));
	return rc;
}

struct settings_agent *trial_guard__settings(struct pem_error *error)
{
	struct settings_agent *settings;
	char folder[PATH_MAX];
	size_t restored = 0;
	int rc = find_folder(folder, sizeof(folder), error);

	if (rc) {
		errno = -rc;
		return NULL;
	}
	settings = settings_agent__open(folder, &restored, error);
	if (!settings) {
		if (errno == EBUSY)
			snprintf(error->text, sizeof(error->text),
				 "another exploration runs on this machine, and two would disturb "
				 "each other's figures: wait for its end, or stop it");
		return NULL;
	}
	if (restored)
		cli_say("an exploration was killed before; %zu settings that it had changed were "
			"restored",
			restored);
	if (error->text[0])
		cli_say("%s", error->text);
	error->text[0] = '\0';
	return settings;
}

void trial_guard__restore(struct settings_agent *settings)
{
	struct pem_error error = {.text = ""};

	if (settings && settings_agent__restore(settings, SETTINGS_BEFORE_START, &error))
		cli_say("%s", error.text);
	settings_agent__close(settings);
}

/* The explorer was killed: end its commands, restore its changes. */
static void clean(void)
{
	char folder[PATH_MAX];
	struct pem_error error = {.text = ""};
	size_t restored = 0;

	trial_launch__end_all(0, NULL, 0);
	if (!find_folder(folder, sizeof(folder), &error))
		settings_agent__close(settings_agent__open(folder, &restored, &error));
	cli_say("the exploration was killed; what it ran was ended, and %zu settings were "
		"restored; "
		"the same command goes on with it",
		restored);
	if (error.text[0])
		cli_say("%s", error.text);
	trial__remove(trial_scratch);
}

static int make_scratch(void)
{
	const char *folder = getenv("TMPDIR");
	struct stat st;

	/* Where another user can replace what is in it, nothing is made and removed. */
	if (folder && (stat(folder, &st) || (st.st_uid != geteuid() && !(st.st_mode & S_ISVTX))))
		folder = NULL;
	snprintf(trial_scratch, sizeof(trial_scratch), "%.4000s/pem-explore-XXXXXX",
		 folder && *folder == '/' ? folder : "/tmp");
	if (mkdtemp(trial_scratch))
		return CLI_DONE;
	return cli_error(CLI_FAILED, "no folder for runs can be made, %s: %s", trial_scratch,
			 strerror(errno));
}

int trial_guard__run(int (*work)(void *arg), void *arg)
{
	int status = make_scratch(), input;
	pid_t guard = getpid();

	if (status)
		return status;
	take_signals();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fflush(NULL);
	explorer = fork();
	if (explorer < 0) {
		status = cli_error(CLI_FAILED, "no process can be made: %s", strerror(errno));
		rmdir(trial_scratch);
		return status;
	}
	if (!explorer) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		setsid();
		input = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (input >= 0)
			dup2(input, STDIN_FILENO);
		/* The guard may have died before this process asked to be told. */
		if (getppid() != guard)
			trial_interrupted = SIGTERM;
		status = work(arg);
		trial__remove(trial_scratch);
		fflush(NULL);
		_exit(status);
	}
	if (trial_interrupted)
		kill(explorer, trial_interrupted);
	while (waitpid(explorer, &status, 0) < 0 && errno == EINTR)
		;
	explorer = 0;
	if (!WIFEXITED(status))
		clean();
	return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED;
}
