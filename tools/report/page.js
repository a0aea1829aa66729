// SPDX-License-Identifier: Apache-2.0
// The report of one run, or of two that are compared: from summary.json and the JSON of urdma-events and urdma-samples.
'use strict';

const runs = data.runs;
const two = runs.length > 1;

// Stages of a send WQE: from where to where, and a colour.
const stageInfo = {
	posted: ['doorbell written, until the NIC takes it', '#999999'],
	queued: ['until it is its QP’s turn', '#cc79a7'],
	fetch: ['the WQE is read from memory, and those before it begin', '#56b4e9'],
	held: ['waits for credit, fence or PSNs', '#f0d000'],
	payload: ['the first packet’s payload is read from memory', '#009e73'],
	transmit: ['until the last frame has left', '#0072b2'],
	answer: ['wire, responder, and the acknowledgement’s way back', '#e69f00'],
	completion: ['until the NIC writes the CQE', '#d55e00'],
	report: ['until the CQE is in memory', '#332288'],
};
const FRAME_BYTES = 24; // preamble, FCS and gap of a frame

// Slices of events, or of samples: their length, where they begin in simulated time, and how long all are.
const eventSlices = (run) => ({ slice_ns: run.events.nics[0].wire.sent.slice_ns, slices_ns: run.events.slices_ns });

function slices(timeline, list) {
	return list.map((y, i) => ({ x: i * timeline.slice_ns, y, begin: timeline.slices_ns[i] }));
}

// ---- the trigger ----------------------------------------------------------------------------------

const triggerOf = (run) => run.summary.simulator ? run.summary.simulator.trigger : null;

function triggerText(t) {
	return t.at_ns === null ? `Trigger ${t.what}: it never came, ${number(t.seen)} of its events were seen`
		: `Trigger ${t.what}: it came at ${number(t.at_ns)} ns`;
}

// The place of a moment among the slices, in ns from the first one on; null: outside. A pause is a point in time.
function placeOf(timeline, at) {
	const begins = timeline.slices_ns, i = begins.filter((begin) => begin <= at).length - 1, ns = timeline.slice_ns;

	if (i < 0 || (i === begins.length - 1 && at >= begins[i] + ns))
		return null;
	return i * ns + Math.min(at - begins[i], ns);
}

// The triggers of these runs, as marks of a plot whose slices are those of timelineOf(run).
function triggers(list, timelineOf) {
	return list.filter((run) => triggerOf(run) && triggerOf(run).at_ns !== null).map((run) => ({
		label: two ? `trigger of ${run.name}` : 'trigger', at: triggerOf(run).at_ns,
		x: placeOf(timelineOf(run), triggerOf(run).at_ns) })).filter((m) => m.x !== null);
}

// ---- the figures of a run ---------------------------------------------------------------------------

const label = (run, nic) => two ? `${run.name} ${nic.nic}` : nic.nic;

// All NICs of all runs that have events.
function nics() {
	return runs.filter((r) => r.events).flatMap((run) => run.events.nics.map((nic) => ({ run, nic })));
}
const senders = () => nics().filter(({ nic }) => nic.messages);
const busiest = (run) => run.events.nics.filter((n) => n.messages).sort((a, b) => b.bytes - a.bytes)[0];
// One NIC of each of two runs, or two of one: those that sent most.
const twoSenders = () => two ? runs.filter((run) => run.events && busiest(run)).map((run) => ({ run, nic: busiest(run) }))
	: senders().sort((a, b) => b.nic.bytes - a.nic.bytes).slice(0, 2);
const sum = (list) => list.reduce((a, b) => a + b, 0);
// While messages are in flight, without the pauses that a guest's software makes: in Gb/s, and per second.
const goodput = (of) => of.active_ns ? of.bytes * 8 / of.active_ns : 0;
const messageRate = (of) => of.active_ns ? of.messages * 1e9 / of.active_ns : 0;
// An id for each run's section of a kind.
const idOf = (kind, run) => run === runs[0] ? kind : `${kind}-${runs.indexOf(run) + 1}`;

// The limits of a NIC's links, in Gb/s, as set for the simulator: from the events, or from the simulator's report.
function limits(run, name) {
	const recorded = run.events && run.events.nics.find((n) => n.nic === name);
	const set = run.summary.simulator && run.summary.simulator.nics.find((n) => n.name === name);

	if (recorded)
		return recorded.limits_gbps;
	return set ? { wire: set.rate_gbps, pcie: set.pcie.gbps } : { wire: 0, pcie: 0 };
}

