# SPDX-License-Identifier: MIT
"""
spec_search: events of specs that are not built in are found, chosen by name, and never confused

Not here: what is in a spec (spec_check, codegen_errors).
"""
import json
import os
import shutil

from tap import BUILD, PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp

SPEC = """<spec provider='bakery' description='a bakery'>
  <event name='APP::Bakery::Baked' description='baked'>
    <layerId value='APP'/><classId value='Bakery'/><specifier value='Baked'/>
    <fields>
      <field name='loaves' type='uint32' unit='loaves' description='how many'/>
    </fields>
  </event>
  <event name='APP::Bakery::Crumb' level='detail' description='fell'>
    <layerId value='APP'/><classId value='Bakery'/><specifier value='Crumb'/>
  </event>
</spec>
"""

PROGRAM = """#include "bakery.h"
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	if (getenv("PAUSE"))
		usleep(300000);
	for (unsigned i = 0; i < 100; i++) {
		pem_notify_bakery_baked(i);
		pem_notify_bakery_crumb();
	}
	return 0;
}
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def bakery():
    """A folder with bakery.xml and the program built from it."""
    need("cc")
    folder = tmp()
    spec = write(folder + "/bakery.xml", SPEC)
    write(folder + "/program.c", PROGRAM)
    rc, _, err = run([PEM, "gen", "-q", spec, "-o", folder])
    equal((rc, err), (0, ""), "gen")
    rc, _, err = run(["cc", "-I" + folder, "-I" + ROOT + "/spec/abi", folder + "/program.c", "-o", folder + "/program",
                      "-ldl"])
    equal((rc, err), (0, ""), "cc")
    return folder


def unseen(folder):
    """A command that runs the program while its recorder sees nothing of it, so that nothing can be switched off meanwhile."""
    path = write(folder + "/unseen", "#!/bin/sh\nkill -STOP $PPID\n%s/program\nkill -CONT $PPID\n" % folder)
    os.chmod(path, 0o755)
    return path


def counts(trace):
    """Name of each event in the trace -> count; and the report."""
    rc, out, err = run([PEM, "report", "--json", trace])
    equal((rc, err), (0, ""), "report")
    report = json.loads(out)
    return {e["name"]: e["count"] for e in report["per_event"] if e["count"]}, report


def record(folder, *words, env=None, program=None, cwd=None):
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-o", trace, "--no-libc", *words, "--", program or folder + "/program"], env=env,
                     cwd=cwd)
    return rc, trace, err


@test
def beside_the_program():
    "an event of a spec beside the program can be named; elsewhere it can't, and the sentence says what there is"
    folder = bakery()
    write(folder + "/pom.xml", "<project/>")
    rc, trace, err = record(folder, "-e", "Baked")
    equal(rc, 0, err)
    equal(counts(trace)[0], {"APP::Bakery::Baked": 100}, "events")
    rc, trace, err = record(folder, "-e", "Baked", env={"PATH": folder + ":" + os.environ["PATH"]}, program="program")
    equal(counts(trace)[0], {"APP::Bakery::Baked": 100}, "events of a program in PATH")
    os.remove(folder + "/bakery.xml")
    rc, _, err = record(folder, "-e", "Baked", program="true")
    assert rc == 1 and "no event matches 'Baked';" in err and "PEM_SPEC_PATH" in err and "pem list WORD" in err, err
    assert "programs that a shell or env starts are not searched" in err, err
    assert "did you mean" not in err, "nothing is near: " + err


@test
def levels_choose():
    "-e APP takes unknown events up to info, a pattern or a name takes all"
    folder = bakery()
    os.remove(folder + "/bakery.xml")
    for env in {}, {"PAUSE": "1"}:  # before the recorder finds the process, and afterwards
        equal(counts(record(folder, "-e", "APP", env=env)[1])[0].get("APP::Bakery::Crumb"), None, "detail with -e APP")
    equal(counts(record(folder, "-e", "APP")[1])[0]["APP::Bakery::Baked"], 100, "info with -e APP")
    equal(counts(record(folder, "-e", "APP::*")[1])[0]["APP::Bakery::Crumb"], 100, "detail with -e 'APP::*'")
    spec = write(folder + "/bakery.xml", SPEC)
    for word in ("Crumb", "Bakery", "APP::Bakery::*", "APP::Bakery::Crumb"):
        equal(counts(record(folder, "-e", word)[1])[0]["APP::Bakery::Crumb"], 100, word)
    found = counts(record(folder, "-e", "APP", env={"PEM_SPEC_PATH": spec})[1])[0]
    equal({k: v for k, v in found.items() if "Bakery" in k}, {"APP::Bakery::Baked": 100}, "known, -e APP")


@test
def search_path():
    "PEM_SPEC_PATH names files and folders; list, stat and record know their events, with all their attributes"
    folder = bakery()
    os.mkdir(folder + "/specs")
    shutil.move(folder + "/bakery.xml", folder + "/specs/bakery.xml")
    for path in (folder + "/specs", ":" + folder + "/specs/bakery.xml:" + folder + "/specs"):
        env = {"PEM_SPEC_PATH": path}
        rc, out, err = run([PEM, "list", "--json", "Bakery"], env=env)
        equal((rc, err), (0, ""), "list")
        equal([(e["name"], e["level"], e["available"]) for e in json.loads(out)],
              [("APP::Bakery::Baked", "info", True), ("APP::Bakery::Crumb", "detail", True)], "list")
        rc, out, err = run([PEM, "stat", "--json", "-e", "Baked", "-f", "loaves", "--", folder + "/program"], env=env)
        assert rc == 0 and '"sum":4950,' in out, (rc, out, err)
    rc, _, err = run([PEM, "list"], env={"PEM_SPEC_PATH": "/nonexistent/x.xml"})
    assert rc == 1 and "PEM_SPEC_PATH names '/nonexistent/x.xml'" in err, err


@test
def current_folder():
    "a spec of the current folder is known to record, stat and list wherever the program lies, and is read once"
    folder = bakery()
    os.makedirs(folder + "/target/release")
    shutil.move(folder + "/program", folder + "/target/release/program")
    rc, trace, err = record(folder, "-e", "Baked", program="target/release/program", cwd=folder)
    equal((rc, counts(trace)[0]), (0, {"APP::Bakery::Baked": 100}), "record, which said " + err)
    rc, out, err = run([PEM, "stat", "--json", "-e", "Baked", "--", "target/release/program"], cwd=folder)
    assert rc == 0 and '"count":100' in out.replace(" ", ""), (rc, out, err)
    rc, out, err = run([PEM, "list", "--json", "Baked"], cwd=folder)
    equal((rc, err, [e["name"] for e in json.loads(out)]), (0, "", ["APP::Bakery::Baked"]), "list")
    shutil.move(folder + "/target/release/program", folder + "/program")
    rc, trace, err = record(folder, "-e", "Baked", program="./program", cwd=folder)
    equal((rc, counts(trace)[0]), (0, {"APP::Bakery::Baked": 100}), "beside the program and here, which said " + err)
    wrong = write(folder + "/target/wrong.xml", "<spec nonsense")
    said = "pem: a spec in the current folder is left out: ./wrong.xml:1:"
    rc, out, err = run([PEM, "list", "Switch"], cwd=os.path.dirname(wrong))
    assert rc == 0 and said in err, err
    rc, out, err = run([PEM, "stat", "-e", "Loaf", "--", "true"], cwd=os.path.dirname(wrong))
    assert rc == 1 and said in err, "an event that may be the wrong spec's: " + err
    rc, out, err = run([PEM, "stat", "-e", "Malloc", "--", "true"], cwd=os.path.dirname(wrong))
    assert rc == 0 and "wrong.xml" not in err, "a spec that nobody asked for: " + err


@test
def current_folder_of_others():
    "specs of a current folder that other users can write to are not read, and the sentence names the remedy"
    folder = bakery()
    os.chmod(folder, 0o777)
    rc, _, err = run([PEM, "stat", "-e", "Baked", "--", "true"], cwd=folder)
    assert rc == 1 and "left out: ./bakery.xml: other users can write to this folder; set PEM_SPEC_PATH" in err, err
    rc, out, err = run([PEM, "list", "--json", "Baked"], cwd=folder, env={"PEM_SPEC_PATH": "."})
    equal((rc, err, [e["name"] for e in json.loads(out)]), (0, "", ["APP::Bakery::Baked"]), "list")


@test
def current_folder_of_whom_sudo_made_root():
    "root reads the specs of a current folder of the user who became root by sudo, and of no other user's"
    if os.geteuid() != 0:
        skip("only root can give a folder away")
    folder = bakery()
    os.chown(folder, 65534, 65534)
    for sudo, status in (("65534", 0), ("65533", 1), (None, 1)):
        rc, _, err = run([PEM, "stat", "-e", "Baked", "--", "true"], cwd=folder, env={"SUDO_UID": sudo})
        equal(rc, status, "SUDO_UID=%s: %s" % (sudo, err))


@test
def too_many_specs():
    "more specs than pem reads are an error, not events that are missing"
    folder = tmp()
    for i in range(1001):
        write("%s/%d.xml" % (folder, i), "<spec/>")
    rc, _, err = run([PEM, "list"], env={"PEM_SPEC_PATH": folder})
    assert rc == 1 and "too many specs" in err and folder in err, err


@test
def wrong_specs():
    "a wrong spec of PEM_SPEC_PATH is an error with its place; one beside the program is a warning, and the rest goes on"
    folder = bakery()
    wrong = write(folder + "/wrong.xml", SPEC.replace("'uint32'", "'uint23'").replace("bakery", "wrong"))
    rc, _, err = run([PEM, "list"], env={"PEM_SPEC_PATH": wrong})
    equal(rc, 1, "status")
    assert err.startswith(wrong + ":5:28: error: type='uint23' of <field> is not valid"), err
    rc, trace, err = record(folder, "-e", "Baked")
    equal((rc, counts(trace)[0]), (0, {"APP::Bakery::Baked": 100}), "record")
    assert "pem: a spec beside the program is left out: " + wrong + ":5:28: error: " in err, err


@test
def conflicts_name_both_places():
    "two specs that claim one name are an error that names both; the same spec twice, or edited compatibly, is fine"
    folder = tmp()
    one, same, two = (write("%s/%s.xml" % (folder, name), text) for name, text in (
        ("one", SPEC), ("same", SPEC.replace("'how many'", "'number'")), ("two", SPEC.replace("'uint32'", "'uint64'"))))
    equal(run([PEM, "list", "Baked"], env={"PEM_SPEC_PATH": one + ":" + same})[0], 0, "status of the same")
    rc, _, err = run([PEM, "list"], env={"PEM_SPEC_PATH": one + ":" + two})
    equal(rc, 1, "status")
    equal(err, "%s:2:3: error: event 'APP::Bakery::Baked' is not the 'APP::Bakery::Baked' of %s:2:3: expected another "
               "name, another version, or the same fields\n" % (two, one), "the error")
    with open(ROOT + "/spec/app/phase.xml", encoding="utf-8") as f:
        phase = write(folder + "/phase.xml", f.read().replace("max='64'", "max='9'"))
    rc, _, err = run([PEM, "list"], env={"PEM_SPEC_PATH": phase})
    assert rc == 1 and "is not the 'APP::Phase::Begin' of the one built into pem" in err, err
    equal(run([PEM, "list"], env={"PEM_SPEC_PATH": ROOT + "/spec/app"})[0], 0, "the built-in ones themselves")


@test
def installed_specs():
    "a spec that is installed beside the catalogue's is known; the catalogue's own are not read again"
    if SAN:
        skip("a sanitized build is not for installing")
    root = tmp()
    shutil.copytree(BUILD + "/bin", root + "/bin")
    os.symlink(BUILD + "/lib", root + "/lib")
    os.makedirs(root + "/share/pem/spec")
    write(root + "/share/pem/spec/bakery.xml", SPEC)
    write(root + "/share/pem/spec/phase.xml", "<spec nonsense")
    rc, out, err = run([root + "/bin/pem", "list", "--json", "Baked"])
    equal((rc, err), (0, ""), "list")
    equal([e["name"] for e in json.loads(out)], ["APP::Bakery::Baked"], "list")
    shutil.copy(ROOT + "/spec/app/phase.xml", root + "/share/pem/spec")
    wrong = write(root + "/phase2.xml", open(root + "/share/pem/spec/phase.xml", encoding="utf-8").read().replace(
        "max='64'", "max='9'"))
    rc, _, err = run([root + "/bin/pem", "list"], env={"PEM_SPEC_PATH": wrong})
    assert rc == 1 and "is not the 'APP::Phase::Begin' of the one built into pem" in err, err


@test
def programs_of_another_spec():
    "a program built from another record under the same name is left out, counted, and named with what would mend it"
    folder = bakery()
    os.mkdir(folder + "/new")
    write(folder + "/new/bakery.xml", SPEC.replace("'uint32'", "'uint64'"))
    os.remove(folder + "/bakery.xml")
    rc, trace, err = record(folder, "-e", "Baked", env={"PEM_SPEC_PATH": folder + "/new"}, program=unseen(folder))
    equal(rc, 0, "status")
    assert "not recorded: stub events: APP::Bakery::Baked in program (process " in err and "other fields" in err and \
        "build the program again" in err, err
    assert "build" in err.split("100 of 100 events were lost")[1].split("\n")[0] and "--buffer" not in err, err
    found, report = counts(trace)
    equal(found, {}, "events")
    equal([report["events"][k] for k in ("produced", "delivered", "discarded")], [100, 0, 100], "balance")
    out = run([PEM, "report", trace], env={"COLUMNS": "300"})[1]
    assert "APP::Bakery::Baked in program" in out, out


@test
def events_that_only_such_a_program_knows():
    "what such a program raises besides is not recorded either, and the trace stays whole"
    folder = bakery()
    os.remove(folder + "/bakery.xml")
    os.mkdir(folder + "/new")
    write(folder + "/new/bakery.xml", SPEC.replace("'uint32'", "'uint64'").replace("Crumb", "Cake"))
    rc, trace, err = record(folder, "-e", "APP::*", env={"PEM_SPEC_PATH": folder + "/new"}, program=unseen(folder))
    equal(rc, 0, err)
    found, report = counts(trace)
    equal([name for name in found if "Bakery" in name], [], "events")
    equal(report["events"]["discarded"], 200, "balance")


@test
def programs_with_another_level():
    "an event is recorded by the level that its program gives it, also where pem's spec says it is a detail"
    folder = bakery()
    os.mkdir(folder + "/new")
    write(folder + "/new/bakery.xml", SPEC.replace("<event name='APP::Bakery::Baked'",
                                                   "<event name='APP::Bakery::Baked' level='detail'"))
    os.remove(folder + "/bakery.xml")
    rc, trace, err = record(folder, "-e", "APP", env={"PEM_SPEC_PATH": folder + "/new"})
    equal(rc, 0, err)
    equal(counts(trace)[0]["APP::Bakery::Baked"], 100, "events")


@test
def programs_of_another_version():
    "an event of which the program has another version is said at the end of a recording, with the remedy"
    folder = bakery()
    write(folder + "/bakery.xml", SPEC.replace("'APP::Bakery::Baked'", "'APP::Bakery::Baked' version='2'"))
    for word in ("Baked", "APP::Bakery::*", "Bakery@2"):
        rc, trace, err = record(folder, "-e", word)
        equal(rc, 0, "status")
        assert "'%s' is version 2 of APP::Bakery::Baked, but the program has version 1 of it: build it again" % word \
            in err, err
        assert "nothing was raised" not in err and err.count("\n") == 2, err
    equal(counts(record(folder, "-e", "Bakery@2,APP")[1])[0]["APP::Bakery::Baked"], 100, "the program's own version")


@test
def other_events_of_such_a_program():
    "what other providers of such a program, whose file tells nothing, raise in between is recorded whole"
    folder = bakery()
    os.remove(folder + "/bakery.xml")
    write(folder + "/program.c", PROGRAM.replace("#include", "#include <stdlib.h>\n#include").replace(
        "pem_notify_bakery_crumb();", "free(malloc(1000 + i));"))
    rc, _, err = run(["cc", "-O0", "-fno-builtin", "-I" + folder, "-I" + ROOT + "/spec/abi", folder + "/program.c", "-o",
                      folder + "/program", "-ldl"])
    equal((rc, err), (0, ""), "cc")
    need("objcopy")
    equal(run(["objcopy", "--rename-section", "pem_model=.rodata.old", folder + "/program"])[0], 0, "objcopy")
    os.mkdir(folder + "/new")
    write(folder + "/new/bakery.xml", SPEC.replace("'uint32'", "'uint64'"))
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-o", trace, "-e", "Malloc,Baked", "--", folder + "/program"],
                     env={"PEM_SPEC_PATH": folder + "/new"})
    equal(rc, 0, "status")
    assert "APP::Bakery::Baked in program" in err and "no buffer would keep them" in err, err
    found, report = counts(trace)
    equal(list(found), ["APP::Libc::Malloc"], "events")
    assert found["APP::Libc::Malloc"] >= 100, found
    # It is switched off as soon as it is known that nothing can read it.
    assert 1 <= report["events"]["discarded"] <= 100, report["events"]
    _, table, _ = run([PEM, "export", "--to", "csv", trace, "-o", "/dev/stdout"])
    assert all(",%d," % (1000 + i) in table for i in range(100)), table[:500]


@test
def programs_that_this_build_lacks():
    "kernel events of specs that pem was built without are all named in one sentence, whatever else is recorded"
    folder = tmp()
    event = ("<event name='OS::Mine::%s' description='one'><layerId value='OS'/><classId value='Mine'/><specifier "
             "value='%s'/><source type='tracepoint' name='sched:sched_wakeup' arguments='struct task_struct *p'/></event>")
    write(folder + "/mine.xml", "<spec provider='mine' description='mine'>%s</spec>" %
          "".join(event % (name, name) for name in ("A", "B", "C")))
    if json.loads(run([PEM, "list", "--json", "OS::Sched::Switch"])[1])[0]["availability"] != "yes":
        skip("no kernel events can be had here")
    rc, trace, err = record(folder, "-e", "Mine,Switch", program="true", cwd=folder)
    equal(rc, 0, "status")
    said = [line for line in err.splitlines() if "OS::Mine::" in line]
    assert len(said) == 1 and "OS::Mine::A, OS::Mine::B, OS::Mine::C: this build has no BPF program" in said[0], err
    out = " ".join(run([PEM, "report", trace])[1].split())
    assert "OS::Mine::A, OS::Mine::B, OS::Mine::C: this build" in out, out


run_all()
