// SPDX-License-Identifier: MIT
// correlate.js - how far two strips rise and fall together over the time in view (Pearson), and whether that can be told.
"use strict";

const Correlation = {
	LEAST: 8, // bins, and independent ones among them

	// How many bins of the model are one of a metric's. Those of durations and fields are wider.
	width(metric, model) {
		return Math.max(2, Math.round((metric.bin_ns || model.bin_ns) / model.bin_ns));
	},

	// Values of a metric in at most 400 parts of the time in view, which are whole bins of some width.
	series(metric, view, width) {
		const { first, end, model } = view;
		const step = width * Math.max(1, Math.ceil((end - first) / width / 400));
		const values = [];
		for (let at = Math.ceil(first / step) * step; at + step <= end; at += step)
			values.push(metric.value(at * model.bin_ns, (at + step) * model.bin_ns));
		return values;
	},

	// Lag-1 autocorrelation: neighbours that are alike count less.
	inertia(values, mean) {
		let above = 0, below = 0;
		values.forEach((value, i) => {
			below += (value - mean) ** 2;
			above += i ? (value - mean) * (values[i - 1] - mean) : 0;
		});
		return below ? Math.max(0, above / below) : 0;
	},

	// r, its 95 % interval by Fisher's z with the number of independent bins, or why it can't be told.
	of(a, b) {
		const x = [], y = [];
		a.forEach((value, i) => {
			if (Number.isFinite(value) && Number.isFinite(b[i])) {
				x.push(value);
				y.push(b[i]);
			}
		});
		const n = x.length;
		if (n < Correlation.LEAST)
			return { n, why: "too short to tell" };
		const mean = list => list.reduce((sum, value) => sum + value, 0) / n;
		const [mx, my] = [mean(x), mean(y)];
		let xy = 0, xx = 0, yy = 0;
		for (let i = 0; i < n; i++) {
			xy += (x[i] - mx) * (y[i] - my);
			xx += (x[i] - mx) ** 2;
			yy += (y[i] - my) ** 2;
		}
		if (!(xx > 1e-12 * mx * mx * n) || !(yy > 1e-12 * my * my * n))
			return { n, why: "does not vary" };
		const r = Math.max(-1, Math.min(1, xy / Math.sqrt(xx * yy)));
		const both = Correlation.inertia(x, mx) * Correlation.inertia(y, my);
		const independent = n * (1 - both) / (1 + both);
		if (independent < Correlation.LEAST)
			return { n, independent, why: "too short to tell" };
		const z = Math.atanh(Math.max(-0.999999, Math.min(0.999999, r))), half = 1.96 / Math.sqrt(independent - 3);
		return { n, independent, r, low: Math.tanh(z - half), high: Math.tanh(z + half) };
	},

	show(button, metric, reference, found) {
		const name = reference.name;
		button.classList.toggle("reference", !found);
		button.classList.toggle("told", Boolean(found && found.r !== undefined && found.low * found.high > 0));
		button.dataset.r = found && found.r !== undefined ? found.r : "";
		button.style.setProperty("--r", found && found.r !== undefined ? found.r : 0);
		button.classList.toggle("against", Boolean(found && found.r < 0));
		if (!found) {
			button.replaceChildren(make("span", { text: "the others are compared with this" }));
			button.title = `Beside the other strips: their correlation with ${name} over the time in view.`;
			return;
		}
		if (found.why) {
			button.replaceChildren(make("span", { class: "r", text: "\u2013" }), make("span", { text: found.why }));
			button.title = `${metric.name} and ${name}: ${found.why} (${found.n} bins). Click to compare all with this strip.`;
			return;
		}
		const sign = value => (value < 0 ? "\u2212" : "+") + Math.abs(value).toFixed(2);
		const told = found.low * found.high > 0;
		button.replaceChildren(make("span", { class: "r", text: sign(found.r) }), make("span", { class: "bar" }),
			make("span", { text: !told ? "may be chance" : found.r < 0 ? "opposite" : "alike" }));
		button.title = `Correlation with ${name}: r = ${sign(found.r)}, 95 % between ${sign(found.low)} and ${sign(found.high)}, ` +
			`of ${found.n} bins that are worth ${Math.round(found.independent)} independent ones.` +
			`${told ? "" : " It may be chance."} It proves no cause. Click to compare all with this strip.`;
	},
};
