// SPDX-License-Identifier: MIT
// lanes.js - lanes of threads: what html_lanes_write.c wrote, decoded, and where each lane is on the page.
// Not here: painting (lane_paint.js).
"use strict";

const STATE_NAMES = ["running", "waiting for a CPU", "blocked"];
const STATE_HEIGHT = 9;
const DEPTH_HEIGHT = 15;
const LANE_LEAST = 32;
const NOT_ENDED = ["", ", until its thread ended", ", its end is lost: open at least that long", ", not ended in the trace"];

// Slices in the order of begins, and the time of those that were left out, by bin.
class Row {
	constructor({ slices, rest, left_out }, bins) {
		const n = Math.floor(slices.length / 6);
		this.count = n;
		this.leftOut = left_out;
		this.begin = new Float64Array(n);
		this.end = new Float64Array(n);
		this.reach = new Float64Array(n); // the latest end so far
		[this.what, this.extra, this.event] = [new Int32Array(n), new Int32Array(n), new Int32Array(n)];
		this.kind = new Uint8Array(n);
		for (let i = 0, time = 0, reach = 0; i < n; i++) {
			time += slices[6 * i];
			this.begin[i] = time;
			this.end[i] = time + slices[6 * i + 1];
			this.reach[i] = reach = Math.max(reach, this.end[i]);
			this.what[i] = slices[6 * i + 2];
			this.extra[i] = slices[6 * i + 3];
			this.event[i] = slices[6 * i + 4];
			this.kind[i] = slices[6 * i + 5];
		}
		this.rest = rest.map(({ ns }) => {
			const all = new Float64Array(bins);
			for (let i = 0, at = 0; i + 1 < ns.length; i += 2, at++) {
				at += ns[i];
				all[at] = ns[i + 1];
			}
			return all;
		});
	}

	// Time of all slices together, with those that were left out.
	get time() {
		let sum = 0;
		for (let i = 0; i < this.count; i++)
			sum += this.end[i] - this.begin[i];
		return this.rest.reduce((all, rest) => rest.reduce((ns, one) => ns + one, all), sum);
	}

	// Index of the first slice that may end after a time.
	firstAfter(time) {
		let low = 0, high = this.count;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.reach[middle] > time)
				high = middle;
			else
				low = middle + 1;
		}
		return low;
	}

	// The slice at a time, give or take; the longest, if there are several. -1: none.
	at(time, slack) {
		let best = -1;
		for (let i = this.firstAfter(time - slack); i < this.count && this.begin[i] <= time + slack; i++)
			if (this.end[i] >= time - slack && (best < 0 || this.end[i] - this.begin[i] > this.end[best] - this.begin[best]))
				best = i;
		return best;
	}
}

class Lane {
	constructor(raw, bins, index) {
		Object.assign(this, { index, tid: raw.tid, pid: raw.pid, raw, process: raw.process });
		this.states = new Row(raw.states, bins);
		this.depths = [];
		for (const { depth, row } of raw.depths)
			this.depths[depth] = new Row(row, bins);
		this.name = raw.name || raw.process_name || `thread ${raw.tid}`;
		this.hasStates = this.states.count > 0;
		this.busy_ns = raw.running_ns || (this.depths[0] ? this.depths[0].time : 0);
		this.height = Math.max(LANE_LEAST, (this.hasStates ? STATE_HEIGHT + 2 : 0) + this.depths.length * DEPTH_HEIGHT + 5);
		this.canvas = make("canvas", { role: "img" });
		this.about = make("span", { class: "unit" });
		const about = make("div", { class: "label", title: raw.arguments }, make("strong", { text: this.name }), this.about);
		this.element = make("div", { class: "row lane", "data-tid": this.tid }, make("div", { class: "rail" }), about,
			make("div", { class: "plot" }, this.canvas), make("div", { class: "side" }));
		this.element.style.height = `${this.height}px`;
	}

	// The innermost intervals of one name in which the thread was blocked for longest. What was left out is not counted.
	longestWait(nodes) {
		const waits = new Map();
		for (let i = 0; i < this.states.count; i++) {
			if (this.states.kind[i] !== 2)
				continue;
			const middle = (this.states.begin[i] + this.states.end[i]) / 2;
			const within = this.depths.map(row => row ? row.at(middle, 0) : -1);
			const depth = within.findLastIndex(k => k >= 0);
			const node = depth < 0 ? null : nodes[this.depths[depth].what[within[depth]]];
			if (node)
				waits.set(node.name, (waits.get(node.name) || 0) + this.states.end[i] - this.states.begin[i]);
		}
		return [...waits].reduce((best, [name, ns]) => ns > best.ns ? { name, ns } : best, { name: "", ns: 0 });
	}

	// Where the row of a depth begins, in pixels.
	top(depth) {
		return 2 + (this.hasStates ? STATE_HEIGHT + 2 : 0) + depth * DEPTH_HEIGHT;
	}
}

