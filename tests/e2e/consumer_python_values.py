# SPDX-License-Identifier: MIT
"""consumer_python_values: pemapi and commands that fail to start, and sums that wrapped"""
from consumers import python
from tap import equal, run_all, skip, test


@test
def a_command_that_fails_to_start():
    "a command that could not be started is not waited for, and took no time"
    equal(python("""
        with pemapi.Session() as session:
            for call in lambda: session.run(["pem-no-such-command"]), session.wait, lambda: session.run(["true"]):
                try:
                    print(call())
                except pemapi.Error as error:
                    print(error.errno, "could not be started" in str(error))
            print(session.elapsed_s)
        """), "2 False\n10 True\n16 True\n0.0\n", "output")


@test
def sums_that_may_have_wrapped():
    "a sum that may have passed 64 bits is marked, and its mean is not a number"
    equal(python("""
        with pemapi.Session() as session:
            stats = session.statistics(session.events("APP::GC::Start"), "heapBytes", pemapi.Context.this_process())
            stats.enable()
            for i in range(2):
                pem_gc.notify_gc_start(i, (1 << 64) - 1)
                print(stats.read()[0].may_have_overflowed, stats.read()[0].mean)
        """), "False 1.8446744073709552e+19\nTrue nan\n", "output")


@test
def kernel_sums_that_may_have_wrapped():
    "the same of an event of the kernel, together and by process"
    said = python("""
        far = "import os; fd = os.memfd_create('far'); [os.lseek(fd, 1 << 62, os.SEEK_SET) for i in range(3)]"
        with pemapi.Session(by_process=True) as session:
            stats = session.statistics(session.events("OS::Syscall::Exit", where="result > 0x3fffffffffffffff"), "result")
            stats.enable()
            session.run([sys.executable, "-c", far], no_preload=True)
            session.wait()
            all, = stats.read()
            if all.unavailable:
                print("skip", all.unavailable)
            else:
                for value in all, *(part[0] for part in stats.each(0)):
                    print(value.count, value.may_have_overflowed, value.mean)
        """)
    if said.startswith("skip"):
        skip("no system calls here: " + said[5:])
    equal(said, "3 True nan\n" * 2, "output")


run_all()
