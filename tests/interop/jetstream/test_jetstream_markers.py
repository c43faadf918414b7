"""Time to live of single messages, and the markers that expired subjects leave."""

import asyncio
from typing import Any

from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import NotFoundError

from harness.deadline import DEADLINE_S
from harness.nats.jetstream import Session, error_code, scenario, status_of


async def _add(run: Session, **options: Any) -> None:  # noqa: ANN401
    """Creates a stream with messages that have a time to live."""
    config = {
        "name": run.name,
        "subjects": [run.subject(">")],
        "allow_msg_ttl": True,
        "allow_direct": True,
    }
    answer = await run.request(f"STREAM.CREATE.{run.name}", config | options)
    assert "error" not in answer, answer


async def _last(run: Session, token: str) -> Msg | None:
    """Returns the last message of a subject by a direct get; `None` if there is none."""
    subject = f"$JS.API.DIRECT.GET.{run.name}.{run.subject(token)}"
    answer = await run.client.request(subject, b"", timeout=DEADLINE_S)
    return None if status_of(answer) else answer


async def _until_gone(run: Session, sequence: int) -> None:
    """Waits until a message is gone."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await run.js.get_msg(run.name, sequence)
            except NotFoundError:
                return
            await asyncio.sleep(0.05)


def _headers(message: Msg | None) -> dict[str, str]:
    """Returns the headers of a message, which must be there."""
    assert message is not None
    assert message.headers is not None
    return message.headers


@scenario
async def test_an_expired_subject_gets_a_marker(run: Session) -> None:
    await _add(run, subject_delete_marker_ttl=60_000_000_000, max_msgs_per_subject=1)
    await run.publish("a", "1", TTL="1s")
    await _until_gone(run, 1)
    marker = await _last(run, "a")
    headers = _headers(marker)
    assert headers["Nats-Marker-Reason"] == "MaxAge"
    assert headers["Nats-TTL"] == "1m0s"
    assert headers["Nats-Rollup"] == "sub"
    assert marker is not None
    assert marker.data == b""
    assert headers["Nats-Sequence"] == "2"


@scenario
async def test_a_marker_leaves_no_marker(run: Session) -> None:
    await _add(run, subject_delete_marker_ttl=1_000_000_000, max_msgs_per_subject=1)
    await run.publish("a", "1", TTL="1s")
    await _until_gone(run, 1)
    await _until_gone(run, 2)
    assert await _last(run, "a") is None
    assert (await run.state()).last_seq == 2


@scenario
async def test_a_limit_of_age_leaves_a_marker(run: Session) -> None:
    await _add(run, subject_delete_marker_ttl=60_000_000_000, max_age=1_000_000_000)
    await run.publish("a", "1", "2")
    await _until_gone(run, 2)
    assert _headers(await _last(run, "a"))["Nats-Marker-Reason"] == "MaxAge"
    assert (await run.state()).messages == 1


@scenario
async def test_a_subject_with_another_message_gets_no_marker(run: Session) -> None:
    await _add(run, subject_delete_marker_ttl=1_000_000_000)
    await run.publish("a", "1", TTL="1s")
    await run.publish("a", "2")
    await _until_gone(run, 1)
    last = await _last(run, "a")
    assert last is not None
    assert last.data == b"2"


@scenario
async def test_a_message_that_never_expires_outlives_the_limit_of_age(run: Session) -> None:
    await _add(run, max_age=1_000_000_000)
    await run.publish("kept", "1", TTL="never")
    await run.publish("a", "2")
    await _until_gone(run, 2)
    await run.publish("a", "3")
    await _until_gone(run, 3)
    assert (await run.js.get_msg(run.name, 1)).data == b"1"


@scenario
async def test_a_rollup_can_have_a_time_to_live(run: Session) -> None:
    await _add(run, allow_rollup_hdrs=True)
    await run.publish("a", "1", "2")
    await run.publish("a", "3", Rollup="sub", TTL="1")
    assert (await run.state()).messages == 1
    await _until_gone(run, 3)
    assert (await run.state()).messages == 0


@scenario
async def test_times_to_live_are_refused_where_they_are_not_allowed(run: Session) -> None:
    await run.add()
    publish = run.js.publish(run.subject("a"), b"1", headers={"Nats-TTL": "1s"})
    assert await error_code(publish) == 10166
    answer = await run.request(
        f"STREAM.CREATE.{run.name}2",
        {"name": f"{run.name}2", "subjects": ["x"], "subject_delete_marker_ttl": 1},
    )
    assert answer["error"]["err_code"] == 10052
    config = api.StreamConfig(name=run.name)
    assert config.name == run.name
