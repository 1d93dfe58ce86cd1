# SPDX-License-Identifier: MIT
"""
backend_java.py - the class and native library that pem-codegen makes for Java: what they record, and that they do no harm
"""
import glob
import os
import shutil

from managed import ABI, LIBPEM, folder, generate, generate_catalogue, recorded, values
from tap import BUILD, PEM, equal, need, run, run_all, skip, test, tmp

LONG_S = 10

PROGRAM = r"""
import pem.hard.PemHard;
import pem.hard.PemHard.Color;
import pem.hard.PemHard.Wide;

public class Program {
	static void texts() {
		PemHard.notifyHardText(0, "abcdefg", "x".repeat(100));
		PemHard.notifyHardText(0, "abcdefgh", "\u20ac".repeat(6));
		PemHard.notifyHardText(0, "abcdef\u20ac", "abcdefghijklm\u20ac");
		PemHard.notifyHardText(0, "\ud83d\ude42\ud83d\ude42", "a\0b");
		PemHard.notifyHardText(0, null, "");
		PemHard.notifyHardText(0, "\ud800x\udc00", "gr\u00fc\u00df");
		PemHard.notifyHardText(0, "123456\ud83d\ude42", "12345678901234\ud83d\ude42");
	}

	static void lists() {
		PemHard.notifyHardLists(new byte[] {1, 2, 3, 4}, new long[] {-1}, new short[] {0, 1, 2, 3, 4}, new float[] {0.5f},
			new int[] {7, 8}, new double[] {1e300}, new long[] {5});
		PemHard.notifyHardLists(null, new long[0], null, null, null, null, null);
		PemHard.notifyHardLists(new byte[] {-1}, new long[] {Long.MAX_VALUE}, new short[] {-5, 5},
			new float[] {1.5f, 2.5f, 3.5f, 4.5f}, new int[0], new double[] {-0.25}, new long[] {-1});
		PemHard.notifyHardArrays(new long[] {1, -2}, new byte[] {97, 98, 99}, 1);
		PemHard.notifyHardArrays(null, new byte[] {1}, 2);
		PemHard.notifyHardArrays(new long[] {0, 1, 2}, new byte[] {9, 8, 7, 6}, 3);
	}

	static void labels() {
		PemHard.notifyHardLabels(Color.DARK_GREEN, Wide.LOW, PemHard.String_.VALUE,
			PemHard.Mode.READ | PemHard.Mode.TOP, 65535, -128, 0.5f);
		PemHard.notifyHardLabels(7, Long.MAX_VALUE, -1, 0, 0x10000, 0, Float.POSITIVE_INFINITY);
		PemHard.notifyHardLabels(null, Wide.HIGH, null, 0, 0, 0, 0f);
		PemHard.notifyHardTick(-1, -1);
	}

	@SuppressWarnings("try")
	static void intervals() {
		try (PemHard.HardStep step = PemHard.hardStep(1, Color.RED)) {
			step.rows = 12;
			step.note = "all good";
		}
		try (PemHard.HardStep step = PemHard.hardStep(2, 0)) {
			throw new IllegalStateException();
		} catch (IllegalStateException e) {
			PemHard.notifyHardTick(0, 0);
		}
	}

	static void threads() throws InterruptedException {
		Thread[] threads = new Thread[4];
		for (int w = 0; w < threads.length; w++) {
			int who = w;
			threads[w] = new Thread(() -> {
				for (int i = 0; i < 20000; i++)
					PemHard.notifyHardTick(who, i);
			});
			threads[w].start();
		}
		for (Thread thread : threads)
			thread.join();
	}

	public static void main(String[] args) throws InterruptedException {
		for (String arg : args) {
			switch (arg) {
			case "texts": texts(); break;
			case "lists": lists(); break;
			case "labels": labels(); break;
			case "intervals": intervals(); break;
			case "threads": threads(); break;
			default: System.out.println(PemHard.problem() + " " + PemHard.enabledHardTick());
			}
		}
	}
}
"""


def java_home():
    need("java", "javac", "cc")
    home = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("javac"))))
    if not os.path.exists(os.path.join(home, "include", "jni.h")):
        skip("%s has no jni.h: install a JDK with headers (openjdk-17-jdk-headless)" % home)
    return home


def build():
    """The program and its library in folder(); that they compile without a word is part of every test."""
    home = java_home()
    if os.path.exists(os.path.join(folder(), "Program.class")):
        return
    generate("java")
    with open(os.path.join(folder(), "Program.java"), "w", encoding="ascii") as f:
        f.write(PROGRAM)
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-Werror", "-shared",
             "-fPIC", "-I", folder(), "-I", ABI, "-isystem", home + "/include", "-isystem", home + "/include/linux"]
    equal(run(["cc", *flags, folder() + "/hard_jni.c", "-o", folder() + "/libpem_hard_java.so"]), (0, "", ""), "cc")
    rc, out, err = run(["javac", "-Xlint:all", "-Werror", "-sourcepath", folder(), "-d", folder(),
                        folder() + "/Program.java"], env={"LC_ALL": "C", "JAVA_TOOL_OPTIONS": None})
    equal((rc, out, err), (0, "", ""), "javac")


