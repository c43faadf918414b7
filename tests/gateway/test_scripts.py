"""Scripts of a gateway: the phases of a request, what they wait for, and their limits."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pika
import pytest

from harness.admin import read
from harness.deadline import DEADLINE_S, wait_for
from harness.gateway import Answer, Gateway, StartGateway, running_gateway

ROUTES = r"""
[gateway]
user = "guest"

[scripts]
init = { code = '$greeting = "hello"' }
server_rewrite = { code = '''
r = Nginx::Request.new
r.uri = "/hello" if r.uri == "/old"
''' }

[[route]]
path = "/hello"
content = { code = 'Nginx.rputs "#{$greeting} #{Nginx::Var.new.arg_name}"' }

[[route]]
path = "/sleep"
content = { code = '''
Imori.shared.increment "asleep"
Nginx::Async.sleep 10 until Imori.shared["asleep"].to_i >= Nginx::Var.new.arg_of.to_i
Nginx.rputs "slept"
''' }

[[route]]
path = "/sub"
content = { code = '''
Nginx::Async::HTTP.sub_request "/inner", "name=ruby"
res = Nginx::Async::HTTP.last_response
Nginx.rputs "#{res.status} #{res.body}"
''' }

[[route]]
path = "/inner"
internal = true
content = { code = 'Nginx.rputs "inner #{Nginx::Request.new.args}"' }

[[route]]
path = "/members"
access = { code = 'Nginx.return 403 unless Nginx::Headers_in.new["X-Key"] == "k"' }
return = { status = 200, body = "in" }

[[route]]
path = "/redirected"
rewrite = { code = 'Nginx.redirect "/hello?name=again"' }
return = { status = 500 }

[[route]]
path = "/away"
content = { code = 'Nginx.redirect "https://example.com/", 307' }

[[route]]
path = "/filtered"
return = { status = 200, body = "quiet" }
header_filter = { code = 'Nginx::Headers_out.new["X-Filtered"] = "yes"' }
body_filter = { code = 'f = Nginx::Filter.new; f.body = f.body.upcase + "!"' }

[[route]]
path = "/fails"
content = { code = '''
Nginx::Async.sleep 1
raise "no luck"
''' }

[[route]]
path = "/loop"
content = { code = 'loop {}' }

[[route]]
path = "/stubborn"
content = { code = '''
loop do
  begin
    loop {}
  rescue Exception
  end
end
''' }

[[route]]
path = "/greedy"
content = { code = '"x" * 2_000_000_000' }

[[route]]
path = "/deep"
content = { code = '''
def deep(n) = deep(n + 1)
deep 0
''' }

[[route]]
path = "/body"
content = { code = 'Nginx.rputs Nginx::Request.new.get_body.reverse' }

[[route]]
path = "/publish"
content = { code = '''
receipt = Imori.publish Nginx::Request.new.get_body, queue: "scripted", persistent: true
Imori.json({ receivers: receipt.receivers, level: receipt.level.to_s })
''' }

[[route]]
path = "/take"
content = { code = '''
message = Imori.get "scripted"
if message
  message.ack
  Nginx.rputs message.body
else
  Nginx.return Nginx::HTTP_NO_CONTENT
end
''' }

[[route]]
path = "/events"
content = { code = '''
3.times do |n|
  Imori::SSE.push "tick #{n}"
  Nginx::Async.sleep 20
end
''' }

[[route]]
path = "/count"
content = { code = 'Nginx.rputs Imori.shared.increment("hits").to_s' }

[[route]]
path = "/proxied"
variables = { backend = "127.0.0.1:1" }
rewrite = { code = 'Nginx::Var.new.set "backend", "#{Nginx::Var.new.arg_to}"' }
proxy = { to = "http://{$backend}/inner" }

[[route]]
path = "/injected"
content = { code = 'Nginx::Headers_out.new["X-A"] = "a\r\nX-B: b"' }

[[route]]
path = "/ensured"
content = { code = '''
begin
  Imori.shared.increment "begun"
  Nginx::Async.sleep 10 while true
ensure
  Imori.shared.increment "ensured"
end
''' }

[[route]]
path = "/ensured/count"
content = { code = 'Nginx.rputs "#{Imori.shared["begun"].to_i} #{Imori.shared["ensured"].to_i}"' }

[[route]]
path = "/logged"
return = { status = 201, body = "12345" }
log = { code = '''
v = Nginx::Var.new
Nginx.log Nginx::LOG_WARN, "seen #{v.status} #{v.body_bytes_sent}"
''' }

