// SPDX-License-Identifier: MIT
/*
 * machine.c - boots the lab's machine under QEMU, and passes on what the script in it prints
 *
 * Not here: what is in the machine (lab.c), what becomes of what it sends back (extract.c).
 *
 * The clock of the machine counts instructions (-icount), its devices answer at once (no ioeventfd)
 * and never wait for this machine: their output goes to files, which are read here meanwhile. So
 * nothing of this machine reaches it, and two runs are the same. The accelerator is always TCG.
 *
 * The files have no name and vanish with this process, however it ends; the emulator ends with it.
 */
#include "lab.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_NS 20000000l
#define OUTPUT_MOST (16ull << 30) /* of each file that the emulator writes */
#define WORDS_MAX 64
#define PROGRESS_PATIENCE_NS 2000000000ull
#define PROGRESS_REFRESH_NS 200000000ull
#define CONSOLE_TAIL 1200

/* What the machine writes: ports 1 to 4 as the lab's init has them, and the kernel's console. */
enum { OUT, ERR, BACK, WORD, CONSOLE, CHANNELS };

struct run {
	struct lab_machine *machine;
	pid_t pid;
	int fd[CHANNELS];
	uint64_t passed_on[2]; /* bytes of OUT and ERR */
	bool is_quiet; /* Something was printed on the terminal that progress would spoil. */
	bool has_begun; /* The script runs. */
	uint64_t start_ns, shown_ns; /* the latter of progress, since the start */
};

