// SPDX-License-Identifier: MIT
// model.js - the data element decoded: bins per event for the chosen process, sums over any interval.
// Its writer is viz-export/html_write.c. Names in it come from traces: show them with textContent only.
"use strict";

const LAYERS = {
	APP: { short: "APP", name: "Application and libraries", order: 0 },
	OS: { short: "OS", name: "Operating system", order: 1 },
	HW: { short: "HW", name: "Hardware", order: 2 },
	CPO: { short: "CPO", name: "Optimization agents", order: 3 },
};
const OTHER_LAYER = { short: "?", name: "Other", order: 4 };
const ALL = -1; // instead of a process's index

// One event: its series, and what they add up to under the current process filter.
class TraceEvent {
	constructor(raw, index, bins, bin_ns) {
		Object.assign(this, raw, { index, bins, bin_ns });
		this.layerKey = Object.hasOwn(LAYERS, raw.layer) ? raw.layer : "other";
		this.layerInfo = this.layerKey === "other" ? OTHER_LAYER : LAYERS[raw.layer];
		this.isInterval = raw.meaning === "interval-begin" || raw.meaning === "interval-end";
		this.kind = raw.series.some(s => s.values) ? raw.meaning : "rate";
		this.unit = this.kind === "rate" ? "events/s" : this.kind === "gauge" ? raw.unit || "value" :
			raw.unit === "ns" ? "s/s" : (raw.unit || "units") + "/s";
		// A rate of nanoseconds per second reads better in seconds per second.
		this.scale = this.kind === "counter" && raw.unit === "ns" ? 1e-9 : 1;
		this.total = raw.series.reduce((sum, s) => sum + s.records, 0);
		this.lost = raw.discarded + raw.overwritten;
		this.select(ALL);
	}

	// Keep to one process, or ALL.
	select(process) {
		const chosen = this.series.filter(s => process === ALL || s.process === process);
		this.selectedTotal = chosen.reduce((sum, s) => sum + s.records, 0);
		this.counts = new Float64Array(this.bins);
		for (const series of chosen)
			TraceEvent.#addBins(this.counts, series.bins);
		this.sums = TraceEvent.#runningSums(this.counts);
		this.values = null;
		this.valueSums = null;
		if (this.kind === "counter") {
			this.values = new Float64Array(this.bins);
			[this.knownFirst, this.knownEnd] = [this.bins, 0];
			for (const series of chosen) {
				TraceEvent.#addValues(this.values, series.values, value => value || 0);
				this.#know(series.bins);
			}
			this.valueSums = TraceEvent.#runningSums(this.values);
		} else if (this.kind === "gauge") {
			this.values = TraceEvent.#heldValues(chosen, this.bins);
		}
	}

