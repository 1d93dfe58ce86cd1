# SPDX-License-Identifier: MIT
"""page_size_agent: pem page-size on programs whose best page sizes are known, by a fixed calibration, so that answers are exact"""
import json
import os
import shutil
import subprocess

from page_size import MACHINE, SHAPES, Home, chosen, shape
from preload import compile_program
from tap import PEM, equal, need, run, run_all, skip, test

LONG_S = 75


@test
def the_hot_table_is_chosen_and_the_cold_one_is_not():
    "of two tables of one size the one that is used at random gains, under a budget for one"
    plan = Home().plan(*shape("hot-and-cold"), options=("--budget", "33M"))
    equal(len(chosen(plan)), 1, plan["sites"])
    hot = max(plan["sites"], key=lambda site: site["saved_alone_ms"])
    assert hot["page_size"] == 2 << 20 and hot["bytes"] == 32 << 20, hot
    # Its share of page walks with small pages; those of all sites and the rest are 1.
    assert hot["misses"] > 0.5 and abs(sum(site["misses"] for site in plan["sites"]) - 1) < 1e-6, plan["sites"]
    assert "hot_and_cold" in hot["name"] and "page_shapes.c" in hot["name"], hot
    assert plan["large_bytes"] <= 33 << 20 and plan["gain_percent"] > 5, plan


@test
def a_table_larger_than_the_budget_has_large_pages_in_part():
    "the site that gains most for its pages has what the budget allows, and no more"
    home = Home()
    plan = home.plan(*shape("maps", 3), options=("--budget", "8M"))
    site, = [site for site in plan["sites"] if site["page_size"] > 4096]
    equal((site["large_bytes"], plan["large_bytes"]), (8 << 20, 8 << 20), "bytes of large pages")
    assert "in part" in site["reason"] and site["key"].startswith("map "), site
    assert 0.15 < plan["saved_ms"] / site["saved_alone_ms"] < 0.35, plan
    home.agent(*shape("maps", 3), options=("--budget", "8M"))
    rc, _, err = home.run("apply", "--", *shape("maps", 3))
    assert rc == 0 and "had small pages" not in err, err
    equal([large for large in home.large_pages() if large > 8 << 20], [], "bytes of large pages in a run")
    with open("/sys/kernel/mm/transparent_hugepage/enabled") as words:
        if "[never]" in words.read():
            skip("the kernel gives no large pages")
    assert home.large_pages() == [8 << 20], home.large_pages()


@test
def one_line_in_each_large_page_is_refused():
    "a large page for one line saves no entry of a TLB, and costs 2 MiB"
    plan = Home().plan(*shape("sparse", 2, 4096))
    equal(chosen(plan), [], "chosen")


@test
def what_the_first_level_reaches_gains_nothing():
    "a hot structure within the first TLB level gets no large pages, however hot it is"
    plan = Home().plan(*shape("in-reach", 8))
    equal(chosen(plan), [], plan["sites"])


@test
def computing_gains_nothing():
    "a program that computes, and gzip, have nothing to gain"
    home = Home()
    equal(chosen(home.plan(*shape("compute", 8))), [], "compute")
    with open(home.folder + "/input", "wb") as out:
        out.write(b"one two three, and again " * 20000)
    equal(chosen(home.plan("gzip", "-k", "-c", home.folder + "/input")), [], "gzip")


@test
def of_two_phases_the_longer_one_is_chosen():
    "with room for one of two tables that are used one after the other, the one that is used more gets it"
    plan = Home().plan(*shape("two-phases", 4), options=("--budget", "33M"))
    equal(len(chosen(plan)), 1, plan["sites"])
    assert plan["sites"][0]["page_size"] > 4096 and plan["sites"][0]["references"] > plan["sites"][1]["references"], plan
    both = Home().plan(*shape("two-phases", 4))
    equal(len(chosen(both)), 2, both["sites"])


@test
def strides_of_a_power_of_two():
    "columns of a matrix touch a new small page each time"
    assert chosen(Home().plan(*shape("strides"))), "chosen"


@test
def short_lived_buffers():
    "buffers that live for some references are one site, of the memory that it has at one time"
    plan = Home().plan(*shape("short-lived"))
    assert plan["sites"][0]["bytes"] < 8 << 20, plan["sites"]


