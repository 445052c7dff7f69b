// The data of the page (analyzer/html/html_data.h), and sums over them.

const head = JSON.parse($('head' + part).textContent);
const names = JSON.parse($('frames' + part).textContent);
const modules = new Map(names.modules);
// gap: one that stands for functions which are not known, or not shown.
const frames = names.frames.map(([name, module, file, line, standard]) => ({ name, module: modules.get(module) || '', file, line, standard, gap: !module && name[0] === '(' }));
const compares = head.compares;
const sure = tailOf(head.quantile);

// What ends at one node: the path of its functions, and the sums of both sides: now, and of a comparison what came and went.
const entries = [];

const reader = id => {
	const list = JSON.parse($(id).textContent);
	let i = 0;
	return () => list[i++];
};

// Bytes and blocks of n samples; cell 1: one of them says its size and its weight; cell: the weight of the next one is there.
function pair(next, n, cell) {
	const bytes = noSum(), blocks = noSum();
	bytes.n = blocks.n = blocks.s = n;
	if (n === 1 && cell === 1) {
		const size = bytes.s = next(), w = blocks.v = blocks.x = next();
		bytes.v = size * w;
		blocks.q = w * w - w;
		bytes.q = size * size * blocks.q;
	} else if (n) {
		bytes.v = next();
		bytes.q = next() ** 2;
		bytes.s = next();
		blocks.v = next();
		blocks.q = next() ** 2;
		if (cell)
			blocks.x = next();
	}
	return [bytes, blocks];
}

(function read() {
	const next = reader('nodes' + part), path = [];
	function sums(side, weight = 'next') {
		const [bytes, blocks] = pair(next, next());
		bytes.x = head.figures[2 * side][weight];
		blocks.x = next();
		return [bytes, blocks];
	}
	for (let code; (code = next()) >= 0;) {
		path.length -= next();
		path.push(code >> 1);
		if (!(code & 1))
			continue;
		const stacks = next(), flags = next(), lost = pair(next, Math.floor(flags / 2), 2), now = [...sums(0), ...sums(1)];
		const entry = { path: path.slice(), stacks, lost, unknown: flags % 2, now, whole: now };
		if (compares) {
			entry.plus = now;
			if (!names.allHasCome)
				entry.plus = [...sums(0), ...sums(1)];
			entry.minus = [...sums(0, 'oldNext'), ...sums(1, 'oldNext')];
		}
		entries.push(entry);
	}
})();

// Those that are looked at: all, or what a span of the timeline has of them.
let shown = entries;

// What a span of steps is asked for: what came in it and is live, what is live at its end, what came in it and went in it.
const kinds = { kept: 'still live', end: 'live then', gone: 'freed' };

function cut(span, kind) {
	shown = entries;
	if (span && !entries.cells) {
		const next = reader('spans');
		for (const e of entries)
			e.cells = Array.from({ length: next() }, () => [next(), (next() || Infinity) - 1, ...pair(next, next(), 1)]);
		entries.cells = true;
	}
	for (const e of entries)
		e.now = span ? e.whole.map(sum => ({ ...noSum(), x: sum.x })) : e.whole;
	if (!span)
		return;
	const [from, to] = span, ends = kind === 'end';
	shown = entries.filter(e => {
		for (const [born, gone, ...sums] of e.cells) {
			if (born > to || !ends && born < from)
				continue;
			const fits = ends ? gone > to : kind === 'gone' ? gone <= to : gone === Infinity;
			sums.forEach((sum, i) => {
				merge(e.now[2 + i], sum, i);
				if (fits)
					merge(e.now[i], sum, i);
			});
		}
		return e.now[2].n;
	});
}

const isBytes = f => f % 2 === 0;
const isLive = f => f < 2;
const oldValue = (e, f) => Math.max(0, e.now[f].v - e.plus[f].v + e.minus[f].v);
const widthOf = (e, f) => compares ? Math.max(e.now[f].v, oldValue(e, f)) : e.now[f].v;

