// SPDX-License-Identifier: MIT
// The index's filter: each word, in any order and case, must stand at the start of a word of a row's text, as in pem list:
// behind what is no letter or digit, or at a capital inside a name. What joins words does not count: "I/O" is "io".
const box = document.querySelector("#find");
const rows = [...document.querySelectorAll("li[data-t]")].map(row => ({row, text: plain(row.dataset.t)}));

// "OS::IoUring, block I/O" becomes " os io uring osiouring block io": each start of a word behind a space.
function plain(text) {
	const words = text.split(/[^\p{L}\p{N}\/_:-]+/u);
	return " " + words.map(parts).join(" ").toLowerCase();
}

// A word, whole and from each of its parts on.
function parts(word) {
	const joined = /[\/_:-]/g, starts = [];
	for (let i = 0; i < word.length; i++)
		if (i === 0 || /[\/_:-]/.test(word[i - 1]) || (/\p{Lu}/u.test(word[i]) && !/\p{Lu}/u.test(word[i - 1])))
			starts.push(word.slice(i).replace(joined, ""));
	return starts.join(" ");
}

function find() {
	const words = box.value.toLowerCase().split(/\s+/).map(word => word.replace(/[^\p{L}\p{N}]/gu, "")).filter(Boolean);
	let count = 0;
	for (const {row, text} of rows) {
		row.hidden = !words.every(word => text.includes(" " + word));
		count += !row.hidden;
	}
	for (const section of document.querySelectorAll("section"))
		section.hidden = !section.querySelector("li[data-t]:not([hidden])");
	document.querySelector("#count").textContent =
		words.length ? `${count} of ${rows.length} events` : `${rows.length} events`;
}
box.addEventListener("input", find);
find();
