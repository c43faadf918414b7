"""Priority groups of pull consumers, and consumers that go back in the stream."""

import json

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import TimeoutError as NatsTimeoutError

from harness.deadline import DEADLINE_S, until
from harness.nats.jetstream import ABSENT_S, Session, bodies, scenario, status_of, take


async def _add(run: Session, policy: str, **options: object) -> None:
    """Creates a stream, and a consumer with a priority group."""
    await run.add()
    config = {
        "durable_name": "reader",
        "ack_policy": "explicit",
        "priority_groups": ["g"],
        "priority_policy": policy,
    }
    body = {"stream_name": run.name, "config": config | options}
    answer = await run.request(f"CONSUMER.CREATE.{run.name}.reader", body)
    assert "error" not in answer, answer


async def _ask(run: Session, **request: object) -> Subscription:
    """Sends a pull request; returns the subscription of its answers."""
    inbox = run.client.new_inbox()
    answers = await run.client.subscribe(inbox)
    body = json.dumps({"group": "g", "expires": 20_000_000_000} | request).encode()
    await run.client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{run.name}.reader", body, reply=inbox)
    await run.fence()
    return answers


async def _is_silent(answers: Subscription) -> bool:
    """Returns whether no answer comes."""
    try:
        await answers.next_msg(ABSENT_S)
    except NatsTimeoutError:
        return True
    return False


def _pin(message: Msg) -> str:
    """Returns the pin of a delivery."""
    assert message.headers is not None
    return message.headers["Nats-Pin-Id"]


@scenario
async def test_a_request_overflows_at_a_number_of_messages(run: Session) -> None:
    await _add(run, "overflow")
    waiting = await _ask(run, min_pending=3)
    await run.publish("a", "1", "2")
    assert await _is_silent(waiting)
    await run.publish("a", "3")
    assert (await waiting.next_msg(DEADLINE_S)).data == b"1"


@scenario
async def test_a_request_overflows_at_a_number_of_unacknowledged_deliveries(run: Session) -> None:
    await _add(run, "overflow")
    await run.publish("a", "1", "2", "3")
    waiting = await _ask(run, min_ack_pending=2)
    assert await _is_silent(waiting)
    plain = await _ask(run, batch=2)
    assert [(await plain.next_msg(DEADLINE_S)).data for _ in range(2)] == [b"1", b"2"]
    assert (await waiting.next_msg(DEADLINE_S)).data == b"3"


@scenario
async def test_one_client_has_the_pin(run: Session) -> None:
    await _add(run, "pinned_client", priority_timeout=60_000_000_000)
    first = await _ask(run, batch=2)
    second = await _ask(run, batch=5)
    await run.publish("a", "1", "2", "3")
    deliveries = [await first.next_msg(DEADLINE_S) for _ in range(2)]
    pin = _pin(deliveries[0])
    assert [_pin(delivery) for delivery in deliveries] == [pin, pin]
    assert await _is_silent(second)
    again = await _ask(run, batch=1, id=pin)
    assert (await again.next_msg(DEADLINE_S)).data == b"3"
    wrong = await _ask(run, batch=1, id="other")
    assert status_of(await wrong.next_msg(DEADLINE_S)) == "423 Nats-Pin-Id mismatch"
    (group,) = (await run.request(f"CONSUMER.INFO.{run.name}.reader"))["priority_groups"]
    assert (group["group"], group["pinned_client_id"]) == ("g", pin)
    held = await _ask(run, batch=1, id=pin)
    answer = await run.request(f"CONSUMER.UNPIN.{run.name}.reader", {"group": "g"})
    assert answer == {"type": "io.nats.jetstream.api.v1.consumer_unpin_response"}
    await run.publish("a", "4")
    delivery = await second.next_msg(DEADLINE_S)
    assert delivery.data == b"4"
    assert _pin(delivery) != pin
    await run.publish("a", "5")
    assert status_of(await held.next_msg(DEADLINE_S)) == "423 Nats-Wrong-Pin-Id"


@scenario
async def test_a_pin_is_lost_without_requests(run: Session) -> None:
    await _add(run, "pinned_client", priority_timeout=500_000_000)
    first = await _ask(run, batch=10)
    second = await _ask(run, batch=10)
    await run.publish("a", "1")
    pin = _pin(await first.next_msg(DEADLINE_S))
    await first.unsubscribe()

    async def is_free() -> bool:
        (group,) = (await run.request(f"CONSUMER.INFO.{run.name}.reader"))["priority_groups"]
        return not group.get("pinned_client_id")

    await until(is_free, "the end of the pin")
    await run.publish("a", "2")
    assert _pin(await second.next_msg(DEADLINE_S)) != pin


@scenario
async def test_unpin_names_a_group_of_the_consumer(run: Session) -> None:
    await _add(run, "pinned_client")
    for body, code in [({}, 10025), ({"group": "?"}, 10162), ({"group": "h"}, 10160)]:
        answer = await run.request(f"CONSUMER.UNPIN.{run.name}.reader", body)
        assert answer["error"]["err_code"] == code


@scenario
async def test_the_lowest_priority_is_served_first(run: Session) -> None:
    await _add(run, "prioritized")
    late = await _ask(run, batch=10, priority=5)
    early = await _ask(run, batch=2, priority=1)
    await run.publish("a", "1", "2", "3")
    assert [(await early.next_msg(DEADLINE_S)).data for _ in range(2)] == [b"1", b"2"]
    assert (await late.next_msg(DEADLINE_S)).data == b"3"


@scenario
async def test_a_consumer_goes_back(run: Session) -> None:
    await run.add()
    await run.publish("a", "1", "2", "3", "4")
    consumer = await run.consumer()
    assert await bodies(consumer, 2) == ["1", "2"]
    assert (await take(consumer)).data == b"3"
    answer = await run.request(f"CONSUMER.RESET.{run.name}.reader")
    assert answer["reset_seq"] == 3
    assert (answer["num_pending"], answer["num_ack_pending"]) == (2, 0)
    message = await take(consumer)
    assert (message.data, message.metadata.sequence.consumer) == (b"3", 1)
    answer = await run.request(f"CONSUMER.RESET.{run.name}.reader", {"seq": 2})
    assert (answer["reset_seq"], answer["num_pending"]) == (2, 3)
    assert await bodies(consumer, 3) == ["2", "3", "4"]


@scenario
async def test_a_consumer_does_not_go_back_before_its_start(run: Session) -> None:
    await run.add()
    await run.publish("a", "1", "2", "3")
    await run.consumer(deliver_policy="by_start_sequence", opt_start_seq=2)
    answer = await run.request(f"CONSUMER.RESET.{run.name}.reader", {"seq": 1})
    assert answer["error"]["err_code"] == 10204
    assert answer["error"]["description"] == "invalid reset: below start seq"
