// SPDX-License-Identifier: MIT
// main.js - fills the page of 'pem rates --html' from its data, which is the object of --json (program/report.c)
"use strict";

const data = JSON.parse(at("data").textContent);
const BOX = { width: 176, height: 92, gap: 96, row: 116 };
// What a stage does: member of the data, class, and name.
const DOES = [["running", "runs", "runs"], ["other_waits", "waits", "waits for a disk, a network, a time"],
	["blocked_in", "input", "has no input"], ["blocked_out", "output", "finds its output full"],
	["waiting_for_cpu", "cpu", "waits for a CPU"], ["unknown", "unknown", "unknown"]];

// An item of a thread's queue is an item; one of a process is data.item_unit.
const isBytes = (stage) => !stage.tid && data.item_unit === "bytes";
const amount = (stage, value) => value === null || value === undefined ? "unknown" : isBytes(stage) ? bytes(value) : number(value);
const rate = (stage, value) => value === null || value === undefined ? "unknown" : amount(stage, value) + "/s";
const inQueue = (queue, value) => value === null ? "unknown" : queue.items === undefined ? bytes(value) : number(value) + " items";
const moved = (queue) => inQueue(queue, queue.items ?? queue.bytes ?? null);
const space = (queue) => inQueue(queue, queue.capacity);
const seconds = (value) => value >= 1 ? Number(value.toPrecision(3)) + " s" : Number((value * 1e3).toPrecision(3)) + " ms";
const share = (stage, key) => stage.lifetime ? stage[key] / stage.lifetime : 0;

// --- head ---

function head() {
	document.title = "pem rates - " + data.command;
	at("name").textContent = data.command;
	at("counts").textContent = `${data.stages.length} stages, ${data.queues.length} queues; an item of a process is ${data.item_unit === "bytes" ? "a byte" : "one of the " + data.item_unit}.` +
		(data.lost ? ` ${data.lost.toLocaleString("en")} records were lost, so what stages did then is unknown.` : "");
	at("verdict").textContent = data.verdict;
	for (const [, className, name] of DOES) {
		const entry = element("span");
		entry.append(element("i", className), name);
		at("legend").append(entry);
	}
}

// --- the picture ---

// A stage is to the right of those that it reads from.
function places() {
	const levels = [...new Set(data.stages.map((stage) => stage.level))].sort((a, b) => a - b), used = levels.map(() => 0), place = new Map();
	for (const stage of data.stages) {
		const x = levels.indexOf(stage.level), y = used[x]++;
		place.set(stage.name, { x: 8 + x * (BOX.width + BOX.gap), y: 8 + y * BOX.row });
	}
	return { place, width: 16 + used.length * (BOX.width + BOX.gap) - BOX.gap, height: Math.max(1, ...used) * BOX.row };
}

function drawStage(svg, stage, { x, y }) {
	const isSlow = stage.name === data.bottleneck, group = shape(svg, "g", {});
	const parts = DOES.map(([key, className, name]) => ({ className, name, share: share(stage, key) }));
	tip(group, [`${stage.name} (${stage.pid}), ${seconds(stage.lifetime)}`, `service rate ${rate(stage, stage.rate_per_s)} (${rate(stage, stage.low)} to ${rate(stage, stage.high)})`,
		...parts.filter((part) => part.share >= 0.0005).map((part) => `${part.name}: ${percent(part.share)}`)].join("\n"));
	shape(group, "rect", { x, y, width: BOX.width, height: BOX.height, rx: 7, class: isSlow ? "stage slowest" : "stage" });
	shape(group, "text", { x: x + 10, y: y + 20, class: "title" }, short(stage.name, 20));
	shape(group, "text", { x: x + 10, y: y + 37 }, stage.tid ? `thread ${stage.tid}` : `process ${stage.pid}`);
	if (isSlow)
		shape(group, "text", { x: x + BOX.width - 10, y: y + 37, "text-anchor": "end", class: "slow" }, "bottleneck");
	shape(group, "text", { x: x + 10, y: y + 56, class: "name" }, rate(stage, stage.rate_per_s));
	shape(group, "text", { x: x + BOX.width - 10, y: y + 56, "text-anchor": "end" }, `busy ${percent(stage.utilization)}`);
	let from = x + 10;
	for (const part of parts) {
		const width = (BOX.width - 20) * Math.min(1, part.share);
		if (width > 0)
			shape(group, "rect", { x: from, y: y + 68, width, height: 13, class: part.className });
		from += width;
	}
}

