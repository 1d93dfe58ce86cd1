// SPDX-License-Identifier: MIT
// plots.js - a plot of one metric, and a strip with one. Plots are dygraphs. Not here: all strips together (strips.js).
"use strict";

const AXIS_WIDTH = 52;
const RIGHT_GAP = 10;

// Points of a time, group bins each, as dygraphs wants them: [time, value, value of the other run], the last one twice.
function pointsOf(metric, view, low, high, group) {
	const step = view.model.bin_ns * group;
	const points = [];
	const other = metric.other;
	const known = value => Number.isFinite(value) ? value : null;
	// Groups lie at multiples of their size, so that panning does not change them.
	for (let at = Math.floor(low / step) * step; at < high; at += step) {
		const stop = Math.min(at + step, view.model.span_ns);
		const point = [at, stop > at ? known(metric.value(at, stop)) : null];
		if (other)
			point.push(at < view.model.overlay.end_ns ? known(other.value(at, at + step)) : null);
		points.push(point);
	}
	points.push([high, ...(points.length ? points[points.length - 1].slice(1) : [null])]);
	return points;
}

// isLog: durations, of which one may be a million times another.
function rangeOf(points, isLog) {
	let low = isLog ? Infinity : 0, high = 0;
	for (const [, ...values] of points)
		for (const value of values)
			if (value !== null && (value > 0 || !isLog)) {
				low = Math.min(low, value);
				high = Math.max(high, value);
			}
	if (isLog)
		return high ? [low / 2, high * 1.5] : [1, 10];
	if (low === high)
		high = low + 1;
	return [low * 1.1, high * 1.1];
}

function plotOptions(view, metric) {
	const colours = [view.colours[metric.layerKey], view.colours.overlay];
	const show = v => metric.unit === "ns" ? Format.duration(v) : Format.si(v);
	return {
		logscale: metric.unit === "ns",
		labels: metric.other ? ["time", "value", "other"] : ["time", "value"],
		colors: metric.other ? colours : colours.slice(0, 1),
		series: metric.other ? { other: { fillGraph: false, strokePattern: [5, 3], strokeWidth: 1.4 } } : {},
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
				ticker: (low, high, pixels) => (metric.unit === "ns" ? Format.decades(low, high, pixels / 18) :
					Format.valueTicks(low, high, pixels / 24)).map(v => ({ v, label: show(v) })),
			},
		},
	};
}

// A dygraph of one metric over a time that its owner gives.
class Plot {
	constructor(div, metric, view, underlay) {
		this.div = div;
		this.metric = metric;
		this.view = view;
		this.underlay = underlay;
		this.graph = null;
	}

	draw(low, high, width) {
		this.group = this.view.grouping(low, high, (width || this.div.clientWidth) - AXIS_WIDTH - RIGHT_GAP);
		const points = pointsOf(this.metric, this.view, low, high, this.group);
		this.div.classList.toggle("empty", points.every(point => point.slice(1).every(value => value === null)));
		const changing = { file: points, dateWindow: [low, high], valueRange: rangeOf(points, this.metric.unit === "ns") };
		const look = `${this.view.look} ${Boolean(this.metric.other)}`;
		if (this.graph && this.drawn === look) {
			this.graph.updateOptions(changing);
			return;
		}
		this.drawn = look;
		const options = { ...plotOptions(this.view, this.metric), ...changing, underlayCallback: this.underlay };
		// dygraphs keeps options of series that are gone.
		if (this.graph && this.graph.getLabels().length !== options.labels.length)
			this.destroy();
		if (this.graph) {
			this.graph.resize();
			this.graph.updateOptions(options);
		} else {
			delete options.file;
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
	constructor(metric, view, { refer, remove }) {
		this.metric = metric;
		this.view = view;
		this.counts = make("span", { class: "counts" });
		this.chip = make("span", { class: "chip", hidden: "" });
		this.relation = make("button", { type: "button", class: "relation" });
		this.relation.addEventListener("click", () => refer(metric));
		const away = make("button", { type: "button", class: "away", text: "\u00d7", title: "Hide this strip", "aria-label": `Hide ${metric.name}` });
		away.addEventListener("click", () => remove(metric));
		const chart = make("div", { class: "chart", role: "img" });
		const [above, word] = metric.label;
		const label = make("div", { class: "label", title: `${metric.name}\n${metric.description || ""}` },
			make("strong", {}, make("span", { class: "class", text: above }), make("span", { text: word })),
			make("span", { class: "unit", text: metric.unit === "ns" ? "mean, by powers of ten" : metric.unit }), this.counts);
		this.plotDiv = make("div", { class: "plot" }, chart, this.chip);
		this.rail = make("div", { class: "rail", title: metric.layerInfo.name, "data-layer": metric.layerKey });
		this.element = make("div", { class: "row strip", "data-metric": metric.name, "data-kind": metric.kind }, this.rail, label, this.plotDiv,
			make("div", { class: "side" }, this.relation), away);
		this.element.strip = this;
		if (metric instanceof TraceEvent)
			this.element.dataset.event = metric.name;
		this.plot = new Plot(chart, metric, view, (context, area, graph) => this.#marks(context, area, graph));
	}

	draw(width) {
		const { low, high } = this.view;
		const { metric } = this;
		const inside = metric.count(low, high);
		const total = metric.selectedTotal;
		const noun = { rate: "", mean: total === 1 ? " interval" : " intervals" }[metric.kind] ?? (total === 1 ? " sample" : " samples");
		const text = Number.isNaN(total) ? "" : (inside === total ? "" : `${Format.count(inside)} of `) + Format.count(total) +
			(metric.kind === "mean" && metric.unit !== "ns" ? " samples" : noun);
		this.counts.textContent = text;
		this.element.dataset.inside = inside;
		this.element.dataset.total = total;
		this.plot.draw(low, high, width);
		const value = metric.value(low, high);
		chartLabel(this.plot.div, `${metric.name}: ${text}, ${metric.unit === "ns" ? Format.duration(value) :
			`${Format.si(value)} ${metric.unit}`} on average`);
	}

	// Where outermost phases begin, through every strip, unless they are too many to tell apart.
	#marks(context, area, graph) {
		context.fillStyle = this.view.colours.mark;
		for (const time of this.view.marks || []) {
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
		const { low, high, model } = this.view;
		const step = (this.plot.group || 1) * model.bin_ns;
		const from = Math.floor((low + share * (high - low)) / step) * step;
		const to = Math.min(model.span_ns, from + step);
		const say = metric => metric.words ? metric.words(from, to) : Format.si(metric.value(from, to));
		const area = this.plot.area;
		this.chip.textContent = say(this.metric) + (!this.metric.other ? "" : from < model.overlay.end_ns ? ` / ${say(this.metric.other)}` : " / \u2013");
		this.chip.classList.toggle("flip", share > 0.85);
		this.chip.style.left = `${area.x + share * area.w}px`;
	}
}

function chartLabel(div, text) {
	div.setAttribute("aria-label", text);
}
