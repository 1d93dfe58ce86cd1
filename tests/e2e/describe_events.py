# SPDX-License-Identifier: MIT
"""
describe_events: docs/describe-events.md, walked as a newcomer would: its files saved, its commands typed, in a fresh folder

Not here: whether it takes less than five minutes; the commands together take a few seconds.
"""
import os
import re

from tap import BUILD, PEM, ROOT, need, equal, run, run_all, test, tmp

with open(os.path.join(ROOT, "docs/describe-events.md"), encoding="utf-8") as page:
    PAGE = page.read()


def section(number):
    return re.search(r"^## %d\. .*?(?=^## |\Z)" % number, PAGE, re.M | re.S).group(0)


def walk(folder, text):
    """Save files and run commands as the text has them. Standard output of the commands, and their errors."""
    out = err = ""
    blocks = re.finditer(r"(?:as `([\w.]+)`[^`]*)?\n```(\w*)\n(.*?)```", text, re.S)
    for name, language, body in (block.groups() for block in blocks):
        if language == "sh":
            # In the source tree the printed line has one more -I, says the page.
            line = re.search(r"^build with: +(cc .*)$", out, re.M)
            body = line.group(1) if line and body.startswith("cc ") else body
            rc, more, errors = run(["sh", "-ec", body], cwd=folder,
                                   env={"PATH": BUILD + "/bin:" + os.environ["PATH"], "PEM_SPEC_PATH": None})
            out, err = out + more, err + errors
            assert rc == 0 or "--against" in body, (body, more, errors)
        elif name:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(body)
    return out, err


@test
def from_nothing_to_a_recorded_event():
    "the page's files and commands lead to what it says: 1,000 events, alone by name, and again from Python"
    need("cc", "python3")
    folder = tmp()
    out, err = walk(folder, section(1))
    equal((out, err), ("1 event in 1 spec: 0 errors, 0 warnings\n", ""), "check")
    assert "`%s`" % out.strip() in section(1), out
    out, _ = walk(folder, section(2))
    assert "./bakery.h\n" in out and "-ldl\n" in out and "pem record -- ./program\n" in out, out
    assert section(2).count(re.sub(r" -I/\S+", "", re.search(r"cc .*", out).group(0))) == 1, out
    out, err = walk(folder, section(3))
    assert re.search(r"APP::Bakery::Baked +1,000 ", out), out
    assert "pem: 1,000 events in " in err, err
    out, err = walk(folder, section(4))
    assert re.search(r"APP::Bakery::Baked +1,000 ", out), out


@test
def a_folder_whose_name_needs_quotes():
    "the commands that pem gen prints are right for a folder with blanks and an apostrophe in its name"
    need("cc")
    folder = tmp()
    walk(folder, section(1))
    with open(folder + "/program.c", "w", encoding="utf-8") as f:
        f.write('#include "bakery.h"\nint main(void) { return 0; }\n')
    rc, out, err = run([PEM, "gen", "bakery.xml", "-o", "the baker's own"], cwd=folder)
    equal((rc, err), (0, ""), "gen")
    rc, said, err = run(["sh", "-ec", re.search(r"^build with: +(.*)$", out, re.M).group(1)], cwd=folder)
    equal((rc, said, err), (0, "", ""), "build")
    rc, said, _ = run(["sh", "-ec", "cat " + re.search(r"^wrote: +(.*)$", out, re.M).group(1)], cwd=folder)
    assert rc == 0 and "bakery" in said, out


@test
def a_change_without_a_version():
    "the page shows just what is said of a change without a new version"
    folder = tmp()
    walk(folder, section(1))
    with open(folder + "/bakery.xml", encoding="utf-8") as f:
        text = f.read()
    os.mkdir(folder + "/released")
    os.rename(folder + "/bakery.xml", folder + "/released/bakery-1.0.xml")
    more = "      <field name='grams' type='uint32' unit='g' description='weight'/>\n"
    with open(folder + "/bakery.xml", "w", encoding="utf-8") as f:
        f.write(text.replace("    </fields>", more + "    </fields>"))
    _, err = walk(folder, section(5))
    assert err and err in section(5), err


run_all()
