// SPDX-License-Identifier: MIT
// plots.js - one strip per event, aligned, and the crosshair over all of them. Plots are dygraphs.
"use strict";

const AXIS_WIDTH = 52;
const RIGHT_GAP = 10;

// Points of bins first to end, group bins each, as dygraphs wants them: [time, value], the last one twice.
function pointsOf(event, view, first, end, group) {
	const bin = view.model.bin_ns;
	const points = [];
	// Groups lie at multiples of their size, so that panning does not change them.
	for (let at = Math.floor(first / group) * group; at < end; at += group) {
		const stop = Math.min(at + group, view.model.bins);
		const value = event.valueIn(at, stop, bin);
		points.push([at * bin, Number.isNaN(value) ? null : value]);
	}
	points.push([end * bin, points.length ? points[points.length - 1][1] : null]);
	return points;
}

function rangeOf(points) {
	let low = 0, high = 0;
	for (const [, value] of points)
		if (value !== null && Number.isFinite(value)) {
			low = Math.min(low, value);
			high = Math.max(high, value);
		}
	if (low === high)
		high = low + 1;
	return [low * 1.1, high * 1.1];
}

function plotOptions(view, colour) {
	return {
		labels: ["time", "value"],
		colors: [colour],
		stepPlot: true,
		fillGraph: true,
		fillAlpha: 0.22,
		strokeWidth: 1.1,
		axisLineColor: view.colours.axis,
		gridLineColor: view.colours.grid,
		gridLineWidth: 1,
		axisLabelFontSize: 10,
		legend: "never",
		highlightCircleSize: 0,
		interactionModel: {},
		rightGap: RIGHT_GAP,
		xRangePad: 0,
		axes: {
			x: { drawAxis: false, ticker: (low, high) => Format.ticks(low, high, 8).list.map(v => ({ v, label: "" })) },
			y: {
				axisLabelWidth: AXIS_WIDTH - 4,
				ticker: (low, high, pixels) => Format.valueTicks(low, high, pixels / 24)
					.map(v => ({ v, label: Format.si(v) })),
			},
		},
	};
}

// A dygraph of one event over an interval that its owner gives.
class Plot {
	constructor(div, event, view, underlay) {
		this.div = div;
		this.event = event;
		this.view = view;
		this.underlay = underlay;
		this.graph = null;
	}

	draw(first, end) {
		const bin = this.view.model.bin_ns;
		const width = this.div.clientWidth - AXIS_WIDTH - RIGHT_GAP;
		this.group = this.view.grouping(first, end, width);
		const points = pointsOf(this.event, this.view, first, end, this.group);
		this.div.classList.toggle("empty", points.every(([, value]) => value === null));
		const options = {
			...plotOptions(this.view, this.view.colours[this.event.layerKey]),
			dateWindow: [first * bin, end * bin],
			valueRange: rangeOf(points),
			underlayCallback: this.underlay,
		};
		if (this.graph) {
			this.graph.resize();
			this.graph.updateOptions({ file: points, ...options });
		} else {
			this.graph = new Dygraph(this.div, points, options);
		}
	}

	// Of the plotting area, in pixels of the div.
	get area() {
		return this.graph ? this.graph.getArea() : { x: AXIS_WIDTH, w: Math.max(1, this.div.clientWidth - AXIS_WIDTH - RIGHT_GAP) };
	}

	destroy() {
		if (this.graph)
			this.graph.destroy();
		this.graph = null;
	}
}

class Strip {
	constructor(event, view) {
		this.event = event;
		this.view = view;
		this.counts = make("span", { class: "counts" });
		this.chip = make("span", { class: "chip", hidden: "" });
		const chart = make("div", { class: "chart", role: "img" });
		const label = make("div", { class: "label", title: event.description || event.name },
			make("strong", {}, make("span", { class: "class", text: event.class }), make("span", { text: event.label })),
			make("span", { class: "unit", text: event.unit }), this.counts);
		this.plotDiv = make("div", { class: "plot" }, chart, this.chip);
		this.rail = make("div", { class: "rail", title: event.layerInfo.name, "data-layer": event.layerKey });
		this.element = make("div", { class: "row strip", "data-event": event.name }, this.rail, label, this.plotDiv);
		this.plot = new Plot(chart, event, view, (context, area, graph) => this.#marks(context, area, graph));
	}

	draw() {
		const { first, end } = this.view;
		const inside = this.event.countIn(first, end);
		const what = this.event.kind === "rate" ? "" : this.event.kind === "duration" ? " time" : " sample";
		const total = this.event.selectedTotal;
		this.counts.textContent = (inside === total ? "" : `${Format.count(inside)} of `) + Format.count(total) +
			(what && (total === 1 ? what : what + "s"));
		this.element.dataset.inside = inside;
		this.element.dataset.total = total;
		this.plot.draw(first, end);
		this.plot.div.setAttribute("aria-label", `${this.event.name}: ${Format.count(inside)} of ${Format.count(total)} ` +
			`events, ${Format.si(this.event.valueIn(first, end, this.view.model.bin_ns))} ${this.event.unit} on average`);
	}

	// Where outermost phases begin, through every strip, unless they are too many to tell apart.
	#marks(context, area, graph) {
		const marks = Phases.marksIn(this.view);
		context.fillStyle = this.view.colours.mark;
		for (const time of marks) {
			const x = Math.round(graph.toDomXCoord(time));
			if (x > area.x && x < area.x + area.w)
				context.fillRect(x, area.y, 1, area.h);
		}
	}

