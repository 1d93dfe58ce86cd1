// SPDX-License-Identifier: MIT
//
// Polyglot.java - raises every type of field N times; the same in each language, see tests/e2e/polyglot.py

import pem.polyglot.PemPolyglot;
import pem.polyglot.PemPolyglot.Language;

public final class Polyglot {
	private static final Language L = Language.JAVA;

	private Polyglot() {
	}

	private static int[] samples(int i) {
		int[] values = new int[i % 9];

		for (int k = 0; k < values.length; k++)
			values[k] = k * i - 4;
		return values;
	}

	private static void raise(int i) {
		long big = i * 1000000007L;
		short[] weights = { (short) (i % 1000), (short) (i % 1000 + 1), (short) (i % 1000 + 2) };

		PemPolyglot.notifyPolyglotNumbers(L, -(i % 100), i % 256, -(i % 30000), i % 65536, -(i % 1000000) * 2,
			i * 3, -big, big, i / 4f, i / 8d, 0x1000 + i * 16L, i % 8);
		PemPolyglot.notifyPolyglotTexts(L, "näme-" + i, samples(i), "t" + i % 10);
		PemPolyglot.notifyPolyglotShapes(L, i % 256, i * 0.5, i * 0.25, i * 1.5, i * 1.25, weights, i);
	}

	@SuppressWarnings("try")
	public static void main(String[] args) {
		int count = Integer.parseInt(args[0]);

		for (int i = 0; i < count; i++) {
			try (PemPolyglot.PolyglotWork work = PemPolyglot.polyglotWork(L, i)) {
				raise(i);
			}
		}
		if (PemPolyglot.problem() != null)
			System.err.println("Polyglot: " + PemPolyglot.problem());
	}
}
