// SPDX-License-Identifier: MIT
// brush.js - the overview of the whole run, and choosing an interval by mouse, touch, wheel and keys.
"use strict";

// The overview plot with a brush over it.
class Overview {
	constructor(view) {
		this.view = view;
		this.plot = null;
		this.div = find("#overview .chart");
		this.layer = make("div", { class: "brush-layer" });
		this.before = make("div", { class: "shade" });
		this.after = make("div", { class: "shade" });
		this.low = this.#handle("Start of the interval");
		this.high = this.#handle("End of the interval");
		this.brush = make("div", { class: "brush" }, this.low, this.high);
		this.layer.append(this.before, this.brush, this.after);
		find("#overview .plot").append(this.layer);
		this.#connect();
	}

	#handle(label) {
		return make("div", { class: "handle", role: "slider", tabindex: "0", "aria-label": label, "aria-valuemin": "0" });
	}

	show(metric) {
		if (this.plot)
			this.plot.destroy();
		this.plot = metric ? new Plot(this.div, metric, this.view, undefined) : null;
		find("#overview-name").textContent = metric ? metric.label.filter(Boolean).join(" ") : "";
		find("#overview-unit").textContent = metric ? metric.unit : "";
		this.draw();
	}

	draw() {
		const { model } = this.view;
		if (this.plot) {
			this.plot.draw(0, model.span_ns);
			this.div.setAttribute("aria-label", `Overview of the whole run: ${this.plot.metric.name}`);
		}
		const plot = this.div.parentElement;
		this.area = this.plot ? this.plot.area : { x: AXIS_WIDTH, w: Math.max(1, plot.clientWidth - AXIS_WIDTH - RIGHT_GAP) };
		this.left = plot.offsetLeft + this.area.x;
		this.layer.style.left = `${this.area.x}px`;
		this.layer.style.width = `${this.area.w}px`;
		drawAxis(find("#overview-axis .ticks"), { left: plot.offsetLeft + this.area.x, width: this.area.w }, 0,
			model.bins * model.bin_ns);
		this.drawBrush();
	}

	drawBrush() {
		const { model, first, end, low, high, isWhole } = this.view;
		const left = low / model.span_ns * 100, right = high / model.span_ns * 100;
		this.before.style.left = "0";
		this.before.style.width = `${left}%`;
		this.brush.style.left = `${left}%`;
		this.brush.style.width = `${right - left}%`;
		this.after.style.left = `${right}%`;
		this.after.style.width = `${100 - right}%`;
		this.brush.classList.toggle("whole", isWhole);
		for (const [handle, bin, time] of [[this.low, first, low], [this.high, end, high]]) {
			handle.setAttribute("aria-valuemax", model.bins);
			handle.setAttribute("aria-valuenow", bin);
			handle.setAttribute("aria-valuetext", Format.duration(time, 5));
		}
		this.#funnel(left / 100, right / 100);
		const step = Math.min(model.bin_ns, (high - low) / 100);
		Object.assign(find("#timeline").dataset, { lowNs: low, highNs: high });
		find("#interval").title = find("#interval").textContent = isWhole ? `Whole run, ${Format.duration(high)}` :
			`${Format.moment(low, step, high)} to ${Format.moment(high, step, high)} (${Format.duration(high - low)})`;
	}

	// From the brush to the full width of the strips.
	#funnel(left, right) {
		const row = find(".funnel");
		const x = this.left;
		const at = share => (x + share * this.area.w).toFixed(1);
		const height = 14; // as in style.css
		row.querySelector("polygon").setAttribute("points",
			`${at(left)},0 ${at(right)},0 ${at(1)},${height} ${at(0)},${height}`);
	}

	#shareAt(event) {
		const box = this.layer.getBoundingClientRect();
		return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
	}

	#connect() {
		const { view, layer } = this;
		let drag = null;
		layer.addEventListener("pointerdown", event => {
			if (event.button !== 0)
				return;
			const at = this.#shareAt(event) * view.model.span_ns;
			const part = event.target === this.low ? "low" : event.target === this.high ? "high" :
				event.target === this.brush && !view.isWhole ? "move" : "new";
			drag = { part, at, low: view.low, high: view.high };
			layer.setPointerCapture(event.pointerId);
			event.preventDefault();
		});
		layer.addEventListener("pointermove", event => {
			if (!drag)
				return;
			const at = this.#shareAt(event) * view.model.span_ns;
			this.#drag(drag, at);
		});
		const stop = () => drag = null;
		layer.addEventListener("pointerup", stop);
		layer.addEventListener("pointercancel", stop);
		layer.addEventListener("dblclick", () => view.reset());
		for (const [handle, side] of [[this.low, "low"], [this.high, "high"]])
			handle.addEventListener("keydown", event => this.#key(event, side));
	}

	#drag(drag, at) {
		const { view } = this;
		const { span_ns } = view.model;
		if (drag.part === "low") {
			view.setTimes(Math.min(at, drag.high - View.LEAST_NS), drag.high);
		} else if (drag.part === "high") {
			view.setTimes(drag.low, Math.max(at, drag.low + View.LEAST_NS));
		} else if (drag.part === "move") {
			const width = drag.high - drag.low, bin = width >= View.SNAP * view.model.bin_ns ? view.model.bin_ns : 1;
			const low = Math.min(span_ns - width, Math.max(0, drag.low + Math.round((at - drag.at) / bin) * bin));
			view.setTimes(low, low + width);
		} else if (Math.abs(at - drag.at) * this.area.w / span_ns > 3) {
			view.setTimes(Math.min(at, drag.at), Math.max(at, drag.at));
		}
	}

	#key(event, side) {
		const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
		if (!by)
			return;
		const { view } = this;
		const step = Math.max(1, Math.round(view.model.bins / 200)) * by * view.model.bin_ns;
		if (side === "low")
			view.setTimes(Math.max(0, Math.min(view.low + step, view.high - View.LEAST_NS)), view.high);
		else
			view.setTimes(view.low, Math.min(view.model.span_ns, Math.max(view.high + step, view.low + View.LEAST_NS)));
		event.preventDefault();
		event.stopPropagation();
	}
}

