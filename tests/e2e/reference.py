# SPDX-License-Identifier: MIT
"""reference: the event reference, man pages and HTML, holds every event, and nothing that an author writes breaks it"""
import glob
import html.parser
import json
import os
import re
import tempfile
import xml.sax.saxutils

from tap import BUILD, CODEGEN, PEM, ROOT, equal, need, parallel, run, run_all, skip, test, tmp
from webdriver import Browser, missing

LONG_S = 10

MAN = os.path.join(BUILD, "gen", "reference", "man")
HTML = os.path.join(BUILD, "gen", "reference", "html")

# What roff, HTML, attributes and comments would take for their own.
HOSTILE = r""".TH "x" 'y' \fBbold\fR \(rs <script>alert(1)</script> &amp; &lt; --> `q` ^ ~ -dash -- end"""
SECOND = r"""'br \&.PP </td></table><img src=x onerror=alert(2)> \" gone?"""


class Page(html.parser.HTMLParser):
    """What of a page counts here: its elements, its ids, its links, and the text and fields of each event."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.ids, self.links, self.events, self.text = set(), set(), [], {}, {}
        self._event = self._name = None
        self._skip = False
        with open(path, encoding="utf-8") as f:
            self.feed(f.read())

    def handle_starttag(self, tag, attributes):
        at = dict(attributes)
        self.tags.add(tag)
        self._skip = tag in ("style", "script")
        if "id" in at:
            self.ids.add(at["id"])
        if "href" in at:
            self.links.append(at["href"])
        if tag == "article":
            self._event = at["id"]
            self.events[self._event], self.text[self._event] = [], ""
        if tag == "td" and at.get("class") == "name":
            self._name = ""

    def handle_endtag(self, tag):
        self._skip = False
        if tag == "td" and self._name is not None:
            self.events[self._event].append(self._name)
            self._name = None

    def handle_data(self, data):
        if self._skip:
            return
        if self._event:
            self.text[self._event] += data
        if self._name is not None:
            self._name += data


def catalogue():
    """{event: [field]} of all events that pem knows."""
    rc, out, err = run([PEM, "list", "--json"], env={"PEM_SPEC_PATH": None})
    equal(rc, 0, "pem list, which said: " + err)
    return {e["name"]: [f["name"] for f in e["fields"]] for e in json.loads(out)}


def page_of(event):
    return "-".join(event.split("::")[:2]).lower()


def generate(backend, *specs):
    folder = tmp()
    equal(run([CODEGEN, "--backend", backend, "-o", folder, *specs]), (0, "", ""), backend)
    return folder


def rendered(page):
    """The words of a man page as a reader sees them, each parted from the next by one space."""
    need("man")
    rc, out, err = run(["man", "-E", "UTF-8", "-l", "-Tutf8", page])
    equal(rc, 0, "man, which said: " + err)
    if "minimized" in out + err:
        skip("man is a stand-in that shows no page: this system was minimized")
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|.\x08", "", out).split())


def hostile_spec():
    """A spec whose texts are all hostile."""
    def quoted(text):
        return xml.sax.saxutils.quoteattr(text)
    path = os.path.join(tmp(), "evil--.xml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("""<spec provider='evil' version='1.0' description=%s>
  <enum name='Evil' description=%s><label name='one' value='1' description=%s/></enum>
  <event name='APP::Evil::Deed' since='1.0' deprecated=%s description=%s>
    <layerId value='APP'/><classId value='Evil'/><specifier value='Deed'/>
    <source type='stub'/>
    <fields>
      <field name='victim' type='uint8' unit=%s enum='Evil' description=%s/>
      <field name='weapon' type='uint64' unit=%s description=%s/>
    </fields>
  </event>
