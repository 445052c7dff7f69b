// The tree that is drawn, made as far as it is looked at: from the outermost function inward, or from the innermost outward.

class Node {
	constructor(frame, parent, f, inverted) {
		Object.assign(this, { frame, parent, inverted, list: [], sum: new Sum(f) });
	}
	add(e) {
		this.list.push(e);
		this.sum.add(e);
	}
	// The functions below, the widest first. What is too small to be known one by one is one node: rest.
	get kids() {
		if (this.children)
			return this.children;
		const at = this.level, kids = new Map();
		for (const e of this.list) {
			if (at >= e.path.length)
				continue;
			const frame = e.path[this.inverted ? e.path.length - 1 - at : at];
			let kid = kids.get(frame);
			if (!kid)
				kids.set(frame, kid = new Node(frame, this, this.sum.f, this.inverted));
			kid.add(e);
		}
		const list = [...kids.values()].sort((a, b) => b.sum.width - a.sum.width || a.frame - b.frame);
		const small = this.sum.size < head.limit ? [] : list.filter(kid => kid.sum.size < head.limit);
		this.children = small.length > 1 ? list.filter(kid => kid.sum.size >= head.limit).concat(restOf(this, small)) : list;
		return this.children;
	}
	// How many functions are above.
	get level() {
		let n = 0;
		for (let node = this; node.parent; node = node.parent)
			n += !node.rest;
		return n;
	}
	get name() {
		if (this.rest)
			return `rest: ${amount(this.sum.width, isBytes(this.sum.f))} in ${this.sum.stacks} stacks, each below ${amount(head.limit, true)}`;
		return this.frame < 0 ? 'all' : frames[this.frame].name;
	}
	get path() {
		return this.parent ? [...this.parent.path, this.rest ? 'r' : this.frame] : [];
	}
}

function restOf(parent, small) {
	const rest = new Node(-1, parent, parent.sum.f, parent.inverted);
	rest.rest = true;
	for (const kid of small) {
		kid.list.forEach(e => rest.add(e));
		kid.parent = rest;
	}
	rest.children = small;
	return rest;
}

function rootOf(f, inverted) {
	const root = new Node(-1, null, f, inverted);
	root.list = shown;
	root.sum = total(f);
	return root;
}

// Of one function: what it calls, and who calls it. Where it calls itself, from the outermost call on.
function sandwich(f, frame) {
	const down = rootOf(f, false), up = rootOf(f, true), sum = new Sum(f);
	down.list = [];
	up.list = [];
	for (const e of shown) {
		const i = e.path.indexOf(frame);
		if (i < 0)
			continue;
		sum.add(e);
		down.list.push({ ...e, path: e.path.slice(i) });
		up.list.push({ ...e, path: e.path.slice(0, i + 1) });
	}
	down.sum = up.sum = sum;
	return [down, up.kids[0]];
}

// As far as the path leads.
function nodeAt(root, path) {
	let node = root;
	for (const step of path) {
		const next = node.kids.find(kid => step === (kid.rest ? 'r' : String(kid.frame)));
		if (!next)
			break;
		node = next;
	}
	return node;
}
