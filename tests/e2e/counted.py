# SPDX-License-Identifier: MIT
"""counted: COUNTERS@EVENTS, counters that a program's threads read at its events, and what pem report makes of them"""
import json
import os

from tap import BUILD, PEM, ROOT, equal, need, run, run_all, skip, test, tmp

READING = "HW::HWPerf::HPMsInThread"
# Phases that touch so many pages: five of 1000, in a thread three of 500, in a child one of 300. It prints how many descriptors are
# open in the end.
PHASES = r"""#define _GNU_SOURCE
#include <stubs/phase.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void touch(const char *name, size_t pages)
{
	char *p = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(p, pages * 4096, MADV_NOHUGEPAGE);
	pem_notify_phase_begin(name);
	for (size_t i = 0; i < pages; i++)
		p[i * 4096] = 1;
	pem_notify_phase_end(name);
	munmap(p, pages * 4096);
}
static void *thread(void *arg)
{
	for (int i = 0; i < 3; i++)
		touch("thread", 500);
	return arg;
}
int main(void)
{
	int count = 0;
	pthread_t t;
	DIR *d;

	for (int i = 0; i < 5; i++)
		touch("main", 1000);
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	if (!fork()) {
		touch("child", 300);
		_exit(0);
	}
	wait(NULL);
	for (d = opendir("/proc/self/fd"); readdir(d);)
		count++;
	printf("%d\n", count);
	return 0;
}
"""


def program(text=PHASES):
    need("gcc")
    source, path = os.path.join(tmp(), "phases.c"), os.path.join(tmp(), "phases")
    with open(source, "w", encoding="ascii") as out:
        out.write(text)
    rc, _, err = run(["gcc", "-O2", "-I", ROOT + "/spec/abi", "-I", BUILD + "/gen", "-o", path, source, "-ldl", "-lpthread"])
    equal(rc, 0, "compiler (%s)" % err)
    return path


def record(*words, status=0, env=None):
    """The trace, what the program printed, and what pem said."""
    trace = os.path.join(tmp(), "trace")
    rc, out, err = run([PEM, "record", "-o", trace, *words], env=env)
    equal(rc, status, "status (%s)" % err)
    return trace, out, err


def report(trace):
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status (%s)" % err)
    return json.loads(out)


@test
def phases_of_threads():
    "page faults of each phase are the pages that it touched, by thread; a child counts for itself"
    trace, _, err = record("-q", "-e", "page-faults+task-clock@phase", "--", program())
    if "PageFaults" in err:
        skip(err)
    told = report(trace)
    equal(told["info"]["balanced"], True, "balanced")
    rows = {row["interval"]: row for row in told["counted"] if "tid" not in row}
    equal(sorted(rows), ["child", "main", "thread"], "intervals")
    for name, times, pages in (("main", 5, 5000), ("thread", 3, 1500), ("child", 1, 300)):
        equal(rows[name]["times"], times, "times of " + name)
        equal(rows[name]["known"], {"PageFaults": times, "TaskClock": times}, "known of " + name)
        # The reading's own chunk may be new.
        assert pages <= rows[name]["sum"]["PageFaults"] <= pages + 20, rows[name]
        assert rows[name]["sum"]["TaskClock"] > 0, rows[name]
    threads = {row["interval"]: (row["pid"], row["tid"]) for row in told["counted"] if "tid" in row}
    equal(threads["main"][0], threads["thread"][0], "process of the thread")
    assert threads["main"][1] != threads["thread"][1] and threads["child"][0] != threads["main"][0], threads
    text = run([PEM, "report", trace])[1]
    assert "Counted by threads" in text and "PageFaults" in text, text
    phases = text[text.index("\nPhases\n"):]
    assert "HW" not in phases[:phases.index("\n\n")], "readings are no events inside: " + phases


# For a second of CPU time, phases of some microseconds.
SHORT = r"""#include <stubs/phase.h>
#include <time.h>
int main(void)
{
	while (clock() < CLOCKS_PER_SEC)
		for (int i = 0; i < 100; i++) {
			pem_notify_phase_begin("short");
			for (volatile int k = 0; k < 1000; k++)
				;
			pem_notify_phase_end("short");
		}
	return 0;
}
"""


