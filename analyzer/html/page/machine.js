// A folder of dumps: first its processes, then what the page shows of one (analyzer/html/html_machine.h). Which one stands in the
// address as "of"; without it there is this list, and nothing of the rest of the page.

const machine = JSON.parse($('machine').textContent);
const viewNames = ['process', 'program', 'unit', 'container'];
const plurals = ['processes', 'programs', 'units', 'containers'];
const LISTED = 500;

// kind: which table; order: which column; up: the least first; only: text in names; figure.
const view = { kind: 0, order: 1, up: 0, only: '', shows: 0 };

function readView() {
	const given = new URLSearchParams(location.hash.slice(1));
	for (const key in view)
		view[key] = key === 'only' ? given.get(key) || '' : +given.get(key) || (key === 'order' && !given.has(key) ? 1 : 0);
	if (!machine.tables[view.kind])
		view.kind = 0;
	if (!head.figures[view.shows])
		view.shows = 0;
}

function setView(change, quietly) {
	Object.assign(view, change);
	const given = new URLSearchParams();
	for (const key in view)
		if (view[key] !== (key === 'order' ? 1 : key === 'only' ? '' : 0))
			given.set(key, view[key]);
	history[quietly ? 'replaceState' : 'pushState'](null, '', '#' + given);
	drawView();
}

// Rows of a table as objects. A process also has the rows of its program, unit and container.
const rowsOf = machine.tables.map((one, kind) => one.rows.map(row => {
	const skipped = kind ? 4 : 7;
	return { name: row[0], sessions: row[1], memory: row[2], report: row[3], others: row.slice(4, skipped), numbers: row.slice(skipped) };
}));

const otherName = (row, kind) => (rowsOf[kind][row.others[kind - 1]] || { name: '(not listed)' }).name;
const numbersOf = row => row.numbers.slice(4 * view.shows, 4 * view.shows + 4);
const lastPart = name => name.slice(name.lastIndexOf('/') + 1);

// Title, what to sort by, text.
function viewColumns() {
	const b = isBytes(view.shows), all = head.figures[view.shows].total.estimate;
	const list = [[viewNames[view.kind], row => row.name, row => row.name],
		[titleOf(view.shows), row => numbersOf(row)[1], row => amount(numbersOf(row)[1], b)],
		['interval', null, row => range({ low: numbersOf(row)[2], high: numbersOf(row)[3] }, b)],
		['share', row => numbersOf(row)[1], row => percent(all ? numbersOf(row)[1] / all : 0)],
		['private memory', row => row.memory, row => (row.memory < 0 ? '' : '+') + amount(row.memory, true)],
		['samples', row => numbersOf(row)[0], row => count(numbersOf(row)[0])]];
	if (view.kind)
		return [...list, ['sessions', row => row.sessions, row => count(row.sessions)]];
	// Units and containers are shown where there are any.
	for (const kind of [1, 2, 3])
		if (kind === 1 || rowsOf[kind].length > 1)
			list.push([viewNames[kind], row => otherName(row, kind), row => kind === 1 ? lastPart(otherName(row, kind)) : otherName(row, kind), kind]);
	return list;
}

// Of a program of which one process ran, that process.
function reportOf(row) {
	if (row.report !== null || view.kind !== 1 || row.sessions > 1)
		return row.report;
	return (rowsOf[0].find(one => rowsOf[1][one.others[0]] === row) || row).report;
}

function openRow(row) {
	const report = reportOf(row);
	if (report !== null)
		location.hash = 'of=' + report;
	else if (view.kind > 1)
		setView({ kind: 0, only: row.name });
}

function drawViewRow(body, list, row) {
	const tr = make('tr', body), opens = reportOf(row) !== null || view.kind > 1;
	list.forEach(([, , text, kind], i) => {
		const td = make('td', tr, i || !opens ? text(row) : '', kind ? 'named' : '');
		if (!i && opens)
			make('button', td, text(row)).onclick = () => openRow(row);
		else if (kind)
			td.title = otherName(row, kind);
	});
	if (!numbersOf(row)[0])
		tr.className = 'unsure';
	tr.dataset.figures = numbersOf(row).join(' ');
}

