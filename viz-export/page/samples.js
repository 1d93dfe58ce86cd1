// SPDX-License-Identifier: MIT
// samples.js - where the CPU was in the time in view: a flame graph of samples (roots on top) by process and calls, and a table by
// function; and the same of allocations, by an amount that the reader chooses. The data are written by viz-export/html_samples.c.
"use strict";

const STACK_DEPTH = 64;

// What is drawn: of which data, in which elements of the page, and in which words. Of several amounts one is chosen.
const STACKS_OF_SAMPLES = {
	data: "samples", section: "#samples", stacks: "#stacks", note: "#stacks-note", table: "#sample-table", more: "#sample-more",
	all: "all samples", label: "Flame graph of samples", none: "No sample is in view.",
	amounts: [{
		column: "Samples", show: value => `${Format.count(value)} sample${value === 1 ? "" : "s"}`,
		sentence: (value, hasCalls) => `${Format.count(value)} samples of the CPU in view` +
			(hasCalls ? ", by the calls that led there." : ". Record with -g to see the calls that led there."),
	}],
};
const BYTES = value => `${Format.si(value)}B`, COUNT = value => Format.count(value);
const STACKS_OF_ALLOCATIONS = {
	data: "allocations", section: "#allocations", stacks: "#allocation-stacks", note: "#allocations-note", table: "#allocation-table",
	more: "#allocation-more", choice: "#allocation-amount", all: "all allocations", label: "Flame graph of allocations",
	none: "No such allocation is in view.",
	// In the order of enum pem_amount; those after the known ones need all releases.
	amounts: [
		{ name: "bytes allocated", column: "Bytes", show: BYTES, sentence: value => `${BYTES(value)} were asked for in view, by the calls that led there.` },
		{ name: "allocations", column: "Calls", show: COUNT, sentence: value => `${COUNT(value)} allocations in view, by the calls that led there.` },
		{ name: "bytes at the peak", column: "Bytes", show: BYTES,
			sentence: value => `${BYTES(value)} that were allocated in view were held when their program held most.` },
		{ name: "bytes never released (leaked)", column: "Bytes", show: BYTES,
			sentence: value => `${BYTES(value)} that were allocated in view were never released.` },
		{ name: "temporary allocations", column: "Calls", show: COUNT,
			sentence: value => `${COUNT(value)} blocks that were allocated in view were released before their process allocated or released anything else.` },
	],
	known: 2, unknown: "Peak, leaked and temporary are not known: events were lost, or not all that release memory was recorded.",
};

class Samples {
	constructor(view, what) {
		const samples = view.model.raw[what.data], { processes } = view.model.raw;
		Object.assign(this, { view, what, samples, processes });
		this.section = find(what.section);
		this.section.hidden = !samples.count;
		this.colours = Samples.#coloursOf(samples);
		this.amount = 0;
		this.sums = what.amounts.map((_, i) => samples.nodes.map(node => Samples.#sums(node[2 + i])));
		// Calls are known if a node of a function has a parent that is one, too.
		this.hasCalls = samples.nodes.some(([parent]) => parent >= 0 && samples.nodes[parent][0] >= 0);
		const share = value => what.amounts[this.amount].show(value);
		this.graph = new FlameGraph(view, find(`${what.stacks} canvas`), {
			of: node => node.name,
			lines: (node, part, own) => [node.object, `${share(node.value)}, ${Format.percent(part)} of all`,
				typeof node.key === "number" ? `itself ${share(own)}` : ""],
			colour: node => this.colours.get(node.object),
		}, STACK_DEPTH);
		if (what.choice)
			this.#offer(find(what.choice), samples.knows_ends ? what.amounts.length : what.known);
	}

	#offer(choice, count) {
		choice.replaceChildren(...this.what.amounts.slice(0, count).map(({ name }, i) => make("option", { value: i, text: name })));
		choice.onchange = () => {
			this.amount = Number(choice.value);
			this.draw();
		};
		find(`${this.what.choice}-note`).textContent = count < this.what.amounts.length ? this.what.unknown : "";
	}

	// A colour for each program and library, those in which most samples are first.
	static #coloursOf({ nodes, functions }) {
		const weights = new Map(functions.map(([, object]) => [object, 0]));
		for (const [parent, number, packed] of nodes)
			for (let i = 1; parent >= 0 && i < packed.length; i += 2)
				weights.set(functions[number][1], weights.get(functions[number][1]) + packed[i]);
		return new Map([...weights].sort((a, b) => b[1] - a[1]).map(([object], i) => [object, PALETTE[i % PALETTE.length]]));
	}

