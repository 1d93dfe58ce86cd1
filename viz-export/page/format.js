// SPDX-License-Identifier: MIT
// format.js - numbers, times and ticks as people read them. Not here: anything that knows the page.
"use strict";

const Format = {
	THIN: "\u202f",

	// Whole numbers, digits in groups of three.
	count(n) {
		return Math.round(n).toLocaleString("en-US").replace(/,/g, Format.THIN);
	},

	// Three digits and an SI prefix: 1.23 M. Small numbers stay as they are.
	si(value, digits = 3) {
		if (!Number.isFinite(value))
			return "\u2013";
		const size = Math.abs(value);
		if (size === 0)
			return "0";
		if (size >= 1e15 || size < 1e-3)
			return value.toExponential(Math.max(0, digits - 1));
		for (const [factor, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
			if (size >= factor * 0.9995)
				return Number((value / factor).toPrecision(digits)) + Format.THIN + prefix;
		return String(Number(value.toPrecision(digits)));
	},

	// A length of time with its own unit: 2.1 ms.
	duration(ns, digits = 3) {
		for (const [factor, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]])
			if (Math.abs(ns) >= factor * 0.9995) {
				const value = ns / factor;
				return (Math.abs(value) >= 1e4 ? Format.count(value) :
					Number(value.toPrecision(digits))) + Format.THIN + unit;
			}
		return Number(ns.toPrecision(digits)) + Format.THIN + "ns";
	},

	// A moment on an axis up to high whose ticks are step apart: as many decimals as tell two of them apart.
	moment(ns, step, high) {
		const [factor, unit] = high >= 1e9 ? [1e9, "s"] : high >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
		const decimals = Math.min(12, Math.max(0, -Math.floor(Math.log10(step / factor) + 1e-9)));
		return (ns / factor).toFixed(decimals) + Format.THIN + unit;
	},

	percent(share) {
		return (share * 100).toFixed(share < 0.0995 ? 2 : 1) + Format.THIN + "%";
	},

	date(ns) {
		const date = new Date(ns / 1e6);
		if (!(ns > 0) || Number.isNaN(date.getTime()))
			return "";
		return date.toISOString().replace("T", " ").slice(0, 19) + " UTC";
	},

	// Distance of ticks: 1, 2 or 5 times a power of ten, so that about count fit between low and high.
	step(low, high, count) {
		const rough = (high - low) / Math.max(1, count);
		if (!(rough > 0) || !Number.isFinite(rough))
			return 1;
		const power = 10 ** Math.floor(Math.log10(rough));
		const share = rough / power;
		return power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
	},

	ticks(low, high, count) {
		const step = Format.step(low, high, count);
		const list = [];
		for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && list.length < 100; i++)
			list.push(i * step);
		return { step, list };
	},

	// Powers of ten, at most count of them, and at least the two ends.
	decades(low, high, count) {
		const list = [];
		for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power++)
			list.push(10 ** power);
		const every = Math.ceil(list.length / Math.max(1, count));
		return list.length ? list.filter((_, i) => i % every === 0) : [low, high];
	},

	// Ticks of a value's axis: 0 and at least one more, at most count steps.
	valueTicks(low, high, count) {
		let { step, list } = Format.ticks(low, high, count);
		for (const part of [0.5, 0.4, 0.5])
			if (list.length < 2) {
				step *= part;
				list = [];
				for (let i = Math.ceil(low / step); i * step <= high && list.length < 10; i++)
					list.push(i * step);
			}
		return list;
	},
};
