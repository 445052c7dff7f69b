// What memanalyze --leaks says (analyzer/html/html_leaks.h): stacks whose old blocks become more; a click leads to one in the graph.

// The state that shows the stack of an entry: as far as the functions, some of which may stand together as "rest", lead.
function leadTo(entry) {
	let node = rootOf(0, false);
	for (const frame of entry.path)
		for (let step = true; step;) {
			const next = node.kids.find(kid => kid.frame === frame && !kid.rest);
			step = !next && node.kids.find(kid => kid.rest);
			node = next || step || node;
		}
	return { tab: 'flame', figure: 0, dir: 'out', fn: '', q: '', span: '', z: node.path.join('.') };
}

function makeLeaks({ verdict, note, age, rows, more }) {
	for (const line of [verdict.replace(/\s+/g, ' '), note])
		make('p', $('leaking'), line);
	$('old').textContent = `older than ${+age.toPrecision(3)} s`;
	rows.forEach(([holder, called, kind, ...numbers], i) => {
		const tr = make('tr', $('leaklist').tBodies[0], '', kind ? '' : 'unsure'), [name, ...callers] = holder.split(' < ');
		const estimate = (at, bytes, unit) => {
			const [value, low, high] = numbers.slice(at);
			make('td', tr, amount(value, bytes) + unit);
			make('td', tr, range({ low, high }, bytes));
		};
		const cell = make('td', tr, name);
		make('span', cell, callers.map(caller => '< ' + caller).join(' '), 'dim');
		cell.onclick = () => {
			choose(null);
			setState(leadTo(entries[names.leakEntries[i]]));
		};
		make('td', tr, called, kind > 1 ? 'called leak' : 'called');
		estimate(0, true, '');
		if (kind)
			estimate(6, true, '/s');
		else
			make('td', tr).colSpan = 2;
		estimate(3, false, '');
		make('td', tr, count(numbers[9]));
		tr.dataset.leak = [kind, ...numbers].join(' ');
	});
	const leaks = rows.filter(row => row[2] > 1).length;
	$('tab-leaks').append(leaks ? ` (${count(leaks)})` : '');
	$('others').textContent = more ? `${count(more)} more stacks have old blocks: memanalyze --leaks --top 0 lists them` : '';
}
