# SPDX-License-Identifier: MIT
"""
consumer_events: a consumer learns a program's own events from models, specs, files and running processes

Not here: the same by the command (program_events, spec_search).
"""
import errno
import glob
import os
import re
import shutil
import subprocess
import sys

import spec_program
from preload import compile_program
from tap import BUILD, CODEGEN, PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp

SPEC = """<spec provider='bakery' description='a bakery'>
  <event name='APP::Bakery::Baked' description='baked'>
    <layerId value='APP'/><classId value='Bakery'/><specifier value='Baked'/>
    <fields>
      <field name='loaves' type='uint32' description='how many'/>
    </fields>
  </event>
</spec>
"""
# Raises ten events for each line that it reads, and answers it.
PROGRAM = """#include "bakery.h"
#include <stdio.h>
int main(void)
{
	puts("ready"), fflush(stdout);
	while (getchar() == '\\n') {
		for (unsigned i = 0; i < 10; i++)
			pem_notify_bakery_baked(i);
		puts("raised"), fflush(stdout);
	}
	return 0;
}
"""
EVENT = "APP::Bakery::Baked"


def pemapi():
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    sys.path.insert(0, BUILD + "/python")
    import pemapi as module
    return module


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def bakery():
    """Paths of a spec, and of a program with its stubs in another folder."""
    need("cc")
    spec, folder = write(tmp() + "/bakery.xml", SPEC), tmp()
    rc, _, err = run([PEM, "gen", "-q", spec, "-o", folder])
    equal((rc, err), (0, ""), "gen")
    write(folder + "/program.c", PROGRAM)
    rc, _, err = run(["cc", "-I" + ROOT + "/spec/abi", "program.c", "-o", "program", "-ldl"], cwd=folder)
    equal((rc, err), (0, ""), "cc")
    return spec, folder + "/program"


def refused(call, code):
    """The sentence of a call that fails with an errno."""
    module = pemapi()
    try:
        call()
    except module.Error as error:
        equal(error.errno, code, "errno of: %s" % error)
        return str(error)
    raise AssertionError("not refused")


def names(session):
    return [event.name for event in session.model if "Bakery" in event.name]


@test
def models_of_codegen():
    "a session takes the models that pem-codegen --models makes, of one spec and of several"
    spec = write(tmp() + "/bakery.xml", SPEC)
    rc, one, err = run([CODEGEN, "--models", spec])
    equal((rc, err), (0, ""), "pem-codegen")
    rc, two, err = run([CODEGEN, "--models", spec, ROOT + "/examples/shop.xml"])
    equal((rc, err), (0, ""), "pem-codegen of two")
    with pemapi().Session() as session:
        equal(session.add_model(one, "bakery"), 1, "events added")
        equal(len(session.events(EVENT)), 1, "events found")
        equal(session.add_model(two, "both"), 3, "events added of both")
        equal(session.add_specs(write(tmp() + "/both", two)), 0, "events added of a file of models")


@test
def specs():
    "a session takes a spec, and a folder of specs"
    spec = write(tmp() + "/bakery.xml", SPEC)
    with pemapi().Session() as session:
        equal(session.add_specs(spec), 1, "events added of a file")
        equal(session.add_specs(os.path.dirname(spec)), 0, "events added of its folder")
        equal(names(session), [EVENT], "events")


