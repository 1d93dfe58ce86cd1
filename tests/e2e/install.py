# SPDX-License-Identifier: MIT
"""install: what `make install` lays down is enough to run pem and to build against it, away from this tree"""
import atexit
import functools
import os
import re
import shlex
import shutil
import tempfile

from preload import compile_program
from tap import BUILD, PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp

LONG_S = 28

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


def installed(prefix, *more, root=None, **env):
    """make install, under the DESTDIR root, or a fresh one: this folder, and its output."""
    if SAN:
        skip("a sanitized build is not for installing")
    need("make", "pkg-config")
    root = tmp() if root is None else root
    rc, out, err = run(["make", "-C", ROOT, "B=" + BUILD, "DESTDIR=" + root, "PREFIX=" + prefix, *more, "install", "--no-print-directory"],
                       env=dict(AWAY, **env), timeout=110)
    equal(rc, 0, "exit status of make install, which said: " + out[-2000:] + err[-2000:])
    return root, out


@functools.lru_cache(None)
def install(prefix, *more):
    """make install under a DESTDIR that tests share, and do not change; its path."""
    folder = tempfile.mkdtemp(prefix="pem-test-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    umask = os.umask(0o077)
    try:
        return installed(prefix, *more, root=folder)[0]
    finally:
        os.umask(umask)


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
                 "share/pem/spec/pem.xsd", "share/pem/valgrind.supp", "share/doc/pem/LICENSES/MIT.txt",
                 "share/man/man7/pem-events.7", "share/man/man7/pem-os-sched.7", "share/doc/pem/events/index.html"):
        assert os.path.isfile(root + "/usr/" + path), path + " was not installed"
    equal(os.readlink(root + "/usr/lib/libpem.so.1"), "libpem.so.1.0.0", "libpem.so.1")
    equal(os.readlink(root + "/usr/lib/libpem.so"), "libpem.so.1", "libpem.so")
    exporters = [f for f in os.listdir(root + "/usr/lib/pem") if f.startswith("export-")]
    assert exporters, "no exporter in lib/pem"
    for built, installed in (("bin", "bin"), ("lib", "lib"), ("lib/pem", "lib/pem"), ("lib/pem/valgrind", "lib/pem/valgrind")):
        missing = set(os.listdir(BUILD + "/" + built)) - set(os.listdir(root + "/usr/" + installed)) - {"lab"}
        equal(missing, set(), "built in %s and not installed" % built)


def odd_modes(root):
    """Folders and files in root, without links, that not everybody can read, or that others can write."""
    paths = [os.path.join(folder, name) for folder, folders, files in os.walk(root) for name in folders + files]
    return [path[len(root):] for path in paths if not os.path.islink(path) and os.stat(path).st_mode & 0o777 not in (0o755,) + (0o644,) * os.path.isfile(path)]


@test
def modes_of_installed_files():
    "everybody can read installed files and folders, and only the owner can write them, if root's umask is 077"
    equal(odd_modes(install("/usr")), [], "files and folders with other modes")


@test
def modes_of_the_modules_sources():
    "everybody can read the module's sources and its udev rule after make kmod-install with umask 077"
    if SAN:
        skip("a sanitized build is not for installing")
    need("make")
    root, kernel = tmp(), tmp()
    for name in ("kmod", "headers"):
        os.mkdir(kernel + "/" + name)
        with open(kernel + "/" + name + "/Makefile", "w", encoding="ascii") as out:
            out.write("modules_install:\n\t@umask >$(INSTALL_MOD_PATH)/umask\n")
    rc, out, err = run(["sh", "-c", 'umask 077 && exec make "$@"', "sh", "-C", ROOT, "-o", "kmod", "kmod-install", "B=" + BUILD, "DESTDIR=" + root,
                        "KMOD=" + kernel + "/kmod", "KDIR=" + kernel + "/headers"], env=AWAY)
    equal(rc, 0, "exit status of make kmod-install, which said: " + out[-1000:] + err[-1000:])
    assert os.path.exists(root + "/usr/lib/udev/rules.d/60-pem.rules"), "no udev rule was installed"
    with open(root + "/umask", encoding="ascii") as text:
        equal(text.read(), "0022\n", "umask of the kernel's modules_install")
    os.remove(root + "/umask")
    equal(odd_modes(root), [], "files and folders with other modes")


