// SPDX-License-Identifier: MIT
// main.js - fills the page of 'pem page-size show --html' from its data (program/page.c)
"use strict";

const data = JSON.parse(at("data").textContent);

function percentText(value) {
	return value.toFixed(1) + " %";
}

function mean(values) {
	return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function spread(values) {
	const middle = mean(values);
	return values.length < 2 ? 0 : Math.sqrt(values.reduce((sum, v) => sum + (v - middle) ** 2, 0) / (values.length - 1));
}

// A table: titles, and rows of cells that are texts or elements. Columns of numbers are told by their index.
function fill(table, titles, rows, numbers) {
	const head = table.createTHead().insertRow();
	titles.forEach((title, i) => head.append(element("th", numbers.includes(i) ? "number" : "", title)));
	const body = table.createTBody();
	for (const row of rows) {
		const line = body.insertRow();
		row.forEach((cell, i) => {
			const made = element("td", numbers.includes(i) ? "number" : "");
			made.append(cell);
			line.append(made);
		});
	}
}

function head() {
	document.title = data.program + " - pem page-size";
	at("program").textContent = data.program;
	at("machine").textContent =
		`build ${data.build_id.slice(0, 16)} on ${data.processor || "this machine"}, Linux ${data.kernel}`;
	const kept = data.sites.filter((site) => site.state === "kept");
	const trial = data.sites.filter((site) => site.state === "on trial");
	const need = (sites) => bytes(sites.reduce((sum, site) => sum + site.large_bytes, 0));
	let text = "No site has large pages: " + (data.sites.length ? data.sites[0].reason : "nothing is known yet") + ".";
	if (kept.length)
		text = `${kept.length} of ${data.sites.length} sites have large pages (${need(kept)}): ${kept[0].reason}.`;
	else if (trial.length)
		text = `${trial.length} of ${data.sites.length} sites are on trial (${need(trial)}).`;
	at("verdict").textContent = text;
}

function front() {
	const place = at("front");
	if (data.front.length < 2) {
		place.textContent = "There is no choice that saves time.";
		place.className = "";
		return;
	}
	const points = data.front.map((p) => [p.bytes / 1048576, [p.gain - 1.96 * p.error, p.gain, p.gain + 1.96 * p.error]]);
	const colour = getComputedStyle(document.documentElement).getPropertyValue("--with").trim();
	new Dygraph(place, points, {
		labels: ["MiB", "time saved"], customBars: true, colors: [colour], drawPoints: true, pointSize: 4,
		strokeWidth: 2, xlabel: "MiB in large pages", ylabel: "% of the run saved", legend: "never",
		includeZero: true, xRangePad: 8, axisLabelFontSize: 11, gridLineColor: "rgba(128,128,128,0.25)",
	});
}

// Numbers of runs without and with large pages, by layer.
const LAYERS = [
	["time", "wall", (v) => v.toFixed(3) + " s"],
	["in the program", "user", (v) => v.toFixed(3) + " s"],
	["in the kernel", "system", (v) => v.toFixed(3) + " s"],
	["page faults", "minor faults", (v) => Math.round(v).toLocaleString("en")],
	["peak memory", "peak memory", (v) => bytes(v * 1024)],
	["in large pages", "large pages", (v) => bytes(v)],
];

function layers() {
	const of = (role, name) => data.runs.filter((run) => run.role === role && run.metrics[name] !== undefined)
		.map((run) => run.metrics[name]);
	const rows = [];
	for (const [title, name, text] of LAYERS) {
		const before = of("control", name), after = of("treated", name);
		if (!before.length && !after.length)
			continue;
		const cell = (values) => values.length ? text(mean(values)) + (values.length > 1 && name === "wall" ?
			" ± " + text(spread(values)) : "") : name === "large pages" ? "0 B" : "";
		const change = before.length && after.length && mean(before) ? percentText(100 * (mean(after) / mean(before) - 1)) : "";
		rows.push([title, element("span", "without", cell(before)), element("span", "with", cell(after)), change]);
	}
	// Time, not misses: large pages may make walks shorter rather than fewer, as under a hypervisor with small ones.
	const basis = data.runs.find((run) => run.role === "basis");
	if (basis && basis.metrics["translation before"]) {
		const before = basis.metrics["translation before"], after = basis.metrics["translation after"];
		const count = (value) => value.toFixed(3) + " s";
		rows.push(["TLB misses and first touches, simulated", element("span", "without", count(before)),
			element("span", "with", count(after)), percentText(100 * (after / before - 1))]);
	}
	if (!rows.length) {
		at("layers-origin").textContent = "no runs yet";
		at("runs").className = "";
		return;
	}
	fill(at("layers"), ["", "without", "with large pages", "change"], rows, [1, 2, 3]);
	if (data.runs.some((run) => run.role !== "basis"))
		runs();
	else
		at("runs").className = "";
}

// Each run's time, in their order.
function runs() {
	const style = getComputedStyle(document.documentElement);
	const points = data.runs.filter((run) => run.role !== "basis")
		.map((run, i) => [i + 1, run.role === "control" ? run.metrics.wall : null, run.role === "treated" ? run.metrics.wall : null]);
	new Dygraph(at("runs"), points, {
		labels: ["run", "without", "with"], drawPoints: true, pointSize: 4, strokeWidth: 0, legend: "never", includeZero: true,
		colors: [style.getPropertyValue("--without").trim(), style.getPropertyValue("--with").trim()],
		xlabel: "run", ylabel: "seconds", axisLabelFontSize: 11, gridLineColor: "rgba(128,128,128,0.25)", xRangePad: 8,
	});
}

function sites() {
	const most = Math.max(...data.sites.map((site) => site.references), 1e-9);
	const rows = data.sites.map((site) => {
		const bar = element("span", "bar");
		bar.style.width = Math.round(60 * site.references / most) + "px";
		const share = element("span", "", percentText(100 * site.references));
		share.append(bar);
		return [element("span", "name", site.name), bytes(site.bytes), share,
			site.predicted < 0.05 && !site.large_bytes ? "none" :
				`${percentText(site.predicted)} (${site.predicted_low.toFixed(1)} to ${site.predicted_high.toFixed(1)})`,
			bytes(site.page_size), site.large_bytes ? bytes(site.large_bytes) : "",
			element("span", "state-" + site.state, site.state), site.reason];
	});
	fill(at("sites"), ["site", "size", "references", "predicted gain", "pages", "needs", "state", "why"],
		rows, [1, 2, 3, 4, 5]);
}

head();
front();
layers();
sites();
