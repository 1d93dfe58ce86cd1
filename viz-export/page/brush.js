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

	show(event) {
		if (this.plot)
			this.plot.destroy();
		this.plot = event ? new Plot(this.div, event, this.view, undefined) : null;
		find("#overview-name").textContent = event ? event.specifier || event.name : "";
		find("#overview-unit").textContent = event ? event.unit : "";
		this.draw();
	}

	draw() {
		const { model } = this.view;
		if (this.plot) {
			this.plot.draw(0, model.bins);
			this.div.setAttribute("aria-label", `Overview of the whole run: ${this.plot.event.name}`);
		}
		const plot = this.div.parentElement;
		this.area = this.plot ? this.plot.area : { x: AXIS_WIDTH, w: Math.max(1, plot.clientWidth - AXIS_WIDTH - RIGHT_GAP) };
		this.layer.style.left = `${this.area.x}px`;
		this.layer.style.width = `${this.area.w}px`;
		drawAxis(find("#overview-axis .ticks"), { left: plot.offsetLeft + this.area.x, width: this.area.w }, 0,
			model.bins * model.bin_ns);
		this.drawBrush();
	}

	drawBrush() {
		const { model, first, end, low, high, isWhole } = this.view;
		const left = first / model.bins * 100, right = end / model.bins * 100;
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
		Object.assign(find("#timeline").dataset, { lowNs: low, highNs: high });
		find("#interval").textContent = isWhole ? `Whole run, ${Format.duration(high)}` :
			`${Format.moment(low, model.bin_ns, high)} to ${Format.moment(high, model.bin_ns, high)} (${Format.duration(high - low)})`;
	}

	// From the brush to the full width of the strips.
	#funnel(left, right) {
		const row = find(".funnel");
		const x = this.div.parentElement.offsetLeft + this.area.x;
		const at = share => (x + share * this.area.w).toFixed(1);
		const height = row.clientHeight;
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
			const at = this.#shareAt(event) * view.model.bins;
			const part = event.target === this.low ? "low" : event.target === this.high ? "high" :
				event.target === this.brush && !view.isWhole ? "move" : "new";
			drag = { part, at, first: view.first, end: view.end };
			layer.setPointerCapture(event.pointerId);
			event.preventDefault();
		});
		layer.addEventListener("pointermove", event => {
			if (!drag)
				return;
			const at = this.#shareAt(event) * view.model.bins;
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
		const width = drag.end - drag.first;
		if (drag.part === "low") {
			view.setBins(Math.min(Math.round(at), drag.end - 2), drag.end);
		} else if (drag.part === "high") {
			view.setBins(drag.first, Math.max(Math.round(at), drag.first + 2));
		} else if (drag.part === "move") {
			const first = Math.min(view.model.bins - width, Math.max(0, drag.first + Math.round(at - drag.at)));
			view.setBins(first, first + width);
		} else if (Math.abs(at - drag.at) * this.area.w / view.model.bins > 3) {
			view.setBins(Math.floor(Math.min(at, drag.at)), Math.ceil(Math.max(at, drag.at)));
		}
	}

	#key(event, side) {
		const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
		if (!by)
			return;
		const { view } = this;
		const step = Math.max(1, Math.round(view.model.bins / 200)) * by;
		if (side === "low")
			view.setBins(Math.max(0, Math.min(view.first + step, view.end - 2)), view.end);
		else
			view.setBins(view.first, Math.min(view.model.bins, Math.max(view.end + step, view.first + 2)));
		event.preventDefault();
		event.stopPropagation();
	}
}

// Crosshair, drag to zoom, and wheel over the strips.
function connectStrips(view, strips) {
	const area = strips.element;
	const band = make("div", { class: "band", hidden: "" });
	let from = null, to = null;
	const drawBand = () => {
		const { left, width } = strips.area;
		if (!band.isConnected)
			area.append(band);
		band.hidden = from === null || to === null;
		band.style.left = `${left + Math.min(from, to) * width}px`;
		band.style.width = `${Math.abs(to - from) * width}px`;
	};
	const clamp = share => Math.min(1, Math.max(0, share));
	area.addEventListener("pointermove", event => {
		const share = strips.shareAt(event.clientX);
		strips.point(share);
		if (from === null)
			return;
		to = clamp(share);
		drawBand();
	});
	area.addEventListener("pointerleave", () => strips.point(null));
	area.addEventListener("pointerdown", event => {
		const share = strips.shareAt(event.clientX);
		if (event.button !== 0 || event.pointerType === "touch" || share < 0 || share > 1)
			return;
		from = share;
		to = null;
		area.setPointerCapture(event.pointerId);
		event.preventDefault();
	});
	area.addEventListener("pointerup", () => {
		const { low, high } = view;
		if (from !== null && to !== null && Math.abs(to - from) * strips.area.width > 4)
			view.setTimes(low + Math.min(from, to) * (high - low), low + Math.max(from, to) * (high - low));
		from = to = null;
		drawBand();
	});
	area.addEventListener("pointercancel", () => {
		from = to = null;
		drawBand();
	});
	area.addEventListener("dblclick", () => view.reset());
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

function connectKeys(view) {
	const actions = {
		left: () => view.pan(-0.2), right: () => view.pan(0.2),
		in: () => view.zoom(0.5), out: () => view.zoom(2), reset: () => view.reset(),
	};
	const keys = { ArrowLeft: "left", ArrowRight: "right", "+": "in", "=": "in", "-": "out", Escape: "reset" };
	document.addEventListener("keydown", event => {
		const typing = event.target.closest && event.target.closest("select, input, textarea, pre");
		if (typing && event.key !== "Escape" || event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(keys, event.key))
			return;
		actions[keys[event.key]]();
		event.preventDefault();
	});
	for (const button of document.querySelectorAll("[data-do]"))
		button.addEventListener("click", () => actions[button.dataset.do]());
}