@test
def callers_of_a_wrapper_are_told_apart():
    "a hot and a cold table that come from one xmalloc are two sites, by two frames"
    plan = Home().plan(*shape("wrapper"), options=("--budget", "33M"))
    site, = [site for site in plan["sites"] if site["page_size"] > 4096]
    assert "xmalloc" in site["name"] and " < wrapper" in site["name"], site
    equal(site["key"].count("+"), 2, "frames")


@test
def other_memory_than_the_heap():
    "mmap, static data and tables that grow by realloc are sites, too"
    for name, kind in (("maps", "map "), ("statics", "data "), ("grows", "heap ")):
        plan = Home().plan(*shape(name))
        assert plan["sites"][0]["key"].startswith(kind) and plan["sites"][0]["page_size"] > 4096, (name, plan["sites"])


@test
def a_list_in_random_order_is_waited_for():
    "references whose address the one before has loaded are chained"
    plan = Home().plan(*shape("chain"))
    most = max(plan["sites"], key=lambda site: site["saved_alone_ms"])
    assert most["chained"] > 0.5 and most["page_size"] > 4096 and most["bytes"] == 32 << 20, most


@test
def threads_share_a_table():
    "a table of two threads gains, their own small ones don't"
    plan = Home().plan(*shape("threads", 4))
    equal(len(chosen(plan)), 1, plan["sites"])


@test
def copies_after_fork_are_weighed():
    "a table that gains is left small where the program forks a hundred times and goes on writing"
    plan = Home().plan(*shape("forks", 1, 80))
    equal(plan["forks"], 100, "forks")
    equal(chosen(plan), [], plan["sites"])
    table = max(plan["sites"], key=lambda site: site["bytes"] * site["references"])
    assert "forks" in table["reason"], table
    equal(Home().plan(*shape("maps", 1, 32))["forks"], 0, "forks")


@test
def small_blocks_are_left_to_the_c_library():
    "a site of a million small blocks loses more by a slower allocator than it gains"
    plan = Home().plan(*shape("small-blocks", 1, 16))
    site = max(plan["sites"], key=lambda site: site["blocks"])
    assert 990000 <= site["blocks"] <= 1000000 and site["page_size"] == 4096, site


@test
def what_a_script_becomes_is_observed():
    "a launcher that ends in exec is its program; what it starts beside is not observed"
    home = Home()
    script = home.folder + "/launcher"
    with open(script, "w") as out:
        out.write("#!/bin/sh\ngzip -c < /bin/sh > /dev/null\nexec %s maps 2 32\n" % SHAPES)
    os.chmod(script, 0o755)
    plan = home.plan(script)
    assert plan["sites"][0]["key"].startswith("map ") and "page_shapes.c" in plan["sites"][0]["name"], plan["sites"]
    assert [name for name in os.listdir(home.folder) if name.startswith("profile.")] == [], os.listdir(home.folder)
    rc, _, err = home.run("profile", "-o", home.folder + "/profile", "--", "true")
    assert rc == 1 and "exists" in err, err


@test
def what_observes_is_not_observed():
    "a command that is Valgrind, or becomes it, runs as ever, though no two of its tools fit into one process"
    for command in (["valgrind", "-q", "--tool=none", "echo", "ran"], ["sh", "-c", "exec valgrind -q --tool=none echo ran"]):
        rc, out, err = Home().agent(*command)
        equal((rc, out), (0, "ran\n"), "exit status and output of %s, which said %s" % (command, err))


@test
def other_mappings_are_weighed():
    "model says what a given choice would save: the hot site's large pages do, the cold one's cost more than they save"
    home = Home()
    plan = home.plan(*shape("hot-and-cold"), options=("--mapping", "1", "--mapping", "01", "--mapping", "11", "--mapping", ""))
    first, second, both, none = (m["saved_ms"] for m in plan["mappings"])
    hot, cold = max(first, second), min(first, second)
    assert hot > 0 > cold and none == 0 and 0 < both < hot, plan["mappings"]
    rc, _, err = home.run("model", home.folder + "/profile", "--machine", home.machine, "--mapping", "2")
    assert rc == 1 and "from 0 to 1" in err, err
    rc, _, err = home.run("model", home.folder + "/profile", "--machine", home.machine, "--mapping", "1" * 70)
    assert rc == 1 and "70 digits" in err, err