[[route]]
path = "/set/{name}"
set = [{ variable = "shout", code = 'Nginx::Var.new.name.upcase + "?"' }]
return = { status = 200, body = "{$shout}" }
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("scripts")
    settings = {"users.guest": "always", "gateway.workers": 1}
    with running_gateway(folder, ROUTES, settings=settings, amqp=True, admin=True) as gateway:
        yield gateway


def test_a_script_makes_the_response(gateway: Gateway) -> None:
    answer = gateway.ask("GET", "/hello?name=tea")
    assert (answer.status, answer.body) == (200, b"hello tea")
    assert gateway.ask("GET", "/old?name=x").body == b"hello x"
    assert gateway.ask("POST", "/body", b"stressed").body == b"desserts"


def test_sleeping_scripts_hold_up_nobody(gateway: Gateway) -> None:
    # Each of them sleeps until all of them do.
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: gateway.ask("GET", "/sleep?of=50").body, range(50)))
    assert answers == [b"slept"] * 50


def test_a_script_asks_another_route(gateway: Gateway) -> None:
    assert gateway.ask("GET", "/sub").body == b"200 inner name=ruby"
    assert gateway.ask("GET", "/inner").status == 404, "it is for scripts alone"


def test_phases_decide(gateway: Gateway) -> None:
    assert gateway.ask("GET", "/members").status == 403
    assert gateway.ask("GET", "/members", headers={"X-Key": "k"}).body == b"in"
    assert gateway.ask("GET", "/redirected").body == b"hello again"
    away = gateway.ask("GET", "/away")
    assert (away.status, away.headers["location"]) == (307, "https://example.com/")
    filtered = gateway.ask("GET", "/filtered")
    assert (filtered.body, filtered.headers["x-filtered"]) == (b"QUIET!", "yes")
    assert gateway.ask("GET", "/set/tea").body == b"TEA?"


def test_a_failure_is_told_to_the_log_and_not_to_the_client(gateway: Gateway) -> None:
    # SECURITY GATE-08.
    for _ in range(3):
        answer = gateway.ask("GET", "/fails")
        assert answer.status == 500
        assert b"no luck" not in answer.body
        assert gateway.ask("GET", "/hello").status == 200
    lines = [line for line in gateway.imori.log_lines() if "no luck" in line]
    assert lines
    assert "routes.toml:" in lines[0]


def test_operators_see_a_failure_once_with_its_line_and_how_often_it_came(
    gateway: Gateway,
) -> None:
    def shown() -> list[dict[str, Any]]:
        faults = read(gateway.imori, "/v1/gateway")["script_faults"]
        return [fault for fault in faults if "no luck" in fault["message"]]

    gateway.ask("GET", "/fails")
    (before,) = shown()
    for _ in range(3):
        gateway.ask("GET", "/fails")
    (after,) = shown()
    assert after["count"] == before["count"] + 3
    assert after["last"] >= before["last"]
    assert after["phase"] == "content"
    assert "routes.toml:" in after["place"]


@pytest.mark.parametrize("path", ["/loop", "/greedy", "/deep"])
def test_what_a_script_may_not_take(gateway: Gateway, path: str) -> None:
    # SECURITY GATE-07.
    assert gateway.ask("GET", path).status == 500
    assert gateway.ask("GET", "/hello").body == b"hello "


def test_a_script_that_swallows_its_limit_loses_its_vm(gateway: Gateway) -> None:
    # SECURITY GATE-07.
    assert gateway.ask("GET", "/stubborn").status == 503
    wait_for(lambda: gateway.ask("GET", "/hello").body == b"hello ")


def test_scripts_send_and_take_messages(gateway: Gateway) -> None:
    assert gateway.imori.amqp is not None
    host, port = gateway.imori.amqp
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port))
    connection.channel().queue_declare("scripted", durable=True)
    assert gateway.ask("POST", "/publish", b"tea").json == {"receivers": 1, "level": "disk"}
    assert gateway.ask("GET", "/take").body == b"tea"
    assert gateway.ask("GET", "/take").status == 204
    connection.close()


def test_a_script_streams_events(gateway: Gateway) -> None:
    answer = gateway.ask("GET", "/events")
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.body == b"data: tick 0\n\ndata: tick 1\n\ndata: tick 2\n\n"


def test_a_counter_counts(gateway: Gateway) -> None:
    first = int(gateway.ask("GET", "/count").body)
    assert int(gateway.ask("GET", "/count").body) == first + 1


def test_a_header_cannot_be_injected(gateway: Gateway) -> None:
    # SECURITY GATE-08.
    answer = gateway.ask("GET", "/injected")
    assert answer.status == 500
    assert "x-b" not in answer.headers


