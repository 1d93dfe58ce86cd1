# SPDX-License-Identifier: MIT
"""
spec_check: pem spec check, for editors, for programs, and against an older spec

Not here: what makes a spec wrong (codegen_errors, tests/unit/codegen_layout.c).
"""
import json
import os
import re

from tap import PEM, ROOT, equal, run, run_all, test, tmp

SPEC = """<?xml version='1.0' encoding='UTF-8'?>
<spec provider='shop' version='1.0' description='a shop'>
  <enum name='Payment' description='how'>
    <label name='cash' value='0' description='coins'/>
    <label name='card' value='1' description='plastic'/>
  </enum>
  <event name='APP::Shop::Sale' description='sold'>
    <layerId value='APP'/><classId value='Shop'/><specifier value='Sale'/>
    <fields>
      <field name='cents' type='uint64' unit='cents' description='price'/>
      <field name='count' type='uint32' unit='pieces' description='how many'/>
      <field name='payment' type='uint8' enum='Payment' description='how paid'/>
      <field name='item' type='string' max='32' description='what'/>
      <field name='parts' type='list' eltType='uint16' max='4' unit='g' description='weights'/>
    </fields>
  </event>
  <event name='APP::Shop::Open' deprecated='raised no more' description='opened'>
    <layerId value='APP'/><classId value='Shop'/><specifier value='Open'/>
  </event>
  <event name='APP::Shop::Close' description='closed'>
    <layerId value='APP'/><classId value='Shop'/><specifier value='Close'/>
  </event>
</spec>
"""


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def change(*pairs):
    """The spec with texts replaced, each of which it has."""
    text = SPEC
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def against(text, old=SPEC):
    """Status and lines of pem spec check --against, folder cut off."""
    folder = tmp()
    rc, _, err = run([PEM, "spec", "check", "--against", write(folder, "old.xml", old),
                      write(folder, "new.xml", text)])
    return rc, err.replace(folder + "/", "").splitlines()


@test
def mistakes_have_line_and_column():
    "every mistake comes as FILE:LINE:COLUMN: error: WHAT, warnings do not change the status, and a line counts both"
    path = write(tmp(), "s.xml", change(("'uint64'", "'uint46'"), (" unit='pieces'", "")))
    rc, out, err = run([PEM, "spec", "check", path])
    equal((rc, out), (1, "3 events in 1 spec: 1 error, 1 warning\n"), "status and sum")
    first, second = err.splitlines()
    assert re.match(re.escape(path) + r":10:27: error: type='uint46' of <field> is not valid: expected ", first), first
    assert re.match(re.escape(path) + r":11:\d+: warning: field 'count' has no unit: expected ", second), second
    path = write(tmp(), "s.xml", change((" unit='pieces'", "")))
    equal(run([PEM, "spec", "check", path])[0], 0, "status of a warning")
    equal(run([PEM, "spec", "check", "--strict", path])[0], 1, "status with --strict")


@test
def a_wrong_verb_is_mended():
    "pem spec with a word that it has not suggests the near one, and says which there are"
    for word, text in (("chek", "did you mean 'check'?"), ("imprt", "did you mean 'import'?"),
                       ("frobnicate", "it can check and import")):
        rc, _, err = run([PEM, "spec", word, "x.xml"])
        assert rc == 1 and "pem spec can't '%s'; %s" % (word, text) in err, err


@test
def mistakes_as_json():
    "--json prints the same as an array of objects"
    path = write(tmp(), "s.xml", change(("'uint64'", "'uint46'"), (" unit='pieces'", "")))
    rc, out, err = run([PEM, "spec", "check", "--json", path])
    equal((rc, err), (1, ""), "status and errors")
    found = json.loads(out)
    equal([(e["file"], e["line"], e["severity"]) for e in found],
          [(path, 10, "error"), (path, 11, "warning")], "mistakes")
    assert "'uint46'" in found[0]["message"] and found[0]["column"] == 27, found
    equal(json.loads(run([PEM, "spec", "check", "--json", write(tmp(), "s.xml", SPEC)])[1]), [], "none")


