// Intervals of sums, as common/stats/estimate.h and analyzer/stats/compare.h have them, and how figures are written.

// By Stirling's series.
function logGamma(x) {
	let shift = 0;
	for (; x < 10; x++)
		shift -= Math.log(x);
	const b = 1 / (x * x);
	return shift + (x - 0.5) * Math.log(x) - x + Math.log(2 * Math.PI) / 2 + (1 / 12 - b * (1 / 360 - b * (1 / 1260 - b / 1680))) / x;
}

// The tails of the gamma distribution below and above x.
function tails(a, x) {
	const density = Math.exp(a * Math.log(x) - x - logGamma(a + 1));
	if (x < a + 1) {
		let sum = 1;
		for (let n = a + 1, term = 1; term > sum * 1e-16; n++)
			sum += term *= x / n;
		return [density * sum, 1 - density * sum];
	}
	// A continued fraction, by Lentz's method.
	let b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
	for (let i = 1; i < 10000; i++) {
		const an = -i * (i - a);
		b += 2;
		d = 1 / (an * d + b || 1e-300);
		c = b + an / c || 1e-300;
		h *= d * c;
		if (Math.abs(d * c - 1) < 1e-14)
			break;
	}
	return [1 - density * a * h, density * a * h];
}

// A tail of the normal distribution: at which quantile, and its probability.
function tailOf(z) {
	return { z, p: tails(0.5, z * z / 2)[1] / 2 };
}

// Where a tail of the gamma distribution begins: by Wilson and Hilferty, below that shape corrected by bisection and Newton's method.
function gammaQuantile(mean, variance, tail, upper) {
	if (!(mean > 0) || !(variance > 0))
		return Math.max(mean, 0);
	const a = mean * mean / variance, scale = variance / mean, c = 1 / (9 * a);
	let x = a * Math.max(0, 1 - c + (upper ? 1 : -1) * tail.z * Math.sqrt(c)) ** 3;
	if (a > 1000)
		return x * scale;
	if (!(x > 0.2 * a))
		x = Math.max(x, Math.exp((Math.log(upper ? 1 - tail.p : tail.p) + logGamma(a + 1)) / a), 1e-300);
	for (let i = 0, low = 0, high = Infinity; i < 100; i++) {
		const gap = upper ? tail.p - tails(a, x)[1] : tails(a, x)[0] - tail.p;
		if (gap > 0)
			high = x;
		else
			low = x;
		let next = x - gap / Math.exp((a - 1) * Math.log(x) - x - logGamma(a));
		if (!(next > low && next < high))
			next = high < Infinity ? (low + high) / 2 : 2 * x + 1;
		if (Math.abs(next - x) <= 1e-9 * x)
			break;
		x = next;
	}
	return x * scale;
}

// A sum over samples: n of them, value, variance q, s of what was seen, weight x of the next sample.
const noSum = () => ({ n: 0, v: 0, q: 0, s: 0, x: 0 });

function merge(a, b, blocks) {
	if (blocks && !a.n && b.n)
		a.x = b.x;
	else if (!blocks || !a.n || b.n)
		a.x = Math.max(a.x, b.x);
	a.n += b.n;
	a.v += b.v;
	a.q += b.q;
	a.s += b.s;
	return a;
}

// hidden: of numbers of blocks, the weight of the smallest that may be missed; smooth: ends need not be whole.
function interval(sum, hidden, tail, smooth) {
	const { n, v, q, s, x } = sum;
	const unseen = Math.max(0, v - s);
	let low, high;
	if (hidden > 0) {
		const next = x > 0 ? Math.max(x, 1) : n ? 1 : hidden;
		low = s + gammaQuantile(unseen, q, tail, false) - 0.5;
		high = s + gammaQuantile(unseen + next - 1, q + next * (next - 1), tail, true) + 0.5;
	} else {
		low = q > 0 ? gammaQuantile(v, q, tail, false) : v;
		high = s + gammaQuantile(unseen + x, q + x * x, tail, true);
	}
	low = Math.min(Math.max(low, s), v);
	high = Math.max(high, v);
	if (hidden > 0 && !smooth) {
		low = Math.min(Math.floor((low + 0.5) * (1 + 1e-6)), v);
		high = Math.max(Math.ceil((high - 0.5) * (1 - 1e-6)), v);
	}
	return { value: v, low, high };
}

function growthInterval({ plus, minus, hidden, f }, tail) {
	const old = hidden && head.figures[f].oldHidden;
	if (hidden > 0 && old > 0) {
		// The sizes that either side shows, with the weights that blocks have at its own rate.
		const both = (a, b, ratio) => ({ ...a, x: Math.max(a.x, 1 / (1 - (1 - 1 / b.x) ** ratio)) });
		[plus, minus] = [both(plus, minus, 1 / head.sides), both(minus, plus, head.sides)];
	}
	const x = interval(plus, hidden, tail, true), y = interval(minus, old, tail, true), value = x.value - y.value;
	return { value, low: value - Math.hypot(x.value - x.low, y.high - y.value), high: value + Math.hypot(x.high - x.value, y.value - y.low) };
}

// What the parts of the page share.
const $ = id => document.getElementById(id);
// The number of the report that is shown, of a page that has several; '': the report of all.
const given = new URLSearchParams(location.hash.slice(1)).get('of');
const part = $('head' + given) ? given : '';
const count = n => n.toLocaleString('en-US');

function make(kind, parent, text = '', className = '') {
	const element = document.createElement(kind);
	element.textContent = text;
	element.className = className;
	parent.append(element);
	return element;
}

function amount(value, bytes) {
	const size = Math.abs(value), sign = value < 0 ? '\u2212' : '';
	if (!bytes)
		return sign + count(Math.round(size));
	let unit = 0, n = size;
	for (; n >= 999.5 && unit < 6; unit++)
		n /= 1024;
	return sign + (unit ? n.toFixed(n < 9.995 ? 2 : n < 99.95 ? 1 : 0) : Math.round(n)) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][unit];
}

function range(x, bytes) {
	return x.low === x.high ? head.noWidth : amount(x.low, bytes) + ' .. ' + amount(x.high, bytes);
}

function percent(part) {
	return (100 * part).toFixed(part > 0 && part < 0.0995 ? 2 : 1) + ' %';
}
