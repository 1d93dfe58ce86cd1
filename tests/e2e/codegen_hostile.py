# SPDX-License-Identifier: MIT
"""
codegen_hostile: specs that mean harm get an error, and nothing else: no other file, no network, bounded memory and time

Not here: wrong specs of people who mean well (codegen_errors). Random bytes: tests/fuzz/codegen_spec.c.
"""
import os
import re
import shutil
import socket
import stat

from tap import CODEGEN, ROOT, SAN, equal, need, run, run_all, runs, skip, test, tmp

LONG_S = 10

EVENT = "<event name='APP::A::%s' description='d'><layerId value='APP'/><classId value='A'/><specifier value='%s'/>%s</event>"
FIELD = "<fields><field name='%s' type='uint8' unit='none' description='d'/></fields>"
MEMORY_KB = 300 * 1024
BACKENDS = run([CODEGEN, "--backends"])[1].split()


def spec(body, head=""):
    return head + "<spec provider='a' description='d'>" + body + "</spec>"


def event(name, rest=""):
    return EVENT % (name, name, rest)


def generate(folder, content, limit=MEMORY_KB, timeout=20):
    """All backends on a spec with this content: status and errors. Output is under folder/out."""
    path = folder + "/s.xml"
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())
    words = [w for b in BACKENDS for w in ("--backend", b, "-o", folder + "/out/" + b)]
    limits = "" if SAN else "ulimit -v %d; " % limit  # a sanitizer reserves terabytes
    rc, out, err = run(["sh", "-c", limits + 'exec "$0" "$@"', CODEGEN, *words, path], timeout=timeout, cwd=folder)
    equal(out, "", "standard output")
    return rc, err.replace(folder + "/", "")


def refuse(content, *texts):
    """The spec is refused with a sentence that has these texts, and nothing is written."""
    folder = tmp()
    rc, err = generate(folder, content)
    equal(rc, 1, "status, after " + err[-300:])
    equal(sorted(os.listdir(folder)), ["s.xml"], "what there is")
    assert err and all(line.startswith("s.xml:") and ": error: " in line for line in err.splitlines()), err[:500]
    for text in texts:
        assert text in err, (text, err[:500])
    return err


@test
def nothing_outside_is_touched():
    "no file but the spec is opened, and no connection made, whatever a spec refers to"
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0)
    url = "http://127.0.0.1:%d/x" % server.getsockname()[1]
    folder = tmp()
    os.mkfifo(folder + "/canary")  # to open it for reading is to wait forever
    for place in ("file://" + folder + "/canary", folder + "/canary", "canary", url):
        for text in (
                "<!DOCTYPE spec SYSTEM '%s'>" % place + spec(event("B")),
                "<!DOCTYPE spec [<!ENTITY x SYSTEM '%s'>]>" % place + spec("&x;"),
                "<!DOCTYPE spec [<!ENTITY %% x SYSTEM '%s'> %%x;]>" % place + spec(event("B")),
                "<?xml-stylesheet href='%s'?>" % place + spec(event("B")),
                spec("<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='%s' parse='text'/>" % place),
                spec(event("B")).replace("<spec", "<spec xmlns:s='http://www.w3.org/2001/XMLSchema-instance' "
                                         "s:noNamespaceSchemaLocation='%s'" % place),
                spec(event("B")).replace("<event", "<event xmlns:s='http://www.w3.org/2001/XMLSchema-instance' "
                                         "s:schemaLocation='urn:x %s'" % place),
                spec(event("B")).replace("<event", "<event xmlns='urn:x' xmlns:s='http://www.w3.org/2001/XMLSchema-instance'"
                                         " s:schemaLocation='urn:x %s'" % place)):
            rc, err = generate(folder, text, timeout=10)
            assert rc in (0, 1), (rc, text, err)
            shutil.rmtree(folder + "/out", ignore_errors=True)
    try:
        server.accept()
        raise AssertionError("a connection was made")
    except BlockingIOError:
        pass
    finally:
        server.close()
    assert stat.S_ISFIFO(os.stat(folder + "/canary").st_mode)


