// The head, the tabs, the keys, and the state, which stands in the fragment of the address.

const tabs = ['flame', 'table', 'leaks', 'timeline', 'about'].filter(tab => tab === 'leaks' ? head.leaks : tab !== 'timeline' || head.timeline.length);
const dark = matchMedia('(prefers-color-scheme: dark)');
const first = { tab: 'flame', figure: head.sort, dir: 'out', q: '', z: '', fn: '', hue: 'function', by: 'function', sort: 1, theme: '', span: '', kind: 'kept', of: '' };
let state = { ...first };

const isDark = () => state.theme ? state.theme === 'dark' : dark.matches;

function readState() {
	const given = new URLSearchParams(location.hash.slice(1));
	state = { ...first };
	for (const key in first)
		if (given.has(key))
			state[key] = typeof first[key] === 'number' ? parseInt(given.get(key), 10) || 0 : given.get(key);
	if (!tabs.includes(state.tab))
		state.tab = 'flame';
	if (!head.figures[state.figure])
		state.figure = head.sort;
	if (!(state.by in keys) || ofSamples(state.by) && !(head.table && head.table[state.by]))
		state.by = 'function';
	if (!(state.kind in kinds))
		state.kind = 'kept';
}

// Each step can be taken back, but for what is typed or drawn: then quiet.
function setState(change, quiet) {
	Object.assign(state, change);
	const given = new URLSearchParams();
	for (const key in first)
		if (state[key] !== first[key])
			given.set(key, state[key]);
	history[quiet ? 'replaceState' : 'pushState'](null, '', '#' + given);
	draw();
}

// The clauses of a sum that is searched for.
function search(regex) {
	const data = document.body.dataset, matched = regex && frames.map(frame => fits(frame, regex));
	$('search').setCustomValidity(state.q && !regex ? 'no regular expression' : '');
	delete data.hit;
	if (!regex) {
		$('hit').textContent = '';
		return;
	}
	const sum = asked(sumOf(shown.filter(e => e.path.some(frame => matched[frame])), state.figure));
	data.hit = sum.data;
	$('hit').textContent = describe(sum);
}

function drawFlameTab(regex) {
	const inverted = state.dir === 'in', key = [state.figure, inverted, state.fn].join();
	if (flame.key !== key || flame.shown !== shown) {
		[flame.root, flame.callers] = state.fn ? sandwich(state.figure, +state.fn) : [rootOf(state.figure, inverted)];
		flame.shown = shown;
		flame.key = key;
		flame.selected = state.fn ? flame.root.kids[0] : null;
	}
	flame.regex = regex;
	flame.zoom = nodeAt(flame.root, state.z ? state.z.split('.') : []);
	drawFlame();
	tell($('detail'), flame.selected || flame.zoom);
	document.body.dataset.function = (flame.root.kids[0] || flame.root).name;
	document.body.dataset.of = flame.root.sum.data;
	document.body.dataset.boxes = flame.boxes.length;
	if (compares)
		document.body.dataset.coloured = flame.boxes.filter(box => box.node.parent && box.node.sum.direction).length;
}

// What is looked at is made when another span is chosen.
let chosen = 'whole';

function choose(span) {
	const key = span && state.span + state.kind;
	if (key !== chosen)
		cut(span, state.kind);
	chosen = key;
	$('span').hidden = !span && (state.tab !== 'timeline' || !spanStep);
	$('picked').hidden = !span;
	$('brush').hidden = span;
	document.body.dataset.span = shown === entries ? '' : head.figures.map((figure, f) => total(f).data).join(' ');
	if (!span)
		return;
	const [from, to] = secondsOf(span), first = state.kind === 'end' ? 0 : span[0] * spanStep;
	$('when').textContent = `${+from.toPrecision(4)} s to ${+to.toPrecision(4)} s` +
		(head.timeline[first][7] ? '; incomplete: the history does not reach back so far' : '');
	$('kind').value = state.kind;
}

function drawTotals(span) {
	[...$('totals').children].forEach((button, f) => {
		const figure = head.figures[f], b = isBytes(f), x = span ? total(f).estimate : compares ? figure.growth : figure.total, value = span ? x.value : x.estimate;
		button.textContent = titleOf(f) +
			(compares ? ', growth' : '') + (figure.trust === 'measured' ? '' : ', ' + figure.trust.replace('_', ' '));
		make('b', button, (compares && value > 0 ? '+' : '') + amount(value, b));
		button.append(range(x, b));
		button.setAttribute('aria-pressed', f === state.figure);
	});
}

