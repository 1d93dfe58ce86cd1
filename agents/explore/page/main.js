// SPDX-License-Identifier: MIT
// main.js - fills the page of 'pem explore show --html' from its data (results/report.c)
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const metric = data.metrics[0];
const ROWS = 25; // of the table that are added at once
const CURVES = 12;

const at = (id) => document.getElementById(id);

function element(tag, className, text) {
	const made = document.createElement(tag);
	if (className)
		made.className = className;
	if (text !== undefined)
		made.textContent = text;
	return made;
}

function shape(parent, tag, attributes, text) {
	const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [name, value] of Object.entries(attributes))
		made.setAttribute(name, value);
	if (text !== undefined)
		made.textContent = text;
	parent.append(made);
	return made;
}

function number(value) {
	if (value === null || value === undefined || !isFinite(value))
		return "unknown";
	const size = Math.abs(value);
	if (size !== 0 && (size >= 1e9 || size < 1e-4))
		return value.toExponential(2);
	return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
}

const unit = (of) => of.unit ? " " + of.unit : "";
const quantity = (value, of = metric) => number(value) + unit(of);
const percent = (share) => Number((100 * share).toPrecision(3)) + " %";
const interval = (e, text) => `${e.value === null ? "unknown" : text(e.value)} (${text(e.low)} to ${text(e.high)})`;
const short = (text, columns) => text.length > columns ? text.slice(0, columns - 1) + "…" : text;
const isBetter = (a, b) => metric.greater_is_better ? a > b : a < b;
const parameterOf = (name) => data.parameters.find((parameter) => parameter.name === name);
// The group of a configuration's level, or -1: the page has groups of several levels. A parameter that means nothing there has the first one.
const groupOf = (parameter, configuration) => parameter.name in configuration ? parameter.levels.findIndex((level) => level.value === configuration[parameter.name]) : 0;
const valueOf = (trial, of = metric) => trial.values[of.name];
const measured = data.trials.filter((trial) => typeof valueOf(trial) === "number" && trial.outcome !== "failed" && trial.outcome !== "refused");

// --- tips: of what the pointer or the keyboard is on ---

function tip(made, text) {
	made.setAttribute("data-tip", text);
	made.setAttribute("aria-label", text);
	made.setAttribute("role", "img");
	return made;
}

function showTip(target, x, y) {
	const box = at("tip");
	box.hidden = false;
	box.textContent = target.getAttribute("data-tip");
	box.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.offsetWidth - 8)) + "px";
	box.style.top = Math.max(4, y + 18 + box.offsetHeight > innerHeight ? y - box.offsetHeight - 10 : y + 18) + "px";
}