// The command's critical path, as a lane: what it went through, and below it in which thread.
class PathLane extends Lane {
	constructor(raw, bins) {
		const sums = { running_ns: 0, runnable_ns: 0, blocked_ns: 0 };
		for (const thread of raw.sums)
			for (const state of Object.keys(sums))
				sums[state] += thread[state];
		super({ tid: 0, pid: 0, name: "Critical path", process: -1, process_name: "", arguments: "What the command's end waited for, back to its start",
			states: raw.row, depths: [], ...sums }, bins, -1);
		this.isPath = true;
		this.height = Math.max(LANE_LEAST, this.top(1) + 3);
		this.element.classList.add("path");
		this.about.textContent = Format.duration(raw.ns);
	}
}

// All lanes, by process.
class Lanes {
	constructor(view) {
		this.view = view;
		const { raw } = view.model;
		this.raw = raw.lanes;
		this.nodes = raw.tree.nodes;
		this.lanes = this.raw.list.map((lane, i) => new Lane(lane, this.raw.bins, i));
		this.messages = new Row(this.raw.messages, this.raw.bins);
		this.path = this.raw.path.row.slices.length ? new PathLane(this.raw.path, this.raw.bins) : null;
		this.section = find("#lanes");
		this.list = find("#lane-list");
		this.section.hidden = !this.lanes.length;
		this.arrows = make("canvas", { class: "arrows" });
		this.tip = find("#tip");
		this.painter = new LanePainter(this);
		this.select(ALL);
		find("#arrows").addEventListener("change", () => this.draw(this.area));
		find("#more-lanes").addEventListener("click", () => {
			this.section.classList.toggle("all");
			find("#more-lanes").textContent = this.section.classList.contains("all") ? "Fewer" : "Show all";
			this.select(this.view.model.process);
			this.draw(this.area);
		});
		this.scrolled = 0;
		this.list.addEventListener("scroll", () => {
			this.scrolled = this.list.scrollTop;
			this.draw(this.area);
		});
	}

	// Keep to the threads of one process, or ALL.
	select(process) {
		const { model } = this.view;
		const chosen = process === ALL ? null : model.raw.processes[process];
		const all = this.lanes.filter(lane => !chosen || (chosen.merged ? !model.numbers.has(lane.process) : lane.process === chosen.process));
		const folded = this.section.classList.contains("all") ? [] : Lanes.#brief(all);
		this.shown = all.filter(lane => !folded.includes(lane));
		const parts = [];
		let last = null;
		for (const lane of this.shown) {
			// A process of one thread is its lane.
			const alone = lane.process >= 0 && this.shown.filter(other => other.process === lane.process).length === 1;
			lane.about.textContent = alone ? `${lane.pid}  ${lane.raw.arguments}` : `thread ${lane.tid}`;
			if (!alone && (lane.process !== last || !parts.length))
				parts.push(this.#processRow(lane));
			last = lane.process;
			parts.push(lane.element);
		}
		if (this.path && chosen === null) {
			this.shown.unshift(this.path);
			parts.unshift(this.path.element);
		}
		if (folded.length)
			parts.push(Lanes.#foldedRow(folded));
		this.list.replaceChildren(...parts, this.arrows);
		this.placed = false;
		const left = this.raw.left_out;
		find("#lane-counts").textContent = Format.count(all.length - folded.length) + (left ? ` busiest of ${Format.count(this.lanes.length + left)}` :
			folded.length ? ` of ${Format.count(all.length)}` : "");
		find("#lane-key").hidden = !this.lanes.some(lane => lane.hasStates);
	}

	// Lanes of processes that did next to nothing beside the busiest one, such as marks of phases. A few are no trouble.
	static #brief(lanes) {
		const busy = new Map();
		for (const lane of lanes)
			busy.set(lane.process, (busy.get(lane.process) || 0) + lane.busy_ns);
		const least = Math.max(0, ...busy.values()) * Lanes.BRIEF;
		const brief = lanes.filter(lane => busy.get(lane.process) < least);
		return brief.length > Lanes.BRIEF_FEW ? brief : [];
	}

	static #foldedRow(lanes) {
		const processes = new Set(lanes.map(lane => lane.process)).size;
		const names = [...new Set(lanes.map(lane => lane.raw.process_name).filter(Boolean))];
		const text = `${Format.count(processes)} short processes${names.length ? ` (${names.slice(0, 3).join(", ")}${names.length > 3 ? ", \u2026" : ""})` : ""}, ` +
			`each busy for less than ${100 * Lanes.BRIEF}${Format.THIN}% of the busiest one's time: \u201cShow all\u201d has their lanes`;
		return make("div", { class: "row folded" }, make("div", { class: "rail" }), make("div", { class: "label wide" }, make("span", { text })));
	}