@test
def what_readings_cost():
    "the ledger has the readings, and what each takes: a reading by system call more than a record"
    trace, _, err = record("-q", "-e", "page-faults@phase", "--", program())
    if "PageFaults" in err:
        skip(err)
    told = report(trace)
    kinds = {kind["kind"]: kind for kind in told["cost"]["kinds"]}
    readings = next(event["count"] for event in told["per_event"] if event["name"] == READING)
    equal(kinds["reading"]["count"], readings, "readings in the ledger")
    assert kinds["reading"]["ns_each"] > kinds["user-log"]["ns_each"] > 0, kinds


@test
def a_budget_has_readings_in_it():
    "of a budget that plain phases keep, phases with counters are counted instead of logged, and take no readings then"
    need("gcc")
    path, wanted = program(SHORT), ("Phase*", "page-faults+task-clock+cs@phase")
    # All recordings have the same costs of events, as they were measured for the first one.
    env = {"XDG_CACHE_HOME": tmp()}
    plain, counted = (report(record("-q", "-e", events, "--", path, env=env)[0]) for events in wanted)
    if not any(event["name"] == READING for event in counted["per_event"]):
        skip("nothing is counted here: %s" % counted["gaps"])
    shares = [told["cost"]["share_percent"] for told in (plain, counted)]
    assert 3 * shares[0] < shares[1], "shares of plain and of counted phases: %r" % shares
    budget = ("-q", "--budget", "%.1f%%" % (shares[0] * shares[1]) ** 0.5)
    plain, counted = (report(record(*budget, "-e", events, "--", path, env=env)[0]) for events in wanted)
    equal(plain["detail"]["reduced"], [], "reduced of plain phases")
    reduced = {event["event"]: event for event in counted["detail"]["reduced"]}
    equal(sorted(reduced), ["APP::Phase::Begin", "APP::Phase::End"], "reduced of counted phases")
    logged = {event["name"]: event["count"] for event in counted["per_event"]}
    equal(logged[READING], logged["APP::Phase::Begin"] + logged["APP::Phase::End"], "readings of logged phases")
    equal(counted["info"]["balanced"], True, "balanced")


@test
def of_the_program_alone():
    "what a thread can't have read of the program or the kernel alone is refused with a sentence, and the rest is counted"
    trace, _, err = record("-e", "page-faults:u+page-faults@phase", "--", program())
    assert "page-faults:u can't be read by a thread" in " ".join(err.split()), err
    rows = {row["interval"]: row for row in report(trace)["counted"] if "tid" not in row}
    equal((rows["main"]["known"]["page-faults:u"], rows["main"]["known"]["PageFaults"]), (0, 5), "known of main")


@test
def the_program_is_as_it_was():
    "no descriptor is left in the program, and it ends as it would"
    path = program()
    plain = run([path])
    rc, out, err = run([PEM, "record", "-q", "-e", "page-faults+instructions@phase", "-o", os.path.join(tmp(), "trace"), "--", path])
    # The session's own descriptors are not its: there are none, either.
    equal((rc, out), (0, plain[1]), "status and output (%s)" % err)


@test
def readings_are_in_front_of_their_events():
    "each event that was asked for has a reading just before it, with its id, in its thread; values never fall"
    trace, _, _ = record("-q", "-e", "page-faults@phase", "--", program())
    rc, out, err = run([PEM, "export", "--to", "csv", "-o", "-", trace])
    equal(rc, 0, "status (%s)" % err)
    lines = [line.split(",") for line in out.splitlines()]
    head, last, count, values = lines[0], {}, 0, {}
    for line in lines[1:]:
        row = dict(zip(head, line))
        if row["event"] == READING:
            last[row["tid"]] = row["eventId"]
            value = int(row["counterValues"].partition("=")[2])
            assert row["counterValues"].startswith("PageFaults=") and value >= values.get(row["tid"], 0), row
            values[row["tid"]] = value
        else:
            assert last.pop(row["tid"], None), row
            count += 1
    equal(count, 18, "events")


@test
def any_event_of_a_program():
    "COUNTERS@EVENT takes events that are no intervals: what the thread counted since the one before"
    trace, _, _ = record("-q", "-e", "page-faults@Malloc", "--", "ls", "/")
    rows = [row for row in report(trace)["counted"] if "tid" not in row]
    equal([row["event"] for row in rows], ["APP::Libc::Malloc"], "rows")
    assert rows[0]["times"] > 50 and rows[0]["known"]["PageFaults"] == rows[0]["times"], rows