function drawQueue(svg, queue, from, to) {
	const x1 = from.x + BOX.width, y1 = from.y + BOX.height / 2, x2 = to.x - 8, y2 = to.y + BOX.height / 2, middle = (x1 + x2) / 2;
	const group = shape(svg, "g", {});
	tip(group, `${queue.name}\n${moved(queue)} went through it` + (queue.capacity ? `; it has space for ${space(queue)}` : "") +
		`\nthe reader waited ${seconds(queue.reader_blocked)}, the writer ${seconds(queue.writer_blocked)}`);
	shape(group, "path", { d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`, class: "pipe" });
	shape(group, "path", { d: `M${x2 + 8},${y2} l-10,-5 v10 z`, class: "tip-of-arrow" });
	if (Math.abs(y1 - y2) < 1 && to.x - from.x < 2 * BOX.width + BOX.gap)
		shape(group, "text", { x: middle, y: y1 - 7, "text-anchor": "middle" }, moved(queue));
}

function picture() {
	const { place, width, height } = places(), svg = canvas(at("pipeline"), width, height, "stages and the queues between them");
	svg.style.maxWidth = "none";
	if (!data.stages.length)
		at("pipeline").textContent = "No pipe or FIFO has both ends among the observed processes.";
	for (const queue of data.queues)
		for (const from of queue.from)
			for (const to of queue.to)
				drawQueue(svg, queue, place.get(from), place.get(to));
	for (const stage of data.stages)
		drawStage(svg, stage, place.get(stage.name));
	reachable(svg);
}

// --- figures ---

function plots() {
	const all = data.stages.filter((stage) => typeof stage.rate_per_s === "number");
	const known = all.filter((stage) => isBytes(stage) === isBytes(all[0])); // bars of one unit
	const bar = (name, value, low, high) => ({ name, value, low: typeof low === "number" ? low : value, high: typeof high === "number" ? high : value, more: "" });
	if (known.length)
		bars(at("rates"), known.map((stage) => bar(stage.name, stage.rate_per_s, stage.low, stage.high)), "service rates of stages", (value) => rate(known[0], value));
	else
		at("rates").textContent = "No rate is known.";
	const ways = data.predictions.filter((way) => typeof way.rate_per_s === "number");
	if (data.predictions_believed && ways.length) {
		at("outlook-note").textContent = `Bytes a second that the last stage would take, without the time in which stages wait for a CPU: it was ${bytes(data.throughput_with_cpus_per_s)}/s.`;
		bars(at("outlook"), ways.map((way) => bar(way.what.replace("predicted with ", ""), way.rate_per_s, way.low, way.high)), "predictions", (value) => bytes(value) + "/s");
	} else {
		at("outlook-note").textContent = "Nothing is predicted: the model does not describe this pipeline.";
	}
}

function tables() {
	const time = (key, title) => ({ title, number: true, value: (stage) => share(stage, key), text: (stage) => percent(share(stage, key)) });
	sortedTable(at("stages"), [
		{ title: "stage", value: (stage) => stage.name },
		{ title: "process", number: true, value: (stage) => stage.pid, text: (stage) => String(stage.pid) },
		{ title: "items", number: true, value: (stage) => stage.items, text: (stage) => amount(stage, stage.items) },
		{ title: "rate", number: true, value: (stage) => stage.rate_per_s, text: (stage) => rate(stage, stage.rate_per_s) },
		{ title: "95 % interval", number: true, value: (stage) => stage.low, text: (stage) => stage.low === null ? "unknown" : `${rate(stage, stage.low)} to ${rate(stage, stage.high)}` },
		{ title: "busy", number: true, value: (stage) => stage.utilization, text: (stage) => percent(stage.utilization) },
		time("blocked_in", "no input"), time("blocked_out", "output full"), time("waiting_for_cpu", "for a CPU"),
		time("other_waits", "other waits"), time("unknown", "unknown"),
	], 500, (stage) => stage.name === data.bottleneck ? "slowest" : "").show(data.stages);
	sortedTable(at("queues"), [
		{ title: "queue", value: (queue) => queue.name },
		{ title: "from", value: (queue) => queue.from.join(", ") },
		{ title: "to", value: (queue) => queue.to.join(", ") },
		{ title: "moved", number: true, value: (queue) => queue.items ?? queue.bytes, text: moved },
		{ title: "space", number: true, value: (queue) => queue.capacity, text: space },
		{ title: "reader waited", number: true, value: (queue) => queue.reader_blocked, text: (queue) => seconds(queue.reader_blocked) },
		{ title: "writer waited", number: true, value: (queue) => queue.writer_blocked, text: (queue) => seconds(queue.writer_blocked) },
	], 500, () => "").show(data.queues);
}

head();
picture();
plots();
tables();
document.documentElement.dataset.ready = "yes";