def java(*arguments, library=True):
    build()
    path = ["-Djava.library.path=" + folder()] if library else []
    return ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Xcheck:jni", *path, "-cp", folder(), "Program", *arguments]


EVERYTHING = ("texts", "lists", "labels", "intervals", "threads", "problem")


@test
def nothing_without_native_library():
    "without its native library each method does nothing, and problem() says how to have it found"
    rc, out, err = run(java(*EVERYTHING, library=False))
    equal((rc, err), (0, ""), "status and errors")
    assert "libpem_hard_java.so can't be loaded" in out and "-Djava.library.path=" in out, out


@test
def nothing_without_libpem():
    "without libpem each method does nothing, and problem() says why"
    equal(run(java(*EVERYTHING)), (0, "libpem is not in this process: run it under 'pem record' false\n", ""), "said")


@test
def off_while_nobody_records():
    "with libpem in the process and nobody recording, events are off and nothing is wrong"
    equal(run(java(*EVERYTHING), LIBPEM), (0, "null false\n", ""), "said")


@test
def texts():
    "text is real UTF-8, cut between characters, ends before a NUL; null is empty"
    _, found = recorded(java("texts"))
    equal(values(found, "Text", "first", "second"), [
        ("abcdefg", "x" * 15), ("abcdefg", "€€€€€"), ("abcdef", "abcdefghijklm"), ("🙂", "a"), ("", ""),
        ("?x?", "grüß"), ("123456", "12345678901234")], "texts")


@test
def lists_and_arrays():
    "lists are cut at their most; arrays have their length; null is empty, or zeros"
    _, found = recorded(java("lists"))
    equal(values(found, "Lists", *["l%d" % i for i in range(7)]), [
        ("1 2 3", "-1", "0 1 2", "0.5", "7 8", "1e+300", "0x5"), ("",) * 7,
        ("255", "9223372036854775807", "-5 5", "1.5 2.5 3.5", "", "-0.25", "0xffffffffffffffff")], "lists")
    equal(values(found, "Arrays", "two", "three", "last"),
          [("1 -2", "97 98 99", "1"), ("0 0", "1 0 0", "2"), ("0 1", "9 8 7", "3")], "arrays")


@test
def labels_and_unsigned():
    "enums, or any number; the low bits are kept, and null is 0"
    out, found = recorded(java("labels", "problem"))
    equal(out, "null true\n", "problem, and whether ticks are wanted")
    equal([(int(a), int(b), int(c), int(d, 0), int(e), int(f), g) for a, b, c, d, e, f, g in
           values(found, "Labels", "color", "wide", "text", "mode", "pair.a", "pair.b", "ratio")],
          [(200, -1, 3, 0x80000001, 65535, -128, "0.5"), (7, 2 ** 63 - 1, -1, 0, 0, 0, "inf"),
           (0, 2 ** 63 - 1, 0, 0, 0, 0, "0")], "labels")
    equal(values(found, "Tick", "who", "number"), [(str(2 ** 32 - 1), str(2 ** 64 - 1))], "unsigned")


@test
def intervals():
    "try-with-resources raises begin and end, and the end says what came to be known"
    _, found = recorded(java("intervals"))
    equal(values(found, "StepBegin", "step", "color"), [("1", "1"), ("2", "0")], "begins")
    equal(values(found, "StepEnd", "step", "rows", "note"), [("1", "12", "all goo"), ("2", "0", "")], "ends")


@test
def threads():
    "threads raise at once: every event is there, in order"
    _, found = recorded(java("threads"))
    ticks = values(found, "Tick", "who", "number")
    for who in range(4):
        equal([int(n) for w, n in ticks if int(w) == who], list(range(20000)), "thread %d" % who)
    equal(len({row["tid"] for row in found["Tick"]}), 4, "threads")
    equal({row["process"] for row in found["Tick"]}, {"java"}, "name of the process, not of a thread")


@test
def example():
    "the example runs alone, and recorded its sales are in the trace"
    java_home()
    place = os.path.join(BUILD, "examples", "java")
    command = ["java", "-Djava.library.path=" + place, "-cp", place, "Shop", "2"]
    equal(run(command), (0, "2 customers served\n", ""), "alone")
    out, found = recorded(command)
    equal(out, "2 customers served\n", "output")
    equal(values(found, "Sale", "cents", "count", "payment", "item"), [("250", "1", "1", "cheese"), ("500", "2", "1", "bread")],
          "sales")
    equal(values(found, "ServeBegin", "customer") + values(found, "ServeEnd", "customer"), [("1",), ("2",)] * 2, "intervals")


@test
def catalogue():
    "the classes of every provider compile without a warning"
    java_home()
    place = generate_catalogue("java")
    classes = glob.glob(place + "/pem/*/*.java")
    assert len(classes) > 5, classes
    equal(run(["javac", "-Xlint:all", "-Werror", "-d", place, *classes], {"JAVA_TOOL_OPTIONS": None}), (0, "", ""), "javac")


@test
def other_programs_run_unchanged():
    "a Java program nobody here wrote runs under pem record as it does without"
    java_home()
    command = ["javac", "--help"]
    plain = run(command)
    equal(plain[0], 0, "status")
    equal(run([PEM, "record", "-q", "-o", tmp() + "/t", "--"] + command), plain, "status, output, errors")


run_all()
