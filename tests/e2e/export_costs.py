# SPDX-License-Identifier: MIT
"""export_costs: what observing cost, in the page of pem export --to html"""
import os
import subprocess

from attached import Recorder
from html_page import export, quiet, show
from probing import here, record
from tap import run_all, start, test

WORDS = "at switches of threads and at page faults, whose number is not known"


def said(trace):
    page = trace + ".html"
    export(trace, page)
    b = show(page)
    text = b.script("return document.querySelector('#cost-text').textContent")
    quiet(b)
    return text


@test
def what_the_cost_lacks():
    "the page says that the number of switches is missing of a program that the recorder attached to, and not of a command"
    here()
    program = start(["sh", "-c", "read line"], stdin=subprocess.PIPE, text=True)
    recorder = Recorder("-p", str(program.pid), events="OS::Syscall::Enter,Sched")
    program.communicate("a line\n")
    recorder.end()
    text = said(recorder.trace)
    assert "Not in it: " in text and WORDS in text, text
    trace, _ = record("APP,Sched,HPMsAndPC", "sh", "-c", "sleep 0; sleep 0")
    text = said(os.path.abspath(trace))
    assert "Not in it: what copying pem's memory costs at each fork, the caches" in text and WORDS not in text, text


run_all()
