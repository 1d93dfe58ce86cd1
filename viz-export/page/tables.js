// SPDX-License-Identifier: MIT
// tables.js - what is known of the run in words and numbers: header, notices, costs, events by layer.
"use strict";

function showHeader(raw) {
	const run = raw.run;
	const command = raw.title || run.command || "Recording without a command";
	document.title = `${command} \u2013 pem trace`;
	find("#command").textContent = command;
	const exit = run.exit_status < 0 ? "" : `exit status ${run.exit_status}`;
	find("#meta").textContent = [Format.date(run.start_time_ns), Format.duration(raw.time.span_ns), run.host && `on ${run.host}`,
		exit, run.version && `pem ${run.version}`].filter(Boolean).join(" \u00b7 ");
	const facts = find("#facts");
	const fact = (name, value, id) => facts.append(make("div", { id }, make("dt", { text: name }), make("dd", { text: value })));
	for (const name of ["produced", "delivered", "discarded", "overwritten"])
		fact(name, Format.count(raw.balance[name]), `fact-${name}`);
	fact("observation cost", costShare(raw), "fact-cost");
}

// Of a command whose critical path is known: what its time went to, in the threads that took most of it.
function pathSentence({ ns, known_ns, sums }) {
	if (!ns || known_ns < 0.6 * ns)
		return "";
	const parts = [];
	for (const { running_ns, runnable_ns, blocked_ns, process_name, name, tid } of sums.slice(0, 3)) {
		const states = [[running_ns, "ran", ""], [runnable_ns, "waited", " for a CPU"], [blocked_ns, "was blocked", ""]]
			.filter(([time]) => time >= 0.05 * ns).sort((a, b) => b[0] - a[0]);
		states.forEach(([time, verb, reason], i) => parts.push(`${i ? "" : `${process_name || name || "thread"} ${tid} `}${verb} ` +
			`${Format.duration(time)}${parts.length ? "" : ` of ${Format.duration(ns)}`}${reason}`));
	}
	return parts.length ? `${parts.join(", ")}.` : "";
}

// What most of the time went to: along the critical path, or the thread that had most to do. It is hidden if states of
// threads were not recorded.
function showSentence(model, lanes) {
	const path = pathSentence(model.raw.lanes.path);
	if (path) {
		find("#sentence").textContent = path;
		find("#sentence").hidden = false;
		return;
	}
	const work = lane => lane.raw.running_ns + lane.raw.runnable_ns;
	const busy = lanes.filter(lane => lane.hasStates).sort((a, b) => work(b) - work(a))[0];
	if (!busy)
		return;
	const { running_ns, runnable_ns, blocked_ns } = busy.raw;
	const span = model.raw.time.span_ns;
	const known = busy.raw.process_name || busy.raw.name;
	const parts = [`${known ? `${known} ` : "thread "}${busy.tid} ran ${Format.duration(running_ns)} of ${Format.duration(span)}`];
	if (runnable_ns >= 0.1 * running_ns)
		parts.push(`waited ${Format.duration(runnable_ns)} for a CPU`);
	if (blocked_ns >= 0.1 * span) {
		const { name, ns } = busy.longestWait(model.raw.tree.nodes);
		parts.push(`was blocked ${Format.duration(blocked_ns)}` + (ns >= blocked_ns / 2 ? `, ${Format.duration(ns)} of it in ${name}` : ""));
	}
	const last = parts.pop();
	find("#sentence").textContent = `${parts.length ? `${parts.join(", ")} and ` : ""}${last}.`;
	find("#sentence").hidden = false;
}

function costOf(raw) {
	return raw.costs.reduce((sum, cost) => sum + (cost.ns_each || 0) * cost.count, 0);
}

// Between which bounds the cost lies; null: the recorder did not tell.
function costRange(raw) {
	const sum = bound => raw.costs.reduce((total, cost) => total + cost[bound] * cost.count, 0);
	return sum("most_ns") > sum("least_ns") ? [sum("least_ns"), sum("most_ns")] : null;
}