@test
def wrong_specs():
    "a wrong spec is refused with its place, and the other specs of its folder are taken"
    folder = tmp()
    wrong = write(folder + "/a.xml", SPEC.replace("uint32", "uint23"))
    write(folder + "/b.xml", SPEC)
    with pemapi().Session() as session:
        said = refused(lambda: session.add_specs(wrong), errno.EINVAL)
        assert wrong + ":5:28: error: type='uint23' of <field> is not valid" in said, said
        equal(names(session), [], "events of the wrong spec")
        assert wrong in refused(lambda: session.add_specs(folder), errno.EINVAL)
        equal(names(session), [EVENT], "events of the folder")
        other = write(tmp() + "/c.xml", SPEC.replace("uint32", "uint64"))
        said = refused(lambda: session.add_specs(other), errno.EINVAL)
        assert "%s:2:3: error: event '%s' is not the '%s' of %s:2:3" % (other, EVENT, EVENT, folder + "/b.xml") in said, said
        assert "'/nowhere'" in refused(lambda: session.add_specs("/nowhere"), errno.ENOENT)
        assert "no spec in" in refused(lambda: session.add_specs(tmp()), errno.ENOENT)


ADD = """import sys
sys.path.insert(0, sys.argv[1])
import pemapi
try:
    print(pemapi.Session().add_specs(sys.argv[2]))
except pemapi.Error as error:
    print(error)
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("CapAmb")][0])
"""


def with_own_codegen(script, command=(), env=None):
    """The lines that a consumer prints which adds a spec, while a shell script of this test's stands for pem-codegen."""
    pemapi()
    folder, spec = tmp(), write(tmp() + "/bakery.xml", SPEC)
    os.mkdir(folder + "/lib")
    os.mkdir(folder + "/bin")
    os.chmod(write(folder + "/bin/pem-codegen", "#!/bin/sh\n" + script), 0o755)
    rc, out, err = run([*command, sys.executable, "-c", ADD, BUILD + "/python", spec],
                       env=dict({"PEM_LIBRARY_PATH": folder + "/lib"}, **env or {}))
    equal((rc, err), (0, ""), "the consumer")
    return out.splitlines()


@test
def variables_of_codegen():
    "pem-codegen gets none of a consumer's variables but the folders of libraries"
    seen = tmp() + "/seen"
    said = with_own_codegen("tr '\\0' '\\n' </proc/$$/environ >%s; exec %s \"$@\"\n" % (seen, CODEGEN),
                            env={"SECRET": "a word", "LD_LIBRARY_PATH": "/nowhere"})
    equal(said[0], "1", "events added")
    with open(seen, encoding="utf-8") as f:
        equal(f.read(), "LD_LIBRARY_PATH=/nowhere\n", "variables")


@test
def capabilities_of_codegen():
    "pem-codegen gets none of a consumer's ambient capabilities, which the consumer keeps"
    need("setpriv")
    given = ["setpriv", "--inh-caps=+net_raw", "--ambient-caps=+net_raw"]
    if run(given + ["true"])[0]:
        skip("no capability can be handed on here: needs root")
    seen = tmp() + "/seen"
    said = with_own_codegen("grep CapAmb /proc/$$/status >%s; exec %s \"$@\"\n" % (seen, CODEGEN), given)
    equal((said[0], int(said[1], 16)), ("1", 1 << 13), "events added, and the consumer's capabilities")
    with open(seen, encoding="utf-8") as f:
        equal(int(f.read().split()[1], 16), 0, "capabilities of pem-codegen")


@test
def codegen_that_dies():
    "a consumer is told how pem-codegen ended if it failed"
    said = with_own_codegen("kill -SEGV $$\n")[0]
    assert "pem-codegen was ended by signal 11 as it read" in said, said
    said = with_own_codegen("echo no space >&2; exit 3\n")[0]
    assert "pem-codegen ended with status 3 as it read" in said and "no space" in said, said


def raise_and_read(process, statistics):
    """Let the bakery's program raise its events, look at their statistics, and end it."""
    process.stdin.write("\n")
    process.stdin.flush()
    equal(process.stdout.readline(), "raised\n", "the program")
    equal([(v.count, v.sum) for v in statistics.read()], [(10, 45)], "count and sum")
    process.stdin.close()