// The sums of some entries for one figure.
class Sum {
	constructor(f) {
		this.f = f;
		this.now = noSum();
		if (compares) {
			this.plus = noSum();
			this.minus = noSum();
		}
		this.lost = noSum();
		this.stacks = this.width = this.size = this.old = this.samples = 0;
		this.unknown = 1;
	}
	add(e) {
		const f = this.f, blocks = !isBytes(f);
		merge(this.now, e.now[f], blocks);
		this.stacks += e.stacks;
		if (isLive(f))
			merge(this.lost, e.lost[f], blocks);
		this.unknown &= e.unknown;
		this.width += widthOf(e, f);
		this.size += widthOf(e, f & 2); // in bytes
		this.samples += e.now[f].n;
		if (compares) {
			merge(this.plus, e.plus[f], blocks);
			merge(this.minus, e.minus[f], blocks);
			this.old += oldValue(e, f);
		}
		return this;
	}
	get hidden() {
		return this.stacks || this.sought ? head.figures[this.f].hidden : 0;
	}
	// What other lost samples may add.
	missing() {
		return head.figures[this.f].lostWeight * (head.lostBusy + (isLive(this.f) ? head.lostLive : 0) + (this.all ? head.lostTotal : this.stacks && this.unknown ? 0 : head.lostStack));
	}
	get estimate() {
		if (!this.known) {
			this.known = interval(this.now, this.hidden, sure);
			this.known.high = interval(merge({ ...this.now }, this.lost, !isBytes(this.f)), this.hidden, sure).high + this.missing();
		}
		return this.known;
	}
	get growth() {
		if (!this.grown) {
			this.grown = growthInterval(this, sure);
			this.grown.high += this.lost.v + this.missing();
			this.grown.low -= head.figures[this.f].lostWeight * head.lostBefore;
		}
		return this.grown;
	}
	// For tests.
	get data() {
		const x = compares ? this.growth : this.estimate;
		return [x.value, x.low, x.high].join(' ');
	}
	// Whether more is unknown than known: the interval is as wide as the estimate.
	get unsure() {
		const x = this.estimate;
		return (x.high - x.low) / 2 > x.value / 2;
	}
	// 1 grown, -1 shrunk, 0 no more than chance explains: at the confidence at which the test of all nodes calls one so. The
	// whole is one question.
	get direction() {
		const z = this.all ? head.quantile : names.growthQuantiles[this.f];
		if (!z || isLive(this.f) && head.doubtful)
			return 0;
		const x = growthInterval(this, tailOf(z));
		return x.low > 0 && this.growth.low > 0 ? 1 : x.high < 0 && this.growth.high < 0 ? -1 : 0;
	}
}

const sumOf = (list, f) => list.reduce((sum, e) => sum.add(e), new Sum(f));
// Of what is asked for something may be unseen even if nothing was seen.
function asked(sum) {
	sum.sought = true;
	if (!sum.stacks && isBytes(sum.f))
		sum.now.x = head.figures[sum.f].next;
	return sum;
}

// All of the span, or of the session.
function total(f) {
	const sum = asked(sumOf(entries, f));
	sum.all = true;
	return sum;
}

// A regular expression for names, files and modules; null: there is none, or it is none.
function pattern(text) {
	try {
		return text ? new RegExp(text, 'i') : null;
	} catch (error) {
		return null;
	}
}
const fits = (frame, regex) => regex.test(frame.name) || regex.test(frame.file) || regex.test(frame.module);
const place = frame => frame.file + (frame.line ? ':' + frame.line : '');
const where = (frame, module) => [place(frame), module].filter(Boolean).join(', ');
const base = path => path.slice(path.lastIndexOf('/') + 1);

// A line on a sum, as tooltips have it.
const titleOf = f => shown === entries ? head.figures[f].title
	: (isLive(f) ? kinds[state.kind] : state.kind === 'end' ? 'allocated until then' : 'allocated in it') + (isBytes(f) ? ' bytes' : ' blocks');

// What lacks that part of the small stacks which is not below its own node.
const cutNote = names.coarse ? '; summed up from this page, where small stacks stand together: it may lack some of them' : '';

function describe(sum) {
	const b = isBytes(sum.f), whole = shown === entries ? head.figures[sum.f].total.estimate : total(sum.f).now.v, unit = b ? '' : ' blocks', x = sum.estimate;
	let text;
	if (compares) {
		const g = sum.growth;
		text = `growth ${amount(g.value, b)}${unit} (${range(g, b)}), from ${amount(sum.old, b)} to ${amount(x.value, b)}: ` +
			['shrunk', 'no more than chance explains', 'grown'][sum.direction + 1];
	} else {
		text = `${amount(x.value, b)}${unit} (${range(x, b)}), ${percent(whole ? x.value / whole : 0)} of ${titleOf(sum.f)}, ${count(sum.samples)} samples`;
	}
	return text + (sum.stacks > 1 ? `, ${count(sum.stacks)} stacks` : '') + (!sum.all && (sum.sought || state.fn || state.dir === 'in') ? cutNote : '');
}
