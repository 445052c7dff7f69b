# SPDX-License-Identifier: MIT
"""The machine that bench/fleet profiles: ten programs with a hundred processes, under a load that counts errors, and four leaks that are planted."""
import os
import re
import shutil
import stat
import time

LEAK_BYTES = 20000
# What of a leak a report names: the function, or what its engine allocates by.
LEAKING = {"python_leak": "^plant$", "late_leak": "^plant$", "node_leak": "ArrayBufferAllocator::Allocate", "redis_leak": "^lpInsert$"}

LOAD = '''
import http.client, os, socket, subprocess, sys, time
errors = rounds = 0
def http_get(port, path="/"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read(), (port, answer.status)
    connection.close()
def redis(port, *words):
    data = b"".join(b"$%d\\r\\n%b\\r\\n" % (len(w), w) for w in words)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
        s.sendall(b"*%d\\r\\n%b" % (len(words), data))
        assert s.recv(100)[:1] in (b":", b"+", b"$"), words[0]
def login():
    if rounds % 20 == 0:
        assert subprocess.run(["sh", "ssh.sh", "echo in"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=60).stdout == b"in\\n"
tries = [lambda: http_get(8001), lambda: http_get(8001, "/x.php"), lambda: http_get(8002), lambda: http_get(8003),
         lambda: http_get(8004), lambda: redis(6001, b"INCR", b"x"), login]
leaks = open("redis_leak.times", "w")
while True:
    for one in tries:
        try:
            one()
        except Exception as error:
            errors += 1
            print("ERROR", repr(error), flush=True)
    redis(6002, b"RPUSH", b"kept", os.urandom(20000))
    leaks.write(f"{time.time()}\\n"); leaks.flush()
    rounds += 1
    if rounds % 10 == 0:
        print("rounds", rounds, "errors", errors, flush=True)
    time.sleep(0.1)
'''

PYTHON_LEAK = '''
import sys, time
kept = []
def plant():
    kept.append(bytes(20000))
with open(sys.argv[1], "w") as times:
    while True:
        plant()
        times.write(f"{time.time()}\\n")
        times.flush()
        time.sleep(0.1)
'''

NODE_LEAK = '''
const fs = require("fs"), kept = [], times = fs.openSync("node_leak.times", "w");
function plant() {
	kept.push(Buffer.alloc(20000));
	fs.writeSync(times, Date.now() / 1000 + "\\n");
}
setInterval(plant, 100);
require("http").createServer((request, answer) => answer.end("node")).listen(8003);
'''

NODE = 'require("http").createServer((request, answer) => answer.end("node")).listen(+process.argv[2]);'

JAVA = '''
import java.util.*;
import java.util.zip.*;
public class Work {
	public static void main(String[] arguments) throws Exception {
		byte[] data = new byte[20000], out = new byte[30000];
		for (;;) {
			new Random().nextBytes(data);
			Deflater deflater = new Deflater();
			deflater.setInput(data);
			deflater.finish();
			deflater.deflate(out);
			deflater.end();
			Thread.sleep(50);
		}
	}
}
'''

WSGI = '''
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"x" * 2000]
'''

NGINX = '''
daemon off; worker_processes {workers}; pid {folder}/nginx.pid; error_log stderr; user root;
events {{ worker_connections 256; }}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;
 scgi_temp_path {folder}/s;
 server {{ listen 127.0.0.1:8001; root {folder}/web;
  location ~ \\.php$ {{ fastcgi_pass unix:{folder}/php.sock; fastcgi_param SCRIPT_FILENAME {folder}/web/x.php; fastcgi_param REQUEST_METHOD GET; }} }} }}
'''

PHP = '''
[global]
error_log = {folder}/php.log
[www]
user = root
group = root
listen = {folder}/php.sock
pm = static
pm.max_children = {workers}
'''


SSHD = '''
Port 8022
ListenAddress 127.0.0.1
HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
'''

SSH = "exec ssh -F none -i key -p 8022 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR root@127.0.0.1 \"$@\"\n"


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def program(*names):
    for name in names:
        found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
        if found:
            return found
    raise SystemExit(f"{names[0]} is not installed")


def start_postgres(machine, clients=12):
    """Its own user's: postgres refuses to be root."""
    folder = os.path.join(machine.folder, "postgres")
    binaries = sorted(os.listdir("/usr/lib/postgresql"))[-1]
    tools = f"/usr/lib/postgresql/{binaries}/bin"
    user = "setpriv --reuid=postgres --regid=postgres --clear-groups"
    machine.ask(f"mkdir {folder} && chown postgres {folder} && cd / && {user} {tools}/initdb -D {folder}/data -A trust >{folder}.log 2>&1; cd {machine.folder}")
    server = machine.start(f"{user} {tools}/postgres -D {folder}/data -k {folder} -c fsync=off -c max_connections=40", "postgres.out")
    machine.ask(f"until {user} {tools}/pg_isready -h {folder} -q; do sleep 0.2; done; {user} {tools}/createdb -h {folder} bench; "
                f"{user} {tools}/pgbench -i -q -h {folder} bench >>{folder}.log 2>&1")
    if not clients:
        return [server]
    return [server, machine.start(f"{user} {tools}/pgbench -h {folder} -c {clients} -R 40 -T 100000 bench", "pgbench")]


