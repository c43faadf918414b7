"""Publishes with a sampled trace become spans that an OpenTelemetry collector accepts."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pika
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from harness.admin import ask
from harness.deadline import DEADLINE_S
from harness.http_server import serving
from harness.imori import Imori, running_imori

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SENDER = "00f067aa0ba902b7"
SAMPLED = f"00-{TRACE}-{SENDER}-01"
NOT_SAMPLED = f"00-{TRACE}-{SENDER}-00"


class Collector:
    """A collector, with the spans that it received."""

    def __init__(self) -> None:
        self.spans: Queue[dict[str, Any]] = Queue()
        self.requests: Queue[int] = Queue()
        self.status = 200

    def span(self) -> dict[str, Any]:
        return self.spans.get(timeout=DEADLINE_S)


@contextmanager
def collecting() -> Iterator[tuple[Collector, str]]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/json")
            # Every name and type belongs to the protocol.
            json_format.ParseDict(body, ExportTraceServiceRequest())
            collector.requests.put(collector.status)
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            if collector.status == 200:
                for resource in body["resourceSpans"]:
                    for scope in resource["scopeSpans"]:
                        for span in scope["spans"]:
                            collector.spans.put(span)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with serving(Handler) as base:
        yield collector, f"{base}/v1/traces"


@contextmanager
def broker(folder: Path, url: str) -> Iterator[Imori]:
    settings = {"traces.otlp_url": url}
    with running_imori(folder, settings=settings, nats=True, amqp=True, admin=True) as imori:
        yield imori
        assert imori.stop() == 0


def send_by_stomp(imori: Imori, trace: str) -> None:
    with socket.create_connection(imori.addresses[0], DEADLINE_S) as stream:
        head = f"destination:/topic/traced\ntraceparent:{trace}\nreceipt:1\n\nbody\0"
        stream.sendall(f"CONNECT\naccept-version:1.2\n\n\0SEND\n{head}".encode())
        heard = b""
        while b"RECEIPT" not in heard:
            heard += stream.recv(4096)


def send_by_nats(imori: Imori, trace: str) -> None:
    assert imori.nats is not None
    with socket.create_connection(imori.nats, DEADLINE_S) as stream:
        head = f"NATS/1.0\r\nTraceparent: {trace}\r\n\r\n"
        publish = f"HPUB traced {len(head)} {len(head) + 4}\r\n{head}body\r\n"
        options = '{"verbose":false,"headers":true}'
        stream.sendall(f"CONNECT {options}\r\n{publish}PING\r\n".encode())
        heard = b""
        while b"PONG" not in heard:
            heard += stream.recv(4096)


def send_by_amqp(imori: Imori, trace: str) -> None:
    assert imori.amqp is not None
    host, port = imori.amqp
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        properties = pika.BasicProperties(headers={"traceparent": trace})
        channel.basic_publish("amq.topic", "traced", b"body", properties)


def attributes(span: dict[str, Any]) -> dict[str, str]:
    return {
        attribute["key"]: next(iter(attribute["value"].values()))
        for attribute in span["attributes"]
    }


@pytest.mark.parametrize("send_by", [send_by_stomp, send_by_nats, send_by_amqp])
def test_a_sampled_publish_is_a_span_of_its_trace(tmp_path: Path, send_by: Any) -> None:  # noqa: ANN401
    with collecting() as (collector, url), broker(tmp_path, url) as imori:
        send_by(imori, NOT_SAMPLED)
        send_by(imori, SAMPLED)
        span = collector.span()
        assert (span["traceId"], span["parentSpanId"]) == (TRACE, SENDER)
        assert len(span["spanId"]) == 16
        assert span["spanId"] != SENDER
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        said = attributes(span)
        assert said["messaging.destination.name"] == "amq.topic"
        assert said["messaging.rabbitmq.destination.routing_key"] == "traced"
        assert (said["messaging.message.body.size"], said["imori.vhost"]) == ("4", "/")
        # There was no receiver.
        assert (said["imori.receivers"], span["status"]["code"]) == ("0", 2)
        with pytest.raises(Empty):
            collector.spans.get_nowait()


def test_a_span_counts_its_receivers(tmp_path: Path) -> None:
    with collecting() as (collector, url), broker(tmp_path, url) as imori:
        assert imori.amqp is not None
        with pika.BlockingConnection(pika.ConnectionParameters(*imori.amqp)) as connection:
            channel = connection.channel()
            for name in ("traced-1", "traced-2"):
                channel.queue_declare(name)
                channel.queue_bind(name, "amq.topic", "traced")
        send_by_amqp(imori, SAMPLED)
        span = collector.span()
        assert attributes(span)["imori.receivers"] == "2"
        assert "status" not in span


def test_a_collector_that_refuses_costs_spans_and_no_message(tmp_path: Path) -> None:
    with collecting() as (collector, url), broker(tmp_path, url) as imori:
        collector.status = 503
        send_by_amqp(imori, SAMPLED)
        assert collector.requests.get(timeout=DEADLINE_S) == 503
        send_by_stomp(imori, SAMPLED)
        # The first is in the log before the second is sent.
        assert collector.requests.get(timeout=DEADLINE_S) == 503
        page = ask(imori, "/metrics").body
        assert "imori_trace_spans_lost_total 0" in page
    assert any("the collector takes no spans" in line for line in imori.log_lines())


def test_a_collector_that_is_not_there_costs_no_message(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with broker(tmp_path, f"http://127.0.0.1:{port}/v1/traces") as imori:
        send_by_amqp(imori, SAMPLED)
