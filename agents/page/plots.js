// SPDX-License-Identifier: MIT
// plots.js - scales, frames and bars of plots in SVG, for the pages of agents. It needs dom.js.
"use strict";

function shape(parent, tag, attributes, text) {
	const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [name, value] of Object.entries(attributes))
		made.setAttribute(name, value);
	if (text !== undefined)
		made.textContent = text;
	parent.append(made);
	return made;
}

function canvas(place, width, height, label) {
	const svg = shape(place, "svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
	return svg;
}

// From values to 0..1; logarithmic where the values differ much, unless it has to be linear.
function scaleOf(values, isLinear) {
	const low = Math.min(...values), high = Math.max(...values);
	const logs = !isLinear && low > 0 && high / low > 20;
	const map = logs ? Math.log : (v) => v;
	const span = map(high) - map(low) || 1;
	return { low, high, logs, of: (v) => (map(v) - map(low)) / span, back: (s) => logs ? Math.exp(map(low) + s * span) : low + s * span };
}

function frame(svg, box, scale, label) {
	for (let i = 0; i <= 4; i++) {
		const y = box.bottom - (box.bottom - box.top) * i / 4;
		shape(svg, "line", { x1: box.left, x2: box.right, y1: y, y2: y, class: "grid" });
		shape(svg, "text", { x: box.left - 6, y: y + 4, "text-anchor": "end" }, number(Number(scale.back(i / 4).toPrecision(3))));
	}
	if (label)
		shape(svg, "text", { x: box.left, y: box.top - 8 }, label);
}

// A bar for each item { name, value, low, high, more }: shares with 95 % intervals, value null: unknown. more: for its tip.
function bars(place, items, label, text) {
	const width = place.clientWidth, row = 25, left = Math.min(210, width * 0.42), right = width - 78;
	const svg = canvas(place, width, items.length * row + 22, label);
	const most = Math.max(0.05, ...items.map((item) => item.high));
	const x = (share) => left + (right - left) * Math.max(0, share) / most;
	for (let i = 0; i <= 2; i++) {
		const share = most * i / 2;
		shape(svg, "line", { x1: x(share), x2: x(share), y1: 0, y2: items.length * row, class: "grid" });
		shape(svg, "text", { x: x(share), y: items.length * row + 15, "text-anchor": "middle" }, text(Number(share.toPrecision(2))));
	}
	items.forEach((item, i) => {
		const y = i * row + 5, group = shape(svg, "g", {});
		tip(group, `${item.name}\n${interval(item, text)}${item.more}`);
		shape(group, "rect", { x: 0, y: i * row, width, height: row, "fill-opacity": 0 });
		shape(group, "text", { x: left - 8, y: y + 12, "text-anchor": "end", class: "name" }, short(item.name, Math.floor(left / 7)));
		if (item.value !== null)
			shape(group, "rect", { x: left, y, width: Math.max(1, x(item.value) - left), height: 15, class: "bar" });
		shape(group, "line", { x1: x(item.low), x2: x(item.high), y1: y + 7.5, y2: y + 7.5, class: "whisker" });
		for (const end of [item.low, item.high])
			shape(group, "line", { x1: x(end), x2: x(end), y1: y + 3, y2: y + 12, class: "whisker" });
		shape(group, "text", { x: x(item.high) + 6, y: y + 12 }, estimate(item, text));
	});
	reachable(svg);
}

// A plot of points, without them: its frame, and the places of values. x and y: { scale, title }; x also has text(value).
function pointPlot(place, label, x, y) {
	const width = place.clientWidth, height = 250, box = { left: 62, right: width - 12, top: 24, bottom: height - 34 };
	const svg = canvas(place, width, height, label);
	const across = (share) => box.left + (box.right - box.left) * share;
	frame(svg, box, y.scale, y.title);
	for (const [share, anchor] of [[0, "start"], [0.5, "middle"], [1, "end"]])
		shape(svg, "text", { x: across(share), y: height - 17, "text-anchor": anchor }, x.text(x.scale.back(share)));
	shape(svg, "text", { x: across(0.5), y: height - 3, "text-anchor": "middle" }, x.title);
	return { svg, box, x: (value) => across(x.scale.of(value)), y: (value) => box.bottom - (box.bottom - box.top) * y.scale.of(value) };
}
