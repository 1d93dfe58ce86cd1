# SPDX-License-Identifier: MIT
"""page_size_verbs: what pem page-size refuses, shows and leaves behind"""
import json
import os
import shutil
import signal
import subprocess

from page_size import MACHINE, SHAPES, Home, chosen, shape
from patience import HANG_S
from preload import compile_program
from tap import BUILD, PEM, equal, run, run_all, skip, test

LONG_S = 25


@test
def what_nothing_can_be_preloaded_into_is_refused():
    "programs of 32 bits, of musl, and with a sanitizer that has to come first are refused with a sentence, and not run"
    home = Home()
    with open(shutil.which("true"), "rb") as file:
        image = file.read()
    linker = b"/lib64/ld-linux-x86-64.so.2"
    for changed, told in ((image[:4] + b"\1" + image[5:], "32 bits"),
                          (image.replace(linker, b"/lib/ld-musl-x86_64.so.1".ljust(len(linker), b"\0")), "musl")):
        if changed == image:
            continue  # another processor's
        with open(home.folder + "/true", "wb") as out:
            out.write(changed)
        os.chmod(home.folder + "/true", 0o755)
        rc, out, err = home.agent(home.folder + "/true")
        assert rc == 2 and out == "" and told in err, (rc, out, err)
    rc, out, err = home.agent(compile_program("int main(void) { return 0; }", flags=["-fsanitize=address"]))
    assert rc == 2 and "sanitizer" in err, (rc, out, err)


@test
def what_can_not_be_changed_is_refused():
    "static, setuid, foreign and missing programs are refused with a sentence, and not run"
    home = Home()
    rc, out, err = home.agent(BUILD + "/programs/static", "1")
    assert rc == 2 and out == "" and "linked statically" in err, err
    copy = home.folder + "/id"
    shutil.copy(shutil.which("id"), copy)
    os.chmod(copy, 0o4755)
    rc, out, err = home.agent(copy)
    assert rc == 2 and out == "" and "setuid" in err, err
    other = home.folder + "/other"
    for at, byte in ((4, 1), (18, 40)):
        # A program of 32 bits, and one for ARM.
        with open(shutil.which("true"), "rb") as program, open(other, "wb") as out:
            data = bytearray(program.read())
            data[at] = byte
            out.write(data)
        os.chmod(other, 0o755)
        rc, out, err = home.agent(other)
        assert rc == 2 and out == "" and "another processor" in err, (rc, err)
    rc, out, err = home.agent("nonexistent")
    assert rc == 127 and out == "", err


@test
def a_damaged_database_leaves_the_command_alone():
    "a database that is none is ignored with a sentence"
    home = Home()
    with open(home.folder + "/cpo.db", "w") as out:
        out.write("this is no database, but it is long enough to have a head" * 20)
    rc, out, err = home.agent("sh", "-c", "echo out; exit 7")
    equal((rc, out), (7, "out\n"), err)
    assert "leaves this run alone" in err, err


@test
def what_the_database_says_is_not_trusted():
    "directives that are none are not applied, whatever a database holds"
    home, command = Home(), shape("hot-and-cold")
    home.agent(*command)
    sqlite = shutil.which("sqlite3")
    if not sqlite:
        skip("sqlite3 is not installed")
    rc, _, err = run([sqlite, home.folder + "/cpo.db",
                      "update directive set subject = 'heap ../../etc/passwd+' || id where state = 1"])
    equal(rc, 0, err)
    rc, out, err = home.run("apply", "--", *command)
    equal((rc, out), (0, run(command)[1]), err)
    assert "is none" in err and "forget " + SHAPES in err, err


