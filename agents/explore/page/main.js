// SPDX-License-Identifier: MIT
// main.js - fills the page of 'pem explore show --html' from its data (results/report.c)
"use strict";

const data = JSON.parse(at("data").textContent);
const metric = data.metrics[0];
const ROWS = 25; // of the table that are added at once
const CURVES = 12;

const unit = (of) => of.unit ? " " + of.unit : "";
const quantity = (value, of = metric) => number(value) + unit(of);
const isBetter = (a, b) => metric.greater_is_better ? a > b : a < b;
const parameterOf = (name) => data.parameters.find((parameter) => parameter.name === name);
// The group of a configuration's level, or -1: the page has groups of several levels. A parameter that means nothing there has the first one.
const groupOf = (parameter, configuration) => parameter.name in configuration ? parameter.levels.findIndex((level) => level.value === configuration[parameter.name]) : 0;
const valueOf = (trial, of = metric) => trial.values[of.name];
const figure = (trial, of = metric, half = trial.half_intervals[of.name]) => number(rounded(valueOf(trial, of), half)) + (half ? " ± " + number(Number(half.toPrecision(2))) : "");
const measured = data.trials.filter((trial) => typeof valueOf(trial) === "number" && trial.outcome !== "failed" && trial.outcome !== "refused");

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
	const best = data.best;
	at("verdict").textContent = `Best: ${figure(best)}${unit(metric)}${unit(metric) ? "" : " " + metric.name} in trial ${best.trial}${data.compared || ""}.`;
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
	bars(place, told.map((effect) => ({
		name: effect.with === undefined ? effect.parameter : `${effect.parameter} × ${effect.with}`,
		more: effect.with === undefined ? "" : "\nbeyond the sum of both",
		...effect.share,
	})), "share of the variance", percent);
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
		heatMap(figure, data.parameters[x], data.parameters[y], {
			width, scale, top, isGood: metric.greater_is_better, marks: marked, cell: (column, row) => map.get(column + "," + row),
			text: (cell) => cell.trial ? `${quantity(valueOf(cell.trial))} measured (trial ${cell.trial.trial})` : `${interval(cell, number)}${unit(metric)}`,
		});
	});
	at("heat-scale").append(number(scale.of(top.value) > 0.5 ? scale.low : scale.high), element("span", "ramp"),
		`${number(top.value)}${unit(metric)}, the best${scale.logs ? " (logarithmic)" : ""}` +
		(marked ? "; a dot: measured, others are the model's" : "") +
		(isBest ? "" : "; means over all other parameters"));
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
		levelCurve(place, parameter, width, scale, [["average", "on average", (level) => level.average],
			["at-best", "at the best configuration", (level) => level.at_best]], unit(metric));
	const left = data.parameters.filter((parameter) => parameter.levels.length > 1).length - shown.length;
	if (left > 0)
		place.append(element("p", "", `Parameters with smaller effects that are left out: ${left}.`));
}

// --- history, Pareto front ---

function describe(trial) {
	const values = data.metrics.filter((one) => typeof valueOf(trial, one) === "number").map((one) => `${one.name}: ${quantity(valueOf(trial, one), one)}`);
	const settings = Object.entries(trial.configuration).slice(0, 16).map(([name, value]) => `${name}=${value}`);
	return [`trial ${trial.trial}, ${trial.outcome}${trial.reason ? ": " + trial.reason : ""}`, ...values, settings.join(" ")].join("\n");
}

