"""What a stream does to subjects: it publishes messages again, and stores them under others."""

from typing import Any

from nats.aio.msg import Msg

from harness.deadline import DEADLINE_S
from harness.nats.jetstream import Session, bodies, error_code, scenario


async def _add(run: Session, **options: Any) -> None:  # noqa: ANN401
    """Creates a stream."""
    config = {"name": run.name, "subjects": [run.subject(">")]}
    answer = await run.request(f"STREAM.CREATE.{run.name}", config | options)
    assert "error" not in answer, answer


def _headers(message: Msg) -> dict[str, str]:
    """Returns the headers but for the time."""
    assert message.headers is not None
    assert message.headers["Nats-Time-Stamp"]
    return {name: value for name, value in message.headers.items() if name != "Nats-Time-Stamp"}


@scenario
async def test_stored_messages_are_published_again(run: Session) -> None:
    source = run.subject("a.*")
    await _add(run, republish={"src": source, "dest": f"again.{run.name}.{{{{wildcard(1)}}}}"})
    subscription = await run.client.subscribe(f"again.{run.name}.*")
    await run.fence()
    await run.publish("a.x", "1")
    await run.publish("b.x", "not this")
    await run.js.publish(run.subject("a.x"), b"2", headers={"Own": "yes"})
    first, second = [await subscription.next_msg(DEADLINE_S) for _ in range(2)]
    assert (first.subject, first.data) == (f"again.{run.name}.x", b"1")
    told = {"Nats-Stream": run.name, "Nats-Subject": run.subject("a.x")}
    assert _headers(first) == told | {"Nats-Sequence": "1", "Nats-Last-Sequence": "0"}
    assert second.data == b"2"
    assert _headers(second) == told | {
        "Own": "yes",
        "Nats-Sequence": "3",
        "Nats-Last-Sequence": "1",
    }


@scenario
async def test_headers_alone_can_be_published_again(run: Session) -> None:
    republish = {"src": ">", "dest": f"again.{run.name}.>", "headers_only": True}
    await _add(run, republish=republish)
    subscription = await run.client.subscribe(f"again.{run.name}.>")
    await run.fence()
    await run.publish("a", "12345")
    message = await subscription.next_msg(DEADLINE_S)
    assert message.subject == f"again.{run.name}.{run.subject('a')}"
    assert message.data == b""
    assert _headers(message)["Nats-Msg-Size"] == "5"


@scenario
async def test_another_stream_stores_what_is_published_again(run: Session) -> None:
    await _add(run, republish={"src": ">", "dest": f"again.{run.name}.>"})
    other = f"{run.name}_2"
    await run.js.add_stream(name=other, subjects=[f"again.{run.name}.>"])
    await run.publish("a", "1", "2")
    await run.js.add_consumer(other, durable_name="reader", ack_policy="explicit")
    consumer = await run.js.pull_subscribe_bind("reader", other)
    assert await bodies(consumer, 2) == ["1", "2"]


@scenario
async def test_messages_are_stored_under_another_subject(run: Session) -> None:
    transform = {
        "src": run.subject("in.*.*"),
        "dest": run.subject("out.{{wildcard(2)}}.{{wildcard(1)}}"),
    }
    await _add(run, subject_transform=transform)
    await run.publish("in.a.b", "1")
    await run.publish("plain", "2")
    assert (await run.js.get_msg(run.name, 1)).subject == run.subject("out.b.a")
    assert (await run.js.get_msg(run.name, 2)).subject == run.subject("plain")
    consumer = await run.consumer(filter_subject=run.subject("out.>"))
    assert await bodies(consumer, 1) == ["1"]
    publish = run.publish("in.a.b", "3", Expected_Last_Subject_Sequence="7")
    assert await error_code(publish) == 10071
    assert await run.publish("in.a.b", "3", Expected_Last_Subject_Sequence="1") == [3]


@scenario
async def test_ids_count_under_another_subject_too(run: Session) -> None:
    transform = {"src": run.subject("in.>"), "dest": run.subject("out.>")}
    await _add(run, subject_transform=transform)
    for _ in range(2):
        headers = {"Nats-Msg-Id": "one"}
        ack = await run.js.publish(run.subject("in.a"), b"1", headers=headers)
    assert (ack.seq, ack.duplicate) == (1, True)
