# SPDX-License-Identifier: MIT
"""house_build: what is built with the libraries that are there, and what is old"""
import os
import re
import shutil

from tap import BUILD, ROOT, SAN, equal, need, run, run_all, skip, test, tmp

LONG_S = 24

QUIET = {"MAKEFLAGS": None, "MAKELEVEL": None, "MFLAGS": None}


def text_of(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def as_built():
    """The CFLAGS that the build under test has, for make's command line."""
    return "CFLAGS=" + text_of(BUILD + "/found").split(" CFLAGS=")[1].strip()


def commands_in_front(commands):
    """PATH with a folder of these commands, text of sh by name, in front of the others."""
    front = tmp()
    for name, text in commands.items():
        path = os.path.join(front, name.replace("_", "-"))
        with open(path, "w", encoding="utf-8") as out:
            out.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
    return front + ":" + os.environ["PATH"]


def make(folder, target, *words):
    """Status of make for one target of a build elsewhere; with -q 1: it is old."""
    path = os.path.join(folder, target)
    rc, _, err = run(["make", "-s", "B=" + folder, path, *words], cwd=ROOT, env=QUIET)
    assert "No rule" not in err, err
    return rc


@test
def library_comes():
    "what was compiled without a library is compiled again when it has come"
    need("make")
    folder = tmp()
    equal(make(folder, "obj/shared/betweens.o", "HAVE_CAPSTONE="), 0, "built without")
    equal(make(folder, "obj/shared/betweens.o", "-q", "HAVE_CAPSTONE="), 0, "again")
    equal(make(folder, "obj/shared/betweens.o", "-q", "HAVE_CAPSTONE=1"), 1, "with it")


@test
def private_libraries():
    "pkg-config's file of libpem-names lists the libraries that its archive was built with, and no others"
    need("make")
    folder = tmp()
    for words, libraries in ((("HAVE_LIBDW=", "HAVE_CAPSTONE="), ""), (("HAVE_LIBDW=", "HAVE_CAPSTONE=1"), "capstone"),
                             (("HAVE_LIBDW=1", "HAVE_CAPSTONE=1"), "libdw capstone")):
        equal(make(folder, "gen/libpem-names.pc.in", *words), 0, "status")
        told = re.search(r"^Requires\.private: ?(.*)$", text_of(folder + "/gen/libpem-names.pc.in"), re.MULTILINE).group(1)
        equal(told, libraries, "libraries with " + " ".join(words))


@test
def clean_removes_the_build_that_is_named():
    "make clean B=FOLDER removes this build and no other, and no folder that is no build"
    need("make")
    folder = tmp()
    os.makedirs(folder + "/tools")
    for name in ("Makefile", "tools/build.mk"):
        shutil.copy(os.path.join(ROOT, name), os.path.join(folder, name))
    for name in ("build", "named", "other"):
        os.mkdir(os.path.join(folder, name))
    open(folder + "/named/found", "w", encoding="ascii").close()
    rc, _, err = run(["make", "clean", "B=other"], cwd=folder, env=QUIET)
    assert rc and "pem was not built in other" in err, (rc, err)
    rc, _, err = run(["make", "clean", "B=named"], cwd=folder, env=QUIET)
    equal(rc, 0, "status (%s)" % err)
    equal(sorted(os.listdir(folder)), ["Makefile", "build", "other", "tools"], "left")
    equal(run(["make", "clean"], cwd=folder, env=dict(QUIET, B=None))[0], 0, "status without a name")
    equal(sorted(os.listdir(folder)), ["Makefile", "other", "tools"], "left then")


@test
def nothing_to_do():
    "make has nothing to do in a tree that is built"
    if SAN:
        skip("the plain build is asked")
    need("make")
    found = text_of(BUILD + "/found")
    words = ["B=" + BUILD, as_built(), "all", "tests"]
    asked = run(["make", "-q", "-d", *words], cwd=ROOT, env=QUIET)
    if asked[0]:
        _, out, err = run(["make", "-n", *words], cwd=ROOT, env=QUIET)
        raise AssertionError("make would build %s: status %d, %s, %s" % (
            re.findall(r"printf '  %-8s %s\\n' (\S+ \S+);", out)[:10], asked[0], re.findall(r".*Must remake.*|.*is newer than.*", asked[1])[:5],
            asked[2] + err))
    equal(text_of(BUILD + "/found"), found, "found libraries after make -q")


def found_with(*words, **commands):
    """What make finds with these commands in front of the others: a set of the names that it has, and its words."""
    folder = tmp()
    rc, out, err = run(["make", "B=" + folder, "PEM_CODEGEN=false", folder + "/found", *words], cwd=ROOT,
                       env=dict(QUIET, PATH=commands_in_front(commands)))
    equal(rc, 0, "exit status of make, which said: " + err)
    return set(re.findall(r"\b(HAVE_\w+)=1", text_of(folder + "/found"))), out


@test
def flags_of_the_caller():
    "CPPFLAGS and LDFLAGS of the environment reach compiler and linker, and what was built with others is old"
    need("make")
    folder = tmp()
    env = dict(QUIET, CPPFLAGS="-DOF_THE_CALLER", LDFLAGS="-Wl,-z,of-the-caller")
    target = folder + "/lib/pem/pem-confined"
    rc, out, err = run(["make", "-n", "B=" + folder, target], cwd=ROOT, env=env)
    equal(rc, 0, "exit status of make -n, which said: " + err)
    commands = [line for line in out.splitlines() if re.search(r" -o \S*confined", line)]
    equal([line for line in commands if " -c " in line and env["CPPFLAGS"] not in line], [], "compiled without CPPFLAGS")
    equal([line for line in commands if " -c " not in line and env["LDFLAGS"] not in line], [], "linked without LDFLAGS")
    assert len(commands) > 1, out
    equal(make(BUILD, "obj/shared/betweens.o", "-q", as_built(), "CPPFLAGS=-DOF_THE_CALLER"), 1, "make -q with CPPFLAGS of its own")


@test
def another_pkg_config():
    "PKG_CONFIG names the pkg-config that is asked for libraries"
    need("make")
    have = found_with("PKG_CONFIG=false")[0]
    equal(have & {"HAVE_XML2", "HAVE_LIBBPF", "HAVE_VALGRIND"}, set(), "libraries found")


@test
def compiler_without_its_header():
    "an mpicc without mpi.h leaves the adapter of MPI out, and make goes on"
    need("make", "pkg-config")
    have, said = found_with(mpicc="echo -I/nowhere/openmpi\n")
    assert "HAVE_MPI" not in have and "HAVE_XML2" in have, have
    assert "not built: libpem-mpi.so" in said and "mpi.h is missing" in said, said


@test
def libraries_that_do_not_link():
    "a library that pkg-config names, and that can't be linked, is left out"
    need("make", "pkg-config")
    have, _ = found_with(pkg_config="""for word; do
	case $word in
	--libs) echo -lnowhere ;;
	--cflags) echo -I/usr/include/libxml2 ;;
	esac
done
""")
    equal(have - {"HAVE_CLANG_BPF", "HAVE_MPI", "HAVE_OMPT", "HAVE_PFM", "HAVE_JVMTI"}, set(), "libraries found")


def files_with(words, *paths):
    """Those of the files that contain one of these words after strip."""
    found = []
    for path in paths:
        stripped = os.path.join(tmp(), "stripped")
        rc, _, err = run(["strip", "-g", "-o", stripped, path])
        equal(rc, 0, "exit status of strip, which said: " + err)
        with open(stripped, "rb") as file:
            content = file.read()
        found += [path for word in words if os.fsencode(word) in content]
    return found


@test
def path_of_the_checkout():
    "programs and libraries name no folder of the checkout or the build after strip"
    if SAN:
        skip("a sanitizer's runtime names sources")
    need("make", "strip")
    built = [BUILD + "/" + name for name in text_of(BUILD + "/complete").split() if re.match(r"(bin|lib)/.*", name)]
    files = [path for path in built if not path.endswith(".a") and not os.path.islink(path)]
    assert len(files) > 10, files
    equal(files_with((ROOT + "/", BUILD + "/"), *files), [], "files with paths")


@test
def path_of_an_absolute_build():
    "messages compiled from generated code name no folder of a build whose B is absolute"
    need("make", "strip", "protoc-c")
    folder = tmp()
    target = folder + "/obj/gen/viz-export/perfetto.pb-c.o"
    rc, _, err = run(["make", "-s", "B=" + folder, target], cwd=ROOT, env=QUIET)
    if "No rule" in err:
        skip("pem was built without libprotobuf-c")
    equal(rc, 0, "exit status of make, which said: " + err)
    equal(files_with((folder + "/",), target), [], "files with paths")


@test
def another_locale():
    "what sed and grep make of sources is the same in a locale with other letters"
    need("make", "localedef")
    folder, locales = tmp(), tmp()
    made = ["gen/keywords.inc", "gen/libpem/system_calls.h"]
    if run(["localedef", "-i", "tr_TR", "-f", "UTF-8", locales + "/tr_TR.UTF-8"])[0] > 1:
        skip("the locale tr_TR can't be made: package locales has its source")
    rc, _, err = run(["make", "-s", "B=" + folder, *(folder + "/" + name for name in made)], cwd=ROOT,
                     env=dict(QUIET, LOCPATH=locales, LC_ALL="tr_TR.UTF-8"))
    equal(rc, 0, "exit status of make, which said: " + err)
    for name in made:
        equal(text_of(folder + "/" + name).splitlines(), text_of(BUILD + "/" + name).splitlines(), name)


@test
def packages_that_no_test_needs():
    "make check T=word as a user, without packages that it would install as root, names them and runs the tests"
    if SAN:
        skip("the plain build is asked")
    need("make")
    user = commands_in_front({"id": "echo 1000\n", "dpkg-query": ""})
    rc, out, err = run(["make", "B=" + BUILD, as_built(), "T=no test has this name", "check"], cwd=ROOT, env=dict(QUIET, PATH=user))
    assert "sudo apt-get install" in err and "going on without these packages" in err, err
    assert out.endswith("\n0 passed, 0 failed, 0 skipped\n"), out[-500:] + err


run_all()
