"""The admin listener serves clients of RabbitMQ's management API.

The first such client is the suite of amqp091-go, whose recovery tests find a connection by the name
set by its client, and close it.
"""

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest
import stomp

from harness.admin import ask, read, segment
from harness.deadline import DEADLINE_S, wait_for
from harness.imori import Imori, running_imori
from harness.nats.behaviour import IMORI
from harness.nats.broker import LAME_DUCK_SIGNAL, NatsBroker
from harness.nats.raw import RawNats

NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker with an admin listener, for STOMP and AMQP."""
    settings = {"broker.vhosts": '["/", "other"]'}
    folder = tmp_path_factory.mktemp("admin")
    with running_imori(folder, settings=settings, amqp=True, admin=True) as imori:
        yield imori
        assert imori.stop() == 0


def connect(imori: Imori, name: str | None = None, vhost: str = "/") -> pika.BlockingConnection:
    """Opens a pika connection with a name of its own."""
    assert imori.amqp is not None
    host, port = imori.amqp
    properties = {} if name is None else {"connection_name": name}
    parameters = pika.ConnectionParameters(
        host, port, virtual_host=vhost, client_properties=properties, socket_timeout=DEADLINE_S
    )
    return pika.BlockingConnection(parameters)


def named(imori: Imori, name: str) -> dict[str, Any]:
    """Returns the connection to which its client gave this name."""
    rows: list[dict[str, Any]] = read(imori, "/api/connections/")
    (row,) = [row for row in rows if row["client_properties"].get("connection_name") == name]
    return row


def test_a_connection_is_shown_as_its_client_made_it(imori: Imori) -> None:
    assert imori.amqp is not None
    with connect(imori, "shown", "other") as connection:
        channel = connection.channel()
        connection.channel()
        channel.queue_declare("", exclusive=True)
        row = named(imori, "shown")
        assert row["user_provided_name"] == "shown"
        assert row["name"] == f"127.0.0.1:{row['peer_port']} -> 127.0.0.1:{imori.amqp[1]}"
        expected = {
            "protocol": "AMQP 0-9-1",
            "type": "network",
            "user": "guest",
            "vhost": "other",
            "state": "running",
            "channels": 2,
            "auth_mechanism": "PLAIN",
            "ssl": False,
            "peer_host": "127.0.0.1",
            "port": imori.amqp[1],
        }
        assert expected.items() <= row.items()
        properties = row["client_properties"]
        assert properties["product"] == "Pika Python Client Library"
        assert properties["capabilities"]["publisher_confirms"] is True
        assert row["recv_oct"] > 0
        assert row["send_oct"] > 0
        assert row["connected_at"] / 1000 == pytest.approx(time.time(), abs=DEADLINE_S)
        one = read(imori, f"/api/connections/{segment(row['name'])}")
        assert one["name"] == row["name"]
        channels = read(imori, "/api/channels")
        numbers = [row["number"] for row in channels if row["vhost"] == "other"]
        assert numbers == [1, 2]


def test_a_stomp_connection_is_shown_too(imori: Imori) -> None:
    connection = stomp.Connection12([imori.addresses[0]])
    connection.connect("guest", "guest", wait=True)
    try:
        rows = [row for row in read(imori, "/api/connections") if row["protocol"] == "STOMP 1.2"]
        assert [(row["user"], row["vhost"], row["channels"]) for row in rows] == [("guest", "/", 0)]
    finally:
        connection.disconnect()


def test_a_nats_connection_is_shown_by_the_name_that_it_gives(tmp_path: Path) -> None:
    with running_imori(tmp_path, protocol="nats", admin=True) as imori:
        broker = NatsBroker(*imori.addresses[0], IMORI, imori.process, LAME_DUCK_SIGNAL)
        with RawNats(broker) as raw:
            login = {"user": "guest", "pass": "guest"}
            raw.login({"name": "reader", "lang": "go", "version": "1.2", **login})
            assert raw.until_pong() == b""
            (row,) = read(imori, "/api/connections")
            assert (row["protocol"], row["user_provided_name"]) == ("NATS", "reader")
            said = {"connection_name": "reader", "platform": "go", "version": "1.2"}
            assert row["client_properties"] == said
            path = f"/api/connections/{segment(row['name'])}"
            assert ask(imori, path, method="DELETE").status == 204
            # Clients reconnect if they lose a connection without an error.
            assert raw.until_closed() == b""


@pytest.mark.parametrize(
    ("headers", "reason"),
    [({}, "Closed via management plugin"), ({"X-Reason": "moved away"}, "moved away")],
)
def test_a_client_is_told_why_an_operator_closed_it(
    imori: Imori, headers: dict[str, str], reason: str
) -> None:
    connection = connect(imori, "closed")
    channel = connection.channel()
    path = f"/api/connections/{segment(named(imori, 'closed')['name'])}"
    answer = ask(imori, path, method="DELETE", headers=headers)
    assert (answer.status, answer.body) == (204, "")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        channel.queue_declare("after")
    assert closed.value.reply_code == 320
    assert closed.value.reply_text == f"CONNECTION_FORCED - {reason}"
    # It is gone once its client has also closed it.
    wait_for(lambda: ask(imori, path).status == 404, "the end of the connection")
    assert ask(imori, path, method="DELETE").json() == NOT_FOUND


def test_a_closed_stomp_client_is_told_too(imori: Imori) -> None:
    with socket.create_connection(imori.addresses[0], DEADLINE_S) as stream:
        stream.sendall(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
        assert stream.recv(4096).startswith(b"CONNECTED")
        host, port = stream.getsockname()
        name = f"{host}:{port} -> {host}:{imori.addresses[0][1]}"
        path = f"/api/connections/{segment(name)}"
        assert ask(imori, path, method="DELETE", headers={"X-Reason": "enough"}).status == 204
        said = b""
        while part := stream.recv(4096):
            said += part
    assert said.startswith(b"ERROR\n")
    assert b"message:Connection closed\n" in said
    assert b"enough" in said


def test_whoever_does_not_log_in_is_told_nothing(imori: Imori) -> None:
    for login in [None, "guest:wrong", "eve:guest", ":"]:
        answer = ask(imori, "/api/connections", login=login)
        assert answer.status == 401, login
        assert answer.headers["WWW-Authenticate"].startswith("Basic realm=")
        assert answer.json() == {"error": "not_authorized", "reason": "Not_Authorized"}
        for path in ["/api/nothing", "/nothing"]:
            answer = ask(imori, path, login=login)
            assert (answer.status, answer.json()) == (404, NOT_FOUND), (login, path)
    assert ask(imori, "/api/queues/%2F/none", method="DELETE", login=None).status == 401


def test_a_page_of_another_site_is_refused(imori: Imori) -> None:
    # SECURITY WEB-02
    assert ask(imori, "/api/overview", headers={"Host": "evil.example"}).status == 421


def test_no_page_of_another_origin_is_let_in(imori: Imori) -> None:
    # SECURITY WEB-03
    for method, status in [("GET", 200), ("OPTIONS", 405), ("POST", 403)]:
        answer = ask(
            imori, "/api/overview", method=method, headers={"Origin": "https://evil.example"}
        )
        names = {name.lower() for name in answer.headers}
        assert not [name for name in names if name.startswith("access-control-")]
        assert "set-cookie" not in names
        assert answer.status == status


def test_unknown_paths_and_methods_have_rabbitmqs_errors(imori: Imori) -> None:
    for path in ["/api/nothing", "/api/queues/none", "/api/queues/%2F/none", "/api/connections/x"]:
        answer = ask(imori, path)
        assert (answer.status, answer.json()) == (404, NOT_FOUND), path
    assert ask(imori, "/api/overview", method="DELETE").status == 405


def test_queues_are_shown_with_what_they_hold(imori: Imori) -> None:
    with connect(imori) as connection:
        channel = connection.channel()
        arguments = {"x-max-length": 100, "x-message-ttl": 60_000, "x-overflow": "reject-publish"}
        # It has no effect, but is shown.
        arguments["x-queue-mode"] = "lazy"
        channel.queue_declare("held", durable=True, arguments=arguments)
        for _ in range(5):
            channel.basic_publish("", "held", b"x")
        for _ in range(2):
            assert channel.basic_get("held")[0] is not None
        consumed = channel.basic_consume("held", lambda *_: None, auto_ack=False)
        channel.basic_cancel(consumed)
        row = read(imori, "/api/queues/%2F/held")
        expected = {
            "name": "held",
            "vhost": "/",
            "type": "classic",
            "state": "running",
            "durable": True,
            "auto_delete": False,
            "exclusive": False,
            "arguments": arguments,
            "consumers": 0,
            "messages": 5,
        }
        assert expected.items() <= row.items()
        assert row["messages_ready"] + row["messages_unacknowledged"] == 5
        assert row["messages_unacknowledged"] >= 2
        quorum = {"x-queue-type": "quorum"}
        channel.queue_declare("of-quorum", durable=True, arguments=quorum)
        row = read(imori, "/api/queues/%2F/of-quorum")
        assert row["type"] == "quorum"
        assert quorum.items() <= row["arguments"].items()
        names = [row["name"] for row in read(imori, "/api/queues/%2F")]
        assert names == sorted(names)
        assert "held" in names
        assert read(imori, "/api/queues/other") == []
        columns = "/api/queues?columns=name,messages&name=HEL"
        assert read(imori, columns) == [{"name": "held", "messages": 5}]


def test_queues_are_purged_and_deleted(imori: Imori) -> None:
    with connect(imori) as connection:
        channel = connection.channel()
        # A confirmed publish is in the queue before the operator asks.
        channel.confirm_delivery()
        channel.queue_declare("gone", durable=True)
        for _ in range(3):
            channel.basic_publish("", "gone", b"x")
        channel.basic_consume("gone", lambda *_: None)
        channel.basic_qos(0)
        channel.queue_declare("kept")
        channel.basic_publish("", "kept", b"x")
        path = "/api/queues/%2F/kept"
        refused = ask(imori, f"{path}?if-empty=true", method="DELETE")
        assert (refused.status, refused.json()["error"]) == (400, "bad_request")
        assert ask(imori, f"{path}/contents", method="DELETE").status == 204
        assert channel.queue_declare("kept", passive=True).method.message_count == 0
        assert ask(imori, f"{path}?if-empty=true&if-unused=true", method="DELETE").status == 204
        refused = ask(imori, "/api/queues/%2F/gone?if-unused=true", method="DELETE")
        assert (refused.status, refused.json()["error"]) == (400, "bad_request")
        assert ask(imori, "/api/queues/%2F/gone", method="DELETE").status == 204
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare("gone", passive=True)


def test_the_queue_of_a_connection_is_its_own(imori: Imori) -> None:
    with connect(imori) as connection:
        queue = connection.channel().queue_declare("", exclusive=True).method.queue
        path = f"/api/queues/%2F/{segment(queue)}"
        row = read(imori, path)
        assert (row["exclusive"], row["durable"]) == (True, False)
        assert " -> " in row["owner_pid_details"]["name"]
        refused = ask(imori, path, method="DELETE")
        assert refused.status == 400, refused
        assert read(imori, path)["name"] == queue


def test_exchanges_and_bindings_are_shown(imori: Imori) -> None:
    with connect(imori, vhost="other") as connection:
        channel = connection.channel()
        channel.exchange_declare("in", "headers", durable=True, auto_delete=True)
        channel.exchange_declare(
            "out", "fanout", internal=True, arguments={"alternate-exchange": "in"}
        )
        channel.queue_declare("bound")
        match = {"x-match": "any", "size": 3, "tags": ["a", "b"]}
        channel.queue_bind("bound", "in", "", match)
        channel.exchange_bind("out", "amq.topic", "a.*.#")
        assert read(imori, "/api/exchanges/other/out") == {
            "name": "out",
            "vhost": "other",
            "type": "fanout",
            "durable": False,
            "auto_delete": False,
            "internal": True,
            "arguments": {"alternate-exchange": "in"},
        }
        channel.exchange_declare(
            "late", "x-delayed-message", arguments={"x-delayed-type": "direct"}
        )
        late = read(imori, "/api/exchanges/other/late")
        assert (late["type"], late["arguments"]) == (
            "x-delayed-message",
            {"x-delayed-type": "direct"},
        )
        exchanges = {row["name"]: row["type"] for row in read(imori, "/api/exchanges/other")}
        assert exchanges[""] == "direct"
        assert exchanges["in"] == "headers"
        assert read(imori, "/api/exchanges/other/amq.default")["type"] == "direct"
        assert len(read(imori, "/api/exchanges")) == 2 * 6 + 3
        bindings = {
            (row["source"], row["destination_type"], row["destination"]): row
            for row in read(imori, "/api/bindings/other")
        }
        assert bindings["", "queue", "bound"]["routing_key"] == "bound"
        assert bindings["in", "queue", "bound"]["arguments"] == match
        assert bindings["amq.topic", "exchange", "out"]["routing_key"] == "a.*.#"
        assert len(bindings) == 3


def test_pages_have_rabbitmqs_shape(imori: Imori) -> None:
    with connect(imori, vhost="other") as connection:
        channel = connection.channel()
        for index in range(5):
            channel.queue_declare(f"page-{index}", exclusive=True)
        answer = read(imori, "/api/queues?name=page-&page=2&page_size=2&columns=name")
        total = len(read(imori, "/api/queues"))
        assert answer == {
            "filtered_count": 5,
            "item_count": 2,
            "items": [{"name": "page-2"}, {"name": "page-3"}],
            "page": 2,
            "page_count": 3,
            "page_size": 2,
            "total_count": total,
        }
        assert ask(imori, "/api/queues?name=page-&page=4&page_size=2").status == 400
        assert ask(imori, "/api/queues?page=1&page_size=501").status == 400


def test_the_broker_as_a_whole_is_shown(imori: Imori) -> None:
    assert imori.amqp is not None
    overview = read(imori, "/api/overview")
    assert overview["rabbitmq_version"].split(".")[0] == "4"
    assert overview["product_name"] == "Imori"
    assert {row["name"] for row in overview["exchange_types"]} >= {"direct", "topic"}
    listeners = {row["protocol"]: row["port"] for row in overview["listeners"]}
    assert listeners["amqp"] == imori.amqp[1]
    (node,) = read(imori, "/api/nodes")
    assert node["running"] is True
    assert node["name"] == overview["node"]
    assert node["mem_used"] > 1_000_000
    assert read(imori, f"/api/nodes/{segment(node['name'])}")["os_pid"] == str(imori.process.pid)
    assert [row["name"] for row in read(imori, "/api/vhosts")] == ["/", "other"]
    assert read(imori, "/api/vhosts/%2F")["name"] == "/"
    assert read(imori, "/api/whoami")["name"] == "operator"


def test_totals_count_what_queues_hold(imori: Imori) -> None:
    before = read(imori, "/api/overview")
    with connect(imori) as connection:
        channel = connection.channel()
        channel.queue_declare("counted", exclusive=True)
        for _ in range(3):
            channel.basic_publish("", "counted", b"x")
        channel.basic_get("counted")
        after = read(imori, "/api/overview")
    more = {
        name: after["queue_totals"][name] - before["queue_totals"][name]
        for name in ["messages", "messages_ready", "messages_unacknowledged"]
    }
    assert more == {"messages": 3, "messages_ready": 2, "messages_unacknowledged": 1}
    assert after["object_totals"]["channels"] - before["object_totals"]["channels"] == 1
    assert after["object_totals"]["queues"] - before["object_totals"]["queues"] == 1


def test_scripts_that_wait_for_it_are_told(imori: Imori) -> None:
    assert imori.amqp is not None
    node = read(imori, "/api/nodes")[0]["name"]
    for path in [
        "/api/healthchecks/node",
        f"/api/healthchecks/node/{segment(node)}",
        "/api/health/checks/alarms",
        "/api/health/checks/local-alarms",
        "/api/health/checks/virtual-hosts",
        "/api/aliveness-test/%2F",
    ]:
        assert read(imori, path) == {"status": "ok"}, path
    port = imori.amqp[1]
    path = f"/api/health/checks/port-listener/{port}"
    assert read(imori, path) == {"status": "ok", "port": port}
    failed = ask(imori, "/api/health/checks/port-listener/1")
    assert (failed.status, failed.json()["status"]) == (503, "failed")
    assert failed.json()["missing"] == 1
    assert read(imori, "/api/health/checks/protocol-listener/amqp")["status"] == "ok"
    assert ask(imori, "/api/health/checks/protocol-listener/mqtt").status == 503
    assert ask(imori, "/api/health/checks/port-listener/x").status == 400
    assert ask(imori, "/api/aliveness-test/none").status == 404


def test_clients_that_ask_and_do_not_read_hold_up_no_message(imori: Imori) -> None:
    assert imori.admin is not None
    request = b"GET /api/bindings HTTP/1.1\r\nHost: localhost\r\n"
    request += b"Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\r\n"
    flood = [socket.create_connection(imori.admin, DEADLINE_S) for _ in range(32)]
    stopped = threading.Event()

    def pour() -> None:
        while not stopped.is_set():
            for stream in flood:
                stream.setblocking(False)
                try:
                    stream.send(request * 20)
                except OSError:
                    continue

    pouring = threading.Thread(target=pour)
    pouring.start()
    try:
        with connect(imori) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("beside", exclusive=True)
            for index in range(200):
                channel.basic_publish("", "beside", str(index).encode())
                _, _, body = channel.basic_get("beside", auto_ack=True)
                assert body == str(index).encode()
    finally:
        stopped.set()
        pouring.join()
        for stream in flood:
            stream.close()


def test_a_list_of_thousands_is_whole(imori: Imori) -> None:
    count = 3000
    with connect(imori, vhost="other") as connection:
        channel = connection.channel()
        for index in range(count):
            channel.queue_declare(f"many-{index:05}", exclusive=True)
        answer = ask(imori, "/api/queues/other?columns=name&name=many-")
        names = [row["name"] for row in json.loads(answer.body)]
        assert names == [f"many-{index:05}" for index in range(count)]


@pytest.mark.skipif(shutil.which("rabbitmqadmin") is None, reason="rabbitmqadmin is not installed")
def test_rabbitmqadmin_lists_and_changes(imori: Imori) -> None:
    assert imori.admin is not None
    port = str(imori.admin[1])

    def run(*arguments: str) -> list[list[str]]:
        login = ["-u", "operator", "-p", imori.operator_password()]
        command = ["rabbitmqadmin", "-P", port, *login, "-V", "/", "-f", "tsv", *arguments]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert ended.returncode == 0, f"{arguments}: {ended.stdout} {ended.stderr}"
        return [line.split("\t") for line in ended.stdout.splitlines()]

    connection = connect(imori, "tool")
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("tool", durable=True, arguments={"x-max-length": 9})
    channel.basic_publish("", "tool", b"x")
    queues = run("list", "queues", "name", "messages", "durable", "arguments.x-max-length")
    assert ["tool", "1", "True", "9"] in queues
    for listed in ["queues", "exchanges", "bindings", "connections", "channels", "vhosts", "nodes"]:
        assert len(run("list", listed)) > 1, listed
    assert run("show", "overview")[1][0]
    assert run("purge", "queue", "name=tool") == [["queue purged"]]
    assert ["tool", "0"] in run("list", "queues", "name", "messages")
    assert run("delete", "queue", "name=tool") == [["queue deleted"]]
    names = {
        given: name for name, given in run("list", "connections", "name", "user_provided_name")
    }
    run("close", "connection", f"name={names['tool']}")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
        channel.queue_declare("after")


def test_a_queue_that_is_deleted_does_not_come_back(tmp_path: Path) -> None:
    for number in range(6):
        with running_imori(tmp_path, amqp=True, admin=True) as imori:
            with connect(imori) as connection:
                names = [row["name"] for row in read(imori, "/api/queues/%2F")]
                assert names == [], "the end of the broker before came right behind the answer"
                connection.channel().queue_declare(f"gone-{number}", durable=True)
            path = f"/api/queues/%2F/gone-{number}"
            assert ask(imori, path, method="DELETE").status == 204
            imori.process.kill()