document.addEventListener("pointermove", (event) => {
	const target = event.target.closest("[data-tip]");
	if (target)
		showTip(target, event.clientX, event.clientY);
	else
		at("tip").hidden = true;
});
document.addEventListener("focusin", (event) => {
	if (event.target.matches("[data-tip]")) {
		const box = event.target.getBoundingClientRect();
		showTip(event.target, box.right, box.bottom - 18);
	}
});
document.addEventListener("focusout", () => { at("tip").hidden = true; });
// Arrows go from one mark of a plot to the next; in a heat map also to the next row.
document.addEventListener("keydown", (event) => {
	const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 0, ArrowUp: 0 };
	if (event.key === "Escape")
		at("tip").hidden = true;
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

function canvas(place, width, height, label) {
	const svg = shape(place, "svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
	return svg;
}

// --- scales ---

// From values to 0..1; logarithmic where the values differ much.
function scaleOf(values) {
	const low = Math.min(...values), high = Math.max(...values);
	const logs = low > 0 && high / low > 20;
	const map = logs ? Math.log : (v) => v;
	const span = map(high) - map(low) || 1;
	return { low, high, logs, of: (v) => (map(v) - map(low)) / span, back: (s) => logs ? Math.exp(map(low) + s * span) : low + s * span };
}

function frame(svg, box, scale, of, label) {
	for (let i = 0; i <= 4; i++) {
		const y = box.bottom - (box.bottom - box.top) * i / 4;
		shape(svg, "line", { x1: box.left, x2: box.right, y1: y, y2: y, class: "grid" });
		shape(svg, "text", { x: box.left - 6, y: y + 4, "text-anchor": "end" }, number(Number(scale.back(i / 4).toPrecision(3))));
	}
	if (label)
		shape(svg, "text", { x: box.left, y: box.top - 8 }, label);
}

// --- head ---

function head() {
	document.title = data.name + " - pem explore";
	at("name").textContent = data.name;
	const outcomes = {};
	data.trials.forEach((trial) => { outcomes[trial.outcome] = (outcomes[trial.outcome] || 0) + 1; });
	const parts = data.trial_count === data.trials.length ? Object.entries(outcomes).map(([name, count]) => `${count.toLocaleString("en")} ${name}`) : [];
	at("counts").textContent = `${data.trial_count.toLocaleString("en")} trials` +
		(data.configurations ? ` of ${data.configurations.toLocaleString("en")} configurations` : "") +
		(parts.length ? `: ${parts.join(", ")}` : "") + `. ${metric.name}: the ${metric.greater_is_better ? "greater" : "smaller"}, the better.`;
	if (!data.best) {
		at("verdict").textContent = `No best configuration is known: ${data.unknown}.`;
		return;
	}
	const best = data.best, error = best.errors[metric.name];
	let text = `Best: ${quantity(valueOf(best))}${error ? " ± " + number(1.96 * error) : ""} ${unit(metric) ? "" : metric.name + " "}in trial ${best.trial}`;
	if (data.gain && data.gain.value !== null)
		text += `, ${interval(data.gain, percent)} better than ${data.reference ? "trial " + data.reference.trial : "the median configuration"}`;
	at("verdict").textContent = text + ".";
	for (const [name, value] of Object.entries(best.configuration)) {
		const pair = element("div");
		pair.append(element("dt", "", name), element("dd", "", value));
		at("best").append(pair);
	}
}

// --- what matters ---

function effects() {
	const place = at("effects");
	place.replaceChildren();
	if (data.unknown) {
		at("effects-note").textContent = `Unknown: ${data.unknown}.`;
		return;
	}
	const told = data.effects.filter((effect) => effect.share.high >= 0.005).slice(0, 14);
	if (!told.length)
		at("effects-note").textContent = "No parameter explains more than 0.5 % of the variance.";
	const width = place.clientWidth, row = 25, left = Math.min(210, width * 0.42), right = width - 58;
	const svg = canvas(place, width, told.length * row + 22, "share of the variance");
	const most = Math.max(0.05, ...told.map((effect) => effect.share.high));
	const x = (share) => left + (right - left) * Math.max(0, share) / most;
	for (let i = 0; i <= 2; i++) {
		const share = most * i / 2;
		shape(svg, "line", { x1: x(share), x2: x(share), y1: 0, y2: told.length * row, class: "grid" });
		shape(svg, "text", { x: x(share), y: told.length * row + 15, "text-anchor": "middle" }, percent(Number(share.toPrecision(2))));
	}
	told.forEach((effect, i) => {
		const name = effect.with === undefined ? effect.parameter : `${effect.parameter} × ${effect.with}`;
		const y = i * row + 5, share = effect.share, group = shape(svg, "g", {});
		tip(group, `${name}\n${interval(share, percent)}${effect.with === undefined ? "" : "\nbeyond the sum of both"}`);
		shape(group, "rect", { x: 0, y: i * row, width, height: row, "fill-opacity": 0 });
		shape(group, "text", { x: left - 8, y: y + 12, "text-anchor": "end", class: "name" }, short(name, Math.floor(left / 7)));
		if (share.value !== null)
			shape(group, "rect", { x: left, y, width: Math.max(1, x(share.value) - left), height: 15, class: "bar" });
		shape(group, "line", { x1: x(share.low), x2: x(share.high), y1: y + 7.5, y2: y + 7.5, class: "whisker" });
		for (const end of [share.low, share.high])
			shape(group, "line", { x1: x(end), x2: x(end), y1: y + 3, y2: y + 12, class: "whisker" });
		shape(group, "text", { x: x(share.high) + 6, y: y + 12 }, share.value === null ? "unknown" : percent(share.value));
	});
	reachable(svg);
}

function words() {
	const list = at("words");
	const order = new Map(data.effects.filter((effect) => effect.with === undefined).map((effect, i) => [effect.parameter, i]));
	const sorted = [...data.parameters].sort((a, b) => (b.matters || false) - (a.matters || false) || order.get(a.name) - order.get(b.name));
	for (const parameter of sorted) {
		if (parameter.sentence)
			list.append(element("li", parameter.matters ? "" : "none", parameter.sentence + "."));
	}
	if (!list.children.length)
		list.append(element("li", "none", `Nothing is known: ${data.unknown}.`));
	else if (data.noise !== undefined)
		list.append(element("li", "none", `Noise is ${percent(data.noise)} of the variance.`));
}

// --- heat maps ---

// Values of a map's cells, by "x,y": the population's where other parameters are as in the best trial, or means over them.
function cells(x, y, by, group, isBest) {
	const best = data.parameters.map((parameter) => groupOf(parameter, data.best.configuration));
	const sums = new Map();
	for (const one of data.population) {
		if (by >= 0 && one.levels[by] !== group)
			continue;
		if (isBest && one.levels.some((level, i) => i !== x && i !== y && i !== by && level !== best[i]))
			continue;
		const key = one.levels[x] + "," + one.levels[y], sum = sums.get(key) || { count: 0, value: 0, low: 0, high: 0 };
		sum.count++;
		for (const part of ["value", "low", "high"])
			sum[part] += one.value[part];
		sums.set(key, sum);
	}
	for (const sum of sums.values())
		for (const part of ["value", "low", "high"])
			sum[part] /= sum.count;
	for (const trial of isBest ? measured : []) {
		const groups = data.parameters.map((parameter) => groupOf(parameter, trial.configuration));
		const sum = sums.get(groups[x] + "," + groups[y]);
		if (sum && (by < 0 || groups[by] === group) && groups.every((level, i) => i === x || i === y || i === by || level === best[i]))
			sum.trial = trial;
	}
	return sums;
}

function option(select, value, text) {
	const made = element("option", "", text);
	made.value = value;
	select.append(made);
}

function chooseAxes() {
	if (!data.population.length || data.parameters.filter((parameter) => parameter.levels.length > 1).length < 2) {
		at("heat-section").hidden = true;
		return;
	}
	const weight = (name) => data.effects.reduce((sum, e) => sum + (e.parameter === name || e.with === name ? (e.share.value || 0) : 0), 0);
	const order = data.parameters.map((parameter, i) => i).filter((i) => data.parameters[i].levels.length > 1)
		.sort((a, b) => weight(data.parameters[b].name) - weight(data.parameters[a].name));
	// Of the three that matter most, the one with the fewest levels makes maps, and the one with the most goes across.
	const axes = order.slice(0, 3).sort((a, b) => data.parameters[b].levels.length - data.parameters[a].levels.length);
	if (axes.length < 3 || data.parameters[axes[2]].levels.length > 8)
		axes.splice(0, 3, order[0], order[1], -1);
	for (const [id, chosen] of [["heat-x", axes[0]], ["heat-y", axes[1]], ["heat-by", axes[2]]]) {
		if (id === "heat-by")
			option(at(id), -1, "(one map)");
		for (const i of order)
			option(at(id), i, data.parameters[i].name);
		at(id).value = chosen;
		at(id).addEventListener("change", heat);
	}
	option(at("heat-others"), "best", "as in the best trial");
	option(at("heat-others"), "mean", "averaged");
	// A sample of a large space has few configurations that are like the best one.
	at("heat-others").value = data.population.length < data.configurations || !data.configurations ? "mean" : "best";
	at("heat-others").disabled = at("heat-others").value === "mean";
	at("heat-others").addEventListener("change", heat);
}

function heat() {
	if (at("heat-section").hidden)
		return;
	const place = at("heat"), x = Number(at("heat-x").value), y = Number(at("heat-y").value);
	const by = [x, y].includes(Number(at("heat-by").value)) ? -1 : Number(at("heat-by").value);
	const isBest = at("heat-others").value === "best";
	const groups = by < 0 ? [0] : data.parameters[by].levels.map((_, i) => i);
	const maps = groups.map((group) => cells(x, y, by, group, isBest));
	const all = maps.flatMap((map) => [...map.values()]);
	place.replaceChildren();
	at("heat-unit").textContent = metric.name + unit(metric);
	at("heat-scale").replaceChildren();
	if (x === y || !all.length) {
		at("heat-scale").textContent = "Choose two different parameters.";
		return;
	}
	const scale = scaleOf(all.map((cell) => cell.value));
	const top = all.reduce((best, cell) => isBetter(cell.value, best.value) ? cell : best);
	const marked = all.some((cell) => cell.trial) && !all.every((cell) => cell.trial);
	const wide = place.clientWidth, columns = data.parameters[x].levels.length;
	const perRow = Math.max(1, Math.min(groups.length, 4, Math.floor(wide / Math.max(220, columns * 32 + 76))));
	const width = Math.min(Math.floor(wide / perRow) - 22, Math.max(220, columns * 64 + 80));
	maps.forEach((map, i) => {
		const figure = element("figure");
		if (by >= 0)
			figure.append(element("figcaption", "", `${data.parameters[by].name} = ${data.parameters[by].levels[groups[i]].value}`));
		place.append(figure);
		drawMap(figure, map, x, y, { scale, top, marked, width });
	});
	at("heat-scale").append(number(scale.of(top.value) > 0.5 ? scale.low : scale.high), element("span", "ramp"),
		`${number(top.value)}${unit(metric)}, the best${scale.logs ? " (logarithmic)" : ""}` +
		(marked ? "; a dot: measured, others are the model's" : "") +
		(isBest ? "" : "; means over all other parameters"));
}

function drawMap(figure, map, x, y, how) {
	const across = data.parameters[x], down = data.parameters[y], columns = across.levels.length, rows = down.levels.length;
	const left = 12 + 6.3 * Math.min(12, Math.max(...down.levels.map((level) => level.value.length), 3)) + 18;
	const cell = Math.max(4, (how.width - left) / columns), tall = Math.max(16, Math.min(34, cell));
	const height = rows * tall + 36, svg = canvas(figure, how.width, height, `${across.name} and ${down.name}`);
	svg.dataset.columns = columns;
	const skip = Math.ceil(6.6 * Math.min(10, Math.max(...across.levels.map((level) => level.value.length))) / cell);
	across.levels.forEach((level, i) => {
		if (i % skip === 0)
			shape(svg, "text", { x: left + (i + 0.5) * cell, y: rows * tall + 14, "text-anchor": "middle" }, short(level.value, Math.max(2, Math.floor(cell * skip / 6.3))));
	});
	shape(svg, "text", { x: left + columns * cell / 2, y: rows * tall + 30, "text-anchor": "middle", class: "name" }, short(across.name, Math.floor((how.width - left) / 7)));
	shape(svg, "text", { x: 10, y: rows * tall / 2, "text-anchor": "middle", class: "name", transform: `rotate(-90 10 ${rows * tall / 2})` }, short(down.name, Math.max(3, Math.floor(rows * tall / 7))));
	const vertical = Math.ceil(13 / tall);
	down.levels.forEach((level, k) => {
		const row = rows - 1 - k; // the greatest level is at the top
		if (k % vertical === 0)
			shape(svg, "text", { x: left - 5, y: (row + 0.5) * tall + 4, "text-anchor": "end" }, short(level.value, 12));
	});
	let chosen = null;
	for (let row = 0; row < rows; row++) {
		for (let column = 0; column < columns; column++) {
			const k = rows - 1 - row, one = map.get(column + "," + k);
			const place = { x: left + column * cell, y: row * tall, width: cell, height: tall };
			const made = shape(svg, "rect", { ...place, class: one ? "cell" : "missing" });
			const where = `${across.name} = ${across.levels[column].value}, ${down.name} = ${down.levels[k].value}\n`;
			if (!one) {
				tip(made, where + "no such configuration");
				continue;
			}
			const part = how.scale.of(one.value), good = metric.greater_is_better ? part : 1 - part;
			made.style.fill = `color-mix(in oklab, var(--heat-high) ${(100 * good).toFixed(1)}%, var(--heat-low))`;
			tip(made, where + (one.trial ? `${quantity(valueOf(one.trial))} measured (trial ${one.trial.trial})` :
				`${interval(one, number)}${unit(metric)}`));
			if (cell >= 38)
				shape(svg, "text", { x: place.x + cell / 2, y: place.y + tall / 2 + 4, class: "cell-text" + (good > 0.5 ? " high" : "") }, short(number(Number(one.value.toPrecision(3))), Math.floor(cell / 6.2)));
			if (how.marked && one.trial)
				shape(svg, "circle", { cx: place.x + cell - 5, cy: place.y + 5, r: 2.5, class: "mark" });
			chosen = one === how.top ? place : chosen;
		}
	}
	if (chosen)
		shape(svg, "rect", { ...chosen, class: "chosen" });
	reachable(svg);
}

// --- curves ---

function curves() {
	const place = at("curves");
	const shown = data.effects.filter((effect) => effect.with === undefined).map((effect) => parameterOf(effect.parameter))
		.filter((parameter) => parameter.levels.length > 1).slice(0, CURVES);
	place.replaceChildren();
	at("curves-section").hidden = !shown.length;
	const across = place.clientWidth > 900 ? 4 : place.clientWidth > 560 ? 3 : place.clientWidth > 360 ? 2 : 1;
	const width = Math.floor((place.clientWidth - 22 * (across - 1)) / across) - 1;
	const points = shown.flatMap((parameter) => parameter.levels.flatMap((level) => [level.average, level.at_best].filter(Boolean)));
	const scale = scaleOf(points.flatMap((point) => [point.low, point.high]));
	for (const parameter of shown)
		drawCurve(place, parameter, width, scale);
	const left = data.parameters.filter((parameter) => parameter.levels.length > 1).length - shown.length;
	if (left > 0)
		place.append(element("p", "", `Parameters with smaller effects that are left out: ${left}.`));
}

function drawCurve(place, parameter, width, scale) {
	const figure = element("figure"), height = 150, box = { left: 56, right: width - 10, top: 8, bottom: height - 24 };
	figure.append(element("figcaption", "", parameter.name));
	place.append(figure);
	const svg = canvas(figure, width, height, parameter.name), count = parameter.levels.length;
	frame(svg, box, scale, metric);
	const x = (i) => box.left + (box.right - box.left) * (i + 0.5) / count;
	const y = (value) => box.bottom - (box.bottom - box.top) * scale.of(value);
	const skip = Math.ceil(6.6 * Math.min(9, Math.max(...parameter.levels.map((level) => level.value.length))) * count / (box.right - box.left));
	parameter.levels.forEach((level, i) => {
		if (i % skip === 0)
			shape(svg, "text", { x: x(i), y: height - 8, "text-anchor": "middle" }, short(level.value, Math.max(2, Math.floor(skip * (box.right - box.left) / count / 6.3))));
	});
	for (const [which, className, shift] of [["average", "average", -2], ["at_best", "at-best", 2]]) {
		const there = parameter.levels.map((level, i) => [level[which], i]).filter(([point]) => point);
		if (parameter.ordered && there.length > 1)
			shape(svg, "polyline", { class: "wire " + className, points: there.map(([point, i]) => `${x(i) + shift},${y(point.value)}`).join(" ") });
		for (const [point, i] of there) {
			shape(svg, "line", { x1: x(i) + shift, x2: x(i) + shift, y1: y(point.low), y2: y(point.high), class: className });
			tip(shape(svg, "circle", { cx: x(i) + shift, cy: y(point.value), r: 3.5, class: className }),
				`${parameter.name} = ${parameter.levels[i].value}, ${which === "average" ? "on average" : "at the best configuration"}\n` +
				`${interval(point, number)}${unit(metric)}`);
		}
	}
	reachable(svg);
}

// --- history, Pareto front ---

function describe(trial) {
	const values = data.metrics.filter((one) => typeof valueOf(trial, one) === "number").map((one) => `${one.name}: ${quantity(valueOf(trial, one), one)}`);
	const settings = Object.entries(trial.configuration).slice(0, 16).map(([name, value]) => `${name}=${value}`);
	return [`trial ${trial.trial}, ${trial.outcome}${trial.reason ? ": " + trial.reason : ""}`, ...values, settings.join(" ")].join("\n");
}

function history() {
	const place = at("history"), width = place.clientWidth, height = 250;
	place.replaceChildren();
	if (!measured.length) {
		at("history-section").hidden = true;
		return;
	}
	const svg = canvas(place, width, height, "trials in their order");
	const box = { left: 62, right: width - 8, top: 24, bottom: height - 34 };
	const scale = scaleOf(measured.map((trial) => valueOf(trial)));
	const last = Math.max(2, ...data.trials.map((trial) => trial.trial));
	const x = (trial) => box.left + (box.right - box.left) * (trial.trial - 1) / (last - 1);
	const y = (value) => box.bottom - (box.bottom - box.top) * scale.of(value);
	frame(svg, box, scale, metric, metric.name + unit(metric) + (scale.logs ? ", logarithmic" : ""));
	for (const share of [0, 0.5, 1]) {
		const n = Math.round(1 + share * (last - 1));
		shape(svg, "text", { x: box.left + (box.right - box.left) * share, y: height - 16, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" }, n.toLocaleString("en"));
	}
	shape(svg, "text", { x: (box.left + box.right) / 2, y: height - 3, "text-anchor": "middle" }, "trial");
	let best = null;
	const steps = [];
	for (const trial of data.trials) {
		if (!measured.includes(trial)) {
			const cross = shape(svg, "path", { d: `M${x(trial) - 3} ${box.bottom - 3}l6 6m0 -6l-6 6`, class: "bad" });
			tip(cross, describe(trial));
			continue;
		}
		tip(shape(svg, "circle", { cx: x(trial), cy: y(valueOf(trial)), r: data.trials.length > 500 ? 1.6 : 3, class: "trial" }), describe(trial));
		if (best === null || isBetter(valueOf(trial), best)) {
			if (best !== null)
				steps.push(`${x(trial)},${y(best)}`);
			best = valueOf(trial);
			steps.push(`${x(trial)},${y(best)}`);
		}
	}
	steps.push(`${box.right},${y(best)}`);
	shape(svg, "polyline", { points: steps.join(" "), class: "wire at-best", "pointer-events": "none" });
	reachable(svg);
}

function chooseMetrics() {
	if (data.metrics.length < 2) {
		at("front-section").hidden = true;
		at("history-section").classList.add("alone");
		return;
	}
	for (const [id, chosen] of [["front-x", 1], ["front-y", 0]]) {
		data.metrics.forEach((one, i) => option(at(id), i, one.name));
		at(id).value = chosen;
		at(id).addEventListener("change", front);
	}
}

function front() {
	if (at("front-section").hidden)
		return;
	const place = at("front"), width = place.clientWidth, height = 250;
	const across = data.metrics[at("front-x").value], up = data.metrics[at("front-y").value];
	const points = measured.filter((trial) => typeof valueOf(trial, across) === "number" && typeof valueOf(trial, up) === "number");
	place.replaceChildren();
	if (!points.length) {
		place.textContent = "No trial has both.";
		return;
	}
	const svg = canvas(place, width, height, `${across.name} and ${up.name}`);
	const box = { left: 62, right: width - 12, top: 24, bottom: height - 34 };
	const sx = scaleOf(points.map((trial) => valueOf(trial, across))), sy = scaleOf(points.map((trial) => valueOf(trial, up)));
	frame(svg, box, sy, up, up.name + unit(up) + ` (${up.greater_is_better ? "up" : "down"} is better)`);
	for (const share of [0, 0.5, 1])
		shape(svg, "text", { x: box.left + (box.right - box.left) * share, y: height - 18, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" }, number(Number(sx.back(share).toPrecision(3))));
	shape(svg, "text", { x: (box.left + box.right) / 2, y: height - 3, "text-anchor": "middle" }, `${across.name}${unit(across)} (${across.greater_is_better ? "right" : "left"} is better)`);
	for (const trial of [...points].sort((a, b) => a.pareto - b.pareto))
		tip(shape(svg, "circle", { cx: box.left + (box.right - box.left) * sx.of(valueOf(trial, across)), cy: box.bottom - (box.bottom - box.top) * sy.of(valueOf(trial, up)),
			r: trial.pareto ? 4.5 : 3, class: trial.pareto ? "at-best" : "trial" }), describe(trial));
	reachable(svg);
}

// --- the table ---

const sorting = { key: null, up: true, rows: ROWS };

function columnsOf() {
	const columns = [["trial", (trial) => trial.trial, true]];
	for (const one of data.metrics)
		columns.push([one.name + (one.unit ? ` (${one.unit})` : ""), (trial) => valueOf(trial, one), true, one]);
	if (data.trials.some((trial) => trial.outcome !== "measured"))
		columns.push(["outcome", (trial) => trial.outcome]);
	if (data.trials.some((trial) => trial.reason))
		columns.push(["why", (trial) => trial.reason]);
	if (data.trials.some((trial) => trial.left))
		columns.push(["left behind", (trial) => trial.left]);
	for (const parameter of data.parameters)
		columns.push([parameter.name, (trial) => parameter.ordered && parameter.name in trial.configuration ? Number(trial.configuration[parameter.name]) : trial.configuration[parameter.name],
			parameter.ordered, null, (trial) => trial.configuration[parameter.name] ?? ""]);
	if (data.trials.some((trial) => trial.runs > 1))
		columns.push(["runs", (trial) => trial.runs, true]);
	if (data.trials.some((trial) => trial.seconds))
		columns.push(["seconds", (trial) => trial.seconds, true]);
	if (new Set(data.trials.map((trial) => trial.machine)).size > 1)
		columns.push(["machine", (trial) => trial.machine]);
	return columns;
}

function table() {
	const columns = columnsOf(), which = at("trials-which").value;
	const chosen = data.trials.filter((trial) => which === "all" || (which === "front" ? trial.pareto : trial.outcome === "failed" || trial.outcome === "refused"));
	const place = at("trials"), key = sorting.key === null ? null : columns[sorting.key][1];
	if (key) {
		const sign = sorting.up ? 1 : -1, last = (v) => v === undefined || v === null;
		chosen.sort((a, b) => last(key(a)) - last(key(b)) || (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : 0));
	}
	place.replaceChildren();
	const titles = place.createTHead().insertRow(), body = place.createTBody();
	columns.forEach(([title, , isNumber], i) => {
		const cell = element("th", isNumber ? "number" : ""), button = element("button", "", title + (sorting.key === i ? sorting.up ? " ▲" : " ▼" : ""));
		button.type = "button";
		button.addEventListener("click", () => {
			sorting.up = sorting.key === i ? !sorting.up : true;
			sorting.key = i;
			table();
			at("trials").querySelectorAll("th button")[i].focus();
		});
		cell.setAttribute("aria-sort", sorting.key === i ? sorting.up ? "ascending" : "descending" : "none");
		cell.append(button);
		titles.append(cell);
	});
	for (const trial of chosen.slice(0, sorting.rows)) {
		const row = body.insertRow();
		row.className = data.best && trial.trial === data.best.trial ? "best" : "";
		for (const [title, value, isNumber, of, text] of columns) {
			const one = value(trial), error = of && trial.errors[of.name];
			const made = element("td", (isNumber ? "number" : "") + (title === "outcome" ? "outcome " + trial.outcome : ""));
			made.textContent = text ? text(trial) : one === undefined || one === null ? "" : of ? number(one) + (error ? " ± " + number(Number((1.96 * error).toPrecision(2))) : "") :
				isNumber ? number(one) : one;
			made.classList.toggle("words", made.textContent.length > 24);
			row.append(made);
		}
	}
	at("trials-count").textContent = chosen.length.toLocaleString("en") + (data.trial_count > data.trials.length ? ` of ${data.trial_count.toLocaleString("en")}` : "");
	at("trials-more").hidden = chosen.length <= sorting.rows;
}

function chooseTrials() {
	option(at("trials-which"), "all", "all");
	if (data.trials.some((trial) => trial.pareto))
		option(at("trials-which"), "front", "the Pareto front");
	if (data.trials.some((trial) => trial.outcome === "failed" || trial.outcome === "refused"))
		option(at("trials-which"), "refused", "failed or refused");
	at("trials-which").addEventListener("change", table);
	at("trials-more").addEventListener("click", () => {
		sorting.rows += ROWS;
		table();
	});
}

function draw() {
	effects();
	heat();
	curves();
	history();
	front();
}

head();
words();
chooseAxes();
chooseMetrics();
chooseTrials();
table();
draw();
let width = innerWidth;
addEventListener("resize", () => {
	if (innerWidth !== width) {
		width = innerWidth;
		draw();
	}
});
document.documentElement.dataset.ready = "yes";
