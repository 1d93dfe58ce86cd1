// SPDX-License-Identifier: MIT
// flame.js - the intervals of the time in view: a flame graph (roots on top) by process and nesting, and a table by name.
// Times are of the bins in view, exact; counts and durations are of intervals that ended in them. Percentiles are of the
// whole run, to 0.8 %.
// FlameGraph draws any tree of nodes { name, key, parent, children, value }; samples.js has another one.
"use strict";

const FLAME_ROW = 18;
const FLAME_DEPTH = 26;
const TABLE_ROWS = 40;

// One canvas. texts: of(node), what stands in a box; lines(node, share, own), what a pointer over it is told; colour(node), of one
// whose key is a number: [colour, ink].
class FlameGraph {
	constructor(view, canvas, texts, depth = FLAME_DEPTH) {
		Object.assign(this, { view, canvas, texts, depth });
		this.focus = null; // key of a node that fills the width; null: all
		this.#connect();
	}

	#find(node, key) {
		return node.key === key ? node : node.children.map(child => this.#find(child, key)).find(Boolean) || null;
	}

	// label: what the picture is, for those who hear it.
	draw(root, label) {
		this.root = root;
		this.label = label;
		const top = this.focus === null ? root : this.#find(root, this.focus) || root;
		const width = this.canvas.parentElement.clientWidth;
		this.boxes = [];
		this.#place(top, 0, width, 0, root.value || 1);
		const rows = this.boxes.reduce((most, box) => Math.max(most, box.row), 0) + 1;
		const context = prepare(this.canvas, width, rows * FLAME_ROW + 2);
		for (const box of this.boxes)
			this.#box(context, box);
		this.canvas.setAttribute("aria-label", `${label}: ${root.children.map(child => this.texts.of(child)).join(", ")}`);
	}

	#place(node, x, width, row, all) {
		if (width < 0.5 || row >= this.depth)
			return;
		this.boxes.push({ node, x, width, row, share: node.value / all });
		const inner = node.children.reduce((sum, child) => sum + child.value, 0);
		const scale = width / Math.max(node.value, inner, 1);
		for (const child of node.children) {
			this.#place(child, x, child.value * scale, row + 1, all);
			x += child.value * scale;
		}
	}

	#box(context, { node, x, width, row }) {
		const [colour, ink] = typeof node.key === "number" ? this.texts.colour(node) : [this.view.colours.rest, this.view.colours.text];
		const y = row * FLAME_ROW + 1;
		context.fillStyle = colour;
		context.fillRect(x, y, Math.max(0.5, width - (width > 3 ? 1 : 0)), FLAME_ROW - 1);
		const text = fitText(context, this.texts.of(node), width - 8);
		if (text) {
			context.fillStyle = ink;
			context.fillText(text, x + 4, y + FLAME_ROW / 2);
		}
	}

	#at(event) {
		const row = Math.floor((event.offsetY - 1) / FLAME_ROW);
		return (this.boxes || []).find(box => box.row === row && event.offsetX >= box.x && event.offsetX < box.x + box.width) || null;
	}

	#connect() {
		const tip = find("#tip");
		this.canvas.addEventListener("pointermove", event => {
			const box = this.#at(event);
			tip.hidden = !box;
			this.canvas.style.cursor = box ? "pointer" : "";
			if (!box)
				return;
			const own = box.node.value - box.node.children.reduce((sum, child) => sum + child.value, 0);
			tip.replaceChildren(make("strong", { text: box.node.name }),
				...this.texts.lines(box.node, box.share, Math.max(0, own)).map(text => make("span", { text })));
			tip.style.left = `${Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8)}px`;
			tip.style.top = `${event.clientY + 16}px`;
		});
		this.canvas.addEventListener("pointerleave", () => tip.hidden = true);
		this.canvas.addEventListener("click", event => {
			const box = this.#at(event);
			if (!box)
				return;
			// The topmost leads back up.
			this.focus = box.row > 0 ? box.node.key : box.node.parent ? box.node.parent.key : null;
			this.draw(this.root, this.label);
		});
	}
}

class Flame {
	constructor(view) {
		this.view = view;
		const { tree, processes } = view.model.raw;
		this.tree = tree;
		this.section = find("#intervals");
		this.section.hidden = !tree.nodes.length;
		this.graph = new FlameGraph(view, find("#flame canvas"), {
			of: node => `${node.name}  ${Format.duration(node.value)}`,
			lines: (node, share, own) => [`${Format.duration(node.value)}, ${Format.percent(share)} of all`,
				typeof node.key === "number" ? `itself ${Format.duration(own)}` : ""],
			colour: node => Colours.of(node.name),
		});
		this.processes = processes;
		this.times = tree.nodes.map(node => this.#sums(node.time));
		this.cells = tree.nodes.map(() => null);
	}

	#sums(packed) {
		const sums = new Float64Array(this.tree.bins + 1);
		for (let i = 0, at = 0; i + 1 < packed.length; i += 2, at++) {
			at += packed[i];
			sums[at + 1] += packed[i + 1];
		}
		for (let i = 0; i < this.tree.bins; i++)
			sums[i + 1] += sums[i];
		return sums;
	}