	// A counter's growth is known between its first and its last sample, and in their bins in part only.
	#know(packed) {
		let at = 0, first = -1, last = -1;
		for (const n of packed)
			if (n < 0) {
				at -= n;
			} else {
				first = first < 0 ? at : first;
				last = at++;
			}
		if (last > first + 1)
			first++;
		this.knownFirst = Math.min(this.knownFirst, first);
		this.knownEnd = Math.max(this.knownEnd, last);
	}

	static #addBins(into, packed) {
		let at = 0;
		for (const n of packed)
			if (n < 0)
				at -= n;
			else
				into[at++] += n;
	}

	static #addValues(into, packed, of) {
		let at = 0;
		for (let i = 0; i + 1 < packed.length; i += 2)
			for (const end = Math.min(into.length, at + packed[i]); at < end; at++)
				into[at] += of(packed[i + 1]);
	}

	// Gauges of several processes add up; between two samples a gauge keeps its value.
	static #heldValues(chosen, bins) {
		const all = new Float64Array(bins).fill(NaN);
		for (const series of chosen) {
			const one = new Float64Array(bins);
			TraceEvent.#addValues(one, series.values, value => value === null ? NaN : value);
			let last = bins - 1;
			while (last >= 0 && Number.isNaN(one[last]))
				last--;
			for (let i = 0, held = NaN; i <= last; i++) {
				held = Number.isNaN(one[i]) ? held : one[i];
				if (!Number.isNaN(held))
					all[i] = Number.isNaN(all[i]) ? held : all[i] + held;
			}
		}
		return all;
	}

	static #runningSums(counts) {
		const sums = new Float64Array(counts.length + 1);
		for (let i = 0; i < counts.length; i++)
			sums[i + 1] = sums[i] + counts[i];
		return sums;
	}

	get key() {
		return `event ${this.name}`;
	}

	get label() {
		return [this.class, this.specifier || this.name];
	}

	// What the strip shows of a time, in ns since the trace's start.
	value(low, high) {
		return this.valueIn(...binsOf(low, high, this.bin_ns, this.bins), this.bin_ns);
	}

	count(low, high) {
		return this.countIn(...binsOf(low, high, this.bin_ns, this.bins));
	}

	// Events in bins first to end (not included).
	countIn(first, end) {
		return this.sums[end] - this.sums[first];
	}

	// What the strip shows over bins first to end, each bin_ns wide; NaN where nothing is known.
	valueIn(first, end, bin_ns) {
		if (end <= first)
			return NaN;
		if (this.kind === "gauge") {
			let sum = 0, n = 0;
			for (let i = first; i < end; i++)
				if (!Number.isNaN(this.values[i])) {
					sum += this.values[i];
					n++;
				}
			return n ? sum / n : NaN;
		}
		if (this.kind === "counter") {
			first = Math.max(first, this.knownFirst);
			end = Math.min(end, this.knownEnd);
			if (end <= first)
				return NaN;
		}
		const sums = this.kind === "counter" ? this.valueSums : this.sums;
		return (sums[end] - sums[first]) * this.scale * 1e9 / ((end - first) * bin_ns);
	}
}

// The bins that a time touches: the first, and the one behind the last. At least one.
function binsOf(low, high, bin_ns, bins) {
	const first = Math.min(bins - 1, Math.max(0, Math.floor(low / bin_ns + 1e-6)));
	return [first, Math.min(bins, Math.max(first + 1, Math.ceil(high / bin_ns - 1e-6)))];
}

class Model {
	constructor(raw) {
		this.raw = raw;
		this.bin_ns = raw.time.bin_ns;
		this.span_ns = raw.time.bins * raw.time.bin_ns;
		this.bins = raw.time.bins;
		this.process = ALL;
		this.events = raw.events.map((event, i) => new TraceEvent(event, i, this.bins, this.bin_ns));
		this.events.sort((a, b) => a.layerInfo.order - b.layerInfo.order || (a.layer < b.layer ? -1 : a.layer > b.layer) ||
			(a.class < b.class ? -1 : a.class > b.class) || b.total - a.total);
		this.metrics = Metrics.of(this);
		this.phases = raw.phases.list.map(([name, begin, end, pid, tid, open, process]) => ({ name, begin, end, pid, tid, open, process }));
		// Numbers of processes, each of one: a pid may be several's.
		this.numbers = new Set(raw.processes.filter(p => !p.merged).map(p => p.process));
		this.selectPhases();
	}

	select(process) {
		this.process = process;
		for (const event of this.events)
			event.select(process);
		for (const metric of this.metrics)
			if (!(metric instanceof TraceEvent))
				metric.select(process);
		this.selectPhases();
	}

	// Phases of the chosen process, each in the first row that is free; rows beyond the last are not drawn.
	selectPhases() {
		const chosen = this.process === ALL ? null : this.raw.processes[this.process];
		const ends = [];
		this.selectedPhases = this.phases.filter(phase => !chosen || !phase.pid ||
			(chosen.merged ? !this.numbers.has(phase.process) : phase.process === chosen.process));
		for (const phase of this.selectedPhases) {
			let row = ends.findIndex(end => end <= phase.begin);
			if (row < 0)
				row = ends.length < Model.PHASE_ROWS ? ends.length : -1;
			phase.row = row;
			if (row >= 0)
				ends[row] = Math.max(phase.end, phase.begin + 1);
		}
		this.phaseRows = ends.length;
	}

	processName(process) {
		if (process.merged)
			return `${Format.count(process.merged)} other processes`;
		if (!process.pid)
			return "no process (kernel, machine)";
		return process.name ? `${process.name} (${process.pid})` : `process ${process.pid}`;
	}
}
Model.PHASE_ROWS = 6;
