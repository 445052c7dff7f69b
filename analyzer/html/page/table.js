// Functions, files or modules: own is what the innermost of them has that is not of the standard library, total all stacks it stands in.
// Of the whole heap memanalyze has summed them up (analyzer/html/html_table.h); of a span or a comparison they are summed up here.

const LINES = 300;

const keys = {
	function: frame => frame.name,
	file: frame => frame.file || '(source file not known)',
	module: frame => frame.module || '(no module)',
	thread: group => group.name,
	size: group => group.name,
	lifetime: group => group.name,
	type: group => group.name,
	holder: group => group.name,
};
const liveOnly = by => ['thread', 'type', 'holder'].includes(by);
const ofSamples = by => liveOnly(by) || ['size', 'lifetime'].includes(by);

// An array of four numbers of each figure as a sum.
function sideOf(numbers, f) {
	const [n, value, low, high] = numbers.slice(4 * f);
	return { stacks: 1, now: { n, v: value }, width: value, estimate: { value, low, high }, unsure: high - low > value, data: [value, low, high].join(' ') };
}

// Threads, sizes, lifetimes, types and holders; of some there is only what is live.
function sampleGroups(by, f, regex) {
	return head.table[by].rows.map(([name, ...numbers], number) => {
		const total = sideOf(numbers, f), [, live] = numbers.slice(4 * (f & 1)), [, allocated] = numbers.slice(8 + 4 * (f & 1));
		return { number, frame: { name }, own: total, total, ownLive: live, ownAllocated: allocated || 0 };
	}).filter(group => group.own.now.n).filter(group => !regex || regex.test(group.frame.name));
}

function groupsOf(by, f, regex) {
	if (ofSamples(by))
		return sampleGroups(by, f, regex);
	const known = new Map(frames.map(frame => [frame.name + frame.module, frame]));
	return head.table[by].rows.map(([name, module, owns, ...numbers]) => {
		const own = sideOf(numbers, f), total = sideOf(numbers.slice(16), f), [, live] = numbers.slice(4 * (f & 1)), [, allocated] = numbers.slice(8 + 4 * (f & 1));
		own.stacks = owns;
		module = module || '';
		const frame = by === 'function' && known.get(name + module) || { name: by === 'function' ? name : '', file: by === 'file' && !module ? name : '', module };
		return { frame, own, total, ownLive: live, ownAllocated: allocated };
	}).filter(group => !regex || fits(group.frame, regex));
}

// What a row leads to in the graph: null if that has nothing of it.
function targetOf(by, frame) {
	if (ofSamples(by))
		return null;
	if (by === 'function')
		return frames.includes(frame) ? { fn: String(frames.indexOf(frame)), q: '' } : null;
	const q = exactly(by === 'file' && frame.file ? base(frame.file) : frame.module), regex = pattern(q);
	return frames.some(other => fits(other, regex)) ? { fn: '', q } : null;
}

function groupsBy(by, f, regex) {
	const groups = new Map(), keyOf = frames.map(frame => by === 'function' ? frame : keys[by](frame));
	const groupOf = frame => {
		const k = keyOf[frame];
		if (!groups.has(k))
			groups.set(k, { frame: frames[frame], own: new Sum(f), total: new Sum(f), ownAllocated: 0, ownLive: 0 });
		return groups.get(k);
	};
	for (const e of shown) {
		const inner = e.path.findLastIndex(frame => !frames[frame].standard);
		const own = groupOf(e.path[inner < 0 ? e.path.length - 1 : inner]);
		own.own.add(e);
		own.ownLive += e.now[f & 1].v;
		own.ownAllocated += e.now[2 + (f & 1)].v;
		for (const group of new Set(e.path.filter((frame, i) => i === e.path.length - 1 || !frames[frame].gap).map(groupOf)))
			group.total.add(e);
	}
	return [...groups.values()].filter(group => !regex || fits(group.frame, regex));
}