@test
def installs_what_is_built():
    "make install into another PREFIX, by a caller with other commands and CFLAGS, compiles and links nothing"
    before = {name: os.stat(os.path.join(folder, name)).st_mtime_ns for folder, _, names in os.walk(BUILD + "/lib") for name in names}
    found = open(BUILD + "/found", encoding="utf-8").read()
    root, said = installed("/opt/other", PATH="/usr/sbin:/usr/bin:/sbin:/bin", CFLAGS="-O0")
    equal(re.findall(r"^  [A-Z]+ .*", said, re.MULTILINE), [], "made")
    after = {name: os.stat(os.path.join(folder, name)).st_mtime_ns for folder, _, names in os.walk(BUILD + "/lib") for name in names}
    equal(after, before, "times of the built libraries")
    equal(open(BUILD + "/found", encoding="utf-8").read(), found, "found libraries")
    with open(root + "/opt/other/lib/pkgconfig/libpem.pc", encoding="utf-8") as text:
        assert text.read().count("=/opt/other") == 2, "libpem.pc names another place"


def multiarch():
    """Where Debian has libraries of this machine."""
    return "/usr/lib/" + run(["cc", "-dumpmachine"])[1].strip()


@test
def programs_load_their_own_library():
    "an installed program loads the libpem of its LIBDIR, which may be lib, lib64 or the machine's folder"
    need("ldd")
    for prefix, libdir in (("/usr", "/usr/lib"), ("/opt/pem", "/opt/pem/lib64"), ("/usr", multiarch())):
        root = install(prefix, "LIBDIR=" + libdir)
        for program in ("pem", "pem-page-size"):
            if not os.path.exists(BUILD + "/bin/" + program):
                continue
            _, out, err = run(["ldd", root + prefix + "/bin/" + program], env=AWAY)
            loaded = re.search(r"libpem\.so\.1 => (\S+)", out)
            assert loaded, out + err
            equal(os.path.realpath(loaded.group(1)), root + libdir + "/libpem.so.1.0.0", "libpem of %s with LIBDIR=%s" % (program, libdir))


@test
def library_of_another_version():
    "a program that loads a libpem of another version says so, and tells its own version"
    other = compile_program('const char *pem_version(void) { return "9.9.9"; }', "other.so", flags=["-shared", "-fPIC"])
    for program in (PEM, BUILD + "/bin/pem-page-size"):
        if not os.path.exists(program):
            continue
        rc, out, err = run([program, "--help"], env={"LD_PRELOAD": other})
        equal((rc, "9.9.9" in out), (0, False), "status, and whether the library's version is told as the program's")
        assert re.match(r"pem: this program is of version \S+, but it has loaded libpem 9\.9\.9 from %s; " % re.escape(os.path.dirname(other)), err), err
        equal(run([program, "--help"])[2], "", "said with its own library")


@test
def simulated_hardware_with_another_libdir():
    "pem stat --hardware finds its tool with the LIBDIR of a distribution"
    if not os.path.exists(BUILD + "/lib/pem/valgrind/pem-hardware-amd64-linux"):
        skip("the tool for Valgrind is not built")
    root, work = install("/usr", "LIBDIR=" + multiarch()), tmp()
    with open(work + "/machine.xml", "w", encoding="ascii") as text:
        text.write("<hardware page='4K' memoryCycles='100' walkCycles='30'>"
                   "<cache level='1' kind='instruction' size='32K' ways='8' line='64'/>"
                   "<cache level='1' kind='data' size='32K' ways='8' line='64'/></hardware>")
    rc, _, err = run([root + "/usr/bin/pem", "stat", "-q", "--hardware", work + "/machine.xml", "--", "true"], env=away(root, multiarch()))
    assert rc == 0 and "HW::Simulated::Instructions" in err, (rc, err)


@test
def private_libraries():
    "what pkg-config says of an archive is enough to link all of it"
    root, work = install("/usr"), tmp()
    with open(work + "/main.c", "w", encoding="ascii") as text:
        text.write("int main(void) { return 0; }\n")
    for name in ("libpem", "libpem-names", "libpem-agent"):
        if not os.path.exists("%s/usr/lib/pkgconfig/%s.pc" % (root, name)):
            continue
        rc, flags, err = run(["pkg-config", "--static", "--libs", name], env=away(root, "/usr/lib"))
        equal(rc, 0, "pkg-config --static %s, which said: %s" % (name, err))
        flags = re.sub(r"-l(pem\S*)", r"-Wl,--whole-archive -l:lib\1.a -Wl,--no-whole-archive", flags)
        rc, _, err = run(["cc", "main.c", "-o", "main"] + shlex.split(flags), cwd=work, env=AWAY)
        equal(rc, 0, "linking with %s, which said: %s" % (flags, err))


