// SPDX-License-Identifier: MIT
// metrics.js - what a strip can show besides events: durations, values of fields, states of threads, and what is made of
// two others. Each has value(low, high), count(low, high), total and select(process). Times are in ns. Not here: drawing.
"use strict";

// Sums of cells over bins: count and sum as running sums, least and greatest by bin.
class Cells {
	constructor(bins, bin_ns) {
		Object.assign(this, { bins, bin_ns });
		this.counts = new Float64Array(bins + 1);
		this.sums = new Float64Array(bins + 1);
		this.least = new Float64Array(bins).fill(Infinity);
		this.greatest = new Float64Array(bins).fill(-Infinity);
	}

	// Add cells as html_cells.h writes them.
	add(packed) {
		for (let at = 0, i = 0; i + 4 < packed.length; i += 5, at++) {
			at += packed[i];
			if (at >= this.bins)
				return;
			this.counts[at + 1] += packed[i + 1];
			this.sums[at + 1] += packed[i + 2];
			this.least[at] = Math.min(this.least[at], packed[i + 3]);
			this.greatest[at] = Math.max(this.greatest[at], packed[i + 4]);
		}
	}

	finish() {
		for (let i = 0; i < this.bins; i++) {
			this.counts[i + 1] += this.counts[i];
			this.sums[i + 1] += this.sums[i];
		}
		return this;
	}

	of(low, high) {
		const [first, end] = binsOf(low, high, this.bin_ns, this.bins);
		let least = Infinity, greatest = -Infinity;
		for (let i = first; i < end; i++) {
			least = Math.min(least, this.least[i]);
			greatest = Math.max(greatest, this.greatest[i]);
		}
		return { count: this.counts[end] - this.counts[first], sum: this.sums[end] - this.sums[first], least, greatest,
			time: (end - first) * this.bin_ns };
	}
}

// A metric of cells: their mean, their number a second, or their sum a second.
class CellMetric {
	constructor({ key, name, label, layer, unit, what, sources, bins, bin_ns, description, weight }) {
		Object.assign(this, { key, name, label, unit, what, sources, bins, bin_ns, description, weight, kind: what });
		this.layerKey = Object.hasOwn(LAYERS, layer) ? layer : "other";
		this.layerInfo = this.layerKey === "other" ? OTHER_LAYER : LAYERS[layer];
		this.process = ALL;
		this.cached = null;
		this.all = sources.reduce((sum, source) => sum + source.count, 0);
	}

	select(process) {
		this.process = process;
		this.cached = null;
	}

	// Most metrics are never looked at.
	get cells() {
		if (!this.cached) {
			this.cached = new Cells(this.bins, this.bin_ns);
			for (const source of this.sources)
				if (this.process === ALL || source.process === this.process)
					this.cached.add(source.cells);
			this.cached.finish();
		}
		return this.cached;
	}

	get selectedTotal() {
		return this.cells.counts[this.bins];
	}

	count(low, high) {
		return this.cells.of(low, high).count;
	}

	value(low, high) {
		const { count, sum, time } = this.cells.of(low, high);
		if (this.what === "mean")
			return count ? sum / count : NaN;
		return (this.what === "rate" ? count : sum) * 1e9 / time;
	}

	// Under the crosshair: the mean alone hides what is far from it.
	words(low, high) {
		const { count, least, greatest } = this.cells.of(low, high);
		const show = value => this.unit === "ns" ? Format.duration(value) : Format.si(value);
		if (this.what !== "mean")
			return Format.si(this.value(low, high));
		return count > 1 ? `${show(this.value(low, high))} (${show(least)} to ${show(greatest)})` :
			count ? show(this.value(low, high)) : "\u2013";
	}
}

// How many of the lanes' threads are in a state.
class StateMetric {
	constructor(model, state, name) {
		const { bin_ns, bins } = model.raw.lanes;
		Object.assign(this, { model, state, name, bin_ns, bins, key: `state ${state}`, label: ["Threads", name], unit: "threads",
			kind: "state", layerKey: "OS", layerInfo: LAYERS.OS, weight: 0, description: "Mean number over the time of a bin.",
			process: ALL, sums: null });
	}

	select(process) {
		this.process = process;
		this.sums = null;
	}