int lab_temporary(void)
{
	const char *folder = getenv("TMPDIR");
	char path[PATH_MAX];
	int fd;

	if (folder == NULL || *folder == '\0')
		folder = "/tmp";
	if ((size_t)snprintf(path, sizeof(path), "%s/pem-lab-XXXXXX", folder) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

/* --- the emulator --- */

struct words {
	char *word[WORDS_MAX + 1];
	size_t count;
};

static void add(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct words *words, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (words->count < WORDS_MAX && vasprintf(&text, format, args) >= 0)
		words->word[words->count++] = text;
	va_end(args);
}

static void add_file(struct words *words, const char *name, int fd)
{
	add(words, "-chardev");
	add(words, "file,id=%s,append=on,path=/proc/self/fd/%d", name, fd);
}

static void add_device(struct words *words, const char *option, const char *what)
{
	add(words, "%s", option);
	add(words, "%s", what);
}

static void make_words(const struct run *run, struct words *words)
{
	const struct lab_machine *m = run->machine;
	int i;

	add(words, CLI_LAB_EMULATOR);
	add(words, "-nodefaults");
	add(words, "-no-user-config");
	add(words, "-no-reboot");
	add_device(words, "-display", "none");
	/* The board's device tree would hold seeds for the kernel's random numbers. */
	add_device(words, "-machine", "virt,dtb-randomness=off");
	add_device(words, "-cpu", "cortex-a57");
	add_device(words, "-accel", "tcg,thread=single");
	/* While all CPUs wait, time goes on to what they wait for. */
	add_device(words, "-icount", cli_format("shift=%u,sleep=off", (unsigned int)m->shift));
	add_device(words, "-rtc", "base=2000-01-01,clock=vm");
	add_device(words, "-smp", cli_format("%u", (unsigned int)m->cpus));
	add_device(words, "-m", cli_format("%uM", (unsigned int)m->memory_mib));
	add_device(words, "-kernel", m->kernel);
	add_device(words, "-initrd", cli_format("/proc/self/fd/%d", m->image));
	add_device(words, "-append",
		   "console=ttyAMA0 quiet panic=-1 oops=panic nokaslr norandmaps mitigations=off "
		   "cryptomgr.notests rdinit=/init");
	add_file(words, "console", run->fd[CONSOLE]);
	add_device(words, "-serial", "chardev:console");
	add_device(words, "-device", "virtio-serial-pci,ioeventfd=off");
	for (i = OUT; i <= WORD; i++) {
		add_file(words, cli_format("port%d", i + 1), run->fd[i]);
		add_device(words, "-device",
			   cli_format("virtserialport,chardev=port%d,nr=%d", i + 1, i + 1));
	}
}

/* In the new process: become the emulator. */
static void become(const struct run *run, struct words *words, const sigset_t *mask, pid_t parent)
{
	struct rlimit most = {.rlim_cur = OUTPUT_MOST, .rlim_max = OUTPUT_MOST};
	int i, null = open("/dev/null", O_RDONLY);

	/* A signal of the terminal is for pem, which ends this. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setrlimit(RLIMIT_FSIZE, &most);
	for (i = 0; i < CHANNELS; i++)
		fcntl(run->fd[i], F_SETFD, 0);
	/* The emulator complains where the kernel does. */
	fcntl(run->fd[CONSOLE], F_SETFL, O_APPEND);
	fcntl(run->machine->image, F_SETFD, 0);
	dup2(null, STDIN_FILENO);
	dup2(run->fd[CONSOLE], STDOUT_FILENO);
	dup2(run->fd[CONSOLE], STDERR_FILENO);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(words->word[0], words->word);
	dprintf(STDERR_FILENO, "%s: %s\n", words->word[0], strerror(errno));
	_exit(127);
}

static int start(struct run *run, const sigset_t *old)
{
	struct words words = {.count = 0};
	pid_t parent = getpid();
	size_t i;
	int rc = 0;

	make_words(run, &words);
	run->start_ns = cli_now_ns();
	run->pid = fork();
	if (run->pid == 0)
		become(run, &words, old, parent);
	if (run->pid < 0)
		rc = -errno;
	for (i = 0; i < words.count; i++)
		free(words.word[i]);
	return rc;
}

/* --- while it runs --- */

static void write_all(int fd, const char *data, size_t bytes)
{
	while (bytes != 0) {
		ssize_t done = write(fd, data, bytes);

		if (done < 0 && errno != EINTR)
			return; /* Whoever read it is gone. The trace is still wanted. */
		data += done > 0 ? done : 0;
		bytes -= done > 0 ? (size_t)done : 0;
	}
}

/* Pass on what came on a channel since the last call. */
static void pass_on(struct run *run, int channel, int to)
{
	char buffer[16384];
	ssize_t got;

	for (;;) {
		got = pread(run->fd[channel], buffer, sizeof(buffer),
			    (off_t)run->passed_on[channel]);
		if (got <= 0)
			return;
		cli_progress__clear();
		run->is_quiet = run->is_quiet || isatty(to);
		run->passed_on[channel] += (uint64_t)got;
		write_all(to, buffer, (size_t)got);
	}
}

/* Read what the lab's init says of the script. */
static void read_words(struct run *run)
{
	struct lab_machine *m = run->machine;
	char text[64];
	ssize_t got = pread(run->fd[WORD], text, sizeof(text) - 1, 0);
	unsigned int status;

	text[got > 0 ? got : 0] = '\0';
	run->has_begun = strncmp(text, "run\n", 4) == 0;
	if (run->has_begun && sscanf(text + 4, "end %3u", &status) == 1 && status <= 255) {
		m->has_ended = true;
		m->status = (int)status;
	}
}

static void show_progress(struct run *run)
{
	uint64_t ns = cli_now_ns() - run->start_ns;

	if (run->is_quiet || ns < PROGRESS_PATIENCE_NS || ns - run->shown_ns < PROGRESS_REFRESH_NS)
		return;
	run->shown_ns = ns;
	cli_progress__show(cli_format("pem: %s, %u s",
				      run->has_begun ? "running in the lab" : "the lab boots",
				      (unsigned int)(ns / 1000000000u)));
}

/* Attend the emulator until it ends, of itself or by a signal to pem or the limit. */
static void attend(struct run *run, const sigset_t *signals)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	struct lab_machine *m = run->machine;
	int got, status;

	while (waitpid(run->pid, &status, WNOHANG) == 0) {
		pass_on(run, OUT, STDOUT_FILENO);
		pass_on(run, ERR, STDERR_FILENO);
		read_words(run);
		show_progress(run);
		got = sigtimedwait(signals, NULL, &tick);
		m->is_over_limit = m->limit_s != 0 &&
				   cli_now_ns() - run->start_ns > m->limit_s * 1000000000ull;
		if (got > 0 && got != SIGCHLD)
			m->stopped_by = got;
		if (m->stopped_by == 0 && !m->is_over_limit)
			continue;
		kill(run->pid, SIGKILL);
		waitpid(run->pid, &status, 0);
		break;
	}
	pass_on(run, OUT, STDOUT_FILENO);
	pass_on(run, ERR, STDERR_FILENO);
	read_words(run);
	cli_progress__clear();
}

/* --- how it ended --- */

/* Print the end of what the kernel, or the emulator, said. */
static void print_console(const struct run *run)
{
	char text[CONSOLE_TAIL + 1], *line, *next;
	off_t size = lseek(run->fd[CONSOLE], 0, SEEK_END);
	ssize_t got = pread(run->fd[CONSOLE], text, CONSOLE_TAIL,
			    size > CONSOLE_TAIL ? size - CONSOLE_TAIL : 0);

	text[got > 0 ? got : 0] = '\0';
	for (line = text; *line != '\0'; line = next) {
		next = line + strcspn(line, "\n");
		if (*next == '\n')
			*next++ = '\0';
		line[strcspn(line, "\r")] = '\0';
		fputs("     ", stderr);
		cli_put_text(stderr, line);
		fputc('\n', stderr);
	}
}

/* Has the file system of the temporary files no room? The emulator drops what it cannot write. */
static bool is_full(const struct run *run)
{
	struct statvfs fs;

	return fstatvfs(run->fd[OUT], &fs) == 0 && fs.f_blocks != 0 && fs.f_bavail == 0;
}

static int explain(const struct run *run)
{
	const struct lab_machine *m = run->machine;

	if (m->stopped_by != 0)
		return cli_error(128 + m->stopped_by, "stopped by a signal (%s)",
				 strsignal(m->stopped_by));
	if (is_full(run))
		return cli_error(CLI_FAILED,
				 "no room is left for temporary files, and output of the "
				 "lab is lost: name another folder in TMPDIR");
	if (m->has_ended)
		return CLI_DONE;
	if (m->is_over_limit)
		return cli_error(CLI_FAILED, "the command in the lab did not end within %s s",
				 cli_count(m->limit_s));
	cli_error(0, "the lab's machine stopped before the command ended; the last it said:");
	print_console(run);
	return CLI_FAILED;
}

int lab_machine__run(struct lab_machine *machine)
{
	struct run run = {.machine = machine, .fd = {-1, -1, -1, -1, -1}};
	sigset_t signals, old;
	int i, rc = 0, status;

	machine->back = -1;
	sigemptyset(&signals);
	for (i = 0; i < 5; i++)
		sigaddset(&signals, (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}[i]);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &signals, &old);
	for (i = 0; rc == 0 && i < CHANNELS; i++) {
		run.fd[i] = lab_temporary();
		rc = run.fd[i] < 0 ? run.fd[i] : 0;
	}
	if (rc == 0)
		rc = start(&run, &old);
	if (rc < 0) {
		status = cli_error(CLI_FAILED, "cannot start the lab: %s", strerror(-rc));
	} else {
		attend(&run, &signals);
		status = explain(&run);
	}
	for (i = 0; i < CHANNELS; i++)
		if (run.fd[i] >= 0 && i != BACK)
			close(run.fd[i]);
	machine->back = run.fd[BACK];
	return status;
}
