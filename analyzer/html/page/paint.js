// The flame graph on its canvas.

const ROW = 19, LEAST = 0.6; // pixels

const graph = $('graph');
const flame = { boxes: [] };

function hash(text) {
	let h = 7;
	for (let i = 0; i < text.length; i++)
		h = Math.imul(h, 31) + text.charCodeAt(i) | 0;
	return (h >>> 0) % 1000 / 1000;
}

// Hue by function, or by module with a shade by function; grey where there is no function; of a comparison red and blue by growth.
function colour(node, dark) {
	const sum = node.sum, pale = !compares && sum.unsure;
	let hue = 0, strong = 0, light = dark ? 30 : 84;
	if (compares) {
		const direction = sum.direction;
		if (direction) {
			const part = Math.min(1, Math.abs(sum.growth.value) / Math.max(sum.width, 1));
			hue = direction < 0 ? 212 : sum.old > 0 ? 4 : 285;
			strong = 45 + 40 * part;
			light = dark ? 34 + 10 * part : 80 - 14 * part;
		}
	} else if (node.frame >= 0 && !frames[node.frame].gap) {
		const frame = frames[node.frame];
		hue = state.hue === 'module' ? Math.floor(hash(base(frame.module)) * 14) * 25 + 20 + 14 * hash(frame.name) : 360 * hash(frame.name + frame.name);
		strong = pale ? (dark ? 16 : 36) : dark ? 38 : 62;
		light = dark ? (pale ? 24 : 36) : pale ? 91 : 76;
	}
	return `hsl(${hue} ${strong}% ${light}%)`;
}

function hatching(context, dark) {
	const tile = new OffscreenCanvas(8, 8), pen = tile.getContext('2d');
	pen.strokeStyle = dark ? '#ffffff38' : '#00000030';
	pen.beginPath();
	for (const x of [-8, 0, 8]) {
		pen.moveTo(x, 8);
		pen.lineTo(x + 8, 0);
	}
	pen.stroke();
	return context.createPattern(tile, 'repeat');
}

// Sizes a canvas to its place on the page; returns its context in CSS pixels.
function prepare(canvas, height) {
	const width = canvas.parentNode.clientWidth, ratio = Math.min(devicePixelRatio || 1, Math.sqrt(5e7 / (width * height)), 32000 / height);
	canvas.style.height = height + 'px';
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	const context = canvas.getContext('2d');
	context.scale(ratio, ratio);
	context.font = '12px system-ui, sans-serif';
	context.textBaseline = 'middle';
	return [context, width];
}

// Boxes of what is to be seen, callers before what they call.
function layout(root, zoom, width) {
	const boxes = [];
	function put(node, x, w, row) {
		boxes.push({ node, x, w, row });
		if (node !== zoom && isAbove(node, zoom)) {
			put(zoomStep(node, zoom), x, w, row + 1);
			return;
		}
		for (const kid of node.kids) {
			const part = node.sum.width > 0 ? w * kid.sum.width / node.sum.width : 0;
			if (part < LEAST)
				break;
			put(kid, x, part, row + 1);
			x += part;
		}
	}
	put(root, 0, width, 0);
	if (!flame.callers)
		return boxes;
	// Callers stand above, the nearest below the others; the function itself is there once.
	const below = boxes.filter(box => box.row);
	boxes.length = 0;
	for (const kid of flame.callers.kids)
		put(kid, boxes.reduce((end, box) => box.row ? end : box.x + box.w, 0), width * kid.sum.width / flame.callers.sum.width, 0);
	const rows = boxes.reduce((most, box) => Math.max(most, box.row + 1), 0);
	return boxes.map(box => ({ ...box, row: rows - 1 - box.row })).concat(below.map(box => ({ ...box, row: box.row - 1 + rows })));
}

function isAbove(node, other) {
	while (other && other !== node)
		other = other.parent;
	return other === node;
}

function zoomStep(node, zoom) {
	while (zoom.parent !== node)
		zoom = zoom.parent;
	return zoom;
}

function fitText(context, text, width) {
	if (context.measureText(text).width <= width)
		return text;
	let n = Math.floor(text.length * width / context.measureText(text).width);
	while (n > 0 && context.measureText(text.slice(0, n) + '\u2026').width > width)
		n--;
	return n > 1 ? text.slice(0, n) + '\u2026' : '';
}