// The use of a link, as a share of its limit, as messages in flight see it: the mean of the slices, each weighted by the
// messages in flight in it. So a long exchange of single messages does not hide a short stream.
function loads(run, nic) {
	const limit = limits(run, nic.nic);
	const flying = run.events.slices_ns.map((_, i) => sum(run.events.nics.map((n) => n.send_queues.wqes[i])));
	const use = (d, l) => sum(flying) && l ? sum(d.gbps.map((v, i) => v * flying[i])) / sum(flying) / l : 0;

	return [
		['wire, sending', 'The wire', 'sends', use(nic.wire.sent, limit.wire)],
		['wire, receiving', 'The wire', 'receives', use(nic.wire.received, limit.wire)],
		['PCIe to the host', 'PCIe', 'sends to its host', use(nic.pcie.to_host, limit.pcie)],
		['PCIe from the host', 'PCIe', 'receives from its host', use(nic.pcie.from_host, limit.pcie)],
	].map(([what, link, does, share]) => ({ what, link, does: `${nic.nic} ${does} at ${percent(share)} of the limit`, share }));
}

function largestStage(m) {
	return Object.entries(m.stages_ns).sort((a, b) => b[1].share - a[1].share)[0];
}

const BOUND = 0.85; // of a link's limit: above it the link is the bottleneck of a run

// A headline, and a sentence that explains it.
function verdict(run) {
	const most = run.events.nics.flatMap((n) => loads(run, n)).sort((a, b) => b.share - a.share)[0];
	const nic = busiest(run);

	if (!nic)
		return ['No message was recorded from its doorbell to its completion',
			'If the run has sent messages by RDMA, record longer, or begin the window before them.'];
	const [stage, s] = largestStage(nic);
	const again = nic.packets_sent_again ? ` ${nic.nic} has sent ${number(nic.packets_sent_again)} packets again.` : '';
	const where = `A message of ${nic.nic} takes ${time(nic.latency_ns.mean)} on average, ` +
		`${percent(s.share)} of it in the stage “${stage}”: ${stageInfo[stage][0]}.${again}`;

	if (most.share >= BOUND)
		return [`${most.link} bounds this run: ${most.does}`, where];
	return [`No link bounds this run; its messages wait in “${stage}”`,
		`${where} The busiest link is that on which ${most.does}, while messages are in flight.`];
}

// ---- the page -------------------------------------------------------------------------------------

// If all wires, or all NICs, have a value in common, it is one text; otherwise each has its own, with names before it.
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

// The files that the run was told to write.
function traceText(settings) {
	const kinds = [['pcap', settings.captures], ['events', settings.events], ['csv', settings.csv], ['perfetto', settings.perfetto],
		['fst', settings.waves]].filter(([, on]) => on).map(([name]) => name);

	return `--trace ${kinds.join(',') || 'none'}` + (settings.sample_us ? ` --sample-us ${settings.sample_us}` : '');
}

function head(box) {
	for (const run of runs) {
		const s = run.summary, chips = element('div', null, { class: 'chips' });
		const system = s.simulator ? s.simulator.settings.system : run.system;
		const list = [...(s.began ? [`began ${s.began}`] : []), ...(s.version ? [`urdma ${s.version}${s.commit ? ` (${s.commit})` : ''}`] : []),
			`exit status ${s.exit_status}`, `${s.hosts} host${s.hosts > 1 ? 's' : ''}`];

		box.append(element('small', two ? `urdma: run ${run.name}` : 'urdma: where the time of a run goes'), element('h1', s.command, { title: s.command }));
		if (system)
			list.push(`${system.hosts.reduce((sum, host) => sum + host.nics.length, 0)} NICs`, ...lines(system), ...slots(system),
				system.faults.length ? `${system.faults.join(' ')}, seed ${system.seed}` : 'no faults');
		if (s.simulator)
			list.push(traceText(s.simulator.settings));
		if (run.events)
			list.push(`${number(run.events.events)} events` + (run.events.complete ? '' : ', not complete'));
		list.forEach((c) => chips.append(element('span', c, { class: 'chip' })));
		box.append(chips);
		if (s.error)
			box.append(element('p', `The run failed: ${s.error}`));
		if (triggerOf(run))
			box.append(element('p', triggerText(triggerOf(run)), { id: idOf('trigger', run) }));
	}
	document.title = `urdma: ${runs.map((r) => two ? r.name : r.summary.command).join(' and ')}`;
}

