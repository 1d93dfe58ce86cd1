// SPDX-License-Identifier: MIT
package pem;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * An enclosing probe: measures a piece of a program, as the probes of pem/probe.h do.
 *
 * <pre>
 *     static final Probe QUERY = Probe.lat(7, 10); // APP::Probe::Lat with id 7; ten executions make a record
 *
 *     try (var probe = QUERY.enter()) {
 *         answer(query);
 *     }
 * </pre>
 *
 * The virtual machine needs libpem-jvm.so: as an agent (-agentpath:LIBDIR/libpem-jvm.so), or found by
 * System.loadLibrary (-Djava.library.path=LIBDIR, or LD_LIBRARY_PATH). Otherwise nothing is measured.
 * A probe is entered and left in one platform thread. Any thread may use it, also while others do, and
 * may enter it again while it is open. A program may have a copy of this file.
 */
public final class Probe implements AutoCloseable {
	private static final boolean LOADED = load();

	private final int by, id, sc;

	private Probe(int by, int id, int sc) {
		this.by = by;
		this.id = id;
		this.sc = sc;
	}

	/** Counts executions. id: the probe's number. sc: how many executions of a thread make one record. */
	public static Probe cnt(int id, int sc) {
		return new Probe(0, id, sc);
	}

	/** Measures cycles. id, sc: see {@link #cnt}. */
	public static Probe lat(int id, int sc) {
		return new Probe(1, id, sc);
	}

	/** Counts executions, and adds up their cycles. id, sc: see {@link #cnt}. */
	public static Probe tpt(int id, int sc) {
		return new Probe(2, id, sc);
	}

	/** Counts page faults of the thread. id, sc: see {@link #cnt}. */
	public static Probe flt(int id, int sc) {
		return new Probe(3, id, sc);
	}

	/** Counts context switches of the thread. id, sc: see {@link #cnt}. */
	public static Probe ctxsw(int id, int sc) {
		return new Probe(4, id, sc);
	}

	/** Counts misses and references of the last-level cache. id, sc: see {@link #cnt}. */
	public static Probe llc(int id, int sc) {
		return new Probe(5, id, sc);
	}

	/** Reads a counter that {@link #setPerfcntr} named, 0 to 15. id, sc: see {@link #cnt}. */
	public static Probe perfcntr(int counter, int id, int sc) {
		if (counter < 0 || counter > 15)
			throw new IllegalArgumentException("counter " + counter + ": there are 0 to 15");
		return new Probe(6 + counter, id, sc);
	}

	/**
	 * Names what a counter counts: the processor's own numbers of event and mask. Returns false if there
	 * is no such counter, or if libpem-jvm.so is not loaded.
	 */
	public static boolean setPerfcntr(int counter, int event, int mask) {
		return LOADED && setCounter0(counter, event, mask) == 0;
	}

	/** Begins an execution; close() ends it. Returns this probe. */
	public Probe enter() {
		if (LOADED)
			enter0(by, id, sc);
		return this;
	}

	/** Ends the execution that this thread entered last. */
	@Override
	public void close() {
		if (LOADED)
			leave0(by, id);
	}

	private static boolean load() {
		try (var maps = Files.lines(Path.of("/proc/self/maps"), StandardCharsets.ISO_8859_1)) {
			Optional<String> agent = maps.filter(line -> line.endsWith("/libpem-jvm.so")).findFirst();

			if (agent.isPresent()) {
				String path = agent.get().substring(agent.get().indexOf('/'));

				/* The bytes of the path, in the encoding of this platform. */
				System.load(new String(path.getBytes(StandardCharsets.ISO_8859_1)));
			} else {
				System.loadLibrary("pem-jvm");
			}
			return true;
		} catch (IOException | UncheckedIOException | LinkageError | SecurityException e) {
			return false;
		}
	}

	private static native void enter0(int by, int id, int sc);

	private static native void leave0(int by, int id);

	private static native int setCounter0(int counter, int event, int mask);
}
