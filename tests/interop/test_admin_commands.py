"""`imori queue` and `imori connection`: an operator's work on the command line."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pika
import pika.exceptions
import pytest

from harness.deadline import DEADLINE_S
from harness.imori import BINARY, Imori, running_imori


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for AMQP and operators."""
    with running_imori(tmp_path_factory.mktemp("operator"), amqp=True, admin=True) as imori:
        yield imori
        assert imori.stop() == 0


@contextmanager
def channel_of(imori: Imori) -> Iterator[Any]:
    assert imori.amqp is not None
    host, port = imori.amqp
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        yield connection.channel()


def run(imori: Imori, *arguments: str, login: str = "") -> tuple[int, str, str]:
    """Runs a command; returns its exit code and its output."""
    assert imori.admin is not None
    host, port = imori.admin
    command = [BINARY, *arguments, "--admin", f"http://{login}{host}:{port}"]
    command += ["--data-dir", str(imori.log.parent / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    return done.returncode, done.stdout, done.stderr


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_queues_are_listed_shown_purged_and_deleted(imori: Imori) -> None:
    with channel_of(imori) as channel:
        channel.queue_declare("orders", durable=True, arguments={"x-max-length": 9})
        channel.queue_declare("invoices/2026")
        for _ in range(3):
            channel.basic_publish("", "orders", b"x")
        channel.basic_get("orders")
        code, listed, _ = run(imori, "queue", "ls", "orde")
        assert (code, table(listed)[1:]) == (
            0,
            [["/", "orders", "2", "1", "0", "true", "classic"]],
        )
        code, shown, _ = run(imori, "queue", "show", "orders", "--json")
        assert (code, json.loads(shown)["arguments"]) == (0, {"x-max-length": 9})
        code, shown, _ = run(imori, "queue", "show", "invoices/2026")
        kind = "queue `invoices/2026` in vhost `/`: transient, classic"
        assert (code, shown.splitlines()[0]) == (0, kind)
        assert run(imori, "queue", "delete", "orders", "--if-empty")[0] == 1
        assert run(imori, "queue", "purge", "orders")[0] == 0
        assert run(imori, "queue", "ls", "orde", "--vhost", "/")[1].split()[9] == "0"
    assert run(imori, "queue", "delete", "orders")[:2] == (
        0,
        "queue `orders` in vhost `/` is deleted\n",
    )
    code, _, said = run(imori, "queue", "delete", "orders")
    assert (code, said) == (1, "imori: there is no queue `orders` in vhost `/`\n")


def test_a_command_finds_the_broker_of_a_data_folder(imori: Imori) -> None:
    # SECURITY ROOM-14.
    command = [BINARY, "queue", "ls", "--data-dir", str(imori.log.parent / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_operators_password_goes_to_no_other_broker(imori: Imori) -> None:
    # SECURITY ROOM-14.
    assert imori.admin is not None
    host, port = imori.admin
    asked: list[str | None] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers["Authorization"])
            self.send_error(401)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with HTTPServer(("127.0.0.1", 0), Other) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{other.server_port}"
        command = [BINARY, "queue", "ls", "--data-dir", str(imori.log.parent / "data")]
        command += ["--admin", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
        other.shutdown()
    assert done.returncode == 1
    assert asked == [None]
    told = f"speaking to `{address}`, which `--admin` names, and not to `http://{host}:{port}` of"
    assert told in done.stderr


def test_a_queue_is_shown_to_a_person_with_the_reason_for_its_length(imori: Imori) -> None:
    assert run(imori, "why", "stuck")[::2] == (1, "imori: there is no queue `stuck`\n")
    with channel_of(imori) as channel:
        channel.queue_declare("stuck", durable=True, arguments={"x-max-length": 1000})
        for _ in range(3):
            channel.basic_publish("", "stuck", b"x" * 1000)
        channel.queue_declare("stuck", passive=True)
        code, why, _ = run(imori, "why", "stuck")
        assert code == 0
        assert why.startswith("3 messages wait, the oldest for ")
        assert why.endswith("It has no consumer.\n")
        channel.basic_qos(prefetch_count=2)
        channel.basic_consume("stuck", lambda *_: None, auto_ack=False)
        channel.connection.process_data_events(0.1)
        why = json.loads(run(imori, "why", "stuck", "--json")[1])["why"]
        assert "1 message waits" in why
        assert "Its consumer has no credit until deliveries are settled: 2 are unsettled" in why
        code, shown, _ = run(imori, "queue", "show", "stuck")
        lines = shown.splitlines()
        assert (code, lines[0]) == (0, "queue `stuck` in vhost `/`: durable, classic")
        figures = dict(line.split(maxsplit=1) for line in lines[2:11])
        assert figures["ready"] == "1, 1000 B"
        assert figures["unsettled"] == "2"
        assert figures["in"].endswith("3 since the broker started")
        assert ["argument", "x-max-length=1000"] in table(shown)
        consumer = next(line.split() for line in lines if line.startswith("CONSUMER"))
        assert consumer == ["CONSUMER", "CONNECTION", "USER", "SETTLES", "PREFETCH", "CREDIT"]
        assert "Its consumer has no credit" in lines[-1]
        listed = table(run(imori, "consumer", "ls", "stuck")[1])
        assert listed[1][-3:] == ["true", "2", "0"]
        connection = json.loads(run(imori, "consumer", "ls", "stuck", "--json")[1])[0]["connection"]
        code, shown, _ = run(imori, "connection", "show", connection)
        assert code == 0
        assert f"name              {connection}" in shown.splitlines()
        assert "waits to be sent  nothing" in shown.splitlines()
        assert "CONSUMER" in shown


def test_a_connection_is_listed_and_closed(imori: Imori) -> None:
    properties = {"connection_name": "stuck worker"}
    assert imori.amqp is not None
    host, port = imori.amqp
    parameters = pika.ConnectionParameters(host, port, client_properties=properties)
    client = pika.BlockingConnection(parameters)
    rows = json.loads(run(imori, "connection", "ls", "--json")[1])
    [name] = [row["name"] for row in rows if row["user_provided_name"] == "stuck worker"]
    assert "stuck worker" in run(imori, "connection", "ls")[1]
    code, said, _ = run(imori, "connection", "close", name, "--reason", "it is stuck")
    assert (code, said) == (0, f"connection `{name}` is closed\n")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        client.process_data_events(time_limit=DEADLINE_S)
    assert closed.value.reply_code == 320
    assert "it is stuck" in closed.value.reply_text
    code, _, said = run(imori, "connection", "show", name)
    assert (code, said) == (1, f"imori: there is no connection `{name}`\n")


def test_routes_and_the_broker_at_a_glance_are_shown(imori: Imori) -> None:
    with channel_of(imori) as channel:
        channel.exchange_declare("routes", "topic", durable=True)
        channel.queue_declare("routed", durable=True)
        channel.queue_bind("routed", "routes", "a.#")
    code, listed, _ = run(imori, "exchange", "ls", "--vhost", "/")
    assert code == 0
    assert ["/", "routes", "topic", "true", "false", "{}"] in table(listed)
    code, listed, _ = run(imori, "binding", "ls")
    assert code == 0
    assert ["/", "routes", "a.#", "queue", "routed", "{}"] in table(listed)
    code, _, said = run(imori, "binding", "ls", "--vhost", "nowhere")
    assert (code, said) == (1, "imori: there is no vhost `nowhere`\n")
    code, shown, _ = run(imori, "status")
    assert code == 0
    fields = dict(line.split(": ", 1) for line in shown.splitlines())
    assert int(fields["queues"]) >= 1
    assert "amqp 127.0.0.1:" in fields["listeners"]


def test_queues_exchanges_and_bindings_are_declared_and_deleted(imori: Imori) -> None:
    def said(*arguments: str) -> tuple[int, str]:
        code, out, error = run(imori, *arguments)
        return code, out + error

    declare = ("queue", "declare", "made", "x-max-length=9", "x-overflow=reject-publish")
    for _ in range(2):
        assert said(*declare) == (0, "queue `made` in vhost `/` is declared\n")
    shown = json.loads(run(imori, "queue", "show", "made", "--json")[1])
    assert shown["arguments"] == {"x-max-length": 9, "x-overflow": "reject-publish"}
    assert (shown["durable"], shown["auto_delete"]) == (True, False)
    code, why = said("queue", "declare", "made", "x-max-length=10")
    assert (code, "x-max-length" in why) == (1, True)
    assert said("queue", "declare", "made", "x-max-length=1", "x-max-length=2") == (
        1,
        "imori: `x-max-length` is given twice; give it once\n",
    )
    assert run(imori, "queue", "declare", "brief", "--transient", "--auto-delete")[0] == 0
    shown = json.loads(run(imori, "queue", "show", "brief", "--json")[1])
    assert (shown["durable"], shown["auto_delete"]) == (False, True)

    assert said("exchange", "declare", "made", "--type", "topic", "--internal") == (
        0,
        "exchange `made` in vhost `/` is declared\n",
    )
    shown = json.loads(run(imori, "exchange", "show", "made", "--json")[1])
    assert (shown["type"], shown["internal"], shown["durable"]) == ("topic", True, True)
    assert said("exchange", "declare", "made", "--type", "sideways")[0] == 1

    ends = ("made", "made", "--routing-key", "a.#")
    which = "binding of queue `made` to exchange `made` in vhost `/`"
    assert said("binding", "add", *ends) == (0, f"{which} is added\n")
    assert ["/", "made", "a.#", "queue", "made", "{}"] in table(run(imori, "binding", "ls")[1])
    assert run(imori, "exchange", "delete", "made", "--if-unused")[0] == 1
    assert said("binding", "delete", *ends) == (0, f"{which} is deleted\n")
    assert ["/", "made", "a.#", "queue", "made", "{}"] not in table(run(imori, "binding", "ls")[1])
    assert run(imori, "exchange", "declare", "behind")[0] == 0
    assert run(imori, "binding", "add", "made", "behind", "--to-exchange", "x=1")[0] == 0
    assert ["/", "made", "exchange", "behind", '{"x":1}'] in table(run(imori, "binding", "ls")[1])
    why = "imori: there is no queue `nowhere`\n"
    assert said("binding", "add", "made", "nowhere") == (1, why)
    assert said("exchange", "delete", "made") == (0, "exchange `made` in vhost `/` is deleted\n")
    assert said("exchange", "show", "made") == (1, "imori: there is no exchange `made`\n")


def test_one_sentence_says_what_is_wrong(imori: Imori) -> None:
    code, _, said = run(imori, "queue", "ls", login="guest:wrong@")
    assert (code, "refuses the login, or the user may not do this; correct `--admin`" in said) == (
        1,
        True,
    )
    command = [BINARY, "queue", "ls", "--admin", "http://guest:guest@127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 1
    assert "no admin listener answers at `http://127.0.0.1:1`; start the broker" in done.stderr
    assert "guest" not in done.stderr
