// SPDX-License-Identifier: MIT
// view.js - what is being looked at: a time, and the colours. Not here: drawing.
// A wide view begins and ends with bins, so that its counts are exact. A narrow one is of any nanosecond.
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
		this.low = 0; // ns
		this.high = model.span_ns; // not included
		this.listeners = [];
		this.pending = false;
		this.colours = {};
		this.readColours();
	}

	// The bins in view.
	get first() {
		return binsOf(this.low, this.high, this.model.bin_ns, this.model.bins)[0];
	}

	get end() {
		return binsOf(this.low, this.high, this.model.bin_ns, this.model.bins)[1];
	}

	get isWhole() {
		return this.low === 0 && this.high === this.model.span_ns;
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

	setTimes(low, high) {
		const { bin_ns, span_ns } = this.model;
		if (high - low >= View.SNAP * bin_ns || high - low >= span_ns) {
			low = Math.floor(low / bin_ns + 1e-6) * bin_ns;
			high = Math.ceil(high / bin_ns - 1e-6) * bin_ns;
		}
		const width = Math.min(span_ns, Math.max(View.LEAST_NS, Math.round(high - low)));
		low = Math.min(span_ns - width, Math.max(0, Math.round(low)));
		if (low === this.low && low + width === this.high)
			return;
		this.low = low;
		this.high = low + width;
		this.changed();
	}

	reset() {
		this.setTimes(0, this.model.span_ns);
	}

	// Whole bins stay whole bins.
	#even(ns) {
		const { bin_ns } = this.model;
		return this.high - this.low >= View.SNAP * bin_ns ? Math.sign(ns) * Math.max(1, Math.round(Math.abs(ns) / bin_ns)) * bin_ns : ns;
	}

	pan(share) {
		const width = this.high - this.low;
		const low = Math.min(this.model.span_ns - width, Math.max(0, this.low + this.#even(share * width)));
		this.setTimes(low, low + width);
	}

	// factor below 1 zooms in; at: the share of the interval that stays where it is.
	zoom(factor, at = 0.5) {
		const width = this.high - this.low;
		const next = Math.min(this.model.span_ns, width * factor);
		const low = Math.min(this.model.span_ns - next, Math.max(0, this.low + (width - next) * at));
		this.setTimes(low, low + next);
	}

	// Time drawn as one point where width pixels are there, two pixels each at least: a number of bins.
	grouping(low, high, width) {
		return Math.max(1, Math.ceil((high - low) / this.model.bin_ns / Math.max(1, width / 2)));
	}

	readColours() {
		const style = getComputedStyle(document.documentElement);
		for (const name of ["APP", "OS", "HW", "CPO", "other", "grid", "axis", "mark", "text", "muted", "phase-text", "paper", "overlay",
			"running", "runnable", "blocked", "arrow", "rest"])
			this.colours[name] = style.getPropertyValue("--" + name).trim();
	}
}
// A view of fewer bins than this does not keep to them.
View.SNAP = 40;
View.LEAST_NS = 200;
