# SPDX-License-Identifier: MIT
"""consumer_python: the module pemapi, against the library it is over"""
import os
import sys

from consumers import python
from tap import BUILD, CODEGEN, PEM, ROOT, SAN, equal, need, run, run_all, skip, start, test, tmp


@test
def statistics():
    "statistics of an attribute: accumulated while enabled, reset"
    equal(python("""
        with pemapi.Session() as session:
            stats = session.statistics(session.events("APP::GC::Start"), "heapBytes", pemapi.Context.this_process())
            with stats:
                for i in range(1, 5):
                    pem_gc.notify_gc_start(i, i * 100)
            pem_gc.notify_gc_start(9, 9)
            v, = stats.read()
            print(v.event.name, v.count, v.sum, v.min, v.max, v.mean, v.unavailable, v.enabled_ns, v.running_ns, v.error, v.together)
            stats.reset()
            print(stats.read()[0].count)
        """), "APP::GC::Start 4 1000 100 400 250.0 None 0 0 0.0 0\n0\n", "output")


@test
def options_as_in_c():
    "a session has the options of C; costs, counts that wait, and interrupting are there"
    equal(python("""
        with pemapi.Session(sample_hz=50, sample_stacks="frames", drain_threads=2, by_process=True, progress=True) as session:
            print(session.costs()["user-log"] > 0)
            callback = session.async_callback(session.events("APP::GC::Start"), print, pemapi.Context.this_process())
            print(callback.counts().waiting)
            session.interrupt()
            try:
                session.poll(1000)
            except pemapi.Error as error:
                print(error.errno)
            stats = session.statistics(session.events("APP::GC::Start"))
            print(stats.read()[0].is_partial, stats.read()[0].counted)
        try:
            pemapi.Session(drain_threads=1000)
        except pemapi.Error as error:
            print(error.errno)
        print(os.path.isdir(pemapi.runtime_dir()))
        """), "True\n0\n4\nFalse 0\n22\nTrue\n", "output")


@test
def sources():
    "which sources there are, in the order in which they are asked, and which one delivers an event"
    equal(python("""
        with pemapi.Session() as session:
            print([s.name for s in session.sources()][:2], all(s.reason is None or len(s.reason) > 9 for s in session.sources()))
            print(session.source_of(session.events("APP::GC::Start")[0]))
            pages, = session.events("OS::Pages::Pass")
            print((session.source_of(pages) is None) == (session.why_not(pages) is not None))
        """), "['threads', 'module'] True\nstub\nTrue\n", "output")


@test
def what_the_module_looks_at():
    "counters and page sampling are set as in C, and refused as there"
    equal(python("""
        with pemapi.Session() as session:
            session.set_counters("ContextSwitches", "MinorFaults"), session.set_page_sampling(1000, 4096)
            session.count_at(session.events("APP::Phase::*"))
            for wrong in (lambda: session.count_at(session.events("OS::Sched::Switch")), lambda: session.set_counters("ContextSwitches", "", "MinorFaults"), lambda: session.set_page_sampling(1000, 5000)):
                try:
                    wrong()
                except pemapi.Error as error:
                    print(error.errno)
        """), "2\n22\n22\n", "output")


@test
def distribution_statistics():
    "variance, a histogram and frequent values, if asked for; parts by thread"
    equal(python("""
        with pemapi.Session() as session:
            stats = session.statistics(session.events("APP::GC::Start"), "heapBytes", pemapi.Context.this_process(),
                                       keep=pemapi.VARIANCE | pemapi.HISTOGRAM | pemapi.TOP)
            def work():
                for value in 4, 4, 4, 100:
                    pem_gc.notify_gc_start(1, value)
            with stats:
                work()
                other = threading.Thread(target=work)
                other.start()
                native = other.native_id
                other.join()
                v, = stats.read()
            print(v.count, v.variance, v.deviation == v.variance ** 0.5)
            print({i: n for i, n in enumerate(stats.histogram()) if n})
            print(stats.top()[0][:2], sorted(value for value, _, _ in stats.top()))
            print(sum(p.statistic.count for p in stats.each()), {p.pid for p in stats.each()} == {os.getpid()})
            plain = session.statistics(session.events("APP::GC::End"))
            try:
                plain.histogram()
            except pemapi.Error as error:
                import errno
                print(error.errno == errno.ENODATA)
        """), "8 1728.0 True\n{3: 6, 7: 2}\n(4, 6) [4, 100]\n8 True\nTrue\n", "output")


