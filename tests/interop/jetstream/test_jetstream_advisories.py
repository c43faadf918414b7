"""Advisories: what happens to streams, consumers and messages is published."""

import json
from typing import Any

from nats.aio.subscription import Subscription

from harness.deadline import DEADLINE_S
from harness.nats.jetstream import Session, bodies, scenario, take


async def _listen(run: Session, subject: str) -> Subscription:
    """Subscribes to advisories."""
    subscription = await run.client.subscribe(f"$JS.EVENT.{subject}")
    await run.fence()
    return subscription


async def _next(subscription: Subscription) -> tuple[str, dict[str, Any]]:
    """Returns the end of the next advisory's subject, and its fields but for id and time."""
    message = await subscription.next_msg(DEADLINE_S)
    fields: dict[str, Any] = json.loads(message.data)
    assert fields.pop("id")
    assert fields.pop("timestamp")
    return message.subject.removeprefix("$JS.EVENT."), fields


@scenario
async def test_changes_of_streams_are_told(run: Session) -> None:
    told = await _listen(run, f"ADVISORY.STREAM.*.{run.name}")
    await run.add()
    await run.js.update_stream(name=run.name, subjects=[run.subject(">")], max_msgs=5)
    await run.js.delete_stream(run.name)
    for verb, action in [("CREATED", "create"), ("UPDATED", "modify"), ("DELETED", "delete")]:
        assert await _next(told) == (
            f"ADVISORY.STREAM.{verb}.{run.name}",
            {
                "type": "io.nats.jetstream.advisory.v1.stream_action",
                "stream": run.name,
                "action": action,
            },
        )


@scenario
async def test_changes_of_consumers_are_told(run: Session) -> None:
    await run.add()
    told = await _listen(run, f"ADVISORY.CONSUMER.*.{run.name}.*")
    await run.consumer()
    await run.js.delete_consumer(run.name, "reader")
    for verb, action in [("CREATED", "create"), ("DELETED", "delete")]:
        assert await _next(told) == (
            f"ADVISORY.CONSUMER.{verb}.{run.name}.reader",
            {
                "type": "io.nats.jetstream.advisory.v1.consumer_action",
                "stream": run.name,
                "consumer": "reader",
                "action": action,
            },
        )


@scenario
async def test_refused_messages_are_told(run: Session) -> None:
    await run.add()
    await run.publish("a", "1")
    consumer = await run.consumer()
    told = await _listen(run, f"ADVISORY.CONSUMER.*.{run.name}.reader")
    await (await take(consumer)).nak()
    message = await take(consumer)
    await run.client.publish(message.reply, b"+TERM no use")
    place = {"stream": run.name, "consumer": "reader", "stream_seq": 1}
    assert await _next(told) == (
        f"ADVISORY.CONSUMER.MSG_NAKED.{run.name}.reader",
        place | {"type": "io.nats.jetstream.advisory.v1.nak", "consumer_seq": 1, "deliveries": 1},
    )
    assert await _next(told) == (
        f"ADVISORY.CONSUMER.MSG_TERMINATED.{run.name}.reader",
        place
        | {
            "type": "io.nats.jetstream.advisory.v1.terminated",
            "consumer_seq": 2,
            "deliveries": 2,
            "reason": "no use",
        },
    )


@scenario
async def test_acknowledgements_are_sampled(run: Session) -> None:
    await run.add()
    await run.publish("a", "1")
    consumer = await run.consumer(sample_freq="100%")
    told = await _listen(run, f"METRIC.CONSUMER.ACK.{run.name}.*")
    assert await bodies(consumer, 1) == ["1"]
    subject, fields = await _next(told)
    assert subject == f"METRIC.CONSUMER.ACK.{run.name}.reader"
    assert fields.pop("ack_time") > 0
    assert fields == {
        "type": "io.nats.jetstream.metric.v1.consumer_ack",
        "stream": run.name,
        "consumer": "reader",
        "consumer_seq": 1,
        "stream_seq": 1,
        "deliveries": 1,
    }


@scenario
async def test_requests_of_the_api_are_told(run: Session) -> None:
    await run.add()
    told = await _listen(run, "ADVISORY.API")
    await run.request(f"STREAM.PURGE.{run.name}", {"keep": 1})
    while True:
        subject, fields = await _next(told)
        if fields["subject"] == f"$JS.API.STREAM.PURGE.{run.name}":
            break
    assert subject == "ADVISORY.API"
    assert fields["type"] == "io.nats.jetstream.advisory.v1.api_audit"
    assert json.loads(fields["request"]) == {"keep": 1}
    assert json.loads(fields["response"])["purged"] == 0
    assert fields["client"]["user"] == "guest"
    assert fields["server"]


@scenario
async def test_a_stream_can_store_advisories(run: Session) -> None:
    await run.add()
    other = f"{run.name}_2"
    await run.js.add_stream(name=other, subjects=[f"$JS.EVENT.ADVISORY.CONSUMER.*.{run.name}.>"])
    await run.consumer()
    message = await run.js.get_msg(other, 1)
    assert message.subject == f"$JS.EVENT.ADVISORY.CONSUMER.CREATED.{run.name}.reader"


@scenario
async def test_pins_are_told(run: Session) -> None:
    await run.add()
    config = {
        "durable_name": "reader",
        "ack_policy": "explicit",
        "priority_groups": ["g"],
        "priority_policy": "pinned_client",
    }
    body = {"stream_name": run.name, "config": config}
    await run.request(f"CONSUMER.CREATE.{run.name}.reader", body)
    told = await _listen(run, f"ADVISORY.CONSUMER.*.{run.name}.reader")
    await run.publish("a", "1")
    inbox = run.client.new_inbox()
    answers = await run.client.subscribe(inbox)
    subject = f"$JS.API.CONSUMER.MSG.NEXT.{run.name}.reader"
    await run.client.publish(subject, b'{"group":"g"}', reply=inbox)
    message = await answers.next_msg(DEADLINE_S)
    assert message.headers is not None
    end, fields = await _next(told)
    assert end == f"ADVISORY.CONSUMER.PINNED.{run.name}.reader"
    assert fields["type"] == "io.nats.jetstream.advisory.v1.consumer_group_pinned"
    assert (fields["group"], fields["pinned_id"]) == ("g", message.headers["Nats-Pin-Id"])
    await run.request(f"CONSUMER.UNPIN.{run.name}.reader", {"group": "g"})
    end, fields = await _next(told)
    assert end == f"ADVISORY.CONSUMER.UNPINNED.{run.name}.reader"
    assert (fields["group"], fields["reason"]) == ("g", "admin")
