# SPDX-License-Identifier: MIT
"""kmod_compiles: the kernel module compiles and links against installed kernel headers, without what these do not let be"""
import glob
import os
import shutil

from lab import modules
from tap import BUILD, CODEGEN, ROOT, equal, need, run, run_all, skip, test, tmp

LONG_S = 65

# A tracepoint of other parameters, a structure without this member, and one that is right.
SPEC = """<?xml version='1.0' encoding='UTF-8'?>
<spec provider='wrong' description='Parameters that no kernel has'>
  <event name='OS::Wrong::Switch' level='detail' description='the destination is said to be a structure'>
    <layerId value='OS'/><classId value='Wrong'/><specifier value='Switch'/>
    <source type='tracepoint' name='sched:sched_migrate_task' arguments='struct task_struct *task, struct file *file'/>
    <fields>
      <field name='tid' type='uint32' unit='none' from='task->pid' description='thread that moves'/>
    </fields>
  </event>
  <event name='OS::Wrong::Exit' level='detail' description='a task is said to have a soul'>
    <layerId value='OS'/><classId value='Wrong'/><specifier value='Exit'/>
    <source type='tracepoint' name='sched:sched_process_free' arguments='struct task_struct *task'/>
    <fields>
      <field name='soul' type='uint32' unit='none' from='task->soul' description='its number'/>
    </fields>
  </event>
  <event name='OS::Wrong::Right' level='detail' description='the second way is right'>
    <layerId value='OS'/><classId value='Wrong'/><specifier value='Right'/>
    <source type='tracepoint' name='sched:sched_wait_task' arguments='struct task_struct *task, int soul'/>
    <source type='tracepoint' name='sched:sched_wait_task' arguments='struct task_struct *task'/>
    <fields>
      <field name='tid' type='uint32' unit='none' from='task->pid' description='thread that is waited for'/>
    </fields>
  </event>
</spec>
"""


# What debuggers read takes a third of the compiler's time.
ENV = {"MAKEFLAGS": None, "MAKELEVEL": None, "SAN": None, "KCFLAGS": "-g0"}


def headers():
    """Folders of installed kernel headers."""
    need("make", "gcc")
    found = modules.installed()
    if not found:
        skip("no kernel headers are installed: linux-headers-amd64 or linux-headers-arm64 would do")
    return found


def make(kdir, folder, gen):
    rc, out, err = run(["make", "-j%d" % len(os.sched_getaffinity(0)), "kmod", "B=" + BUILD, "KDIR=" + kdir, "KMOD=" + folder, "KMOD_GEN=" + gen],
                       cwd=ROOT, env=ENV, timeout=300)
    return rc, out + err


@test
def every_probe_compiles_and_links():
    "the probes of the catalogue have the parameters that the kernel's headers declare, and modpost finds every symbol"
    for kdir in headers():
        folder = os.path.join(BUILD, "kmod-" + os.path.basename(kdir))  # kept: what is up to date is not made again
        rc, said = make(kdir, folder, os.path.join(BUILD, "gen"))
        equal(rc, 0, "%s: %s" % (kdir, said[-2000:]))
        assert os.path.exists(os.path.join(folder, "pem.ko")), "no pem.ko"
        warnings = [line for line in said.splitlines() if "warning:" in line and "jobserver" not in line
                    and "compiler differs" not in line]
        equal(warnings, [], kdir)
        with open(os.path.join(folder, "pem_kmod_checks.h"), encoding="ascii") as f:
            text = f.read()
        assert "#define PEM_KMOD_CAN_sched_switch 1" in text, "the scheduler's headers are not found: " + text[:500]
        equal([line for line in text.splitlines() if "declare otherwise" in line or "comes without" in line], [], kdir)


def tree_of_sources():
    """A folder with what the kernel's build reads of the checkout, and the command that builds files from its top."""
    tree = tmp() + "/tree"
    os.mkdir(tree)
    shutil.copy(ROOT + "/Kbuild", tree)
    for folder in ("kmod", "spec/abi"):
        shutil.copytree(os.path.join(ROOT, folder), os.path.join(tree, folder))
    return tree, ["make", "-C", headers()[0], "M=" + tree]


