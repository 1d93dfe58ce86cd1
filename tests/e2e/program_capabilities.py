# SPDX-License-Identifier: MIT
"""program_capabilities: capabilities that pem was given for itself stay its own, and a privileged pem runs nobody's code"""
import os
import re
import shutil
import struct
import sys

from tap import BUILD, PEM, SAN, equal, need, need_reach, run, run_all, skip, test, tmp

LONG_S = 16

BPF, PERFMON, NET_BIND = 1 << 39, 1 << 38, 1 << 10
SHOW = ["grep", "^Cap", "/proc/self/status"]
USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def user(capabilities):
    """The beginning of a command line that an ordinary user runs with these ambient capabilities."""
    return USER + ["--inh-caps=" + capabilities, "--ambient-caps=" + capabilities]


def sets(text):
    """Capability sets by name, out of /proc/self/status."""
    return {name: int(bits, 16) for name, bits in re.findall(r"^Cap(\w+):\s*([0-9a-f]+)$", text, re.M)}


def here():
    if SAN:
        skip("a sanitizer's build is not readable to others everywhere")
    need_reach()
    rc, out, err = run(user("+bpf,+perfmon,+net_bind_service") + SHOW)
    if rc or sets(out)["Amb"] != BPF | PERFMON | NET_BIND:
        skip("setpriv can't hand on capabilities here: " + err)


def environment(**more):
    folder = tmp()
    os.chmod(folder, 0o777)
    return folder, dict({"PEM_RUNTIME_DIR": os.path.join(folder, "run"), "XDG_RUNTIME_DIR": None, "HOME": folder,
                         "TMPDIR": folder}, **more)


# The program's output goes through a file: pem top keeps it from the terminal.
VERBS = {
    "record": ["record", "-q", "-o", "trace"],
    "stat": ["stat", "-q", "-o", "counts"],
    "top": ["top", "--once"],
    "run": ["run"],
}


def under(verb, as_user):
    """The capability sets of a program under pem VERB."""
    folder, env = environment()
    rc, _, err = run(as_user + [PEM, *VERBS[verb], "--", "sh", "-c", "exec %s >shown" % " ".join(SHOW)], env=env, cwd=folder)
    equal(rc, 0, "status of %s: %s" % (verb, err))
    with open(os.path.join(folder, "shown"), encoding="utf-8") as shown:
        return sets(shown.read())


@test
def programs_do_not_get_them():
    "the program under record, stat, top and run has none of the capabilities in pem's ambient set that pem makes use of"
    here()
    for verb in VERBS:
        got = under(verb, user("+bpf,+perfmon"))
        equal({name: got[name] for name in ("Inh", "Prm", "Eff", "Amb")}, dict.fromkeys(("Inh", "Prm", "Eff", "Amb"), 0), verb)


@test
def programs_keep_others():
    "a capability that pem has no use for, such as that for low ports, is the program's as without pem"
    here()
    for verb in VERBS:
        got = under(verb, user("+bpf,+perfmon,+net_bind_service"))
        equal({name: got[name] for name in ("Inh", "Prm", "Eff", "Amb")},
              dict.fromkeys(("Inh", "Prm", "Eff", "Amb"), NET_BIND), verb)


@test
def roots_programs_keep_theirs():
    "a program that root records has what it has without pem"
    here()
    plain = sets(run(SHOW)[1])
    for verb in VERBS:
        equal(under(verb, []), plain, verb)


@test
def a_consumers_programs_do_not_get_them():
    "neither does the command of a consumer of one's own get them, nor the programs that libpem starts to learn what a start costs"
    here()
    need("cc")
    folder, env = environment(PYTHONPATH=os.path.join(BUILD, "python"))
    with open(os.path.join(folder, "show.c"), "w", encoding="utf-8") as source:
        source.write(r"""
#include <stdio.h>
#include <string.h>
__attribute__((constructor)) static void show(void)
{
	FILE *status = fopen("/proc/self/status", "r"), *out = fopen("shown", "a");
	char line[256], name[64] = "";

	while (status && out && fgets(line, sizeof(line), status)) {
		sscanf(line, "Name: %60s", name);
		if (!strncmp(line, "CapAmb:", 7))
			fprintf(out, "%s %s", name, line);
	}
	if (out)
		fclose(out);
	if (status)
		fclose(status);
}
""")
    with open(os.path.join(folder, "consumer.py"), "w", encoding="utf-8") as source:
        source.write("""
import pemapi
with pemapi.Session() as session:
    with session.log(session.events("Malloc"), "trace"):
        session.run(["/bin/cat", "/dev/null"])
        session.wait()
""")
    show = os.path.join(folder, "show.so")
    rc, _, err = run(["cc", "-shared", "-fPIC", "-o", show, os.path.join(folder, "show.c")])
    equal(rc, 0, "status of cc: " + err)
    # As root, whose Python may be in a folder of root's: what is ambient shows all the same.
    rc, _, err = run(["setpriv", "--inh-caps=+bpf,+perfmon", "--ambient-caps=+bpf,+perfmon", "env", "LD_PRELOAD=" + show,
                      sys.executable, "consumer.py"], env=dict(env, XDG_CACHE_HOME=folder), cwd=folder)
    equal(rc, 0, "status of the consumer: " + err)
    with open(os.path.join(folder, "shown"), encoding="utf-8") as shown:
        lines = [line.split() for line in shown]
    names = {line[0] for line in lines}
    assert {"cat", "pem-exercise"} <= names and any(n.startswith("python") for n in names), "programs seen: %r" % names
    for name, _, bits in lines:
        if name in ("cat", "pem-exercise", "true"):
            equal(int(bits, 16), 0, name + "'s ambient capabilities")
        elif name.startswith("python"):
            equal(int(bits, 16), BPF | PERFMON, name + "'s ambient capabilities")