# A random walk over 64 MiB. argv[1] says what becomes of the report of its large pages.
REPORTER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words)
{
	char path[4096] = "", *directives = getenv("PEM_PAGE_SIZE"), what = words[1][0];
	char *p = malloc(64 << 20);
	unsigned x = 1;
	int fd;
	for (int i = 0; i < 4000000; i++) {
		x = x * 1664525 + 1013904223;
		p[x % (64 << 20)]++;
	}
	if (!directives)
		return 0;
	strcpy(path, directives);
	strcpy(strrchr(path, '/'), "/report");
	if (what == 'p')
		return unlink(path) || mkfifo(path, 0600);
	if (what == 'e') {
		unlink(path);
		symlink("/dev/zero", path);
		_exit(0);
	}
	fd = open(path, O_WRONLY | O_APPEND);
	if (what == 'm') {
		memset(p, '\n', 16 << 20);
		write(fd, p, 16 << 20);
		_exit(0);
	}
	dprintf(fd, "{\"pid\": 1, \"site\": \"x\", \"large_bytes\": 7}\n{\"pid\": 1, \"site\": \"x\", \"large_bytes\": 5}\n");
	dprintf(fd, "{\"pid\": 2, \"large_bytes\": -5}\n{\"pid\": 3, \"large_bytes\": {\"a\": [[]]}}\n");
	for (int i = 0; i < 30000; i++)
		dprintf(fd, "[[[[[[[[");
	close(fd);
	_exit(0);
}"""


@test
def a_report_is_not_trusted():
    "a report that is a pipe, endless, or wrong ends no run, and says nothing wrong; nothing is left in the folder of temporary files"
    home, program = Home(), compile_program(REPORTER)
    home.agent(program, "none")
    for what, told in (("pipe", "report is gone"), ("endless", "report is gone"), ("many", "too long"), ("lines", "")):
        rc, _, err = run([PEM, "page-size", "apply", "--", program, what], timeout=30,
                         env={"PEM_DB": home.folder + "/cpo.db", "TMPDIR": home.folder})
        assert rc == 0 and ", with large pages" in err and told in err, (what, rc, err)
    rc, out, _ = run([PEM, "db", "show", "metric", "--json"], env={"PEM_DB": home.folder + "/cpo.db"})
    found = [m["mean"] for m in json.loads(out) if m["name"] == "large pages"]
    # Whole pages, as many as were made before the program ended, and the wrong line's five bytes.
    equal([large % (2 << 20) for large in found], [0, 0, 0, 5], "large pages of the runs: %s" % found)
    equal([name for name in os.listdir(home.folder) if name.startswith("pem-page-size")], [], "what is left")


@test
def a_folder_with_a_newline():
    "a folder of temporary files whose name can't be written into the directives is not used"
    home = Home()
    home.agent(*shape("hot-and-cold"))
    folder = home.folder + "/a\nb"
    os.mkdir(folder)
    rc, _, err = run([PEM, "page-size", "apply", "--", *shape("hot-and-cold")],
                     env={"PEM_DB": home.folder + "/cpo.db", "TMPDIR": folder, "XDG_RUNTIME_DIR": None})
    assert rc == 0 and ", with large pages" in err, err
    rc, out, _ = run([PEM, "db", "show", "metric", "--json"], env={"PEM_DB": home.folder + "/cpo.db"})
    assert [m["mean"] for m in json.loads(out) if m["name"] == "large pages"][0] > 0, out


@test
def a_profile_that_is_damaged_is_refused():
    "model names a file that is no profile, and a calibration that is none"
    home = Home()
    path = home.folder + "/x"
    with open(path, "wb") as out:
        out.write(b"x" * 100)
    rc, _, err = home.run("model", path, "--machine", home.machine)
    assert rc == 1 and path in err, err
    home.plan(*shape("compute", 1))
    rc, _, err = home.run("model", home.folder + "/profile", "--machine", path)
    assert rc == 1 and "no calibration" in err, err


@test
def misses_of_large_pages_count_as_those_of_small_ones():
    "levels that hold small pages only do not make large pages look as if they missed more"
    machine = json.loads(MACHINE)
    machine["levels"] = 3
    # Few entries for large pages, and a slow level that has room for all small ones.
    machine["tlb"] = [[0, 0, 0, 2, [1, 8, 8, 0], [2, 4, 4, 0]], [2000, 1000, 0, 1, [3, 8, 8, 0]],
                      [60000, 30000, 3, 1, [1, 16384, 16, 0]]]
    home = Home(json.dumps(machine))
    rc, _, err = home.agent(*shape("hot-and-cold"))
    assert rc == 0 and "predicted gain" in err, err
    rc, out, err = run([PEM, "db", "show", "metric", "--json"], env={"PEM_DB": home.folder + "/cpo.db"})
    equal(rc, 0, err)
    counts = {metric["name"]: metric["mean"] for metric in json.loads(out) if metric["name"].endswith(("before", "after"))}
    assert 0 < counts["page walks after"] < counts["page walks before"], counts
    assert 0 < counts["translation after"] < counts["translation before"], counts


@test
def what_is_shown_is_the_program_s():
    "a short run is said to be one; sites that lose have no figures, and pem's own data are no site"
    home = Home()
    rc, _, err = home.agent("true")
    assert rc == 0 and "nothing to gain" in err and "short run" in err and "pem page-size forget true" in err, err
    rc, out, err = home.run("show", "true")
    assert rc == 0 and "stack" in out and "none" in out and "libpem" not in out and "-" not in out.split("\n")[1], out
    equal([site for site in home.show("true") if "libpem" in site["name"]], [], "sites")


@test
def a_budget_is_said_in_words():
    "a budget below a large page is refused; one that is used up is named"
    home, command = Home(), shape("hot-and-cold")
    rc, out, err = home.agent(*command, options=("--budget", "1M"))
    assert (rc, out) == (1, "") and "no space for a large page" in err and "2M" in err, err
    rc, _, err = home.agent(*command, options=("--budget", "2M"))
    equal(rc, 0, err)
    home.run("forget", SHAPES)
    home.agent(*command)
    rc, _, err = home.run("apply", "--budget", "4M", "--", *command)
    assert rc == 0 and "had small pages: the budget has no more" in err, err


@test
def the_first_figures_of_a_gain():
    "a gain is told with its interval, and not while that has no end"
    home, command = Home(), shape("hot-and-cold", 1)
    home.agent(*command)
    said = ""
    for _ in range(10):
        rc, _, err = home.agent(*command)
        equal(rc, 0, err)
        said += err
    assert "measured gain" in said or "is not known yet" in said or "runs alone" in said, said
    assert "% faster (" not in said, said


@test
def validate_reads_its_input_again():
    "each run of validate reads the file that is standard input from where it was; of a pipe only the first can, which is said"
    home = Home()
    command = ["sh", "-c", "cat; exec %s hot-and-cold 1 32 >/dev/null" % SHAPES]
    words = [PEM, "page-size", "validate", "--runs", "3", "--machine", home.machine, "--", *command]
    env = {**os.environ, "PEM_DB": home.folder + "/cpo.db", "TMPDIR": home.folder}
    with open(home.folder + "/input", "w+") as file:
        file.write("skipped\nread\n")
        file.seek(0)
        os.lseek(file.fileno(), len("skipped\n"), os.SEEK_SET)
        done = subprocess.run(words, env=env, stdin=file, capture_output=True, text=True, timeout=HANG_S)
    equal((done.returncode, done.stdout), (0, "read\n" * 3), done.stderr)
    assert "is a pipe" not in done.stderr, done.stderr
    done = subprocess.run(words, env=env, input="once\n", capture_output=True, text=True, timeout=HANG_S)
    equal((done.returncode, done.stdout), (0, "once\n"), done.stderr)
    assert "is a pipe" in done.stderr, done.stderr


@test
def the_page_has_what_is_known():
    "show --html writes a page of one command, whose names can't end its script, and no file over another"
    home, command = Home(), shape("wrapper")
    home.agent(*command)
    page = home.folder + "/page.html"
    rc, _, err = home.run("show", SHAPES, "--html", page)
    if rc == 2 and "dygraphs" in err:
        skip("dygraphs is not installed")
    equal(rc, 0, err)
    with open(page) as text:
        text = text.read()
    written = text.split('<script id="data" type="application/json">')[1].split("</script>")[0]
    data = json.loads(written)
    assert any(" < " in site["name"] for site in data["sites"]) and "<" not in written, written
    assert data["sites"] and len(data["front"]) > 1 and data["runs"], data
    assert data["front"][-1]["gain"] > 0 and data["program"].endswith("page_shapes"), data
    rc, _, err = home.run("show", SHAPES, "--html", page)
    assert rc == 1 and "exists" in err, err


@test
def nothing_is_left_behind():
    "neither children of an observed command nor the library that applies leave files in TMPDIR"
    home = Home()
    rc, _, err = home.agent("sh", "-c", "(i=0; while [ $i -lt 9 ]; do i=$((i+1)); done); true")
    assert rc == 0 and "observed" in err, err
    equal(home.left(), [], "of the observed run")
    command = shape("hot-and-cold", 1)
    home.agent(*command)
    rc, _, err = home.run("apply", "--", *command)
    assert rc == 0 and ", with large pages" in err, err
    equal(home.left(), [], "of the run with large pages")


@test
def a_profile_is_of_the_command_alone():
    "profile writes one file, not one for each child, and none over or beside another"
    home = Home()
    path = home.folder + "/profile"
    words = ("profile", "-o", path, "--", "sh", "-c", "(i=0; while [ $i -lt 9 ]; do i=$((i+1)); done); echo done")
    equal(home.run(*words)[:2], (0, "done\n"), "profile")
    equal([name for name in os.listdir(home.folder) if name.startswith("profile")], ["profile"], "files")
    rc, out, err = home.run(*words)
    assert (rc, out) == (1, "") and path in err and "exists" in err, (rc, out, err)
    # An empty file will do, as mktemp makes it.
    open(path, "w").close()
    equal(home.run(*words)[:2], (0, "done\n"), "profile into an empty file")


@test
def what_has_more_rights_is_not_profiled():
    "profile refuses a setuid program as run does"
    home = Home()
    copy = home.folder + "/id"
    shutil.copy(shutil.which("id"), copy)
    os.chmod(copy, 0o4755)
    rc, out, err = home.run("profile", "-o", home.folder + "/profile", "--", copy)
    assert rc == 2 and out == "" and "setuid" in err, (rc, out, err)
    assert not os.path.exists(home.folder + "/profile")


@test
def valgrind_s_own_options_do_not_count():
    "options for another tool of Valgrind, in VALGRIND_OPTS, leave the command alone"
    home = Home()
    path = home.folder + "/profile"
    rc, out, err = home.run("profile", "-o", path, "--", "echo", "out", env={"VALGRIND_OPTS": "--leak-check=full -v"})
    equal((rc, out), (0, "out\n"), "profile")
    # All that is said is what comes of it, and what to do with that.
    equal(err, f"pem: observing with Valgrind, for 60 s at most; next: pem page-size model {path}\n", "stderr")
    assert os.path.getsize(path) > 0


@test
def a_cut_profile_does_not_promise_more():
    "without its end nobody knows how long the run was: the gain is no share of page walks alone"
    home, command = Home(), shape("hot-and-cold")
    whole = home.plan(*command)
    path = home.folder + "/profile"
    os.truncate(path, os.path.getsize(path) - 40)
    rc, out, err = home.run("model", path, "--json", "--machine", home.machine)
    equal(rc, 0, err)
    cut = json.loads(out)
    equal(cut["instructions"], 0, "instructions")
    assert 0 < cut["gain_percent"] < 1.3 * whole["gain_percent"], (cut["gain_percent"], whole["gain_percent"])


@test
def the_supply_is_that_of_the_moment():
    "of a calibration that is kept, all holds but how many large pages were free then"
    sqlite = shutil.which("sqlite3")
    if not sqlite:
        skip("sqlite3 is not installed")
    home, command = Home(), shape("hot-and-cold")
    if sum(int(line.split()[-1]) for line in open("/proc/buddyinfo")) < 64:
        skip("there are few free large pages")
    home.plan(*command)
    home.agent("true")
    facts = MACHINE.replace('"supply_bytes":[17179869184,8589934592]', '"supply_bytes":[0,0]')
    equal(run([sqlite, home.folder + "/cpo.db", "update machine set facts = '%s'" % facts])[0], 0, "sqlite3")
    rc, out, err = home.run("model", home.folder + "/profile", "--json")
    equal(rc, 0, err)
    assert chosen(json.loads(out)), json.loads(out)["sites"]


@test
def an_unknown_program_has_no_page():
    "show --html of a program that was never run says so, and writes nothing"
    home = Home()
    home.agent(*shape("compute", 1))
    page = home.folder + "/page.html"
    rc, _, err = home.run("show", "true", "--html", page)
    assert rc == 1 and "Nothing is known of true" in err, (rc, err)
    assert not os.path.exists(page)


@test
def validate_goes_on_whatever_the_command_returns():
    "a status other than 0 decides nothing; a signal ends it, and so does the last run"
    home = Home()
    options = ("validate", "--machine", home.machine)
    rc, _, err = home.run(*options, "--", "sh", "-c", "exit 3")
    assert rc == 3 and "observed" in err and "runs alone" in err, (rc, err)
    rc, _, err = home.run(*options, "--", "env", "sh", "-c", "kill -TERM $$")
    assert rc == 143 and "run 3, observed" in err and "runs alone" not in err, (rc, err)
    rc, _, err = home.run(*options, "-n", "1", "--", *shape("hot-and-cold"))
    assert rc == 0 and "not decided in 1 run:" in err, (rc, err)


# Says that it runs, and waits; a signal ends it, or is counted.
WAITS = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int ended;
static void end(int number) { ended = number; }
int main(int count, char **words)
{
	char *p = malloc(64 << 20);
	unsigned x = 1, sum = 0;
	for (int i = 0; i < 3000000; i++) {
		x = x * 1664525 + 1013904223;
		sum += p[x % (64 << 20)]++;
	}
	if (access(words[1], F_OK))
		return sum == 1;
	if (words[2])
		signal(SIGINT, end);
	puts("waiting"), fflush(stdout);
	while (!ended)
		usleep(10000);
	return 7;
}"""