def test_a_client_that_leaves_ends_its_script(gateway: Gateway) -> None:
    def counts() -> list[int]:
        return [int(count) for count in gateway.ask("GET", "/ensured/count").body.split()]

    begun, ended = counts()
    with socket.create_connection(gateway.address) as client:
        client.sendall(b"GET /ensured HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(lambda: counts() == [begun + 1, ended], "the script")
    wait_for(lambda: counts() == [begun + 1, ended + 1], "the end of the script")


def test_a_script_runs_after_the_response(gateway: Gateway) -> None:
    assert gateway.ask("GET", "/logged").status == 201
    wait_for(lambda: any("seen 201 5" in line for line in gateway.imori.log_lines()))


def test_a_script_that_is_no_ruby_is_refused_by_line_and_column(tmp_path: Path) -> None:
    routes = "[[route]]\npath = '/'\ncontent = { code = '''\nif\n''' }\n"
    with pytest.raises(AssertionError), running_gateway(tmp_path, routes):
        pass
    assert "routes.toml:5: column 0" in (tmp_path / "imori.log").read_text() or (
        "routes.toml:5: " in (tmp_path / "imori.log").read_text()
    )


def test_a_script_is_read_again_while_requests_run(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    script = tmp_path / "hello.rb"
    script.write_text("Nginx::Async.sleep 5; Nginx.rputs 'old'")
    gateway = start_gateway("[[route]]\npath = '/'\ncontent = { file = 'hello.rb' }\n")
    stop = threading.Event()
    answers: list[Answer] = []

    def ask() -> None:
        while not stop.is_set():
            answers.append(gateway.ask("GET", "/"))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    script.write_text("Nginx.rputs 'broken' if")
    wait_for(lambda: any("hello.rb:1" in line for line in gateway.imori.log_lines()))
    script.write_text("Nginx.rputs 'new'")
    wait_for(lambda: answers[-1].body == b"new")
    stop.set()
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers} == {200}
    assert {answer.body for answer in answers} == {b"old", b"new"}


@contextmanager
def running_redis() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:

        def is_ready() -> bool:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except OSError:
                return False
            return True

        wait_for(is_ready)
        yield port
    finally:
        process.terminate()
        process.wait()


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="Redis is not installed")
def test_maintenance_by_a_key_of_redis(start_gateway: StartGateway) -> None:
    with running_redis() as port:
        gateway = start_gateway(f"""
[scripts]
allow_hosts = ["127.0.0.1:{port}"]

[[route]]
path = "/"
access = {{ code = '''
redis = Redis.new "127.0.0.1", {port}
Nginx.return Nginx::HTTP_SERVICE_UNAVAILABLE if redis.get("maintenance") == "on"
''' }}
return = {{ status = 200, body = "up" }}

[[route]]
path = "/{{state}}"
content = {{ code = '''
redis = Redis.new "127.0.0.1", {port}
redis.set "maintenance", Nginx::Var.new.state
Nginx.rputs redis.get("maintenance")
''' }}
""")
        assert gateway.ask("GET", "/").body == b"up"
        assert gateway.ask("GET", "/on").body == b"on"
        assert gateway.ask("GET", "/").status == 503
        assert gateway.ask("GET", "/off").body == b"off"
        assert gateway.ask("GET", "/").body == b"up"


def test_a_script_connects_nowhere_unless_it_may(start_gateway: StartGateway) -> None:
    # SECURITY GATE-09.
    gateway = start_gateway("""
[[route]]
path = "/"
content = { code = '''
begin
  Imori::HTTP.get "http://127.0.0.1:1/"
rescue Imori::Error => e
  Nginx.rputs "#{e.class}"
end
''' }
""")
    assert gateway.ask("GET", "/").body == b"Imori::HostError"


def test_a_script_chooses_the_upstream(start_gateway: StartGateway, gateway: Gateway) -> None:
    host, port = gateway.address
    other = start_gateway("""
[[route]]
path = "/hello"
set = [{ variable = "backend", code = 'Nginx::Var.new.arg_to' }]
proxy = { to = "http://{$backend}" }
""")
    assert other.ask("GET", f"/hello?to={host}:{port}&name=x").body == b"hello x"
    assert other.ask("GET", "/hello?to=").status == 502
    connection = HTTPConnection(*other.address, timeout=DEADLINE_S)
    connection.request("GET", f"/hello?to={host}:{port}")
    assert connection.getresponse().read() == b"hello "
    connection.request("GET", "/hello?to=127.0.0.1:1")
    assert connection.getresponse().status == 502
    connection.close()
