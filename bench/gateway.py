"""Measures what a script of the gateway waits for: many requests wait at once, or one after the other.

python3 bench/gateway.py                         API of 1 to 45 ms by 100 connections, and 10 ms by 1 to 100
python3 bench/gateway.py --seconds 10 --rounds 5

An API that answers after so many milliseconds stands behind a route whose script sends it a sub-request.
It is measured as it is, with one request in flight at a time (`blocking`, by a lock of the script), and
beside nginx with lua's `ngx.location.capture` where nginx and the package `libnginx-mod-http-lua` are
installed. The API is a route of another broker, whose script sleeps. Everything has one worker. The load is
wrk's (package `wrk`), with connections that are kept. Arms take turns; the figures are medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LUA_MODULES = Path("/usr/lib/nginx/modules")

API = """
[[route]]
path = "/{ms}"
limits = { in_flight = 10000 }
content = { code = '''
Nginx::Async.sleep Nginx::Var.new.ms.to_i
Nginx.rputs "done"
''' }

[[route]]
path = "/"
return = { status = 200, body = "done" }
"""

GATEWAY = """
[limits]
in_flight = 10000
time_ms = 600000

[[route]]
path = "/async/{ms}"
content = { code = '''
res = Nginx::Async::HTTP.sub_request "/api/#{Nginx::Var.new.ms}"
Nginx.rputs res.body
''' }

[[route]]
path = "/blocking/{ms}"
content = { code = '''
$lock ||= Mutex.new
$lock.synchronize do
  res = Nginx::Async::HTTP.sub_request "/api/#{Nginx::Var.new.ms}"
  Nginx.rputs res.body
end
''' }

[[route]]
path = "/empty/script"
content = { code = 'Nginx.rputs "done"' }

[[route]]
path = "/empty/route"
return = { status = 200, body = "done" }

[[route]]
path = "/api/{ms}"
internal = true
proxy = { to = "http://127.0.0.1:API/{ms}" }
"""

NGINX = """
load_module MODULES/ndk_http_module.so;
load_module MODULES/ngx_http_lua_module.so;
worker_processes 1;
daemon off;
error_log stderr crit;
pid FOLDER/nginx.pid;
events { worker_connections 8192; }
http {
    access_log off;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    upstream api { server 127.0.0.1:API; keepalive 512; }
    keepalive_requests 1000000000;
    server {
        listen 127.0.0.1:PORT;
        location ~ ^/async/(.*)$ {
            set $ms $1;
            content_by_lua_block {
                local res = ngx.location.capture("/api/" .. ngx.var.ms)
                ngx.print(res.body)
            }
        }
        location /empty/script { content_by_lua_block { ngx.print("done") } }
        location ~ ^/api/(.*)$ {
            internal;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_pass http://api/$1;
        }
    }
}
"""


def free_port() -> int:
    """Returns a port that nothing listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Waits until something listens at a port."""
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


@contextmanager
def running(command: list[str], port: int, **environment: str) -> Iterator[None]:
    """Runs a server while the block runs."""
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(port)
        yield
    finally:
        process.terminate()
        process.wait()


def gateway(folder: Path, routes: str, port: int) -> list[tuple[list[str], int, dict[str, str]]]:
    """The command of a broker with one worker of its gateway."""
    folder.mkdir()
    (folder / "routes.toml").write_text(routes)
    binary = os.environ.get("IMORI_BIN", str(ROOT / "target/dist/imori"))
    command = [binary, "serve", "--data-dir", str(folder / "data"), "--log", "error"]
    command += ["--listen", f"http=127.0.0.1:{port}", "--listen", "stomp=127.0.0.1:0"]
    environment = {
        "IMORI__GATEWAY__ROUTES": str(folder / "routes.toml"),
        "IMORI__GATEWAY__WORKERS": "1",
        "IMORI__JOURNAL__FILE_BYTES": "20MiB",
    }
    return [(command, port, environment)]


def wrk(url: str, connections: int, seconds: int) -> tuple[float, float]:
    """Puts load on a URL; returns requests a second and the median latency in milliseconds."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "--timeout", "60s", url]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in told or "Socket errors" in told:
        sys.exit(f"{url} was not answered well:\n{told}")
    rate = re.search(r"Requests/sec:\s+([\d.]+)", told)
    median = re.search(r"50%\s+([\d.]+)(us|ms|s)", told)
    if rate is None or median is None:
        sys.exit(f"wrk said something else:\n{told}")
    unit = {"us": 0.001, "ms": 1.0, "s": 1000.0}[median[2]]
    return float(rate[1]), float(median[1]) * unit


def main() -> None:
    """Measures and prints a table."""
    assert __doc__
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write all figures into this file")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("install the load generator: apt-get install wrk")
    has_lua = shutil.which("nginx") is not None and (LUA_MODULES / "ngx_http_lua_module.so").exists()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        api, own, lua = free_port(), free_port(), free_port()
        for command, port, environment in [
            *gateway(folder / "api", API, api),
            *gateway(folder / "gateway", GATEWAY.replace("API", str(api)), own),
        ]:
            stack.enter_context(running(command, port, **environment))
        arms = {"async": own, "blocking": own}
        if has_lua:
            conf = folder / "nginx.conf"
            text = NGINX.replace("MODULES", str(LUA_MODULES)).replace("FOLDER", str(folder))
            conf.write_text(text.replace("API", str(api)).replace("PORT", str(lua)))
            stack.enter_context(running(["nginx", "-c", str(conf)], lua))
            arms["lua"] = lua
        figures: dict[str, list[float]] = {}

        def measure(name: str, port: int, path: str, connections: int) -> None:
            rate, median = wrk(f"http://127.0.0.1:{port}{path}", connections, options.seconds)
            figures.setdefault(name, []).append(rate)
            figures.setdefault(f"{name} p50 ms", []).append(median)

        for _ in range(options.rounds):
            for ms in (1, 5, 10, 45):
                for arm, port in arms.items():
                    path = f"/{'blocking' if arm == 'blocking' else 'async'}/{ms}"
                    measure(f"{ms} ms, 100 connections, {arm}", port, path, 100)
            for connections in (1, 10, 50, 100, 480):
                for arm in ("async", *(["lua"] if has_lua else [])):
                    name = f"10 ms, {connections} connections, {arm}"
                    if connections != 100:
                        measure(name, arms[arm], "/async/10", connections)
            measure("empty route", own, "/empty/route", 100)
            measure("empty script", own, "/empty/script", 100)
            measure("sleep 10 at the API, 1 connection", api, "/10", 1)
            if has_lua:
                measure("empty script of lua", lua, "/empty/script", 100)
    medians = {name: statistics.median(values) for name, values in figures.items()}
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    print("| what | requests a second | p50 in ms |\n|---|---|---|")
    for name, value in medians.items():
        if not name.endswith(" p50 ms"):
            print(f"| {name} | {value:,.0f} | {medians[f'{name} p50 ms']:.2f} |")
    print()
    for ms in (1, 5, 10, 45):
        waits, blocks = (medians[f"{ms} ms, 100 connections, {arm}"] for arm in ("async", "blocking"))
        print(f"API of {ms} ms: {waits / blocks:.1f} times the blocking arm", end="")
        print(f", {waits / medians[f'{ms} ms, 100 connections, lua']:.2f} times lua" if has_lua else "")
    for connections in (1, 10, 50, 100):
        rate = medians[f"10 ms, {connections} connections, async"]
        print(f"{connections} connections: efficiency {rate / (connections * 100):.1%}")


if __name__ == "__main__":
    main()