@test
def the_first_run_proposes_and_later_ones_apply():
    "run observes, then tries large pages by chance; the output is the program's, and smaps proves the pages"
    home, command = Home(), shape("hot-and-cold")
    truth = run(command)[1]
    rc, out, err = home.agent(*command)
    equal((rc, out), (0, truth), err)
    assert "observed" in err and "predicted gain" in err, err
    state = [d["state"] for d in home.show()]
    assert "on trial" in state, state
    assert all(d["predicted_low"] < d["predicted"] < d["predicted_high"] for d in home.show() if d["state"] == "on trial")
    for _ in range(12):
        rc, out, err = home.agent(*command)
        equal((rc, out), (0, truth), err)
        if ", with large pages" in err:
            break
    assert ", with large pages" in err, err
    large = home.large_pages()
    with open("/sys/kernel/mm/transparent_hugepage/enabled") as words:
        if "[never]" in words.read():
            skip("the kernel gives no large pages")
    assert large[0] >= 16 << 20, large


@test
def apply_is_no_evidence_and_forget_takes_it_back():
    "apply gives large pages at once, and does not count as a run to compare; after forget the command is observed anew"
    home, command = Home(), shape("hot-and-cold")
    home.agent(*command)
    for _ in range(3):
        rc, _, err = home.run("apply", "--", *command)
        assert rc == 0 and ", with large pages" in err, err
    rc, out, _ = run([PEM, "db", "show", "evidence", "--json"], env={"PEM_DB": home.folder + "/cpo.db"})
    equal({e["role"] for e in json.loads(out)}, {"basis"}, "evidence")
    rc, out, err = home.run("forget", SHAPES)
    assert rc == 0 and "forgotten" in out, err
    equal(home.show(), [], "directives")
    assert "observed" in home.agent(*command)[2]


@test
def nothing_to_gain_is_said_once():
    "a program without gain is observed once and runs alone then"
    home = Home()
    rc, _, err = home.agent(*shape("compute", 8))
    assert rc == 0 and "nothing to gain" in err, err
    rc, _, err = home.agent(*shape("compute", 8))
    assert rc == 0 and "runs alone" in err and "Valgrind" not in err, err
    # Nothing of the agent is beside it: the command is the agent's process, but for the first time with its arguments.
    command = ("sh", "-c", "test $PPID = %d" % os.getpid())
    for _ in range(3):
        rc, _, err = home.agent(*command)
    assert rc == 0 and "runs alone" in err, (rc, err)


@test
def a_larger_input_is_observed_anew():
    "an input has nothing to gain; one that takes far more memory makes the next run an observed one"
    home = Home()
    assert "nothing to gain" in home.agent(*shape("compute", 8, 1))[2]
    # Many times as much, but little: it is no other input.
    rc, _, err = home.agent(*shape("maps", 2, 60))
    assert rc == 0 and "far more than" not in err, err
    rc, _, err = home.agent(*shape("maps", 2, 256))
    assert rc == 0 and "far more than" in err, err
    rc, _, err = home.agent(*shape("maps", 2, 256))
    assert rc == 0 and "observed" in err and "predicted gain" in err, err
    rc, _, err = home.agent(*shape("maps", 2, 256))
    assert "far more than" not in err and "observed" not in err, err
    # Much more, but not many times as much.
    rc, _, err = home.agent(*shape("maps", 2, 512))
    assert rc == 0 and "far more than" not in err, err


@test
def a_longer_input_is_observed_anew():
    "a run that works ten times as long as what was observed, where nothing was to gain, has its next one observed, and once"
    home = Home()
    assert "nothing to gain" in home.agent(*shape("compute", 8, 1))[2]
    rc, _, err = home.agent(*shape("compute", 600, 1))
    assert rc == 0 and "far longer than" in err, err
    # Another's next run is not the one.
    assert "observed" not in home.agent(*shape("compute", 1, 1))[2]
    rc, _, err = home.agent(*shape("compute", 600, 1))
    assert rc == 0 and ", observed:" in err, err
    rc, _, err = home.agent(*shape("compute", 600, 1))
    assert rc == 0 and "far longer than" not in err and "runs alone" in err or "without large pages" in err, err


