// SPDX-License-Identifier: MIT
// lane_paint.js - paints lanes on canvases: states, nested intervals, and arrows between threads.
// What is narrower than a pixel, or was left out, is added up by column: the higher, the more of the time it took.
"use strict";

// Okabe and Ito's colours, which colour-blind people tell apart, each with a text colour that can be read on it. Without
// vermilion, which says that a thread waits for a CPU.
const PALETTE = [["#0072B2", "#fff"], ["#E69F00", "#111"], ["#009E73", "#fff"], ["#CC79A7", "#111"], ["#56B4E9", "#111"],
	["#F0E442", "#111"]];
const ARROWS_MAX = 300;

// The same name has the same colour in lanes and flame graph. What takes most time gets colours of its own.
const Colours = {
	names: new Map(),

	learn(nodes) {
		const times = new Map();
		for (const node of nodes)
			for (let i = 1; i < node.time.length; i += 2)
				times.set(node.name, (times.get(node.name) || 0) + node.time[i]);
		[...times].sort((a, b) => b[1] - a[1]).forEach(([name], i) => Colours.names.set(name, PALETTE[i % PALETTE.length]));
	},

	of(name) {
		return Colours.names.get(name) || PALETTE[0];
	},
};

// Text cut to a width; "": nothing fits. The end of a name of an event tells it from others, so that its layer and class go first.
function fitText(context, text, room) {
	if (room < 14)
		return "";
	const fits = () => context.measureText(text).width <= room;
	if (/^(\w+::)+\w+$/.test(text))
		while (!fits() && text.includes("::"))
			text = text.slice(text.indexOf("::") + 2);
	if (fits())
		return text;
	let low = 0, high = text.length;
	while (low < high) {
		const middle = (low + high + 1) >> 1;
		if (context.measureText(text.slice(0, middle) + "\u2026").width <= room)
			low = middle;
		else
			high = middle - 1;
	}
	return low < 2 ? "" : text.slice(0, low) + "\u2026";
}

// A canvas made ready for width x height pixels of the page.
function prepare(canvas, width, height) {
	const ratio = window.devicePixelRatio || 1;
	if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		canvas.style.width = `${width}px`;
		canvas.style.height = `${height}px`;
	}
	const context = canvas.getContext("2d");
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, width, height);
	context.font = `11px ${LanePainter.family || (LanePainter.family = getComputedStyle(document.body).fontFamily)}`;
	context.textBaseline = "middle";
	return context;
}

class LanePainter {
	constructor(lanes) {
		this.lanes = lanes;
		this.view = lanes.view;
		Colours.learn(lanes.nodes);
		this.colours = lanes.nodes.map(node => Colours.of(node.name));
	}

	draw(area) {
		const { shown, view, scrolled, height } = this.lanes;
		if (!shown.length)
			return;
		this.width = Math.max(1, Math.floor(area.width));
		this.scale = this.width / (view.high - view.low);
		const top = scrolled - 60, bottom = scrolled + height + 60;
		for (const lane of shown) {
			if (lane.y + lane.height < top || lane.y > bottom)
				continue;
			lane.canvas.style.left = `${this.lanes.left}px`;
			this.#lane(lane);
		}
		this.#arrows(area);
	}

	#lane(lane) {
		const context = prepare(lane.canvas, this.width, lane.height - 1);
		if (lane.hasStates)
			this.#states(context, lane.states);
		lane.depths.forEach((row, depth) => row && this.#intervals(context, row, lane.top(depth)));
		if (lane.isPath)
			this.#owners(context, lane);
		lane.canvas.setAttribute("aria-label", `${lane.isPath ? "The path" : "Thread"} ${lane.tid}, ${lane.name}: running ${Format.duration(lane.raw.running_ns)}, ` +
			`waiting for a CPU ${Format.duration(lane.raw.runnable_ns)}, blocked ${Format.duration(lane.raw.blocked_ns)}`);
	}

