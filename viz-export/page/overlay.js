// SPDX-License-Identifier: MIT
// overlay.js - a second run over this one: one that the page was made with, or another page of pem that is opened from a
// file. Its strips are drawn dashed.
// Both runs are aligned at their start. Of the other page only its data is read; nothing of it runs.
"use strict";

const Overlay = {
	BEGIN: "\u003cscript type=\"application/json\" id=\"data\">",
	END: "\u003c/script>",

	// The data of a page's text. Its texts have no '<', so that the first end of an element is its own.
	dataOf(text) {
		const begin = text.indexOf(Overlay.BEGIN);
		const end = begin < 0 ? -1 : text.indexOf(Overlay.END, begin);
		if (end < 0)
			throw new Error("it is not a page of pem export --to html");
		return Overlay.parse(text.slice(begin + Overlay.BEGIN.length, end));
	},

	parse(text) {
		const raw = JSON.parse(text);
		if (raw.format !== Overlay.FORMAT)
			throw new Error("another version of pem wrote it: export it again");
		return raw;
	},

	// Join a model with another: metrics of the same key. Returns how many have a partner.
	join(model, other) {
		const partners = new Map(other.metrics.map(metric => [metric.key, metric]));
		model.overlay = { model: other, end_ns: other.raw.time.span_ns };
		for (const metric of model.metrics)
			metric.other = partners.get(metric.key);
		Overlay.follow(model);
		return model.metrics.filter(metric => metric.other).length;
	},

	leave(model) {
		model.overlay = null;
		for (const metric of model.metrics)
			metric.other = undefined;
	},

	// The other run's process of the same name, if there is one; else all of them.
	follow(model) {
		if (!model.overlay)
			return;
		const { processes } = model.overlay.model.raw;
		const name = model.process === ALL ? "" : model.raw.processes[model.process].name;
		const same = processes.flatMap((process, i) => name && process.name === name ? [i] : []);
		model.overlay.model.select(same.length === 1 ? same[0] : ALL);
	},

	// What the notice says of the other run.
	words(model, joined) {
		const { raw } = model.overlay.model;
		const longer = raw.time.span_ns - model.span_ns;
		return `Dashed: ${raw.title || raw.run.command || "another run"}, ${Format.date(raw.run.start_time_ns)}, ` +
			`${Format.duration(raw.time.span_ns)}, aligned at its start. ${Format.count(joined)} of ${Format.count(model.metrics.length)} ` +
			`strips are in both runs.` + (longer > model.bin_ns ? ` Its last ${Format.duration(longer)} are not shown.` : "");
	},

	connect(model, changed) {
		const file = find("#overlay-file"), note = find("#overlay-note");
		const say = (text, bad) => {
			note.hidden = !text;
			note.querySelector("span").textContent = text;
			note.classList.toggle("failure", Boolean(bad));
			find("#overlay-off").hidden = Boolean(bad);
		};
		const lay = (name, read) => {
			try {
				say(Overlay.words(model, Overlay.join(model, new Model(read()))));
			} catch (error) {
				Overlay.leave(model);
				say(`${name} can't be laid over this run: ${error.message}.`, true);
			}
			changed();
			document.documentElement.dataset.overlay = model.overlay ? "yes" : "no";
		};
		const open = async chosen => {
			const text = await chosen.text();
			lay(chosen.name, () => Overlay.dataOf(text));
		};
		const other = find("#other-data").textContent.trim();
		if (other)
			lay("The other run", () => Overlay.parse(other));
		find("#overlay").addEventListener("click", () => file.click());
		file.addEventListener("change", () => {
			if (file.files.length)
				open(file.files[0]);
			file.value = "";
		});
		find("#overlay-off").addEventListener("click", () => {
			Overlay.leave(model);
			say("");
			changed();
		});
		document.addEventListener("dragover", event => event.preventDefault());
		document.addEventListener("drop", event => {
			event.preventDefault();
			if (event.dataTransfer.files.length)
				open(event.dataTransfer.files[0]);
		});
	},
};
Overlay.FORMAT = 2;
