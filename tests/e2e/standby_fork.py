# SPDX-License-Identifier: MIT
"""
standby_fork.py - children of a recorded program: nothing is made for one before its first event, and each event is counted,
whoever observes the child by then
"""
import json
import os
import platform
import re
import signal
import subprocess

from preload import PRELOAD, compile_program, need_preload
from stage import until, until_served
from tap import BUILD, PEM, equal, need, run, run_all, skip, start, test, tmp

MALLOC = "APP::Libc::Malloc"
IDLE = os.path.join(BUILD, "programs", "idle")
# Forks so many children, one after the other, beside so many threads that allocate. Each child allocates so often.
FORKS = """
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int stop;
static void *volatile kept;
static void allocate(int bytes) { free(kept = malloc(bytes)); }
static void *work(void *arg) { while (!stop) { void *volatile p = malloc(99); free(p); } return arg; }
static int start(int count, int level)
{
	int status, i;
	pid_t pid = fork();

	if (pid)
		return waitpid(pid, &status, 0) != pid || status;
	for (i = 0; i < count; i++)
		allocate(77);
	_exit(level ? start(count, level - 1) : 0);
}
int main(int argc, char *argv[])
{
	int children = atoi(argv[1]), count = atoi(argv[2]), threads = atoi(argv[3]), i;
	pthread_t thread[8];

	for (i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (i = 0; i < children; i++)
		if (start(count, argc > 4 ? atoi(argv[4]) : 0))
			return 1;
	stop = 1;
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
"""

# Forks at each instruction of an allocation of 77 bytes, by the processor's trap flag. Each child ends it, and then allocates 78 bytes three times.
STEPS = """
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
static long steps, at;
static int is_child;
static void *volatile kept;
static void on_step(int signal, siginfo_t *info, void *context)
{
	int status;
	pid_t pid;

	(void)signal, (void)info;
	if (steps++ != at)
		return;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
	pid = fork();
	is_child = !pid;
	if (pid && (waitpid(pid, &status, 0) != pid || status))
		_exit(1);
}
#define TRAP_FLAG(operation) __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; " operation ", (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc")
int main(void)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER};
	int i, children = 0;

	free(kept = malloc(78));
	sigaction(SIGTRAP, &action, NULL);
	for (at = 0; steps >= at; at++, children++) {
		steps = 0;
		TRAP_FLAG("orq $0x100");
		kept = malloc(77);
		TRAP_FLAG("andq $~0x100");
		if (is_child) {
			for (i = 0; i < 3; i++)
				free(kept = malloc(78));
			_exit(0);
		}
		free(kept);
		if (steps <= at)
			break;
	}
	dprintf(1, "%d\\n", children);
	return 0;
}
"""


def environment():
    """The runtime folder is in memory: only there programs wait for their first event."""
    return {"PEM_RUNTIME_DIR": tmp("/dev/shm"), "PEM_SESSION": None, "LD_PRELOAD": None}


def counted(forks, *arguments):
    """The allocations of 77 bytes that pem stat counts, of a program and its children."""
    rc, out, err = run([PEM, "stat", "-q", "--json", "-e", MALLOC, "--where", "size == 77", "--", forks] +
                       [str(a) for a in arguments], env=environment())
    equal(rc, 0, "status, with " + err)
    return json.loads(out[out.index("{"):])["events"][0]["count"]


def calls_of_children(program, command, env, out=None):
    """
    The names of the system calls of each child of a program, and of the children's children, by strace. pem may start programs of its own
    beside it. out: a file for what strace writes.
    """
    out = out or os.path.join(tmp(), "strace")
    rc, _, err = run(["strace", "-f", "-o", out, *command], env=env)
    equal(rc, 0, "status beside strace, with " + err)
    calls, parents, children = {}, set(), set()
    with open(out, encoding="utf-8") as file:
        for line in file:
            found = re.match(r"(\d+) +(\w+)\(", line)
            if found:
                calls.setdefault(found[1], []).append(found[2])
            if 'execve("%s"' % program in line:
                parents.add(line.split()[0])
            made = re.match(r"(\d+) .*\bclone\b.* = (\d+)$", line)
            if made and made[1] in parents | children:
                children.add(made[2])
    return [calls[child] for child in sorted(children)]