function figures(main) {
	for (const run of runs) {
		if (!run.events) {
			section(main, idOf('verdict', run), two ? run.name : 'What bounds this run',
				'This run recorded no events. Repeat it with --trace pcap,events.', 'verdict');
			continue;
		}
		const [headline, text] = verdict(run);
		const s = section(main, idOf('verdict', run), two ? `${run.name}: ${headline}` : headline, text, 'verdict');

		for (const nic of run.events.nics.filter((n) => n.messages)) {
			s.append(element('h3', nic.nic));
			cards(s, [
				[number(nic.messages), nic.failed ? `messages, ${nic.failed} failed` : 'messages'],
				[gbps(goodput(nic)), 'goodput, in flight'],
				[rate(messageRate(nic)), 'messages, in flight'],
				[time(nic.latency_ns.p50), 'median latency'],
				[time(nic.latency_ns.p99), '99th percentile'],
				[time(nic.latency_ns.max), 'longest'],
				[number(nic.packets_sent_again), 'packets sent again'],
			]);
		}
	}
}

// Metrics of a run. least: a smaller change means little: a hundredth of a message's time, of a link, of one per message.
function metrics(run) {
	const list = new Map();

	for (const nic of run.events.nics) {
		const put = (name, value, show, least) => list.set(`${nic.nic}: ${name}`, { value, show, least });
		const times = nic.messages ? nic.latency_ns.mean / 100 : 1, counts = Math.max(1, nic.messages / 100);

		put('goodput', goodput(nic), gbps, 1e-3);
		put('message rate', messageRate(nic), rate, 1);
		for (const p of nic.messages ? ['mean', 'p50', 'p90', 'p99', 'max'] : [])
			put(`latency, ${p}`, nic.latency_ns[p], time, times);
		for (const [stage, d] of nic.messages ? Object.entries(nic.stages_ns) : [])
			put(`stage ${stage}, mean`, d.mean, time, times);
		put('packets sent again', nic.packets_sent_again, (v) => number(v), counts);
		for (const [cause, n] of Object.entries(nic.retries))
			put(`retries by ${cause}`, n, (v) => number(v), counts);
		for (const [client, x] of Object.entries(nic.translation))
			put(`translation misses, ${client}`, x.misses, (v) => number(v), counts);
		for (const [stream, x] of Object.entries(nic.stalls))
			put(`stalls of ${stream}`, x.ns, time, times * counts);
		for (const { what, share } of loads(run, nic))
			put(`use of ${what}`, share, percent, 0.01);
	}
	return list;
}

// A decrease is shown as a fraction: 1/200.
function ratio(to, from) {
	if (!from)
		return 'new';
	return to && to < from ? `1/${number(from / to, 1)}` : number(to / from, 1);
}

// A message's time in both runs, in a sentence: of the NICs that sent most.
function compared() {
	const [a, b] = runs.map(busiest);

	if (!a || !b)
		return '';
	return `A message of ${a.nic} takes ${time(a.latency_ns.mean)} on average in ${runs[0].name}, and one of ${b.nic} takes ` +
		`${time(b.latency_ns.mean)} in ${runs[1].name}, a ratio of ${ratio(b.latency_ns.mean, a.latency_ns.mean)}. `;
}

function comparison(main) {
	const s = section(main, 'comparison', 'What changed most',
		`${compared()}${runs[0].name} against ${runs[1].name}, the greatest change first.`);
	const [a, b] = runs.map(metrics), rows = [];

	for (const [name, x] of a) {
		const y = b.get(name);

		// What is 0 in both runs has not changed.
		if (y && (x.value || y.value))
			rows.push([name, x, y, Math.abs(Math.log((y.value + x.least) / (x.value + x.least)))]);
	}
	rows.sort((p, q) => q[3] - p[3]);
	table(s, ['what', runs[0].name, runs[1].name, 'ratio'], rows.slice(0, 20).map(([name, x, y]) =>
		[name, x.show(x.value), y.show(y.value), ratio(y.value, x.value)]));
}

