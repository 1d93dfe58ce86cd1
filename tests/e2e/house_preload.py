#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
house_preload: what libpem's parts that run inside of programs may call

Inside of somebody's malloc, signal handler or locked section nothing may allocate, take a lock of the C library's or the
loader's, or change what dlerror says. So each function that is imported stands here, with the reason why it may be.
"""
import glob
import os
import re

from tap import BUILD, ROOT, SAN, equal, need, run, run_all, skip, test

PLAIN = """_GLOBAL_OFFSET_TABLE_ __gmon_start__ _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable __cxa_finalize
    __errno_location __stack_chk_fail memchr memcmp memcpy memmove memset strchr strcmp strcpy strcspn strlen strncasecmp
    strncmp strnlen strrchr strstr strtoul"""
SYSTEM_CALLS = """access close flock fstat ftruncate geteuid getpid getppid getrlimit lstat madvise mkdir mmap mprotect munmap nanosleep
    open openat prctl read rename sched_getcpu sched_yield stat statfs syscall unlink write"""
OF_THIS_THREAD = "pthread_setcancelstate pthread_setcanceltype pthread_sigmask pthread_testcancel sigdelset sigfillset sysconf"
BEFORE_MAIN = "called in constructors"

PRODUCER = {
    PLAIN: "memory and text only",
    SYSTEM_CALLS: "system calls and nothing else",
    OF_THIS_THREAD: "change this thread's own state, or read a constant",
    "pthread_atfork pthread_key_create pthread_key_delete": BEFORE_MAIN,
    "pthread_setspecific": "only of keys whose values lie in the thread's own structure",
    "secure_getenv": "reads the environment without a lock",
    "environ": "a variable",
    "getauxval": "reads what the kernel gave the process",
    "snprintf": "numbers and strings into a buffer need neither memory nor a lock",
}
LIBC = {
    PLAIN: "memory and text only",
    "syscall": "system calls and nothing else",
    "pthread_self pthread_sigmask pthread_testcancel": "this thread's own state",
    "posix_spawnattr_getflags posix_spawnattr_init posix_spawnattr_setflags posix_spawnattr_setsigmask sigfillset":
        "change a variable of the caller's",
    "pthread_key_create pthread_key_delete dlsym": BEFORE_MAIN,
    "dl_iterate_phdr": "in constructors and destructors, and behind dlopen, which take the same lock of the loader's",
    "pthread_setspecific": "only of keys whose values lie in the thread's own structure",
    "__pthread_register_cancel __pthread_unregister_cancel __pthread_unwind_next __sigsetjmp":
        "pthread_cleanup_push: this thread's own state",
    "_r_debug": "the loader's list of objects: a variable",
    "dladdr1": "in front of dlopen, which takes the same lock of the loader's next",
    "__chk_fail": "ends the program, where the C library would",
    "pem_provider_register pem_providers__lose pem_providers__register pem_provider_unregister": BEFORE_MAIN + " and destructors",
    "__environ environ": "a variable",
    "secure_getenv": "reads the environment without a lock; called in a constructor",
    "getauxval": "reads what the kernel gave the process",
    "_dl_find_object": "lock-free, and safe in handlers of signals",
    "pem_program_file__kind pem_rights__after_filter pem_rights__after_move pem_rights__before_dispatch pem_rights__before_drop "
    "pem_rights__before_filter pem_rights__before_move pem_rights__before_strict pem_rights__count_unobserved "
    "pem_rights__end_dispatch pem_rights__ends pem_rights__filtered pem_rights__given_up "
    "pem_rights__inherit pem_rights__may_be_filtered pem_rights__not_named pem_rights__out_of_reach pem_rights__parent_id "
    "pem_rights__restricted pem_rights__sessions pem_rights__set_clock pem_rights__thread_id pem_rights__uncount_unobserved":
        "libpem's own, as above",
}
SQLITE = {
    PLAIN: "memory and text only",
    "dlsym": BEFORE_MAIN,
    "_r_debug": "the loader's list of objects: a variable",
    "dl_iterate_phdr": "where SQLite was loaded by dlopen: takes the loader's lock, changes nothing that dlerror says",
}
PAGE_SIZE = {
    PLAIN: "memory and text only",
    "strcpy strtoul strtoull": "memory and text only",
    "syscall clock_gettime close fchmod fcntl flock fstat geteuid getpid getppid getrlimit madvise nanosleep open pread pwrite read write":
        "system calls and nothing else",
    "pthread_sigmask sigaction sigfillset sigismember timer_create timer_delete timer_settime":
        "system calls and nothing else, of a timer that sends a signal to a thread",
    "getauxval getpagesize": "read what the kernel gave the process",
    "snprintf": "numbers and strings into a buffer need neither memory nor a lock",
    "dlsym": "of what every C library has before any constructor; of what a program calls already later",
    "dlopen": "of a C++ library that is loaded, where one of its operators is called for the first time",
    "_dl_find_object": "lock-free, and safe in handlers of signals",
    "dl_iterate_phdr dladdr1 __register_atfork pthread_atfork __cxa_at_quick_exit": BEFORE_MAIN,
    "pthread_setcancelstate __libc_single_threaded": "of the thread itself, and a flag of the C library",
    "abort __pthread_key_create pthread_mutex_lock pthread_mutex_unlock pthread_once":
        "of the unwinder, for frames that a program registers by hand: its own copy knows none",
}
HOOKS = {
    PLAIN: "memory and text only",
    "strcpy strtoull": "memory and text only",
    "syscall fstat ftruncate getrlimit kill pread readlink rename clock_gettime": "system calls and nothing else",
    "getauxval getpagesize": "read what the kernel gave the process",
    "snprintf": "numbers and strings into a buffer need neither memory nor a lock",
    "dlsym": "of what every C library has before any constructor; of what a program calls already later",
    "dlopen": "of a C++ library that is loaded, where one of its operators is called for the first time",
    "_dl_find_object": "lock-free, and safe in handlers of signals",
    "dl_iterate_phdr": "with no lock of its own held: the loader's holders ask for nothing of the program's",
    "dladdr1 __register_atfork pthread_atfork __cxa_at_quick_exit pthread_key_create": BEFORE_MAIN,
    "pthread_setspecific": "only of a key whose value lies in the thread's own structure",
    "__libc_single_threaded": "a flag of the C library",
    "abort __pthread_key_create pthread_mutex_lock pthread_mutex_unlock pthread_once":
        "of the unwinder, for frames that a program registers by hand: its own copy knows none",
}


def strays(names, allowed):
    known = {name for group in allowed for name in group.split()}
    return sorted(set(names) - known)


def imports(path):
    need("nm")
    if not os.path.exists(path):
        skip(os.path.basename(path) + " is not built")
    rc, out, err = run(["nm", "-D", "--undefined-only", path])
    equal(rc, 0, "exit status of nm, which said: " + err)
    return [line.split()[-1].split("@")[0] for line in out.splitlines()]


def need_plain():
    if SAN:
        skip("a sanitizer's own functions are among them; run without SAN=1")


@test
def producer():
    "the producing side of libpem calls nothing that allocates or locks"
    need_plain()
    need("nm")
    objects = glob.glob(BUILD + "/obj/libpem/producer/*.o")
    if not objects:
        skip("only the tree that was built here has its object files")
    rc, out, err = run(["nm", "-u"] + objects)
    equal(rc, 0, "exit status of nm, which said: " + err)
    names = re.findall(r"^\s+U (\S+)$", out, re.MULTILINE)
    equal(strays([n for n in names if not n.startswith("pem_")], PRODUCER), [], "functions without a reason")


@test
def libc_adapter():
    "libpem-libc calls nothing that allocates or locks"
    need_plain()
    equal(strays(imports(BUILD + "/lib/libpem-libc.so"), LIBC), [], "functions without a reason")


@test
def sqlite_adapter():
    "libpem-sqlite calls nothing that allocates, nor what changes dlerror"
    need_plain()
    equal(strays(imports(BUILD + "/lib/libpem-sqlite.so"), SQLITE), [], "functions without a reason")


@test
def page_size_applier():
    "libpem-page-size calls nothing that locks, and no allocator but the program's own"
    need_plain()
    equal(strays(imports(BUILD + "/lib/pem/libpem-page-size.so"), PAGE_SIZE), [], "functions without a reason")


@test
def page_size_hooks():
    "libpem-page-size-hooks calls nothing that allocates or locks, but the program's own allocator where it stands in front of it"
    need_plain()
    equal(strays(imports(BUILD + "/lib/libpem-page-size-hooks.so"), HOOKS), [], "functions without a reason")


@test
def strays_are_found():
    "the check finds a planted stray"
    equal(strays(["memcpy", "malloc", "dlvsym"], LIBC), ["dlvsym", "malloc"], "strays")


@test
def bound_when_loaded():
    "libraries that are loaded into programs are bound as they are loaded: the loader never works in the middle of an event"
    need("readelf")
    found = []
    for path in sorted(glob.glob(BUILD + "/lib/libpem*.so*") + glob.glob(BUILD + "/lib/pem/libpem*.so")):
        rc, out, err = run(["readelf", "-Wd", path])
        equal(rc, 0, "exit status of readelf, which said: " + err)
        if "NOW" not in out:
            found.append(os.path.basename(path))
    equal(sorted(set(found) - {"libpem.so", "libpem.so.1", "libpem-preload.so", "libpem-adapters.so"}), [], "libraries that are bound later")


def closure(objects):
    """Of object files, those of the producer and all that these call: path -> what else they name."""
    defined, named, seen = {}, {}, {}
    for path in objects:
        rc, out, err = run(["nm", path])
        equal(rc, 0, "exit status of nm, which said: " + err)
        named[path] = re.findall(r"^ +[Uw] (\S+)$", out, re.MULTILINE)
        defined.update((name, path) for name in re.findall(r"^[0-9a-f]+ [TDBRVW] (\S+)$", out, re.MULTILINE))
    left = [path for path in objects if "/libpem/producer/" in path]
    while left:
        path = left.pop()
        if path not in seen:
            seen[path] = named[path]
            left += [defined[name] for name in named[path] if name in defined]
    return seen


def bound_later(library, objects):
    """What these objects call by way of the library's linkage table."""
    rc, out, err = run(["nm", os.path.join(BUILD, "lib", library)])
    equal(rc, 0, "exit status of nm, which said: " + err)
    hidden = set(re.findall(r"^[0-9a-f]+ [tdbr] (\S+)$", out, re.MULTILINE))
    found = []
    for path in objects:
        rc, out, err = run(["readelf", "-Wr", path])
        equal(rc, 0, "exit status of readelf, which said: " + err)
        calls = re.findall(r"R_(?:X86_64_PLT32|AARCH64_CALL26|AARCH64_JUMP26)\s+[0-9a-f]+ ([^\s.]\S*)", out)
        found += ["%s: %s" % (os.path.basename(path), name) for name in set(calls) - hidden]
    return sorted(found)


