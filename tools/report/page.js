// SPDX-License-Identifier: Apache-2.0
// The report of one run, or of two that are compared.
'use strict';

const runs = data.runs;
const two = runs.length > 1;

// Stages of a send WQE: from where to where, and a colour.
const stageInfo = {
	posted: ['doorbell written, until the NIC takes it', '#999999'],
	queued: ['until it is its QP’s turn', '#cc79a7'],
	fetch: ['the WQE is read from memory', '#56b4e9'],
	held: ['waits for credit, fence or PSNs', '#f0d000'],
	payload: ['the first packet’s payload is read from memory', '#009e73'],
	transmit: ['until the last frame has left', '#0072b2'],
	answer: ['wire, responder, and the acknowledgement’s way back', '#e69f00'],
	completion: ['until the NIC writes the CQE', '#d55e00'],
	report: ['until the CQE is in memory', '#332288'],
};
const PCIE_TLP_BYTES = 24; // framing and header of a TLP, as docs/cosim.md counts them

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

// A headline, and a sentence that explains it.
function verdict(run) {
	const most = run.events.nics.flatMap((nic) => loads(run, nic)).sort((a, b) => b.share - a.share)[0];
	const busiest = run.events.nics.filter((n) => n.messages).sort((a, b) => b.bytes - a.bytes)[0];

	if (!busiest)
		return ['No message was recorded from its doorbell to its completion',
			'Record longer, or begin the window before the messages.'];
	const [stage, s] = largestStage(busiest);
	const where = `A message of ${busiest.nic} takes ${time(busiest.latency_ns.mean)} on average, ` +
		`${percent(s.share)} of it in the stage “${stage}”: ${stageInfo[stage][0]}.`;

	if (most.share >= BOUND)
		return [`${most.nic.nic}: ${most.what} bounds this run, ${percent(most.share)} used`, where];
	return [`No link bounds this run; its messages wait in “${stage}”`,
		`${where} The busiest link is used by ${percent(most.share)} while there is traffic: ${most.nic.nic}, ${most.what}.`];
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

function head(box) {
	for (const run of runs) {
		const s = run.summary, chips = element('div', null, { class: 'chips' });
		const set = s.simulator ? s.simulator.settings : null;
		const list = [`exit status ${s.exit_status}`, `${s.hosts} host${s.hosts > 1 ? 's' : ''}`];

		box.append(element('small', two ? `urdma: run ${run.name}` : 'urdma: where the time of a run goes'), element('h1', s.command));
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
		if (!run.events) {
			section(main, two ? run.name : 'What bounds this run',
				'This run recorded no events. Repeat it with --trace pcap,events.', 'verdict');
			continue;
		}
		const [headline, text] = verdict(run);
		const s = section(main, two ? `${run.name}: ${headline}` : headline, text, 'verdict');

		for (const nic of run.events.nics.filter((n) => n.messages)) {
			s.append(element('h3', nic.nic));
			cards(s, [
				[number(nic.messages), nic.failed ? `messages, ${nic.failed} failed` : 'messages'],
				[gbps(nic.goodput_gbps), 'goodput'],
				[rate(nic.messages_per_s), 'messages'],
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

// The stages as they follow each other, and their figures.
function timeOfMessage(main) {
	const some = senders();
	const s = section(main, 'Where a message spends its time',
		'Mean of all messages, from the doorbell to the CQE in memory. Each stage begins where the one before it ends.');
	const box = grid(s), names = Object.keys(stageInfo);
	const datasets = some.map(({ run, nic }, i) => {
		let at = 0;

		return { label: label(run, nic), backgroundColor: some.length > 1 ? colour(i) : names.map((n) => stageInfo[n][1]),
			minBarLength: 2, data: names.map((n) => [at, at += nic.stages_ns[n].mean]) };
	});

	plot(box, 'stages', { type: 'bar', data: { labels: names, datasets }, options: { indexAxis: 'y',
		scales: { x: { ticks: { callback: (v) => time(v) } }, y: { grid: { display: false } } },
		plugins: { legend: { display: some.length > 1 },
			tooltip: { callbacks: { label: (c) => `${c.dataset.label}: ${time(c.raw[1] - c.raw[0])}` } } } } });

	const right = element('div'), shown = some.slice(0, 2);

	box.append(right);
	table(right, ['stage', 'in which', ...shown.flatMap(({ run, nic }) => [label(run, nic), 'share'])], names.map((n) =>
		[stageName(n), element('small', stageInfo[n][0]), ...shown.flatMap(({ nic }) => {
			const d = nic.stages_ns[n], cells = [time(d.mean), percent(d.share)];

			return n === largestStage(nic)[0] ? cells.map((cell) => element('b', cell)) : cells;
		})]), [1]);
}

function stageName(n) {
	const name = element('span', n, { class: 'stage' });

	name.prepend(element('i', null, { style: `background: ${stageInfo[n][1]}` }));
	return name;
}

function links(main) {
	const s = section(main, 'Use of the links', 'Mean while there is traffic, of what the settings allow. A link in red ' +
		`is used by ${percent(BOUND)} or more, and bounds the run.`);
	const box = grid(s);

	for (const { run, nic } of nics()) {
		const part = element('div');

		part.append(element('h3', label(run, nic)));
		bars(part, loads(run, nic).map(({ what, share }) => ({ name: what, share, text: percent(share), strong: share >= BOUND })));
		box.append(part);
	}
}

function plots(main) {
	const box = grid(main);
	const some = senders();

	if (some.length)
		plot(section(box, 'Latency', 'Messages in each bucket, from the doorbell to the CQE in memory'), 'latency', { type: 'line',
			data: { datasets: some.map(({ run, nic }, i) => ({ label: label(run, nic), borderColor: colour(i),
				backgroundColor: colour(i) + '33', fill: true, borderWidth: 1.5, pointRadius: 0, stepped: true,
				data: histogram(nic.latency_ns.buckets) })) },
			options: { parsing: false, scales: {
				x: { type: 'logarithmic', ticks: { maxTicksLimit: 8, callback: (v) => time(v) } },
				y: { beginAtZero: true, title: { display: true, text: 'messages' } } } } });
	depths(box);
	overTime(section(box, 'Wire', 'Frames with preamble, FCS and gap'), 'wire', 'Gb/s', nics().flatMap(({ run, nic }) =>
		['sent', 'received'].map((d) => ({ label: `${label(run, nic)} ${d}`, limit: limits(run, nic).wire,
			points: slices(run, nic.wire[d].gbps, nic.wire[d].slice_ns) }))));
	overTime(section(box, 'PCIe', 'Payload with the share of framing and headers'), 'pcie', 'Gb/s',
		nics().flatMap(({ run, nic }) => [['to_host', 'to the host'], ['from_host', 'from the host']].map(([d, text]) => ({
			label: `${label(run, nic)} ${text}`, limit: limits(run, nic).pcie,
			points: slices(run, nic.pcie[d].gbps.map((v) => v * overhead(nic.pcie[d])), nic.pcie[d].slice_ns) }))));
	overTime(section(box, 'PCIe reads outstanding', 'Mean of each slice'), 'reads', 'reads', nics().map(({ run, nic }) => ({
		label: label(run, nic), points: slices(run, nic.pcie_reads.outstanding, nic.pcie_reads.slice_ns) })));
	retransmissions(box);
}

// Steps that fall to 0 between buckets that do not touch.
function histogram(buckets) {
	const points = [];
	let last = null;

	for (const [from, to, n] of buckets) {
		if (last !== from)
			points.push({ x: Math.max(last || from * 0.97, 1), y: 0 });
		points.push({ x: Math.max(from, 1), y: n });
		last = to;
	}
	points.push({ x: Math.max(last, 1), y: 0 });
	return points;
}

const MOST_QPS = 32; // that a plot shows

// QPs that have sent, with the most messages first.
function busyQps() {
	return nics().flatMap(({ run, nic }) => nic.qps.filter((q) => q.messages).map((q) => ({ run, nic, q })))
		.sort((a, b) => b.q.messages - a.q.messages);
}

function depths(box) {
	const all = busyQps(), some = all.slice(0, MOST_QPS);
	const s = section(box, 'Depth of the send queues', 'WQEs posted and not completed' +
		(all.length > some.length ? `, of the ${MOST_QPS} QPs with the most messages` : ''));

	if (!some.length)
		return;
	plot(s, 'depth', { type: 'bar', data: { labels: some.map(({ run, nic, q }) => `${label(run, nic)} QP ${q.qp}`), datasets: [
		{ label: 'mean', backgroundColor: colour(0), data: some.map(({ q }) => q.depth.mean) },
		{ label: 'most', backgroundColor: colour(4), data: some.map(({ q }) => q.depth.max) }] },
	options: { scales: { x: { grid: { display: false } }, y: { beginAtZero: true, title: { display: true, text: 'WQEs' } } } } });
}

function retransmissions(box) {
	const some = senders().filter(({ nic }) => Object.values(nic.retries).some((n) => n));
	const s = section(box, 'Retransmissions', some.length ? 'Retries by cause' : 'There were none.');

	if (!some.length)
		return;
	const causes = Object.keys(some[0].nic.retries).filter((c) => some.some(({ nic }) => nic.retries[c]));

	plot(s, 'retries', { type: 'bar', data: { labels: causes, datasets: some.map(({ run, nic }, i) => ({ label: label(run, nic),
		backgroundColor: colour(i), maxBarThickness: 60, data: causes.map((c) => nic.retries[c]) })) },
	options: { scales: { x: { grid: { display: false } }, y: { beginAtZero: true, ticks: { precision: 0 } } } } });
}

function details(main) {
	const stages = section(main, 'Stages', 'Of all messages of a NIC');
	const rows = senders().flatMap(({ run, nic }) => Object.entries(nic.stages_ns).map(([stage, d]) =>
		[label(run, nic), stage, time(d.mean), time(d.p50), time(d.p99), time(d.max), percent(d.share)]));

	table(stages, ['NIC', 'stage', 'mean', 'p50', 'p99', 'max', 'share'], rows, [1]);

	const qps = section(main, 'Queue pairs', 'Depth: send WQEs posted and not completed');

	table(qps, ['NIC', 'QP', 'messages', 'bytes', 'goodput', 'mean depth', 'max', 'p50', 'p99', 'largest stage'],
		busyQps().map(({ run, nic, q }) => {
			const [stage, d] = largestStage(q);

			return [label(run, nic), q.qp, number(q.messages), bytes(q.bytes), gbps(q.goodput_gbps),
				number(q.depth.mean, 1), number(q.depth.max), time(q.latency_ns.p50), time(q.latency_ns.p99),
				`${stage} ${percent(d.share)}`];
		}));

	const causes = section(main, 'Causes of retransmissions', 'Of each QP that had to send packets again');

	table(causes, ['NIC', 'QP', 'cause', 'retries', 'packets sent again by the QP'], busyQps().flatMap(({ run, nic, q }) =>
		Object.entries(q.retries).filter(([, n]) => n).map(([cause, n]) =>
			[label(run, nic), q.qp, cause, number(n), number(q.packets_sent_again)])), [2]);

	const misses = section(main, 'Translation', 'Page table entries that had to be read from memory');

	table(misses, ['NIC', 'client', 'look-ups', 'misses', 'refused'], nics().flatMap(({ run, nic }) =>
		Object.entries(nic.translation).filter(([, x]) => x.lookups).map(([client, x]) =>
			[label(run, nic), client, number(x.lookups), number(x.misses), number(x.refused)])), [1]);

	const waits = section(main, 'Stalls', 'Streams that had valid without ready');

	table(waits, ['NIC', 'stream', 'stalls', 'in all', 'longest'], nics().flatMap(({ run, nic }) =>
		Object.entries(nic.stalls).filter(([, x]) => x.n).map(([stream, x]) =>
			[label(run, nic), stream, number(x.n), time(x.ns), time(x.longest_ns)])), [1]);
}

// What shows the frames of a message in Wireshark: those from its first to its last, and the answer.
function wiresharkFilter(w) {
	return `frame.number in {${w.first_frame}..${w.last_frame}${w.answer_frame ? `, ${w.answer_frame}` : ''}}`;
}

function slowest(main) {
	for (const run of runs.filter((r) => r.events && r.events.slowest.length)) {
		const s = section(main, two ? `The slowest messages of ${run.name}` : 'The slowest messages',
			'“Begins” is the moment in the trace. The filter shows the frames in the sender’s capture: those of the message, ' +
			'with what other QPs sent meanwhile, and the answer.');
		const ids = run.events.slowest.map((w) => `${run.name}-${w.nic}-${w.qp}-${w.wqe}-${w.moments_ns[0]}`);

		legend(s, Object.entries(stageInfo).map(([name, [, c]]) => ({ name, colour: c })));
		table(s, ['message', 'operation', 'status', 'retries', 'latency', 'stages', 'begins', 'capture', 'filter for Wireshark'],
			run.events.slowest.map((w, i) => {
				const retries = Object.values(w.retries).reduce((a, b) => a + b, 0);
				const parts = Object.entries(w.stages_ns).map(([name, value]) => ({ name, value, colour: stageInfo[name][1] }));
				const file = run.files.captures[w.nic];

				return [element('a', `${w.nic} QP ${w.qp} WQE ${w.wqe}`, { href: `#${ids[i]}` }), `${w.op}, ${bytes(w.bytes)}`, w.status,
					number(retries), time(w.whole_ns), stack(parts, time), `${number(w.moments_ns[0])} ns`,
					file ? element('a', file.split('/').pop(), { href: file }) : 'none',
					w.first_frame ? element('code', wiresharkFilter(w)) : 'no frames'];
			}), [1, 2, 5, 7, 8], ids);
	}
}

// The files beside the page, and what opens them.
function files(main) {
	for (const run of runs.filter((r) => r.files.trace || Object.keys(r.files.captures).length)) {
		const s = section(main, two ? `Files of ${run.name}` : 'Files'), rows = [];

		if (run.files.trace)
			rows.push([element('a', run.files.trace, { href: run.files.trace }),
				'every message, packet and TLP on a line of time: open it at ui.perfetto.dev']);
		for (const file of Object.values(run.files.captures))
			rows.push([element('a', file, { href: file }), 'frames of the port, for Wireshark']);
		table(s, ['file', 'what'], rows, [0, 1]);
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

drawPage((box, main) => {
	head(box);
	figures(main);
	if (two && runs.every((r) => r.events))
		comparison(main);
	if (nics().length) {
		if (senders().length)
			timeOfMessage(main);
		links(main);
		plots(main);
		slowest(main);
		details(main);
	}
	files(main);
	cost(main);
});