	#cellsOf(i) {
		if (!this.cells[i]) {
			this.cells[i] = new Cells(this.tree.bins, this.tree.bin_ns);
			this.cells[i].add(this.tree.nodes[i].durations);
			this.cells[i].finish();
		}
		return this.cells[i];
	}

	// The tree of what took time in view: all, processes, then nodes.
	#build() {
		const { low, high, model } = this.view;
		const [first, end] = binsOf(low, high, this.tree.bin_ns, this.tree.bins);
		const root = { name: "all intervals", value: 0, children: [], key: "all" };
		const processes = new Map(), made = [];
		this.tree.nodes.forEach((node, i) => {
			const time = this.times[i][end] - this.times[i][first];
			if (time < 0.5 || node.nested || model.process !== ALL && node.process !== model.process)
				return;
			let parent = node.parent >= 0 ? made[node.parent] : null;
			if (!parent) {
				if (!processes.has(node.process)) {
					const name = node.process < 0 ? "several processes" : model.processName(this.processes[node.process]);
					processes.set(node.process, { name, value: 0, children: [], key: `process ${node.process}`, isProcess: true });
					root.children.push(processes.get(node.process));
				}
				parent = processes.get(node.process);
				parent.value += time;
				root.value += time;
			}
			made[i] = { name: node.name, group: node.group, value: time, children: [], key: i, parent };
			parent.children.push(made[i]);
		});
		const sort = node => node.children.sort((a, b) => b.value - a.value).forEach(sort);
		sort(root);
		return root;
	}

	draw() {
		if (this.section.hidden)
			return;
		const root = this.#build(), { tree, view } = this;
		this.graph.draw(root, "Flame graph");
		const [first, end] = binsOf(view.low, view.high, tree.bin_ns, tree.bins);
		find("#flame-note").textContent = root.value ? `Time of threads in intervals, ${Format.duration(root.value)} in all, over ` +
			`${Format.duration((end - first) * tree.bin_ns)} (whole bins of ${Format.duration(tree.bin_ns)}).` : "No interval is in view.";
		this.#table(first, end);
	}

	// By name: the durations of the whole run. Those of a page by an older exporter are unknown.
	#runs(process) {
		if (this.runs && this.runsOf === process)
			return this.runs;
		this.runs = new Map();
		this.runsOf = process;
		for (const node of this.tree.nodes) {
			if (process !== ALL && node.process !== process)
				continue;
			const key = `${node.group} ${node.name}`;
			const run = this.runs.get(key) || { count: 0, sketch: new Sketch(), isWhole: false };
			run.count += node.count;
			run.sketch.add(node.sketch || []);
			run.isWhole = run.count > 0 && run.sketch.count === run.count;
			this.runs.set(key, run);
		}
		return this.runs;
	}

	#table(first, end) {
		const { model } = this.view;
		const runs = this.#runs(model.process);
		const names = new Map();
		this.tree.nodes.forEach((node, i) => {
			if (model.process !== ALL && node.process !== model.process)
				return;
			const time = this.times[i][end] - this.times[i][first];
			if (time < 0.5 && !node.count)
				return;
			const { count, sum, greatest } = this.#cellsOf(i).of(this.view.low, this.view.high);
			if (!count && time < 0.5)
				return;
			const key = `${node.group} ${node.name}`;
			const row = names.get(key) || { name: node.name, group: node.group, time: 0, count: 0, sum: 0, greatest: 0, run: runs.get(key) };
			row.time += time;
			row.count += count;
			row.sum += sum;
			row.greatest = Math.max(row.greatest, greatest);
			names.set(key, row);
		});
		const rows = [...names.values()].sort((a, b) => b.time - a.time);
		find("#interval-table tbody").replaceChildren(...rows.slice(0, TABLE_ROWS).map(row => {
			const swatch = make("span", { class: "swatch" });
			swatch.style.background = Colours.of(row.name)[0];
			return make("tr", { "data-name": row.name, "data-count": row.count, "data-time": row.time }, make("th", { scope: "row" }, swatch,
				make("span", { text: row.name }), make("small", { text: row.group === row.name ? "" : row.group })),
			...[Format.count(row.count), Format.duration(row.time), row.count ? Format.duration(row.sum / row.count) : "\u2013",
				row.count ? Format.duration(row.greatest) : "\u2013", ...PERCENTILES.map(share => row.run.isWhole ?
					Format.duration(row.run.sketch.percentile(share)) : "\u2013")].map(text => make("td", { class: "n", text })));
		}));
		// What has no process of its own is in no table of one process.
		const missing = model.process === ALL ? this.tree.nameless : this.tree.joined;
		find("#interval-more").textContent = [rows.length > TABLE_ROWS && `${Format.count(rows.length - TABLE_ROWS)} more took less time.`,
			missing && `Not told by ${model.process === ALL ? "name" : "process"}: ${Format.count(missing)} intervals of the whole run.`]
			.filter(Boolean).join(" ");
	}
}