// Crosshair, drag to zoom, click and wheel over all that is aligned: phases, strips, lanes.
function connectAligned(view, strips, lanes) {
	const area = find("#aligned");
	const band = make("div", { class: "band", hidden: "" });
	area.append(band, strips.line);
	let from = null, to = null;
	const drawBand = () => {
		const { left, width } = strips.area;
		band.hidden = from === null || to === null;
		band.style.left = `${left + Math.min(from, to) * width}px`;
		band.style.width = `${Math.abs(to - from) * width}px`;
	};
	const clamp = share => Math.min(1, Math.max(0, share));
	area.addEventListener("pointermove", event => {
		const share = strips.shareAt(event.clientX);
		strips.point(share);
		lanes.point(...(from === null ? [event.clientX, event.clientY] : [null, null]));
		if (from === null || to === null && Math.abs(share - from) * strips.area.width <= 4)
			return;
		// Only a drag is captured, so that a click reaches what it is on.
		if (to === null)
			area.setPointerCapture(event.pointerId);
		to = clamp(share);
		drawBand();
	});
	area.addEventListener("pointerleave", () => {
		strips.point(null);
		lanes.point(null, null);
	});
	area.addEventListener("pointerdown", event => {
		const share = strips.shareAt(event.clientX);
		if (event.button !== 0 || event.pointerType === "touch" || share < 0 || share > 1 || event.target.closest("button, input, label"))
			return;
		from = share;
		to = null;
		event.preventDefault();
	});
	area.addEventListener("pointerup", event => {
		const { low, high } = view;
		if (from !== null && to !== null)
			view.setTimes(low + Math.min(from, to) * (high - low), low + Math.max(from, to) * (high - low));
		else if (from !== null)
			lanes.click(event.clientX, event.clientY);
		from = to = null;
		drawBand();
	});
	area.addEventListener("pointercancel", () => {
		from = to = null;
		drawBand();
	});
	area.addEventListener("dblclick", event => event.target.closest("button, input, label") || view.reset());
	area.addEventListener("wheel", event => {
		if (event.ctrlKey)
			view.zoom(event.deltaY > 0 ? 1.25 : 0.8, clamp(strips.shareAt(event.clientX)));
		else if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
			view.pan(event.deltaX / 800);
		else
			return;
		event.preventDefault();
	}, { passive: false });
}
