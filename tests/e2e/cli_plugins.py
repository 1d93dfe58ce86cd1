# SPDX-License-Identifier: MIT
"""cli_plugins: which exporters pem loads, and which files and folders it leaves out"""
import json
import os
import shutil

from tap import BUILD, PEM, equal, run, run_all, skip, test, tmp


def formats_of(folder):
    """The exporters that pem takes from a folder, and what it says."""
    rc, out, err = run([PEM, "export", "--list", "--json"], env={"PEM_PLUGIN_PATH": folder})
    equal(rc, 0, "status, which said: " + err)
    formats = [e["name"] for e in json.loads(out)]
    equal(formats[:1], ["ctf"], "the format that is no plugin")
    return formats[1:], err


def plugin_folder():
    """An own folder with an exporter."""
    source = BUILD + "/lib/pem/export-csv.so"
    if not os.path.exists(source):
        skip("the csv exporter is not built")
    folder = tmp()
    os.chmod(folder, 0o755)
    shutil.copy(source, folder)
    os.chmod(folder + "/export-csv.so", 0o644)
    equal(formats_of(folder)[0], ["csv"], "of an own folder")
    return folder, folder + "/export-csv.so"


@test
def plugins_that_others_may_write_are_refused():
    "exporters that everybody or another group may write, or put there, are not loaded, and it says so"
    for mode, group, word in ((0o002, -1, "everybody"), (0o020, 12345, "group 12345")):
        for which in (0, 1):
            path = plugin_folder()[which]
            if group != -1:
                if os.geteuid() != 0:
                    continue
                os.chown(path, -1, group)
            os.chmod(path, (0o755 if os.path.isdir(path) else 0o644) | mode)
            folder = path if os.path.isdir(path) else os.path.dirname(path)
            formats, err = formats_of(folder)
            equal(formats, [], "of %s: %o" % (path, mode))
            assert path + " is left out" in err and word in err, err


@test
def plugins_of_other_users_are_refused():
    "exporters of another user, or in a folder of another user, are not loaded, and it says so"
    if os.geteuid() != 0:
        skip("only root can give files away")
    for which in (0, 1):
        path = plugin_folder()[which]
        os.chown(path, 12345, -1)
        formats, err = formats_of(path if os.path.isdir(path) else os.path.dirname(path))
        equal(formats, [], "of " + path)
        assert path + " is left out" in err and "user 12345" in err, err


@test
def plugin_folders_are_named_from_the_root():
    "a relative folder of PEM_PLUGIN_PATH is not searched, and it says so; the next folder is"
    folder, _ = plugin_folder()
    formats, err = formats_of("lib/pem:" + folder)
    equal(formats, ["csv"], "formats")
    assert "lib/pem" in err and "from /" in err, err


@test
def plugin_of_two_folders():
    "of two exporters with one name the first is taken"
    first, second = plugin_folder()[0], plugin_folder()[0]
    formats, err = formats_of(first + ":" + second)
    equal((formats, err), (["csv"], ""), "formats")


@test
def an_empty_name_is_the_library_s_folder():
    "an empty name in PEM_PLUGIN_PATH stands for the library's own folder, so that others are added to it"
    folder, _ = plugin_folder()
    own, _ = formats_of("")
    assert len(own) > 1, own
    for value in (folder + ":", ":" + folder):
        formats, err = formats_of(value)
        equal((sorted(formats), err), (sorted(own), ""), "formats of " + value)


@test
def plugins_that_are_none():
    "a file that is no exporter is passed over with a sentence"
    folder = tmp()
    with open(folder + "/export-bad.so", "w") as bad:
        bad.write("this is no shared object\n")
    formats, err = formats_of(folder)
    equal(formats, [], "formats")
    assert "export-bad.so" in err, err


run_all()
