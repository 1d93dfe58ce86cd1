# SPDX-License-Identifier: MIT
"""install: what `make install` lays down is enough to run pem and to build against it, away from this tree"""
import os
import re
import shlex
import shutil

from tap import BUILD, ROOT, SAN, equal, need, run, run_all, skip, test, tmp

PROGRAM = r"""
#include <pem/pem.h>
#include <pem/stub.h>
#include <stdio.h>

int main(void)
{
	printf("%s\n", pem_version());
	return 0;
}
"""

# Of the caller's and the runner's environment, nothing that leads back into the build tree.
AWAY = {"LD_LIBRARY_PATH": None, "PYTHONPATH": None, "B": None, "MAKEFLAGS": None, "MAKELEVEL": None, "MFLAGS": None}


def install(prefix, *more):
    """make install under a fresh DESTDIR; its path."""
    if SAN:
        skip("a sanitized build is not for installing")
    need("make", "pkg-config")
    root = tmp()
    rc, out, err = run(["make", "-C", ROOT, "B=" + BUILD, "DESTDIR=" + root, "PREFIX=" + prefix, *more, "install"],
                       env=AWAY, timeout=110)
    equal(rc, 0, "exit status of make install, which said: " + out[-2000:] + err[-2000:])
    return root


def away(root, libdir):
    """Environment in which only root's pem can be found."""
    return dict(AWAY, PATH="/usr/bin:/bin:/usr/sbin:/sbin", LD_LIBRARY_PATH=root + libdir,
                PKG_CONFIG_PATH=root + libdir + "/pkgconfig", PKG_CONFIG_SYSROOT_DIR=root,
                PEM_PLUGIN_PATH=root + libdir + "/pem")


@test
def lays_down_every_part():
    "make install lays down programs, library, headers, specs and pkg-config file"
    root = install("/usr")
    for path in ("bin/pem", "bin/pem-codegen", "lib/libpem.so.1.0.0", "lib/libpem-libc.so", "lib/pkgconfig/libpem.pc",
                 "include/pem/pem.h", "include/pem/stub.h", "include/pem/stub.hpp", "include/pem/stubs/libc.h",
                 "share/pem/spec/pem.xsd", "share/pem/valgrind.supp",
                 "share/man/man7/pem-events.7", "share/man/man7/pem-os-sched.7", "share/doc/pem/events/index.html"):
        assert os.path.isfile(root + "/usr/" + path), path + " was not installed"
    equal(os.readlink(root + "/usr/lib/libpem.so.1"), "libpem.so.1.0.0", "libpem.so.1")
    equal(os.readlink(root + "/usr/lib/libpem.so"), "libpem.so.1", "libpem.so")
    exporters = [f for f in os.listdir(root + "/usr/lib/pem") if f.startswith("export-")]
    assert exporters, "no exporter in lib/pem"


@test
def stubs_of_examples_stay_home():
    "only the catalogue's stubs are installed"
    root = install("/usr")
    wanted = set()
    for folder in os.listdir(ROOT + "/spec"):
        if not os.path.isdir(ROOT + "/spec/" + folder):
            continue
        for name in os.listdir(ROOT + "/spec/" + folder):
            if name.endswith(".xml"):
                with open("%s/spec/%s/%s" % (ROOT, folder, name)) as text:
                    wanted.add(re.search(r"<spec\b[^>]*provider=[\"']([^\"']*)", text.read()).group(1) + ".h")
    equal(set(os.listdir(root + "/usr/include/pem/stubs")), wanted, "stubs")


@test
def installed_library_serves_a_program():
    "a program outside the tree compiles with pkg-config alone, links and runs"
    root, work = install("/opt/pem", "LIBDIR=/opt/pem/lib64"), tmp()
    env = away(root, "/opt/pem/lib64")
    rc, flags, err = run(["pkg-config", "--cflags", "--libs", "libpem"], env=env)
    equal(rc, 0, "pkg-config, which said: " + err)
    for flag in shlex.split(flags):
        assert flag == "-lpem" or flag[2:].startswith(root + "/opt/pem/"), "libpem.pc leads elsewhere: " + flags
    with open(work + "/p.c", "w") as text:
        text.write(PROGRAM)
    for compiler in ("gcc", "clang"):
        if not shutil.which(compiler):
            continue
        rc, out, err = run([compiler, "-Wall", "-Werror", "p.c", "-o", "p"] + shlex.split(flags), env=env, cwd=work)
        equal(rc, 0, compiler + ", which said: " + err)
        rc, out, err = run([work + "/p"], env=env, cwd=work)
        equal(rc, 0, "the program, which said: " + err)
        assert re.fullmatch(r"\d+\.\d+\.\d+\n", out), "pem_version() is %r" % out


@test
def an_agent_is_built_from_an_installation():
    "the example agent compiles with pkg-config alone, and runs a command"
    if not os.path.exists(BUILD + "/lib/libpem-agent.so"):
        skip("pem was built without SQLite or libelf")
    root, work = install("/opt/pem", "LIBDIR=/opt/pem/lib64"), tmp()
    env = dict(away(root, "/opt/pem/lib64"), PEM_DB=work + "/cpo.db")
    os.chmod(work, 0o700)
    rc, flags, err = run(["pkg-config", "--cflags", "--libs", "libpem-agent"], env=env)
    equal(rc, 0, "pkg-config, which said: " + err)
    rc, _, err = run(["gcc", "-Wall", "-Werror", ROOT + "/examples/agent.c", "-o", work + "/agent"] + shlex.split(flags), env=env)
    equal(rc, 0, "gcc, which said: " + err)
    rc, out, err = run([work + "/agent", "sh", "-c", "echo out; exit 5"], env=env, cwd=work)
    assert (rc, out) == (5, "out\n") and "observed" in err, (rc, err)


@test
def installed_stub_compiles():
    "an installed stub header compiles into a program that does not link libpem"
    root, work = install("/usr"), tmp()
    with open(work + "/s.c", "w") as text:
        text.write("#include <pem/stubs/libc.h>\nint main(void) { return 0; }\n")
    rc, out, err = run(["gcc", "-Wall", "-Werror", "-I" + root + "/usr/include", "s.c", "-o", "s", "-ldl"],
                       env=AWAY, cwd=work)
    equal(rc, 0, "gcc, which said: " + err)
    equal(run([work + "/s"], env=AWAY)[0], 0, "exit status")


@test
def installed_pem_runs():
    "the installed pem lists events and records a program without the tree"
    root, work = install("/usr/local"), tmp()
    env = away(root, "/usr/local/lib")
    pem = root + "/usr/local/bin/pem"
    rc, out, err = run([pem, "list", "APP"], env=env, cwd=work)
    equal(rc, 0, "pem list, which said: " + err)
    assert "APP::" in out, "no application event listed"
    rc, out, err = run([pem, "record", "-e", "APP::Libc::*", "-o", "t", "--", "/bin/ls", "/"], env=env, cwd=work)
    equal(rc, 0, "pem record, which said: " + err)
    rc, out, err = run([pem, "report", "t"], env=env, cwd=work)
    equal(rc, 0, "pem report, which said: " + err)
    assert "Malloc" in out, "no allocation was recorded: " + out


run_all()
