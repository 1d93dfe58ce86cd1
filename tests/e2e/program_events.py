# SPDX-License-Identifier: MIT
"""
program_events: events that a program and its libraries bring along are known by name before it runs, with no spec nearby

Not here: damaged files (tests/unit/program_models.c, tests/fuzz/program_models.c).
"""
import json
import os
import shutil

from tap import BUILD, PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp

SPEC = """<spec provider='%s' description='made for a test'>
  <event name='APP::%s::Done' description='done'>
    <layerId value='APP'/><classId value='%s'/><specifier value='Done'/>
    <fields>
      <field name='%s' type='uint32' description='how many'/>
    </fields>
  </event>
</spec>
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def stubs(folder, name, field="count"):
    """Generate name.h; its spec is nowhere near afterwards."""
    word = name.capitalize()
    spec = write("%s/%s.xml" % (tmp(), name), SPEC % (name, word, word, field))
    rc, _, err = run([PEM, "gen", "-q", spec, "-o", folder])
    equal((rc, err), (0, ""), "gen")


def cc(folder, *arguments):
    need("cc")
    rc, _, err = run(["cc", "-I" + folder, "-I" + ROOT + "/spec/abi", *arguments], cwd=folder)
    equal((rc, err), (0, ""), "cc")


def program(folder, provider="alpha", library="", *flags):
    """A program that raises provider's event ten times, and calls a library's function."""
    stubs(folder, provider)
    write(folder + "/program.c", """#include "%(name)s.h"
%(declare)s
int main(void)
{
	%(call)s
	for (unsigned i = 0; i < 10; i++)
		pem_notify_%(name)s_done(i);
	return 0;
}
""" % {"name": provider, "declare": "void raise_%s(void);" % library if library else "",
       "call": "raise_%s();" % library if library else ""})
    cc(folder, "program.c", "-o", "program", *flags, "-ldl")
    return folder + "/program"


def library(folder, provider, *flags, where="."):
    """libPROVIDER.so, which raises its provider's event once."""
    stubs(folder, provider)
    write("%s/%s.c" % (folder, provider), """#include "%(name)s.h"
void raise_%(name)s(void);
void raise_%(name)s(void)
{
	pem_notify_%(name)s_done(1);
}
""" % {"name": provider})
    os.makedirs(os.path.join(folder, where), exist_ok=True)
    cc(folder, "-shared", "-fPIC", provider + ".c", "-o", "%s/lib%s.so" % (where, provider), *flags, "-ldl")


def listed(path, env=None, cwd=None):
    """Names that pem list tells of a program, from a folder without specs."""
    rc, out, err = run([PEM, "list", "--json", path], cwd=cwd or tmp(), env=env)
    assert not err if rc == 0 else "brings along no events" in err, err
    return {event["name"] for event in json.loads(out)} if rc == 0 else set()


def counted(path, events, env=None):
    """{event: count} that pem stat has of a program, with the events named."""
    if SAN:
        skip("the command would need the sanitizer's library first")
    rc, out, err = run([PEM, "stat", "-q", "--json", "-e", events, "--", path], cwd=tmp(), env=env)
    assert rc == 0, err
    return {event["name"]: event["count"] for event in json.loads(out)["events"]}


@test
def of_a_program():
    "pem list names them, with what -v tells; record, stat and top take their names"
    folder = tmp()
    path = program(folder)
    equal(listed(path), {"APP::Alpha::Done"}, "listed")
    _, out, _ = run([PEM, "list", "-v", path, "Done"], cwd=tmp())
    assert "how many" in out, out
    equal(counted(path, "APP::Alpha::Done"), {"APP::Alpha::Done": 10}, "stat")
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-e", "APP::Alpha::Done", "-o", trace, "--", path], cwd=tmp())
    equal(rc, 0, "record, which said " + err)
    assert "10 events" in err, err
    rc, out, err = run([PEM, "top", "--once", "-e", "Alpha", "--", path], cwd=tmp())
    equal(rc, 0, "top, which said " + err)


@test
def what_matches_nothing():
    "a pattern that none of a program's events matches, a program without any, and a file that is none"
    folder = tmp()
    path = program(folder)
    rc, _, err = run([PEM, "list", path, "Sched::Switch"])
    assert rc == 1 and "brings along no such event" in err, err
    rc, _, err = run([PEM, "list", "/bin/true"])
    assert rc == 1 and "brings along no events" in err, err
    with open(path, "rb") as whole, open(folder + "/cut", "wb") as cut:
        cut.write(whole.read(1000))
    rc, _, err = run([PEM, "list", folder + "/cut"])
    assert rc == 1 and "damaged ELF file" in err, err


