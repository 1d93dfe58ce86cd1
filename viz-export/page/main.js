// SPDX-License-Identifier: MIT
// main.js - puts the page together once its data are decoded.
"use strict";

function fillProcesses(model) {
	const select = find("#process");
	select.append(make("option", { value: ALL, text: model.raw.processes.length > 1 ?
		`all ${Format.count(model.raw.processes.reduce((n, p) => n + (p.merged || 1), 0))}` : "all" }));
	model.raw.processes.forEach((process, i) =>
		select.append(make("option", { value: i, text: model.processName(process) })));
}

function fillOverview(model) {
	const select = find("#overview-event");
	model.metrics.forEach((metric, i) => select.append(make("option", { value: i, text: metric.name })));
	// At first what happens all along the run: the event in most bins.
	const spread = event => event.counts.reduce((n, count) => n + (count > 0), 0);
	let best = null, most = -1;
	for (const event of model.events.filter(other => other.series.length)) {
		// A sample or a counter comes with its clock, whatever the program does.
		const n = event.kind !== "rate" || event.meaning === "sample" ? -1 : spread(event);
		if (n > most)
			[best, most] = [event, n];
	}
	best = best || model.metrics[0] || null;
	if (best)
		select.value = model.metrics.indexOf(best);
	return best;
}

function start() {
	const model = new Model(JSON.parse(find("#data").textContent));
	const view = new View(model);
	view.look = 0; // counts what changes how plots look, besides the time
	showHeader(model.raw);
	showNotices(model.raw);
	showCosts(model.raw);
	find("#licence-text").textContent = find("#licence").textContent.trim();
	fillProcesses(model);
	const overview = new Overview(view);
	const strips = new Strips(view, find("#strips"), metric => chooser.set(metric, false));
	const phases = new Phases(view);
	const lanes = new Lanes(view);
	showSentence(model, lanes.lanes);
	const flame = new Flame(view);
	const samples = new Samples(view, STACKS_OF_SAMPLES), allocations = new Samples(view, STACKS_OF_ALLOCATIONS);
	const table = new EventTable(view);
	const chooser = new Chooser(model, () => {
		strips.show(chooser.chosen);
		phases.draw(strips.area);
		lanes.draw(strips.area);
	});
	// What is not seen while a brush moves is drawn in the first frame in which it rests.
	let waiting = 0;
	const later = () => {
		cancelAnimationFrame(waiting);
		waiting = requestAnimationFrame(() => {
			if (view.pending)
				return; // the next change calls again
			strips.drawRest();
			flame.draw();
			samples.draw();
			allocations.draw();
			table.draw();
		});
	};
	const drawAll = () => {
		view.readColours();
		view.look++;
		overview.draw();
		strips.show(chooser.chosen);
		phases.draw(strips.area);
		lanes.draw(strips.area);
		flame.draw();
		samples.draw();
		allocations.draw();
		table.draw();
	};
	overview.show(fillOverview(model));
	drawAll();
	view.onChange(() => {
		overview.drawBrush();
		strips.drawSeen();
		phases.draw(strips.area);
		lanes.draw(strips.area);
		later();
	});
	find("#process").addEventListener("change", event => {
		model.select(Number(event.target.value));
		Overlay.follow(model);
		lanes.select(model.process);
		drawAll();
	});
	find("#overview-event").addEventListener("change", event => overview.show(model.metrics[event.target.value]));
	connectAligned(view, strips, lanes);
	connectKeys(view, chooser);
	phases.connect();
	Overlay.connect(model, drawAll);
	followSize(drawAll);
	document.documentElement.dataset.ready = "yes";
}

function followSize(drawAll) {
	let width = find("#timeline").clientWidth;
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
}

try {
	start();
} catch (error) {
	find("#notices").append(make("p", { class: "failure", text: `The page could not draw this trace: ${error.message}` }));
	throw error;
}