	// Of a node's samples: [first bin, samples before it], ... as two arrays.
	static #sums(packed) {
		const bins = [], before = [0];
		for (let i = 0, at = 0; i + 1 < packed.length; i += 2) {
			at += packed[i];
			bins.push(at++);
			before.push(before[before.length - 1] + packed[i + 1]);
		}
		return { bins, before };
	}

	// Samples in bins first to end (not included).
	static #between({ bins, before }, first, end) {
		const index = bin => {
			let low = 0, high = bins.length;
			while (low < high) {
				const middle = low + high >> 1;
				if (bins[middle] < bin)
					low = middle + 1;
				else
					high = middle;
			}
			return low;
		};
		return before[index(end)] - before[index(first)];
	}

	#build() {
		const { view: { low, high, model }, samples } = this;
		const [first, end] = binsOf(low, high, samples.bin_ns, samples.bins);
		const root = { name: this.what.all, object: "", value: 0, children: [], key: "all" };
		const made = samples.nodes.map(([parent, number], i) => parent < 0 ?
			{ name: model.processName(this.processes[number]), object: "", key: `process ${number}`, process: number, own: 0, value: 0, children: [] } :
			{ name: samples.functions[number][0], object: samples.functions[number][1], number, key: i, own: 0, value: 0, children: [] });
		for (let i = made.length - 1; i >= 0; i--) { // parents have smaller numbers
			const node = made[i], parent = samples.nodes[i][0];
			node.own = Samples.#between(this.sums[this.amount][i], first, end);
			node.value += node.own;
			if (parent < 0 && model.process !== ALL && node.process !== model.process || !node.value)
				continue;
			node.parent = parent < 0 ? root : made[parent];
			node.parent.value += node.value;
			node.parent.children.push(node);
		}
		const sort = node => node.children.sort((a, b) => b.value - a.value).forEach(sort);
		sort(root);
		return root;
	}

	draw() {
		if (this.section.hidden)
			return;
		const root = this.#build();
		this.graph.draw(root, this.what.label);
		find(this.what.note).textContent = root.value ? this.what.amounts[this.amount].sentence(root.value, this.hasCalls) : this.what.none;
		find(`${this.what.table} th:nth-child(2)`).textContent = this.what.amounts[this.amount].column;
		this.#table(root);
	}

	#table(root) {
		const rows = new Map();
		const visit = (node, above) => {
			const known = rows.get(node.number) || { own: 0, total: 0 };
			if (node.number !== undefined) {
				known.own += node.own;
				known.total += above.has(node.number) ? 0 : node.value; // a recursion counts once
				rows.set(node.number, known);
			}
			const inner = node.number === undefined || above.has(node.number) ? above : new Set(above).add(node.number);
			node.children.forEach(child => visit(child, inner));
		};
		visit(root, new Set());
		const sorted = [...rows].sort(([, a], [, b]) => b.own - a.own || b.total - a.total);
		find(`${this.what.table} tbody`).replaceChildren(...sorted.slice(0, TABLE_ROWS).map(([number, { own, total }]) => {
			const [name, object] = this.samples.functions[number];
			const colour = this.colours.get(object)[0];
			const swatch = make("span", { class: "swatch" });
			swatch.style.background = colour;
			return make("tr", { "data-name": name, "data-own": own, "data-total": total }, make("th", { scope: "row" }, swatch,
				make("span", { text: name }), make("small", { text: object })),
			...[Format.count(own), Format.percent(own / root.value), Format.percent(total / root.value)].map(text => make("td", { class: "n", text })));
		}));
		const more = this.samples.functions.some(([name, object]) => name === "(more)" && !object);
		find(this.what.more).textContent = (more ? "(more): calls with little each, for which the page has no room; " +
			"pem report --by function has them. " : "") + (sorted.length > TABLE_ROWS ? `${Format.count(sorted.length - TABLE_ROWS)} more functions have less.` : "");
	}
}