@test
def of_stripped_programs():
    "strip leaves them"
    need("strip")
    path = program(tmp())
    equal(run(["strip", path])[0], 0, "strip")
    equal(listed(path), {"APP::Alpha::Done"}, "listed")
    equal(counted(path, "APP::Alpha::Done"), {"APP::Alpha::Done": 10}, "counted")


@test
def of_static_programs():
    "a program that is linked statically, at a fixed address or not"
    folder = tmp()
    stubs(folder, "alpha")
    write(folder + "/program.c", "#include \"alpha.h\"\nint main(void) { pem_notify_alpha_done(1); return 0; }\n")
    for flag in ("-static", "-static-pie"):
        rc, _, err = run(["cc", flag, "-I" + folder, "-I" + ROOT + "/spec/abi", "program.c", "-o", "program", "-ldl"], cwd=folder)
        assert rc == 0, err
        equal(listed(folder + "/program"), {"APP::Alpha::Done"}, flag)


@test
def of_programs_made_before():
    "one whose models lie elsewhere is not known, and is recorded as ever"
    need("objcopy")
    path = program(tmp())
    equal(run(["objcopy", "--rename-section", "pem_model=.rodata.old", path])[0], 0, "objcopy")
    equal(listed(path), set(), "listed")
    rc, _, err = run([PEM, "record", "-e", "APP", "-o", tmp() + "/trace", "--", path], cwd=tmp())
    assert rc == 0 and "events" in err, err


@test
def of_several_object_files():
    "each object file has its copy, and each provider is known once"
    folder = tmp()
    stubs(folder, "alpha")
    stubs(folder, "beta")
    write(folder + "/one.c", "#include \"alpha.h\"\n#include \"beta.h\"\nvoid one(void);\nvoid one(void) { pem_notify_beta_done(1); }\n")
    write(folder + "/two.c", "#include \"beta.h\"\n#include \"alpha.h\"\nvoid one(void);\n"
                             "int main(void) { one(); pem_notify_alpha_done(1); return 0; }\n")
    cc(folder, "one.c", "two.c", "-o", "program", "-ldl")
    equal(listed(folder + "/program"), {"APP::Alpha::Done", "APP::Beta::Done"}, "listed")


@test
def of_libraries():
    "those of a library, and of one that it needs in turn, are found where the loader finds them"
    folder = tmp()
    library(folder, "deep", where="inner")
    library(folder, "beta", "-Wl,--no-as-needed", "-Linner", "-ldeep", "-Wl,-rpath,$ORIGIN/inner")
    path = program(folder, "alpha", "beta", "-L.", "-lbeta", "-Wl,-rpath,${ORIGIN}", "-Wl,--enable-new-dtags",
                   "-Wl,-rpath-link,inner")
    equal(listed(path), {"APP::Alpha::Done", "APP::Beta::Done", "APP::Deep::Done"}, "by DT_RUNPATH")
    equal(counted(path, "APP::Beta::Done"), {"APP::Beta::Done": 1}, "counted")
    equal(listed(folder + "/libbeta.so"), {"APP::Beta::Done", "APP::Deep::Done"}, "of the library itself")


@test
def where_libraries_are():
    "DT_RPATH serves what libraries need, too, DT_RUNPATH does not; LD_LIBRARY_PATH does; a slash is a path"
    folder = tmp()
    library(folder, "deep")
    library(folder, "beta", "-Wl,--no-as-needed", "-L.", "-ldeep")
    old = program(folder, "alpha", "beta", "-L.", "-lbeta", "-Wl,-rpath," + folder, "-Wl,--disable-new-dtags")
    equal(listed(old), {"APP::Alpha::Done", "APP::Beta::Done", "APP::Deep::Done"}, "by DT_RPATH")
    new = program(folder, "alpha", "beta", "-L.", "-lbeta", "-Wl,-rpath," + folder, "-Wl,--enable-new-dtags")
    equal(listed(new), {"APP::Alpha::Done", "APP::Beta::Done"}, "by DT_RUNPATH")
    none = program(folder, "alpha", "beta", "-L.", "-lbeta", "-Wl,-rpath-link,.")
    equal(listed(none), {"APP::Alpha::Done"}, "without a folder")
    equal(listed(none, {"LD_LIBRARY_PATH": "/nowhere:" + folder}),
          {"APP::Alpha::Done", "APP::Beta::Done", "APP::Deep::Done"}, "by LD_LIBRARY_PATH")
    slash = program(folder, "alpha", "beta", folder + "/libbeta.so", "-Wl,-rpath-link,.")
    equal(listed(slash), {"APP::Alpha::Done", "APP::Beta::Done"}, "by its path")
    os.remove(folder + "/libbeta.so")
    write(folder + "/libbeta.so", "damaged")
    equal(listed(slash), {"APP::Alpha::Done"}, "of a damaged library")