@test
def memory_is_bounded():
    "expansion, depth, width and size end in an error within 300 MiB and seconds"
    if SAN:
        skip("a sanitizer needs memory of its own")
    bomb = "<!DOCTYPE s [<!ENTITY a0 'x'>" + "".join(
        "<!ENTITY a%d '%s'>" % (i, ("&a%d;" % (i - 1)) * 10) for i in range(1, 12)) + "]>"
    megabyte = 1 << 20
    for text in (
            bomb + spec("&a11;"),
            bomb + spec(event("B")).replace("'d'", "'&a11;'"),
            "<spec>" * 150000, spec("<struct name='S'>" * 50000), spec("<b/>" * 250000), "<" + "a" * (megabyte - 10),
            spec("<!--" + "x" * megabyte + "-->"), b"\0" * megabyte, b"\xff" * megabyte, "&" * megabyte, "<a " + "b='' " * 200000,
            spec("<enum name='E'>" + "".join("<label name='l%d' value='%d'/>" % (i, i) for i in range(20000)) + "</enum>"),
            spec(event("B") * 9000), spec("".join(event("B%d" % i) for i in range(8000))),
            spec(event("B", "<fields>" + FIELD[8:-9] % "f" * 10000 + "</fields>"))):
        refuse(text)
    err = refuse(spec("x" * (9 * megabyte)), "1048576 bytes")
    equal(len(err.splitlines()), 1, "errors")


@test
def attributes_of_an_element_are_bounded():
    "an element with more attributes than any has is refused before the parser compares them; a lost quote is still found first"
    many = " ".join("a%d='>'" % i for i in range(40000))
    err = refuse("<spec>\n<!-- <e %s/> -->\n<event %s/></spec>" % (many, many), "more than 256 attributes")
    assert re.search(r":3:1: error: ", err) and len(err.splitlines()) == 1, err
    refuse(spec("".join(event("B%d" % i) for i in range(300))).replace("name='", "name=", 1), "has no quotes")
    # In another encoding the same bytes would be other characters: the parser is not asked what they are.
    head = "<?xml version='1.0' encoding='%s'?>\n"
    refuse((head % "IBM1047" + "<spec %s/>" % many).encode("cp037"), "encoding is 'EBCDIC': expected UTF-8")
    refuse(head.replace("?>", " " * 300 + "?>") % "UTF-7" + "<spec/>", "expected UTF-8")
    refuse(head % "UTF-7" + "<spec %s/>" % many.replace("'", "+ACI-"), "encoding is 'UTF-7': expected UTF-8")


@test
def structures_do_not_explode():
    "structures in structures, or in themselves, stay within the limits of fields and depth"
    def struct(i, inner, n):
        return "<struct name='S%d'>" % i + "".join(
            "<field name='m%d' type='struct' of='S%d' description='d'/>" % (k, inner) for k in range(n)) + "</struct>"
    use = event("B", "<fields><field name='f' type='struct' of='S0' description='d'/></fields>")
    refuse(spec(struct(0, 0, 60) + use), "more than 4 deep")
    refuse(spec(struct(0, 1, 60) + struct(1, 0, 60) + use), "more than 4 deep")
    refuse(spec(struct(0, 1, 100) + struct(1, 2, 100) + struct(2, 3, 100) + "<struct name='S3'/>" + use), "holds no <field>")
    leaf = "<struct name='S3'>" + FIELD[8:-9] % "x" + "</struct>"
    err = refuse(spec(struct(0, 1, 64) + struct(1, 2, 64) + struct(2, 3, 64) + leaf + use), "more than 64 fields")
    assert len(err) < 100000, len(err)


@test
def mistakes_are_counted_not_hoarded():
    "a million mistakes cost neither memory nor time: the first thousand are shown, and a sentence that there are more"
    if SAN:
        skip("a sanitizer needs memory of its own")
    same = "<enum name='E%d' description='d'>" + "<label name='x' value='0' description='d'/>" * 1000 + "</enum>"
    labels = "".join("<label name='l%d' value='%d'/>" % (i, i + 256) for i in range(1000))
    wide = "<fields>" + "".join("<field name='f%d' type='uint8' enum='E'/>" % i for i in range(60)) + "</fields>"
    for text in (spec("".join(same % i for i in range(15)) + event("B")),
                 spec(event("B", "<b/>x" * 150000)),
                 spec("<enum name='E'><label name='x' value='0'/></enum>" * 19000 + event("B")),
                 spec("<enum name='E'>" + labels + "</enum>" + "".join(event("B%d" % i, wide) for i in range(200)))):
        err = refuse(text, "more than 1000 errors: those after them are not shown")
        equal(len(err.splitlines()), 1001, "errors shown")