// Without what only tells overloads apart.
function shortName(name) {
	let short = name.replace(/ \[clone.*|\(anonymous namespace\)::/g, '');
	for (let before; before !== short && !/^[<(]/.test(name);) {
		before = short;
		short = short.replace(/(\w)<[^<>]*>/g, '$1').replace(/([^:])\((?!anonymous)[^()]*\)( const)?$/, '$1');
	}
	return short || name;
}

// What stands in a box: the name, of Python its line, and if there is room the figures.
function labelOf(context, node, width) {
	const frame = frames[node.frame], name = frame ? shortName(node.name) + (/\.py$/.test(frame.file) && frame.line ? ' ' + place(frame) : '') : node.name;
	const value = compares ? node.sum.growth.value : node.sum.now.v, whole = flame.root.sum.now.v;
	const more = ` \u00b7 ${amount(value, isBytes(node.sum.f))}` + (compares || !whole ? '' : `, ${percent(value / whole)}`);
	return fitText(context, name, width) === name && context.measureText(name + more).width <= width ? name + more : name;
}

function drawFlame() {
	const dark = isDark();
	const width = graph.parentNode.clientWidth;
	flame.boxes = layout(flame.root, flame.zoom, width);
	const rows = flame.boxes.reduce((most, box) => Math.max(most, box.row), 0) + 1;
	const [context] = prepare(graph, rows * ROW);
	const hatch = hatching(context, dark);
	for (const box of flame.boxes) {
		const { node, x, w, row } = box, y = row * ROW, inner = Math.max(w - 1, LEAST);
		const hit = flame.regex && node.frame >= 0 && fits(frames[node.frame], flame.regex);
		context.globalAlpha = flame.regex && !hit ? 0.35 : 1;
		context.fillStyle = colour(node, dark);
		context.fillRect(x, y, inner, ROW - 1);
		if (node.rest || !compares && w > 3 && node.sum.unsure) {
			context.fillStyle = hatch;
			context.fillRect(x, y, inner, ROW - 1);
		}
		if (hit || node === flame.selected) {
			context.strokeStyle = hit ? (dark ? '#ffd24d' : '#b00070') : dark ? '#fff' : '#000';
			context.lineWidth = 2;
			context.strokeRect(x + 1, y + 1, Math.max(inner - 2, 1), ROW - 3);
		}
		if (w > 26) {
			context.fillStyle = dark ? '#eef2f6' : '#14181d';
			context.fillText(fitText(context, node.rest ? node.name : labelOf(context, node, w - 9), w - 9), x + 4, y + ROW / 2);
		}
	}
	context.globalAlpha = 1;
}

function boxAt(event) {
	const area = graph.getBoundingClientRect(), x = event.clientX - area.left, row = Math.floor((event.clientY - area.top) / ROW);
	return flame.boxes.find(box => box.row === row && x >= box.x && x < box.x + Math.max(box.w, 1));
}

// Name, where it is, figures: as text.
function tell(target, node) {
	target.textContent = '';
	make('b', target, node.name);
	if (node.frame >= 0)
		make('div', target, where(frames[node.frame], frames[node.frame].module), 'dim');
	target.append(describe(node.sum));
	if (target.id === 'detail' && node.frame >= 0) {
		make('button', target, 'callers and callees').onclick = () => setState({ fn: String(node.frame), z: '' });
		make('button', target, 'in the table').onclick = () => setState({ tab: 'table', by: 'function', q: exactly(node.name) });
	}
}

const exactly = name => '^' + name.replace(/[^\w ]/g, '\\$&') + '$';

function showTip(event, fill) {
	const tip = $('tip');
	tip.hidden = !fill;
	if (!fill)
		return;
	fill(tip);
	tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
	tip.style.top = (event.clientY + 22 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 12 : event.clientY + 18) + 'px';
}

function select(node) {
	flame.selected = node;
	tell($('detail'), node);
	drawFlame();
}

graph.addEventListener('pointermove', event => {
	const box = event.pointerType === 'mouse' && boxAt(event);
	showTip(event, box && (tip => tell(tip, box.node)));
});
graph.addEventListener('mouseleave', event => showTip(event, null));
graph.addEventListener('click', event => {
	const box = boxAt(event);
	showTip(event);
	if (box) {
		flame.selected = box.node;
		setState(state.fn && box.node.frame >= 0 ? { fn: String(box.node.frame), z: '' } : { z: box.node.path.join('.') });
	}
});
graph.addEventListener('keydown', event => {
	const node = flame.selected || flame.zoom, siblings = node.parent ? node.parent.kids : [node], at = siblings.indexOf(node);
	const next = { ArrowDown: node.kids[0], ArrowUp: node.parent, ArrowRight: siblings[at + 1], ArrowLeft: siblings[at - 1] };
	if (event.key in next) {
		event.preventDefault();
		if (next[event.key])
			select(next[event.key]);
	} else if (event.key === 'Enter') {
		setState({ z: node.path.join('.') });
	}
});