@test
def a_killed_run_is_not_the_last_word():
    "after an observed run that was killed before it did much, one that works far longer has its next one observed"
    home = Home()
    rc, _, err = home.agent("sh", "-c", "sh -c 'kill -KILL $PPID'; exit 3")
    assert rc == 137 and "nothing to gain" in err, (rc, err)
    rc, _, err = home.agent("sh", "-c", "exec \"$@\"", "sh", *shape("compute", 600, 1))
    assert rc == 0 and "far longer than" in err, (rc, err)


def until(home, command, word, runs=8):
    "Run until the agent says a word, and return what it said."
    for _ in range(runs):
        rc, _, err = home.agent(*command)
        assert rc == 0, err
        if word in err:
            break
    return err


@test
def other_data_are_observed_anew():
    "after runs at the data that were observed, one whose time goes to others has its next one observed; short ones don't count"
    home, observed, other = Home(), shape("hot-and-cold", 60), shape("wrapper", 60)
    said = home.agent(*observed)[2]
    if "no timer samples" in said:
        skip(said)
    # Nobody has seen yet that time goes as references do.
    assert "at the chosen data" not in until(home, other, ", with large pages:"), said
    for command in observed, shape("wrapper", 1):
        said = until(home, command, ", with large pages:")
        assert ", with large pages:" in said and "at the chosen data" not in said, said
    said = until(home, other, "at the chosen data")
    assert "observed anew" in said, said
    rc, _, err = home.agent(*other)
    assert rc == 0 and ", observed:" in err, err
    equal([d["name"] for d in home.show() if d["state"] == "on trial"][0][:7], "xmalloc", "site on trial")
    # What was at other data then is no witness for these.
    assert "at the chosen data" not in until(home, observed, ", with large pages:"), "the first run after it"


@test
def children_are_not_taken_for_the_command():
    "a command most of whose time its children take may be at other data"
    home, hot = Home(), shape("hot-and-cold", 60)
    script = home.folder + "/script"
    with open(script, "w") as out:
        out.write("#!/bin/sh\n[ $# = 0 ] && exec %s\n%s compute 800 1 >%s/sums\ni=0\nwhile [ $i -lt 500000 ]; do i=$((i+1)); done\n"
                  % (" ".join(hot), SHAPES, home.folder))
    os.chmod(script, 0o755)
    said = home.agent(script)[2]
    if "no timer samples" in said:
        skip(said)
    assert "predicted gain" in said, said
    assert ", with large pages:" in until(home, [script], ", with large pages:")
    for _ in range(4):
        rc, _, err = home.agent(script, "more")
        assert rc == 0 and "anew" not in err, err


@test
def scripts_of_an_interpreter():
    "after a script that did nothing, one that walks through much is observed, and has large pages on trial"
    need("perl")
    home, command = Home(), ["perl", "-e", "srand 1; my @a = (1..600000); $a[rand @a] += $a[rand @a] for 1..2000000"]
    rc, _, err = home.agent("perl", "-e", "1")
    assert rc == 0 and "nothing to gain" in err and "short run" in err, err
    said = home.agent(*command)[2]
    assert "far longer than" in said or "far more than" in said, said
    rc, _, err = home.agent(*command)
    assert rc == 0 and ", observed:" in err and "predicted gain" in err, err


@test
def what_was_observed_and_can_not_be_read_is_said():
    "a database that fails as the run is compared with what was observed is no silent 'nothing has changed'"
    home = Home()
    sqlite = shutil.which("sqlite3")
    if not sqlite:
        skip("sqlite3 is not installed")
    home.agent("sh", "-c", "true")
    rc, _, err = home.agent("sh", "-c", "%s %s/cpo.db 'drop table metric'" % (sqlite, home.folder))
    assert rc == 0 and "what was observed can't be read" in err, (rc, err)