	#fill() {
		const { raw } = this.model;
		const chosen = this.process === ALL ? null : raw.processes[this.process];
		const ns = new Float64Array(this.bins);
		for (const lane of raw.lanes.list)
			if (!chosen || lane.process === chosen.process)
				this.#addLane(ns, lane.states);
		this.sums = new Float64Array(this.bins + 1);
		for (let i = 0; i < this.bins; i++)
			this.sums[i + 1] = this.sums[i] + ns[i];
	}

	#addLane(ns, { slices, rest }) {
		for (let i = 0, begin = 0; i + 5 < slices.length; i += 6) {
			begin += slices[i];
			if (slices[i + 5] === this.state)
				this.#spread(ns, begin, begin + slices[i + 1]);
		}
		const packed = rest[this.state] ? rest[this.state].ns : [];
		for (let i = 0, at = 0; i + 1 < packed.length; i += 2, at++) {
			at += packed[i];
			ns[at] += packed[i + 1];
		}
	}

	#spread(ns, begin, end) {
		const last = Math.min(this.bins - 1, Math.floor(end / this.bin_ns));
		for (let i = Math.floor(begin / this.bin_ns); i <= last; i++)
			ns[i] += Math.min(end, (i + 1) * this.bin_ns) - Math.max(begin, i * this.bin_ns);
	}

	value(low, high) {
		if (!this.sums)
			this.#fill();
		const [first, end] = binsOf(low, high, this.bin_ns, this.bins);
		return (this.sums[end] - this.sums[first]) / ((end - first) * this.bin_ns);
	}

	get selectedTotal() {
		return NaN;
	}

	count() {
		return NaN;
	}
}

// Two other metrics, bin by bin.
class DerivedMetric {
	constructor(a, operator, b) {
		const name = m => m.label.join(" ");
		Object.assign(this, { a, b, operator, kind: "derived", weight: 0, layerKey: a.layerKey, layerInfo: a.layerInfo,
			key: `derived ${a.key} ${operator} ${b.key}`, name: `${a.name} ${operator} ${b.name}`,
			label: ["Derived", `${name(a)} ${operator} ${name(b)}`], description: `${a.name} ${operator} ${b.name}`,
			unit: operator !== "\u00f7" ? a.unit : a.unit === b.unit ? "ratio" : `${a.unit} per ${b.unit}` });
	}

	// Of the other run: the same made of its two.
	get other() {
		return this.a.other && this.b.other ? new DerivedMetric(this.a.other, this.operator, this.b.other) : undefined;
	}

	set other(none) {
	}

	select() {
	}

	value(low, high) {
		const x = this.a.value(low, high), y = this.b.value(low, high);
		return this.operator === "\u00f7" ? y === 0 ? NaN : x / y : this.operator === "+" ? x + y : x - y;
	}

	get selectedTotal() {
		return NaN;
	}

	count() {
		return NaN;
	}
}

// A metric that a spec declares, of two others or of one: of and to are what its terms come to in a second.
class DeclaredMetric {
	constructor({ form, name, unit, description }, of, to) {
		const [layer, ...rest] = name.split("::");
		Object.assign(this, { form, name, of, to, kind: "derived", weight: 1, all: of.all || of.total, key: `metric ${name}`,
			unit: form === "ratio" ? unit || "ratio" : `${unit || "units"}/s`, description,
			label: [rest[0] || layer, rest.slice(1).join("::") || name], bin_ns: Math.max(of.bin_ns, to ? to.bin_ns : 0),
			layerKey: Object.hasOwn(LAYERS, layer) ? layer : "other" });
		this.layerInfo = this.layerKey === "other" ? OTHER_LAYER : LAYERS[layer];
	}

	select() {
	}

	value(low, high) {
		const term = metric => metric.value(low, high) / (metric.scale || 1);
		const x = term(this.of);
		if (this.form === "rate")
			return x;
		const y = term(this.to);
		return this.form === "difference" ? x - y : y === 0 ? NaN : x / y;
	}

	get selectedTotal() {
		return NaN;
	}

	count() {
		return NaN;
	}
}

// A sum of terms with factors divided by another one; each value is of the same time.
class QuotientMetric extends DeclaredMetric {
	constructor(declared, parts) {
		super({ ...declared, form: "ratio" }, parts[0].metric, null);
		this.parts = parts;
		this.bin_ns = Math.max(...parts.map(part => part.metric.bin_ns));
	}

	value(low, high) {
		const sum = divides => this.parts.filter(part => part.divides === divides).reduce((all, { factor, metric }) =>
			all + factor * metric.value(low, high) / (metric.scale || 1), 0);
		const below = sum(true);
		return below > 0 ? sum(false) / below : NaN;
	}
}

