// SPDX-License-Identifier: MIT
// dom.js - elements, numbers as texts, and tips, for the pages of agents. Not here: plots; data of any one agent.
"use strict";

const at = (id) => document.getElementById(id);

function element(tag, className, text) {
	const made = document.createElement(tag);
	if (className)
		made.className = className;
	if (text !== undefined)
		made.textContent = text;
	return made;
}

// A choice of a select element.
function option(select, value, text) {
	const made = element("option", "", text);
	made.value = value;
	select.append(made);
}

function number(value) {
	if (value === null || value === undefined || !isFinite(value))
		return "unknown";
	const size = Math.abs(value);
	if (size !== 0 && (size >= 1e9 || size < 1e-4))
		return value.toExponential(2);
	return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
}

function bytes(value) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	for (; value >= 1024 && i < units.length - 1; i++)
		value /= 1024;
	return Number(value.toPrecision(3)) + " " + units[i];
}

const percent = (share) => Number((100 * share).toPrecision(3)) + " %";
// A value to the second digit of its error; an error that is 0 or unknown leaves it as it is.
function rounded(value, half) {
	const unit = half > 0 && isFinite(half) ? 10 ** (Math.floor(Math.log10(half)) - 1) : 0;
	return unit ? Number((Math.round(value / unit) * unit).toPrecision(12)) : value;
}

const estimate = (e, text) => e.value === null ? "unknown" : text(rounded(e.value, (e.high - e.low) / 2));
const interval = (e, text) => `${estimate(e, text)} (${[e.low, e.high].map((end) => text(rounded(end, (e.high - e.low) / 2))).join(" to ")})`;
const short = (text, columns) => text.length > columns ? text.slice(0, columns - 1) + "…" : text;

// --- tips: texts of the mark that the pointer or the keyboard is on ---

function tip(made, text) {
	made.setAttribute("data-tip", text);
	made.setAttribute("aria-label", text);
	made.setAttribute("role", "img");
	return made;
}

const tipBox = element("div");
tipBox.id = "tip";
tipBox.hidden = true;
tipBox.setAttribute("role", "status");
document.body.append(tipBox);

function showTip(target, x, y) {
	tipBox.hidden = false;
	tipBox.textContent = target.getAttribute("data-tip");
	tipBox.style.left = Math.max(4, Math.min(x + 14, innerWidth - tipBox.offsetWidth - 8)) + "px";
	tipBox.style.top = Math.max(4, y + 18 + tipBox.offsetHeight > innerHeight ? y - tipBox.offsetHeight - 10 : y + 18) + "px";
}

document.addEventListener("pointermove", (event) => {
	const target = event.target.closest("[data-tip]");
	if (target)
		showTip(target, event.clientX, event.clientY);
	else
		tipBox.hidden = true;
});
document.addEventListener("focusin", (event) => {
	if (event.target.matches("[data-tip]")) {
		const box = event.target.getBoundingClientRect();
		showTip(event.target, box.right, box.bottom - 18);
	}
});
document.addEventListener("focusout", () => { tipBox.hidden = true; });
// Arrows go from one mark of a plot to the next; in a heat map also to the next row.
document.addEventListener("keydown", (event) => {
	const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 0, ArrowUp: 0 };
	if (event.key === "Escape")
		tipBox.hidden = true;
	if (!event.target.matches || !event.target.matches("svg [data-tip]") || !(event.key in steps))
		return;
	const svg = event.target.ownerSVGElement, marks = [...svg.querySelectorAll("[data-tip]")];
	const row = Number(svg.dataset.columns || 1);
	const step = steps[event.key] || (event.key === "ArrowDown" ? row : -row);
	const next = marks[marks.indexOf(event.target) + step];
	if (next) {
		event.target.setAttribute("tabindex", "-1");
		next.setAttribute("tabindex", "0");
		next.focus();
	}
	event.preventDefault();
});

// The first mark of a plot is reached by the tab key, the others by arrows.
function reachable(svg) {
	svg.querySelectorAll("[data-tip]").forEach((mark, i) => mark.setAttribute("tabindex", i ? "-1" : "0"));
}

