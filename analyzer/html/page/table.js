// Functions, files or modules: own is what the innermost of them has that is not of the standard library, total all stacks it stands in.

const LINES = 300;

const keys = {
	function: frame => frame.name,
	file: frame => frame.file || '(source file not known)',
	module: frame => frame.module || '(no module)',
};

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
	const list = [[by, null, g => keys[by](g.frame)]];
	for (const side of ['own', 'total'])
		list.push([side + (compares ? ' growth' : ''), g => compares ? g[side].growth.value : g[side].now.v, g => g[side].stacks ? amount(of(g[side]).value, b) : ''],
			['interval', null, g => g[side].stacks ? range(of(g[side]), b) : '']);
	if (compares)
		return [...list, ['before', g => g.total.old, g => amount(g.total.old, b)], ['now', g => g.total.now.v, g => amount(g.total.now.v, b)],
			['more than chance', g => g.own.direction, g => ['shrunk', '', 'grown'][g.own.direction + 1]]];
	return [...list, ['share', g => g.total.now.v, g => percent(all ? g.total.now.v / all : 0)],
		[state.span && state.kind === 'gone' ? 'freed' : 'kept', g => g.ownLive / g.ownAllocated || 0, g => g.ownAllocated ? percent(Math.min(1, g.ownLive / g.ownAllocated)) : ''],
		['samples', g => g.own.now.n, g => count(g.own.now.n)]];
}

function drawTable(state, regex) {
	const f = state.figure, by = state.by, list = columns(f, by), groups = groupsBy(by, f, regex);
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
		tr.firstChild.onclick = () => setState({ tab: 'flame', z: '', ...by === 'function' ? { fn: String(frames.indexOf(group.frame)), q: '' } : { fn: '', q: exactly(keys[by](group.frame)) } });
		if (by === 'function')
			make('span', tr.firstChild, where(group.frame, base(group.frame.module)), 'dim');
		for (const side of ['own', 'total'])
			tr.dataset[side] = group[side].data;
	}
	$('rows').textContent = `${titleOf(f)}; ${groups.length} rows` + (groups.length > LINES ? `, the first ${LINES} are shown: search for others` : '');
	document.body.dataset.rows = groups.length;
}