def would_make(build, **env):
    """The lines that tell of compiling and linking in a dry run of make install from this build."""
    if SAN:
        skip("a sanitized build is not for installing")
    need("make")
    rc, out, err = run(["make", "-n", "-C", ROOT, "B=" + build, "DESTDIR=/nowhere", "install"], env=dict(AWAY, **env))
    equal(rc, 0, "exit status of make -n install, which said: " + err[-2000:])
    return re.findall(r"printf '  %-8s %s\\n' (\S+ \S+);", out)


@test
def installs_with_other_libraries():
    "make install compiles and links nothing if the installer's pkg-config finds fewer libraries than the builder's, or more"
    front, fewer = tmp(), tmp()
    with open(front + "/pkg-config", "w", encoding="ascii") as out:
        out.write("#!/bin/sh\nexit 1\n")
    os.chmod(front + "/pkg-config", 0o755)
    os.mkdir(fewer + "/bin")
    for name, text in (("complete", "bin/pem\n"), ("found", "HAVE_JSON=1 CFLAGS=-O2 -g\n"), ("bin/pem", "")):
        with open(fewer + "/" + name, "w", encoding="ascii") as out:
            out.write(text)
    os.utime(fewer + "/complete")
    equal(would_make(BUILD, PATH=front + ":/usr/sbin:/usr/bin:/sbin:/bin")[:10], [], "made if the installer has fewer")
    equal(would_make(fewer)[:10], [], "made if the installer has more")
    os.utime(fewer + "/complete", (0, 0))
    assert "LINK " + fewer + "/bin/pem" in would_make(fewer), "sources that are newer than the build are not built"


VERBS = """
set -e
pem list APP >list
pem doctor >doctor
pem record -q -e 'APP::Libc::*' -o one -- pem mark run phase -- /bin/ls / >/dev/null
pem record -q -e 'APP::Libc::*' -o two -- /bin/ls / >/dev/null
pem report one >report
pem export --to csv one -o one.csv
pem export --to html one -o one.html
pem diff one two >diff
pem stat -o stat -e Malloc -- /bin/ls / >/dev/null
pem top --once --json -e Malloc -i 50 >top
pem run -- /bin/true
pem gen -q --lang c -o gen "$1/share/pem/spec/phase.xml"
pem spec check "$1/share/pem/spec/phase.xml" >check
pem record -q --overwrite -e 'APP::Libc::*' -o flight -- pem snapshot -o snapshot
pem lab --help >lab
pem db list >db || [ $? = 1 ]
"""


@test
def each_verb_runs_elsewhere():
    "each verb of an installed pem runs as another user while the checkout is away"
    if os.geteuid() != 0:
        skip("only root can hide the checkout and become another user")
    root, work = install("/usr"), tmp()
    os.chmod(root, 0o755)
    os.chmod(work, 0o777)
    prefix = root + "/usr"
    verbs = VERBS
    if os.path.exists(BUILD + "/bin/pem-page-size"):
        verbs += "pem page-size forget nothing >page 2>&1 || [ $? = 1 ]\npem page-size --help >page.help\n"
    if os.path.exists(BUILD + "/bin/pem-explore"):
        verbs += "pem explore init xz -o e.xml >init\npem explore check e.xml >explore\n"
    if os.path.exists(BUILD + "/bin/pem-rates"):
        verbs += "pem rates -q -- true 2>rates || [ $? = 2 ]\n"  # system calls are root's to record
    wanted = set(re.findall(r"^  pem (\S+) ", run([prefix + "/bin/pem", "--help"], env=AWAY)[1], re.MULTILINE))
    used = set(re.findall(r"\bpem ([a-z][a-z-]*)", verbs))
    equal(wanted - used, set(), "verbs that this test does not run")
    # unshare makes the mounts private first: a shared one would hide the checkout from everybody. In a chroot, whose / is
    # not a mount point, it can't and fails.
    hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', ROOT]
    if run(hide + ["true"])[0]:
        skip("the checkout can't be hidden from one process here: no private mount namespace")
    os.mkdir(work + "/home", 0o777)
    os.chmod(work + "/home", 0o777)
    rc, out, err = run(hide + ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", "sh", "-c", "umask 077; cd \"$2/home\"; " + verbs,
                               "sh", prefix, work],
                       env=dict(AWAY, PATH=prefix + "/bin:/usr/bin:/bin", HOME=work + "/home", XDG_RUNTIME_DIR=None, PEM_RUNTIME_DIR=None,
                                TMPDIR=work + "/home"))
    equal(rc, 0, "exit status of the verbs, which said: " + out[-1000:] + err[-2000:])
    for name, word in (("list", "Malloc"), ("report", "phase"), ("one.html", "<html"), ("stat", "Malloc"), ("gen/phase.h", "pem")):
        with open(work + "/home/" + name, encoding="utf-8") as text:
            assert word in text.read(), "%s lacks %s" % (name, word)