function costShare(raw) {
	if (!raw.costs.length)
		return "unknown";
	const spent = costOf(raw);
	const base = raw.run.machine_cpu_ns || raw.run.program_cpu_ns;
	return base > 0 ? Format.percent(spent / base) : Format.duration(spent);
}

// What the reader of this page should know before believing it.
function showNotices(raw) {
	const notices = [];
	const { produced, delivered, discarded, overwritten } = raw.balance;
	const { records, bad_values, torn_packets, damaged, damage } = raw.read;
	if (!raw.run.complete)
		notices.push("The recorder did not finish: the balance may lack its last events.");
	if (produced !== delivered + discarded + overwritten)
		notices.push(`The trace does not balance: ${Format.count(produced)} produced, but ` +
			`${Format.count(delivered + discarded + overwritten)} accounted for.`);
	if (records !== delivered)
		notices.push(`${Format.count(records)} records could be read, ${Format.count(delivered)} were delivered.`);
	if (discarded + overwritten > 0)
		notices.push(`${Format.count(discarded + overwritten)} of ${Format.count(produced)} events were lost ` +
			`(${Format.percent((discarded + overwritten) / produced)}): rates are too low where that happened.`);
	if (damaged)
		notices.push(`${Format.count(damaged)} packets are damaged and left out; the first: ${damage}.`);
	if (torn_packets)
		notices.push(`${Format.count(torn_packets)} packets were torn and are left out.`);
	if (bad_values)
		notices.push(`${Format.count(bad_values)} values are left out: not a number, or a counter that went backwards.`);
	if (raw.phases.unmatched)
		notices.push(`${Format.count(raw.phases.unmatched)} phases ended without having begun.`);
	const list = make("ul", {}, ...notices.map(text => make("li", { text })));
	for (const gap of raw.gaps)
		list.append(make("li", {}, make("strong", { text: gap.source }), document.createTextNode(`, not recorded: ${gap.reason}`)));
	if (list.childNodes.length)
		find("#notices").append(list);
}

// What the sum of costs lacks. The recorder is told how often threads switched by the end of a command that it ran.
function lackingCosts(raw) {
	const has = kind => raw.costs.some(cost => cost.kind === kind);
	const lacking = [];
	if (raw.costs.some(cost => cost.ns_each === null))
		lacking.push("kinds without a cost in the table");
	if (raw.allocations.count)
		lacking.push("finding the calls of allocations");
	if (!has("process-start"))
		lacking.push("what loading pem into each process costs");
	if (!raw.run.machine_cpu_ns && !raw.run.program_cpu_ns && raw.costs.some(cost => /^(sample|kernel-log)/.test(cost.kind)))
		lacking.push("what observing costs at switches of threads and at page faults, whose number is not known");
	if (has("process-start"))
		lacking.push("what copying pem's memory costs at each fork");
	return lacking.join(", ") + `${lacking.length ? ", " : ""}the caches and the memory's bandwidth that recording takes.`;
}

function showCosts(raw) {
	const run = raw.run;
	const spent = costOf(raw);
	const base = run.machine_cpu_ns || run.program_cpu_ns;
	const whose = run.machine_cpu_ns ? "machine" : "program";
	const parts = [];
	const range = costRange(raw);
	if (raw.costs.length)
		parts.push(`Raising the events took about ${Format.duration(spent)}` +
			(range ? ` (${range.map(ns => Format.duration(ns)).join(" to ")})` : "") + (base ?
			`, ${Format.percent(spent / base)} of the ${whose}'s ${Format.duration(base)} of CPU time` : "") +
			", by the cost of each kind measured on that machine. Not in it: " + lackingCosts(raw));
	if (run.recorder_cpu_ns)
		parts.push(`The recorder itself used ${Format.duration(run.recorder_cpu_ns)} of CPU time, beside the program.`);
	if (run.clock_error_ns)
		parts.push(`Times of two sources differ by at most ${Format.duration(run.clock_error_ns)}.`);
	find("#cost-text").textContent = parts.join(" ");
	const body = find("#cost tbody");
	for (const cost of raw.costs)
		body.append(make("tr", {}, make("th", { scope: "row", text: cost.kind }),
			...[cost.ns_each === null ? "\u2013" : Format.duration(cost.ns_each), Format.count(cost.count),
				cost.ns_each === null ? "\u2013" : Format.duration(cost.ns_each * cost.count)]
				.map(text => make("td", { class: "n", text }))));
	find("#cost table").hidden = !raw.costs.length;
	find("#cost").hidden = !raw.costs.length && !parts.length;
}

