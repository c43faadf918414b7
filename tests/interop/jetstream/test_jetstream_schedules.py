"""Messages that a stream publishes again on a schedule."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from nats.js.api import RawStreamMsg

from harness.deadline import DEADLINE_S, until
from harness.nats.jetstream import Session, scenario

DISABLED, PATTERN_INVALID, TARGET_INVALID, SOURCE_INVALID, SCHEDULER_INVALID = (
    10188,
    10189,
    10190,
    10203,
    10212,
)


async def _add(run: Session, **options: Any) -> None:  # noqa: ANN401
    """Creates a stream that publishes on schedules."""
    config = {
        "name": run.name,
        "subjects": [run.subject(">")],
        "allow_msg_schedules": True,
        "allow_msg_ttl": True,
    }
    answer = await run.request(f"STREAM.CREATE.{run.name}", config | options)
    assert "error" not in answer, answer


def _at(seconds: float) -> str:
    """Returns the schedule of one time, this many seconds from now."""
    return f"@at {(datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()}"


async def _refusal(run: Session, token: str, **headers: str) -> int | None:
    """Publishes with headers named `Nats-…`; returns the code of the refusal."""
    named = {"Nats-" + name.replace("_", "-"): value for name, value in headers.items()}
    answer = await run.client.request(run.subject(token), b"x", headers=named, timeout=DEADLINE_S)
    code: int | None = json.loads(answer.data).get("error", {}).get("err_code")
    return code


async def _wait_for(run: Session, sequence: int) -> RawStreamMsg:
    """Returns a message once it is there."""
    return await until(lambda: run.message(sequence), f"message {sequence}")


@scenario
async def test_a_message_is_published_at_a_time(run: Session) -> None:
    await _add(run)
    await run.publish(
        "plan",
        "body",
        Schedule=_at(1),
        Schedule_Target=run.subject("goal"),
        Schedule_TTL="5m",
        Msg_Id="one",
    )
    message = await _wait_for(run, 2)
    assert message.subject == run.subject("goal")
    assert message.data == b"body"
    assert message.headers == {
        "Nats-Scheduler": run.subject("plan"),
        "Nats-Schedule-Next": "purge",
        "Nats-TTL": "5m",
    }
    assert (await run.state()).messages == 1


@scenario
async def test_a_time_in_the_past_is_now(run: Session) -> None:
    await _add(run)
    await run.publish("plan", "1", Schedule=_at(-60), Schedule_Target=run.subject("goal"))
    assert (await _wait_for(run, 2)).data == b"1"


@scenario
async def test_a_message_is_published_at_an_interval(run: Session) -> None:
    await _add(run)
    await run.publish("plan", "1", Schedule="@every 1s", Schedule_Target=run.subject("goal"))
    for sequence in (2, 3):
        message = await _wait_for(run, sequence)
        assert message.headers is not None
        assert datetime.fromisoformat(message.headers["Nats-Schedule-Next"])
    assert (await run.js.get_msg(run.name, 1)).data == b"1"


@scenario
async def test_another_schedule_replaces_the_first_and_a_purge_ends_it(run: Session) -> None:
    await _add(run)
    goal = run.subject("goal")
    await run.publish("plan", "1", Schedule=_at(3600), Schedule_Target=goal)
    await run.publish("plan", "2", Schedule=_at(1), Schedule_Target=goal, Schedule_Rollup="sub")
    assert (await run.state()).messages == 1
    message = await _wait_for(run, 3)
    assert message.data == b"2"
    assert message.headers is not None
    assert message.headers["Nats-Rollup"] == "sub"
    await run.publish("plan", "3", Schedule=_at(3600), Schedule_Target=goal)
    await run.publish("a", "4", Schedule_Next="purge", Scheduler=run.subject("plan"))
    assert [body async for body in _subjects(run)] == [run.subject("a"), goal]


async def _subjects(run: Session) -> Any:  # noqa: ANN401
    """Yields the subjects that have messages, in order."""
    answer = await run.request(f"STREAM.INFO.{run.name}", {"subjects_filter": ">"})
    for subject in sorted(answer["state"]["subjects"]):
        yield subject


@scenario
async def test_a_schedule_can_take_the_last_message_of_a_subject(run: Session) -> None:
    await _add(run)
    await run.publish("source", "old")
    await run.publish(
        "plan",
        "own",
        Schedule=_at(1),
        Schedule_Target=run.subject("goal"),
        Schedule_Source=run.subject("source"),
    )
    await run.js.publish(run.subject("source"), b"new", headers={"Kept": "yes"})
    message = await _wait_for(run, 4)
    assert message.data == b"new"
    assert message.headers is not None
    assert message.headers["Kept"] == "yes"


@scenario
async def test_schedules_are_checked(run: Session) -> None:
    await _add(run)
    goal, plan = run.subject("goal"), run.subject("plan")
    for headers, code in [
        ({"Schedule": "nonsense", "Schedule_Target": goal}, PATTERN_INVALID),
        ({"Schedule": "@every 1m", "Schedule_Target": plan}, TARGET_INVALID),
        ({"Schedule": "@every 1m", "Schedule_Target": "elsewhere"}, TARGET_INVALID),
        (
            {"Schedule": "@every 1m", "Schedule_Target": goal, "Schedule_Source": "elsewhere"},
            SOURCE_INVALID,
        ),
        ({"Schedule_Next": "purge"}, SCHEDULER_INVALID),
        ({"Schedule_Next": "purge", "Scheduler": plan}, SCHEDULER_INVALID),
        ({"Schedule": "0 30 14 * * *", "Schedule_Target": goal}, None),
        ({"Schedule": "@hourly", "Schedule_Target": goal}, None),
    ]:
        assert await _refusal(run, "plan", **headers) == code, headers
    await run.js.publish(run.subject("a"), b"")
    answer = await _refusal(run, "b", Schedule_Next="purge", Scheduler=run.subject("a"))
    assert answer == SCHEDULER_INVALID


@scenario
async def test_other_streams_have_no_schedules(run: Session) -> None:
    await run.add()
    goal = run.subject("goal")
    headers = {"Schedule": "@every 1m", "Schedule_Target": goal}
    assert await _refusal(run, "plan", **headers) == DISABLED