	// Time of each column in slices that are too narrow, from one to the next.
	#spread(cover, begin, end) {
		const low = this.view.low, perPixel = 1 / this.scale;
		const last = Math.min(this.width - 1, Math.floor((end - low) * this.scale));
		for (let x = Math.max(0, Math.floor((begin - low) * this.scale)); x <= last; x++)
			cover[x] += (Math.min(end, low + (x + 1) * perPixel) - Math.max(begin, low + x * perPixel)) / perPixel;
	}

	#addRest(cover, rest) {
		const { low, high } = this.view;
		const { bin_ns, bins } = this.lanes.raw;
		const [first, end] = binsOf(low, high, bin_ns, bins);
		for (let bin = first; bin < end; bin++) {
			const share = rest[bin] / bin_ns;
			if (!share)
				continue;
			const from = Math.max(0, (bin * bin_ns - low) * this.scale), to = Math.min(this.width, ((bin + 1) * bin_ns - low) * this.scale);
			for (let x = Math.floor(from); x < to && x < this.width; x++)
				cover[x] += share * Math.max(0, Math.min(to, x + 1) - Math.max(from, x));
		}
	}

	#states(context, row) {
		const { low, high, colours } = this.view;
		const cover = [0, 1, 2].map(() => new Float32Array(this.width));
		// Height and place tell states apart as well as colour does.
		const shapes = [[colours.running, 0, STATE_HEIGHT], [colours.runnable, 4, STATE_HEIGHT - 4], [colours.blocked, STATE_HEIGHT - 2, 2]];
		for (let i = row.firstAfter(low); i < row.count && row.begin[i] < high; i++) {
			const x = (row.begin[i] - low) * this.scale, end = (row.end[i] - low) * this.scale;
			if (end - x < 1) {
				this.#spread(cover[row.kind[i]], row.begin[i], row.end[i]);
				continue;
			}
			const [colour, y, height] = shapes[row.kind[i]];
			context.fillStyle = colour;
			context.fillRect(Math.max(0, x), 1 + y, Math.min(this.width, end) - Math.max(0, x), height);
		}
		row.rest.forEach((rest, kind) => this.#addRest(cover[kind], rest));
		for (let x = 0; x < this.width; x++) {
			const running = Math.min(1, cover[0][x]) * STATE_HEIGHT, waiting = Math.min(1, cover[1][x]) * STATE_HEIGHT;
			if (waiting > 0.2) {
				context.fillStyle = colours.runnable;
				context.fillRect(x, 1 + STATE_HEIGHT - Math.min(STATE_HEIGHT, waiting + running), 1, waiting);
			}
			if (running > 0.2) {
				context.fillStyle = colours.running;
				context.fillRect(x, 1 + STATE_HEIGHT - running, 1, running);
			}
			if (cover[2][x] > 0.3 && waiting + running < 2) {
				context.fillStyle = colours.blocked;
				context.fillRect(x, STATE_HEIGHT - 1, 1, 2);
			}
		}
	}

	#intervals(context, row, top) {
		const { low, high, colours } = this.view;
		const height = DEPTH_HEIGHT - 1;
		const cover = new Float32Array(this.width);
		// A column has the colour of the longest slice in it.
		const longest = new Float64Array(this.width + 1).fill(-1), whose = new Int32Array(this.width + 1).fill(-1);
		const wide = [];
		for (let i = row.firstAfter(low); i < row.count && row.begin[i] < high; i++) {
			const length = row.end[i] - row.begin[i];
			if (length * this.scale >= 1) {
				wide.push(i);
				continue;
			}
			this.#spread(cover, row.begin[i], row.end[i]);
			const x = Math.max(0, Math.floor((row.begin[i] - low) * this.scale));
			if (length > longest[x]) {
				longest[x] = length;
				whose[x] = row.what[i];
			}
		}
		if (row.rest.length)
			this.#addRest(cover, row.rest[0]);
		for (let x = 0; x < this.width; x++)
			if (cover[x] > 0.01) {
				const part = Math.max(1, Math.min(1, cover[x]) * height);
				context.fillStyle = whose[x] >= 0 ? this.colours[whose[x]][0] : colours.rest;
				context.fillRect(x, top + height - part, 1, part);
			}
		for (const i of wide)
			this.#bar(context, row, i, top, height);
	}

	// Below the critical path: whose it is, where that is the same thread for some pixels.
	#owners(context, lane) {
		const { low, high, colours } = this.view, row = lane.states, top = lane.top(0), height = DEPTH_HEIGHT - 1;
		for (let i = row.firstAfter(low), next; i < row.count && row.begin[i] < high; i = next) {
			for (next = i + 1; next < row.count && row.what[next] === row.what[i]; next++)
				;
			const x = Math.max(0, (row.begin[i] - low) * this.scale), end = Math.min(this.width, (row.end[next - 1] - low) * this.scale);
			const owner = this.lanes.lanes[row.what[i]];
			if (end - x < 2 || !owner)
				continue;
			context.fillStyle = colours.rest;
			context.fillRect(x, top, end - x - 1, height);
			const text = fitText(context, `${owner.name} ${owner.tid}`, end - x - 8);
			context.fillStyle = colours.text;
			if (text)
				context.fillText(text, x + 4, top + height / 2 + 0.5);
		}
	}

	// Where the critical path goes from one thread to another.
	#hops(place, found) {
		const { path } = this.lanes, { low, high } = this.view, first = found.length;
		const row = path && path.states;
		for (let i = row ? Math.max(1, row.firstAfter(low)) : 0; row && i < row.count && row.begin[i] < high && found.length <= first + ARROWS_MAX; i++)
			if (row.what[i] !== row.what[i - 1] && row.begin[i] === row.end[i - 1] && place.has(row.what[i]) && place.has(row.what[i - 1]))
				found.push({ from: place.get(row.what[i - 1]), to: place.get(row.what[i]), begin: row.begin[i], end: row.begin[i], hops: true });
		if (found.length > first + ARROWS_MAX)
			found.length = first;
	}

	#bar(context, row, i, top, height) {
		const { low } = this.view;
		const x = Math.max(0, (row.begin[i] - low) * this.scale), end = Math.min(this.width, (row.end[i] - low) * this.scale);
		const [colour, ink] = this.colours[row.what[i]] || PALETTE[0];
		context.fillStyle = colour;
		context.fillRect(x, top, Math.max(1, end - x - (end - x > 4 ? 1 : 0)), height);
		// Its end is not known.
		if (row.event[i] >= 2) {
			context.fillStyle = this.view.colours.paper;
			for (let y = 1; y < height; y += 4)
				context.fillRect(end - 3, top + y, 3, 2);
		}
		const text = fitText(context, this.lanes.nodes[row.what[i]].name, end - x - 8);
		if (text) {
			context.fillStyle = ink;
			context.fillText(text, x + 4, top + height / 2 + 0.5);
		}
	}

	// Messages, and wake-ups where there is room, from thread to thread.
	#arrows(area) {
		const { shown, arrows, messages, content } = this.lanes;
		const { low, high, colours } = this.view;
		arrows.style.left = `${area.left}px`;
		const context = prepare(arrows, this.width, Math.min(8000, content));
		const place = new Map(shown.map(lane => [lane.index, lane]));
		const found = [];
		for (let i = messages.firstAfter(low); i < messages.count && messages.begin[i] < high; i++)
			if (place.has(messages.what[i]) && place.has(messages.extra[i]))
				found.push({ from: place.get(messages.what[i]), to: place.get(messages.extra[i]), begin: messages.begin[i], end: messages.end[i] });
		const sent = found.length;
		for (const lane of shown)
			for (let i = lane.states.firstAfter(low); i < lane.states.count && lane.states.begin[i] < high && found.length <= sent + ARROWS_MAX; i++)
				if (lane.states.extra[i] >= 0 && lane.states.end[i] < high && place.has(lane.states.extra[i]))
					found.push({ from: place.get(lane.states.extra[i]), to: lane, begin: lane.states.end[i], end: lane.states.end[i], wakes: true });
		const wakes = found.length - sent;
		const most = sent > ARROWS_MAX ? [] : found.slice(0, wakes > ARROWS_MAX ? sent : found.length);
		this.#hops(place, most);
		arrows.dataset.messages = sent <= ARROWS_MAX ? sent : 0;
		find("#arrow-counts").textContent = (this.lanes.raw.messages.slices.length ? `${Format.count(sent)} messages in view` +
			(sent > ARROWS_MAX ? ", too many for arrows" : "") : "") + (wakes > ARROWS_MAX ? " Zoom in for wake-ups." : "");
		if (!find("#arrows").checked)
			return;
		for (const arrow of most)
			this.#arrow(context, arrow, arrow.hops ? colours.text : arrow.wakes ? colours.muted : colours.arrow, low);
	}

	#arrow(context, { from, to, begin, end, wakes, hops }, colour, low) {
		if (from === to)
			return;
		const middle = lane => lane.y + ((wakes || hops) && lane.hasStates ? STATE_HEIGHT / 2 + 1 : lane.top(0) + DEPTH_HEIGHT / 2);
		const [x, y, right, below] = [(begin - low) * this.scale, middle(from), (end - low) * this.scale, middle(to)];
		const angle = Math.atan2(below - y, right - x);
		context.strokeStyle = context.fillStyle = colour;
		context.globalAlpha = wakes ? 0.6 : 1;
		context.lineWidth = wakes ? 1 : 1.4;
		context.setLineDash(wakes ? [2, 3] : []);
		context.beginPath();
		context.moveTo(x, y);
		context.lineTo(right, below);
		context.stroke();
		context.setLineDash([]);
		context.beginPath();
		context.moveTo(right, below);
		for (const turn of [-0.45, 0.45])
			context.lineTo(right - 7 * Math.cos(angle + turn), below - 7 * Math.sin(angle + turn));
		context.fill();
		context.globalAlpha = 1;
	}
}
