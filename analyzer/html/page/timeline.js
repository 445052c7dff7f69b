// Live bytes over time, as a band, and below how fast was allocated.

const HIGH = 230, LOW = 90, LEFT = 74, GAP = 34, USED = 120;

const times = $('times');

function steps(most) {
	const unit = 2 ** Math.floor(Math.log2(most || 1));
	return [0, unit / 2, unit, unit * 1.5].filter(step => step <= most);
}

function drawTimeline(span) {
	const points = head.timeline, dark = isDark(), [pen, width] = prepare(times, HIGH + LOW + 2 * GAP + (head.usage ? USED + GAP + 12 : 0));
	if (!points.length)
		return;
	const end = points[points.length - 1][0] || 1, live = Math.max(...points.map(p => p[3]), 1);
	// Where most of it is of no block that was seen, its line leaves the picture.
	const growth = head.private ? head.private[1] - head.private[0] : 0, most = Math.max(live, Math.min(growth, 3 * live));
	const speed = i => points[i][4] / (points[i][0] - (i ? points[i - 1][0] : 0) || 1);
	const fastest = Math.max(...points.map((p, i) => speed(i)), 1);
	const x = s => LEFT + (width - LEFT - 8) * s / end, y = v => 8 + HIGH * (1 - v / most), foot = HIGH + GAP + LOW + 8;
	const [text, line, band, bar, own] = dark ? ['#9aa6b2', '#353d47', '#6cb0ff55', '#c99c4a', '#d58fe0'] : ['#59636e', '#d1d9e0', '#0b63ce44', '#b9852a', '#8e3aa0'];
	function scale(values, at, name) {
		pen.textAlign = 'right';
		for (const v of values) {
			pen.fillStyle = line;
			pen.fillRect(LEFT, at(v), width - LEFT - 8, 1);
			pen.fillStyle = text;
			pen.fillText(name(v), LEFT - 6, at(v));
		}
	}
	if (span) {
		pen.fillStyle = dark ? '#6cb0ff2a' : '#0b63ce1c';
		const from = x(secondsOf(span)[0]);
		pen.fillRect(from, 8, x(secondsOf(span)[1]) - from, foot - 8);
	}
	scale(steps(most), y, v => amount(v, true));
	scale([0, fastest], v => foot - LOW * v / fastest, v => amount(v, true) + (v ? '/s' : ''));
	pen.fillStyle = band;
	pen.beginPath();
	points.forEach(p => pen.lineTo(x(p[0]), y(p[3])));
	[...points].reverse().forEach(p => pen.lineTo(x(p[0]), y(p[2])));
	pen.fill();
	pen.strokeStyle = dark ? '#6cb0ff' : '#0b63ce';
	pen.lineWidth = 1.5;
	pen.beginPath();
	points.forEach(p => pen.lineTo(x(p[0]), y(p[1])));
	pen.stroke();
	pen.fillStyle = bar;
	points.forEach((p, i) => {
		const from = x(i ? points[i - 1][0] : 0), size = LOW * speed(i) / fastest;
		pen.fillRect(from, foot - size, Math.max(1, x(p[0]) - from - 0.5), size);
	});
	if (head.private) {
		pen.strokeStyle = own;
		pen.setLineDash([6, 4]);
		pen.beginPath();
		pen.moveTo(x(0), y(0));
		pen.lineTo(x(end * Math.min(1, most / growth)), y(Math.max(0, Math.min(most, growth))));
		pen.stroke();
	}
	// Where the history does not reach back to, changes of the interval, and the time of --at.
	const whole = points.findIndex(p => !p[7]);
	pen.fillStyle = dark ? '#ffffff18' : '#00000012';
	if (whole)
		pen.fillRect(LEFT, 8, x(points[whole < 0 ? points.length - 1 : whole][0]) - LEFT, foot - 8);
	pen.strokeStyle = text;
	pen.lineWidth = 1;
	for (const [s, dash] of [...head.rates.map(rate => [rate[0], [2, 4]]), ...(head.at ? [[head.at, []]] : [])]) {
		pen.setLineDash(dash);
		pen.beginPath();
		pen.moveTo(x(s), 8);
		pen.lineTo(x(s), foot);
		pen.stroke();
	}
	pen.fillStyle = text;
	pen.textAlign = 'center';
	for (let i = 0; i <= 4; i++)
		pen.fillText(`${+(end * i / 4).toPrecision(2)} s` + clock(end * i / 4), Math.min(Math.max(x(end * i / 4), LEFT), width - 44), foot + 14);
	pen.textAlign = 'left';
	pen.fillText('live bytes', LEFT + 6, 16);
	if (head.private) {
		pen.fillStyle = own;
		pen.fillText(`private memory: ${growth < 0 ? '' : '+'}${amount(growth, true)} to ${amount(head.private[1], true)}`, LEFT + 6, 32);
		pen.fillStyle = text;
	}
	pen.fillText('allocated per second', LEFT + 6, HIGH + GAP - 4);
	if (head.usage)
		drawUsage(pen, x, foot + GAP + 12, at => scale(steps(mostUsed()), at, v => amount(v, true)), text);
	times.pointAt = left => points.findIndex(p => x(p[0]) >= left);
}

