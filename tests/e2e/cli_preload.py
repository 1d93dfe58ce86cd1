# SPDX-License-Identifier: MIT
"""cli_preload: what pem record puts into the programs that it starts"""
import os

from tap import PEM, equal, run, run_all, test, tmp


@test
def nothing_is_preloaded_for_the_kernel():
    "the command loads libpem where an event or a trigger is of programs, and not for those of the kernel and the processor alone"
    script = 'echo "$LD_PRELOAD:$ASAN_OPTIONS"'
    env = {"LD_PRELOAD": None, "ASAN_OPTIONS": None}
    for i, (options, loaded) in enumerate(((["-e", "OS::Syscall,OS::Process"], False), (["-e", "HPMsAndPC"], False),
                                           (["-e", "page-faults", "--no-libc"], False), (["-e", "OS::Process,Malloc"], True), ([], True),
                                           (["-e", "OS::Process", "--overwrite", "--trigger", "rate(Malloc) > 1e9"], True))):
        rc, out, err = run([PEM, "record", "-q", "-o", os.path.join(tmp(), "preload%d" % i), *options, "--", "sh", "-c", script], env=env)
        equal(rc, 0, "status (%s)" % err)
        equal(("libpem" in out, out == ":\n"), (loaded, not loaded), "what is preloaded with %s: '%s'" % (options, out))


run_all()
