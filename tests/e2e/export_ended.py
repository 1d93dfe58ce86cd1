# SPDX-License-Identifier: MIT
"""
export_ended: what pem export leaves where a signal ends it: nothing, and the file that was there before

Not here: what exporters write (export_csv.py, export_html.py, export_perfetto.py).
"""
import os
import signal

from preload import compile_program
from tap import BUILD, PEM, SAN, equal, run, run_all, skip, test, tmp
from trace_files import Trace

# Ends the process by a signal when the exporter has written everything and puts it into the file, and lets no file
# be made that has no name where WITHOUT_NAMELESS is set.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int fflush(FILE *file)
{
	int (*real)(FILE *) = (int (*)(FILE *))dlsym(RTLD_NEXT, "fflush");
	int result = real(file);

	if (file && file != stdout && file != stderr && getenv("SIGNAL"))
		raise(atoi(getenv("SIGNAL")));
	return result;
}

static int open_by(const char *name, const char *path, int flags, int mode)
{
	int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);

	if ((flags & O_TMPFILE) == O_TMPFILE && getenv("WITHOUT_NAMELESS")) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return real(path, flags, mode);
}

#define OPEN(name) \
	int name(const char *path, int flags, ...) \
	{ \
		va_list list; \
		int mode; \
		va_start(list, flags); \
		mode = va_arg(list, int); \
		va_end(list); \
		return open_by(#name, path, flags, mode); \
	}
OPEN(open)
OPEN(open64)
"""
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE]
WAYS = [{}, {"WITHOUT_NAMELESS": "1"}]


def formats():
    found = [f for f in ("csv", "html", "perfetto") if os.path.exists("%s/lib/pem/export-%s.so" % (BUILD, f))]
    if not found:
        skip("no exporter is built")
    return found


def prepared():
    """The shim's path, a trace's, and a new folder's."""
    if SAN:
        skip("a sanitizer's runtime must come before every preloaded library; run without SAN=1")
    shim = compile_program(SHIM, "shim.so", ["-shared", "-fPIC"])
    folder = tmp()
    trace = Trace()
    event = trace.event("APP::Test::Happened", fields=[("number", "uint64", "-")])
    for i in range(100):
        trace.add(event, i, [i])
    trace.write(folder + "/trace")
    os.mkdir(folder + "/out")
    return shim, folder + "/trace", folder + "/out"


def export(shim, trace, out, form, env):
    return run([PEM, "export", "--to", form, trace, "-o", out + "/file"], env=dict(env, LD_PRELOAD=shim))


@test
def nothing_is_left():
    "each exporter that a signal ends leaves no file, on file systems with and without files that have no name"
    shim, trace, out = prepared()
    for form in formats():
        for way in WAYS:
            for number in SIGNALS:
                rc, _, err = export(shim, trace, out, form, dict(way, SIGNAL=int(number)))
                equal(rc, -number, "how %s to %s ended (%s)" % (number, form, err))
                equal(os.listdir(out), [], "what %s left of %s %s" % (number, form, way))


@test
def the_old_file_stays():
    "a file that was there before is kept where a signal ends the export, and replaced where none does"
    shim, trace, out = prepared()
    for form in formats():
        for way in WAYS:
            with open(out + "/file", "w") as f:
                f.write("old")
            rc, _, err = export(shim, trace, out, form, dict(way, SIGNAL=int(signal.SIGINT)))
            equal(rc, -signal.SIGINT, "how %s ended (%s)" % (form, err))
            equal(os.listdir(out), ["file"], "files of %s %s" % (form, way))
            with open(out + "/file") as f:
                equal(f.read(), "old", "the old file's content")
            rc, _, err = export(shim, trace, out, form, way)
            equal(rc, 0, "status of a whole export to %s (%s)" % (form, err))
            equal(os.listdir(out), ["file"], "files of a whole export to %s %s" % (form, way))
            assert os.path.getsize(out + "/file") > 10, "the new file is too small"
            os.unlink(out + "/file")


@test
def ignored_signals_stay_ignored():
    "a signal that the caller ignores (nohup) does not end an export"
    shim, trace, out = prepared()
    for way in WAYS:
        rc, _, err = run(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", PEM, "export", "--to", "csv", trace, "-o", out + "/file"],
                         env=dict(way, LD_PRELOAD=shim, SIGNAL=int(signal.SIGHUP)))
        equal(rc, 0, "status (%s)" % err)
        equal(os.listdir(out), ["file"], "files")


@test
def the_mask_is_kept():
    "the file has the rights that the caller's umask leaves"
    shim, trace, out = prepared()
    for way in WAYS:
        rc, _, err = run(["sh", "-c", 'umask 027; exec "$@"', "sh", PEM, "export", "--to", "csv", trace, "-o", out + "/file"],
                         env=dict(way, LD_PRELOAD=shim))
        equal(rc, 0, "status (%s)" % err)
        equal(oct(os.stat(out + "/file").st_mode & 0o777), "0o640", "rights")
        os.unlink(out + "/file")


run_all()