# --- a pem whose file has capabilities ---

def installed(folder):
    """
    pem with capabilities of its file, and its libraries, as an installation has them; a command line's beginning that finds them.
    The loader believes no folder but those of its cache: a namespace of the test's own has a cache with the installation's.
    """
    need("unshare", "mount", "ldconfig")
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        skip("capabilities of files are ignored in %s, which is mounted nosuid" % folder)
    os.chmod(folder, 0o755)
    for name in ("bin", "lib"):
        shutil.copytree(os.path.join(BUILD, name), os.path.join(folder, name), symlinks=True)
    pem = os.path.join(folder, "bin", "pem")
    capabilities = BPF | PERFMON
    os.setxattr(pem, "security.capability",  # struct vfs_cap_data: revision 2, effective
                struct.pack("<5I", 0x02000001, capabilities & 0xffffffff, 0, capabilities >> 32, 0))
    with open(os.path.join(folder, "ld.so.conf"), "w", encoding="utf-8") as conf:
        conf.write(os.path.join(folder, "lib") + "\ninclude /etc/ld.so.conf\n")
    rc, _, err = run(["ldconfig", "-X", "-C", os.path.join(folder, "cache"), "-f", os.path.join(folder, "ld.so.conf")])
    equal(rc, 0, "status of ldconfig: " + err)
    begin = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/ld.so.cache && exec "$@"',
             os.path.join(folder, "cache")] + USER
    rc, _, err = run(begin + [pem, "--version"])
    if rc:
        skip("no pem with capabilities can be had here: " + err)
    return begin, pem


@test
def programs_of_a_privileged_pem():
    "where pem has its capabilities from its file, the program has none of them either"
    here()
    begin, pem = installed(tmp())
    folder, env = environment()
    rc, _, err = run(begin + [pem, "record", "-q", "-o", "trace", "--", "sh", "-c", "exec %s >shown" % " ".join(SHOW)],
                     env=env, cwd=folder)
    equal(rc, 0, "status: " + err)
    with open(os.path.join(folder, "shown"), encoding="utf-8") as shown:
        got = sets(shown.read())
    equal({name: got[name] for name in ("Inh", "Prm", "Eff", "Amb")}, dict.fromkeys(("Inh", "Prm", "Eff", "Amb"), 0), "sets")


@test
def a_privileged_pem_loads_nobodys_code():
    "a pem with capabilities of its file loads no library that a user names: by a variable, or by a link to pem beside it"
    here()
    need("cc")
    begin, pem = installed(tmp())
    folder, env = environment()
    evil = os.path.join(folder, "lib", "pem")
    os.makedirs(evil)
    os.mkdir(os.path.join(folder, "bin"))
    with open(os.path.join(folder, "evil.c"), "w", encoding="utf-8") as source:
        source.write("#include <stdlib.h>\n#include <unistd.h>\n#include <fcntl.h>\n"
                     "__attribute__((constructor)) static void run(void) { close(open(\"%s/loaded\", O_CREAT | O_WRONLY, "
                     "0600)); }\n" % folder)
    for name in ("source-evil.so", "export-evil.so", "libpem-libc.so"):
        rc, _, err = run(["cc", "-shared", "-fPIC", "-o", os.path.join(evil, name), os.path.join(folder, "evil.c")])
        equal(rc, 0, "status of cc: " + err)
    linked = os.path.join(folder, "bin", "pem")
    os.link(pem, linked)  # root's, as where fs.protected_hardlinks is off
    loaded = os.path.join(folder, "loaded")
    commands = (["list", "--json", "Sched::Switch"], ["export", "--list"], ["doctor"])
    # The same, without capabilities, does load them: the test would notice.
    by_name = dict(env, PEM_PLUGIN_PATH=evil, LD_LIBRARY_PATH=None)
    rc, _, err = run(USER + [PEM, "export", "--list"], env=by_name, cwd=folder)
    assert os.path.exists(loaded), "an ordinary pem does not load plugins of PEM_PLUGIN_PATH: %d %s" % (rc, err)
    os.unlink(loaded)
    for program, variable in ((pem, "PEM_PLUGIN_PATH=" + evil), (pem, "LD_PRELOAD=" + os.path.join(evil, "source-evil.so")),
                              (linked, "NONE=")):
        for command in commands:
            run(begin + ["env", variable, program, *command], env=env, cwd=folder)
            assert not os.path.exists(loaded), "%s %s loaded a user's library" % (program, command)


run_all()
