// SPDX-License-Identifier: MIT
/* lttng.c - starts and ends the LTTng session daemon for the peer's loops */
#include "bench/lttng.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 300
#define TRY_US 100000

/*
 * The daemon of root uses /run/lttng, whatever LTTNG_HOME is. So give this process a /run of its
 * own.
 */
static int hide_run(void)
{
	if (geteuid() != 0)
		return 0;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/run", "tmpfs", 0, "mode=755") < 0)
		return -errno;
	return 0;
}

/* Start a command, with its output discarded. It ends when this process ends. */
static pid_t spawn(const char *const argv[])
{
	pid_t child = fork();
	int null;

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

/* Run 'lttng --no-sessiond ...' to its end. Returns its exit status, or -1. */
static int control(const char *const argv[])
{
	pid_t child = spawn(argv);
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Wait until the daemon answers, which means that it is ready. */
static int wait_ready(pid_t daemon)
{
	static const char *const list[] = {"lttng", "--no-sessiond", "list", NULL};
	int i, status;

	for (i = 0; i < TRIES; i++) {
		if (waitpid(daemon, &status, WNOHANG) == daemon)
			return -1;
		if (control(list) == 0)
			return 0;
		usleep(TRY_US);
	}
	return -1;
}

/*
 * Add a channel for one event: a ring that is overwritten, with buffers of this number of bytes per
 * CPU. Contexts and filter are used if they are not NULL.
 */
static int add_channel(const char *name, uint64_t bytes, const char *event, const char *filter,
		       bool ids)
{
	char size[48];
	const char *const channel[] = {"lttng",
				       "--no-sessiond",
				       "enable-channel",
				       "-u",
				       "--overwrite",
				       "--num-subbuf=8",
				       size,
				       name,
				       NULL};
	const char *const context[] = {"lttng", "--no-sessiond", "add-context", "-u",   "-c", name,
				       "-t",    "vpid",          "-t",          "vtid", NULL};
	const char *const enable[] = {"lttng", "--no-sessiond", "enable-event", "-u", "-c",
				      name,    event,           filter,         NULL};

	snprintf(size, sizeof(size), "--subbuf-size=%llu", (unsigned long long)(bytes / 8));
	return control(channel) || (ids && control(context)) || control(enable) ? -1 : 0;
}

static int make_session(const char *directory, uint64_t buffer_bytes)
{
	char output[96];
	const char *const create[] = {"lttng",      "--no-sessiond", "create", "pem-bench",
				      "--snapshot", output,          NULL};
	const char *const start[] = {"lttng", "--no-sessiond", "start", NULL};

	snprintf(output, sizeof(output), "--output=%s/out", directory);
	return control(create) || add_channel("ring", buffer_bytes, "pem_bench:log", NULL, false) ||
			       add_channel("ids", buffer_bytes, "pem_bench:log_ids", NULL, true) ||
			       add_channel("filtered", buffer_bytes, "pem_bench:filtered",
					   "--filter=a > 4096 && b != 0", false) ||
			       control(start)
		       ? -1
		       : 0;
}

int lttng__start(struct lttng *lttng, uint64_t buffer_bytes)
{
	static const char *const daemon[] = {"lttng-sessiond", "--no-kernel", NULL};
	int rc;

	memset(lttng, 0, sizeof(*lttng));
	snprintf(lttng->reason, sizeof(lttng->reason), "its session daemon did not start");
	rc = hide_run();
	if (rc < 0) {
		snprintf(lttng->reason, sizeof(lttng->reason),
			 "root needs a mount namespace for a daemon of its own: %s", strerror(-rc));
		return -1;
	}
	strcpy(lttng->directory, "/tmp/pem-bench-XXXXXX");
	if (!mkdtemp(lttng->directory)) {
		lttng->directory[0] = '\0';
		return -1;
	}
	setenv("LTTNG_HOME", lttng->directory, 1);
	lttng->daemon = spawn(daemon);
	if (lttng->daemon < 0 || wait_ready(lttng->daemon) < 0)
		goto fail;
	snprintf(lttng->reason, sizeof(lttng->reason), "its session could not be set up");
	if (make_session(lttng->directory, buffer_bytes) < 0 ||
	    lttng_peer__load(&lttng->peer,
			     LTTNG_PEER_LOG | LTTNG_PEER_LOG_IDS | LTTNG_PEER_FILTERED,
			     lttng->reason, sizeof(lttng->reason)) < 0)
		goto fail;
	lttng->reason[0] = '\0';
	return 0;
fail:
	lttng__stop(lttng);
	return -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	remove(path);
	return 0;
}

void lttng__stop(struct lttng *lttng)
{
	if (lttng->daemon > 0) {
		kill(lttng->daemon, SIGTERM);
		waitpid(lttng->daemon, NULL, 0);
		lttng->daemon = 0;
	}
	if (lttng->directory[0])
		nftw(lttng->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	lttng->directory[0] = '\0';
}
