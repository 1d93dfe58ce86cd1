// SPDX-License-Identifier: MIT
// strips.js - all strips, their order, the axis under them, the crosshair, and how they correlate. area: the plotting area
// of every row, in pixels of the row.
"use strict";

class Strips {
	constructor(view, element, remove) {
		this.view = view;
		this.element = element;
		this.remove = remove;
		this.strips = [];
		this.reference = null;
		this.line = make("div", { class: "crosshair", hidden: "" });
		this.time = make("span", { class: "time-chip", hidden: "" });
		find("#axis").append(this.time);
	}

	show(metrics) {
		const had = new Map(this.strips.map(strip => [strip.metric, strip]));
		const how = { refer: metric => this.refer(metric), remove: this.remove };
		this.strips = metrics.map(metric => had.get(metric) || new Strip(metric, this.view, how));
		for (const [metric, strip] of had)
			if (!metrics.includes(metric))
				strip.plot.destroy();
		if (!metrics.includes(this.reference))
			this.reference = metrics.find(metric => metric.kind === "mean") || metrics[0] || null;
		this.element.replaceChildren(...this.strips.map(strip => strip.element));
		if (!this.strips.length)
			this.element.prepend(make("p", { class: "empty", text: this.view.model.metrics.length ?
				"No strip is chosen: press / and choose some." : "No strip: no event was recorded." }));
		find("#strip-head").hidden = this.strips.length < 2;
		// The layer's name stands once, at its first strip.
		this.strips.forEach((strip, i) => {
			const begins = i === 0 || this.strips[i - 1].metric.layerKey !== strip.metric.layerKey;
			strip.element.classList.toggle("begins-layer", begins);
			strip.rail.replaceChildren(...(begins ? [make("span", { text: strip.metric.layerInfo.short })] : []));
		});
		this.draw();
	}

	draw() {
		this.#measure();
		this.#frame();
		for (const strip of this.strips)
			strip.draw(this.width);
		this.relate();
	}

	// The same where only the time changed: strips out of sight and correlations are left to drawRest.
	drawSeen() {
		this.#frame();
		const seen = strip => strip.isSeen !== false;
		this.unseen = this.strips.filter(strip => !seen(strip));
		for (const strip of this.strips.filter(seen))
			strip.draw(this.width);
	}

	drawRest() {
		for (const strip of this.unseen || [])
			strip.draw(this.width);
		this.unseen = [];
		this.relate();
	}

	// Sizes, once for many frames: asking for them while the page changes lays it out each time.
	#measure() {
		const strip = this.strips[0];
		const plot = strip ? strip.plotDiv : find("#overview .plot");
		this.width = plot.clientWidth;
		this.area = { left: plot.offsetLeft + AXIS_WIDTH, width: Math.max(1, this.width - AXIS_WIDTH - RIGHT_GAP) };
		if (this.observer)
			this.observer.disconnect();
		this.observer = new IntersectionObserver(entries => {
			for (const entry of entries)
				entry.target.strip.isSeen = entry.isIntersecting;
		}, { rootMargin: "40px" });
		for (const each of this.strips)
			this.observer.observe(each.element);
	}

	#frame() {
		const { view } = this;
		view.marks = Phases.marksIn(view);
		this.point(null);
		const group = view.grouping(view.low, view.high, this.area.width);
		const bin = Format.duration(view.model.bin_ns);
		find("#bins").textContent = `Bins of ${bin}` + (group > 1 ? `; each step shows ${group} of them (` +
			`${Format.duration(group * view.model.bin_ns)})` : "") +
			(view.isWhole ? "" : `. ${Format.count(view.end - view.first)} bins in view, counted whole`) + ".";
		drawAxis(find("#axis .ticks"), this.area, view.low, view.high);
	}

	refer(metric) {
		this.reference = metric;
		this.relate();
	}

	// Beside each strip: how it goes with the reference over the time in view.
	relate() {
		if (!this.reference)
			return;
		const { reference, view } = this;
		const known = new Map(); // the reference in bins of each width
		for (const { metric, relation } of this.strips) {
			// Both in bins of the wider ones.
			const width = Math.max(Correlation.width(reference, view.model), Correlation.width(metric, view.model));
			if (!known.has(width))
				known.set(width, Correlation.series(reference, view, width));
			Correlation.show(relation, metric, reference,
				metric === reference ? null : Correlation.of(known.get(width), Correlation.series(metric, view, width)));
		}
	}

	shareAt(clientX) {
		const { left, width } = this.area;
		return (clientX - this.element.getBoundingClientRect().left - left) / width;
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
		this.line.style.left = this.time.style.left = `${left + share * width}px`;
		this.time.textContent = Format.moment(low + share * (high - low), (high - low) / 1000, high);
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
