# SPDX-License-Identifier: MIT
"""house_barriers: each barrier bears the letters of its pairs, and docs/architecture.md lists the pairs"""
import glob
import re

from tap import ROOT, equal, run_all, test

FOLDERS = ("spec/abi/pem/*.h", "libpem/**/*.[ch]", "kmod/**/*.[ch]")
BARRIER = re.compile(r"""__ATOMIC_(?:ACQUIRE|RELEASE|ACQ_REL|SEQ_CST) | \bsmp_(?:store_release|load_acquire|wmb|rmb|mb)\b
                       | \bPEM_(?:ORDER_STORES|RELEASE)\( | \bmemory_order_(?:acquire|release|acq_rel|seq_cst)
                       | \batomic_(?:load|store|exchange|fetch_[a-z]+|compare_exchange_(?:weak|strong))\(
                       | \b(?:cmpxchg|atomic\w+)_(?:acquire|release)\( | __sync_(?!fetch_and_add)\w+\(""", re.VERBOSE)
PUBLISHES = re.compile(r"__ATOMIC_RELEASE|_release\(|smp_store_release|smp_wmb|PEM_ORDER_STORES|PEM_RELEASE|memory_order_release")
READS = re.compile(r"__ATOMIC_ACQUIRE|_acquire\(|smp_load_acquire|smp_rmb|memory_order_acquire")
LABELS = re.compile(r"/\*\s*(?:\*\s*)?((?:[A-Z]{2}|[a-z]{2}|none|linux)(?:, (?:[A-Z]{2}|[a-z]{2}))*)(?::|\s*\*/)")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def statements(text):
    """Of each statement with barriers: its line, the comment above it, the orders it names."""
    blank = COMMENT.sub(lambda c: re.sub(r"[^\n]", " ", c.group()), text).split("\n")
    lines, found = text.split("\n"), {}
    for i, line in enumerate(blank):
        is_macro = line.lstrip().startswith("#") or (i and blank[i - 1].rstrip().endswith("\\"))
        if is_macro or "signal_fence" in line or not BARRIER.search(line):
            continue
        first = i  # the statement's first line
        while first and blank[first - 1].strip() and blank[first - 1].rstrip()[-1] not in ";{}:" and not blank[first - 1].lstrip().startswith("#"):
            first -= 1
        above = first  # the comment's first line
        while above and not blank[above - 1].strip() and lines[above - 1].strip():
            above -= 1
            if "/*" in lines[above]:
                break
        found.setdefault(first, [first + 1, "\n".join(lines[above:first]), ""])[2] += " ".join(BARRIER.findall(line)) + " "
    return found.values()


def letters(path, text):
    """Which letters the barriers of a text bear, and complaints."""
    used, wrong = set(), []
    for line, comment, orders in statements(text):
        found = LABELS.match(comment.strip())
        names = found.group(1).split(", ") if found else []
        if not names:
            wrong.append("%s:%d: a barrier without letters" % (path, line))
        elif names[0] in ("none", "linux"):
            if not re.search(r"(none|linux): \w+", comment):
                wrong.append("%s:%d: %s without a reason" % (path, line, names[0]))
        else:
            if PUBLISHES.search(orders) and not READS.search(orders) and not any(n.isupper() for n in names):
                wrong.append("%s:%d: it publishes, and no letters are capitals: %s" % (path, line, ", ".join(names)))
            if READS.search(orders) and not PUBLISHES.search(orders) and not any(n.islower() for n in names):
                wrong.append("%s:%d: it reads, and no letters are small: %s" % (path, line, ", ".join(names)))
            used |= set(names)
    return used, wrong


def pairs():
    """The pairs of the table."""
    with open(ROOT + "/docs/architecture.md", encoding="utf-8") as f:
        return re.findall(r"^\| ([A-Z]{2}) \| [^|]+ \| [^|]+ \| [^|]+ \|$", f.read(), re.MULTILINE)


def one_sided(used, table):
    """What is wrong with the letters that are used, held against the table."""
    return sorted(["%s has no other side" % name for name in used if name.swapcase() not in used]
                  + ["%s is not in the table" % name for name in used if name.upper() not in table]
                  + ["%s is in the table, and nowhere else" % name for name in table if name not in used]
                  + ["%s is in the table twice" % name for name in set(table) if table.count(name) > 1])


@test
def barriers_bear_letters():
    "each acquire, release and fence bears its pair's letters, capital where it publishes"
    wrong, seen = [], 0
    for path in sorted({p for pattern in FOLDERS for p in glob.glob(ROOT + "/" + pattern, recursive=True)}):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        seen += len(list(statements(text)))
        wrong += letters(path[len(ROOT) + 1:], text)[1]
    assert seen > 200, "only %d barriers were found" % seen
    equal(wrong, [], "barriers")


@test
def pairs_are_mutual():
    "each pair has both sides in the code and one row of the table in docs/architecture.md"
    used = set()
    for pattern in FOLDERS:
        for path in glob.glob(ROOT + "/" + pattern, recursive=True):
            with open(path, encoding="utf-8") as f:
                used |= letters(path, f.read())[0]
    equal(one_sided(used, pairs()), [], "pairs")


@test
def missing_letters_are_found():
    "a barrier without letters, one with the wrong side's, one without a reason and a pair of one side are found"
    text = "\t/* %s */\n\t__atomic_store_n(&a,\n\t\t\t 1, __ATOMIC_RELEASE);\n"
    equal(letters("x.c", text % "RA: why")[1], [], "complaints of one that is right")
    for comment, complaint in (("after b", "without letters"), ("ra", "capitals"), ("none", "without a reason")):
        assert complaint in "".join(letters("x.c", text % comment)[1]), comment
    assert letters("x.c", "\n\t__atomic_thread_fence(__ATOMIC_ACQUIRE);\n")[1], "a fence alone passes"
    assert "small" in letters("x.c", "\t/* RA */\n\tx = smp_load_acquire(&y);\n")[1][0], "a reader with capitals passes"
    equal(one_sided({"RA", "ra", "RB", "rc", "RC"}, ["RA", "RC", "RD", "RA"]),
          ["RA is in the table twice", "RB has no other side", "RB is not in the table", "RD is in the table, and nowhere else"], "complaints")


run_all()
