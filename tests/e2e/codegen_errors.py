# SPDX-License-Identifier: MIT
"""
codegen_errors.py - what pem-codegen says of wrong specs and wrong words: where, what, what was expected; exit 1

Every case also checks that nothing was written. Not here: the rules one by one (tests/unit/codegen_layout.c).
"""
import os
import re

from tap import CODEGEN, ROOT, equal, run, run_all, test, tmp

HEAD = "<event name='%s' description='d'><layerId value='APP'/><classId value='%s'/><specifier value='%s'/>"


def event(class_name, specifier, rest=""):
    return HEAD % ("APP::%s::%s" % (class_name, specifier), class_name, specifier) + rest + "</event>"


def spec(body, provider="a"):
    return "<spec provider='%s' description='d'>%s</spec>" % (provider, body)


def refuse(*texts, backend="c"):
    """Run on files with these texts: nothing may be written. The errors, folder cut off, sorted as printed."""
    folder = tmp()
    paths = []
    for i, text in enumerate(texts):
        paths.append(os.path.join(folder, "s%d.xml" % i))
        with open(paths[-1], "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
    out = os.path.join(folder, "out")
    rc, printed, err = run([CODEGEN, "--backend", backend, "-o", out, *paths])
    equal(rc, 1, "exit status, after " + err[-400:])
    equal(printed, "", "standard output")
    assert not os.path.exists(out), "something was written"
    errors = err.replace(folder + "/", "").splitlines()
    assert errors, "no error was printed"
    for line in errors:
        assert re.match(r"s\d\.xml(:\d+:\d+)?: error: .+", line), line
    return errors


def starts(errors):
    return [re.match(r"(s\d\.xml:\d+:\d+): ", e).group(1) for e in errors]


@test
def many_errors_in_one_run():
    "all errors of all files come in one run, by file and line"
    first = """<spec provider='Upper' description='d'>
<event name='APP::A::B' description='d'>
<layerId value='APPX'/><classId value='A'/><specifier value='B'/>
<bogus/>
<fields>
<field name='one' type='uint46' description='d'/>
<field
   name='for'
   type='uint8' description='d'/>
<field name='three' type='list' description='d'/>
text
<field name='four' type='uint8' wrong='x' description='d'/>
<field name='four' type='uint8' description='d'/>
<field type='uint8' description='d'/>
</fields>
</event>
<event name='APP::A::C' description='d'>
<layerId value='APP'/><classId value='A'/><specifier value='D'/>
<meaning value='counter'/>
</event>
</spec>
"""
    errors = refuse(first, spec(event("A", "E", "<source type='stub' arguments='x'/>"), "b"))
    wanted = [
        ("s0.xml:1:7", "provider='Upper' of <spec> is not valid: expected a lower-case letter"),
        ("s0.xml:3:10", "value='APPX' of <layerId> is not valid: expected 'HW', 'OS', 'APP' or 'CPO'"),
        ("s0.xml:4:1", "<bogus> does not belong in <event>: expected <layerId>, <classId>"),
        ("s0.xml:6:19", "type='uint46' of <field> is not valid: expected 'uint8', 'uint16'"),
        ("s0.xml:7:1", "field name 'for' is a word of C or C++"),
        ("s0.xml:10:1", "a list lacks eltType='': expected the number type of its elements"),
        ("s0.xml:11:1", "<fields> holds text: expected <field>"),
        ("s0.xml:12:33", "<field> has no attribute 'wrong': expected any of 'name', 'type', 'eltType'"),
        ("s0.xml:13:1", "a second field 'four', the first is 'four' in line 12: expected a name that differs"),
        ("s0.xml:14:1", "<field> lacks its attribute 'name': expected a letter"),
        ("s0.xml:17:1", "event name 'APP::A::C' differs from its layerId, classId and specifier: "
                      "expected 'APP::A::D'"),
        ("s0.xml:17:1", "an event of meaning 'counter' has no field of role 'value': expected one"),
        ("s1.xml:1:140", "source 'stub' has arguments: expected them only with a tracepoint"),
    ]
    equal(starts(errors), [place for place, _ in wanted], "places of " + "\n".join(errors))
    for line, (place, text) in zip(errors, wanted):
        assert line.startswith(place + ": error: " + text), "%s, wanted %s" % (line, text)


@test
def missing_parts_are_named():
    "missing elements are named one by one"
    errors = refuse("<spec provider='a' description='d'>\n<event name='APP::A::B' description='d'>\n"
                    "<classId value='A'/></event></spec>")
    equal(errors, ["s0.xml:2:1: error: <event> holds no <layerId>: expected one",
                   "s0.xml:2:1: error: <event> holds no <specifier>: expected one"], "errors")
    equal(refuse(spec("")), ["s0.xml:1:1: error: <spec> holds no <event>: expected one"], "errors")


@test
def a_bare_event_is_wrapped():
    "an event outside of <spec> is told what goes around it, and with that it is a spec; its own mistakes come in the same run"
    bare = event("A", "B", "<fields>\n<field name='x' type='uint46' description='d'/></fields>")
    errors = refuse("<?xml version='1.0'?>\n" + bare)
    equal(len(errors), 2, "errors")
    assert errors[0].startswith("s0.xml:2:1: error: <event> stands outside of <spec>: put <spec provider='NAME' version='1.0'> "
                                "before it"), errors
    assert errors[1].startswith("s0.xml:3:"), errors
    folder = tmp()
    with open(folder + "/s.xml", "w", encoding="utf-8") as f:
        f.write("<spec provider='name' version='1.0'>" + bare.replace("uint46", "uint64") + "</spec>")
    equal(run([CODEGEN, "--backend", "c", "-o", folder, folder + "/s.xml"]), (0, "", ""), "wrapped")


@test
def broken_xml_in_our_words():
    "of a file that is no XML the first mistake alone is said, where it begins, with what mends it"
    sound = ("<spec provider='a' description='d'>\n  <event name='APP::A::B' level='info' description='d'>\n"
             "    <layerId value='APP'/><classId value='A'/><specifier value='B'/>\n  </event>\n</spec>\n")
    for old, new, place, text in (
            ("='d'>", "='d & e'>", "1:35", "'&' stands by itself: expected '&amp;'"),
            ("='d'>", "='d&e'>", "1:34", "no ';' ends '&e': expected '&amp;'"),
            ("='d'>", "='&d;'>", "1:33", "the entity '&d;' is not defined: expected '&amp;', '&lt;'"),
            ("'info'", "'a<b'", "2:35", "'<' stands in level='': expected '&lt;'"),
            ("'info'", "'info", "2:33", "the value of level is not closed: expected ' behind it"),
            ("'B'/>", "'B/>", "3:64", "the value of value is not closed: expected ' behind it"),
            ("'info'", "'in'fo'", "2:37", "the value of level ends in front of this: expected a blank, or '&apos;'"),
            ("'info'", "info", "2:33", "the value of level has no quotes: expected level='...'"),
            ("='info'", "", "2:27", "attribute 'level' has no value: expected level='...'"),
            ("'info' ", "'info'", "2:39", "no blank stands in front of description='': expected one"),
            ("'info'", "'info' level='info'", "2:40", "a second attribute 'level' in one tag: expected one"),
            ("'A'/>", "'A'>", "3:27", "<classId> is not closed: expected '/>' at its end, or </classId> in front of "
                                     "</event> in line 4"),
            ("</spec>", "", "1:1", "<spec> is not closed: expected '/>' or </spec>"),
            ("</event>", "</evnt>", "4:3", "</evnt> ends nothing: expected </event>, which opened in line 2"),
            ("</spec>", "</spec></spec>", "5:8", "</spec> ends nothing"),
            ("  </event>", "  <!-- x\n</event>", "4:3", "a comment is not closed: expected '-->' at its end"),
            ("    <layerId", "    a < b <layerId", "3:7", "'<' begins no tag: expected '&lt;'"),
            ("<layerId", "\0<layerId", None, "the file holds NUL bytes"),
            ("<layerId", "\1<layerId", "3:5", "the file is not well-formed XML: ")):
        errors = refuse(sound.replace(old, new, 1))
        equal(len(errors), 1, "errors of %s: %s" % (new, errors))
        assert errors[0].startswith("s0.xml%s: error: %s" % (":" + place if place else "", text)), (new, errors)
    equal(refuse(("\ufeff" + sound).encode("utf-16-le")),
          ["s0.xml:1:1: error: the file's encoding is UTF-16: expected UTF-8"], "UTF-16")


@test
def one_mistake_gives_one_error():
    "what follows from a part that has its error already is not said again"
    labels = "<enum name='Corn' description='d'><label name='oat' value='0' description='d'/>%s</enum>"
    kind = "<fields><field name='corn' type='uint8' enum='Corn' description='d'/></fields>"
    value = "<fields><field name='x' type='uint64' unit='none' role='value' description='d'/></fields>"
    for body in (
            labels % "<label name='rye' value='one' description='d'/>" + event("A", "B", kind),
            labels.replace("enum", "enun") % "" + event("A", "B", kind),
            labels % "" + event("A", "B", kind.replace("'Corn'", "'Corm'")),
            event("A", "B", "<fields><field name='1x' type='uint32' description='d'/></fields>"),
            event("A", "B", "<fields><field name='x' type='list' elType='uint8' description='d'/></fields>"),
            event("A", "B", "<meaning value='interval-begn' group='x'/>"),
            event("A", "B", "<meaning value='counter'/>" + value.replace("'value'", "'valeu'")),
            event("A", "B", "<meaning value='counter'/>" + value.replace("<field ", "<feild ")),
            event("A", "B", "<source type='tracepont' name='s:e' arguments='int a'/>" +
                  value.replace(" role='value'", " from='a'")),
            event("A", "B", "<source type='tracepoint' name='s:e' arguments='int;'/>" +
                  value.replace(" role='value'", " from='a'")),
            event("A", "B", value).replace("<layerId value='APP'/><classId value='A'/>", "").replace(
                "</event>", "<layerId value='APP'/><classId value='A'/></event>"),
            event("A", "B", "<meaning value='interval-begin'/>") +
            event("A", "C", "<meaning value='interval-end' scope='thraed'/>")):
        folder = tmp()
        with open(folder + "/s.xml", "w", encoding="utf-8") as f:
            f.write(spec(body))
        rc, _, err = run([CODEGEN, "--check", folder + "/s.xml"])
        equal((rc, len(err.splitlines())), (1, 1), "status and messages of %s: %s" % (body, err))


@test
def near_words_are_suggested():
    "of attributes, elements and words of the language the nearest is suggested, and none where nothing is near"
    field = "<fields><field name='x' type='uint32' unit='none' description='d' %s/></fields>"
    for body, text in (
            (field.replace("uint32", "Uint32") % "", "; did you mean 'uint32'?"),
            (field % "maxx='7'", "; did you mean 'max'?"), (field % "rol='key'", "; did you mean 'role'?"),
            (field.replace("<field ", "<Field ") % "", "; did you mean <field>?"),
            ("<meaning value='relaese'/>", "; did you mean 'release'?"),
            (field.replace("uint32", "double") % "", "or 'struct'"), (field % "colour='red'", "'description'")):
        errors = refuse(spec(event("A", "B", body)))
        assert len(errors) == 1 and errors[0].endswith(text), (body, errors)
    labels = "<enum name='Corn' description='d'><label name='oat' value='0' description='d'/></enum>"
    errors = refuse(spec(labels + event("A", "B", field % "enum='corn'")))
    assert len(errors) == 1 and errors[0].endswith("expected one; did you mean 'Corn'?"), errors


@test
def names_must_differ_across_files():
    "events and providers of one name in two files are refused, and so are two names that C can't tell apart"
    errors = refuse(spec(event("A", "B")), spec(event("A", "B")))
    assert "a second provider 'a', the first is s0.xml" in errors[0], errors
    assert "a second event 'APP::A::B', the first is s0.xml:1" in errors[1], errors
    equal(len(errors), 2, "errors")
    errors = refuse(spec(event("HWPerf", "B") + event("HwPerf", "B")))
    assert "is called 'hw_perf_b' in C, like 'APP::HWPerf::B'" in errors[0], errors


@test
def the_catalogue_is_not_redefined():
    "an event of pem's catalogue in another spec is refused with its place, without --against, whatever its fields and version are"
    malloc = event("Libc", "Malloc")
    for text in (malloc, malloc.replace("<event ", "<event version='7' ")):
        errors = refuse(spec(text))
        equal(len(errors), 1, "errors")
        assert re.search("s0.xml:1:36: error: event 'APP::Libc::Malloc' is one of pem's catalogue .spec/app/libc.xml:\\d+:\\d+.: "
                         "expected another name", errors[0]), errors
    errors = refuse(spec(malloc, "libc"))
    assert "field 'size' (spec/app/libc.xml:" in errors[0] and "expected version='" in errors[0], errors
    with open(os.path.join(ROOT, "spec/app/libc.xml"), encoding="utf-8") as f:
        text = f.read()
    folder = tmp()
    for changed in (text, text.replace("description='", "description='x "), text.replace("<event name='APP::Libc::Malloc'",
                                                                                      "<event name='APP::Libc::Malloc' version='9'")):
        with open(folder + "/s.xml", "w", encoding="utf-8") as f:
            f.write(changed)
        equal(run([CODEGEN, "--check", folder + "/s.xml"]), (0, "", ""), "the catalogue's own")


@test
def metrics_of_other_specs_are_found_beside_them():
    "a metric of an event of another spec is refused if that spec is not given, but the model that pem reads by itself has it"
    metric = "<metric name='APP::A::M' form='rate' of='APP::B::C' unit='none' description='d'/>"
    errors = refuse(spec(event("A", "B") + metric))
    assert "have an event 'APP::B::C': expected the name of one, or its spec beside this one" in errors[0], errors
    folder = tmp()
    for name, text in (("a", spec(event("A", "B") + metric)), ("b", spec(event("B", "C"), "b"))):
        with open(folder + "/%s.xml" % name, "w", encoding="utf-8") as f:
            f.write(text)
    equal(run([CODEGEN, "--check", folder + "/a.xml", folder + "/b.xml"]), (0, "", ""), "both")
    rc, out, err = run([CODEGEN, "--models", folder + "/a.xml"])
    assert (rc, err) == (0, "") and "APP::A::M" in out, (rc, out, err)


@test
def too_many_events():
    "a provider with 257 stubs is refused, one with 256 passes"
    events = [event("A", "B%d" % i) for i in range(257)]
    errors = refuse(spec("".join(events)))
    assert "has 257 events with stubs: expected at most 256" in errors[0], errors
    folder = tmp()
    with open(folder + "/s.xml", "w", encoding="utf-8") as f:
        f.write(spec("".join(events[:256])))
    equal(run([CODEGEN, "--backend", "c", "-o", folder, folder + "/s.xml"]), (0, "", ""), "256 events")


@test
def tracepoints_need_their_parts():
    "a tracepoint without arguments, expressions or a full name is refused"
    fields = "<fields>\n<field name='x' type='uint32' description='d'/>\n%s</fields>"
    odd = "<field name='y' type='uint32' from='(a' description='d'/>"
    errors = refuse(spec(event("A", "B", "<source type='tracepoint' name='sched'/>" + fields % odd)))
    assert "tracepoint name 'sched': expected name='system:event'" in errors[0], errors
    assert "a tracepoint lacks arguments=''" in errors[1], errors
    assert ": error: field 'x' lacks from=''" in errors[2], errors
    assert "from='(a' has brackets that do not pair" in errors[3], errors
    for bad in ("a;b", "a{b}", 'a&quot;b', "a'b".replace("'", "&apos;"), "a/*b", "a#b", "a\\b", "a&#10;b", "a&#x9b;b"):
        errors = refuse(spec(event(
            "A", "B", "<source type='tracepoint' name='s:e' arguments='int a'/><fields>"
            "<field name='x' type='uint32' from='%s' description='d'/></fields>" % bad)))
        equal(len(errors), 1, "errors of from='%s'" % bad)
        assert "of <field> is not valid: expected a C expression of letters" in errors[0], errors
        assert all(" " <= c < "\x7f" for c in errors[0]), "a control character in " + repr(errors[0])


@test
def a_structure_needs_its_name():
    "a field of type struct without of='' is refused, in an event and in another structure"
    for body in (event("A", "B", "<fields><field name='x' type='struct' description='d'/></fields>"),
                 "<struct name='S'><field name='x' type='struct'/></struct>" +
                 event("A", "B", "<fields><field name='x' type='struct' of='S' description='d'/></fields>")):
        errors = refuse(spec(body))
        equal(len(errors), 1, "errors")
        assert "type='struct' lacks of='': expected the name of a <struct>" in errors[0], errors


@test
def alternatives_of_a_tracepoint_make_sense():
    "a nameless parameter and a range of kernels that is none are refused"
    fields = "<fields><field name='x' type='uint32' unit='none' from='1' description='d'/></fields>"
    for prototype in ("int", "struct file *", "int a, unsigned long", "int a, bool", "v, int a"):
        errors = refuse(spec(event("A", "B", "<source type='tracepoint' name='s:e' arguments='%s'/>" % prototype +
                                   fields)))
        assert "of a tracepoint: expected a type and a name" in errors[0], (prototype, errors)
    for kernels in ("6.7-5.18", "6.10-6.9"):
        errors = refuse(spec(event("A", "B", "<source type='tracepoint' name='s:e' kernel='%s' arguments='int a'/>" %
                                   kernels + fields)))
        assert "kernel='%s' ends before it begins" % kernels in errors[0], errors


@test
def whom_a_tracepoint_is_of():
    "of='' names an argument that is a thread, of a tracepoint only"
    source = "<source type='%s' name='s:e' of='%s'%s/>"
    for kind, of, arguments in (("tracepoint", "a", " arguments='int a, struct task_struct *b'"),
                                ("tracepoint", "c", " arguments='int a, struct task_struct *b'"),
                                ("tracepoint", "b", " arguments='int a, struct task_struct **b'"),
                                ("perf", "b", "")):
        errors = refuse(spec(event("A", "B", source % (kind, of, arguments))))
        assert any("of='%s' is not a thread: expected the name of an argument" % of in line for line in errors), errors
    path = os.path.join(tmp(), "right.xml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(spec(event("A", "B", source % ("tracepoint", "b", " arguments='int a, struct task_struct *b'"))))
    rc, _, err = run([CODEGEN, "--check", path])
    equal(rc, 0, err)


@test
def a_field_comes_from_one_place():
    "a second <from> for a field of the same source is refused"
    errors = refuse(spec(event("A", "B", "<source type='tracepoint' name='s:e' arguments='int a'><from field='x' value='a'/>"
                                         "<from field='x' value='1'/></source><fields><field name='x' type='uint32' "
                                         "unit='none' description='d'/></fields>")))
    equal(len(errors), 1, "errors")
    assert "a second <from> for field 'x': expected one" in errors[0], errors


@test
def counters_have_one_value():
    "a perf event that is no plain counter is refused"
    errors = refuse(spec(event("A", "B", "<source type='perf'/>")))
    assert "is not a plain counter: expected meaning 'counter' and one field" in errors[0], errors
    assert "source 'perf' has no name: expected a libpfm4 event" in errors[1], errors


@test
def doctype_is_refused():
    "a DOCTYPE is refused, whatever its entities would do"
    bomb = "<!ENTITY a0 'ha'>" + "".join(
        "<!ENTITY a%d '%s'>" % (i, ("&a%d;" % (i - 1)) * 10) for i in range(1, 20))
    for doctype in (bomb, "<!ENTITY a19 SYSTEM 'file:///etc/hostname'>",
                    "<!ENTITY %% p SYSTEM 'http://localhost:1/x'> %%p;".replace("%%", "%"), ""):
        errors = refuse("<?xml version='1.0'?>\n<!DOCTYPE spec [%s]>\n" % doctype +
                        "<spec provider='a' description='&a19;'/>")
        assert "a DOCTYPE is refused" in errors[0] and errors[0].startswith("s0.xml:2:"), errors


@test
def hostile_files_give_errors():
    "hostile files give errors and nothing else"
    with open(os.path.join(ROOT, "spec/app/libc.xml"), "rb") as f:
        sound = f.read()
    cases = {
        "empty": b"",
        "truncated": sound[:700],
        "not XML": b"\x7fELF\0\0\0",
        "zeros": b"\0" * 4096,
        "bad UTF-8": sound.replace(b"Malloc", b"Mal\xff\xfeoc"),
        "another root": b"<html/>",
        "another namespace": sound.replace(b"<spec ", b"<spec xmlns='urn:x' "),
        "deep": b"<spec>" * 100000,
        "less deep": spec("<event>" * 200 + "</event>" * 200).encode(),
        "10,000 fields": spec(event("A", "B", "<fields>" + "".join(
            "<field name='f%d' type='uint8' description='d'/>" % i for i in range(10000)) +
            "</fields>")).encode(),
        "many strangers": spec("<b/>" * 200000).encode(),
        "equal events": spec(event("A", "B") * 7000).encode(),
        "too large": spec(" " * (1 << 20)).encode(),
        "long attribute": spec(event("A" * 100000, "B")).encode(),
        "undefined entity": spec("&x;").encode(),
    }
    for name, content in cases.items():
        errors = refuse(content)
        assert all(len(e) < 700 for e in errors), "%s: a long error" % name
    errors = refuse(cases["10,000 fields"])
    assert errors == ["s0.xml:1:36: error: the event has more than 64 fields: expected at most 64"], errors


@test
def every_truncation_is_refused():
    "a spec cut off anywhere is refused, never taken for a shorter one"
    with open(os.path.join(ROOT, "spec/app/phase.xml"), "rb") as f:
        sound = f.read()
    for cut in range(0, sound.rindex(b"</spec>") + 6, 97):
        refuse(sound[:cut])


@test
def unreadable_files_are_named():
    "a file that is missing, a folder or a device is named with its reason"
    for path, reason in (("/nonexistent/x.xml", "No such file"), ("/", "Is a directory"),
                         ("/dev/zero", "no regular file")):
        rc, out, err = run([CODEGEN, "--check", path])
        equal((rc, out), (1, ""), path)
        assert err.startswith(path + ": error: the file can't be read: ") and reason in err, err


@test
def wrong_words_get_a_sentence():
    "a wrong command line gets a sentence that says what was expected, and exit 1"
    sound = os.path.join(ROOT, "spec/app/phase.xml")
    for words, text in (
            (["--frob"], "there is no option '--frob': expected --backend"),
            ([], "no spec was named"), (["--backend"], "expected a value after it"),
            (["--backend", "x", sound], "there is no backend 'x': expected one of 'c', 'model', 'ctf', 'bpf'"),
            ([sound], "no backend was named"), (["--backend", "c", sound], "no output folder was named")):
        rc, out, err = run([CODEGEN, *words])
        equal((rc, out), (1, ""), " ".join(words))
        assert err.startswith("pem-codegen: error: ") and text in err, err


@test
def a_folder_that_takes_nothing():
    "a folder that can't be made is a failure, not wrong input: status 3, and a sentence"
    sound = os.path.join(ROOT, "spec/app/phase.xml")
    rc, out, err = run([CODEGEN, "--backend", "c", "-o", "/dev/null/x", sound])
    equal((rc, out), (3, ""), "status")
    assert err.startswith("pem-codegen: error: folder '/dev/null/x' can't be made"), err


def words_of_schema():
    """Simple type -> its words, of pem.xsd."""
    with open(os.path.join(ROOT, "spec/pem.xsd"), encoding="utf-8") as f:
        text = f.read()
    return {name: re.findall(r'<xs:enumeration value="([^"]+)"', body) for name, body in
            re.findall(r'<xs:simpleType name="(\w+)">(.*?)</xs:simpleType>', text, re.S)}


@test
def sentences_and_reference_name_every_word():
    "errors and the reference name just the words that the schema has"
    words = words_of_schema()
    with open(os.path.join(ROOT, "docs/spec-language.md"), encoding="utf-8") as f:
        reference = f.read()
    field = "<fields><field name='x' type='%s' description='d' %s/></fields>"
    cases = {
        "layerName": spec(event("A", "B").replace("'APP'", "'?'")),
        "meaningName": spec(event("A", "B", "<meaning value='?'/>")),
        "sourceType": spec(event("A", "B", "<source type='?'/>")),
        "fieldType": spec(event("A", "B", field % ("?", ""))),
        "numberType": spec(event("A", "B", field % ("list", "eltType='?'"))),
        "numberBase": spec(event("A", "B", field % ("uint8", "base='?'"))),
        "roleName": spec(event("A", "B", field % ("uint8", "role='?'"))),
    }
    for kind, text in cases.items():
        errors = refuse(text)
        equal(len(errors), 1, "errors of " + kind + ": " + "\n".join(errors))
        named = re.findall(r"'([^']+)'", errors[0].split(": expected ")[1])
        equal(sorted(named), sorted(words[kind]), "words of " + kind)
        for word in words[kind]:
            assert "`%s`" % word in reference, "docs/spec-language.md lacks " + word


@test
def help_is_an_example_that_works():
    "the example in --help is a spec that pem-codegen accepts"
    rc, out, err = run([CODEGEN, "--help"])
    equal((rc, err), (0, ""), "--help")
    folder = tmp()
    with open(folder + "/shop.xml", "w", encoding="utf-8") as f:
        f.write(out[out.index("  <spec"):out.index("</spec>") + 7])
    equal(run([CODEGEN, "--backend", "c", "-o", folder, folder + "/shop.xml"]), (0, "", ""), "shop.xml")
    with open(folder + "/shop.h", encoding="utf-8") as f:
        assert "pem_notify_shop_sale(uint64_t cents, const char *item)" in f.read()


run_all()
