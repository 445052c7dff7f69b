# SPDX-License-Identifier: MIT
"""The Java services of this folder, and Debian's tomcat10: what starts them."""
import math
import os
import re
import subprocess
from pathlib import Path

from servers import Missing

FOLDER = Path(__file__).resolve().parent
JARS = Path("/usr/share/java")
JACKSON = [f"jackson-{part}.jar" for part in ("databind", "core", "annotations")]
LUCENE = ["lucene-core-8.7.0.jar", "lucene-analyzers-common-8.7.0.jar"]
NETTY = [f"netty-{part}.jar" for part in ("common", "buffer", "transport", "codec", "codec-http", "handler", "resolver")]
JETTY = [*(f"jetty9-{part}.jar" for part in ("server", "http", "io", "util")), "servlet-api.jar"]
ZOOKEEPER = ["zookeeper.jar", "zookeeper-jute.jar", "slf4j-api.jar", "slf4j-nop.jar", "snappy-java.jar", "metrics-core.jar", "commons-io.jar"]
MAVEN = ["../maven/lib/*", "../maven/boot/*"]
NODELAY = "-Dsun.net.httpserver.nodelay=true"
# Title, class and jars; none: tomcat. Options of the JVM.
SERVICES = [
    ("HTTP server with JSON", "JsonService", JACKSON, []),
    ("HTTP server with JSON, ZGC", "JsonService", JACKSON, ["-XX:+UseZGC"]),
    ("Lucene, index and search", "LuceneService", LUCENE, []),
    ("Netty", "NettyService", NETTY, []),
    ("javac, classes come and go", "CompileService", [], []),
    ("Tomcat 10, a page in JSP", None, [], []),
    ("Jetty 9", "JettyService", JETTY, []),
    ("ZooKeeper, server and client", "ZookeeperService", ZOOKEEPER, []),
    ("Maven, a project is validated", "MavenService", MAVEN, []),
]
WARM = 8.0  # seconds under load before it is looked at


def classpath(classes, jars):
    missing = [jar for jar in jars if not (JARS / jar.removesuffix("*")).exists()]
    if missing:
        raise Missing(f"{missing[0]} is not installed")
    return os.pathsep.join([str(classes), *(str(JARS / jar) for jar in jars)])


def tomcat(port, folder):
    home = Path("/usr/share/tomcat10")
    if not (home / "bin" / "bootstrap.jar").exists():
        raise Missing("tomcat10 is not installed")
    for name in ("conf", "webapps/ROOT", "work", "temp", "logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "conf/server.xml").write_text((FOLDER / "tomcat/server.xml").read_text())
    (folder / "conf/web.xml").write_text(Path("/etc/tomcat10/web.xml").read_text())
    (folder / "webapps/ROOT/index.jsp").write_text((FOLDER / "tomcat/index.jsp").read_text())
    return [f"-Dcatalina.home={home}", f"-Dcatalina.base={folder}", f"-Djava.io.tmpdir={folder}/temp", f"-Dport={port}", "-cp",
            f"{home}/bin/bootstrap.jar:{home}/bin/tomcat-juli.jar", "org.apache.catalina.startup.Bootstrap", "start"]


def command(service, port, classes, folder):
    _, name, jars, options = service
    end = ["-cp", classpath(classes, jars), name, str(port), str(folder)] if name else tomcat(port, folder)
    return ["java", "-Xmx512m", "-XX:MaxDirectMemorySize=4g", NODELAY, *options, *end]


def compiled(service, classes):
    """Compiles it into the folder classes."""
    _, name, jars, _ = service
    if name:
        subprocess.run(["javac", "-g", "-d", classes, "-cp", classpath(FOLDER, jars), FOLDER / "Service.java", FOLDER / f"{name}.java"], check=True)


def load(port, seconds):
    """Requests that were answered."""
    done = subprocess.run(["ab", "-k", "-q", "-c", "4", "-t", str(math.ceil(seconds)), "-n", "100000000", f"http://127.0.0.1:{port}/"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    failed = re.search(r"Non-2xx responses: *(\d+)", done)
    complete = re.search(r"Complete requests: *(\d+)", done)
    if not complete or failed:
        raise RuntimeError(f"ab: {done[-300:]}")
    return int(complete[1])
