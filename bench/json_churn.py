#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""W4: JSON encode/decode of mixed objects. 1 op = one dumps + one loads. Same output lines as bench.h. json_churn.py serve PORT: one op for each line
that a client sends, for got_switch.c."""
import json, os, socket, sys, time, random
port = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[1] == 'serve' else 0
dur = float(sys.argv[1]) if len(sys.argv) > 1 and not port else 10.0
tick = 0.5
if os.environ.get('BENCH_CPU'):
    os.sched_setaffinity(0, [int(x) for x in os.environ['BENCH_CPU'].split(',')])
print('PID', os.getpid(), flush=True)
R = random.Random(7)
def mk(i):
    return {'id': i, 'name': 'user-%d' % i, 'score': R.random() * 1e6, 'tags': ['t%d' % R.randrange(1000) for _ in range(R.randrange(1, 12))],
            'active': bool(i & 1), 'none': None, 'addr': {'street': 'x' * R.randrange(10, 200), 'zip': R.randrange(10**5), 'geo': [R.random(), R.random()]},
            'blob': 'y' * (2 ** R.randrange(4, 12)), 'hist': [{'t': k, 'v': R.random()} for k in range(R.randrange(20))]}
objs = [mk(i) for i in range(500)]
live = [None] * 2000
listener = socket.create_server(('127.0.0.1', port)) if port else None
j = 0
while listener:
    client = listener.accept()[0]
    while client.recv(64):
        s = json.dumps(objs[j % 500]); live[j % 2000] = (s, json.loads(s)); j += 1
        client.send(b'1\n')
pc = time.perf_counter; ct = time.process_time
t0 = tl = last = pc(); cl = ct(); gap = 0.0; n = total = 0
while True:
    for _ in range(8):
        s = json.dumps(objs[j % 500]); live[j % 2000] = (s, json.loads(s)); j += 1
    t = pc(); g = t - last; last = t
    if g > gap: gap = g
    n += 8; total += 8
    if t - tl >= tick:
        c = ct()
        sys.stdout.write('T %.3f %.4f %d %.1f %.4f %.0f\n' % (t - t0, t - tl, n, n / (t - tl), c - cl, gap * 1e6)); sys.stdout.flush()
        tl = t; cl = c; n = 0; gap = 0.0; last = pc()
    if t - t0 >= dur: break
print('FINAL %.1f %d %.3f' % (total / (t - t0), total, t - t0))
