// SPDX-License-Identifier: MIT
// lanes.js - one lane for each thread: its state as a band, the intervals that it was in below, nested.
// Not here: which of them are kept (viz-export/html_lanes.c).
"use strict";

const LANE_BAND = 8, LANE_ROW = 11, LANE_GAP = 5, LANE_ARROWS_MAX = 40;
const STATES = ["running", "waiting for a CPU", "blocked"];

class Lane {
	constructor(raw, names) {
		this.pid = raw.pid;
		this.tid = raw.tid;
		this.name = raw.process || "?";
		this.title = `${raw.arguments || raw.process || "process"}, process ${raw.pid}, thread ${raw.tid}` +
			(raw.thread && raw.thread !== raw.process ? ` (${raw.thread})` : "");
		this.leftOut = raw.left_out;
		this.bins = raw.bins;
		this.states = Lane.#pieces(raw.states, (state, waker) => ({ state, waker }));
		this.intervals = Lane.#pieces(raw.intervals, (depth, name) => ({ depth, name: names[name] }));
		// Depths that no kept interval has take no room.
		const depths = [...new Set(this.intervals.map(i => i.depth))].sort((a, b) => a - b);
		for (const interval of this.intervals)
			interval.row = depths.indexOf(interval.depth);
		this.rows = depths.length;
	}

	// Four numbers each: from the begin before, length, and two more.
	static #pieces(packed, rest) {
		const pieces = [];
		for (let i = 0, at = 0; i + 3 < packed.length; i += 4) {
			at += packed[i];
			pieces.push({ begin: at, end: at + packed[i + 1], ...rest(packed[i + 2], packed[i + 3]) });
		}
		return pieces;
	}

	get height() {
		return LANE_BAND + this.rows * LANE_ROW + LANE_GAP;
	}
}

class Lanes {
	constructor(view) {
		this.view = view;
		const raw = view.model.raw.lanes;
		this.span = raw.span_ns;
		this.leftOut = raw.left_out;
		this.all = raw.list.map(lane => new Lane(lane, raw.names));
		this.row = find("#lanes");
		this.canvas = find("#lanes canvas");
		this.labels = find("#lanes .lane-labels");
		this.row.hidden = find("#lanes-legend").hidden = !this.all.length;
		find("#lanes-text").textContent = !this.leftOut ? "" : `${Format.count(this.leftOut)} more threads have no lane`;
		this.tones = new Map();
		for (const lane of this.all)
			for (const { name } of lane.intervals)
				if (!this.tones.has(name))
					this.tones.set(name, this.tones.size);
	}