function draw() {
	const regex = pattern(state.q), span = readSpan(state.span);
	choose(span);
	drawTotals(span);
	document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
	for (const tab of tabs) {
		$(tab).hidden = tab !== state.tab;
		$('tab-' + tab).setAttribute('aria-selected', tab === state.tab);
	}
	if (document.activeElement !== $('search'))
		$('search').value = state.q;
	$('by').value = state.by;
	$('invert').textContent = state.dir === 'in' ? 'innermost first' : 'outermost first';
	$('invert').hidden = state.tab !== 'flame' || state.fn;
	$('hue').hidden = state.tab !== 'flame' || compares;
	$('hue').textContent = 'colours: ' + state.hue;
	$('out').hidden = !state.z && !state.q && !state.fn;
	$('tools').hidden = !['flame', 'table'].includes(state.tab);
	search(regex);
	({ flame: drawFlameTab, table: () => drawTable(state, regex), timeline: () => drawTimeline(span) }[state.tab] || (() => {}))(regex);
}

function drawHead() {
	const say = (text, className) => {
		for (const line of (text || '').split('\n').filter(line => line.trim()))
			make('div', $('notes'), line.replace(/\s+/g, ' ').trim(), className);
	};
	document.title = head.target.trim().split('\n')[0];
	// On a phone its last clause is shown, which says who holds it.
	head.verdict.trim().split(';\n').forEach((clause, i, all) => make('span', $('verdict'), clause.replace(/\s+/g, ' ') + (i + 1 < all.length ? '; ' : '')));
	$('target').textContent = head.target.trim().replace(/\s{2,}/g, ' \u00b7 ');
	head.figures.forEach((figure, f) => {
		make('button', $('totals')).onclick = () => setState({ figure: f, z: '' });
	});
	say(head.trust, head.figures.some(figure => figure.trust !== 'measured') ? 'warn' : 'dim');
	say(head.warnings, 'warn');
	say(head.resident, 'dim');
	say(head.changed, 'warn');
	say((head.sessions || '').replace(/^[ ]*(old|new|target|session|copy|\.\.\.)[ ].*$/gm, ''), 'dim');
	say(head.filter, 'dim');
	say(names.coarse, 'dim');
	say(head.seen, 'dim');
	$('private').hidden = !head.private;
	for (const tab of tabs) {
		const button = make('button', $('tabs'), tab[0].toUpperCase() + tab.slice(1));
		button.id = 'tab-' + tab;
		button.setAttribute('role', 'tab');
		button.onclick = () => setState({ tab });
	}
	if (head.leaks)
		makeLeaks(head.leaks);
	$('facts').textContent = head.facts;
	$('text').textContent = new DOMParser().parseFromString(document.querySelector('noscript').textContent, 'text/html').body.textContent;
	for (const part of document.querySelectorAll(compares ? '.heap' : '.growth'))
		part.remove();
	for (const part of document.querySelectorAll('[data-say]'))
		part.textContent = { level: percent(head.confidence), limit: head.limit ? amount(head.limit, true) : '0 B', tested: names.tested, tabs: tabs.length, version: head.version }[part.dataset.say];
	document.body.dataset.total = head.figures.map(figure => figure.total.estimate).join(' ');
	$('app').hidden = false;
}

const actions = {
	'/': () => $('search').focus(),
	Escape: () => setState({ q: '', z: '', fn: '', span: '' }),
	f: () => setState({ figure: (state.figure + 1) % 4, z: '' }),
	i: () => setState({ dir: state.dir === 'in' ? 'out' : 'in', z: '' }),
	u: () => setState({ z: state.z.split('.').slice(0, -1).join('.') }),
	c: () => setState({ hue: state.hue === 'module' ? 'function' : 'module' }),
	t: () => setState({ theme: isDark() ? 'light' : 'dark' }),
};
addEventListener('keydown', event => {
	const writes = event.target === $('search'), tab = tabs[event.key - 1];
	if (event.ctrlKey || event.metaKey || event.altKey || (writes && event.key !== 'Escape'))
		return;
	const action = actions[event.key] || (tab && (() => setState({ tab })));
	if (!action)
		return;
	event.preventDefault();
	$('search').blur();
	showTip(event);
	action();
});
$('search').oninput = event => setState({ q: event.target.value }, true);
$('by').onchange = event => setState({ by: event.target.value, sort: ['size', 'lifetime'].includes(event.target.value) ? 0 : 1 });
$('kind').onchange = event => setState({ kind: event.target.value, z: '' });
$('whole').onclick = () => setState({ span: '', z: '' });
$('invert').onclick = actions.i;
$('hue').onclick = actions.c;
$('out').onclick = actions.Escape;
$('verdict').onclick = () => $('verdict').classList.toggle('open');
$('theme').onclick = actions.t;
addEventListener('resize', draw);
addEventListener('scroll', event => showTip(event));
addEventListener('hashchange', () => { readState(); draw(); });
dark.addEventListener('change', draw);

for (const option of [...$('by').options])
	if (ofSamples(option.value) && !(head.table && head.table[option.value]))
		option.remove();
drawHead();
readState();
draw();
