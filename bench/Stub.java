// SPDX-License-Identifier: MIT
//
// Stub.java - what an event of two numbers costs from Java, and a Java Flight Recorder event of the same; for managed.py
//
// Prints a line per round: what was measured, and ns of this thread's CPU time per operation; last, the events raised.

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.function.LongConsumer;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Name;
import jdk.jfr.Recording;
import jdk.jfr.StackTrace;
import pem.bench.PemBench;

public final class Stub {
	@Name("pem.Log")
	@StackTrace(false)
	static final class Logged extends Event {
		long a;
		long b;
	}

	@Name("pem.Disabled")
	@StackTrace(false)
	@Enabled(false)
	static final class Disabled extends Event {
		long a;
		long b;
	}

	private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
	private static final int ROUNDS = 10;
	private static long last;
	private static long raised;
	private static final VarHandle LAST = find();

	private Stub() {
	}

	private static VarHandle find() {
		try {
			return MethodHandles.lookup().findStaticVarHandle(Stub.class, "last", long.class);
		} catch (ReflectiveOperationException e) {
			throw new AssertionError(e);
		}
	}

	/* A store that must be made: without it the compiler leaves out a loop in which nothing happens. */
	private static void log(long n) {
		for (long i = 0; i < n; i++) {
			LAST.setOpaque(i);
			PemBench.notifyBenchLog(i, ~i);
		}
		raised += n;
	}

	private static void loop(long n) {
		for (long i = 0; i < n; i++)
			LAST.setOpaque(i);
	}

	private static void jfr(long n) {
		for (long i = 0; i < n; i++) {
			LAST.setOpaque(i);
			Logged event = new Logged();
			event.a = i;
			event.b = ~i;
			event.commit();
		}
	}

	private static void jfrDisabled(long n) {
		for (long i = 0; i < n; i++) {
			LAST.setOpaque(i);
			Disabled event = new Disabled();
			event.a = i;
			event.b = ~i;
			event.commit();
		}
	}

	private static void measure(String name, LongConsumer run, long n, boolean warm) {
		long start = THREADS.getCurrentThreadCpuTime();

		run.accept(n);
		if (!warm)
			System.out.println(name + " " + (THREADS.getCurrentThreadCpuTime() - start) / (double) n);
	}

	public static void main(String[] args) {
		boolean recorded = args[0].equals("recorded");

		try (Recording recording = new Recording()) {
			recording.enable(Logged.class).withoutStackTrace();
			recording.setToDisk(false);
			recording.setMaxSize(8 << 20);
			recording.start();
			for (int round = -5; round < ROUNDS; round++) {
				measure(recorded ? "log" : "disabled", Stub::log, recorded ? 300000 : 20000000, round < 0);
				if (recorded) {
					measure("jfr", Stub::jfr, 300000, round < 0);
				} else {
					measure("jfr_disabled", Stub::jfrDisabled, 20000000, round < 0);
					measure("loop", Stub::loop, 20000000, round < 0);
				}
			}
		}
		System.out.println("raised " + raised);
	}
}