@test
def folders_are_walked():
    "a folder stands for all specs below it, which are checked against each other; other XML in it is passed over"
    folder = tmp()
    write(folder, "a/one.xml", SPEC)
    write(folder, "b/two.xml", change(("provider='shop'", "provider='other'")))
    write(folder, "pom.xml", "<project/>")
    rc, out, err = run([PEM, "spec", "check", folder])
    equal((rc, out), (1, "6 events in 2 specs: 3 errors, 0 warnings\n"), "status and sum")
    assert re.search(r"b/two.xml:7:3: error: a second event 'APP::Shop::Sale', the first is \S*a/one.xml:7", err), err
    rc, _, err = run([PEM, "spec", "check", tmp()])
    assert rc == 1 and "there is no spec in the folder" in err, err


@test
def the_catalogue_is_clean():
    "the specs of this tree have neither errors nor warnings, and each keeps what it promised yesterday: itself"
    rc, out, err = run([PEM, "spec", "check", "--strict", "--against", ROOT + "/spec", ROOT + "/spec"])
    equal((rc, err), (0, ""), "status and mistakes")
    assert out.endswith(": 0 errors, 0 warnings\n"), out


@test
def compatible_changes_pass():
    "descriptions, levels, meanings, roles, sources, new labels and events, and another order of events need no version"
    first, rest = SPEC.split("  <event name='APP::Shop::Close'")
    close = "  <event name='APP::Shop::Close'" + rest.replace("</spec>\n", "")
    moved = first.replace("  <event name='APP::Shop::Sale'", close + "  <event name='APP::Shop::Sale'") + "</spec>\n"
    for text in (change(("'sold'", "'sold at last'"), ("'coins'", "'coins and notes'")),
                 change((" description='sold'", " level='detail' since='1.0' description='sold'")),
                 change(("<specifier value='Sale'/>", "<specifier value='Sale'/><meaning value='gauge'/>"),
                        ("unit='cents'", "unit='cents' role='value'")),
                 change(("<label name='cash'", "<label name='cheque' value='7' description='paper'/><label name='cash'")),
                 change(("'Payment'", "'Money'")), moved,
                 change(("</spec>", "  <event name='APP::Shop::New' description='n'><layerId value='APP'/>"
                         "<classId value='Shop'/><specifier value='New'/></event></spec>")),
                 change(("name='APP::Shop::Sale'", "name='APP::Shop::Sale' version='2'"), ("'uint64'", "'uint32'"))):
        equal(against(text), (0, []), "a compatible change")


@test
def incompatible_changes_name_both_places():
    "a change of what records hold is an error that names the place in both specs, and asks for the next version"
    wanted = "expected version='2' on event 'APP::Shop::Sale', or the record as it was"
    for pairs, place, text in (
            ([("'uint32'", "'int32'")], "11:7", "field 'count' is int32, and was uint32 in old.xml:11:7"),
            ([("max='32'", "max='33'")], "13:7", "'item' is string of 33 bytes, and was string of 32 bytes in old.xml:13:7"),
            ([("eltType='uint16'", "eltType='int16'")], "14:7",
             "'parts' is list of 4 int16, and was list of 4 uint16 in old.xml:14:7"),
            ([("unit='cents'", "unit='euro'")], "10:7", "'cents' has unit 'euro', and had 'cents' in old.xml:10:7"),
            ([("name='count'", "name='number'")], "11:7", "field 'number' was called 'count' in old.xml:11:7"),
            ([("      <field name='count' type='uint32' unit='pieces' description='how many'/>\n", "")], "7:3",
             "field 'count' (old.xml:11:7) is gone"),
            ([("    </fields>", "      <field name='more' type='uint8' unit='none' description='m'/>\n    </fields>")],
             "15:7", "field 'more' is new since old.xml:7:3"),
            ([("'cents'", "'x'"), ("'item'", "'cents'"), ("'x'", "'item'")], None, "field 'cents' is"),
            ([("value='0'", "value='2'")], "4:5", "label 'cash' of field 'payment' has another value than in old.xml:4:5"),
            ([("name='cash'", "name='cheque'")], "4:5",
             "the value of label 'cheque' of field 'payment' was 'cash' in old.xml:4:5")):
        rc, lines = against(change(*pairs))
        equal(rc, 1, "status of " + text)
        match = [line for line in lines if text in line]
        assert match and wanted in match[0], (text, lines)
        assert place is None or match[0].startswith("new.xml:%s: error: " % place), (place, lines)
        equal(against(change(*pairs, ("name='APP::Shop::Sale'", "name='APP::Shop::Sale' version='2'")))[0], 0,
              "status with version 2")