@test
def predicates():
    "a predicate of all events of a set, and of those that match a pattern"
    equal(python("""
        with pemapi.Session() as session:
            events = session.events("APP::GC::Start", "APP::GC::End", where="heapBytes > 100")
            events.where("heapBytes > 200", "*::Start")
            print({event.name: events.predicate(i) for i, event in enumerate(events)})
            stats = session.statistics(events, None, pemapi.Context.this_process())
            with stats:
                for value in 50, 150, 250:
                    pem_gc.notify_gc_start(1, value)
            print({v.event.name: v.count for v in stats.read()}["APP::GC::Start"])
            print(session.events("APP::GC::End").predicate(0))
        """), "{'APP::GC::Start': 'heapBytes > 200', 'APP::GC::End': 'heapBytes > 100'}\n1\nNone\n", "output")


@test
def callback():
    "a synchronous callback gets records with their fields, until it is disabled"
    equal(python("""
        seen = []
        with pemapi.Session() as session:
            events = session.events("APP::GC::Start", "APP::GC::End")
            callback = session.callback(events, seen.append, pemapi.Context.this_process())
            with callback:
                pem_gc.notify_gc_start(1, 1 << 40)
                pem_gc.notify_gc_end(1, 5, 7)
            pem_gc.notify_gc_start(2, 2)
        # Records are copies: good after the session has closed.
        for r in seen:
            print(r, r.pid == os.getpid(), r.tid == threading.get_native_id(), r["heapBytes"] == r.heapBytes)
        print(dict(seen[1]))
        """), "<APP::GC::Start collection=1 heapBytes=1099511627776> True True True\n"
              "<APP::GC::End collection=1 heapBytes=5 freedBytes=7> True True True\n"
              "{'collection': 1, 'heapBytes': 5, 'freedBytes': 7}\n", "output")


@test
def handles_live_in_the_session():
    "a callback whose handle and function nobody holds is still called"
    equal(python("""
        import gc
        count = [0]
        with pemapi.Session() as session:
            def add():
                def one(record):
                    count[0] += 1
                session.callback(session.events("APP::GC::Start"), one, pemapi.Context.this_process()).enable()
            add()
            gc.collect()
            pem_gc.notify_gc_start(1, 1)
        print(count[0])
        """), "1\n", "output")


@test
def threads():
    "callbacks in eight threads at once, which read statistics and switch them, lose no event"
    equal(python("""
        counts = {}
        with pemapi.Session() as session:
            here = pemapi.Context.this_process()
            stats = session.statistics(session.events("APP::GC::End"), context=here)
            def started(record):
                counts[record.tid] = counts.get(record.tid, 0) + 1
                stats.read()
                stats.disable()
                stats.enable()
            def work():
                for i in range(200):
                    pem_gc.notify_gc_start(i, i)
            with session.callback(session.events("APP::GC::Start"), started, here):
                all = [threading.Thread(target=work) for _ in range(8)]
                for t in all: t.start()
                for t in all: t.join()
        print(sum(counts.values()))
        """), "1600\n", "output")


@test
def foreign_threads():
    "a callback in a thread that Python has not made gets the interpreter's lock"
    need("cc")
    folder = tmp()
    with open(folder + "/other.c", "w") as out:
        out.write('#include <pthread.h>\n#include "stubs/gc.h"\n'
                  "static void *work(void *arg)\n{\n\tfor (unsigned i = 0; i < 100; i++)\n"
                  "\t\tpem_notify_gc_start(i, i);\n\treturn arg;\n}\n"
                  "void run(void)\n{\n\tpthread_t t[4];\n\tfor (int i = 0; i < 4; i++)\n"
                  "\t\tpthread_create(&t[i], 0, work, 0);\n\tfor (int i = 0; i < 4; i++)\n\t\tpthread_join(t[i], 0);\n}\n")
    rc, _, err = run(["cc", "-shared", "-fPIC", "-I" + ROOT + "/spec/abi", "-I" + BUILD + "/gen", folder + "/other.c", "-o",
                      folder + "/other.so", "-lpthread", "-ldl"])
    equal(rc, 0, "exit status of cc, which said: " + err)
    equal(python("""
        import ctypes
        other = ctypes.CDLL(sys.argv[1])
        count = [0]
        def add(record):
            count[0] += 1
        with pemapi.Session() as session:
            with session.callback(session.events("APP::GC::Start"), add, pemapi.Context.this_process()):
                other.run()
        print(count[0])
        """, folder + "/other.so", folder=folder), "400\n", "output")