const mostUsed = () => Math.max(...head.usage[1].map(p => p[2]));
const kindHue = i => `hsl(${(i * 137 + 210) % 360} 45% 55% / .6)`;

// What was resident: bands of kinds where looks told them apart, and the line of all of it.
function drawUsage(pen, x, top, scaled, text) {
	const [kinds, points] = head.usage, looks = points.filter(p => p[1]), y = v => top + USED * (1 - v / (mostUsed() || 1));
	scaled(y);
	const upTo = (p, k) => p.slice(3, 4 + k).reduce((a, b) => a + b, 0);
	pen.setLineDash([]);
	kinds.forEach((kind, k) => {
		pen.fillStyle = kindHue(k);
		pen.beginPath();
		looks.forEach(p => pen.lineTo(x(p[0]), y(upTo(p, k))));
		[...looks].reverse().forEach(p => pen.lineTo(x(p[0]), y(upTo(p, k - 1))));
		pen.fill();
	});
	pen.strokeStyle = text;
	pen.beginPath();
	points.forEach(p => pen.lineTo(x(p[0]), y(p[2])));
	pen.stroke();
	let left = LEFT + 6;
	pen.textAlign = 'left';
	pen.fillStyle = text;
	pen.fillText('resident:', left, top - 6);
	left += pen.measureText('resident: ').width;
	kinds.forEach((kind, k) => {
		if (!looks.some(p => p[3 + k] > mostUsed() / 50))
			return;
		pen.fillStyle = kindHue(k);
		pen.fillRect(left, top - 10, 9, 9);
		pen.fillStyle = text;
		pen.fillText(kind, left + 12, top - 6);
		left += pen.measureText(kind).width + 24;
	});
}

function usedAt(seconds) {
	const [kinds, points] = head.usage, near = list => list.reduce((a, b) => Math.abs(b[0] - seconds) < Math.abs(a[0] - seconds) ? b : a);
	const p = near(points), looks = points.filter(p => p[1]), told = looks.length ? near(looks) : [];
	return `; resident ${amount(p[2], true)}` + kinds.map((kind, k) => told[3 + k] > p[2] / 100 ? `, ${kind} ${amount(told[3 + k], true)}` : '').join('');
}

// Of the day, where the report was written.
const clock = s => head.start ? ', ' + new Date(1000 * (head.start + s)).toISOString().slice(11, 19) : '';

function tellMoment(target, i) {
	const p = head.timeline[i], before = i ? head.timeline[i - 1][0] : 0, part = p[0] - before || 1;
	target.textContent = `at ${+p[0].toPrecision(4)} s${clock(p[0])}: ${amount(p[1], true)} live (${range({ low: p[2], high: p[3] }, true)}); ` +
		`allocated ${amount(p[4] / part, true)}/s (${range({ low: p[5] / part, high: p[6] / part }, true)})` +
		(p[7] ? '; incomplete: the history does not reach back so far' : '') + (head.usage ? usedAt(p[0]) : '');
}

const spanStep = +$('spans').dataset.step;
// A span is two steps, each of some moments: the first and the last one.
const stepCount = () => Math.ceil(head.timeline.length / spanStep);
const secondsOf = ([from, to]) => [from ? head.timeline[from * spanStep - 1][0] : 0, head.timeline[Math.min((to + 1) * spanStep, head.timeline.length) - 1][0]];

function readSpan(text) {
	const span = text.split('-').map(Number);
	return span.length === 2 && spanStep && span[0] >= 0 && span[0] <= span[1] && span[1] < stepCount() ? span : null;
}

const setSpan = (from, to) => setState({ span: Math.min(from, to) + '-' + Math.max(from, to), z: '' }, true);

// By mouse or finger; a click without a way takes the span back.
let brush;
const stepAt = event => {
	const i = times.pointAt(event.clientX - times.getBoundingClientRect().left);
	return Math.floor((i < 0 ? head.timeline.length - 1 : i) / spanStep);
};
times.onpointerdown = event => {
	if (!spanStep)
		return;
	times.setPointerCapture(event.pointerId);
	brush = { from: stepAt(event) };
};
times.onpointermove = event => {
	const to = brush && stepAt(event);
	if (brush && (to !== brush.from || brush.to >= 0) && to !== brush.to)
		setSpan(brush.from, brush.to = to);
};
times.onpointerup = () => {
	if (brush && !(brush.to >= 0))
		setState({ span: '', z: '' });
	brush = null;
};
times.onpointercancel = () => brush = null;
times.onkeydown = event => {
	const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], last = stepCount() - 1;
	if (!by || !spanStep)
		return;
	event.preventDefault();
	const [from, to] = readSpan(state.span) || (by > 0 ? [-1, -1] : [last + 1, last + 1]);
	if (event.shiftKey)
		setSpan(Math.max(from, 0), Math.max(from, 0, Math.min(to + by, last)));
	else if (from + by >= 0 && to + by <= last)
		setSpan(from + by, to + by);
};

times.addEventListener('mousemove', event => {
	const i = times.pointAt ? times.pointAt(event.clientX - times.getBoundingClientRect().left) : -1;
	showTip(event, i >= 0 && (tip => tellMoment(tip, i)));
});
times.addEventListener('mouseleave', event => showTip(event, null));