def start_validate(home, *command):
    """validate, for which SIGINT is what it is at a terminal, whatever started this test."""
    return subprocess.Popen([PEM, "page-size", "validate", "--machine", home.machine, "--", *command], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                            env={**os.environ, "PEM_DB": home.folder + "/cpo.db", "TMPDIR": home.folder})


@test
def validate_that_is_interrupted():
    "^C ends validate with its command, whatever that does about it; runs before it count, that one does not, nothing is left behind"
    for handles, status in ((False, 130), (True, 7)):
        home, program = Home(), compile_program(WAITS)
        go = home.folder + "/wait"
        command = [program, go] + (["handles"] if handles else [])
        assert "predicted gain" in home.agent(*command)[2]
        rc, _, err = home.agent(*command)
        assert rc == 0 and "run 2, with" in err, err
        open(go, "w").close()
        child = start_validate(home, *command)
        equal(child.stdout.readline(), "waiting\n", "output")
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        equal(child.returncode, status, err)
        assert "run 3, with" in err and "stopped after 1 run: what they showed counts" in err, err
        counts = home.evidence()
        equal((counts["treated"] + counts["control"], counts["excluded"]), (1, 1), counts)
        equal(home.left(), [], "left behind")


@test
def validate_that_is_interrupted_between_runs():
    "a signal while validate models ends it after that, with what was observed, and nothing is left behind"
    home, command = Home(), shape("hot-and-cold", 20)
    child = start_validate(home, *command)
    # Its output comes at its end: the agent models then, which takes longer than to get here.
    child.stdout.readline()
    while os.path.exists("/proc/%d/task/%d/children" % (child.pid, child.pid)):
        with open("/proc/%d/task/%d/children" % (child.pid, child.pid)) as file:
            if not file.read().strip():
                break
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=120)
    equal(child.returncode, 130, err)
    assert "run 1, observed" in err and "stopped after 1 run" in err, err
    assert home.show(), "directives"
    equal(home.left(), [], "left behind")