def files_in(root):
    return {os.path.join(folder, name)[len(root):] for folder, folders, files in os.walk(root)
            for name in files + [name for name in folders if os.path.islink(os.path.join(folder, name))]}


@test
def uninstall():
    "make uninstall removes all that make install put there, and leaves other files"
    root = install("/usr")
    listed = root + "/usr/share/pem/installed"
    with open(listed, encoding="utf-8") as text:
        equal(set(text.read().splitlines()), files_in(root) - {"/usr/share/pem/installed"}, "listed files")
    copy = tmp() + "/a copy"
    shutil.copytree(root, copy, symlinks=True)
    cached = copy + next(name for name in files_in(root) if name.endswith("/pemapi/_place.py")).replace("_place.py", "__pycache__")
    os.mkdir(cached)
    for path in (copy + "/usr/bin/other", cached + "/_place.pyc"):
        open(path, "w", encoding="ascii").close()
    command = ["make", "-C", ROOT, "--no-print-directory", "uninstall", "PREFIX=/usr"]
    rc, _, err = run(command + ["DESTDIR=" + os.path.relpath(copy, ROOT)], env=AWAY)
    equal(rc, 0, "exit status of make uninstall, which said: " + err)
    equal(files_in(copy), {"/usr/bin/other"}, "files left")
    equal([folder for folder, _, _ in os.walk(copy) if re.search(r"/pem(api)?(/|$)", folder)], [], "folders left")
    rc, _, err = run(command + ["DESTDIR=" + copy], env=AWAY)
    assert rc and "make install, which writes %s/usr/share/pem/installed, was not run with this PREFIX" % copy in err, (rc, err)


@test
def uninstall_of_a_list_that_leads_out():
    "make uninstall removes nothing if a line of its list has .. or does not begin with /"
    root = tmp()
    os.makedirs(root + "/stage/usr/share/pem")
    open(root + "/mine", "w", encoding="ascii").close()
    for line in "/../mine", "/usr/../../mine", "/usr/..", "../mine", "-rf":
        with open(root + "/stage/usr/share/pem/installed", "w", encoding="ascii") as out:
            out.write("/usr/share/pem/installed\n%s\n" % line)
        rc, _, err = run([ROOT + "/tools/uninstall", root + "/stage", root + "/stage/usr/share/pem/installed"], env=AWAY)
        assert rc and "remove this line" in err, (line, rc, err)
        equal((sorted(os.listdir(root)), os.listdir(root + "/stage/usr/share/pem")), (["mine", "stage"], ["installed"]), "files, with " + line)


@test
def uninstall_in_a_folder_of_another_user():
    "make uninstall as root removes nothing if another user can replace a folder on the way to a file"
    if os.geteuid() != 0:
        skip("only root can give a folder to another user")
    root = tmp()
    os.makedirs(root + "/stage/usr/share/pem")
    os.mkdir(root + "/mine")
    open(root + "/mine/kept", "w", encoding="ascii").close()
    os.symlink(root + "/mine", root + "/stage/usr/share/pem/doc")
    listed = root + "/stage/usr/share/pem/installed"
    with open(listed, "w", encoding="ascii") as out:
        out.write("/usr/share/pem/doc/kept\n")
    os.chown(root + "/stage/usr/share", 65534, 65534)
    rc, _, err = run([ROOT + "/tools/uninstall", root + "/stage", listed], env=AWAY)
    assert rc and "/usr/share in %s/stage belongs to another user" % root in err, (rc, err)
    equal((os.listdir(root + "/mine"), os.path.exists(listed)), (["kept"], True), "files")
    os.chown(root + "/stage/usr/share", 0, 0)
    os.chmod(root + "/stage/usr/share", 0o777)
    rc, _, err = run([ROOT + "/tools/uninstall", root + "/stage", listed], env=AWAY)
    assert rc and "everybody can replace files of /usr/share in " in err, (rc, err)
    os.chmod(root + "/stage/usr/share", 0o755)
    equal(run([ROOT + "/tools/uninstall", root + "/stage", listed], env=AWAY)[0], 0, "exit status once it is root's")


