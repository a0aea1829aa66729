// SPDX-License-Identifier: Apache-2.0
// Functions that all pages draw with: texts, tables, plots. The page's body tells how drawing went: data-drawn, the number of
// plots; data-errors, the errors. docs/report.md describes the pages.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const errors = [];

window.addEventListener('error', (e) => {
	errors.push(e.message);
	document.body.dataset.errors = errors.join('; ');
});

// Okabe and Ito's palette: all colours can be told apart by everybody.
const palette = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442', '#999999', '#332288'];

// ---- text ---------------------------------------------------------------------------------------

function element(tag, text, attributes) {
	const e = document.createElement(tag);

	if (text !== undefined && text !== null)
		e.textContent = text;
	for (const [key, value] of Object.entries(attributes || {}))
		e.setAttribute(key, value);
	return e;
}

function number(value, digits) {
	return value.toLocaleString('en-US', { maximumFractionDigits: digits === undefined ? 0 : digits });
}

// Three digits, with a suitable unit.
function scaled(value, units, step) {
	let i = 0;

	while (Math.abs(value) >= step && i + 1 < units.length) {
		value /= step;
		i++;
	}
	return `${number(value, value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${units[i]}`;
}
const time = (ns) => scaled(ns, ['ns', 'µs', 'ms', 's'], 1000);
const bytes = (n) => scaled(n, ['B', 'KB', 'MB', 'GB'], 1000);
const rate = (perSecond) => scaled(perSecond, ['/s', 'k/s', 'M/s'], 1000);
const gbps = (value) => `${number(value, 2)} Gb/s`;
const percent = (share) => share > 0 && share < 0.0005 ? '< 0.1 %' : `${number(share * 100, 1)} %`;

// The id is for links, for tests and for pictures of one section.
function section(parent, id, title, text, className) {
	const s = element('section', null, className ? { id, class: className } : { id });

	s.append(element('h2', title));
	if (text)
		s.append(element('p', text));
	parent.append(s);
	return s;
}

// A row of boxes side by side, as many as there is room for.
function grid(parent) {
	const box = element('div', null, { class: 'grid' });

	parent.append(box);
	return box;
}

// rows: arrays of texts or elements. text: columns, by number, that hold text.
function table(parent, head, rows, text, ids) {
	if (!rows.length) {
		parent.append(element('p', 'None.'));
		return;
	}
	const box = element('div', null, { class: 'scroll' }), t = element('table'), first = element('tr');

	head.forEach((h, i) => first.append(element('th', h, text && text.includes(i) ? { class: 'text' } : {})));
	t.append(first);
	rows.forEach((row, n) => {
		const tr = element('tr', null, ids ? { id: ids[n] } : {});

		row.forEach((cell, i) => {
			const td = element('td', cell instanceof Node ? null : cell,
				text && text.includes(i) ? { class: 'text' } : {});

			if (cell instanceof Node)
				td.append(cell);
			tr.append(td);
		});
		t.append(tr);
	});
	box.append(t);
	parent.append(box);
}

function cards(parent, list) {
	const box = element('div', null, { class: 'cards' });

	for (const [value, name] of list) {
		const card = element('div', null, { class: 'card' });

		card.append(element('b', value), element('span', name));
		box.append(card);
	}
	parent.append(box);
}

// Bars of shares, 0 to 1: { name, share, text, strong }.
function bars(parent, list) {
	const box = element('div', null, { class: 'bars' });

	for (const b of list) {
		const track = element('div', null, { class: 'track' });

		track.append(element('div', null, { class: b.strong ? 'fill strong' : 'fill',
			style: `width: ${Math.min(b.share, 1) * 100}%` }));
		box.append(element('span', b.name), track, element('b', b.text));
	}
	parent.append(box);
}

// One bar of several parts: { name, value, colour }. The parts' names show under the pointer.
function stack(parts, show) {
	const sum = parts.reduce((n, p) => n + p.value, 0), bar = element('div', null, { class: 'stack' });

	for (const p of parts.filter((q) => q.value > 0))
		bar.append(element('i', null, { title: `${p.name} ${show(p.value)}`,
			style: `width: ${p.value / sum * 100}%; background: ${p.colour}` }));
	return bar;
}

// A list of names with their colours.
function legend(parent, list) {
	const box = element('div', null, { class: 'legend' });

	for (const { name, colour: c } of list) {
		const item = element('span', name);

		item.prepend(element('i', null, { style: `background: ${c}` }));
		box.append(item);
	}
	parent.append(box);
}