	// Value under the crosshair at a share of the interval; null: none.
	point(share) {
		this.chip.hidden = share === null;
		if (share === null)
			return;
		const { first, end, model } = this.view;
		const group = this.plot.group || 1;
		const at = Math.min(model.bins - 1, Math.floor(first + share * (end - first)));
		const start = Math.floor(at / group) * group;
		const value = this.event.valueIn(start, Math.min(model.bins, start + group), model.bin_ns);
		const area = this.plot.area;
		this.chip.textContent = Format.si(value);
		this.chip.classList.toggle("flip", share > 0.85);
		this.chip.style.left = `${area.x + share * area.w}px`;
	}
}

// All strips, their order, and the crosshair.
class Strips {
	constructor(view, element) {
		this.view = view;
		this.element = element;
		this.strips = [];
		this.line = make("div", { class: "crosshair", hidden: "" });
		this.time = make("span", { class: "time-chip", hidden: "" });
		find("#axis").append(this.time);
	}

	show(events) {
		const had = new Map(this.strips.map(strip => [strip.event, strip]));
		this.strips = events.map(event => had.get(event) || new Strip(event, this.view));
		for (const [event, strip] of had)
			if (!events.includes(event))
				strip.plot.destroy();
		this.element.replaceChildren(...this.strips.map(strip => strip.element), this.line);
		if (!this.strips.length)
			this.element.prepend(make("p", { class: "empty", text: "No strip is chosen, or no event was recorded." }));
		// The layer's name stands once, at its first strip.
		this.strips.forEach((strip, i) => {
			const begins = i === 0 || this.strips[i - 1].event.layerKey !== strip.event.layerKey;
			strip.element.classList.toggle("begins-layer", begins);
			strip.rail.replaceChildren(...(begins ? [make("span", { text: strip.event.layerInfo.short })] : []));
		});
		const room = window.innerHeight - 400;
		const height = Math.round(Math.min(96, Math.max(50, room / Math.max(1, this.strips.length))));
		this.element.style.setProperty("--strip-height", `${height}px`);
		this.draw();
	}

	draw() {
		for (const strip of this.strips)
			strip.draw();
		this.point(null);
		const { first, end, low, high } = this.view;
		const group = this.strips.length ? this.strips[0].plot.group : 1;
		const bin = Format.duration(this.view.model.bin_ns);
		find("#bins").textContent = `Bins of ${bin}` + (group > 1 ? `; each step shows ${group} of them (` +
			`${Format.duration(group * this.view.model.bin_ns)})` : "") +
			(this.view.isWhole ? "" : `. ${Format.count(end - first)} bins in view`) + ".";
		drawAxis(find("#axis .ticks"), this.area, low, high);
	}

	// The plotting area relative to a row.
	get area() {
		const strip = this.strips[0];
		const plot = strip ? strip.plotDiv : find("#overview .plot");
		const area = strip ? strip.plot.area : { x: AXIS_WIDTH, w: plot.clientWidth - AXIS_WIDTH - RIGHT_GAP };
		return { left: plot.offsetLeft + area.x, width: area.w };
	}

	shareAt(clientX) {
		const { left, width } = this.area;
		const share = (clientX - this.element.getBoundingClientRect().left - left) / width;
		return share;
	}

	point(share) {
		const outside = share === null || share < 0 || share > 1;
		this.line.hidden = this.time.hidden = outside;
		for (const strip of this.strips)
			strip.point(outside ? null : share);
		if (outside)
			return;
		const { left, width } = this.area;
		const { low, high } = this.view;
		// From the top of the phases down.
		this.line.style.top = `${-find("#phases").offsetHeight}px`;
		this.line.style.left = this.time.style.left = `${left + share * width}px`;
		this.time.textContent = Format.moment(low + share * (high - low), Math.max(this.view.model.bin_ns, (high - low) / 1000), high);
	}
}

// Ticks of time under a plotting area.
function drawAxis(element, area, low, high) {
	const { step, list } = Format.ticks(low, high, area.width / 110);
	element.style.left = `${area.left}px`;
	element.style.width = `${area.width}px`;
	element.replaceChildren(...list.map(time => {
		const tick = make("span", { text: Format.moment(time, step, high) });
		const share = (time - low) / (high - low);
		tick.style.left = `${share * 100}%`;
		tick.className = share < 0.02 ? "at-start" : share > 0.98 ? "at-end" : "";
		return tick;
	}));
}
