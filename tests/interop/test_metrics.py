"""Prometheus exposition, and the admin listener's probes."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from harness.admin import ask
from harness.deadline import DEADLINE_S, wait_for
from harness.imori import Imori, running_imori
from harness.monitor import asked

DOCUMENT = Path(__file__).parents[2] / "docs/reference/metrics.md"

SAMPLE = re.compile(r"([a-z0-9_]+)(?:\{(.*)\})? (-?[0-9.e+-]+|NaN)")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')

Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


@pytest.fixture
def imori(tmp_path: Path) -> Iterator[Imori]:
    """A broker with an admin listener and a monitor, for STOMP and AMQP."""
    with running_imori(tmp_path, amqp=True, admin=True, monitor=True) as imori:
        yield imori
        assert imori.stop() == 0


def scraped(text: str) -> Samples:
    """Returns the samples by name and labels; a malformed line fails."""
    samples: Samples = {}
    for line in text.splitlines():
        if line.startswith("# "):
            continue
        found = SAMPLE.fullmatch(line)
        assert found is not None, line
        name, labels, value = found.groups()
        pairs = tuple((label, of) for label, of in LABEL.findall(labels or ""))
        assert ",".join(f'{label}="{of}"' for label, of in pairs) == (labels or ""), line
        assert pairs not in samples.setdefault(name, {}), f"{line} is there twice"
        samples[name][pairs] = float(value)
    return samples


def page(imori: Imori, path: str = "/metrics") -> str:
    """Returns a page of the admin listener after a login."""
    answer = ask(imori, path)
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return answer.body


def connect(imori: Imori, password: str = "guest") -> pika.BlockingConnection:
    """Opens an AMQP connection."""
    assert imori.amqp is not None
    host, port = imori.amqp
    credentials = pika.PlainCredentials("guest", password)
    return pika.BlockingConnection(pika.ConnectionParameters(host, port, credentials=credentials))


@pytest.fixture
def channel(imori: Imori) -> Iterator[BlockingChannel]:
    """A channel on a new AMQP connection."""
    with connect(imori) as connection:
        yield connection.channel()


def test_what_happens_is_counted_by_protocol(imori: Imori, channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.queue_declare("dead")
    channel.queue_declare("q", arguments=arguments)
    for body in [b"accepted", b"released", b"rejected", b"left"]:
        channel.basic_publish("", "q", body)
    channel.basic_publish("", "nowhere", b"lost")
    accepted, released, rejected = (channel.basic_get("q")[0] for _ in range(3))
    assert accepted is not None
    assert released is not None
    assert rejected is not None
    channel.basic_ack(accepted.delivery_tag)
    channel.basic_nack(rejected.delivery_tag, requeue=False)
    channel.basic_nack(released.delivery_tag, requeue=True)
    again, _, _ = channel.basic_get("q", auto_ack=True)
    assert again is not None
    assert again.redelivered
    assert channel.basic_get("dead", auto_ack=True)[0] is not None
    assert channel.basic_get("dead")[0] is None
    samples = scraped(page(imori))
    amqp = (("protocol", "amqp091"),)
    for name, expected in [
        ("rabbitmq_global_messages_received_total", 5),
        ("rabbitmq_global_messages_confirmed_total", 5),
        ("rabbitmq_global_messages_delivered_total", 5),
        ("rabbitmq_global_messages_delivered_get_manual_ack_total", 3),
        ("rabbitmq_global_messages_delivered_get_auto_ack_total", 2),
        ("rabbitmq_global_messages_delivered_consume_auto_ack_total", 0),
        ("rabbitmq_global_messages_get_empty_total", 1),
        ("rabbitmq_global_messages_redelivered_total", 1),
        ("rabbitmq_global_messages_acknowledged_total", 1),
        ("rabbitmq_connections_opened_total", 1),
        ("rabbitmq_channels_opened_total", 1),
    ]:
        assert samples[name][amqp] == expected, name
        assert samples[name][(("protocol", "stomp"),)] == 0, name
    for outcome, expected in [("accept", 1), ("release", 1), ("reject", 1)]:
        assert samples["imori_settled_total"][(*amqp, ("outcome", outcome))] == expected, outcome
    for name, expected in [
        ("rabbitmq_global_messages_dead_lettered_rejected_total", 1),
        ("rabbitmq_global_messages_dead_lettered_expired_total", 0),
        ("rabbitmq_global_messages_unroutable_dropped_total", 1),
        ("rabbitmq_queues_declared_total", 2),
        ("rabbitmq_queues_created_total", 2),
        ("rabbitmq_queues", 2),
        ("rabbitmq_queue_messages_ready", 1),
        ("rabbitmq_connections", 1),
        ("rabbitmq_channels", 1),
    ]:
        assert samples[name][()] == expected, name
    queue = (("vhost", "/"), ("queue", "q"))
    for name, expected in [
        ("queue_messages_ready", 1),
        ("queue_messages_ready_bytes", 4),
        ("queue_exchange_messages_published_total", 4),
        ("queue_get_ack_total", 3),
        ("queue_get_total", 1),
        ("queue_messages_redelivered_total", 1),
        ("queue_messages_acked_total", 1),
    ]:
        assert samples[f"rabbitmq_detailed_{name}"][queue] == expected, name
    waited = samples["imori_queue_wait_seconds_count"][()]
    assert waited >= 1, "the first message that waited is followed"
    stats = ask(imori, f"/api/queues/{quote('/', safe='')}/q").json()["message_stats"]
    for name, expected in [("publish", 4), ("get", 3), ("get_no_ack", 1), ("deliver_get", 4)]:
        assert stats[name] == expected, name
    assert (stats["redeliver"], stats["ack"], stats["deliver"]) == (1, 1, 0)
    assert stats["publish_details"] == {"rate": 0.0}, "nobody has asked before"
    # A closed connection's traffic still counts.
    with connect(imori) as other:
        other.channel().basic_publish("", "nowhere", b"lost")
    # The broker counts it once the connection is gone, which its client does not wait for.
    wait_for(lambda: scraped(page(imori))["rabbitmq_connections_closed_total"][amqp] == 1)
    gone = scraped(page(imori))
    assert gone["rabbitmq_connections_opened_total"][amqp] == 2
    assert gone["rabbitmq_global_messages_received_total"][amqp] == 6
    for name, of in samples.items():
        if name.startswith("rabbitmq_global_messages"):
            assert all(gone[name][labels] >= value for labels, value in of.items()), name


def test_expired_and_dropped_messages_are_counted(imori: Imori, channel: BlockingChannel) -> None:
    channel.queue_declare("short", arguments={"x-max-length": 1})
    channel.confirm_delivery()
    for body in [b"1", b"2", b"3"]:
        channel.basic_publish("", "short", body)
    channel.queue_declare("brief", arguments={"x-message-ttl": 0})
    channel.basic_publish("", "brief", b"gone")
    assert channel.basic_get("brief")[0] is None
    died = scraped(page(imori))["imori_messages_died_total"]
    assert died[(("reason", "maxlen"),)] == 2
    assert died[(("reason", "expired"),)] == 1


def test_logins_that_are_refused_are_counted(imori: Imori) -> None:
    assert ask(imori, "/api/whoami", login="guest:wrong").status == 401
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        connect(imori, "wrong")
    logins = scraped(page(imori))["imori_logins_total"]
    assert logins[(("protocol", "amqp091"), ("result", "refused"))] == 1
    assert logins[(("protocol", "http"), ("result", "refused"))] == 1
    assert logins[(("protocol", "http"), ("result", "granted"))] >= 1


def test_names_of_queues_begin_no_line_and_no_label(imori: Imori, channel: BlockingChannel) -> None:
    # SECURITY LIM-17, WEB-09.
    name = 'a"} 1 forged_total{x="'
    channel.queue_declare(name)
    samples = scraped(page(imori))
    escaped = name.replace('"', '\\"')
    labels = (("vhost", "/"), ("queue", escaped))
    assert samples["rabbitmq_detailed_queue_messages_ready"][labels] == 0


def test_the_busiest_queues_are_shown_and_all_on_request(
    imori: Imori, channel: BlockingChannel
) -> None:
    # SECURITY WEB-09: the number of series is limited.
    for number in range(200):
        channel.queue_declare(f"q{number}")
    channel.confirm_delivery()
    channel.basic_publish("", "q150", b"x")
    name = "rabbitmq_detailed_queue_messages"
    busiest = scraped(page(imori))[name]
    assert len(busiest) == 64
    assert busiest[(("vhost", "/"), ("queue", "q150"))] == 1
    path = "/metrics/detailed?family=queue_coarse_metrics&family=unknown"
    every = scraped(page(imori, path))
    assert len(every[name]) == 200
    assert "rabbitmq_detailed_queue_consumers" not in every
    assert scraped(page(imori, f"{path}&vhost={quote('/')}"))[name] == every[name]
    assert name not in scraped(page(imori, f"{path}&vhost=other"))
    nothing = scraped(page(imori, "/metrics/detailed"))
    assert list(nothing) == ["rabbitmq_identity_info"]


def test_the_document_lists_every_metric(imori: Imori, channel: BlockingChannel) -> None:
    channel.queue_declare("q")
    # A sample shows the labels of a metric.
    limited = ask(imori, "/api/vhost-limits/%2F/max-queues", method="PUT", body={"value": 100})
    assert limited.status == 204
    stream = {
        "name": "s",
        "vhost": "/",
        "configuration": {"name": "s", "subjects": ["s"]},
        "consumers": [{"durable_name": "c", "ack_policy": "explicit"}],
    }
    made = ask(imori, "/api/definitions", method="POST", body={"streams": [stream]})
    assert made.status == 204, made
    text = page(imori)
    samples = scraped(text)
    rows = []
    for name, help_text in re.findall(r"^# HELP (\S+) (.+)$", text, re.MULTILINE):
        (kind,) = re.findall(rf"^# TYPE {name} (\S+)$", text, re.MULTILINE)
        labels = next(iter(samples.get(name, {(): 0.0})))
        shown = "{" + ",".join(label for label, _ in labels) + "}" if labels else ""
        rows.append(f"| `{name}{shown}` | {kind} | {help_text} |")
    documented = [
        line
        for line in DOCUMENT.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| `(imori|rabbitmq|process)_\S+` \| (counter|gauge|histogram) \|", line)
    ]
    assert documented == rows


def test_the_monitor_gives_the_same_families(imori: Imori) -> None:
    families = [line for line in page(imori).splitlines() if line.startswith("# HELP")]
    status, body = asked(imori, "/metrics")
    assert status == 200
    assert [line for line in body.splitlines() if line.startswith("# HELP")] == families


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_reads_the_page(imori: Imori) -> None:
    text = page(imori)
    command = ["promtool", "check", "metrics"]
    checked = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    # RabbitMQ's names violate style rules, which are reported by status 3.
    assert checked.returncode in (0, 3), checked.stderr
    complaints = [line for line in checked.stderr.splitlines() if not line.startswith("rabbitmq_")]
    assert complaints == []


def test_metrics_need_a_login_and_probes_do_not(imori: Imori) -> None:
    # SECURITY WEB-01, WEB-09.
    for path in ["/metrics", "/metrics/detailed"]:
        assert ask(imori, path, login=None).status == 200, "Prometheus asks from this machine"
        assert ask(imori, path, login="guest:wrong").status == 401, path
    for path in ["/livez?verbose", "/readyz?verbose"]:
        assert ask(imori, path, login=None).status == 401, path
        assert ask(imori, path, login="guest:wrong").status == 401, path
        assert ask(imori, path).status == 200, path
    for path in ["/livez", "/readyz", "/readyz/", "/readyz?damage=1"]:
        answer = ask(imori, path, login=None)
        assert (answer.status, answer.body) == (200, "ok\n"), path
        assert ask(imori, path, login="guest:wrong").status == 401, "a wrong login is no guest"
    assert ask(imori, "/readyz?verbose").json() == {"status": "ok", "reasons": []}