// The stages as they follow each other, and their figures.
function timeOfMessage(main) {
	const some = senders();
	const s = section(main, 'stages', 'Where a message spends its time',
		'Mean of all messages, from the doorbell to the CQE in memory. Each stage begins where the one before it ends.');
	const box = grid(s), names = Object.keys(stageInfo);
	const datasets = some.map(({ run, nic }, i) => {
		let at = 0;

		return { label: label(run, nic), backgroundColor: some.length > 1 ? colour(i) : names.map((n) => stageInfo[n][1]),
			minBarLength: 2, data: names.map((n) => [at, at += nic.stages_ns[n].mean]) };
	});

	plot(box, { type: 'bar', data: { labels: names, datasets }, options: { indexAxis: 'y',
		scales: { x: { ticks: { callback: (v) => time(v) } }, y: { grid: { display: false } } },
		plugins: { legend: { display: some.length > 1 },
			tooltip: { callbacks: { label: (c) => `${c.dataset.label}: ${time(c.raw[1] - c.raw[0])}` } } } } });

	// The table has room for two NICs.
	const right = element('div'), shown = twoSenders();

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
	const s = section(main, 'links', 'Use of the links', 'Mean while messages are in flight, of what the settings allow. A link in red ' +
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
	const some = senders(), marks = triggers(runs.filter((run) => run.events), eventSlices);

	if (some.length)
		plot(section(box, 'latency', 'Latency', 'Messages in each bucket, from the doorbell to the CQE in memory'), { type: 'line',
			data: { datasets: some.map(({ run, nic }, i) => ({ label: label(run, nic), borderColor: colour(i),
				backgroundColor: colour(i) + '33', fill: true, borderWidth: 1.5, pointRadius: 0, stepped: true,
				data: histogram(nic.latency_ns.buckets) })) },
			options: { parsing: false, scales: {
				x: logarithmic(time),
				y: { beginAtZero: true, title: { display: true, text: 'messages' } } } } });
	percentiles(box);
	depths(box);
	overTime(section(box, 'queues', 'Send queues over time', 'WQEs posted and not acknowledged, of all QPs of a NIC. Mean of each slice'),
		'WQEs', nics().map(({ run, nic }) => ({ label: label(run, nic), points: slices(eventSlices(run), nic.send_queues.wqes) })), marks);
	qpsOverTime(box, marks);
	// One NIC receives the requests that another one has sent: a comparison can leave them out.
	overTime(section(box, 'wire', 'Wire', 'Frames with preamble, FCS and gap'), 'Gb/s', nics().flatMap(({ run, nic }) =>
		(two ? ['sent'] : ['sent', 'received']).map((d) => ({ label: `${label(run, nic)} ${d}`, limit: limits(run, nic.nic).wire,
			points: slices(eventSlices(run), nic.wire[d].gbps) }))), marks);
	overTime(section(box, 'pcie', 'PCIe', 'TLPs with framing and headers'), 'Gb/s',
		nics().flatMap(({ run, nic }) => [['to_host', 'to the host'], ['from_host', 'from the host']].map(([d, text]) => ({
			label: `${label(run, nic)} ${text}`, limit: limits(run, nic.nic).pcie,
			points: slices(eventSlices(run), nic.pcie[d].gbps) }))), marks);
	overTime(section(box, 'reads', 'PCIe reads outstanding', 'Mean of each slice'), 'reads', nics().map(({ run, nic }) => ({
		label: label(run, nic), points: slices(eventSlices(run), nic.pcie_reads.outstanding) })), marks);
	costOfMessage(box);
	retransmissions(main);
}

// ---- counters over time ---------------------------------------------------------------------------

const MOST_NICS = 4; // the most NICs whose counters are shown, and
const MOST_COUNTERS = 8; // the most counters in a plot

// A counter goes to the first group that accepts it. Counters of the simulator and of the NIC that count the same are shown
// once.
const GROUPS = [
	['frames, packets and completions', (kind, name) => (kind === 'port' && /^[rt]x_frames$/.test(name)) ||
		(kind === 'counters' && /^(cqe|eqe|eth_[rt]x_frames|[rt]x_(rdma_pkts|ack|read_rsp))$/.test(name))],
	['TLPs and interrupts', (kind, name) => kind === 'pcie' && /^(dma_reads|dma_writes|register_reads|register_writes|interrupts)$/.test(name)],
	['look-ups in page tables and directories', (kind, name) => kind === 'counters' && /^(pte|dir)_/.test(name)],
	['retries, drops and errors', (kind, name) => kind === 'counters' ?
		/_(err|exc|gap|dup|ghost|drop|lost|overflow|timeout|unexpected|malformed|retrans|bad|filtered|length)$|^(db|mmio|dma|rx)_bad|nak|_drop_|_no_/.test(name)
		: /^lost_|faults$|resets$/.test(name)],
	['doorbells and others', (kind, name) => kind === 'counters' && !/^(([rt]x_(frames|bytes))|(rd|wr)_tlp|irq)$/.test(name)],
];

// A sum of counters for each slice, each times a factor, per second.
function rates(samples, kind, terms) {
	return samples.slices_ns.map((_, i) => sum(Object.entries(terms).map(([name, factor]) => kind[name] ? kind[name][i] * factor : 0)) *
		1e9 / samples.slice_ns);
}

// The traffic on a NIC's links, beside their limits.
function linkPlots(box, run, name, nic, marks) {
	const limit = limits(run, name), s = run.samples, bits = 8e-9;
	const gbit = (kind, terms) => slices(s, rates(s, nic[kind] || {}, terms));

	titled(box, `${name}: wire`, 'Gb/s', [
		{ label: 'sent', limit: limit.wire, points: gbit('port', { tx_bytes: bits, tx_frames: FRAME_BYTES * bits }) },
		{ label: 'received', limit: limit.wire, points: gbit('port', { rx_bytes: bits, rx_frames: FRAME_BYTES * bits }) }], marks);
	titled(box, `${name}: PCIe`, 'Gb/s', [
		{ label: 'to the host', limit: limit.pcie, points: gbit('pcie', { to_host_bytes: bits }) },
		{ label: 'from the host', limit: limit.pcie, points: gbit('pcie', { from_host_bytes: bits }) }], marks);
}

function titled(box, title, unit, series, marks, show) {
	const part = element('div');

	part.append(element('h3', title));
	box.append(part);
	overTime(part, unit, series, marks, show);
}

// The counters of each group that changed, the largest first.
function grouped(nic) {
	const found = GROUPS.map(() => []);

	for (const [kind, counters] of Object.entries(nic))
		for (const [name, list] of Object.entries(counters)) {
			const i = GROUPS.findIndex(([, takes]) => takes(kind, name));

			if (i >= 0)
				found[i].push({ kind, name, n: sum(list) });
		}
	return found.map((list, i) => ({ title: GROUPS[i][0], list: list.sort((a, b) => b.n - a.n) })).filter(({ list }) => list.length);
}

function counters(main) {
	for (const run of runs.filter((r) => r.samples && r.samples.slices_ns.length)) {
		const frames = ([, nic]) => sum(Object.entries(nic.port || {}).filter(([n]) => n.endsWith('frames')).map(([, list]) => sum(list)));
		const all = Object.entries(run.samples.nics), some = all.slice().sort((a, b) => frames(b) - frames(a)).slice(0, MOST_NICS);
		const shown = all.filter((nic) => some.includes(nic)), marks = triggers([run], () => run.samples);
		const s = section(main, idOf('counters', run), two ? `Counters of ${run.name} over time` : 'Counters over time',
			`Those that changed, in a second, from samples each ${time(run.summary.simulator.settings.sample_us * 1000)}` +
			(all.length > shown.length ? `, of the ${MOST_NICS} NICs with the most frames` : ''));
		const box = grid(s);

		for (const [name, nic] of shown) {
			linkPlots(box, run, name, nic, marks);
			for (const { title, list } of grouped(nic)) {
				const more = list.length > MOST_COUNTERS ? `, the ${MOST_COUNTERS} largest of ${list.length}` : '';

				titled(box, `${name}: ${title}${more}`, 'per second', list.slice(0, MOST_COUNTERS).map((c) => ({ label: c.name,
					points: slices(run.samples, rates(run.samples, nic[c.kind], { [c.name]: 1 })) })), marks, rate);
			}
		}
	}
}

// ---- figures --------------------------------------------------------------------------------------

const per = (n, of) => of ? number(n / of, 2) : 'none';

// The work of software and NIC for one message. A NIC that only receives reads and writes for the messages of others, so its
// counts are divided by all messages of the run.
function costOfMessage(box) {
	const s = section(box, 'cost-of-message', 'What a message costs', 'Of all messages of the run, for each NIC. A look-up is an access to ' +
		'memory within one page; a miss waits for a read of the page table.');
	const columns = nics().slice(0, 4), all = (run) => run.events.nics.reduce((sum, nic) => sum + nic.messages, 0);
	const row = (name, value) => [name, ...columns.map(({ run, nic }) => value(nic, all(run)))];
	const clients = Object.keys(columns[0].nic.translation).filter((c) => columns.some(({ nic }) => nic.translation[c].lookups));

	table(s, ['for each message', ...columns.map(({ run, nic }) => label(run, nic))], [
		row('WQEs for each doorbell', (nic) => per(nic.messages, nic.doorbells)),
		row('PCIe reads', (nic, n) => per(nic.pcie.from_host.dma_reads, n)),
		row('PCIe writes', (nic, n) => per(nic.pcie.to_host.dma_writes, n)),
		row('interrupts', (nic, n) => per(nic.interrupts, n)),
		...clients.map((c) => row(`look-ups, ${c}`, (nic, n) => per(nic.translation[c].lookups, n))),
		row('page table misses', (nic, n) => per(Object.values(nic.translation).reduce((sum, x) => sum + x.misses, 0), n)),
	]);
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

// Shares of messages whose latency is at most the percentile.
const PERCENTILES = [['p50', 0.5], ['p90', 0.9], ['p99', 0.99], ['p99.9', 0.999], ['max', 1]];

// Means of the stages, of the messages in the bucket that contains the percentile.
function splitAt(latency, share) {
	let i = 0;

	for (let n = latency.buckets[0][2]; n < latency.n * share && i + 1 < latency.buckets.length; n += latency.buckets[i][2])
		i++;
	return latency.split[i];
}

// The slow messages wait for something else than most.
function percentiles(box) {
	const some = twoSenders();

	if (!some.length)
		return;
	const s = section(box, 'percentiles', 'Latency by percentile and stage', 'Mean of each stage, of the messages whose latency is ' +
		'in the bucket of the percentile');
	const names = Object.keys(stageInfo);
	const rows = some.flatMap(({ run, nic }) => PERCENTILES.map(([name, share]) =>
		({ name: `${label(run, nic)} ${name}`, split: splitAt(nic.latency_ns, share) })));

	const canvas = plot(s, { type: 'bar', data: { labels: rows.map((r) => r.name), datasets: names.map((n, i) => ({ label: n,
		backgroundColor: stageInfo[n][1], stack: 'stages', data: rows.map((r) => r.split[i]) })) },
	options: { indexAxis: 'y', scales: { x: { stacked: true, ticks: { callback: (v) => time(v) } },
		y: { stacked: true, grid: { display: false } } },
	plugins: { tooltip: { callbacks: { label: (c) => `${c.dataset.label}: ${time(c.raw)}` } } } } });
	canvas.dataset.bars = rows.map((r) => sum(r.split)).join(' ');
}

const MOST_QPS = 32; // the most QPs that a plot shows

// QPs that have sent, with the most messages first.
function busyQps() {
	return nics().flatMap(({ run, nic }) => nic.qps.filter((q) => q.messages).map((q) => ({ run, nic, q })))
		.sort((a, b) => b.q.messages - a.q.messages);
}

function depths(box) {
	const all = busyQps(), some = all.slice(0, MOST_QPS);
	const s = section(box, 'depth', 'Depth of the send queues', 'WQEs posted and not acknowledged' +
		(all.length > some.length ? `, of the ${MOST_QPS} QPs with the most messages` : ''));

	if (!some.length) {
		s.append(element('p', 'No message was recorded as a whole.'));
		return;
	}
	plot(s, { type: 'bar', data: { labels: some.map(({ run, nic, q }) => `${label(run, nic)} QP ${q.qp}`), datasets: [
		{ label: 'mean', backgroundColor: colour(0), data: some.map(({ q }) => q.depth.mean) },
		{ label: 'most', backgroundColor: colour(4), data: some.map(({ q }) => q.depth.max) }] },
	options: { scales: { x: { grid: { display: false } }, y: { beginAtZero: true, title: { display: true, text: 'WQEs' } } } } });
}

const MOST_LINES = 8; // QPs over time

function qpsOverTime(box, marks) {
	const some = nics().flatMap(({ run, nic }) => nic.qps.filter((q) => q.sent.gbps).map((q) => ({ run, nic, q })))
		.sort((a, b) => b.q.sent.bytes - a.q.sent.bytes).slice(0, MOST_LINES);

	overTime(section(box, 'qps-over-time', 'Queue pairs over time', `Frames that a QP sends, answers too. The ${MOST_LINES} that send most, at most`),
		'Gb/s', some.map(({ run, nic, q }) => ({ label: `${label(run, nic)} QP ${q.qp}`,
			points: slices(eventSlices(run), q.sent.gbps) })), marks);
}

const MOST_CAUSES = 10; // QPs in the table

function retransmissions(main) {
	const some = senders().filter(({ nic }) => Object.values(nic.retries).some((n) => n));
	const s = section(main, 'retransmissions', 'Retransmissions', some.length ? `Retries by cause, of each NIC, and of the ${MOST_CAUSES} QPs that sent most packets again` : 'There were none.');

	if (!some.length)
		return;
	const causes = Object.keys(some[0].nic.retries).filter((c) => some.some(({ nic }) => nic.retries[c]));
	const box = grid(s), right = element('div');

	plot(box, { type: 'bar', data: { labels: causes, datasets: some.map(({ run, nic }, i) => ({ label: label(run, nic),
		backgroundColor: colour(i), maxBarThickness: 60, data: causes.map((c) => nic.retries[c]) })) },
	options: { scales: { x: { grid: { display: false } }, y: { beginAtZero: true, ticks: { precision: 0 } } } } });
	box.append(right);
	table(right, ['NIC', 'QP', ...causes, 'packets sent again'], busyQps().filter(({ q }) => Object.values(q.retries).some((n) => n))
		.sort((a, b) => b.q.packets_sent_again - a.q.packets_sent_again).slice(0, MOST_CAUSES).map(({ run, nic, q }) =>
			[label(run, nic), q.qp, ...causes.map((c) => number(q.retries[c])), number(q.packets_sent_again)]));
}

// The verdicts on request packets at the NIC that receives them.
const packetStages = {
	receive: 'from its first to its last beat',
	check: 'until its checks are over',
	decide: 'until the responder has decided on it',
	place: 'until its payload is on its way to memory',
	answer: 'from the decision to the answer that covers it',
	send: 'until the answer begins on the wire',
};

function responders(main) {
	const s = section(main, 'responder', 'Packets at their receiver', 'What the stage “answer” has besides the wire: the way of a request ' +
		'packet through the NIC that receives it. Placement and answer begin together, with the decision');
	const rows = nics().flatMap(({ run, nic }) => Object.entries(nic.responder.stages_ns).filter(([, d]) => d.n).map(([stage, d]) =>
		[label(run, nic), stage, packetStages[stage], number(d.n), time(d.mean), time(d.p50), time(d.p99), time(d.max)]));

	table(s, ['NIC', 'stage', 'in which', 'packets', 'mean', 'p50', 'p99', 'max'], rows, [1, 2]);
}

function details(main) {
	const stages = section(main, 'stage-figures', 'Stages', 'Of all messages of a NIC');
	const rows = senders().flatMap(({ run, nic }) => Object.entries(nic.stages_ns).map(([stage, d]) =>
		[label(run, nic), stage, time(d.mean), time(d.p50), time(d.p99), time(d.max), percent(d.share)]));

	table(stages, ['NIC', 'stage', 'mean', 'p50', 'p99', 'max', 'share'], rows, [1]);

	responders(main);

	const qps = section(main, 'qps', 'Queue pairs', 'Depth: send WQEs posted and not acknowledged. Goodput: while there are some');

	table(qps, ['NIC', 'QP', 'messages', 'bytes', 'goodput', 'mean depth', 'max', 'p50', 'p99', 'largest stage'],
		busyQps().map(({ run, nic, q }) => {
			const [stage, d] = largestStage(q);

			return [label(run, nic), q.qp, number(q.messages), bytes(q.bytes), gbps(goodput(q)),
				number(q.depth.mean, 1), number(q.depth.max), time(q.latency_ns.p50), time(q.latency_ns.p99),
				`${stage} ${percent(d.share)}`];
		}));

	const misses = section(main, 'translation', 'Translation', 'Accesses to pages, and their look-ups in page tables and directories. A hit finds the entry on chip, a miss waits for a read of host memory');

	table(misses, ['NIC', 'client', 'accesses', 'hits', 'misses', 'hit rate', 'directory hits', 'directory misses', 'refused'],
		nics().flatMap(({ run, nic }) =>
			Object.entries(nic.translation).filter(([, x]) => x.lookups).map(([client, x]) =>
				[label(run, nic), client, number(x.lookups), number(x.hits), number(x.misses),
					x.hits + x.misses ? percent(x.hits / (x.hits + x.misses)) : '', number(x.directory_hits),
					number(x.directory_misses), number(x.refused)])), [1]);

	const waits = section(main, 'stalls', 'Stalls', 'Streams that had valid without ready');

	table(waits, ['NIC', 'stream', 'stalls', 'in all', 'longest'], nics().flatMap(({ run, nic }) =>
		Object.entries(nic.stalls).filter(([, x]) => x.n).map(([stream, x]) =>
			[label(run, nic), stream, number(x.n), time(x.ns), time(x.longest_ns)])), [1]);
}

// A display filter for the frames of a message in Wireshark: those from its first to its last, those that were sent again, and
// the answer.
function wiresharkFilter(w) {
	const again = w.frames_again.map(([from, to]) => (from === to ? `,${from}` : `,${from}..${to}`)).join('');

	return `frame.number in {${w.first_frame}..${w.last_frame}${again}${w.answer_frame ? `,${w.answer_frame}` : ''}}`;
}

function filterOf(w) {
	const box = element('span');

	box.append(element('code', wiresharkFilter(w)));
	if (w.more_frames_again)
		box.append(' and more that were sent again');
	return box;
}

function slowest(main) {
	for (const run of runs.filter((r) => r.events && r.events.slowest.length)) {
		const s = section(main, idOf('slowest', run), two ? `The slowest messages of ${run.name}` : 'The slowest messages',
			'“Begins” is the moment of the doorbell, in the time of trace and captures; its trace, for ui.perfetto.dev, has what all NICs did then. The filter shows the frames in the sender’s capture: those of the message, with what other QPs sent meanwhile, those that were sent again, and the answer.');
		const ids = run.events.slowest.map((w) => `${idOf('wqe', run)}-${w.nic}-${w.qp}-${w.wqe}-${w.moments_ns[0]}`);

		legend(s, Object.entries(stageInfo).map(([name, [, c]]) => ({ name, colour: c })));
		table(s, ['message', 'operation', 'latency', 'stages', 'begins', 'capture', 'filter for Wireshark'],
			run.events.slowest.map((w, i) => {
				const parts = Object.entries(w.stages_ns).map(([name, value]) => ({ name, value, colour: stageInfo[name][1] }));
				const capture = run.files.captures[w.nic];

				return [element('a', `${w.nic} QP ${w.qp} WQE ${w.wqe}`, { href: `#${ids[i]}` }), operation(w), time(w.whole_ns), stack(parts, time),
					element('a', `${number(w.moments_ns[0])} ns`, { href: `${run.files.moments}/${w.window_ns[0]}.perfetto` }),
					capture ? element('a', capture.split('/').pop(), { href: capture }) : 'none',
					w.first_frame ? filterOf(w) : 'no frames'];
			}), [1, 3, 5, 6], ids);
	}
}

// The message, and its faults.
function operation(w) {
	const retries = Object.entries(w.retries).filter(([, n]) => n).map(([cause, n]) => `${n} × ${cause}`);
	const trouble = [...w.status === 'success' ? [] : [w.status], ...retries].join(', '), box = element('span', `${w.op}, ${number(w.bytes)} B`);

	if (trouble)
		box.append(element('br'), element('small', trouble, { class: 'bad' }));
	return box;
}

// The files beside the page, and the programs that open them.
function files(main) {
	for (const run of runs.filter((r) => r.files.trace || Object.keys(r.files.captures).length)) {
		const s = section(main, idOf('files', run), two ? `Files of ${run.name}` : 'Files'), rows = [];

		if (run.files.trace)
			rows.push([element('a', run.files.trace, { href: run.files.trace }),
				'every message, packet and TLP on a line of time: open it at ui.perfetto.dev']);
		for (const file of Object.values(run.files.captures))
			rows.push([element('a', file, { href: file }), 'frames of the port, for Wireshark']);
		table(s, ['file', 'what'], rows, [0, 1]);
	}
}

function cost(main) {
	const s = section(main, 'cost', 'Cost of the simulation', 'Wall time and CPU time of the machine that simulated');

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
	counters(main);
	files(main);
	cost(main);
});