@test
def counters_that_are_not_here():
    "without a PMU a sentence says so, and the rest is recorded; other counters of the same list are read"
    trace, _, err = record("-e", "ipc+page-faults@phase", "--", program())
    told = report(trace)
    equal(next(e["count"] for e in told["per_event"] if e["name"] == "APP::Phase::Begin"), 9, "phases")
    if "can't be" not in err:
        rows = {row["interval"]: row["sum"] for row in told["counted"] if "tid" not in row}
        assert rows["main"]["Instructions"] > rows["main"]["PageFaults"], rows
        return
    assert "Cycles can't be" in err, err
    assert any("Cycles can't be" in gap["reason"] for gap in told["gaps"]), told["gaps"]
    rows = [row["sum"] for row in told["counted"] if "tid" not in row]
    assert rows and all(list(row) == ["PageFaults"] for row in rows), rows


FILTER = r"""#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
static void *volatile kept;
static void *raise_some(void *arg)
{
	for (int i = 0; i < 100; i++) {
		kept = malloc(100);
		free(kept);
	}
	return arg;
}
int main(int argc, char **argv)
{
	unsigned int number = argc > 1 ? (unsigned int)atoi(argv[1]) : 0;
	struct sock_filter kill[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
				     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {4, kill};
	pthread_t thread;

	raise_some(NULL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		return 1;
	raise_some(NULL);
	pthread_create(&thread, NULL, raise_some, NULL);
	pthread_join(thread, NULL);
	puts("alive");
	return 0;
}
"""
VFORK = r"""#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
int main(void)
{
	char *p = mmap(NULL, 5000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(p, 5000 * 4096, MADV_NOHUGEPAGE);
	kept = malloc(10);
	for (int i = 0; i < 5000; i++)
		p[i * 4096] = 1;
	kept = malloc(10);
	for (int i = 0; i < 10; i++) {
		if (vfork() == 0) {
			kept = malloc(10);
			_exit(0);
		}
		wait(NULL);
		kept = malloc(10);
	}
	return 0;
}
"""


def built(name, text):
    need("gcc")
    source, path = os.path.join(tmp(), name + ".c"), os.path.join(tmp(), name)
    with open(source, "w", encoding="ascii") as out:
        out.write(text)
    rc, _, err = run(["gcc", "-O1", "-o", path, source, "-lpthread"])
    equal(rc, 0, "compiler (%s)" % err)
    return path


@test
def filters_of_system_calls():
    "a program whose filter kills for what reading counters takes is not killed"
    path = built("filter", FILTER)
    for number in ({"x86_64": (98, 228, 298, 186), "aarch64": (165, 113, 241, 178)}[os.uname().machine]):
        if run([path, str(number)])[0]:
            continue  # it makes the call itself
        trace = os.path.join(tmp(), "trace-%d" % number)
        rc, out, err = run([PEM, "record", "-q", "-e", "PageFaults+TaskClock@APP::Libc::Malloc", "-o", trace, "--", path, str(number)])
        equal((rc, out), (0, "alive\n"), "status and output with %d (%s)" % (number, err))


@test
def a_child_of_vfork():
    "what a child of vfork counts is not its parent's"
    trace, _, _ = record("-q", "-e", "PageFaults@APP::Libc::Malloc", "--", built("vfork", VFORK))
    rows = [row for row in report(trace)["counted"] if "tid" not in row]
    assert 5000 <= rows[0]["sum"]["PageFaults"] < 5100, rows


@test
def wrong_words():
    "misspelt counters, empty sides and events of the kernel are refused with what would do; stat has no such events"
    for words, said in ((["-e", "page-fults@phase"], "PageFaults"), (["-e", "@phase"], "empty name"), (["-e", "ipc@"], "empty name"),
                        (["-e", "page-faults@OS::Sched::Switch"], "--counters"), (["-e", "page-faults@Nothing"], "no event matches")):
        rc, _, err = run([PEM, "record", "-o", os.path.join(tmp(), "none"), *words, "--", "true"])
        equal(rc, 1, "status of %r (%s)" % (words, err))
        assert said in err, (words, err)
        assert not os.path.exists(os.path.join(tmp(), "none")), words
    rc, _, err = run([PEM, "stat", "-e", "page-faults@phase", "--", "true"])
    equal(rc, 1, "status of stat")
    assert "pem record" in err, err


run_all()