# A table of 64 MiB that is used at random; then it waits for a file, if it has a name of one.
PATIENT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words)
{
	unsigned char *p;
	unsigned x = 1, sum = 0;
	if (count > 1 && words[1][0]) {
		puts("waiting"), fflush(stdout);
		while (access(words[1], F_OK))
			usleep(10000);
	}
	p = malloc(64 << 20);
	for (int i = 0; i < 4000000; i++) {
		x = x * 1664525 + 1013904223;
		sum += p[x % (64 << 20)]++;
	}
	return sum == 1;
}"""


@test
def a_treated_run_leases_its_large_pages():
    "while a treated run lives the others see in the database what it means to use; nothing is left of it, however it ended"
    home, program = Home(), compile_program(PATIENT)
    database = {"PEM_DB": home.folder + "/cpo.db"}

    def leases():
        rc, out, err = run([PEM, "db", "show", "lease", "--json"], env=database)
        equal(rc, 0, err)
        return json.loads(out)

    assert "predicted gain" in home.agent(program)[2]
    for killed in (False, True):
        go = home.folder + "/go"
        child = subprocess.Popen([PEM, "page-size", "apply", "--", program, go], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, env={**os.environ, **database, "TMPDIR": home.folder})
        equal(child.stdout.readline(), "waiting\n", "output")
        lease, = leases()
        assert lease["resource"].startswith("large pages of boot "), lease
        equal(lease["holder"].split()[0::2], ["page-size", str(64 << 20)], "holder")
        equal(lease["holder"].split()[1].split(":")[1], str(child.pid), "process")
        if killed:
            child.kill()
        open(go, "w").close()
        child.communicate(timeout=60)
        equal(len(leases()), 1 if killed else 0, "leases after the end")
        os.unlink(go)
    # Who comes next counts it no more, and takes it away.
    rc, _, err = home.run("apply", "--", program)
    assert rc == 0 and "other runs" not in err, err
    equal(leases(), [], "leases")


@test
def what_others_lease_is_not_counted_on():
    "large pages that another run means to use are not there for a trial, as long as it lives, on this machine"
    home, program = Home(), compile_program(PATIENT)
    sqlite = shutil.which("sqlite3")
    if not sqlite:
        skip("sqlite3 is not installed")
    assert "predicted gain" in home.agent(program)[2]
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    with open("/proc/%d/stat" % os.getpid()) as file:
        started = file.read().rsplit(")", 1)[1].split()[19]
    namespace = os.stat("/proc/self/ns/pid").st_ino

    def lease(boot, namespace, pid, started, until):
        rc, _, err = run([sqlite, home.folder + "/cpo.db",
                          "delete from lease; insert into lease (resource, holder, access, until_ns) values "
                          "('large pages of boot %s', 'page-size %d:%d:%s %d', 0, %d)" % (boot, namespace, pid, started, 1 << 50, until)])
        equal(rc, 0, err)

    later = (1 << 62)
    for words, counts in (((boot, namespace, os.getpid(), started, later), True),
                          ((boot, namespace, os.getpid(), int(started) + 1, later), False),
                          ((boot, namespace, os.getpid(), started, 1), False),
                          (("other", namespace, os.getpid(), started, later), False),
                          ((boot, namespace + 1, 1, 1, later), True)):
        lease(*words)
        rc, _, err = home.agent(program)
        equal((rc, "; other runs count on 1" in err and "this run does not count" in err), (0, counts), "%s: %s" % (words, err))
        rc, _, err = home.run("apply", "--", program)
        equal((rc, "had small pages: the budget has no more" in err), (0, counts), "%s: %s" % (words, err))


# Under directives, who counts large pages is kept from it: the program has none.
STARVED = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
int main(void)
{
	char path[4096], *directives = getenv("PEM_PAGE_SIZE"), *p;
	unsigned x = 1;
	if (directives) {
		snprintf(path, sizeof(path), "%s.account", directives);
		flock(open(path, O_RDWR | O_CREAT, 0600), LOCK_EX);
	}
	p = malloc(64 << 20);
	for (int i = 0; i < 4000000; i++) {
		x = x * 1664525 + 1013904223;
		p[x % (64 << 20)]++;
	}
	return p[5] == 120 && p[6] == 121;
}"""


