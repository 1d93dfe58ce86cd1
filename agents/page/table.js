// SPDX-License-Identifier: MIT
// table.js - a table that is sorted by a click on a column's title, for the pages of agents. It needs dom.js.
"use strict";

// columns: [{ title, value(row), number, className(row), text(row) }]. value sorts, and is shown unless there is a text; number: it is
// one. rowClass(row) is a row's class. show(rows) fills the table with them, and more(count) shows so many more; most is how many
// are shown.
function sortedTable(place, columns, most, rowClass) {
	const missing = (value) => value === undefined || value === null;
	const made = { rows: [], key: null, up: true, most };

	function addTitle(row, column, i) {
		const cell = element("th", column.number ? "number" : ""), isKey = made.key === i;
		const button = element("button", "", column.title + (isKey ? made.up ? " ▲" : " ▼" : ""));
		button.type = "button";
		button.addEventListener("click", () => {
			made.up = isKey ? !made.up : true;
			made.key = i;
			made.show(made.rows);
			place.querySelectorAll("th button")[i].focus();
		});
		cell.setAttribute("aria-sort", isKey ? made.up ? "ascending" : "descending" : "none");
		cell.append(button);
		row.append(cell);
	}

	function addCell(line, column, row) {
		const value = column.value(row);
		const cell = element("td", (column.number ? "number " : "") + (column.className ? column.className(row) : ""));
		cell.textContent = column.text ? column.text(row) : missing(value) ? "" : column.number ? number(value) : value;
		cell.classList.toggle("words", cell.textContent.length > 24);
		line.append(cell);
	}

	made.show = (rows) => {
		made.rows = [...rows];
		if (made.key !== null) {
			const key = columns[made.key].value, sign = made.up ? 1 : -1;
			made.rows.sort((a, b) => missing(key(a)) - missing(key(b)) || (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : 0));
		}
		place.replaceChildren();
		const titles = place.createTHead().insertRow(), body = place.createTBody();
		columns.forEach((column, i) => addTitle(titles, column, i));
		for (const row of made.rows.slice(0, made.most)) {
			const line = body.insertRow();
			line.className = rowClass(row);
			for (const column of columns)
				addCell(line, column, row);
		}
	};
	made.more = (count) => {
		made.most += count;
		made.show(made.rows);
	};
	return made;
}
