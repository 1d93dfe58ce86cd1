// SPDX-License-Identifier: MIT
// view.js - what is being looked at: the interval, in whole bins, and the colours. Not here: drawing.
"use strict";

// An element with text and attributes; text never becomes markup.
function make(tag, { text, ...attributes } = {}, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes))
		element.setAttribute(name, value);
	if (text !== undefined)
		element.textContent = text;
	element.append(...children);
	return element;
}

const find = selector => document.querySelector(selector);

class View {
	constructor(model) {
		this.model = model;
		this.first = 0;
		this.end = model.bins; // not included
		this.listeners = [];
		this.pending = false;
		this.colours = {};
		this.readColours();
	}

	get low() {
		return this.first * this.model.bin_ns;
	}

	get high() {
		return this.end * this.model.bin_ns;
	}

	get isWhole() {
		return this.first === 0 && this.end === this.model.bins;
	}

	onChange(listener) {
		this.listeners.push(listener);
	}

	// Tell everybody, once per frame.
	changed() {
		if (this.pending)
			return;
		this.pending = true;
		requestAnimationFrame(() => this.flush());
	}

	flush() {
		this.pending = false;
		for (const listener of this.listeners)
			listener();
	}

	// Show the bins that the interval touches.
	setTimes(low, high) {
		const bin = this.model.bin_ns;
		this.setBins(Math.floor(low / bin + 1e-6), Math.ceil(high / bin - 1e-6));
	}

	setBins(first, end) {
		const bins = this.model.bins;
		const width = Math.min(bins, Math.max(Math.min(2, bins), Math.round(end - first)));
		first = Math.min(bins - width, Math.max(0, Math.round(first)));
		if (first === this.first && first + width === this.end)
			return;
		this.first = first;
		this.end = first + width;
		this.changed();
	}

	reset() {
		this.setBins(0, this.model.bins);
	}

	pan(share) {
		const by = Math.sign(share) * Math.max(1, Math.round(Math.abs(share) * (this.end - this.first)));
		const width = this.end - this.first;
		const first = Math.min(this.model.bins - width, Math.max(0, this.first + by));
		this.setBins(first, first + width);
	}

	// factor below 1 zooms in; at: the share of the interval that stays where it is.
	zoom(factor, at = 0.5) {
		const width = this.end - this.first;
		let next = Math.round(width * factor);
		if (next === width)
			next += factor > 1 ? 1 : -1;
		const first = this.first + Math.round((width - next) * at);
		this.setBins(first, first + next);
	}

	// Bins drawn as one point where width pixels are there, two pixels each at least.
	grouping(first, end, width) {
		return Math.max(1, Math.ceil((end - first) / Math.max(1, width / 2)));
	}

	readColours() {
		const style = getComputedStyle(document.documentElement);
		for (const name of ["APP", "OS", "HW", "CPO", "other", "grid", "axis", "mark", "text", "phase-text", "paper", "running", "waiting", "blocked"])
			this.colours[name] = style.getPropertyValue("--" + name).trim();
	}
}