@test
def an_installation_with_spaces_and_colons():
    "where pem lies in a folder whose name LD_PRELOAD can't hold, programs are observed and treated by a link; without one it is said"
    home, command = Home(), shape("hot-and-cold")
    truth = run(command)[1]
    folder = home.folder + "/a folder: pem's"
    os.makedirs(folder + "/lib")
    shutil.copytree(BUILD + "/bin", folder + "/bin", symlinks=True)
    for name in os.listdir(BUILD + "/lib"):
        if name == "pem" or name.startswith(("libpem.so", "libpem-agent.so", "libpem-names.so")):
            (shutil.copytree if name == "pem" else shutil.copy)(BUILD + "/lib/" + name, folder + "/lib/" + name)
    os.mkdir(home.folder + "/run", 0o700)
    # The copy's own libraries, not those of the build tree, whose name has neither.
    env = {"PEM_DB": home.folder + "/cpo.db", "TMPDIR": home.folder, "PEM_RUNTIME_DIR": home.folder + "/run", "LD_LIBRARY_PATH": ""}
    words = [folder + "/bin/pem", "page-size", "run", "--machine", home.machine, "--", *command]
    rc, out, err = run(words, env=env)
    equal((rc, out), (0, truth), err)
    assert "predicted gain" in err and "ld.so" not in err, err
    words[2:5] = ["apply"]
    rc, out, err = run(words, env=env)
    equal((rc, out), (0, truth), err)
    assert ", with large pages" in err and "ld.so" not in err, err
    with open("/sys/kernel/mm/transparent_hugepage/enabled") as words_of_kernel:
        assert home.large_pages()[0] > 0 or "[never]" in words_of_kernel.read(), err
    # No name for a link: the program runs alone, and the reason is said.
    os.mkdir(home.folder + "/run it", 0o700)
    rc, out, err = run(words, env={**env, "PEM_RUNTIME_DIR": home.folder + "/run it"})
    equal((rc, out), (0, truth), err)
    assert "with a space or a colon" in err and ", without large pages" in err and "ld.so" not in err, err