	// Lanes of the chosen process, each with its place.
	#place() {
		const { model } = this.view;
		const chosen = model.process === ALL ? null : model.raw.processes[model.process];
		let y = 2;
		this.shown = this.all.filter(lane => !chosen || (chosen.merged ? !model.pids.has(lane.pid) : lane.pid === chosen.pid));
		for (const lane of this.all)
			lane.y = -1;
		for (const lane of this.shown) {
			lane.y = y;
			y += lane.height;
		}
		return y;
	}

	draw(area) {
		if (this.row.hidden)
			return;
		const height = Math.max(this.#place(), LANE_BAND);
		const ratio = window.devicePixelRatio || 1;
		const { canvas } = this, plot = canvas.parentElement;
		this.area = { left: area.left - plot.offsetLeft, width: area.width };
		canvas.style.left = `${this.area.left}px`;
		canvas.style.width = `${area.width}px`;
		plot.style.height = canvas.style.height = `${height}px`;
		canvas.width = Math.round(area.width * ratio);
		canvas.height = Math.round(height * ratio);
		this.context = canvas.getContext("2d");
		this.context.scale(ratio, ratio);
		this.context.font = "9.5px " + getComputedStyle(document.body).fontFamily;
		this.context.textBaseline = "middle";
		let inside = 0;
		for (const lane of this.shown)
			inside += this.#lane(lane, area.width);
		this.#arrows(area.width);
		this.#label();
		this.row.dataset.lanes = this.shown.length;
		this.row.dataset.inside = inside;
		canvas.setAttribute("aria-label", `${this.shown.length} threads: ` +
			this.shown.slice(0, 8).map(lane => `${lane.name} ${lane.tid}`).join(", "));
	}

	#label() {
		this.labels.replaceChildren(...this.shown.map((lane, i) => {
			const first = i === 0 || this.shown[i - 1].pid !== lane.pid;
			const label = make("span", { title: lane.title, class: first ? "" : "again" },
				make("strong", { text: first ? lane.name : "" }), document.createTextNode(` ${lane.tid}`));
			label.style.top = `${lane.y - 4}px`;
			return label;
		}));
	}

	#x(time, width) {
		const { low, high } = this.view;
		return Math.min(width, Math.max(0, (time - low) / (high - low) * width));
	}

	// The band: from bins where they are finer than what is kept can show, and over it what is kept.
	#lane(lane, width) {
		this.#density(lane, width);
		this.#states(lane, width);
		return this.#intervals(lane, width);
	}

	// Height tells states apart, too: running is full, waiting two thirds, blocked a line.
	#band(state, x, y, width) {
		const tall = [LANE_BAND, Math.round(LANE_BAND * 0.66), 2][state];
		this.context.fillStyle = this.view.colours[["running", "waiting", "blocked"][state]];
		this.context.fillRect(x, y + LANE_BAND - tall, width, tall);
	}

	#density(lane, width) {
		const { low, high } = this.view;
		const n = lane.bins[0].length, size = this.span / n;
		const first = Math.max(0, Math.floor(low / size)), end = Math.min(n, Math.ceil(high / size));
		for (let i = first; i < end; i++) {
			const x = this.#x(i * size, width), next = this.#x((i + 1) * size, width);
			const [run, wait, sleep] = lane.bins.map(bins => bins[i]);
			if (sleep)
				this.#band(2, x, lane.y, next - x);
			this.context.globalAlpha = Math.min(1, 0.15 + 0.85 * wait / 100);
			if (wait)
				this.#band(1, x, lane.y, next - x);
			this.context.globalAlpha = Math.min(1, 0.15 + 0.85 * run / 100);
			if (run)
				this.#band(0, x, lane.y, next - x);
			this.context.globalAlpha = 1;
		}
	}

	#states(lane, width) {
		const { low, high, colours } = this.view;
		for (const { begin, end, state } of lane.states) {
			if (end < low || begin >= high)
				continue;
			const x = this.#x(begin, width), next = this.#x(end, width);
			if (next - x < 1.5)
				continue;
			this.context.fillStyle = colours.paper;
			this.context.fillRect(x, lane.y, next - x, LANE_BAND);
			this.#band(state, x, lane.y, next - x);
		}
	}

	#intervals(lane, width) {
		const { low, high, colours } = this.view;
		const right = [];
		let inside = 0;
		for (const interval of lane.intervals) {
			if (interval.end < low || interval.begin >= high)
				continue;
			inside++;
			const x = this.#x(interval.begin, width), next = this.#x(interval.end, width);
			const bar = Math.max(1, next - x - (next - x > 4 ? 1 : 0));
			if (x + bar <= right[interval.row])
				continue;
			right[interval.row] = Math.ceil(x + bar);
			const y = lane.y + LANE_BAND + 1 + interval.row * LANE_ROW;
			this.context.globalAlpha = [0.7, 0.4, 0.55, 0.28][this.tones.get(interval.name) % 4];
			this.context.fillStyle = colours.OS;
			this.context.fillRect(x, y, bar, LANE_ROW - 2);
			this.context.globalAlpha = 1;
			this.#text(interval.name, x, y, bar);
		}
		return inside;
	}

	#text(name, x, y, bar) {
		if (bar < 20)
			return;
		let text = name;
		while (text.length > 2 && this.context.measureText(text).width > bar - 5)
			text = text.slice(0, -2) + "\u2026";
		if (text.length < 3 && text !== name)
			return;
		this.context.fillStyle = this.view.colours.text;
		this.context.fillText(text, x + 3, y + (LANE_ROW - 2) / 2 + 0.5);
	}

	// From who woke a thread to the thread, where they are few enough to follow.
	#arrows(width) {
		const { low, high, colours } = this.view;
		const woken = [];
		for (const lane of this.shown)
			for (const { end, waker } of lane.states)
				if (waker >= 0 && end >= low && end < high && this.all[waker].y >= 0 && this.all[waker] !== lane)
					woken.push([end, this.all[waker], lane]);
		this.row.dataset.wakes = woken.length;
		if (woken.length > LANE_ARROWS_MAX)
			return;
		const { context } = this;
		context.strokeStyle = context.fillStyle = colours.text;
		context.lineWidth = 0.75;
		for (const [time, from, to] of woken) {
			const x = this.#x(time, width), down = to.y > from.y;
			const y0 = from.y + LANE_BAND / 2, y1 = to.y + (down ? 0 : LANE_BAND);
			context.beginPath();
			context.moveTo(x, y0);
			context.lineTo(x, y1);
			context.stroke();
			context.beginPath();
			context.moveTo(x, y1);
			context.lineTo(x - 3, y1 + (down ? -4 : 4));
			context.lineTo(x + 3, y1 + (down ? -4 : 4));
			context.fill();
		}
	}

	// What is under a point of the canvas: an interval, else a state.
	at(x, y) {
		if (this.row.hidden || !this.area)
			return null;
		const { low, high } = this.view;
		const lane = this.shown.find(other => y >= other.y && y < other.y + other.height);
		if (!lane)
			return null;
		const time = low + x / this.area.width * (high - low), slack = (high - low) / this.area.width;
		const row = Math.floor((y - lane.y - LANE_BAND - 1) / LANE_ROW);
		const list = row < 0 ? lane.states : lane.intervals.filter(interval => interval.row === row);
		let best = null;
		for (const piece of list)
			if (piece.begin <= time + slack && piece.end >= time - slack && (!best || piece.end - piece.begin > best.end - best.begin))
				best = piece;
		return best ? { lane, piece: best } : { lane, piece: null };
	}

	// A sentence about what is under a point.
	say(x, y) {
		const found = this.at(x, y);
		if (!found)
			return "";
		const { lane, piece } = found;
		if (!piece)
			return lane.title + (lane.leftOut ? `; ${Format.count(lane.leftOut)} shorter states and intervals are not shown one by one` : "");
		const length = Format.duration(piece.end - piece.begin);
		if (piece.name !== undefined)
			return `${piece.name}: ${length}, ${lane.title}`;
		const waker = piece.state === 2 && piece.waker >= 0 ? this.all[piece.waker] : null;
		return `${STATES[piece.state]}: ${length}, ${lane.title}` + (waker ? `; woken by ${waker.name} ${waker.tid}` : "");
	}

	connect() {
		this.canvas.addEventListener("pointermove", event => {
			this.canvas.title = this.say(event.offsetX, event.offsetY);
		});
		this.canvas.addEventListener("click", event => {
			const found = this.at(event.offsetX, event.offsetY);
			if (found && found.piece)
				this.view.setTimes(found.piece.begin, Math.max(found.piece.end, found.piece.begin + 1));
		});
	}
}