// Columns: title, what to sort by, text.
function columns(f, by) {
	const b = isBytes(f), all = total(f).now.v, of = sum => compares ? sum.growth : sum.estimate;
	const titles = { thread: 'thread that allocated it', type: 'what it is at the end', holder: 'who holds it at the end', size: 'requested size', lifetime: isLive(f) ? 'age' : 'lifetime, or age of what is live' };
	const list = [[titles[by] || by, ofSamples(by) ? g => -g.number : null, g => keys[by](g.frame)]];
	for (const side of ofSamples(by) ? ['total'] : ['own', 'total'])
		list.push([side + (compares ? ' growth' : ''), g => compares ? g[side].growth.value : g[side].now.v, g => g[side].stacks ? amount(of(g[side]).value, b) : ''],
			['interval', null, g => g[side].stacks ? range(of(g[side]), b) : '']);
	if (compares)
		return [...list, ['before', g => g.total.old, g => amount(g.total.old, b)], ['now', g => g.total.now.v, g => amount(g.total.now.v, b)],
			['more than chance', g => g.own.direction, g => ['shrunk', '', 'grown'][g.own.direction + 1]]];
	return [...list, ['share', g => g.total.now.v, g => percent(all ? g.total.now.v / all : 0)],
		...liveOnly(by) ? [] : [[state.span && state.kind === 'gone' ? 'freed' : 'kept', g => g.ownLive / g.ownAllocated || 0,
			g => g.ownAllocated ? percent(Math.min(1, g.ownLive / g.ownAllocated)) : '']],
		['samples', g => g.own.now.n, g => count(g.own.now.n)]];
}

function sampleNote(by, f, table) {
	if (!table)
		return '; they are known of the whole session only: Esc leaves the span';
	if (liveOnly(by) && !isLive(f))
		return `; what a ${by} has allocated in all is not known: a live figure above shows what it holds`;
	return table[by].more ? `; ${count(table[by].more)} more are not listed` : '';
}

function drawTable(state, regex) {
	const f = state.figure, by = state.by, list = columns(f, by), table = shown === entries && head.table;
	const groups = table ? groupsOf(by, f, regex) : ofSamples(by) ? [] : groupsBy(by, f, regex);
	const sort = list[state.sort] && list[state.sort][1] || list[1][1];
	groups.sort((x, y) => sort(y) - sort(x) || y.total.width - x.total.width);
	const top = $('list').tHead, body = $('list').tBodies[0];
	top.textContent = body.textContent = '';
	const line = make('tr', top);
	list.forEach(([title, order], i) => {
		const th = make('th', line, order ? '' : title);
		if (order)
			make('button', th, title + (order === sort ? ' \u25be' : '')).onclick = () => setState({ sort: i });
	});
	for (const group of groups.slice(0, LINES)) {
		const tr = make('tr', body, '', !compares && group.own.unsure ? 'unsure' : '');
		list.forEach(([, , text]) => make('td', tr, text(group)));
		const target = targetOf(by, group.frame);
		if (target)
			tr.firstChild.onclick = () => setState({ tab: 'flame', z: '', ...target });
		if (by === 'function' || by === 'file')
			make('span', tr.firstChild, by === 'file' ? base(group.frame.module) : where(group.frame, base(group.frame.module)), 'dim');
		for (const side of ['own', 'total'])
			tr.dataset[side] = group[side].data;
	}
	$('rows').textContent = `${titleOf(f)}; ${groups.length} rows` + (groups.length > LINES ? `, the first ${LINES} are shown: search for others` : '') +
		(ofSamples(by) ? sampleNote(by, f, table) : !table ? cutNote : table[by].more ? `; ${count(table[by].more)} more, each less than ${(100 * table[by].most).toPrecision(2)} % of every total, are not listed: their own is ${amount(table[by].rest[f], isBytes(f))}` : '');
	document.body.dataset.rows = groups.length;
}