function history() {
	at("history").replaceChildren();
	if (!measured.length) {
		at("history-section").hidden = true;
		return;
	}
	const scale = scaleOf(measured.map((trial) => valueOf(trial))), last = Math.max(2, ...data.trials.map((trial) => trial.trial));
	const { svg, box, x, y } = pointPlot(at("history"), "trials in their order",
		{ scale: scaleOf([1, last], true), title: "trial", text: (value) => Math.round(value).toLocaleString("en") },
		{ scale, title: metric.name + unit(metric) + (scale.logs ? ", logarithmic" : "") });
	let best = null;
	const steps = [];
	for (const trial of data.trials) {
		const across = x(trial.trial), value = valueOf(trial);
		if (!measured.includes(trial)) {
			tip(shape(svg, "path", { d: `M${across - 3} ${box.bottom - 3}l6 6m0 -6l-6 6`, class: "bad" }), describe(trial));
			continue;
		}
		tip(shape(svg, "circle", { cx: across, cy: y(value), r: data.trials.length > 500 ? 1.6 : 3, class: "trial" }), describe(trial));
		if (best === null || isBetter(value, best)) {
			if (best !== null)
				steps.push(`${across},${y(best)}`);
			best = value;
			steps.push(`${across},${y(best)}`);
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
	const place = at("front"), across = data.metrics[at("front-x").value], up = data.metrics[at("front-y").value];
	const points = measured.filter((trial) => typeof valueOf(trial, across) === "number" && typeof valueOf(trial, up) === "number");
	const axis = (of, more, less) => ({
		scale: scaleOf(points.map((trial) => valueOf(trial, of))),
		title: of.name + unit(of) + ` (${of.greater_is_better ? more : less} is better)`,
		text: (value) => number(Number(value.toPrecision(3))),
	});
	place.replaceChildren();
	if (!points.length) {
		place.textContent = "No trial has both.";
		return;
	}
	const { svg, x, y } = pointPlot(place, `${across.name} and ${up.name}`, axis(across, "right", "left"), axis(up, "up", "down"));
	for (const trial of [...points].sort((a, b) => a.pareto - b.pareto))
		tip(shape(svg, "circle", { cx: x(valueOf(trial, across)), cy: y(valueOf(trial, up)), r: trial.pareto ? 4.5 : 3,
			class: trial.pareto ? "at-best" : "trial" }), describe(trial));
	reachable(svg);
}

// --- the table ---

function columnsOf() {
	const columns = [{ title: "trial", value: (trial) => trial.trial, number: true }];
	const add = (title, value, more) => columns.push({ title, value, ...more });
	const any = (test) => data.trials.some(test);
	for (const one of data.metrics) {
		const text = (trial) => typeof valueOf(trial, one) === "number" ? figure(trial, one) : "";
		add(one.name + (one.unit ? ` (${one.unit})` : ""), (trial) => valueOf(trial, one), { number: true, text });
	}
	if (any((trial) => trial.outcome !== "measured"))
		add("outcome", (trial) => trial.outcome, { className: (trial) => "outcome " + trial.outcome });
	if (any((trial) => trial.reason))
		add("why", (trial) => trial.reason);
	if (any((trial) => trial.left))
		add("left behind", (trial) => trial.left);
	for (const { name, ordered } of data.parameters)
		add(name, (trial) => ordered && name in trial.configuration ? Number(trial.configuration[name]) : trial.configuration[name],
			{ number: ordered, text: (trial) => trial.configuration[name] ?? "" });
	if (any((trial) => trial.runs > 1))
		add("runs", (trial) => trial.runs, { number: true });
	if (any((trial) => trial.seconds))
		add("seconds", (trial) => trial.seconds, { number: true });
	if (new Set(data.trials.map((trial) => trial.machine)).size > 1)
		add("machine", (trial) => trial.machine);
	return columns;
}

const isRefused = (trial) => trial.outcome === "failed" || trial.outcome === "refused";
const isChosen = { all: () => true, front: (trial) => trial.pareto, refused: isRefused };

function trials() {
	const table = sortedTable(at("trials"), columnsOf(), ROWS, (trial) => data.best && trial.trial === data.best.trial ? "best" : "");
	const show = () => {
		const chosen = data.trials.filter(isChosen[at("trials-which").value]);
		table.show(chosen);
		at("trials-count").textContent = chosen.length.toLocaleString("en") + (data.trial_count > data.trials.length ? ` of ${data.trial_count.toLocaleString("en")}` : "");
		at("trials-more").hidden = chosen.length <= table.most;
	};
	option(at("trials-which"), "all", "all");
	if (data.trials.some((trial) => trial.pareto))
		option(at("trials-which"), "front", "the Pareto front");
	if (data.trials.some(isRefused))
		option(at("trials-which"), "refused", "failed or refused");
	at("trials-which").addEventListener("change", show);
	at("trials-more").addEventListener("click", () => {
		table.more(ROWS);
		at("trials-more").hidden = table.rows.length <= table.most;
	});
	show();
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
trials();
draw();
let width = innerWidth;
addEventListener("resize", () => {
	if (innerWidth !== width) {
		width = innerWidth;
		draw();
	}
});
document.documentElement.dataset.ready = "yes";
