// SPDX-License-Identifier: MIT
// main.js - puts the page together once its data are decoded.
"use strict";

const STRIPS_AT_FIRST = 16;

// Which strips are shown, in which order: boxes and arrows in the toolbar.
class Chooser {
	constructor(model, changed) {
		this.changed = changed;
		this.order = model.events.filter(event => event.series.length);
		// The end of an interval has no strip of its own: that of its begin shows the durations.
		const busiest = this.order.filter(event => !event.isTwin)
			.sort((a, b) => b.total - a.total).slice(0, STRIPS_AT_FIRST);
		this.shown = new Set(busiest);
		this.list = find("#chooser-list");
		this.draw();
	}

	get chosen() {
		return this.order.filter(event => this.shown.has(event));
	}

	count() {
		find("#chooser summary").textContent = `Strips: ${this.chosen.length} of ${this.order.length}`;
	}

	draw() {
		this.count();
		this.list.replaceChildren(...this.order.map((event, i) => {
			const box = make("input", { type: "checkbox" });
			box.checked = this.shown.has(event);
			box.addEventListener("change", () => {
				if (box.checked)
					this.shown.add(event);
				else
					this.shown.delete(event);
				this.count();
				this.changed();
			});
			const move = (by, text, label) => {
				const button = make("button", { type: "button", text, "aria-label": `${label} ${event.name}` });
				button.disabled = i + by < 0 || i + by >= this.order.length;
				button.addEventListener("click", () => this.#move(i, by));
				return button;
			};
			return make("div", { "data-event": event.name }, make("label", {}, box, make("span", { class: "swatch", "data-layer": event.layerKey }),
				document.createTextNode(event.title)), move(-1, "\u2191", "Move up"), move(1, "\u2193", "Move down"));
		}));
	}

	#move(i, by) {
		const [event] = this.order.splice(i, 1);
		this.order.splice(i + by, 0, event);
		this.draw();
		const buttons = this.list.children[i + by].querySelectorAll("button");
		const again = buttons[by < 0 ? 0 : 1];
		(again.disabled ? buttons[by < 0 ? 1 : 0] : again).focus();
		this.changed();
	}
}

function fillProcesses(model) {
	const select = find("#process");
	select.append(make("option", { value: ALL, text: model.raw.processes.length > 1 ?
		`all ${Format.count(model.raw.processes.reduce((n, p) => n + (p.merged || 1), 0))}` : "all" }));
	model.raw.processes.forEach((process, i) =>
		select.append(make("option", { value: i, text: model.processName(process) })));
}

function fillOverview(model) {
	const select = find("#overview-event");
	const events = model.events.filter(event => event.series.length);
	events.forEach(event => select.append(make("option", { value: event.index, text: event.name })));
	// At first what happens all along the run: the event in most bins.
	const spread = event => event.counts.reduce((n, count) => n + (count > 0), 0);
	let best = null, most = -1;
	for (const event of events) {
		// A sample or a counter comes with its clock, whatever the program does.
		const n = event.kind !== "rate" || event.meaning === "sample" ? -1 : spread(event);
		if (n > most)
			[best, most] = [event, n];
	}
	best = best || events[0] || null;
	if (best)
		select.value = best.index;
	return best;
}

function start() {
	const model = new Model(JSON.parse(find("#data").textContent));
	const view = new View(model);
	showHeader(model.raw);
	showNotices(model.raw);
	showCosts(model.raw);
	find("#licence-text").textContent = find("#licence").textContent.trim();
	fillProcesses(model);
	const overview = new Overview(view);
	const strips = new Strips(view, find("#strips"));
	const phases = new Phases(view);
	const lanes = new Lanes(view);
	const table = new EventTable(view);
	const chooser = new Chooser(model, () => strips.show(chooser.chosen));

	const drawAll = () => {
		view.readColours();
		overview.draw();
		strips.show(chooser.chosen);
		phases.draw(strips.area);
		lanes.draw(strips.area);
		table.draw();
	};
	overview.show(fillOverview(model));
	drawAll();
	view.onChange(() => {
		overview.drawBrush();
		strips.draw();
		phases.draw(strips.area);
		lanes.draw(strips.area);
		table.draw();
	});
	find("#process").addEventListener("change", event => {
		model.select(Number(event.target.value));
		drawAll();
	});
	find("#overview-event").addEventListener("change", event =>
		overview.show(model.events.find(other => other.index === Number(event.target.value))));
	connectStrips(view, strips);
	connectKeys(view);
	phases.connect();
	lanes.connect();

	let width = 0;
	new ResizeObserver(() => {
		if (width === find("#timeline").clientWidth)
			return;
		width = find("#timeline").clientWidth;
		drawAll();
	}).observe(find("#timeline"));
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
	const printing = on => {
		document.documentElement.classList.toggle("printing", on);
		drawAll();
	};
	window.addEventListener("beforeprint", () => printing(true));
	window.addEventListener("afterprint", () => printing(false));
	document.documentElement.dataset.ready = "yes";
}

try {
	start();
} catch (error) {
	find("#notices").append(make("p", { class: "failure", text: `The page could not draw this trace: ${error.message}` }));
	throw error;
}
