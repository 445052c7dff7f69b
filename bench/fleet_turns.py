# SPDX-License-Identifier: MIT
"""Throughput of the programs of a machine with memattach --system and without, in turns: what bench/fleet turns runs.

One client asks each program in turn, a short batch at a time, and reads what CPU time the program and its children took for it. Answers for each
second of CPU time do not depend on what else the machine of the measurement has to do; those for each second of the clock do.
"""
import json
import math
import os
import statistics
import time

import fleet_programs as programs

CLIENT = r'''
import contextlib, http.client, json, os, socket, subprocess, sys, time
config = json.load(open("turns.json"))
BATCH = 0.15

def family(pid):
    found = [pid]
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in open(f"/proc/{pid}/task/{task}/children").read().split():
                found += family(int(child))
    return found

def cpu(pid):
    """Of a process and all below it: that of the ended by ticks."""
    total = 0
    for one in family(pid):
        with contextlib.suppress(OSError):
            fields = open(f"/proc/{one}/stat").read().rpartition(")")[2].split()
            total += time.clock_gettime(~one << 3 | 2) + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return total

def page(port, path="/", again=True):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    def answer_of():
        connection.request("GET", path)
        return connection.getresponse()
    def ask():
        try:
            answer = answer_of()
        except (http.client.HTTPException, OSError):  # the server has ended a connection that was quiet
            connection.close()
            answer = answer_of()
        assert answer.status == 200 and answer.read(), (port, answer.status)
        if not again:
            connection.close()
    return ask

def lines(command):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, shell=isinstance(command, str))
    def ask(line=b"select count(*), sum(abalance) from pgbench_accounts where aid < 500;\n"):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline().strip()
    return process.pid, ask

redis = socket.create_connection(("127.0.0.1", 6001))
def ask_redis(counter=[0]):
    counter[0] += 1
    key = b"%010d" % (counter[0] % 20000)
    redis.sendall(b"*3\r\n$3\r\nSET\r\n$10\r\n" + key + b"\r\n$1000\r\n" + b"x" * 1000 + b"\r\n")
    assert redis.recv(100) == b"+OK\r\n"

def login():
    subprocess.run(["sh", "ssh.sh", "true"], stdin=subprocess.DEVNULL, check=True, timeout=60)

_, ask_postgres = lines(config["psql"])
shell, ask_shell = lines("while read x; do y=$(echo $x); echo $y; done")
python, ask_python = lines(["/usr/bin/python3", "work.py"])
asked = {"redis": ask_redis, "nginx": page(8001), "php-fpm": page(8001, "/x.php"), "gunicorn": page(8002, again=False), "PostgreSQL": ask_postgres,
         "node": page(8004), "JVM": page(8007), "sshd": login, "shell": ask_shell, "python3": ask_python}
pids = {**config["pids"], "shell": shell, "python3": python}
log = open("turns.log", "w")
while True:
    for name, ask in asked.items():
        began, before, count = time.monotonic(), cpu(pids[name]), 0
        while time.monotonic() < began + BATCH:
            ask()
            count += 1
        took, end = cpu(pids[name]) - before, time.monotonic()
        log.write(json.dumps([name, began, end, count, took]) + "\n")
        log.flush()
'''

WORK = '''
import sys
for line in sys.stdin:
    print(len({str(i): [i] * 10 for i in range(2000)}), flush=True)
'''

JAVA = '''
import com.sun.net.httpserver.*;
import java.net.*;
import java.util.*;
import java.util.zip.*;
public class Pages {
	public static void main(String[] arguments) throws Exception {
		HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 8007), 10);
		server.createContext("/", exchange -> {
			byte[] data = new byte[20000], out = new byte[30000];
			new Random().nextBytes(data);
			Deflater deflater = new Deflater();
			deflater.setInput(data);
			deflater.finish();
			int size = deflater.deflate(out);
			deflater.end();
			exchange.sendResponseHeaders(200, size);
			exchange.getResponseBody().write(out, 0, size);
			exchange.close();
		});
		server.start();
	}
}
'''


def start_all(machine):
    """Ten programs with few processes each, and the client."""
    machine.ask(f"chmod 711 {machine.folder}; ip link set lo up")
    folder = machine.folder
    pids = {"redis": machine.start(f"{programs.program('redis-server')} --port 6001 --save ''", "redis")}
    pids["cron"] = programs.start_cron(machine)
    pids["sshd"] = programs.start_sshd(machine)[0]
    pids["nginx"], pids["php-fpm"], pids["gunicorn"] = programs.start_web(machine, workers=2)
    pids["PostgreSQL"] = programs.start_postgres(machine, clients=0)[0]
    pids["node"] = machine.start(f"{programs.program('node')} {programs.write(folder, 'node.js', programs.NODE)} 8004", "node")
    programs.write(folder, "Pages.java", JAVA)
    machine.ask(f"javac -d {folder} {folder}/Pages.java")
    pids["JVM"] = machine.start(f"{programs.program('java')} -Xmx64m -cp {folder} Pages", "java")
    programs.write(folder, "work.py", WORK)
    psql = f"cd / && exec setpriv --reuid=postgres --regid=postgres --clear-groups psql -qAt -h {folder}/postgres bench"
    programs.write(folder, "turns.json", json.dumps({"pids": pids, "psql": psql}))
    time.sleep(3)
    return machine.start(f"/usr/bin/python3 {programs.write(folder, 'client.py', CLIENT)}", "client")


def batches(machine, began, ended):
    """{program: [answers, seconds and CPU seconds for each answer]} of a turn; times are medians of its batches, since a few have much else in them."""
    found = {}
    for line in machine.text("turns.log").splitlines():
        name, start, end, count, cpu = json.loads(line)
        if began <= start and end <= ended:
            found.setdefault(name, []).append((count, (end - start) / count, cpu / count))
    return {name: [sum(row[0] for row in rows), *(statistics.median(row[i] for row in rows) for i in (1, 2))] for name, rows in found.items()}


def interval(values):
    """Of a ratio, by the logarithms of those of the turns: the mean, and 95 %."""
    mean, n = statistics.fmean(values), len(values)
    # Student's t at 97.5 %, to 1 % for five turns and more.
    t = 1.96 + 2.4 / (n - 1) + 3.2 / (n - 1) ** 2
    half = t * statistics.stdev(values) / math.sqrt(n)
    return [math.exp(x) for x in (mean, mean - half, mean + half)]


def ratios(without, turns, column):
    """{program: logarithms of the throughput of each turn with memattach, as a part of that of the two turns around it}."""
    found = {}
    for i, turn in enumerate(turns):
        for name in turn:
            before, now, after = (-math.log(one[name][column]) for one in (without[i], turn, without[i + 1]))
            found.setdefault(name, []).append(now - (before + after) / 2)
    return found


def show(without, turns):
    print("| answers for each second | " + " | ".join(turns[0]) + " | all |")
    print("|---" * (len(turns[0]) + 2) + "|")
    for what, column in (("of the program's CPU time", 2), ("of the clock", 1)):
        found = ratios(without, turns, column)
        found["all"] = [statistics.fmean(values) for values in zip(*found.values())]
        cells = ["{:.3f} ({:.3f} .. {:.3f})".format(*interval(values)) for values in found.values()]
        print(f"| {what}, with memattach as a part of without | " + " | ".join(cells) + " |")
    print(f"{sum(row[0] for turn in turns for row in turn.values())} answers in {len(turns)} turns with memattach", flush=True)
    all_of = ratios(without, turns, 2)
    return interval([statistics.fmean(values) for values in zip(*all_of.values())])