@test
def async_callback():
    "an asynchronous callback gets the events of this and other processes, in order, and counts them"
    equal(python("""
        import time
        seen = []
        with pemapi.Session() as session:
            callback = session.async_callback(session.events("APP::GC::Start", "APP::GC::End"), seen.append,
                                              pemapi.Context.this_process(), max_delay_us=2000)
            callback.enable()
            def work():
                for i in range(500):
                    pem_gc.notify_gc_start(i, i)
                    pem_gc.notify_gc_end(i, i, i)
            all = [threading.Thread(target=work) for _ in range(4)]
            for t in all: t.start()
            for t in all: t.join()
            for _ in range(60000):
                if callback.counts().called + callback.counts().lost >= 4000:
                    break
                time.sleep(0.01)
            callback.disable()
            counts = callback.counts()
            print(counts.called == len(seen) == 4000 - counts.lost)
            clocks = [r.clock for r in seen]
            print(sum(a > b for a, b in zip(clocks, clocks[1:])) <= counts.late)
            print(all[0].native_id in {r.tid for r in seen})
        """), "True\nTrue\nTrue\n", "output")


@test
def async_callback_of_a_command():
    "an asynchronous callback gets the events of a command, with their fields"
    out = python("""
        import time
        sizes = []
        with pemapi.Session() as session:
            callback = session.async_callback(session.events("APP::Libc::Malloc"), lambda r: sizes.append((r.size, r.pid)))
            with callback:
                pid = session.run(["ls", "/"])
                status = session.wait()
                for _ in range(30000):
                    before = len(sizes)
                    time.sleep(0.02)
                    if before > 10 and before == len(sizes):
                        break
        print(status, len(sizes) > 10, all(size > 0 for size, _ in sizes), {p for _, p in sizes} == {pid})
        """)
    equal(out.splitlines()[-1], "0 True True True", "output")


@test
def attach():
    "a session attaches to a process that runs already, and knows it by name"
    child = start([PEM, "run", "--", "sh", "-c", "while :; do ls / >/dev/null; sleep 0.02; done"])
    try:
        out = python("""
            import time
            with pemapi.Session() as session:
                stats = session.statistics(session.events("APP::Libc::Malloc"))
                stats.enable()
                for _ in range(30000):
                    if session.attach(pemapi.Context(pid=int(sys.argv[1]), follow=True)):
                        break
                    time.sleep(0.02)
                # What the shell starts may be known before the shell is.
                for _ in range(30000):
                    session.poll(20)
                    known = int(sys.argv[1]) in {p.pid for p in session.processes()}
                    if stats.read()[0].count > 100 and known:
                        break
                print(stats.read()[0].count > 100, known)
                print(sum(part.statistic.count for part in stats.each()) > 100)
            """, str(child.pid))
        equal(out, "True True\nTrue\n", "output")
    finally:
        os.killpg(child.pid, 9)
        child.wait()


@test
def attach_to_a_silent_process():
    "a process that can raise no events is told of: by the log, or by a warning of Python's where there is none"
    child = start(["sleep", "100"], env={"LD_PRELOAD": None})
    try:
        out = python("""
            import warnings; said = []
            for log in None, lambda *told: said.append(told):
                with warnings.catch_warnings(record=True) as caught, pemapi.Session(log=log) as session:
                    warnings.simplefilter("always")
                    print(session.attach(int(sys.argv[1])), session.attach(os.getpid()), [str(w.message).split(":")[0] for w in caught])
            print([(level, sentence.split(":")[0]) for level, sentence in said if "raises" in sentence])
            """, str(child.pid))
    finally:
        child.kill()
    said = "process %d (sleep) raises no application events" % child.pid
    equal(out, "0 1 %r\n0 1 []\n%r\n" % ([said], [("warning", said)]), "output")


