// SPDX-License-Identifier: MIT
// keys.js - the keyboard, the buttons that do the same, and the help that lists both.
"use strict";

const HELP = [
	["\u2190 \u2192", "pan"], ["+ \u2212", "zoom in, zoom out"], ["Home", "show the whole run"], ["/", "search for a strip to add"],
	["?", "this help"], ["Esc", "close what is open; else show the whole run"],
	["Drag", "in the overview, the strips or the lanes: choose a time"], ["Double click", "show the whole run"],
	["Ctrl + wheel", "zoom at the pointer; a sideways wheel pans"], ["Click a bar", "show just the time of that interval"],
	["Drop a page", "lay that run over this one"], ["Click r", "compare all strips with that one"], ["Click in the flame graph", "what is below it fills the width"],
];

function connectKeys(view, chooser) {
	const help = find("#help");
	help.querySelector("dl").append(...HELP.map(([key, what]) => make("div", {}, make("dt", {}, make("kbd", { text: key })),
		make("dd", { text: what }))));
	const escape = () => {
		if (help.open)
			help.close();
		else if (find("#chooser").open)
			find("#chooser").open = false;
		else
			view.reset();
	};
	const actions = {
		left: () => view.pan(-0.2), right: () => view.pan(0.2), in: () => view.zoom(0.5), out: () => view.zoom(2),
		reset: () => view.reset(), search: () => chooser.open(), help: () => help.open ? help.close() : help.showModal(), escape,
	};
	const keys = { ArrowLeft: "left", ArrowRight: "right", "+": "in", "=": "in", "-": "out", Home: "reset", "/": "search", "?": "help",
		Escape: "escape" };
	document.addEventListener("keydown", event => {
		const typing = event.target.closest && event.target.closest("select, input, textarea, pre");
		if (typing && event.key !== "Escape" || event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(keys, event.key))
			return;
		actions[keys[event.key]]();
		if (event.key === "Escape" && document.activeElement)
			document.activeElement.blur();
		event.preventDefault();
	});
	for (const button of document.querySelectorAll("[data-do]"))
		button.addEventListener("click", () => actions[button.dataset.do]());
	help.addEventListener("click", event => event.target === help && help.close());
}