// ---- plots --------------------------------------------------------------------------------------

Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
Chart.defaults.color = '#5b6776';
Chart.defaults.borderColor = '#e8ecf1';
Chart.defaults.plugins.legend.labels.boxWidth = 12;
Chart.defaults.plugins.legend.labels.boxHeight = 12;
Chart.defaults.plugins.legend.align = 'start';

function plot(parent, config) {
	const box = element('div', null, { class: 'plot' }), canvas = element('canvas');
	const points = config.data.datasets.reduce((sum, d) => sum + d.data.length, 0);

	canvas.dataset.points = points;
	box.append(canvas);
	parent.append(box);
	config.options = Object.assign({ responsive: true, maintainAspectRatio: false, animation: false,
		interaction: { mode: 'nearest', intersect: false } }, config.options);
	new Chart(canvas, config);
	return canvas;
}

const colour = (i) => palette[i % palette.length];

// A logarithmic axis with numbers at 1, 2 and 5.
const logarithmic = (show, title) => ({ type: 'logarithmic', title: { display: Boolean(title), text: title },
	ticks: { maxRotation: 0, callback: (v) => ['1', '2', '5'].includes(v.toExponential()[0]) ? show(v) : null } });

// The style of a limit.
const limitLine = (c) => ({ borderColor: c || '#5b6776', backgroundColor: 'transparent', borderDash: [6, 4], borderWidth: 1.2,
	pointRadius: 0 });

// The style of a moment.
const markLine = { borderColor: '#b3261e', backgroundColor: '#b3261e', borderDash: [2, 3], borderWidth: 1.5, pointRadius: 0 };

// series: { label, points: [{x, y, begin}], limit }. x in ns of traffic, without the pauses; begin in ns of simulated time.
// marks: [{ label, x, at }], moments: at is simulated time. show: how the values of the axis are written.
function overTime(parent, unit, series, marks, show) {
	const datasets = [], limits = new Map();
	const end = Math.max(0, ...series.flatMap((s) => s.points.map((p) => p.x)));

	if (!series.some((s) => s.points.length)) {
		parent.append(element('p', 'Nothing passed.'));
		return;
	}
	series.forEach((s, i) => {
		datasets.push({ label: s.label, data: s.points, borderColor: colour(i), backgroundColor: colour(i),
			borderWidth: 1.5, pointRadius: 0, stepped: true });
		limits.set(s.limit, [{ x: 0, y: s.limit }, { x: end, y: s.limit }]);
	});
	for (const [limit, points] of limits)
		if (limit)
			datasets.push({ label: `limit ${number(limit, 2)} ${unit}`, data: points, ...limitLine() });
	const highest = Math.max(0, ...series.flatMap((s) => s.points.map((p) => p.y)));
	const top = Math.max(...datasets.flatMap((d) => d.data.map((p) => p.y))) || 1;

	for (const m of marks)
		datasets.push({ label: m.label, data: [0, top].map((y) => ({ x: m.x, y, at: m.at })), ...markLine });
	const title = ([item]) => item.raw.at !== undefined ? `at ${number(item.raw.at)} ns` :
		item.raw.begin === undefined ? '' : `from ${number(item.raw.begin)} ns on`;
	const canvas = plot(parent, { type: 'line', data: { datasets }, options: { parsing: false,
		plugins: { tooltip: { callbacks: { title } } }, scales: {
		x: { type: 'linear', title: { display: true, text: 'simulated time without pauses' }, max: end || undefined,
			ticks: { maxTicksLimit: 7, maxRotation: 0, callback: (v) => time(v) } },
		y: { beginAtZero: true, title: { display: true, text: unit }, ticks: show ? { callback: (v) => show(v) } : {} } } } });

	canvas.dataset.highest = highest;
	canvas.dataset.marks = marks.map((m) => m.x).join(' ');
}

// ---- the page -------------------------------------------------------------------------------------

// Draws by `content`, which gets the elements for the head and for the rest. Errors are shown on the page.
function drawPage(content) {
	const main = document.getElementById('main');

	try {
		content(document.getElementById('head'), main);
	} catch (e) {
		errors.push(String(e));
		main.append(element('p', `This page could not be drawn as a whole: ${e}`, { class: 'bad' }));
		console.error(e);
	}
	document.body.dataset.drawn = document.querySelectorAll('canvas').length;
	document.body.dataset.errors = errors.join('; ');
}
