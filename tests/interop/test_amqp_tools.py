"""The command line's own AMQP 0-9-1 clients, together with pika and other protocols."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pika
import pytest

from harness.deadline import DEADLINE_S
from harness.imori import BINARY, Imori, running_imori


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for STOMP, NATS and AMQP."""
    with running_imori(tmp_path_factory.mktemp("tools"), amqp=True, nats=True) as imori:
        yield imori
        assert imori.stop() == 0


def url(imori: Imori, login: str = "", vhost: str = "") -> str:
    assert imori.amqp is not None
    host, port = imori.amqp
    return f"amqp://{login}{host}:{port}{vhost}"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=DEADLINE_S)


@contextmanager
def pika_channel(imori: Imori) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    assert imori.amqp is not None
    host, port = imori.amqp
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        yield connection.channel()


def test_what_pub_sends_pika_gets(imori: Imori) -> None:
    headers = ["--header", "type:order", "--header", "colour:blue", "--header", "persistent:true"]
    sent = run("pub", "--url", url(imori), "/queue/from.pub", "hello", *headers)
    assert (sent.returncode, sent.stderr) == (0, "")
    with pika_channel(imori) as channel:
        method, properties, body = channel.basic_get("from.pub", auto_ack=True)
    assert method is not None
    assert properties is not None
    assert (body, properties.type, properties.delivery_mode) == (b"hello", "order", 2)
    assert properties.headers == {"colour": "blue"}


def test_what_pika_sends_sub_prints(imori: Imori) -> None:
    headers = {"depth": 3, "tags": ["a", {"b": True}]}
    with pika_channel(imori) as channel:
        channel.queue_declare("to.sub", durable=True)
        properties = pika.BasicProperties(headers=headers, correlation_id="7")
        channel.basic_publish("", "to.sub", b"x" * 300_000, properties)
        channel.basic_publish("", "to.sub", b"second")
    first = run(
        "sub",
        "--url",
        url(imori),
        "to.sub",
        "--count",
        "1",
        "--headers",
        "--ack",
        "client-individual",
    )
    lines = first.stdout.split("\n")
    assert lines[lines.index("") + 1] == "x" * 300_000
    assert {"routing-key:to.sub", "correlation-id:7", "depth:3", "tags:[a, {b: true}]"} <= set(
        lines
    )
    # Only the first was acknowledged, so the second is still there.
    second = run("sub", "--url", url(imori), "to.sub", "--count", "1", "--timeout", "5s")
    assert (second.returncode, second.stdout) == (0, "second\n")


@pytest.mark.parametrize("asker", ["amqp", "stomp"])
def test_a_call_is_answered_over_amqp(imori: Imori, asker: str) -> None:
    queue = f"/queue/inc.{asker}"
    with subprocess.Popen(
        [BINARY, "respond", "--url", url(imori), queue, "--add-one", "--count", "2"]
    ):
        host, port = imori.addresses[0]
        broker = url(imori) if asker == "amqp" else f"stomp://{host}:{port}"
        answered = run("call", "--url", broker, queue, "41")
        refused = run("call", "--url", broker, queue, "many")
    assert (answered.returncode, answered.stdout) == (0, "42\n")
    assert (refused.returncode, "not a decimal number" in refused.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pub", "/temp-queue/x", "y"], "is no address; write `/queue/NAME`"),
        (
            ["pub", "a", "b", "--header", "priority:high"],
            "`high` is no number for the property `priority`",
        ),
        (["call", "/topic/nobody.here", "1"], "no queue gets the message (312 NO_ROUTE)"),
        (["call", "/exchange/none/k", "1"], "NOT_FOUND - no exchange 'none' in vhost '/'"),
        (
            ["sub", "q", "--header", "colour:blue"],
            "`colour` is no argument of a queue or a consumer",
        ),
        (["sub", "q", "--header", "prefetch-count:many"], "`many` is no prefetch count"),
    ],
)
def test_one_sentence_says_what_is_wrong(imori: Imori, arguments: list[str], said: str) -> None:
    done = run(*arguments, "--url", url(imori))
    assert done.returncode == 1
    assert done.stderr.startswith("imori: ")
    assert said in done.stderr


def test_a_login_that_is_refused_is_told(imori: Imori) -> None:
    for broker, said in [
        (url(imori, "guest:wrong@"), "ACCESS_REFUSED"),
        (url(imori, vhost="/nowhere"), "vhost nowhere not found"),
        (f"amqp://127.0.0.1:{imori.addresses[0][1]}", "does not speak AMQP 0-9-1"),
    ]:
        done = run("pub", "a", "b", "--url", broker)
        assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    wrong = run("bench", "rpc", "--time", "100ms", "--url", url(imori, "guest:wrong@"))
    assert (wrong.returncode, "ACCESS_REFUSED" in wrong.stderr) == (1, True), wrong.stderr


@pytest.mark.parametrize(
    "scenario",
    [
        "rpc --depth 8",
        "rpc --reply named --requesters 3",
        "rpc --size 300000",
        "pubsub --closed --publishers 2",
        "fan-out --closed",
        "queue --rate 500",
        "queue --closed --confirm 50 --ack client --level disk --destination durable",
        "queue --closed --confirm 5 --size 300000 --ack client-individual --prefetch 10",
        "queue --closed --priorities 5 --level os --destination urgent",
        "queue --closed --expiration 10s --destination expiring",
    ],
)
def test_bench_checks_every_delivery(imori: Imori, tmp_path: Path, scenario: str) -> None:
    result = tmp_path / "result.json"
    limits = ["--time", "300ms", "--warmup", "0", "--json", str(result)]
    done = run("bench", *scenario.split(), *limits, "--url", url(imori))
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = json.loads(result.read_text())["ledger"]
    assert ledger["good"] == ledger["sent"] or scenario.startswith("fan-out")
    assert ledger["good"] > 0
    assert [
        ledger[wrong] for wrong in ("lost", "duplicated", "altered", "reordered", "foreign")
    ] == [0] * 5


def test_bench_fills_and_drains_a_queue(imori: Imori) -> None:
    messages = ["--messages", "5000", "--size", "64", "--destination", "filled"]
    done = run(
        "bench", "queue", "--closed", "--phase", "fill-drain", *messages, "--url", url(imori)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sent 5000  good 5000  lost 0" in done.stdout