@test
def late_children_are_moved_at_once():
    "thousands of children that stand too late are put in order, each without a look at the others"
    late = "<source> stands too late in <event>"
    few, many = (refuse(spec(event("B", "<fields/><!-- -->" + "<source/>" * n)), late).splitlines() for n in (2, 60000))
    equal([line for line in many if late in line], [line for line in few if late in line], "what is late")
    equal(len(few), 3, "mistakes, with two sources without a type")  # and none that something is missing
    sources = "<source type='usdt' name='a:b' binary='c'/>", "<source type='usdt' name='c:d' binary='c'/>"
    kinds = ("<fields/>", *sources, "<meaning value='interval-begin' group='APP::A' scope='thread'/>", "<specifier value='B'/>",
             "<classId value='A'/>", "<layerId value='APP'/>")
    err = refuse(spec("<event name='APP::A::B' description='d'>%s</event>" % "<!-- -->".join(kinds)), late)
    equal(len(err.splitlines()), 1, "mistakes of children in reverse")


@test
def structures_and_labels_are_bounded_by_file():
    "a small file can't ask for an output of gigabytes by using a structure or an enum over and over"
    labels = "<enum name='E'>" + "".join("<label name='l%d' value='%d'/>" % (i, i) for i in range(1000)) + "</enum>"
    struct = "<struct name='S'>" + "".join("<field name='f%d' type='uint16'%%s/>" % i for i in range(60)) + "</struct>"
    use = "<fields><field name='s' type='struct' of='S' description='d'/></fields>"
    refuse(spec(labels + struct % ((" enum='E'",) * 60) + "".join(event("B%d" % i, use) for i in range(200))),
           "have 120000 labels", "expected at most 65536 in a file")
    refuse(spec(struct % ((" unit='none' description='%s'" % ("x" * 400),) * 60) + "".join(
        event("B%d" % i, use + "</event>").replace("</event></event>", "</event>") for i in range(3000))),
           "have 16440 fields", "expected at most 16384 in a file")


@test
def words_of_each_language_are_no_names():
    "a field can't be called by a word of any target language, and the language is named"
    for word, language in (("register", "C"), ("template", "C++"), ("synchronized", "Java"), ("lambda", "Python"),
                           ("impl", "Rust"), ("Ok", "Rust"), ("EOF", "C"), ("allocatable", "Fortran")):
        folder = tmp()
        rc, err = generate(folder, spec(event("B", FIELD % word)))
        if rc == 0:
            continue  # the language has no trouble with it: what was generated is compiled elsewhere
        assert "field name '%s' is a word of " % word in err and language in err, (word, err)
    refuse(spec(event("B", FIELD % "for")), "is a word of C")
    refuse(spec(event("B", FIELD % "pem_x")), "pem's own")


@test
def names_are_ascii_and_text_is_utf8():
    "names of other scripts, lookalikes among them, other encodings and control characters are refused"
    refuse(spec(event("B", FIELD % "caf\u00e9")), "s.xml:1:", "is not valid: expected a letter")
    refuse(spec(event("\u0412")), "is not valid")
    refuse(spec(event("B")).encode("utf-16"), "UTF-8")
    refuse(spec(event("B")).encode("utf-16-le"), "UTF-8")
    refuse(spec(event("B")).encode("utf-32"), "UTF-8")
    for encoding in ("ISO-8859-1", "UTF-7", "EBCDIC-CP-US", "UTF-16"):
        refuse("<?xml version='1.0' encoding='%s'?>" % encoding + spec(event("B")))
    refuse(spec(event("B")).replace("'d'", "'&#27;[2J'"))
    refuse(spec(event("B")).replace("'d'", "'&#x9b;2J'"))
    # What makes a reader see another text than a compiler does.
    for c in "\u2028\u2029\u202a\u202e\u2066\u2069":
        err = refuse(spec(event("B")).replace("'d'", "'a%sb'" % c), "turns the direction of text")
        assert c not in err, ascii(err)
    # What people write in any script is fine in descriptions.
    folder = tmp()
    equal(generate(folder, spec(event("B")).replace("'d'", "'\u5e93 \u2014 caf\u00e9 \U0001f35e'")), (0, ""), "descriptions")