@test
def silent_child():
    "a child without an event makes three system calls for pem, from the first child to the last"
    need_preload()
    need("strace")
    forks = compile_program(FORKS)
    alone = calls_of_children(forks, [forks, "5", "0", "0"], {"LD_PRELOAD": None})
    equal(alone, 5 * [["set_robust_list", "exit_group"]], "calls of children that nobody observes")
    recorded = calls_of_children(forks, [PEM, "record", "-q", "-o", os.path.join(tmp(), "trace"), "--", forks, "5", "0", "0"], environment())
    wanted = ["set_robust_list", "mremap", "mmap", "rt_sigprocmask", "exit_group"]
    equal([c for c in recorded if len(c) < 20], 5 * [wanted], "calls of recorded children")


# Calls fork's handlers itself, as Firefox does, around clone. In the child an event comes before pem's handler. Then the child maps
# memory, and takes a filter: all of it has to stay mapped.
OWN_FORK = """
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define PAGES 400
typedef void handler(void);
static handler *handlers[3][8];
static int count;
int __register_atfork(handler *prepare, handler *parent, handler *child, void *library)
{
	if (count == 8)
		abort();
	handlers[0][count] = prepare, handlers[1][count] = parent, handlers[2][count++] = child;
	return 0;
}
static void call(int which)
{
	for (int i = 0; i < count; i++)
		if (handlers[which][i])
			handlers[which][i]();
}
static void *volatile kept;
static void allocate(void) { free(kept = malloc(77)); }
int main(void)
{
	struct sock_filter all = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	struct sock_fprog program = {1, &all};
	pid_t *tid = (pid_t *)pthread_self();
	char *at[PAGES];
	int status, i, lost = 0;

	while (*tid != getpid()) /* the C library's copy */
		tid++;
	allocate();
	call(0);
	if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL)) {
		call(1);
		return count == 0 || wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status);
	}
	*tid = getpid();
	allocate();
	call(2);
	for (i = 0; i < PAGES; i++) {
		at[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		at[i][0] = 1;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	for (i = 0; i < PAGES; i++)
		lost += msync(at[i], 4096, MS_ASYNC) != 0;
	allocate();
	allocate();
	_exit(lost != 0);
}
"""


@test
def event_before_the_handler():
    "a child that had an event before pem's fork handler was called keeps the memory that it maps, and its number"
    need_preload()
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-e", MALLOC, "--where", "size == 77", "-o", trace, "--",
                      compile_program(OWN_FORK, flags=["-rdynamic"])], env=environment())
    equal(rc, 0, "status, with " + err)
    said = json.loads(run([PEM, "report", "--json", trace])[1])
    equal(sorted(p["count"] for p in said["processes"]), [1, 3], "events of parent and child")


@test
def silent_grandchild():
    "so does the child of a child that had events, as its parent had, however many children that had"
    need_preload()
    need("strace")
    source = FORKS.replace("i < count;", "i < (level ? count : 0);")
    forks = compile_program(source.replace("	int status, i;\n", "	int status, i;\n	if (level)\n		allocate(77);\n"))
    calls = calls_of_children(forks, [PEM, "record", "-q", "-e", MALLOC, "-o", os.path.join(tmp(), "trace"), "--", forks, "5", "3", "0", "1"], environment())
    wanted = ["set_robust_list", "mremap", "mmap", "rt_sigprocmask", "exit_group"]
    equal((sorted(c for c in calls if len(c) < 20), len(calls)), (5 * [wanted], 10), "calls of grandchildren, of %s" % [len(c) for c in calls])


def opened_by_parents(program, folder, out):
    """How often the parents opened a folder, in what strace wrote."""
    with open(out, encoding="utf-8") as file:
        lines = file.readlines()
    parents = {line.split()[0] for line in lines if 'execve("%s"' % program in line}
    return sum(line.split()[0] in parents and 'openat(AT_FDCWD, "%s", ' % folder in line for line in lines)


