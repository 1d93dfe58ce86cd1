// SPDX-License-Identifier: MIT
// chooser.js - which strips are shown, in which order: a list to search, and metrics made of two others.
"use strict";

const STRIPS_AT_FIRST = 16;
const LISTED_MAX = 120;

class Chooser {
	constructor(model, changed) {
		this.model = model;
		this.changed = changed;
		this.chosen = Metrics.first(model, STRIPS_AT_FIRST);
		this.hidden = []; // what was chosen and is not now, to come back to its place
		this.list = find("#chooser-list");
		this.search = find("#strip-search");
		this.search.addEventListener("input", () => this.draw());
		this.#connectDerived();
		this.draw();
	}

	open() {
		find("#chooser").open = true;
		this.search.focus();
		this.search.select();
	}

	// Chosen ones in their order, then the others.
	get #ordered() {
		const all = this.chosen.slice();
		for (const [metric, place] of this.hidden)
			all.splice(Math.min(place, all.length), 0, metric);
		return [...all, ...this.model.metrics.filter(metric => !all.includes(metric))];
	}

	draw() {
		const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
		const found = this.#ordered.filter(metric => words.every(word => metric.name.toLowerCase().includes(word)));
		find("#chooser summary").textContent = `Strips: ${this.chosen.length} of ${this.model.metrics.length}`;
		this.list.replaceChildren(...found.slice(0, LISTED_MAX).map(metric => this.#row(metric)));
		find("#chooser-more").textContent = !found.length ? "Nothing has such a name." : found.length > LISTED_MAX ?
			`${Format.count(found.length - LISTED_MAX)} more: type a word to find them.` : "";
	}

	#row(metric) {
		const at = this.chosen.indexOf(metric);
		const box = make("input", { type: "checkbox" });
		box.checked = at >= 0;
		box.addEventListener("change", () => this.set(metric, box.checked));
		const move = (by, text, label) => {
			const button = make("button", { type: "button", text, "aria-label": `${label} ${metric.name}` });
			button.disabled = at < 0 || at + by < 0 || at + by >= this.chosen.length;
			button.addEventListener("click", () => this.#move(metric, by));
			return button;
		};
		return make("div", {}, make("label", { title: metric.description || "" }, box,
			make("span", { class: "swatch", "data-layer": metric.layerKey }), document.createTextNode(metric.name)),
		move(-1, "\u2191", "Move up"), move(1, "\u2193", "Move down"));
	}

	// Show or hide a strip. A new one comes first, where it is seen.
	set(metric, on) {
		const at = this.chosen.indexOf(metric);
		if (!on && at >= 0) {
			this.chosen.splice(at, 1);
			this.hidden.unshift([metric, at]);
		} else if (on && at < 0) {
			const was = this.hidden.find(([other]) => other === metric);
			this.hidden = this.hidden.filter(entry => entry !== was);
			this.chosen.splice(was ? was[1] : 0, 0, metric);
		}
		this.draw();
		this.changed();
	}

	#move(metric, by) {
		const at = this.chosen.indexOf(metric);
		this.chosen.splice(at, 1);
		this.chosen.splice(at + by, 0, metric);
		this.draw();
		this.changed();
	}

	#connectDerived() {
		const [a, operator, b] = ["#derived-a", "#derived-operator", "#derived-b"].map(find);
		for (const select of [a, b])
			select.append(...this.model.metrics.map((metric, i) => make("option", { value: i, text: metric.name })));
		find("#derived-add").addEventListener("click", () => {
			const made = new DerivedMetric(this.model.metrics[a.value], operator.value, this.model.metrics[b.value]);
			const had = this.model.metrics.find(metric => metric.key === made.key);
			if (!had)
				this.model.metrics.push(made);
			this.set(had || made, true);
		});
	}
}
