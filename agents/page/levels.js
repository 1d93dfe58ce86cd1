// SPDX-License-Identifier: MIT
// levels.js - plots over the levels of parameters, for the pages of agents: a parameter is { name, ordered, levels: [{ value }] }, a
// value a text. It needs dom.js and plots.js.
"use strict";

// Texts of levels below an axis, as many as fit: at(i) is the place of one, step the distance between two.
function levelTexts(svg, levels, at, step, y) {
	const skip = Math.ceil(6.6 * Math.min(10, Math.max(...levels.map((level) => level.value.length))) / step);
	levels.forEach((level, i) => {
		if (i % skip === 0)
			shape(svg, "text", { x: at(i), y, "text-anchor": "middle" }, short(level.value, Math.max(2, Math.floor(step * skip / 6.3))));
	});
}

// Values with intervals over the levels of a parameter. series: [[class, title, (level) => { value, low, high } or nothing]]
function levelCurve(place, parameter, width, scale, series, unitText) {
	const figure = element("figure"), height = 150, box = { left: 56, right: width - 10, top: 8, bottom: height - 24 };
	figure.append(element("figcaption", "", parameter.name));
	place.append(figure);
	const svg = canvas(figure, width, height, parameter.name), step = (box.right - box.left) / parameter.levels.length;
	frame(svg, box, scale);
	const x = (i) => box.left + step * (i + 0.5);
	const y = (value) => box.bottom - (box.bottom - box.top) * scale.of(value);
	levelTexts(svg, parameter.levels, x, step, height - 8);
	series.forEach(([className, title, of], k) => {
		const there = parameter.levels.map((level, i) => [of(level), x(i) + 4 * k - 2 * (series.length - 1), level]).filter(([point]) => point);
		if (parameter.ordered && there.length > 1)
			shape(svg, "polyline", { class: "wire " + className, points: there.map(([point, at]) => `${at},${y(point.value)}`).join(" ") });
		for (const [point, at, level] of there) {
			shape(svg, "line", { x1: at, x2: at, y1: y(point.low), y2: y(point.high), class: className });
			tip(shape(svg, "circle", { cx: at, cy: y(point.value), r: 3.5, class: className }),
				`${parameter.name} = ${level.value}, ${title}\n${interval(point, number)}${unitText}`);
		}
	});
	reachable(svg);
}

// A map of two parameters, the greatest level of down at the top. how: { width, scale of colours, isGood: more is better, cell(column,
// row): { value, trial } or nothing, text(cell), top: the cell that is the best, marks: cells with a trial have a mark }
function heatMap(place, across, down, how) {
	const columns = across.levels.length, rows = down.levels.length;
	const left = 12 + 6.3 * Math.min(12, Math.max(...down.levels.map((level) => level.value.length), 3)) + 18;
	const wide = Math.max(4, (how.width - left) / columns), tall = Math.max(16, Math.min(34, wide));
	const svg = canvas(place, how.width, rows * tall + 36, `${across.name} and ${down.name}`);
	svg.dataset.columns = columns;
	levelTexts(svg, across.levels, (i) => left + (i + 0.5) * wide, wide, rows * tall + 14);
	shape(svg, "text", { x: left + columns * wide / 2, y: rows * tall + 30, "text-anchor": "middle", class: "name" }, short(across.name, Math.floor((how.width - left) / 7)));
	shape(svg, "text", { x: 10, y: rows * tall / 2, "text-anchor": "middle", class: "name", transform: `rotate(-90 10 ${rows * tall / 2})` }, short(down.name, Math.max(3, Math.floor(rows * tall / 7))));
	let chosen = null;
	for (let row = rows - 1, y = 0; row >= 0; row--, y += tall) {
		if (row % Math.ceil(13 / tall) === 0)
			shape(svg, "text", { x: left - 5, y: y + tall / 2 + 4, "text-anchor": "end" }, short(down.levels[row].value, 12));
		for (let column = 0; column < columns; column++) {
			const cell = how.cell(column, row), box = { x: left + column * wide, y, width: wide, height: tall };
			drawCell(svg, cell, box, `${across.name} = ${across.levels[column].value}, ${down.name} = ${down.levels[row].value}\n`, how);
			chosen = cell && cell === how.top ? box : chosen;
		}
	}
	if (chosen)
		shape(svg, "rect", { ...chosen, class: "chosen" });
	reachable(svg);
}

function drawCell(svg, cell, box, where, how) {
	const made = shape(svg, "rect", { ...box, class: cell ? "cell" : "missing" });
	tip(made, where + (cell ? how.text(cell) : "no such configuration"));
	if (!cell)
		return;
	const good = how.isGood ? how.scale.of(cell.value) : 1 - how.scale.of(cell.value);
	made.style.fill = `color-mix(in oklab, var(--heat-high) ${(100 * good).toFixed(1)}%, var(--heat-low))`;
	if (box.width >= 38)
		shape(svg, "text", { x: box.x + box.width / 2, y: box.y + box.height / 2 + 4, class: "cell-text" + (good > 0.5 ? " high" : "") },
			short(number(Number(cell.value.toPrecision(3))), Math.floor(box.width / 6.2)));
	if (how.marks && cell.trial)
		shape(svg, "circle", { cx: box.x + box.width - 5, cy: box.y + 5, r: 2.5, class: "mark" });
}