	#processRow(lane) {
		const { raw } = lane;
		const name = raw.process < 0 ? "Threads whose process is unknown" : `${raw.process_name || "process"} (${raw.pid})`;
		return make("div", { class: "row process" }, make("div", { class: "rail" }),
			make("div", { class: "label wide" }, make("strong", { text: name }), make("span", { text: raw.arguments })));
	}

	// area: the plotting area of all rows, as Strips.area.
	draw(area) {
		// Sizes are asked for only when they may have changed: it lays out the page.
		if (area !== this.area || !this.placed)
			this.#measure(area);
		this.area = area;
		if (!this.section.hidden)
			this.painter.draw(area);
	}

	#measure(area) {
		this.placed = true;
		this.height = this.list.clientHeight;
		this.content = Math.max(1, ...this.shown.map(lane => {
			lane.y = lane.element.offsetTop;
			return lane.y + lane.height;
		}));
		const plot = this.shown.length ? this.shown[0].canvas.parentElement : null;
		this.left = plot ? area.left - plot.offsetLeft : 0;
	}

	// What is under a point of the page: lane, row, slice; null: no lane.
	hit(clientX, clientY) {
		const element = document.elementFromPoint(clientX, clientY);
		const row = element && element.closest(".lane");
		const lane = row && this.shown.find(other => other.element === row);
		if (!lane || !this.area)
			return null;
		const box = lane.canvas.getBoundingClientRect();
		const { low, high } = this.view;
		const y = clientY - box.top, time = low + (clientX - box.left) / box.width * (high - low);
		if (time < low || time > high)
			return null;
		const inStates = lane.isPath || (lane.hasStates && y < lane.top(0) - 1);
		const depth = Math.floor((y - lane.top(0)) / DEPTH_HEIGHT);
		const slices = inStates ? lane.states : lane.depths[depth];
		if (!slices)
			return { lane, time, slices: null, i: -1 };
		return { lane, time, inStates, slices, i: slices.at(time, (high - low) / box.width * 1.5) };
	}

	// One sentence on it.
	words({ lane, time, inStates, slices, i }) {
		if (!slices)
			return [];
		if (i < 0) {
			const bin = Math.min(this.raw.bins - 1, Math.floor(time / this.raw.bin_ns));
			const ns = slices.rest.reduce((sum, rest) => sum + rest[bin], 0);
			return ns > 0 ? [`${inStates ? "States" : "Intervals"} too short to keep each: ${Format.percent(ns / this.raw.bin_ns)} of this time`,
				`${Format.count(slices.leftOut)} of this thread are left out`] : inStates ? ["State unknown"] : [];
		}
		const length = Format.duration(slices.end[i] - slices.begin[i]);
		if (lane.isPath) {
			const on = this.lanes[slices.what[i]];
			return [`${STATE_NAMES[slices.kind[i]]}: ${length}`, on ? `${on.name}, thread ${on.tid}` : "a thread that has no lane on this page"];
		}
		if (inStates) {
			const waker = this.lanes[slices.extra[i]];
			const cpu = slices.what[i] >= 0 && slices.what[i] < 0xffffffff && slices.kind[i] === 0 ? ` on CPU ${slices.what[i]}` : "";
			return [`${STATE_NAMES[slices.kind[i]]}${cpu}: ${length}`, waker ? `woken by ${waker.name} (${waker.tid})` : ""];
		}
		const node = this.nodes[slices.what[i]];
		return [`${node ? node.name : "?"}: ${length}${NOT_ENDED[slices.event[i]] || ""}`,
			slices.extra[i] >= 0 ? this.raw.files[slices.extra[i]] : "", node && node.group !== node.name ? node.group : ""];
	}

	point(clientX, clientY) {
		const hit = clientX === null ? null : this.hit(clientX, clientY);
		const words = hit ? this.words(hit).filter(Boolean) : [];
		this.tip.hidden = !words.length;
		if (!words.length)
			return;
		this.tip.replaceChildren(make("strong", { text: words[0] }), ...words.slice(1).map(text => make("span", { text })),
			make("span", { text: hit.lane.isPath ? hit.lane.name : `${hit.lane.name}, thread ${hit.lane.tid}` }));
		this.tip.style.left = `${Math.min(clientX + 14, document.documentElement.clientWidth - this.tip.offsetWidth - 8)}px`;
		this.tip.style.top = `${clientY + 16}px`;
	}

	// Show just the time of what was clicked on.
	click(clientX, clientY) {
		const hit = this.hit(clientX, clientY);
		if (hit && hit.i >= 0)
			this.view.setTimes(hit.slices.begin[hit.i], Math.max(hit.slices.end[hit.i], hit.slices.begin[hit.i] + 1));
	}
}
Lanes.BRIEF = 0.01; // of the time of the busiest process
Lanes.BRIEF_FEW = 3;