@test
def text_stays_text_in_every_output():
    "descriptions that would end a comment, string or line of some language do not: what is generated compiles, unwarned"
    need("gcc", "g++", "python3")
    for end in ("*/ -->", "\\", "??/"):
        compile_with_text(end)


def compile_with_text(end):
    nasty = "*/ \" ' \\ // ??/ # {}; &lt;!-- --&gt; &quot;&quot;&quot; %s %n $(x) `x` \\u0022 \\n " + end
    folder = tmp()
    text = spec("<enum name='E' description=\"%s\"><label name='l' value='0' description=\"%s\"/></enum>" %
                ((nasty.replace('"', "&quot;").replace("<", "&lt;"),) * 2) +
                event("B", "<fields><field name='f' type='uint8' enum='E' description='@'/>"
                      "<field name='s' type='string' description='@'/></fields>"))
    text = text.replace("'d'", '"@"').replace("'@'", '"@"').replace("@", nasty.replace('"', "&quot;").replace("<", "&lt;"))
    rc, err = generate(folder, text)
    equal((rc, err), (0, ""), "generate")
    flags = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I" + ROOT + "/spec/abi"]
    for command in (["gcc", "-x", "c", "-std=gnu11", *flags, folder + "/out/c/a.h"],
                    ["g++", "-x", "c++", "-std=c++17", *flags, "-I" + folder + "/out/c++", folder + "/out/c++/a.hpp"],
                    ["gcc", "-x", "c", *flags, "-I" + folder + "/out/fortran", folder + "/out/fortran/a_symbols.c"],
                    ["python3", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())",
                     folder + "/out/python/pem_a.py"]):
        rc, out, err = run(command)
        assert rc == 0, (command, err[:2000])
    for command in (["gfortran", "-fsyntax-only", "-J", folder, folder + "/out/fortran/a.f90"],
                    ["javac", "-Xlint:all", "-Werror", "-d", folder, folder + "/out/java/pem/a/PemA.java"],
                    ["rustc", "--crate-type", "lib", "--emit", "metadata", "-D", "warnings", "--out-dir", folder,
                     folder + "/out/rust/pem_a/src/lib.rs"]):
        if runs(command[0]):
            rc, out, err = run(command, cwd=folder, timeout=60)
            assert rc == 0, (command, out + err[:2000])


@test
def a_file_name_stays_in_its_comment():
    "a spec whose file is called by a line end and code, or by bytes that are no text, makes the same Python, Fortran and Rust"
    folder, texts = tmp(), []
    for name in (b"s.xml", b"s\nimport nosuch.xml", b"s\xff.xml"):
        path = os.path.join(os.fsencode(folder), name)
        with open(path, "w") as f:
            f.write(spec(event("B")))
        words = [w for b in BACKENDS for w in ("--backend", b, "-o", folder + "/out/" + b)]
        equal(run([CODEGEN, *words, path])[0], 0, "status")
        for made in ("python/pem_a.py", "fortran/a.f90", "rust/pem_a/src/lib.rs", "c/a.h", "html/index.html"):
            with open(folder + "/out/" + made, "rb") as f:
                lines = f.read().decode().splitlines()
            texts.append([line for line in lines if "(s" not in line])
    assert texts[:5] == texts[5:10] == texts[10:], "files differ by more than the line that names the spec"


@test
def nothing_is_half_written():
    "a file that can't be replaced leaves the others whole and no temporary one behind: status 3, and its name"
    folder = tmp()
    os.makedirs(folder + "/out/c/a.h")
    rc, err = generate(folder, spec(event("B")))
    equal(rc, 3, "status")
    assert "out/c/a.h' can't be written" in err, err
    for path, _, names in os.walk(folder + "/out"):
        for name in names:
            assert os.path.getsize(os.path.join(path, name)) > 0 and "XXXXXX" not in name and name.count(".") < 3, name
    equal(os.listdir(folder + "/out/c"), ["a.h"], "what is left")


run_all()