@test
def order_of_fields_counts():
    "fields that changed places are an error, and a version that went back"
    cents, count = [line + "\n" for line in SPEC.splitlines() if "name='cents'" in line or "name='count'" in line]
    rc, lines = against(change((cents + count, count + cents)))
    equal(rc, 1, "status")
    assert "field 'count' stands where 'cents' stood in old.xml:10:7" in lines[0], lines
    rc, lines = against(SPEC, change(("name='APP::Shop::Sale'", "name='APP::Shop::Sale' version='3'")))
    equal((rc, lines), (1, ["new.xml:7:3: error: event 'APP::Shop::Sale' has version 1, and had 3 in old.xml:7:3: "
                            "expected at least that"]), "a lower version")


@test
def events_go_after_a_warning():
    "an event that is gone or was renamed is an error, but a warning if the old spec says deprecated; so is a label"
    one, two = [SPEC[SPEC.index("  <event name='APP::Shop::%s'" % name):].split("</event>\n")[0] + "</event>\n"
                for name in ("Open", "Close")]
    rc, lines = against(change((two, "")))
    equal((rc, lines), (1, ["new.xml:2:1: error: event 'APP::Shop::Close' (old.xml:20:3) is gone: expected it with "
                            "deprecated='' for a version first"]), "gone")
    rc, lines = against(change((one, "")))
    equal((rc, lines), (0, ["new.xml:2:1: warning: event 'APP::Shop::Open' (old.xml:17:3, deprecated) is gone"]),
          "gone after notice")
    rc, lines = against(change(("Shop::Close", "Shop::Shut"), ("'Close'", "'Shut'")))
    assert rc == 1 and "event 'APP::Shop::Shut' is new, and 'APP::Shop::Close' (old.xml:20:3) with the same fields is " \
        "gone" in lines[0], lines
    rc, lines = against(change(("    <label name='card' value='1' description='plastic'/>\n", "")))
    assert rc == 0 and "has label 'card' (old.xml:5:5) no more" in lines[0], lines


@test
def providers_keep_name_and_version():
    "a provider that was renamed is a warning, and one whose version went back an error"
    rc, lines = against(change(("provider='shop'", "provider='store'")))
    equal((rc, lines), (0, ["new.xml:2:1: warning: provider 'store' has events that 'shop' had in old.xml:2:1: expected "
                            "them there, or programs must be changed to use 'store'"]), "renamed")
    for now, was, text in (("1.9", "1.10", "version 1.9, and had 1.10"), ("1", "1.0.1", "version 1, and had 1.0.1")):
        rc, lines = against(*[change(("'shop' version='1.0'", "'shop' version='%s'" % v)) for v in (now, was)])
        equal((rc, lines), (1, ["new.xml:2:1: error: the provider has %s in old.xml:2:1: expected at least that" % text]),
              "lowered")
    equal(against(*[change(("'shop' version='1.0'", "'shop' version='%s'" % v)) for v in ("1.10", "1.9")]), (0, []),
          "raised")


@test
def definitions_say_something_and_are_used():
    "an enum, label or struct without description, one that nothing uses, and a since='' of the future are warnings"
    bare = "  <enum name='Lone'><label name='one' value='1'/><label name='two' value='2'/></enum>\n" \
        "  <struct name='Box'><field name='x' type='uint8' unit='none' description='d'/></struct>\n"
    path = write(tmp(), "s.xml", change(("  <enum name='Payment'", bare + "  <enum name='Payment'"),
                                        ("description='sold'", "since='1.2' description='sold'")))
    rc, _, err = run([PEM, "spec", "check", path])
    equal(rc, 0, "status")
    equal([line.split("warning: ")[1].split(":")[0] for line in err.splitlines()],
          ["<enum> 'Lone' has no description", "nothing uses <enum> 'Lone'",
           "label 'one', like others of 'Lone' has no description", "<struct> 'Box' has no description",
           "nothing uses <struct> 'Box'", "since='1.2' is later than the provider's version, 1.0"], "warnings")


@test
def an_old_spec_that_is_wrong():
    "an old spec that is wrong itself is named"
    rc, lines = against(SPEC, change(("'uint64'", "'uint46'")))
    equal(rc, 1, "status")
    assert lines[0].startswith("old.xml:10:27: error: ") and lines[1].startswith("pem: error: what --against names is wrong itself"), lines


run_all()