const Metrics = {
	// All that a model has, events first.
	of(model) {
		const events = model.events.filter(event => event.series.length);
		const list = [...events, ...Metrics.durations(model), ...Metrics.fields(model, events)];
		list.push(...Metrics.declared(model, list));
		if (model.raw.lanes.list.some(lane => lane.states.slices.length))
			["running", "waiting for a CPU", "blocked"].forEach((name, i) => list.push(new StateMetric(model, i, name)));
		return list;
	},

	// Those of the specs whose events were recorded.
	declared(model, metrics) {
		const known = new Map(metrics.map(metric => [metric.key, metric]));
		// A counter's value is what its event shows.
		const term = ([event, field]) => {
			const metric = known.get(`event ${event}`);
			const isCount = metric && metric.kind === "rate";
			return !field ? isCount ? metric : undefined : metric && metric.kind === "counter" ? metric :
				known.get(`sum ${event}.${field}`);
		};
		return (model.raw.metrics || []).flatMap(declared => {
			if (declared.form === "between")
				return Metrics.times(model, declared);
			if (declared.form === "quotient") {
				const parts = declared.parts.map(part => ({ ...part, metric: term(part.term) }));
				return parts.every(part => part.metric) ? [new QuotientMetric(declared, parts)] : [];
			}
			const of = term(declared.of), to = declared.form === "rate" ? null : term(declared.to);
			return of && to !== undefined ? [new DeclaredMetric(declared, of, to)] : [];
		});
	},

	// Times between two events: one strip of their mean, if there are any.
	times(model, { name, times, description }) {
		const bin_ns = model.raw.field_bin_ns, bins = Math.ceil(model.span_ns / bin_ns);
		const [layer, ...rest] = name.split("::");
		// The second of a cell's five numbers is a count (html_cells.h).
		const count = cells => cells.reduce((sum, n, i) => i % 5 === 1 ? sum + n : sum, 0);
		const sources = times.map(({ process, cells }) => ({ process, cells, count: count(cells) }));
		return sources.length ? [new CellMetric({ key: `metric ${name}`, layer, unit: "ns", what: "mean", sources, bins, bin_ns, name,
			label: [rest[0] || layer, rest.slice(1).join("::") || name], description, weight: 1 })] : [];
	},

	// Of each group, and of each name in it if there are several: the mean duration, and how many ended.
	durations(model) {
		const { bin_ns, bins, nodes } = model.raw.tree;
		const groups = new Map();
		for (const node of nodes) {
			if (!node.group || !node.count)
				continue;
			const source = { process: node.process, count: node.count, cells: node.durations };
			if (!groups.has(node.group))
				groups.set(node.group, { all: [], names: new Map() });
			const group = groups.get(node.group);
			group.all.push(source);
			group.names.set(node.name, [...(group.names.get(node.name) || []), source]);
		}
		const list = [];
		const both = (group, name, sources, isGroup) => {
			const layer = group.split("::")[0];
			const rest = group.split("::").slice(1).join("::") || group;
			for (const [what, unit, word] of [["mean", "ns", "duration"], ["rate", "ended/s", "rate"]])
				list.push(new CellMetric({ key: `${word} ${group} ${isGroup ? "" : name}`, layer, unit, what, sources, bins, bin_ns,
					name: isGroup ? `${group} ${word}` : `${group} ${name} ${word}`,
					label: isGroup ? ["", `${rest} ${word}`] : [rest, `${name} ${word}`],
					description: word === "duration" ? "Mean of the intervals that ended in a bin." : "Intervals that ended, a second.",
					weight: isGroup ? 1 : 0 }));
		};
		for (const [group, { all, names }] of groups) {
			both(group, "", all, true);
			if (names.size > 1)
				for (const [name, sources] of names)
					both(group, name, sources, false);
		}
		return list;
	},

	// Of each field that is a quantity: its mean, and its sum a second.
	fields(model, events) {
		const bin_ns = model.raw.field_bin_ns, bins = Math.ceil(model.span_ns / bin_ns);
		const list = [];
		for (const event of events) {
			const first = event.series.find(series => series.fields);
			(first ? first.fields : []).forEach((field, n) => {
				const sources = event.series.filter(series => series.fields).map(series =>
					({ process: series.process, count: series.records, cells: series.fields[n].cells }));
				for (const [what, word] of [["mean", "mean"], ["sum", "sum"]])
					list.push(new CellMetric({ key: `${word} ${event.name}.${field.name}`, layer: event.layer, what, sources, bins, bin_ns,
						unit: (field.unit || "value") + (what === "sum" ? "/s" : ""), name: `${event.name} ${field.name} (${word})`,
						label: [event.class, `${event.specifier} ${field.name} ${word}`], weight: 0,
						description: what === "mean" ? "Mean of the field's values." : "Sum of the field's values, a second." }));
			});
		}
		return list;
	},

	// What is shown at first: intervals as durations, other events as rates, the busiest ones.
	first(model, most) {
		const paired = new Set(model.metrics.filter(m => m.weight).map(m => m.name.replace(/ (duration|rate)$/, "")));
		const wanted = model.metrics.filter(metric => metric instanceof TraceEvent ?
			!(metric.isInterval && paired.has(metric.group)) : metric.weight);
		const busy = metric => metric instanceof TraceEvent ? metric.total : metric.all;
		let list = wanted.sort((a, b) => busy(b) - busy(a));
		// What hardly ever came is not worth a strip, unless its layer has no other.
		const often = list.filter((metric, i) => busy(metric) >= Metrics.SELDOM || metric.kind === "gauge" ||
			list.findIndex(other => other.layerKey === metric.layerKey) === i);
		if (often.length >= 6)
			list = often;
		list = list.slice(0, most);
		const state = model.metrics.find(metric => metric.key === "state 0");
		if (state)
			list.push(state);
		return list.sort((a, b) => a.layerInfo.order - b.layerInfo.order || model.metrics.indexOf(a) - model.metrics.indexOf(b));
	},
};
Metrics.SELDOM = 20; // records