</spec>
""" % tuple(map(quoted, (HOSTILE, SECOND, SECOND, SECOND, HOSTILE, r".\\<b>&", SECOND, "'\"<i>", HOSTILE))))
    return path


@test
def html_has_every_event_and_field():
    "the HTML pages have every event of the catalogue with all its fields, and the index leads to it"
    links = set(Page(HTML + "/index.html").links)
    pages = {}
    for event, fields in catalogue().items():
        name, specifier = page_of(event), event.split("::")[2]
        if name not in pages:
            pages[name] = Page("%s/%s.html" % (HTML, name))
        equal(pages[name].events.get(specifier), fields, "fields of " + event)
        assert pages[name].text[specifier].lstrip().startswith(event), event
        assert "%s.html#%s" % (name, specifier) in links, "the index has no " + event


@test
def man_pages_have_every_event_and_field():
    "the man pages have every event of the catalogue with all its fields, and the overview names it"
    with open(MAN + "/pem-events.7", encoding="utf-8") as f:
        overview = f.read()
    for event, fields in catalogue().items():
        layer, class_name, specifier = event.split("::")
        with open("%s/pem-%s.7" % (MAN, page_of(event)), encoding="utf-8") as f:
            text = f.read()
        part = text[text.index('.SS "%s"\n' % event):]
        part = part[:part.find("\n.S", 1)]
        equal(re.findall(r"^\.TP 7\n\\fB(.*?)\\fR", part, re.MULTILINE), fields, "fields of " + event)
        assert re.search(r"^%s,?$" % specifier, overview, re.MULTILINE), "pem-events(7) has no " + event


@test
def every_link_leads_somewhere():
    "every link of every HTML page leads to a page and a place in it"
    pages = {os.path.basename(p): Page(p) for p in glob.glob(HTML + "/*.html")}
    assert len(pages) > 10, sorted(pages)
    for name, page in pages.items():
        for link in page.links:
            target, _, place = link.partition("#")
            assert (target or name) in pages, "%s: %s" % (name, link)
            assert not place or place in pages[target or name].ids, "%s: %s" % (name, link)


@test
def partners_are_linked():
    "an event links those that it pairs with, and says in what they agree"
    folder = generate("html", ROOT + "/examples/shop.xml")
    page = Page(folder + "/app-shop.html")
    assert "app-shop.html#ServeEnd" in page.links and "app-shop.html#ServeBegin" in page.links, page.links
    assert "same customer" in page.text["ServeBegin"], page.text["ServeBegin"]
    text = rendered(generate("man", ROOT + "/examples/shop.xml") + "/pem-app-shop.7")
    assert re.search(r"Pairs with:\s+APP::Shop::ServeEnd of pem-app-shop\(7\)", text), text


@test
def costs_and_sizes_are_said():
    "sizes are those of the records, and the cost names the path"
    page = Page(generate("html", ROOT + "/examples/shop.xml") + "/app-shop.html")
    # header 8, cents 8, count 4, payment 1; item 1 to 32 bytes
    assert "24 to 56 bytes per record" in page.text["Sale"], page.text["Sale"]
    assert "one load, a test and a branch" in page.text["Sale"], page.text["Sale"]
    page = Page(HTML + "/os-sched.html")
    assert "sched:sched_switch" in page.text["Switch"] and "in the kernel" in page.text["Switch"], page.text["Switch"]


@test
def man_pages_are_clean():
    "mandoc and man find nothing wrong with a page, but that it has no date"
    hostile = generate("man", hostile_spec())
    pages = sorted(glob.glob(MAN + "/*.7") + glob.glob(hostile + "/*.7"))
    need("mandoc", "man")
    rc, out, err = run(["mandoc", "-Tlint", "-Wwarning", *sorted(glob.glob(ROOT + "/docs/man/*.1"))])
    equal(out, "", "mandoc -Tlint of the commands' pages")
    rc, out, err = run(["mandoc", "-Tlint", "-Wstyle", *pages])
    # What is generated depends on the specs alone, so it has no date.
    equal([l for l in out.splitlines() if "missing date" not in l], [], "mandoc -Tlint")

    def shown(page):
        rc, out, err = run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page])
        if "minimized" in out + err:
            skip("man is a stand-in that shows no page: this system was minimized")
        equal((rc, err), (0, ""), "man --warnings " + page)

    parallel(shown, pages)


@test
def hostile_text_is_text_in_html():
    "what an author writes is text in an HTML page, and never markup"
    folder = generate("html", hostile_spec())
    page, index = Page(folder + "/app-evil.html"), Page(folder + "/index.html")
    assert "script" not in page.tags and not {"img", "b", "i"} & (page.tags | index.tags), page.tags
    for text in (HOSTILE, SECOND, r".\\<b>&", "'\"<i>"):
        assert text in page.text["Deed"], text
    equal(page.events["Deed"], ["victim", "weapon"], "fields")


@test
def hostile_text_is_text_in_man_pages():
    "what an author writes is text in a man page, and never a request"
    text = rendered(generate("man", hostile_spec()) + "/pem-app-evil.7")
    for wanted in (HOSTILE, SECOND, r".\\<b>&", "'\"<i>"):
        assert wanted in text, "%s is not in %s" % (wanted, text)


@test
def index_finds():
    "in a browser the index shows what all words of the box are in, and says nothing on the console"
    if missing():
        skip("%s is not installed (packages chromium, chromium-driver)" % missing())
    count = len(catalogue())
    with tempfile.TemporaryDirectory(prefix="pem-browser-", ignore_cleanup_errors=True) as profile, Browser(profile) as b:
        shown = "return [...document.querySelectorAll('li[data-t]')].filter(e => e.offsetParent).length"
        heads = "return [...document.querySelectorAll('h3')].filter(e => e.offsetParent).map(e => e.textContent)"
        b.open("file://" + HTML + "/index.html")
        equal(b.script(shown), count, "events at first")
        b.keys("#find", "sched switch")
        assert 0 < b.script(shown) < count, b.script(shown)
        assert "Sched" in b.script(heads) and "Tlb" not in b.script(heads), b.script(heads)
        b.keys("#find", " xyzzy")
        equal((b.script(shown), b.script(heads)), (0, []), "what no event has")
        equal(b.script("return document.querySelector('#count').textContent"), "0 of %d events" % count, "count")
        b.resize(420, 800)
        b.open("file://" + HTML + "/os-sched.html#Switch")
        equal(b.script("return document.documentElement.scrollWidth <= innerWidth"), True, "fits a narrow window")
        equal([entry["message"] for entry in b.console()], [], "console")


@test
def index_finds_by_meaning():
    "the index finds events by words in any order and case, in descriptions, fields, units, and sources"
    if missing():
        skip("%s is not installed (packages chromium, chromium-driver)" % missing())
    with tempfile.TemporaryDirectory(prefix="pem-browser-", ignore_cleanup_errors=True) as profile, Browser(profile) as b:
        names = ("return [...document.querySelectorAll('li[data-t] a')].filter(e => e.offsetParent)"
                 ".map(e => e.getAttribute('href').replace('.html#', '::'))")
        for words, wanted in (("block I/O", "os-block::Issue"), ("IO Block", "os-block::Issue"),
                              ("network send", "os-net::XmitEnd"), ("TCP retransmission", "os-tcp::Retransmit"),
                              ("sectors", "os-block::Complete"), ("prevTid", "os-sched::Switch"),
                              ("SCHED_switch", "os-sched::Switch"), ("cache-misses", "hw-hwperf::CacheMisses"),
                              ("cachemisses", "hw-hwperf::CacheMisses"), ("os::block::issue", "os-block::Issue")):
            b.open("file://" + HTML + "/index.html")
            b.keys("#find", words)
            found = b.script(names)
            assert wanted in found and len(found) < 300, (words, found)


@test
def pages_have_a_date():
    "each man page of the reference has the date of its version"
    pages = glob.glob(BUILD + "/gen/reference/man/*.7")
    assert pages
    for path in pages:
        with open(path, encoding="utf-8") as page:
            assert re.search(r'^\.TH "[^"]*" 7 "\d{4}-\d\d-\d\d" "pem"', page.read(), re.MULTILINE), path


run_all()
