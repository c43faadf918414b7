"""Time to live of single messages, and the markers that expired subjects leave."""

from typing import Any

from nats.aio.msg import Msg
from nats.js import api

from harness.deadline import DEADLINE_S, until
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


async def _marker(run: Session, token: str) -> Msg:
    """Returns the marker of a subject, once readers see it.

    A message is gone as soon as its time is over; its marker is stored like any other message, and
    readers see it once it is durable.
    """

    async def marker() -> Msg | None:
        last = await _last(run, token)
        return last if last and "Nats-Marker-Reason" in (last.headers or {}) else None

    return await until(marker, f"a marker of `{token}`")


@scenario
async def test_an_expired_subject_gets_a_marker(run: Session) -> None:
    await _add(run, subject_delete_marker_ttl=60_000_000_000, max_msgs_per_subject=1)
    await run.publish("a", "1", TTL="1s")
    marker = await _marker(run, "a")
    headers = marker.headers
    assert headers is not None
    assert headers["Nats-Marker-Reason"] == "MaxAge"
    assert headers["Nats-TTL"] == "1m0s"
    assert headers["Nats-Rollup"] == "sub"
    assert marker.data == b""
    assert headers["Nats-Sequence"] == "2"
    assert await run.message(1) is None


@scenario
async def test_a_marker_leaves_no_marker(run: Session) -> None:
    await _add(run, subject_delete_marker_ttl=1_000_000_000, max_msgs_per_subject=1)
    await run.publish("a", "1", TTL="1s")

    async def is_empty_again() -> bool:
        state = await run.state()
        return state.last_seq >= 2 and state.messages == 0

    await until(is_empty_again, "the end of the marker")
    assert await _last(run, "a") is None
    assert (await run.state()).last_seq == 2


@scenario
async def test_a_limit_of_age_leaves_a_marker(run: Session) -> None:
    await _add(run, subject_delete_marker_ttl=60_000_000_000, max_age=1_000_000_000)
    await run.publish("a", "1", "2")
    marker = await _marker(run, "a")
    assert marker.headers is not None
    assert marker.headers["Nats-Marker-Reason"] == "MaxAge"
    assert await run.message(2) is None
    assert (await run.state()).messages == 1


@scenario
async def test_a_subject_with_another_message_gets_no_marker(run: Session) -> None:
    await _add(run, subject_delete_marker_ttl=1_000_000_000)
    await run.publish("a", "1")
    await run.publish("a", "2", TTL="1s")
    await run.publish("a", "3")
    await run.gone(2)
    last = await _last(run, "a")
    assert last is not None
    assert last.data == b"3"
    assert (await run.state()).last_seq == 3


@scenario
async def test_a_message_that_never_expires_outlives_the_limit_of_age(run: Session) -> None:
    await _add(run, max_age=1_000_000_000)
    await run.publish("kept", "1", TTL="never")
    await run.publish("a", "2")
    await run.gone(2)
    await run.publish("a", "3")
    await run.gone(3)
    assert (await run.js.get_msg(run.name, 1)).data == b"1"


@scenario
async def test_a_rollup_can_have_a_time_to_live(run: Session) -> None:
    await _add(run, allow_rollup_hdrs=True)
    await run.publish("a", "1", "2")
    await run.publish("a", "3", Rollup="sub", TTL="1")
    state = await run.state()
    # What it replaces is gone at once; on a slow machine its own time may be over too.
    assert (state.first_seq, state.messages) in {(3, 1), (4, 0)}
    await run.gone(3)
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
