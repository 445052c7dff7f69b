// The data of the page (analyzer/output/html_data.h), and sums over them.

const head = JSON.parse($('head').textContent);
const names = JSON.parse($('frames').textContent);
const modules = new Map(names.modules);
// gap: one that stands for functions which are not known, or not shown.
const frames = names.frames.map(([name, module, file, line, standard]) => ({ name, module: modules.get(module) || '', file, line, standard, gap: !module && name[0] === '(' }));
const compares = head.compares;
const sure = tailOf(head.quantile);

// What ends at one node: the path of its functions, and the sums of both sides: now, and of a comparison what came and went.
const entries = [];

(function read() {
	const list = JSON.parse($('nodes').textContent), path = [];
	let i = 0;
	function sums(side) {
		const n = list[i++], bytes = noSum(), blocks = noSum();
		if (n) {
			bytes.n = blocks.n = blocks.s = n;
			bytes.v = list[i++];
			bytes.q = list[i++] ** 2;
			bytes.s = list[i++];
			blocks.v = list[i++];
			blocks.q = list[i++] ** 2;
		}
		bytes.x = list[i++] || head.figures[2 * side].next;
		blocks.x = list[i++];
		return [bytes, blocks];
	}
	while (list[i] >= 0) {
		const frame = list[i] >> 1, ends = list[i++] & 1;
		path.length -= list[i++];
		path.push(frame);
		if (!ends)
			continue;
		const stacks = list[i++], lost = list[i++];
		const now = [...sums(0), ...sums(1)];
		const entry = { path: path.slice(), stacks, lost: Math.floor(lost / 2), unknown: lost % 2, now };
		if (compares) {
			entry.plus = now;
			if (!names.allHasCome)
				entry.plus = [...sums(0), ...sums(1)];
			entry.minus = [...sums(0), ...sums(1)];
		}
		entries.push(entry);
	}
})();

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
		this.stacks = this.lost = this.width = this.size = this.old = this.samples = 0;
		this.unknown = 1;
	}
	add(e) {
		const f = this.f, blocks = !isBytes(f);
		merge(this.now, e.now[f], blocks);
		this.stacks += e.stacks;
		this.lost += e.lost;
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
		return this.stacks ? head.figures[this.f].hidden : 0;
	}
	// What lost samples may add.
	missing() {
		return head.figures[this.f].lostWeight * (head.lostBusy + (isLive(this.f) ? this.lost : 0) + (this.stacks && this.unknown ? 0 : head.lostStack));
	}
	get estimate() {
		if (!this.known) {
			this.known = interval(this.now, this.hidden, sure);
			this.known.high += this.missing();
		}
		return this.known;
	}
	get growth() {
		if (!this.grown) {
			this.grown = growthInterval(this.plus, this.minus, this.hidden, sure);
			this.grown.high += this.missing();
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
		const x = growthInterval(this.plus, this.minus, this.hidden, tailOf(z));
		return x.low > 0 && this.growth.low > 0 ? 1 : x.high < 0 && this.growth.high < 0 ? -1 : 0;
	}
}

const sumOf = (list, f) => list.reduce((sum, e) => sum.add(e), new Sum(f));

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
function describe(sum) {
	const b = isBytes(sum.f), f = head.figures[sum.f], total = f.total.estimate, unit = b ? '' : ' blocks', x = sum.estimate;
	let text;
	if (compares) {
		const g = sum.growth;
		text = `growth ${amount(g.value, b)}${unit} (${range(g, b)}), from ${amount(sum.old, b)} to ${amount(x.value, b)}: ` +
			['shrunk', 'no more than chance explains', 'grown'][sum.direction + 1];
	} else {
		text = `${amount(x.value, b)}${unit} (${range(x, b)}), ${percent(total ? x.value / total : 0)} of ${f.title}, ${count(sum.samples)} samples`;
	}
	return text + (sum.stacks > 1 ? `, ${count(sum.stacks)} stacks` : '');
}
