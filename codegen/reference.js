// SPDX-License-Identifier: MIT
// The index's filter: every word must be in a row's text; classes and layers without a row left are hidden.
const box = document.querySelector("#find");
const rows = [...document.querySelectorAll("li[data-t]")];

function find() {
	const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
	let count = 0;
	for (const row of rows) {
		const text = row.dataset.t.toLowerCase();
		row.hidden = !words.every(word => text.includes(word));
		count += !row.hidden;
	}
	for (const section of document.querySelectorAll("section"))
		section.hidden = !section.querySelector("li[data-t]:not([hidden])");
	document.querySelector("#count").textContent =
		words.length ? `${count} of ${rows.length} events` : `${rows.length} events`;
}
box.addEventListener("input", find);
find();