@test
def wrong_words():
    "wrong verbs and options are told with status 1"
    home = Home()
    for words, told in ((("rnu",), "did you mean 'run'"), (("run",), "which command"), (("model",), "which profile"),
                        (("run", "--budget", "x", "--", "true"), "not a number of bytes"),
                        (("run", "--limit", "0", "--", "true"), "from 1 to"), (("validate", "-n", "0", "--", "true"), "from 1 to"), (("show", "a", "b"), "one command"),
                        (("profile", "--", "true"), "where to"), (("show", "--html", "x"), "of one command"),
                        (("show", "--budget", "1M"), "takes no --budget"), (("calibrate", "--limit", "1"), "2 s at least"), (("run", "-o", "x", "--", "true"), "takes no --output"),
                        (("show", "true", "--json", "--html", "x"), "one of them")):
        rc, _, err = home.run(*words)
        assert rc == 1 and told in err, (words, rc, err)


@test
def a_machine_that_is_not_measured_costs_the_command_nothing():
    "while the machine can't be measured the command runs alone, as often as that is, and is observed afterwards"
    home, command = Home(), ["true"]
    with open(home.folder + "/none.json", "w") as out:
        out.write("{}")
    for _ in range(4):
        rc, _, err = home.run("run", "--machine", home.folder + "/none.json", "--", *command)
        equal(rc, 0, err)
        assert "this run is not observed" in err and "holds no calibration" in err and "slower" not in err, err
    shown = home.run("show", *command)[1]
    assert "This machine is not measured yet" in shown and "pem page-size calibrate" in shown, shown
    assert "observing the command" in home.agent(*command)[2]


run_all()