@test
def names_that_the_shell_reads():
    "a DESTDIR with a quote, a command, a backslash or a newline is refused before anything is run or made"
    for odd in "a'; touch made; '", 'b"c', "d`touch made`", "e\\nf", "g\nh", "$$(touch made)":
        root = tmp()
        for goal in "install", "uninstall":
            rc, _, err = run(["make", "-C", ROOT, "--no-print-directory", goal, "DESTDIR=%s/%s" % (root, odd)], env=AWAY, cwd=root)
            assert rc and "DESTDIR has a newline or one of" in err, (odd, goal, rc, err)
        equal(os.listdir(root), [], "files after " + odd)


@test
def relative_prefix():
    "a PREFIX or LIBDIR that does not begin with / is refused"
    for name in "PREFIX", "LIBDIR":
        rc, _, err = run(["make", "-C", ROOT, "--no-print-directory", "install", "DESTDIR=" + tmp(), name + "=here"], env=AWAY)
        assert rc and "%s=here does not begin with /: try %s=" % (name, name) in err, (rc, err)


@test
def next_step():
    "the lines that make install ends with make a shell find pem, pemapi, libpem and its flags"
    prefix, work = tmp() + "/pem", tmp()
    _, said = installed(prefix, root="")
    lines = [line for line in said.splitlines() if line.startswith("  export ")]
    assert lines and said.endswith("Next: pem doctor\n"), said
    with open(ROOT + "/docs/consume.md", encoding="utf-8") as text:
        page = text.read()
    for language, name in (("python", "large.py"), ("cpp", "large.cpp")):
        with open(work + "/" + name, "w", encoding="utf-8") as out:
            first = re.search(r"^```%s\n(.*?)^```" % language, page, re.MULTILINE | re.DOTALL).group(1)
            out.write(first.replace("/usr/share", "/usr/include"))
    commands = ["set -e", *lines, "cd '%s'" % work, "pem --version", "python3 large.py | tail -n 1"]
    if shutil.which("c++"):
        commands.append("c++ -std=c++17 large.cpp -o large $(pkg-config --cflags --libs libpem) && ./large | tail -n 1")
    rc, out, err = run(["sh", "-c", "\n".join(commands)], env=dict(AWAY, PATH="/usr/bin:/bin"))
    equal(rc, 0, "exit status of these lines, which said: " + err)
    equal(len(re.findall(r"^\d+ large blocks", out, re.MULTILINE)), 2 if shutil.which("c++") else 1, "examples that counted: " + out)


@test
def pages_of_earlier_builds():
    "pages of the event reference that an earlier build left are not installed"
    left = [BUILD + "/gen/reference/" + name for name in ("man/pem-app-left.7", "html/app-left.html")]
    try:
        for path in left:
            open(path, "w", encoding="ascii").close()
        root, _ = installed("/usr")
    finally:
        for path in left:
            os.remove(path)
    pages = os.listdir(root + "/usr/share/man/man7") + os.listdir(root + "/usr/share/doc/pem/events")
    equal(sorted(page for page in pages if "left" in page), [], "pages")
    assert {"pem-app-libc.7", "app-libc.html", "index.html"} <= set(pages), pages


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
        assert flag == "-lpem" or flag.startswith("-Wl,") or flag[2:].startswith(root + "/opt/pem/"), "libpem.pc leads elsewhere: " + flags
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
def a_program_with_stubs_is_linked_with_libpem():
    "a program that raises events through stubs alone needs libpem after a link with --as-needed, if it takes pkg-config's flags"
    root, work = install("/opt/pem", "LIBDIR=/opt/pem/lib64"), tmp()
    env = away(root, "/opt/pem/lib64")
    rc, flags, err = run(["pkg-config", "--cflags", "--libs", "libpem"], env=env)
    equal(rc, 0, "pkg-config, which said: " + err)
    with open(work + "/s.c", "w", encoding="ascii") as text:
        text.write("#include <pem/stubs/phase.h>\nint main(void) { return 0; }\n")
    for compiler, linker in (("gcc", ""), ("gcc", "gold"), ("clang", ""), ("clang", "lld")):
        if not shutil.which(compiler) or linker and not shutil.which("ld." + linker):
            continue
        chosen = ["-fuse-ld=" + linker] if linker else []
        rc, _, err = run([compiler, "-Wl,--as-needed", *chosen, "s.c", "-o", "s"] + shlex.split(flags) + ["-ldl"], env=env, cwd=work)
        equal(rc, 0, "%s, which said: %s" % (compiler, err))
        needed = run(["readelf", "-d", "s"], env=AWAY, cwd=work)[1]
        assert "[libpem.so.1]" in needed, "%s %s left libpem out: %s" % (compiler, linker, needed)


