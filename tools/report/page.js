// SPDX-License-Identifier: Apache-2.0
// Draws the report from the data in the page: one run, or two that are compared. docs/report.md describes
// the page. The page's body says how drawing went: data-drawn, data-errors.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const runs = data.runs;
const two = runs.length > 1;
const errors = [];

window.addEventListener('error', (e) => {
	errors.push(e.message);
	document.body.dataset.errors = errors.join('; ');
});

// Okabe and Ito's palette: all colours can be told apart by everybody.
const palette = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442', '#999999', '#332288'];
const PCIE_TLP_BYTES = 24; // framing and header of a TLP, as docs/cosim.md counts them

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

// Three digits, with the unit that suits.
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
const percent = (share) => `${number(share * 100, 1)} %`;

function section(parent, title, text, className) {
	const s = element('section', null, className ? { class: className } : {});

	s.append(element('h2', title));
	if (text)
		s.append(element('p', text));
	parent.append(s);
	return s;
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

// ---- plots --------------------------------------------------------------------------------------

function plot(parent, id, config) {
	const box = element('div', null, { class: 'plot' }), canvas = element('canvas', null, { id });
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

// series: { label, points: [{x, y, begin}], limit }. x in ns of traffic, without the pauses; begin in ns of simulated time.
function overTime(parent, id, unit, series) {
	const datasets = [], limits = new Map();

	series.forEach((s, i) => {
		datasets.push({ label: s.label, data: s.points, borderColor: colour(i), backgroundColor: colour(i),
			borderWidth: 1.5, pointRadius: 0, stepped: true });
		if (s.limit && s.points.length)
			limits.set(s.limit, [s.points[0].x, s.points[s.points.length - 1].x]);
	});
	for (const [limit, [from, to]] of limits)
		datasets.push({ label: `limit ${number(limit, 2)}`, data: [{ x: from, y: limit }, { x: to, y: limit }],
			borderColor: '#666666', borderDash: [6, 4], borderWidth: 1, pointRadius: 0 });
	const title = ([item]) => item.raw.begin === undefined ? '' : `from ${number(item.raw.begin)} ns on`;

	plot(parent, id, { type: 'line', data: { datasets }, options: { parsing: false,
		plugins: { tooltip: { callbacks: { title } } }, scales: {
		x: { type: 'linear', title: { display: true, text: 'simulated time without pauses' },
			ticks: { maxTicksLimit: 7, callback: (v) => time(v) } },
		y: { beginAtZero: true, title: { display: true, text: unit } } } } });
}

function slices(run, list, ns) {
	return list.map((y, i) => ({ x: i * ns, y, begin: run.events.slices_ns[i] }));
}

// ---- what a run's figures are ---------------------------------------------------------------------

const label = (run, nic) => two ? `${run.name} ${nic.nic}` : nic.nic;

// All NICs of all runs that have events.
function nics() {
	return runs.filter((r) => r.events).flatMap((run) => run.events.nics.map((nic) => ({ run, nic })));
}
const senders = () => nics().filter(({ nic }) => nic.messages);

// The limits of a NIC's links, in Gb/s, as the simulator was set.
function limits(run, nic) {
	const set = run.summary.simulator.nics.find((n) => n.name === nic.nic);

	return { wire: set.rate_gbps, pcie: set.pcie.gbps };
}

// Payload and TLP overhead to payload alone.
const overhead = (d) => d.bytes ? (d.bytes + d.tlps * PCIE_TLP_BYTES) / d.bytes : 1;

// Mean of the slices in which traffic passed, as a share of the limit.
function busy(list, limit) {
	const some = list.filter((v) => v > 0);

	return some.length && limit ? some.reduce((a, b) => a + b, 0) / some.length / limit : 0;
}

function loads(run, nic) {
	const limit = limits(run, nic);

	return [
		['the wire, sending', busy(nic.wire.sent.gbps, limit.wire)],
		['the wire, receiving', busy(nic.wire.received.gbps, limit.wire)],
		['PCIe towards the host', busy(nic.pcie.to_host.gbps, limit.pcie / overhead(nic.pcie.to_host))],
		['PCIe from the host', busy(nic.pcie.from_host.gbps, limit.pcie / overhead(nic.pcie.from_host))],
	].map(([what, share]) => ({ what, share, nic }));
}

function largestStage(m) {
	return Object.entries(m.stages_ns).sort((a, b) => b[1].share - a[1].share)[0];
}

const BOUND = 0.85; // of a link's limit: beyond it the link is what bounds a run

function verdict(run) {
	const most = run.events.nics.flatMap((nic) => loads(run, nic)).sort((a, b) => b.share - a.share)[0];
	const busiest = run.events.nics.filter((n) => n.messages).sort((a, b) => b.bytes - a.bytes)[0];

	if (!busiest)
		return 'No send WQE began and ended while events were recorded.';
	const [stage, s] = largestStage(busiest);
	const where = `${percent(s.share)} of the time of a message of ${busiest.nic} passes in the stage “${stage}”`;

	if (most.share >= BOUND)
		return `${most.nic.nic}: ${most.what} is used by ${percent(most.share)} while there is traffic. ` +
			`This link bounds the run. ${where}.`;
	return `No link bounds the run: the busiest is ${most.nic.nic}, ${most.what}, with ${percent(most.share)} ` +
		`while there is traffic. ${where}.`;
}

// ---- the page -------------------------------------------------------------------------------------

// What all wires, or all NICs, have in common is one text; else each has its own, with names before it.
function texts(named) {
	const of = new Map();

	for (const [name, text] of named)
		of.set(text, [...of.get(text) || [], name]);
	return [...of].map(([text, names]) => of.size > 1 ? `${names.join(', ')}: ${text}` : text);
}

function lines(system) {
	const wires = system.wires.map((w) => [`wire ${w.wire}`, w]);

	for (const s of system.switches)
		wires.push(...Object.entries(s.wires).map(([port, w]) => [`wire of ${port}`, w]));
	return texts(wires.map(([name, w]) => [name, `${w.rate} Gb/s, ${w.delay} ns`]));
}

function slots(system) {
	return texts(system.hosts.flatMap((host) => host.nics).map((nic, i) => [`urdma${i}`,
		(nic['pcie-gbps'] ? `PCIe ${nic['pcie-gbps']} Gb/s` : `PCIe ${nic['pcie-gen']}.0 x${nic['pcie-lanes']}`) +
		`, ${nic['pcie-latency']} ns, payload ${nic.mps}, read request ${nic.mrrs}`]));
}

function head() {
	const box = document.getElementById('head');

	for (const run of runs) {
		const s = run.summary, chips = element('div', null, { class: 'chips' });
		const set = s.simulator ? s.simulator.settings : null;
		const list = [`exit status ${s.exit_status}`, `${s.hosts} host${s.hosts > 1 ? 's' : ''}`];

		box.append(element('h1', two ? `${run.name}: ${s.command}` : s.command));
		if (set)
			list.push(`${set.nics} NICs`, ...lines(set.system), ...slots(set.system),
				set.system.faults.length ? `${set.system.faults.join(' ')}, seed ${set.system.seed}` : 'no faults');
		if (run.events)
			list.push(`${number(run.events.events)} events` + (run.events.complete ? '' : ', not complete'));
		list.forEach((c) => chips.append(element('span', c, { class: 'chip' })));
		box.append(chips);
	}
	document.title = `urdma: ${runs.map((r) => two ? r.name : r.summary.command).join(' and ')}`;
}

function figures(main) {
	for (const run of runs) {
		const s = section(main, two ? run.name : 'What bounds this run', null, 'verdict');

		if (!run.events) {
			s.append(element('p', 'This run recorded no events. Repeat it with --trace pcap,events.'));
			continue;
		}
		s.append(element('p', verdict(run)));
		for (const nic of run.events.nics.filter((n) => n.messages)) {
			s.append(element('h2', nic.nic));
			cards(s, [
				[number(nic.messages), nic.failed ? `messages, ${nic.failed} failed` : 'messages'],
				[gbps(nic.goodput_gbps), 'goodput'],
				[rate(nic.messages_per_s), 'message rate'],
				[time(nic.latency_ns.p50), 'median latency'],
				[time(nic.latency_ns.p99), '99th percentile'],
				[time(nic.latency_ns.max), 'longest'],
				[number(nic.packets_sent_again), 'packets sent again'],
			]);
		}
	}
}

// Metrics of two runs, by how much they differ.
function metrics(run) {
	const list = new Map();

	for (const nic of run.events.nics) {
		const put = (name, value, show) => list.set(`${nic.nic}: ${name}`, { value, show });

		put('goodput', nic.goodput_gbps, gbps);
		put('message rate', nic.messages_per_s, rate);
		for (const p of ['p50', 'p90', 'p99', 'max'])
			put(`latency, ${p}`, nic.latency_ns[p], time);
		for (const [stage, d] of Object.entries(nic.stages_ns))
			put(`stage ${stage}, mean`, d.mean, time);
		put('packets sent again', nic.packets_sent_again, (v) => number(v));
		for (const [cause, n] of Object.entries(nic.retries))
			put(`retries by ${cause}`, n, (v) => number(v));
		for (const [client, x] of Object.entries(nic.translation))
			put(`translation misses, ${client}`, x.misses, (v) => number(v));
		for (const [stream, x] of Object.entries(nic.stalls))
			put(`stalls of ${stream}`, x.ns, time);
		for (const { what, share } of loads(run, nic))
			put(`use of ${what}`, share, percent);
	}
	return list;
}

function comparison(main) {
	const s = section(main, 'What changed most', `${runs[0].name} against ${runs[1].name}, the greatest change first`);
	const [a, b] = runs.map(metrics), rows = [];

	for (const [name, x] of a) {
		const y = b.get(name);

		// What is 0 in both runs has not changed; 1 keeps a change from 0 finite.
		if (y && (x.value || y.value))
			rows.push([name, x, y, Math.abs(Math.log((y.value + 1e-3) / (x.value + 1e-3)))]);
	}
	rows.sort((p, q) => q[3] - p[3]);
	table(s, ['what', runs[0].name, runs[1].name, 'ratio'], rows.slice(0, 30).map(([name, x, y]) =>
		[name, x.show(x.value), y.show(y.value), x.value ? number(y.value / x.value, 3) : 'new']));
}

function plots(main) {
	const grid = element('div', null, { class: 'grid' });
	const some = senders();

	main.append(grid);
	if (some.length) {
		const names = Object.keys(some[0].nic.stages_ns);
		const s = section(grid, 'Where the time of a message goes', 'Mean of all messages, split by stage');

		plot(s, 'stages', { type: 'bar', data: { labels: some.map(({ run, nic }) => label(run, nic)),
			datasets: names.map((stage, i) => ({ label: stage, backgroundColor: colour(i),
				data: some.map(({ nic }) => nic.stages_ns[stage].mean) })) },
			options: { indexAxis: 'y', scales: { x: { stacked: true, ticks: { callback: (v) => time(v) } },
				y: { stacked: true } } } });

		const h = section(grid, 'Latency', 'Messages in each bucket, from the doorbell to the CQE in memory');

		plot(h, 'latency', { type: 'line', data: { datasets: some.map(({ run, nic }, i) => ({
			label: label(run, nic), borderColor: colour(i), backgroundColor: colour(i), borderWidth: 1.5,
			pointRadius: 1.5, stepped: true,
			data: nic.latency_ns.buckets.map(([from, , n]) => ({ x: Math.max(from, 1), y: n })) })) },
			options: { parsing: false, scales: {
				x: { type: 'logarithmic', ticks: { maxTicksLimit: 8, callback: (v) => time(v) } },
				y: { beginAtZero: true, title: { display: true, text: 'messages' } } } } });
	}
	overTime(section(grid, 'Wire', 'Frames with preamble, FCS and gap'), 'wire', 'Gb/s', nics().flatMap(({ run, nic }) =>
		['sent', 'received'].map((d) => ({ label: `${label(run, nic)} ${d}`, limit: limits(run, nic).wire,
			points: slices(run, nic.wire[d].gbps, nic.wire[d].slice_ns) }))));
	overTime(section(grid, 'PCIe', 'Payload with the share of framing and headers'), 'pcie', 'Gb/s',
		nics().flatMap(({ run, nic }) => [['to_host', 'to the host'], ['from_host', 'from the host']].map(([d, text]) => ({
			label: `${label(run, nic)} ${text}`, limit: limits(run, nic).pcie,
			points: slices(run, nic.pcie[d].gbps.map((v) => v * overhead(nic.pcie[d])), nic.pcie[d].slice_ns) }))));
	overTime(section(grid, 'PCIe reads outstanding', 'Mean of each slice'), 'reads', 'reads', nics().map(({ run, nic }) => ({
		label: label(run, nic), points: slices(run, nic.pcie_reads.outstanding, nic.pcie_reads.slice_ns) })));
	retransmissions(grid);
}

function retransmissions(grid) {
	const some = senders().filter(({ nic }) => Object.values(nic.retries).some((n) => n));
	const s = section(grid, 'Retransmissions', some.length ? 'Retries by cause' : 'There were none.');

	if (!some.length)
		return;
	plot(s, 'retries', { type: 'bar', data: { labels: Object.keys(some[0].nic.retries),
		datasets: some.map(({ run, nic }, i) => ({ label: label(run, nic), backgroundColor: colour(i),
			data: Object.values(nic.retries) })) }, options: { scales: { y: { beginAtZero: true } } } });
}

function details(main) {
	const stages = section(main, 'Stages', 'From the doorbell to the CQE in memory');
	const rows = senders().flatMap(({ run, nic }) => Object.entries(nic.stages_ns).map(([stage, d]) =>
		[label(run, nic), stage, time(d.mean), time(d.p50), time(d.p99), time(d.max), percent(d.share)]));

	table(stages, ['NIC', 'stage', 'mean', 'p50', 'p99', 'max', 'share'], rows, [1]);

	const qps = section(main, 'Queue pairs', 'Depth: send WQEs posted and not completed');

	table(qps, ['NIC', 'QP', 'messages', 'bytes', 'goodput', 'mean depth', 'max', 'p50', 'p99', 'largest stage'],
		nics().flatMap(({ run, nic }) => nic.qps.filter((q) => q.messages).map((q) => {
			const [stage, d] = largestStage(q);

			return [label(run, nic), q.qp, number(q.messages), bytes(q.bytes), gbps(q.goodput_gbps),
				number(q.depth.mean, 1), number(q.depth.max), time(q.latency_ns.p50), time(q.latency_ns.p99),
				`${stage} ${percent(d.share)}`];
		})));

	const links = section(main, 'Links', 'Mean use while there is traffic, against the limit of the settings');

	table(links, ['NIC', 'link', 'use'], nics().flatMap(({ run, nic }) => loads(run, nic).map(({ what, share }) =>
		[label(run, nic), what, percent(share)])), [1]);

	const misses = section(main, 'Translation', 'Page table entries that had to be read from memory');

	table(misses, ['NIC', 'client', 'look-ups', 'misses', 'refused'], nics().flatMap(({ run, nic }) =>
		Object.entries(nic.translation).filter(([, x]) => x.lookups).map(([client, x]) =>
			[label(run, nic), client, number(x.lookups), number(x.misses), number(x.refused)])), [1]);

	const waits = section(main, 'Stalls', 'Streams that had valid without ready');

	table(waits, ['NIC', 'stream', 'stalls', 'in all', 'longest'], nics().flatMap(({ run, nic }) =>
		Object.entries(nic.stalls).filter(([, x]) => x.n).map(([stream, x]) =>
			[label(run, nic), stream, number(x.n), time(x.ns), time(x.longest_ns)])), [1]);
}

// The longest stage, with the moment at which it began.
function longest(w) {
	return Object.entries(w.stages_ns).sort((a, b) => b[1] - a[1])[0];
}

function slowest(main) {
	for (const run of runs.filter((r) => r.events && r.events.slowest.length)) {
		const s = section(main, two ? `The slowest messages of ${run.name}` : 'The slowest messages',
			'Moments are those of the trace and of the capture. Frames are numbered as in the capture.');
		const ids = run.events.slowest.map((w) => `${run.name}-${w.nic}-${w.qp}-${w.wqe}-${w.moments_ns[0]}`);

		table(s, ['NIC', 'QP', 'WQE', 'operation', 'bytes', 'status', 'retries', 'latency', 'longest stage', 'trace', 'capture'],
			run.events.slowest.map((w, i) => {
				const [stage, ns] = longest(w), retries = Object.values(w.retries).reduce((a, b) => a + b, 0);
				const at = w.moments_ns[0], trace = run.files.trace ? element('a', `${number(at)} ns`,
					{ href: `${run.files.trace}#${at}` }) : `${number(at)} ns`;
				const file = run.files.captures[w.nic];
				const frames = w.first_frame ? `${number(w.first_frame)} to ${number(w.last_frame)}` : 'none';
				const capture = file && w.first_frame ? element('a', frames, { href: `${file}#frame=${w.first_frame}` }) : frames;

				return [w.nic, element('a', w.qp, { href: `#${ids[i]}` }), w.wqe, w.op, bytes(w.bytes), w.status, number(retries),
					time(w.whole_ns), `${stage} ${time(ns)}`, trace, capture];
			}), [3, 5], ids);
	}
}

function cost(main) {
	const s = section(main, 'Cost of the simulation', 'Wall time and CPU time of the machine that simulated');

	table(s, ['run', 'wall time', 'CPU time', 'cycles evaluated', 'skipped', 'cycles per CPU second'],
		runs.filter((r) => r.summary.simulator).map((run) => {
			const x = run.summary.simulator;

			return [run.name, `${number(x.wall_seconds, 1)} s`, `${number(x.cpu_user_seconds + x.cpu_system_seconds, 1)} s`,
				number(x.cycles_evaluated), number(x.cycles_skipped), number(x.evaluated_per_cpu_second)];
		}));
}

function draw() {
	const main = document.getElementById('main');

	head();
	figures(main);
	if (two && runs.every((r) => r.events))
		comparison(main);
	if (nics().length) {
		plots(main);
		main.append(element('p'));
		details(main);
		slowest(main);
	}
	cost(main);
	document.body.dataset.drawn = document.querySelectorAll('canvas').length;
}

draw();
document.body.dataset.errors = errors.join('; ');
