// Live bytes over time, as a band, and below how fast was allocated.

const HIGH = 230, LOW = 90, LEFT = 74, GAP = 34;

const times = $('times');

function steps(most) {
	const unit = 2 ** Math.floor(Math.log2(most || 1));
	return [0, unit / 2, unit, unit * 1.5].filter(step => step <= most);
}

function drawTimeline() {
	const points = head.timeline, dark = isDark(), [pen, width] = prepare(times, HIGH + LOW + 2 * GAP);
	if (!points.length)
		return;
	const end = points[points.length - 1][0] || 1, most = Math.max(...points.map(p => p[3]), 1);
	const speed = i => points[i][4] / (points[i][0] - (i ? points[i - 1][0] : 0) || 1);
	const fastest = Math.max(...points.map((p, i) => speed(i)), 1);
	const x = s => LEFT + (width - LEFT - 8) * s / end, y = v => 8 + HIGH * (1 - v / most), foot = HIGH + GAP + LOW + 8;
	const [text, line, band, bar] = dark ? ['#9aa6b2', '#353d47', '#6cb0ff55', '#c99c4a'] : ['#59636e', '#d1d9e0', '#0b63ce44', '#b9852a'];
	function scale(values, at, name) {
		pen.textAlign = 'right';
		for (const v of values) {
			pen.fillStyle = line;
			pen.fillRect(LEFT, at(v), width - LEFT - 8, 1);
			pen.fillStyle = text;
			pen.fillText(name(v), LEFT - 6, at(v));
		}
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
		pen.fillText(`${+(end * i / 4).toPrecision(2)} s`, Math.min(Math.max(x(end * i / 4), LEFT), width - 24), foot + 14);
	pen.textAlign = 'left';
	pen.fillText('live bytes', LEFT + 6, 16);
	pen.fillText('allocated per second', LEFT + 6, HIGH + GAP - 4);
	times.pointAt = left => points.findIndex(p => x(p[0]) >= left);
}

function tellMoment(target, i) {
	const p = head.timeline[i], before = i ? head.timeline[i - 1][0] : 0, part = p[0] - before || 1;
	target.textContent = `at ${+p[0].toPrecision(4)} s: ${amount(p[1], true)} live (${range({ low: p[2], high: p[3] }, true)}); ` +
		`allocated ${amount(p[4] / part, true)}/s (${range({ low: p[5] / part, high: p[6] / part }, true)})` +
		(p[7] ? '; incomplete: the history does not reach back so far' : '');
}

times.addEventListener('mousemove', event => {
	const i = times.pointAt ? times.pointAt(event.clientX - times.getBoundingClientRect().left) : -1;
	showTip(event, i >= 0 && (tip => tellMoment(tip, i)));
});
times.addEventListener('mouseleave', event => showTip(event, null));