@test
def kernels_build_finds_it_from_the_top():
    "make -C KERNEL M=CHECKOUT builds the module's files, and says what to do first where nothing is generated"
    tree, command = tree_of_sources()
    rc, out, err = run(command + ["kmod/without.o"], env=ENV, timeout=300)
    assert rc and "run make in %s first" % tree in err, (rc, out, err)
    rc, out, err = run(command + ["kmod/without.o", "PEM_GEN=%s/gen" % BUILD], env=ENV, timeout=300)
    equal(rc, 0, out + err)
    assert os.path.exists(tree + "/kmod/without.o"), os.listdir(tree + "/kmod")


@test
def a_change_costs_an_event_or_a_feature():
    "tracepoints that the headers declare otherwise, and a feature that does not compile, are left out and listed"
    tree, command = tree_of_sources()
    with open(tree + "/wrong.xml", "w", encoding="utf-8") as f:
        f.write(SPEC)
    rc, _, err = run([CODEGEN, "--backend", "kmod", "-o", tree + "/gen", tree + "/wrong.xml"])
    equal(rc, 0, err)
    shutil.copy(BUILD + "/gen/pem_kmod_emit.h", tree + "/gen")
    with open(tree + "/kmod/accessed.c", "a", encoding="utf-8") as f:
        f.write("#if PEM_KMOD_HAS_accessed\nint changed = this_kernel_has_no_such_thing;\n#endif\n")
    rc, out, err = run(command + ["kmod/probes.o", "kmod/accessed.o", "kmod/without.o", "PEM_GEN=%s/gen" % tree], env=ENV, timeout=300)
    equal(rc, 0, out + err)
    equal([line for line in err.splitlines() if line.startswith("kmod: no probe")],
          ["kmod: no probe in the module for what these headers declare otherwise than the specs: sched_migrate_task sched_process_free "],
          "tracepoints that are left out")
    said = [line for line in err.splitlines() if line.startswith("kmod: the module comes without")]
    assert len(said) == 1 and "without accessed.c" in said[0] and "this_kernel_has_no_such_thing" in said[0], err


@test
def a_kernel_that_is_too_old():
    "headers of a kernel before Linux 5.15 are refused with a sentence"
    _, command = tree_of_sources()
    rc, out, err = run(command + ["kmod/without.o", "PEM_GEN=%s/gen" % BUILD, "VERSION=5", "PATCHLEVEL=14"], env=ENV, timeout=300)
    assert rc and "pem.ko needs Linux 5.15 or later, and these headers are of Linux 5.14" in err, (rc, out, err)


@test
def what_is_installed_builds_again():
    "make kmod-install copies all that DKMS needs to build the module, beside the module and its udev rule"
    kdir, destination = headers()[0], os.path.join(tmp(), "destination")
    folder = os.path.join(BUILD, "kmod-" + os.path.basename(kdir))
    rc, out, err = run(["make", "kmod-install", "B=" + BUILD, "KDIR=" + kdir, "KMOD=" + folder, "DESTDIR=" + destination],
                       cwd=ROOT, env=ENV, timeout=300)
    equal(rc, 0, out + err)
    assert glob.glob(destination + "/lib/modules/*/*/pem.ko*"), "no module"
    assert os.path.exists(destination + "/usr/lib/udev/rules.d/60-pem.rules"), "no rule"
    sources = glob.glob(destination + "/usr/src/pem-*")[0]
    with open(sources + "/dkms.conf", encoding="ascii") as f:
        said = dict(line.strip().split("=", 1) for line in f if "=" in line and not line.startswith("#"))
    equal(sources.rsplit("-", 1)[1], said["PACKAGE_VERSION"].strip('"'), "version")
    command = said["MAKE[0]"].strip('"').replace("$kernel_source_dir", kdir)
    rc, out, err = run(["sh", "-c", command], cwd=sources, env=ENV, timeout=300)
    equal(rc, 0, (out + err)[-2000:])
    assert os.path.exists(sources + "/pem.ko"), "no module from the installed sources"


@test
def without_headers_it_says_what_to_install():
    "make kmod where there are no headers names the package"
    need("make")
    rc, said = make("/none/at/all", os.path.join(tmp(), "kmod"), os.path.join(BUILD, "gen"))
    assert rc != 0, "status"
    assert "linux-headers" in said, said[-500:]


run_all()
