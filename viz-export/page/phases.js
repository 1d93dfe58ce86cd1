// SPDX-License-Identifier: MIT
// phases.js - the strip of phases: labelled bars, drawn on a canvas since there may be thousands.
"use strict";

const PHASE_HEIGHT = 18;

class Phases {
	constructor(view) {
		this.view = view;
		this.row = find("#phases");
		this.canvas = find("#phases canvas");
		this.row.hidden = !view.model.phases.length;
		this.names = new Map();
		for (const phase of view.model.phases)
			if (!this.names.has(phase.name))
				this.names.set(phase.name, this.names.size);
	}

	// Beginnings of outermost phases in view, when few enough to be marked through all strips.
	static marksIn(view) {
		const times = [];
		for (const phase of view.model.selectedPhases)
			if (phase.row === 0 && phase.begin >= view.low && phase.begin < view.high)
				times.push(phase.begin);
		return times.length > Phases.MARKS_MAX ? [] : times;
	}

	draw(area) {
		if (this.row.hidden)
			return;
		const { model, low, high } = this.view;
		const height = Math.max(1, model.phaseRows) * PHASE_HEIGHT + 2;
		const ratio = window.devicePixelRatio || 1;
		const canvas = this.canvas;
		const plot = canvas.parentElement;
		this.area = { left: area.left - plot.offsetLeft, width: area.width };
		canvas.style.left = `${this.area.left}px`;
		canvas.style.width = `${area.width}px`;
		plot.style.height = canvas.style.height = `${height}px`;
		canvas.width = Math.round(area.width * ratio);
		canvas.height = Math.round(height * ratio);
		const context = canvas.getContext("2d");
		context.scale(ratio, ratio);
		context.font = "11px " + getComputedStyle(document.body).fontFamily;
		context.textBaseline = "middle";
		const shown = model.selectedPhases.filter(p => p.end >= low && p.begin < high);
		const right = []; // pixel up to which each row is drawn: bars thinner than a pixel draw once
		for (const phase of shown)
			if (phase.row >= 0)
				this.#bar(context, phase, area.width, right);
		this.#say(shown);
	}

	#bar(context, phase, width, right) {
		const { low, high, colours } = this.view;
		const x = Math.max(0, (phase.begin - low) / (high - low) * width);
		const end = Math.min(width, (phase.end - low) / (high - low) * width);
		const bar = Math.max(1, end - x - (end - x > 4 ? 1 : 0));
		if (x + bar <= right[phase.row])
			return;
		right[phase.row] = Math.ceil(x + bar);
		const y = phase.row * PHASE_HEIGHT + 1;
		// Names differ by strength of one colour; what tells them apart is their label.
		context.globalAlpha = [0.85, 0.5, 0.68, 0.36][this.names.get(phase.name) % 4];
		context.fillStyle = colours.APP;
		context.fillRect(x, y, bar, PHASE_HEIGHT - 2);
		context.globalAlpha = 1;
		this.#label(context, phase, x, y, bar);
	}

	#label(context, phase, x, y, bar) {
		if (bar < 18)
			return;
		let text = phase.name;
		const room = bar - 8;
		if (context.measureText(text).width > room) {
			while (text && context.measureText(text + "\u2026").width > room)
				text = text.slice(0, -1);
			if (text.length < 2)
				return;
			text += "\u2026";
		}
		const strong = this.names.get(phase.name) % 2 === 0;
		context.fillStyle = strong ? this.view.colours["phase-text"] : this.view.colours.text;
		context.fillText(text, x + 4, y + (PHASE_HEIGHT - 2) / 2 + 0.5);
	}

	#say(shown) {
		const model = this.view.model;
		const left = model.raw.phases.left_out;
		const hidden = shown.filter(p => p.row < 0).length;
		const all = model.selectedPhases.length;
		find("#phase-counts").textContent = (shown.length === all ? Format.count(all) :
			`${Format.count(shown.length)} of ${Format.count(all)}`) + (left ? `, the longest of ${Format.count(all + left)}` : "") +
			(hidden ? `; ${Format.count(hidden)} don't fit here` : "");
		this.row.dataset.inside = shown.length;
		this.row.dataset.total = all;
		this.canvas.setAttribute("aria-label", `${Format.count(shown.length)} phases in view: ` +
			shown.slice(0, 12).map(p => `${p.name} ${Format.duration(p.end - p.begin)}`).join(", "));
	}

	// The phase under a point of the canvas.
	at(x, y) {
		if (this.row.hidden || !this.area)
			return null;
		const { low, high, model } = this.view;
		const row = Math.floor((y - 1) / PHASE_HEIGHT);
		const time = low + x / this.area.width * (high - low);
		const slack = (high - low) / this.area.width;
		let best = null;
		for (const phase of model.selectedPhases)
			if (phase.row === row && phase.begin <= time + slack && phase.end >= time - slack)
				best = !best || phase.end - phase.begin > best.end - best.begin ? phase : best;
		return best;
	}

	connect() {
		this.canvas.addEventListener("pointermove", event => {
			const phase = this.at(event.offsetX, event.offsetY);
			this.canvas.title = phase ? `${phase.name}: ${Format.duration(phase.end - phase.begin)}` +
				(phase.pid ? `, process ${phase.pid}, thread ${phase.tid}` : "") + (phase.open ? ", not ended" : "") : "";
			this.canvas.style.cursor = phase ? "pointer" : "";
		});
		this.canvas.addEventListener("click", event => {
			const phase = this.at(event.offsetX, event.offsetY);
			if (phase)
				this.view.setTimes(phase.begin, Math.max(phase.end, phase.begin + 1));
		});
	}
}
Phases.MARKS_MAX = 60;