@test
def attach_by_number():
    "a session attaches to a process by its number, and says in a sentence what it can't attach to"
    out = python("""
        with pemapi.Session() as session:
            stats = session.statistics(session.events("APP::GC::Start"))
            stats.enable()
            print(session.attach(os.getpid()))
            pem_gc.notify_gc_start(1, 1)
            print(stats.read()[0].count)
            for what in 0, -1, 2**31 - 1, 2**40, "30305", True:
                try:
                    session.attach(what)
                    print("attached to", what)
                except pemapi.Error as why:
                    print(len(str(why).split()) > 3)
        """)
    equal(out, "1\n1\n" + 6 * "True\n", "output")


@test
def raising_callback():
    "what a callback raises is shown, and neither the program nor later calls suffer"
    equal(python("""
        sys.unraisablehook = lambda u: print("raised", u.exc_type.__name__)
        def bad(record):
            raise KeyError(record.collection)
        with pemapi.Session() as session:
            with session.callback(session.events("APP::GC::Start"), bad, pemapi.Context.this_process()):
                pem_gc.notify_gc_start(1, 1)
                pem_gc.notify_gc_start(2, 1)
        print("done")
        """), "raised KeyError\nraised KeyError\ndone\n", "output")


@test
def errors():
    "errors carry the library's sentence and errno; closed things say that they are"
    out = python("""
        import errno
        with pemapi.Session() as session:
            try:
                session.events("APP::GC::Strat")
            except pemapi.Error as error:
                print(error.errno == errno.ENOENT, "Strat" in str(error))
            try:
                session.statistics(session.events("APP::GC::Start"), "heapByte")
            except pemapi.Error as error:
                print(error.errno == errno.EINVAL, error)
            stats = session.statistics(session.events("APP::GC::Start"))
        for use in stats.read, lambda: session.events("APP"):
            try:
                use()
            except ValueError as error:
                print(error)
        try:
            pemapi.Trace("/nowhere")
        except pemapi.Error as error:
            print(error.errno == errno.ENOENT)
        """).splitlines()
    equal(out[0], "True True", "an unknown event")
    assert out[1].startswith("True APP::GC::Start has no number named 'heapByte'"), out[1]
    equal(out[2:], ["this was unregistered, or its session closed", "this session was closed", "True"], "the rest")


@test
def wrong_arguments_are_named():
    "an argument of another type, or out of its range, is named in a sentence"
    out = python("""
        session = pemapi.Session()
        gc = session.events("APP::GC::Start")
        def refused(call):
            try:
                call()
            except (TypeError, ValueError, pemapi.Error) as error:
                print(error)
            else:
                print("accepted")
        refused(lambda: session.run("ls"))
        refused(lambda: pemapi.Session(sample_stacks="zz"))
        refused(lambda: pemapi.Session(chunk_bytes=-4))
        refused(lambda: pemapi.Session(log=3))
        refused(lambda: session.events())
        refused(lambda: session.events(None))
        refused(lambda: session.events("APP::GC::Start", where=3))
        refused(lambda: session.statistics("APP::GC::Start"))
        refused(lambda: session.callback(gc, None))
        refused(lambda: session.async_callback(gc, 3))
        refused(lambda: session.log("APP", "/nowhere/x"))
        refused(lambda: pemapi.Context(pid=-1))
        refused(lambda: session.callback(gc, print, 1))
        print(session.run(["true"]) > 0 and session.wait())
        """).splitlines()
    for line, words in zip(out, (
            "give a list of words", "sample_stacks is 'zz': it is 'none', 'frames' or 'tables'", "chunk_bytes is -4: it is a number from 0",
            "function is 3, which can't be called", "no pattern of events was given", "a pattern is None: it is a text", "where is 3: it is a text",
            "as Session.events('APP::GC::Start') makes it", "function is None, which can't be called", "function is 3, which can't be called",
            "as Session.events('APP') makes it", "pid is -1", "use Session.async_callback()")):
        assert words in line, (words, line)
    equal(out[-1], "0", "a run after all that")