@test
def which_library_serves():
    "one for another processor, and what is no library, is passed over; an empty folder is the current one"
    folder = tmp()
    library(folder, "beta")
    library(folder, "deep", where="other")
    os.mkdir(folder + "/text")
    write(folder + "/text/libbeta.so", "damaged")
    path = program(folder, "alpha", "beta", "-L.", "-lbeta")
    with open(folder + "/other/libdeep.so", "r+b") as other:
        other.seek(18)
        other.write(b"\x15\x00")  # e_machine: PowerPC
    os.rename(folder + "/other/libdeep.so", folder + "/other/libbeta.so")
    folders = ":".join(folder + "/" + name for name in ("text", "other", "."))
    equal(listed(path, {"LD_LIBRARY_PATH": folders}), {"APP::Alpha::Done", "APP::Beta::Done"}, "listed")
    equal(listed(path, {"LD_LIBRARY_PATH": ":"}, folder), {"APP::Alpha::Done", "APP::Beta::Done"}, "in the current folder")
    equal(listed(path, {"LD_LIBRARY_PATH": ""}, folder), {"APP::Alpha::Done"}, "in none")


@test
def a_library_with_a_list_of_its_own():
    "where a library has DT_RUNPATH, the program's DT_RPATH does not serve what it needs"
    folder = tmp()
    library(folder, "deep")
    library(folder, "beta", "-Wl,--no-as-needed", "-L.", "-ldeep", "-Wl,-rpath,/nowhere", "-Wl,--enable-new-dtags")
    path = program(folder, "alpha", "beta", "-L.", "-lbeta", "-Wl,-rpath," + folder, "-Wl,--disable-new-dtags")
    equal(listed(path), {"APP::Alpha::Done", "APP::Beta::Done"}, "listed")


@test
def thousands_of_folders():
    "a program that names thousands of folders is given up, and one with a folder of any length is not"
    folder = tmp()
    library(folder, "beta")
    path = program(folder, "alpha", "beta", "-L.", "-lbeta", "-Wl,-rpath,/" + "x" * 5000 + ":" + folder)
    equal(listed(path), {"APP::Alpha::Done", "APP::Beta::Done"}, "behind a long folder")
    path = program(folder, "alpha", "beta", "-L.", "-lbeta", "-Wl,-rpath," + "/n:" * 20001)
    rc, _, err = run([PEM, "list", path])
    assert rc == 1 and "names more than 20000 paths of libraries" in err, err
    if SAN:
        skip("the command would need the sanitizer's library first")
    rc, _, err = run([PEM, "stat", "-e", "APP::Alpha::Done", "--", path], cwd=tmp())
    assert "known by name: '%s' names more than 20000 paths of libraries" % path in err, err
    rc, _, err = run([PEM, "stat", "-q", "-e", "APP::Alpha::Done", "--", path], cwd=tmp())
    assert "20000" not in err, err


@test
def of_installed_libraries():
    "ld.so.cache tells where an installed library is: pem's own, which carries events of the catalogue"
    rc, out, _ = run(["/sbin/ldconfig", "-p"])
    if rc or "libc.so.6" not in out:
        skip("no ld.so.cache here")
    folder = tmp()
    path = program(folder)
    # libc carries nothing; that it was found shows in what is opened, by pem's own loader and then by pem.
    need("strace")
    rc, _, err = run(["strace", "-e", "trace=openat", PEM, "list", path])
    if rc:
        skip("strace can't trace here")
    opened = [line for line in err.splitlines() if " = -1" not in line]
    for name in "/etc/ld.so.cache", "libc.so.6":
        assert sum(name + '"' in line for line in opened) >= 2, (name, opened)


@test
def scripts():
    "a script is recorded as before, and nothing is said of it"
    folder = tmp()
    path = program(folder)
    script = write(folder + "/script", "#!/bin/sh\nexec %s\n" % path)
    os.chmod(script, 0o755)
    rc, _, err = run([PEM, "record", "-e", "APP", "-o", tmp() + "/trace", "--", script], cwd=tmp())
    assert rc == 0 and "script" not in err and "ELF" not in err, err
    rc, _, err = run([PEM, "list", script])
    assert rc == 1 and "brings along no events" in err, err