@test
def a_run_without_its_large_pages_is_no_evidence():
    "a treated run whose large pages others had is kept as a run, does not count, and is told"
    home, program = Home(), compile_program(STARVED)
    assert "predicted gain" in home.agent(program)[2]
    for _ in range(12):
        rc, _, err = home.agent(program)
        equal(rc, 0, err)
        if ", with large pages" in err:
            break
    assert "can't be used" in err and "this run does not count" in err, err
    assert home.evidence()["excluded"] and "treated" not in home.evidence(), home.evidence()
    rc, out, _ = home.run("show", program)
    assert rc == 0 and "1 run does not count" in out, out
    equal({site["excluded"] for site in home.show(program) if site["state"] == "on trial"}, {1}, "runs that are excluded")


# Three tables of 32 MiB, used at random: each by one way to come to memory.
WAYS = r"""
#include <stdio.h>
#include <sys/mman.h>
#define SITE __attribute__((noinline, noclone))
static size_t bytes = 32 << 20;
SITE unsigned char *plain(void)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
SITE unsigned char *room(void)
{
	return mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
SITE unsigned char *protected(void)
{
	unsigned char *p = room();
	mprotect(p, bytes, PROT_READ | PROT_WRITE);
	return p;
}
SITE unsigned char *committed(void)
{
	unsigned char *p = (unsigned char *)(((size_t)room() + (2 << 20) - 1) / (2 << 20) * (2 << 20));
	for (int i = 0; i < 4; i++)
		mmap(p + i * (bytes / 4), bytes / 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return p;
}
int main(void)
{
	unsigned char *all[3] = {plain(), protected(), committed()};
	unsigned x = 1, sum = 0;
	for (int i = 0; i < 12000000; i++) {
		x = x * 1664525 + 1013904223;
		sum += all[i % 3][(x >> 4) % bytes]++;
	}
	printf("%u\n", sum);
	return 0;
}"""


@test
def what_can_not_be_served_is_not_promised():
    "memory that a program commits by mmap has large pages; one whose rights come later by mprotect is shown as not to be changed"
    home, program = Home(), compile_program(WAYS)
    truth = run([program])[1]
    assert "2 of" in home.agent(program)[2]
    sites = {site["name"].split(" ")[0]: site for site in home.show(program) if site["bytes"] >= 32 << 20}
    equal({name: site["state"] for name, site in sites.items()},
          {"plain": "on trial", "committed": "on trial", "room": "not used"}, "states")
    assert "can't be changed" in sites["room"]["reason"] and sites["room"]["key"].startswith("reserved "), sites
    rc, out, err = home.run("apply", "--", program)
    assert (rc, out) == (0, truth) and "small pages" not in err, err
    with open("/sys/kernel/mm/transparent_hugepage/enabled") as words:
        if "[never]" in words.read():
            skip("the kernel gives no large pages")
    equal(home.large_pages(), [64 << 20], "large pages")


@test
def where_large_pages_are_short_nobody_is_compared():
    "with less than half of what is planned a run is neither with nor without: it is alone, and says so"
    home, command = Home(), shape("hot-and-cold", 1)
    assert "predicted gain" in home.agent(*command)[2]
    for _ in range(6):
        rc, _, err = home.agent(*command, options=("--budget", "4M"))
        assert rc == 0 and "this run does not count" in err and ", without large pages:" in err, err
    equal(set(home.evidence()), {"basis"}, "evidence")


@test
def a_small_gain_is_not_tried():
    "where the whole saves less than 1 %, sites are noted with that reason, and the command runs alone"
    machine = MACHINE.replace("[40000,20000]", "[60,20]").replace("[20000,10000]", "[60,20]").replace(
        "[500000,50000000]", "[0,0]").replace("[0,100000000]", "[0,0]").replace("[2000,1000,", "[20,20,")
    home, command = Home(machine), shape("hot-and-cold")
    rc, _, err = home.agent(*command)
    assert rc == 0 and "nothing to gain" in err, err
    large = [d for d in home.show() if d["page_size"] > 4096]
    equal([(d["state"], d["reason"]) for d in large], [("not used", "the gain is too small to try")], home.show())
    assert "runs alone" in home.agent(*command)[2]


run_all()