@test
def calls_without_a_sentence_in_c():
    "calls that give errno alone in C fail with a sentence and its next step"
    out = python("""
        session = pemapi.Session()
        gc = session.events("APP::GC::Start")
        stats = session.statistics(gc, "heapBytes")
        log = session.log(gc, sys.argv[1] + "/trace")
        log.finish()
        for call in (lambda: session.set_budget(7), lambda: session.set_page_sampling(3, 3), lambda: session.statistics(gc, keep=pemapi.TOP),
                     stats.histogram, stats.top, lambda: stats.histogram(9), lambda: stats.top(9), log.enable):
            try:
                call()
                print("accepted")
            except pemapi.Error as error:
                print(error.errno, error)
        """, tmp()).splitlines()
    for line, words in zip(out, ("a share of the programs' CPU time", "an interval of 1000 us or more", "name an attribute",
                                 "register them with keep=", "register them with keep=", "no event of this number", "no event of this number",
                                 "the log is finished")):
        assert words in line, (words, line)
    equal(len(out), 8, "calls")


@test
def forgotten_session():
    "a program that ends with its session open and callbacks enabled ends well"
    equal(python("""
        session = pemapi.Session()
        session.callback(session.events("APP::GC::Start"), print).enable()
        session.statistics(session.events("OS::Syscall::Enter")).enable()
        pid = os.fork()
        if pid == 0:
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """), "3\n", "output")


@test
def run_and_log():
    "a command is run under a session and logged; the trace reads as pem export reads it"
    folder = tmp()
    out = python("""
        with pemapi.Session() as session:
            with session.log(session.events("APP::Libc::Malloc"), sys.argv[1]):
                session.run(["sh", "-c", "ls / >/dev/null; exit 5"])
                print(session.wait(), session.elapsed_s > 0)
        with pemapi.Trace(sys.argv[1]) as trace:
            first = [(r.time_ns, r.pid, r.tid, r["size"], r["address"]) for r in trace]
            again = sum(1 for r in trace if r.event.name == "APP::Libc::Malloc")
            print(len(first) == again > 10, trace.info["exit_status"], trace.balance["delivered"] >= again)
            print(sum(r[3] for r in first), {trace.process_name(r[1]) for r in first} >= {"ls"})
        """, folder + "/trace", folder=folder).splitlines()
    equal(out[:2], ["5 True", "True 5 True"], "status, and the trace")
    rc, csv, err = run([PEM, "export", "--to", "csv", "-o", "-", folder + "/trace"])
    equal(rc, 0, "exit status of pem export, which said: " + err)
    import csv as reader
    sizes = [row for row in reader.DictReader(csv.splitlines()) if row.get("event") == "APP::Libc::Malloc"]
    equal(out[2], "%d True" % sum(int(row["size"]) for row in sizes), "bytes in all, and names of processes")


@test
def flight_recorders():
    "flight recorders are found, and write a snapshot when asked to; one that is gone says so"
    folder = tmp()
    equal(python("""
        over = threading.Event()
        with pemapi.Session(overwrite=True) as session:
            with session.log(session.events("APP::GC::Start"), sys.argv[1] + "/log", pemapi.Context.this_process()):
                for i in range(5):
                    pem_gc.notify_gc_start(i, 100)
                def work():
                    while not over.is_set():
                        session.poll(10)
                worker = threading.Thread(target=work)
                worker.start()
                mine, = [r for r in pemapi.recorders() if r.pid == os.getpid()]
                print(mine.is_running, mine.trace == sys.argv[1] + "/log", repr(mine.command))
                mine.snapshot(sys.argv[1] + "/now", "a test")
                over.set()
                worker.join()
        with pemapi.Trace(sys.argv[1] + "/now") as trace:
            print([r["heapBytes"] for r in trace], trace.info["snapshot"])
        print([r for r in pemapi.recorders() if r.pid == os.getpid()])
        try:
            mine.snapshot(sys.argv[1] + "/late")
        except pemapi.Error as error:
            print(error.errno > 0, len(str(error)) > 0)
        """, folder, folder=folder), "True True ''\n[100, 100, 100, 100, 100] a test\n[]\nTrue True\n", "output")


