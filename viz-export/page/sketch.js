// SPDX-License-Identifier: MIT
// sketch.js - percentiles of the durations of a whole run, from the exporter's bins (shared/sketch.h).
"use strict";

const SKETCH_STEPS = 64; // bins of each power of two
const SKETCH_BIAS = 1023; // exponent of 1 in a double's bits
const PERCENTILES = [500, 900, 990, 999]; // in thousandths

// Whole numbers, and at most 0.8 % off.
class Sketch {
	constructor() {
		this.counts = new Map();
		this.count = this.most = 0;
	}

	// packed: greatest value, then of each bin its distance from the one before, and how many values it has.
	add(packed) {
		this.most = Math.max(this.most, packed[0] || 0);
		for (let i = 1, index = 0; i + 1 < packed.length; i += 2) {
			index += packed[i];
			this.counts.set(index, (this.counts.get(index) || 0) + packed[i + 1]);
			this.count += packed[i + 1];
		}
	}

	static #begin(index) {
		return 2 ** (Math.floor(index / SKETCH_STEPS) - SKETCH_BIAS) * (1 + index % SKETCH_STEPS / SKETCH_STEPS);
	}

	// The value of rank count * perMille / 1000, rounded up.
	percentile(perMille) {
		const rank = Math.max(1, Math.ceil(this.count * perMille / 1000));
		let before = 0;
		for (const index of [...this.counts.keys()].sort((a, b) => a - b)) {
			before += this.counts.get(index);
			if (before < rank)
				continue;
			const begin = index ? Sketch.#begin(index) : 0, width = Sketch.#begin(index + 1) - begin;
			return Math.min(this.most, width > 1 && index ? Math.floor(begin + (width - 1) / 2) : begin);
		}
		return NaN;
	}
}