@test
def beside_an_observer():
    "beside a session that may want them children are complete at once, and their parent looks for it before fork 1, 2, 4, 8 and 16 alone"
    need_preload()
    need("strace")
    env, forks = environment(), compile_program(FORKS)
    files = lambda of: [name for name in os.listdir(env["PEM_RUNTIME_DIR"]) if name.startswith(of)]
    target = start([IDLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(env, **PRELOAD))
    equal((target.stdout.readline(), len(files("standby-"))), ("ready\n", 1), "the target, on standby")
    observer = start([PEM, "stat", "--json", "-e", MALLOC, "-p", str(target.pid)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    until(lambda: not files("standby-"), "the target is woken")
    opened = []
    for count in 1, 16:
        folder = tmp()
        children = calls_of_children(forks, [PEM, "record", "-q", "-o", folder + "/trace", "--", forks, str(count), "0", "0"], env, folder + "/strace")
        opened.append(opened_by_parents(forks, env["PEM_RUNTIME_DIR"], folder + "/strace"))
        equal(sum(len(calls) > 20 for calls in children), count, "children with a state of their own, of %s" % [len(calls) for calls in children])
    equal(opened[1] - opened[0], 4, "times that the folder was opened for 15 more forks")
    end(observer)
    target.communicate("", timeout=60)


@test
def counts():
    "all events of children that have some are counted, beside threads that allocate, too"
    need_preload()
    forks = compile_program(FORKS)
    equal(counted(forks, 20, 300, 0), 20 * 300, "of a program with one thread")
    equal(counted(forks, 20, 300, 4), 20 * 300, "of a program with five")


@test
def within_an_event():
    "a child that is forked at any instruction of an event takes nothing from its parent, and has its own later events"
    need_preload()
    if platform.machine() != "x86_64":
        skip("no trap flag here")
    trace = os.path.join(tmp(), "trace")
    rc, out, err = run([PEM, "record", "-q", "-e", MALLOC, "--where", "size >= 77 && size <= 78", "-o", trace, "--",
                        compile_program(STEPS)], env=environment())
    equal(rc, 0, "status, with " + err)
    children = int(out)
    assert children > 50, "instructions of an allocation: %d" % children
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report, with " + err)
    counts = sorted(p["count"] for p in json.loads(out)["processes"])
    equal((counts[-1], len(counts) - 1), (children + 2, children), "events of the parent, and children with events")
    equal(set(counts[:-1]), {3, 4}, "events of children: those after the fork, and the one that it was in or not")


@test
def grandchildren():
    "so are those of children's children, whether their parent had an event or not"
    need_preload()
    equal(counted(compile_program(FORKS), 5, 100, 0, 2), 3 * 5 * 100, "allocations")
    forks = compile_program(FORKS.replace("i < count;", "i < (level ? 0 : count);"))
    equal(counted(forks, 5, 100, 0, 2), 5 * 100, "allocations of the last ones alone")


@test
def parents_events():
    "what a parent counted before a fork is not counted again with its child's events"
    need_preload()
    forks = compile_program(FORKS.replace("	int status, i;\n", "	int status, i;\n	allocate(77);\n"))
    equal(counted(forks, 5, 3, 0), 5 * 3 + 5, "of a program with one thread")


@test
def other_threads_events():
    "nor what other threads of the parent counted, and a child with threads of its own counts theirs"
    need_preload()
    source = FORKS.replace("while (!stop) { void *volatile p = malloc(99); free(p); }", "for (int i = 0; i < 50; i++) { void *volatile p = malloc(77); free(p); }")
    joined = source.replace("	for (i = 0; i < children; i++)", "	for (i = 0; i < threads; i++)\n		pthread_join(thread[i], NULL);\n	threads = 0;\n"
                            "	for (i = 0; i < children; i++)")
    waiting = source.replace("return arg; }", "done++; while (!stop) usleep(1000); return arg; }").replace(
        "static volatile int stop;", "static volatile int stop;\nstatic _Atomic int done;").replace(
        "	for (i = 0; i < children; i++)", "	while (done < threads)\n		usleep(1000);\n	for (i = 0; i < children; i++)")
    in_child = source.replace("	for (i = 0; i < count; i++)", "	pthread_t own;\n	if (pthread_create(&own, NULL, work, NULL) || pthread_join(own, NULL))\n"
                              "		_exit(1);\n	for (i = 0; i < count; i++)")
    equal(counted(compile_program(joined), 5, 3, 4), 4 * 50 + 5 * 3, "of threads that have ended")
    equal(counted(compile_program(waiting), 5, 3, 4), 4 * 50 + 5 * 3, "of threads that wait")
    equal(counted(compile_program(in_child), 5, 3, 0), 5 * (50 + 3), "of children's threads")


@test
def another_pid_namespace():
    "a child in a pid namespace of its own, which is number 1 there, has its number outside, or one that no process has"
    need_preload()
    need("unshare")
    rc, _, err = run(["unshare", "-f", "-p", "true"])
    if rc:
        skip("no pid namespaces here: " + err.strip())
    source = "#define _GNU_SOURCE\n#include <sched.h>\n#include <stdio.h>\n" + FORKS.replace("	pid_t pid = fork();\n", """	pid_t pid;

	if (unshare(CLONE_NEWPID))
		return 1;
	pid = fork();
	if (pid > 0)
		dprintf(1, "%d\\n", pid);
""")
    trace = os.path.join(tmp(), "trace")
    rc, out, err = run([PEM, "record", "-q", "-e", MALLOC, "--where", "size == 77", "-o", trace, "--", compile_program(source), "1", "50", "0"], env=environment())
    equal(rc, 0, "status, with " + err)
    child = int(out.split()[0])
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report, with " + err)
    found = {p["pid"]: p["count"] for p in json.loads(out)["processes"] if p["count"] >= 50}
    unknown = 0x40000000  # from this number on nothing is claimed (pem/trace.h)
    equal([(child if pid >= unknown else pid, count) for pid, count in found.items()], [(child, 50)], "processes with events")


@test
def balance():
    "a record of such a program balances, and has a process for each child that had events"
    need_preload()
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-e", MALLOC, "-o", trace, "--", compile_program(FORKS), "30", "50", "0"],
                     env=environment())
    equal(rc, 0, "status, with " + err)
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report, with " + err)
    equal([p["count"] for p in json.loads(out)["processes"]].count(50), 30, "children with 50 events")


class Kept:
    """A recorded program that allocates, and its child, which has had no event."""

    def __init__(self):
        need_preload()
        self.env = environment()
        self.out = os.path.join(tmp(), "out")
        talk = os.path.join(tmp(), "talk")
        os.mkfifo(talk)
        self.both = os.fdopen(os.open(talk, os.O_RDWR), "w", buffering=1, encoding="utf-8")
        self.child = start([PEM, "stat", "-q", "--json", "-o", self.out, "-e", MALLOC, "--where", "size == 77", "--", "sh", "-c",
                            "echo $$; exec %s <%s" % (IDLE, talk)], stdout=subprocess.PIPE, text=True, env=self.env)
        self.pid = int(self.child.stdout.readline())
        equal(self.child.stdout.readline(), "ready\n", "idle")
        self.ask("alloc 1")
        self.ask("keep")
        with open("/proc/%d/task/%d/children" % (self.pid, self.pid), encoding="utf-8") as f:
            self.kept = int(f.read())
        equal(self.files("control-%d-" % self.kept), [], "files of the child")

    def files(self, of):
        return [n for n in os.listdir(self.env["PEM_RUNTIME_DIR"]) if n.startswith(of)]

    def ask(self, what):
        self.both.write(what + "\n")
        equal(self.child.stdout.readline(), "ready\n", what)

    def later(self, *target):
        """pem stat of what runs already, once it has woken what waits."""
        counter = start([PEM, "stat", "--json", "-e", MALLOC, "--where", "size == 77", *target], text=True,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env)
        until(lambda: not self.files("standby-"), "the file is gone")
        return counter

    def first(self):
        """The count of the first session, after its end."""
        self.both.close()
        equal(self.child.wait(), 0, "status of the first session")
        with open(self.out, encoding="utf-8") as f:
            return json.load(f)["events"][0]["count"]


def end(counter, how=signal.SIGINT):
    """Its count; how None: the process that it counts ends."""
    if how:
        counter.send_signal(how)
    out, err = counter.communicate(timeout=60)
    equal(counter.returncode, 0, "status, with " + err)
    return json.loads(out)["events"][0]["count"]


@test
def later_session():
    "a later session that attaches to such a child counts what it does, and the first session counts all"
    kept = Kept()
    counter = kept.later("-p", str(kept.kept))
    kept.ask("child 1")
    until_served(kept.env["PEM_RUNTIME_DIR"], kept.kept, counter.pid)
    kept.ask("child 500")
    kept.ask("alloc 30")
    count = end(counter)
    assert 500 <= count <= 501, count
    equal(kept.first(), 1 + 1 + 500 + 30, "count of the first session")


@test
def parent_with_a_filter():
    "a filter of which nobody told pem, in the parent, does not keep later sessions from the child, which has none"
    kept = Kept()
    kept.ask("filter")
    counter = kept.later("-p", str(kept.kept))
    kept.ask("child 1")
    until(lambda: kept.files("control-%d-" % kept.kept), "the child's control file")
    counter.send_signal(signal.SIGINT)
    _, err = counter.communicate(timeout=60)
    equal((counter.returncode, "might end it" in err), (0, False), "status, with " + err)
    equal(kept.first(), 1 + 1, "count of the first session")


@test
def parent_observed_by_a_later_session():
    "a child that is forked after a later session has attached to its parent is that session's as well, as later children of a parent are that had one before"
    kept = Kept()
    counter = kept.later("-p", str(kept.pid))
    kept.ask("alloc 1")
    until_served(kept.env["PEM_RUNTIME_DIR"], kept.pid, counter.pid)
    kept.ask("keep")
    kept.ask("child 500")
    kept.ask("alloc 30")
    count = end(counter)
    assert 530 <= count <= 531, count
    equal(kept.first(), 1 + 1 + 500 + 30, "count of the first session")


@test
def parent_with_a_known_filter():
    "a filter that its parent took, of which pem was told, does not end a child at its first event, and its events are counted, or counted as lost"
    need_preload()
    rc, out, err = run(["sh", "-c", "printf 'alloc 1\\ntold\\nkeep\\nchild 20\\n' | exec \"$@\"", "sh", PEM, "stat", "--json", "-e", MALLOC, "--where",
                        "size == 77", "--", IDLE], env=environment())
    lost = re.search(r"lack (\d+) events", err)
    equal((rc, json.loads(out[out.index("{"):])["events"][0]["count"] + int(lost[1] if lost else 0)), (0, 1 + 20), "status, and events counted or lost, with " + err)


@test
def beside_a_recording_of_another_program():
    "beside a recording of a program that it started children cost as little as alone"
    need_preload()
    need("strace")
    env, forks = environment(), compile_program(FORKS)
    other = start([PEM, "record", "-q", "-o", os.path.join(tmp(), "other"), "--", IDLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    equal(other.stdout.readline(), "ready\n", "the other program")
    calls = calls_of_children(forks, [PEM, "record", "-q", "-o", os.path.join(tmp(), "trace"), "--", forks, "5", "0", "0"], env)
    equal([len(c) for c in calls], 5 * [5], "calls of children")
    other.communicate("", timeout=60)
    equal(other.returncode, 0, "status of the other recording")


@test
def outlives_parent_and_session():
    "so does a session that comes when the child's parent and its session have ended"
    need_preload()
    env = environment()
    stays = compile_program("""
        #include <fcntl.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <unistd.h>
        static void *volatile kept;
        int main(int argc, char *argv[])
        {
            char c;
            int i, pid;

            free(kept = malloc(77));
            pid = fork();
            if (pid) {
                printf("%d\\n", pid);
                return 0;
            }
            close(1);
            close(2);
            if (open(argv[1], O_RDWR) != 1)
                _exit(1);
            while (read(1, &c, 1) == 1 && c != 'e')
                for (i = 0; i < (c == '1' ? 1 : 500); i++)
                    free(kept = malloc(77));
            _exit(0);
        }""")
    talk = os.path.join(tmp(), "talk")
    os.mkfifo(talk)
    rc, out, err = run([PEM, "stat", "-q", "-o", os.devnull, "-e", MALLOC, "--where", "size == 77", "--", stays, talk], env=env)
    equal(rc, 0, "status, with " + err)
    pid = int(out)
    files = lambda of: [n for n in os.listdir(env["PEM_RUNTIME_DIR"]) if n.startswith(of)]
    try:
        equal((len(files("standby-")), files("control-")), (1, []), "files after the session")
        counter = start([PEM, "stat", "--json", "-e", MALLOC, "--where", "size == 77", "-p", str(pid)], text=True,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        until(lambda: not files("standby-"), "the file is gone")
        with open(talk, "w", buffering=1, encoding="utf-8") as ask:
            ask.write("1")
            ask.flush()
            until_served(env["PEM_RUNTIME_DIR"], pid)
            ask.write("5e")
        count = end(counter, None)
        assert 500 <= count <= 501, count
    finally:
        # Asked to end, it may have been waited for by whoever adopted it.
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


run_all()