@test
def every_type():
    "values of every type are read from a trace as they were raised"
    folder = tmp()
    out = python("""
        with pemapi.Session() as session:
            with session.log(session.events("APP"), sys.argv[2]):
                session.run([sys.argv[1]], preload_libc=False)
                session.wait()
        for r in pemapi.Trace(sys.argv[2]):
            print(r.event.name.split("::")[2], list(dict(r).values()))
        """, BUILD + "/programs/types", folder + "/trace", folder=folder)
    big = list(range(1, 7))
    float32 = 3.4028234663852886e+38, 1.1754943508222875e-38
    wanted = [
        ("Integers", [0] * 8), ("Integers", [255, -2**15, 65535, -128, 2**32 - 1, -2**63, -2**31, 2**64 - 1]),
        ("Integers", [1, -2, 3, -4, 5, -6, -7, 8]),
        ("Hexadecimal", [0xab, 0xabcd, 0xdeadbeef, 0x0123456789abcdef]), ("Hexadecimal", [0, 0, 0, 2**64 - 1]),
        ("Floats", [0.0, 0.0]), ("Floats", [-1.5, 0.1]), ("Floats", [float32[0], sys.float_info.max]),
        ("Floats", [float32[1], -sys.float_info.min]),
        ("Strings", ["", 1, "", ""]), ("Strings", ["plain", 2, "", "with, comma"]),
        ("Strings", ['she said "no"', 3, "back\\slash 'single'", "tab\there"]), ("Strings", ["grüß", 4, "日本", "🙂"]),
        ("Strings", [("0123456789" * 7)[:63], 5, "line\nbreak", "{ brace = 1 }"]),
        ("Lists", [[], [], [], "", [], []]),
        ("Lists", [[0, 1, 255], [2**64 - 1, 0] + big, [-1], "odd", [-2**31, 2**31 - 1], [-0.5, 1e300]]),
        ("Lists", [[0], [], [-1], "evenly", [], [-0.5]])]
    equal(out.splitlines(), ["%s %r" % item for item in wanted], "records")


@test
def labels():
    "a record's words are its labels, and a field knows them"
    folder = tmp()
    run([CODEGEN, "--backend", "python", "-o", folder, ROOT + "/examples/shop.xml"])
    equal(python("""
        import pem_shop
        words = []
        with pemapi.Session() as session:
            events = session.events("APP::Shop::Sale")
            print(events[0].fields[2].labels)
            with session.callback(events, lambda r: words.append(r.words("payment")), pemapi.Context.this_process()):
                pem_shop.notify_shop_sale(1, 1, pem_shop.Payment.CARD, "tea")
                pem_shop.notify_shop_sale(1, 1, 77, "tea")
        print(words)
        """, folder=folder), "{0: 'cash', 1: 'card', 2: 'voucher'}\n['card', '']\n", "output")


@test
def installed():
    "what make install lays down is found and works away from the tree"
    if SAN:
        skip("a sanitized build is not for installing")
    root = tmp()
    rc, out, err = run(["make", "-C", ROOT, "B=" + BUILD, "DESTDIR=" + root, "PREFIX=/opt/pem", "install"],
                       env={"MAKEFLAGS": None, "MAKELEVEL": None, "MFLAGS": None}, timeout=110)
    equal(rc, 0, "exit status of make install, which said: " + out[-1000:] + err[-1000:])
    rc, out, err = run([sys.executable, "-c", "import pemapi; print(pemapi.__file__, pemapi.Session().events('OS')[0])"],
                       env={"PYTHONPATH": root + "/opt/pem/lib/python3/dist-packages",
                            "LD_LIBRARY_PATH": root + "/opt/pem/lib"})
    equal(rc, 0, "exit status, having said: " + err)
    assert out.startswith(root + "/opt/pem/lib/python3/dist-packages/pemapi/__init__.py <event OS::"), out


run_all()