def start_web(machine, workers=10):
    folder = machine.folder
    write(folder, "web/index.html", "x" * 1000)
    write(folder, "web/x.php", "<?php $a = []; for ($i = 0; $i < 500; $i++) $a[] = str_repeat('x', $i); echo count($a);")
    write(folder, "app/app.py", WSGI)
    conf, php = write(folder, "nginx.conf", NGINX.format(folder=folder, workers=min(workers, 8))), write(folder, "php.conf", PHP.format(folder=folder, workers=workers))
    return [machine.start(f"{program('nginx')} -c {conf}", "nginx"),
            machine.start(f"{program('php-fpm', 'php-fpm8.2', 'php-fpm8.4')} -F -R -n -y {php}", "php"),
            machine.start(f"{program('gunicorn')} -w {workers} -b 127.0.0.1:8002 --chdir {folder}/app app:app", "gunicorn")]


def start_cron(machine):
    """With a table of its own, in the mount namespace of the machine: none of the jobs of this system."""
    table = write(machine.folder, "cron.table", "* * * * * root for i in 1 2 3 4; do sleep 2; done\n")
    machine.ask(f"mount -t tmpfs none /var/spool/cron && mount -t tmpfs none /etc/cron.d && mount -t tmpfs none /run && mount --bind {table} /etc/crontab && "
                "chmod 644 /etc/crontab")
    return machine.start(f"{program('cron')} -f", "cron")


def start_sshd(machine):
    """With two users who stay; the load logs in again and again. /run is the machine's own by start_cron; so is the home, or shells would read this
    system's."""
    folder = machine.folder
    write(folder, "ssh.sh", SSH)
    machine.ask("mount -t tmpfs none /root && mkdir -p /run/sshd && ssh-keygen -q -t ed25519 -N '' -f key")
    server = machine.start(f"{program('sshd')} -D -e -f {write(folder, 'sshd.conf', SSHD.format(folder=folder))}", "sshd")
    machine.await_text("sshd", "Server listening")
    return [server] + [machine.start("sh ssh.sh 'while :; do sleep 5; ls >/dev/null; done'", f"user{i}") for i in range(2)]


def start_others(machine):
    folder, node = machine.folder, program("node")
    write(folder, "Work.java", JAVA)
    machine.ask(f"javac -d {folder} {folder}/Work.java")
    pids = [machine.start(f"{program('redis-server')} --port 6001 --save ''", "redis"),
            start_cron(machine), *start_sshd(machine)]
    pids += [machine.start(f"{node} {write(folder, 'node.js', NODE)} {port}", f"node{port}") for port in (8004, 8005, 8006)]
    pids += [machine.start(f"{program('java')} -Xmx64m -cp {folder} Work", f"java{i}") for i in range(2)]
    # Shells that start a process each second.
    pids += [machine.start("sh -c 'while :; do sleep 1; ls >/dev/null; done'", f"shell{i}") for i in range(18)]
    pids.append(machine.victim("alloc_loop", "1"))
    return pids + [machine.victim("sleeper", "nanosleep") for _ in range(4)]


def start_python_leak(machine, name):
    path = write(machine.folder, "leak.py", PYTHON_LEAK)
    return machine.start(f"{program('/usr/bin/python3')} {path} {machine.folder}/{name}.times", name)


def start_all(machine):
    """{name: PID} of those that leak, and the PIDs of all that must go on."""
    os.chmod(machine.folder, stat.S_IRWXU | stat.S_IXGRP | stat.S_IXOTH)
    machine.ask("ip link set lo up")
    leaks = {"python_leak": start_python_leak(machine, "python_leak"),
             "node_leak": machine.start(f"{program('node')} {write(machine.folder, 'leak.js', NODE_LEAK)}", "node_leak"),
             "redis_leak": machine.start(f"{program('redis-server')} --port 6002 --save ''", "redis_leak")}
    pids = [*leaks.values(), *start_others(machine), *start_web(machine), *start_postgres(machine)]
    time.sleep(3)
    pids.append(machine.start(f"{program('/usr/bin/python3')} {write(machine.folder, 'load.py', LOAD)}", "load"))
    machine.await_text("load", r"rounds [1-9]\d* errors 0")
    return leaks, pids


def planted(machine, name, begin, end):
    """Bytes between two times of the clock."""
    times = [float(line) for line in machine.text(f"{name}.times").split()]
    return LEAK_BYTES * sum(begin <= at <= end for at in times)


def load_errors(machine):
    """Rounds, and errors among them."""
    found = re.findall(r"^rounds (\d+) errors (\d+)$", machine.text("load"), re.M)
    return tuple(map(int, found[-1]))