// The table of events; a column's header sorts by it.
class EventTable {
	constructor(view) {
		this.view = view;
		this.columns = [
			{ name: "Layer", of: row => row.event.layerInfo.order },
			{ name: "Event", of: row => row.event.name },
			{ name: "In the interval", number: true, of: row => row.inside },
			{ name: "Per second", number: true, of: row => row.rate },
			{ name: "Total", number: true, of: row => row.event.selectedTotal },
			{ name: "Lost", number: true, of: row => row.event.lost },
		];
		this.sort = { column: 0, down: false };
		const head = find("#events thead tr");
		this.headers = this.columns.map((column, i) => {
			const button = make("button", { type: "button", text: column.name });
			button.addEventListener("click", () => {
				this.sort = { column: i, down: this.sort.column === i ? !this.sort.down : Boolean(column.number) };
				this.draw();
			});
			return make("th", { scope: "col", class: column.number ? "n" : "" }, button);
		});
		head.replaceChildren(...this.headers);
		this.rows = view.model.events.map(event => this.#row(event));
	}

	#row(event) {
		const cells = this.columns.map((column, i) => make(i === 1 ? "th" : "td", { class: column.number ? "n" : "" }));
		cells[1].scope = "row";
		cells[0].append(make("span", { class: "swatch", "data-layer": event.layerKey }), document.createTextNode(event.layer));
		cells[1].append(make("span", { text: event.name }), make("small", { text: event.description }));
		cells[5].textContent = Format.count(event.lost);
		cells[5].classList.toggle("bad", event.lost > 0);
		const element = make("tr", { "data-event": event.name }, ...cells);
		return { event, cells, element, inside: 0, rate: 0 };
	}

	draw() {
		const { first, end, low, high } = this.view;
		for (const row of this.rows) {
			row.inside = row.event.countIn(first, end);
			row.rate = row.inside * 1e9 / (high - low);
			row.cells[2].textContent = Format.count(row.inside);
			row.cells[3].textContent = Format.si(row.rate);
			row.cells[4].textContent = Format.count(row.event.selectedTotal);
			row.element.dataset.inside = row.inside;
			row.element.dataset.total = row.event.selectedTotal;
		}
		const { of } = this.columns[this.sort.column];
		const sorted = this.rows.slice().sort((a, b) => {
			const x = of(a), y = of(b);
			return (x < y ? -1 : x > y ? 1 : 0) * (this.sort.down ? -1 : 1);
		});
		find("#events tbody").replaceChildren(...sorted.map(row => row.element));
		this.headers.forEach((header, i) => header.setAttribute("aria-sort",
			i !== this.sort.column ? "none" : this.sort.down ? "descending" : "ascending"));
		this.#foot();
	}

	#foot() {
		const sum = of => this.rows.reduce((total, row) => total + of(row), 0);
		const texts = ["", "All events", Format.count(sum(row => row.inside)), Format.si(sum(row => row.rate)),
			Format.count(sum(row => row.event.selectedTotal)), Format.count(sum(row => row.event.lost))];
		find("#events tfoot").replaceChildren(make("tr", {}, ...texts.map((text, i) =>
			make(i === 1 ? "th" : "td", { class: this.columns[i].number ? "n" : "", text }))));
	}
}