@test
def what_runs_in_events_is_bound_when_loaded():
    "of libpem.so.1 the consumer's calls are bound later, and none of what an event may come to"
    need_plain()
    need("readelf")
    objects = [path for path in glob.glob(BUILD + "/obj/libpem/**/*.o", recursive=True) + glob.glob(BUILD + "/obj/shared/*.o")
               if not re.search(r"/libpem/(libc|mpi|sqlite|ompt|jvm|names|sources|confined|database|python|together)/", path)]
    if not objects:
        skip("only the tree that was built here has its object files")
    equal(bound_later("libpem.so.1", closure(objects)), [], "calls that the loader binds in the middle of an event")


@test
def whose_functions():
    "what libpem and the adapters call in one library: the program's malloc where it has one, and no other libpem's functions"
    need_plain()
    need("readelf")
    for name in "libpem-preload.so", "libpem-adapters.so":
        rc, out, err = run(["readelf", "-Wr", BUILD + "/lib/" + name])
        equal(rc, 0, "exit status of readelf, which said: " + err)
        names = {line.split()[4].split("@")[0] for line in out.splitlines() if len(line.split()) > 4}
        equal({"malloc", "calloc", "realloc", "free"} - names, set(), name + " calls these of its own")
        equal([symbol for symbol in names if symbol.startswith("pem_")], [], name + " may call another libpem's")


@test
def adapters_are_bound_when_loaded():
    "nor does any adapter in libpem-adapters.so"
    need_plain()
    need("readelf")
    objects = [path for room in ("libc", "mpi", "sqlite") for path in glob.glob(BUILD + "/obj/libpem/%s/*.o" % room)]
    if not objects:
        skip("only the tree that was built here has its object files")
    equal(bound_later("libpem-adapters.so", objects), [], "calls that the loader binds in the middle of an event")


run_all()
