// SPDX-License-Identifier: Apache-2.0
// The report of `make bench`: its sweeps as plots beside their limits, and its rows.
'use strict';

// Points of the sweeps. Texts with a comma are in quotes.
function parseCsv(text) {
	const [head, ...lines] = text.trim().split(/\r?\n/).map((line) =>
		[...line.matchAll(/("[^"]*"|[^,]*)(?:,|$)/g)].map((m) => m[1].replace(/"/g, '')));

	return lines.map((cells) => {
		const point = Object.fromEntries(head.map((name, i) => [name, cells[i]]));

		for (const key of ['x', 'value', 'limit', 'percent'])
			point[key] = Number(point[key]);
		return point;
	});
}

// Groups successive items with the same key, in the order of the first of each.
function groups(list, key) {
	const of = new Map();

	for (const item of list)
		of.set(item[key], [...of.get(item[key]) || [], item]);
	return [...of];
}

const points = parseCsv(data.sweeps);
const rows = data.rows;
const shown = (v) => number(v, v < 10 ? 2 : 1);

const texts = {
	'message size': 'One QP, 32 messages in flight, MTU 4096.',
	'QPs': 'Messages of 64 bytes, 32 in flight on each QP, a doorbell and a CQE for each.',
	'MTU': 'One QP, 8 messages in flight.',
	'PCIe read latency': 'One QP, 16 messages in flight.',
	'SGEs': 'One QP, 64 messages in flight, each gathered from so many pieces of memory.',
	'pages in use': '16 QPs, 32 messages in flight on each, every one in the next page. The caches of the NIC hold the entries of 8192 pages.',
};

function sweep(box, name, list) {
	const s = section(box, `sweep-${name.toLowerCase().replace(/ /g, '-')}`, `By ${name}`, texts[name]);
	const series = groups(list, 'series'), unit = list[0].x_unit;
	const xs = [...new Set(list.map((p) => p.x))].sort((a, b) => a - b);

	plot(s, { type: 'line', data: { datasets: series.flatMap(([label, of], i) => [
		{ label, data: of.map(({ x, value }) => ({ x, y: value })), borderColor: colour(i), backgroundColor: colour(i), borderWidth: 2,
			pointRadius: 3 },
		{ label: `${label}, limit`, data: of.map(({ x, limit }) => ({ x, y: limit })), ...limitLine(colour(i)) }]) },
	options: { parsing: false, scales: {
		x: { ...logarithmic((v) => number(v), unit ? `${name} (${unit})` : name), min: xs[0], max: xs[xs.length - 1],
			afterBuildTicks: (axis) => { axis.ticks = xs.map((value) => ({ value })); },
			ticks: { maxRotation: 0, callback: (v) => number(v) } },
		y: { beginAtZero: true, grace: '5%', title: { display: true, text: list[0].unit } } } } });
	// A point with its limit, and the resource that sets it.
	table(s, ['', ...xs.map((x) => number(x))], series.map(([label, of]) => [label, ...xs.map((x) => {
		const p = of.find((q) => q.x === x), cell = element('span', p ? shown(p.value) : '');

		if (p)
			cell.append(element('br'), element('small', `${number(p.percent, 1)} %`, { title: `limit ${shown(p.limit)} ${p.unit}: ${p.by}` }));
		return cell;
	})]));
}

function verdict(main) {
	const judged = rows.filter((r) => r.percent !== null);
	const good = judged.filter((r) => r.percent >= 90).length;
	const over = [...judged, ...points].filter((r) => r.percent > 100);
	const s = section(main, 'verdict', over.length ? `${over.length} figures are above their limit` :
		`${good} of ${judged.length} figures reach 90 % of what physics and interfaces allow`,
	'All figures are counted in simulated cycles, so each run of a version has the same ones. The limit is that of the busiest of ' +
		'wire, PCIe, streams and of what may be outstanding; docs/bench.md explains it.', 'verdict');

	// With the row's name: a load in loopback may pass the rate of the wire.
	const most = (unit, short, what) => rows.filter((r) => r.unit === unit).sort((a, b) => b.value - a.value).slice(0, 1)
		.map((r) => [`${number(r.value, 1)} ${short}`, `${what}: ${r.name}`]);

	cards(s, [
		[number(judged.length), 'figures with a limit'],
		[number(points.length), 'points of sweeps'],
		...most('Gb/s', 'Gb/s', 'highest goodput'),
		...most('million/s', 'M/s', 'most messages'),
	]);
}

function rowTable(main) {
	const s = section(main, 'rows', 'Rows', 'Share of the limit that is reached. Of times, the limit is the least one.');

	table(s, ['figure', 'value', 'unit', 'limit', 'limited by', 'reached', ''], rows.map((r) => {
		const box = element('div', null, { class: 'track' });

		box.append(element('div', null, { class: 'fill', style: `width: ${Math.min(r.percent || 0, 100)}%` }));
		return [r.name, number(r.value, 2), r.unit, r.limit === null ? '' : number(r.limit, 2), r.by || '',
			r.percent === null ? '' : `${number(r.percent, 1)} %`, r.percent === null ? '' : box];
	}), [2, 4, 6]);
}

drawPage((head, main) => {
	head.append(element('small', 'urdma: the benchmark'), element('h1', 'make bench'));
	document.title = 'urdma: make bench';
	verdict(main);
	const box = grid(main);

	for (const [name, list] of groups(points, 'sweep'))
		sweep(box, name, list);
	rowTable(main);
});