@test
def a_spec_that_differs():
    "a spec beside the program that describes another record is left out, and the program's own events are taken"
    folder = tmp()
    path = program(folder)
    shutil.move(path, folder + "/moved")
    write(folder + "/alpha.xml", SPEC % ("alpha", "Alpha", "Alpha", "other"))
    if SAN:
        skip("the command would need the sanitizer's library first")
    rc, out, err = run([PEM, "stat", "--json", "-e", "APP::Alpha::Done", "--", folder + "/moved"], cwd=tmp())
    assert rc == 0 and "is not the 'APP::Alpha::Done' of %s/moved" % folder in err, err
    equal([e["count"] for e in json.loads(out)["events"]], [10], "counted")
    equal(run([PEM, "stat", "-q", "-e", "APP::Alpha::Done", "--", folder + "/moved"], cwd=tmp(),
              env={"PEM_SPEC_PATH": folder})[0], 0, "status, of a spec that PEM_SPEC_PATH names")


@test
def nothing_is_run():
    "neither the program nor a constructor of its library runs when it is listed"
    folder = tmp()
    write(folder + "/trap.c", "#include <stdio.h>\n__attribute__((constructor)) static void trap(void)\n"
                              "{ fclose(fopen(\"%s/ran\", \"w\")); }\nvoid raise_trap(void);\nvoid raise_trap(void) { }\n" % folder)
    cc(folder, "-shared", "-fPIC", "trap.c", "-o", "libtrap.so")
    path = program(folder, "alpha", "trap", "-L.", "-ltrap", "-Wl,-rpath,$ORIGIN")
    equal(listed(path), {"APP::Alpha::Done"}, "listed")
    assert not os.path.exists(folder + "/ran"), "the library's constructor ran"


@test
def files_of_bad_models():
    "the first bad model of a file is told of, not thousands of them"
    need("objcopy")
    folder = tmp()
    path = program(folder)
    with open(folder + "/bad", "wb") as bad:
        bad.write(b"x\0" * 5000)
    equal(run(["objcopy", "--update-section", "pem_model=" + folder + "/bad", path])[0], 0, "objcopy")
    rc, _, err = run([PEM, "list", path])
    equal((rc, len(err.splitlines())), (1, 2), err)
    assert "events that %s describes are left out" % path in err and "its further events are left out" in err, err


@test
def opened_by_a_handle():
    "what a name stands for is tested before it is opened, and can't be replaced in between"
    need("strace")
    path = program(tmp())
    rc, _, err = run(["strace", "-e", "trace=open,openat,openat2", PEM, "list", path])
    if rc:
        skip("strace can't trace here")
    opened = [line for line in err.splitlines() if path + '"' in line]
    assert opened and all("O_PATH" in line for line in opened), opened


@test
def beside_a_program_in_the_root():
    "$ORIGIN of a program in / is /, not the current folder"
    folder = tmp()
    library(folder, "beta")
    path = program(folder, "alpha", "beta", "-L.", "-lbeta", "-Wl,-rpath,$ORIGIN")
    root = folder + "/root"
    os.mkdir(root)
    script = "set -e\n"
    for name in sorted(os.listdir("/")):
        if os.path.islink("/" + name):
            os.symlink(os.readlink("/" + name), root + "/" + name)
        elif os.path.isdir("/" + name):
            os.mkdir(root + "/" + name)
            script += "mount --rbind '/%s' '%s/%s'\n" % (name, root, name)
    shutil.move(path, root + "/program")
    shutil.move(folder + "/libbeta.so", root + "/libbeta.so")
    if run(["unshare", "-rm", "sh", "-c", script])[0]:
        skip("no mounts of one's own here")
    rc, out, err = run(["unshare", "-rm", "sh", "-c", script + "exec chroot '%s' sh -c 'cd /tmp; exec %s list --json /program'" % (root, PEM)])
    equal(rc, 0, err)
    equal({event["name"] for event in json.loads(out)}, {"APP::Alpha::Done", "APP::Beta::Done"}, "listed")


@test
def files_by_name():
    "a path is a file's, also where there is none; a file's name alone is a word, and the file is told of"
    folder = tmp()
    path = program(folder)
    rc, _, err = run([PEM, "list", "./none"], cwd=folder)
    assert rc == 1 and "./none: no such file" in err, err
    for what in "/dev/null", folder:
        rc, _, err = run([PEM, "list", what])
        assert rc == 1 and "%s is no program file" % what in err, err
    os.rename(path, folder + "/unlikely-word")
    for word in "program", "unlikely-word":
        os.path.exists(folder + "/program") or shutil.copy(folder + "/unlikely-word", folder + "/program")
        _, _, err = run([PEM, "list", word], cwd=folder)
        assert "for the file: pem list ./" + word in err, err
    _, _, err = run([PEM, "list", "program"])
    assert "for the file" not in err, err


@test
def a_source_named_like_a_word():
    "a source's name that is an ordinary word of a reason stays"
    rc, out, err = run([PEM, "list", "HW::HWPerf::HPMsAtEvent"])
    assert rc == 0 and "reads of that name" not in out, out + err


run_all()