@test
def a_running_process():
    "the events of a process that runs are known by name before it raises any, and counted"
    _, path = bakery()
    module = pemapi()
    with subprocess.Popen([PEM, "run", "--", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process, \
            module.Session() as session:
        equal(process.stdout.readline(), "ready\n", "the program")
        refused(lambda: session.events(EVENT), errno.ENOENT)
        assert session.describe(process.pid) >= 1
        events = session.events(EVENT)
        statistics = session.statistics(events, "loaves")
        statistics.enable()
        equal(session.attach(process.pid), 1, "processes")
        raise_and_read(process, statistics)
    refused(lambda: module.Session().describe(process.pid), errno.ESRCH)


@test
def an_attached_process():
    "the events of a process are known by name once a session has attached to it by number"
    _, path = bakery()
    module = pemapi()
    with subprocess.Popen([PEM, "run", "--", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process, \
            module.Session() as session:
        equal(process.stdout.readline(), "ready\n", "the program")
        session.attach(process.pid)
        statistics = session.statistics(session.events(EVENT), "loaves")
        statistics.enable()
        raise_and_read(process, statistics)


@test
def a_process_of_another_user():
    "root describes another user's process by the files that it has mapped, and follows none of their paths"
    if os.geteuid() != 0:
        skip("only root may read another user's process")
    need("setpriv", "cc")
    module, folder = pemapi(), os.path.dirname(bakery()[1])
    source = write(folder + "/library.c", '#include "bakery.h"\nvoid bake(void) { pem_notify_bakery_baked(1); }\n')
    loader = write(folder + "/loader.c", "#include <stdio.h>\nint main(void) { puts(\"ready\"), fflush(stdout); return getchar(); }\n")
    include = ["-I" + folder, "-I" + ROOT + "/spec/abi", "-I" + ROOT + "/libpem/include"]
    for command in (["-shared", "-fPIC", *include, source, "-o", folder + "/liba.so"], [loader, "-o", folder + "/loader"]):
        equal(run(["cc", "-g", *command])[::2], (0, ""), "cc")
    os.chmod(folder, 0o755)
    with subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "LD_PRELOAD=" + folder + "/liba.so",
                           folder + "/loader"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        equal(process.stdout.readline(), "ready\n", "the program")
        os.unlink(folder + "/liba.so")
        with module.Session() as session:
            assert session.describe(process.pid) >= 1
            assert EVENT in names(session), names(session)
        process.stdin.close()


@test
def a_context_before_attach():
    "statistics of the kernel for a process, enabled before the session attaches to it, count without a warning of that process"
    module, said = pemapi(), []
    shell = "read line; for i in 1 2 3 4 5 6 7 8; do (:); done; echo done; read line"
    with subprocess.Popen(["sh", "-c", shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process, \
            module.Session(log=lambda level, text: said.append(text)) as session:
        faults = session.events("OS::Mem::PageFault")
        if session.source_of(faults[0]) is None:
            skip("the kernel's events are not observed here: %s" % session.why_not(faults[0]))
        statistics = session.statistics(faults, context=module.Context(pid=process.pid))
        statistics.enable()
        session.attach(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        equal(process.stdout.readline(), "done\n", "the program")
        assert statistics.read()[0].count > 0, statistics.read()
        equal([text for text in said if "are not observed" in text], [], "warnings")
        process.stdin.close()


@test
def which_program_file():
    "a spec that contradicts one of two programs is refused with the path of the program that has the event"
    _, path = bakery()
    till = spec_program.build(tmp(), "till", spec_program.FIRST % "paid", "pem_notify_till_paid(1)")
    with pemapi().Session() as session:
        equal((session.describe(path), session.describe(till)), (1, 1), "events described")
        said = refused(lambda: session.add_specs(write(tmp() + "/c.xml", SPEC.replace("uint32", "uint64"))), errno.EEXIST)
        assert "of %s:" % path in said, said


@test
def a_program_file():
    "the events of a program's file are known by name; a spec that contradicts them is refused, and told apart"
    spec, path = bakery()
    with pemapi().Session() as session:
        equal(session.describe(path), 1, "events described")
        equal(session.describe(path), 1, "events described again")
        equal(names(session), [EVENT], "events")
        other = write(tmp() + "/c.xml", SPEC.replace("uint32", "uint64"))
        said = refused(lambda: session.add_specs(other), errno.EEXIST)
        assert path in said and other + ":2:3" in said, said
        equal(session.add_specs(spec), 0, "events that its own spec adds")
        equal(session.describe("/etc/passwd"), 0, "events of a file that is no program")
        assert "/nowhere" in refused(lambda: session.describe("/nowhere"), errno.ENOENT)
        assert "process is described, or a program's file" in refused(lambda: session.describe(""), errno.EINVAL)


@test
def verbs_use_the_public_interface():
    "each verb is compiled with the headers that are installed, and calls functions that programs may call"
    need("nm")
    installed = {os.path.basename(p) for pattern in ("spec/abi/pem/*.h", "libpem/include/pem/*.h") for p in glob.glob(ROOT + "/" + pattern)}
    found = glob.glob(BUILD + "/obj/cli/**/*.d", recursive=True)
    assert len(found) > 50, found
    for path in found:
        with open(path, encoding="utf-8") as text:
            headers = re.findall(r"(?<=\s)(?:\S*/)?(?:libpem|spec/abi)/\S+\.h\b", text.read())
        private = [h for h in headers if "/pem/" not in h or os.path.basename(h) not in installed or
                   not re.search(r"(libpem/include|spec/abi)/pem/[^/]+$", h)]
        equal(private, [], "headers that %s includes and no program can" % path)
    rc, out, err = run(["nm", "-D", "--undefined-only", "--with-symbol-versions", PEM])
    equal(rc, 0, "nm, which said " + err)
    used = {line.split()[-1] for line in out.splitlines() if " pem_" in line}
    assert len(used) > 50, used
    equal(sorted(name for name in used if not re.search(r"@PEM_\d", name)), [], "functions of no public version")


@test
def a_generator_of_others_is_not_started():
    "a pem-codegen beside the library that another user owns, or that others may write, is not started"
    if os.geteuid() != 0:
        skip("only root can give a file to another user")
    if SAN:
        skip("the linker warns of a sanitizer's library, and compile_program wants no warning")
    folder, program = tmp(), compile_program(r"""
#include <pem/pem.h>
#include <stdio.h>
int main(int count, char **names)
{
	struct pem_error why = {{0}};
	struct pem_session *session = pem_session__open(NULL, &why);

	return session && pem_session__add_specs(session, names[count - 1], &why) >= 0 ? 0 : (puts(why.text), 1);
}
""", flags=["-I" + ROOT + "/libpem/include", "-I" + ROOT + "/spec/abi", "-L" + BUILD + "/lib", "-lpem"])
    for name in ("lib", "bin"):
        os.mkdir(folder + "/" + name)
    shutil.copy(BUILD + "/lib/libpem.so.1", folder + "/lib")
    other = folder + "/bin/pem-codegen"
    with open(other, "w", encoding="utf-8") as out:
        out.write("#!/bin/sh\ntouch '%s/started'\nexec '%s' \"$@\"\n" % (folder, CODEGEN))
    os.chmod(folder, 0o755)
    for owner, mode, runs in ((0, 0o755, True), (65534, 0o755, False), (0, 0o757, False)):
        os.chown(other, owner, 0)
        os.chmod(other, mode)
        rc, out, err = run([program, ROOT + "/examples/shop.xml"], env={"LD_LIBRARY_PATH": folder + "/lib"})
        equal((rc == 0, os.path.exists(folder + "/started")), (runs, runs), "owner %d, mode %o: %s%s" % (owner, mode, out, err))
        if runs:
            os.unlink(folder + "/started")
        else:
            assert "there is no pem-codegen" in out, out


run_all()