@test
def prefix_with_a_space():
    "a program is compiled with pkg-config's flags of an installation in a folder whose name has a space"
    root, _ = installed("/opt/my pem")
    work, env = tmp(), away(root, "/opt/my pem/lib")
    for name in sorted(os.listdir(root + "/opt/my pem/lib/pkgconfig")):
        rc, flags, err = run(["pkg-config", "--cflags", "--libs", name[:-len(".pc")]], env=env)
        equal(rc, 0, "pkg-config %s, which said: %s" % (name, err))
        equal([flag for flag in shlex.split(flags) if not flag.startswith("-")], [], "words of the flags of " + name)
    with open(work + "/s.c", "w", encoding="ascii") as text:
        text.write(PROGRAM)
    flags = run(["pkg-config", "--cflags", "--libs", "libpem"], env=env)[1]
    rc, _, err = run(["gcc", "s.c", "-o", "s"] + shlex.split(flags) + ["-ldl"], env=env, cwd=work)
    equal(rc, 0, "gcc, which said: " + err)


@test
def links_of_guides_lead_to_installed_files():
    "each link of an installed guide leads to a file of the installation"
    root, found, broken = install("/usr"), 0, []
    guides = root + "/usr/share/doc/pem/"
    for name in sorted(os.listdir(guides)):
        if not name.endswith(".md"):
            continue
        with open(guides + name, encoding="utf-8") as text:
            for link in re.findall(r"\]\(([^)#\s]+)", text.read()):
                if not link.startswith("http"):
                    found += 1
                    broken += [] if os.path.exists(guides + link) else [(name, link)]
    equal(broken, [], "links that lead nowhere")
    assert found > 60, found


@test
def references_lead_to_installed_files():
    "headers, man pages and reference pages of an installation name its own guides and examples, and programs no make target"
    root = install("/usr")
    named, elsewhere = set(), []
    for folder in ("include/pem", "share/man/man1", "share/doc/pem/api"):
        for name in os.listdir(root + "/usr/" + folder):
            path = "%s/usr/%s/%s" % (root, folder, name)
            if not os.path.isfile(path):
                continue
            with open(path, encoding="utf-8") as text:
                body = text.read()
            named |= set(re.findall(r"share/(?:doc/pem|pem/spec)/[\w./-]*\w", body))
            elsewhere += [(name, found) for found in re.findall(r"(?<![\w/])(?:docs|examples|spec/cpo)/\w[\w./-]*", body)]
            elsewhere += [(name, found) for found in re.findall(r"of the documentation|make deps", body)]
    equal(elsewhere, [], "references that lead elsewhere")
    assert {"share/doc/pem/consume.md", "share/doc/pem/lab.md", "share/doc/pem/examples/watch.c"} <= named, named
    equal([path for path in sorted(named) if not os.path.exists(root + "/usr/" + path)], [], "named and not installed")
    for folder in ("bin", "lib", "lib/pem"):
        for name in os.listdir(root + "/usr/" + folder):
            path = "%s/usr/%s/%s" % (root, folder, name)
            if os.path.isfile(path):
                with open(path, "rb") as data:
                    assert b"make deps" not in data.read(), name + " advises 'make deps', which an installation does not have"


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
    root, work = install("/usr"), tmp()
    env = away(root, "/usr/lib")
    pem = root + "/usr/bin/pem"
    rc, out, err = run([pem, "list", "APP"], env=env, cwd=work)
    equal(rc, 0, "pem list, which said: " + err)
    assert "APP::" in out, "no application event listed"
    rc, out, err = run([pem, "record", "-e", "APP::Libc::*", "-o", "t", "--", "/bin/ls", "/"], env=env, cwd=work)
    equal(rc, 0, "pem record, which said: " + err)
    rc, out, err = run([pem, "report", "t"], env=env, cwd=work)
    equal(rc, 0, "pem report, which said: " + err)
    assert "Malloc" in out, "no allocation was recorded: " + out


run_all()