function drawView() {
	const list = viewColumns(), order = list[view.order] && list[view.order][1] || list[1][1], small = view.only.toLowerCase();
	const texts = row => [row.name, ...row.others.map((at, i) => otherName(row, i + 1))];
	const compare = (x, y) => typeof x === 'string' ? x.localeCompare(y) : y - x;
	const rows = rowsOf[view.kind].filter(row => !small || texts(row).some(text => text.toLowerCase().includes(small)));
	rows.sort((x, y) => (view.up ? -1 : 1) * compare(order(x), order(y)));
	const top = $('fleet').tHead, body = $('fleet').tBodies[0], line = (top.textContent = body.textContent = '', make('tr', top));
	list.forEach(([title, by, , kind], i) => {
		const th = make('th', line, by ? '' : title, kind ? 'named' : '');
		if (by)
			make('button', th, title + (by === order ? view.up ? ' \u25b4' : ' \u25be' : '')).onclick = () => setView({ order: i, up: i === view.order ? 1 - view.up : 0 });
	});
	rows.slice(0, LISTED).forEach(row => drawViewRow(body, list, row));
	$('kinds').value = view.kind;
	$('shows').value = view.shows;
	if (document.activeElement !== $('only'))
		$('only').value = view.only;
	const more = machine.tables[view.kind].more, silent = rows.filter(row => !numbersOf(row)[0]);
	$('told').textContent = `${count(rows.length)} ${plurals[view.kind]}` + (silent.length ? `, ${count(silent.length)} of them without a sample of it` + (isBytes(view.shows) ? `: each has less than ${amount(Math.max(...silent.map(row => numbersOf(row)[3])), true)}` : '') : '') +
		(rows.length > LISTED ? `; the first ${LISTED} are shown` : '') + (more ? `; ${count(more)} smaller ones are not in this file` : '');
	document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
	document.body.dataset.listed = rows.length;
}

function makeView() {
	const all = $('all'), bar = make('div', all, '', 'bar');
	document.title = 'memanalyze: ' + plurals[0];
	all.prepend($('verdict'), $('target'));
	const choice = (id, names, key) => {
		const select = make('select', bar);
		select.id = id;
		names.forEach((name, i) => make('option', select, name).value = i);
		select.onchange = () => setView({ [key]: +select.value, order: 1, up: 0 });
	};
	choice('kinds', plurals, 'kind');
	choice('shows', head.figures.map((figure, f) => titleOf(f)), 'shows');
	const only = make('input', bar);
	only.id = 'only';
	only.type = 'search';
	only.placeholder = 'only names with';
	only.oninput = () => setView({ only: only.value }, true);
	make('button', bar, 'all of them together').onclick = () => location.hash = 'of=all';
	make('button', bar, '\u25d1').onclick = () => {
		state.theme = isDark() ? 'light' : 'dark';
		drawView();
	};
	make('p', all, '', 'dim').id = 'told';
	const table = make('table', make('div', all, '', 'wide'));
	table.id = 'fleet';
	table.createTHead();
	table.createTBody();
	all.append($('notes'));
	if (machine.notProfiled.length)
		make('h2', all, 'Not profiled');
	for (const [times, name, why] of machine.notProfiled)
		make('div', all, `${count(times)} ${name || '?'}: ${why}`);
	if (machine.notListed)
		make('div', all, `and ${count(machine.notListed)} lines more`);
}

(function begin() {
	const listed = !part && state.of !== 'all';
	addEventListener('hashchange', () => {
		const given = new URLSearchParams(location.hash.slice(1)).get('of') || '';
		if (given !== state.loaded)
			location.reload();
	});
	state.loaded = listed ? '' : part || 'all';
	if (!listed) {
		const back = make('button', $('tabs'), '\u2039 all processes');
		back.onclick = () => location.hash = '';
		$('tabs').prepend(back);
		return;
	}
	$('app').hidden = true;
	make('div', document.body).id = 'all';
	makeView();
	readView();
	drawView();
	addEventListener('hashchange', () => {
		readView();
		drawView();
	});
})();
