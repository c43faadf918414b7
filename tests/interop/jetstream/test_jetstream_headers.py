"""What a publish is answered, by its headers and the features of its stream."""

import json
from typing import Any

from harness.deadline import DEADLINE_S
from harness.nats.jetstream import Session, scenario

AT = "Schedule: @at 2030-01-01T00:00:00Z"
CRON = "Schedule: 0 0 0 * * *"
TARGET = "Schedule-Target: SUBJECTS.y"

# By the name of the stream: its configuration besides name and subjects.
STREAMS: dict[str, dict[str, bool]] = {
    "plain": {},
    "rich": {
        "allow_msg_ttl": True,
        "allow_rollup_hdrs": True,
        "allow_atomic": True,
        "allow_msg_schedules": True,
    },
    "scheduled": {"allow_msg_schedules": True, "allow_rollup_hdrs": True},
    "counter": {"allow_msg_counter": True},
    "sealed": {},
}

# A stream, the headers of a publish to its subject `x` without `Nats-`, and the refusal.
# `STREAM` and `SUBJECTS` stand for the name of the stream and the beginning of its subjects.
Row = tuple[str, list[str], int | None]
ROWS: list[Row] = [
    ("plain", [], None),
    ("plain", ["Expected-Stream: other"], 10060),
    ("plain", ["Expected-Stream: STREAM"], None),
    ("plain", ["Rollup: sub"], 10111),
    ("plain", ["TTL: 5"], 10166),
    ("plain", ["TTL: never"], 10166),
    ("plain", ["TTL: 0"], 10165),
    ("plain", ["TTL: 00"], None),
    ("plain", ["TTL: x"], 10165),
    ("plain", ["ttl: 5"], None),
    ("plain", ["Incr: 5"], 10168),
    ("plain", ["Batch-Id: b", "Batch-Sequence: 1"], 10174),
    ("plain", [AT, TARGET], 10188),
    ("plain", ["Stream-Source: x"], 10227),
    ("plain", ["Expected-Last-Subject-Sequence-Subject: SUBJECTS.y"], 10193),
    ("plain", ["Scheduler: SUBJECTS.y"], 10212),
    ("plain", ["Scheduler: SUBJECTS.y", "Schedule-Next: purge"], 10188),
    ("rich", ["Rollup: bogus"], 10111),
    ("rich", ["Rollup: SUB"], None),
    ("rich", ["Rollup: all"], None),
    ("rich", ["TTL: 1500ms"], None),
    ("rich", ["TTL: 999ms"], 10165),
    ("rich", ["TTL: -1"], 10165),
    ("rich", ["TTL: 0s"], 10165),
    ("rich", ["Incr: x"], 10171),
    ("rich", [AT], 10190),
    ("rich", [AT, "Schedule-Target: SUBJECTS.x"], 10190),
    ("rich", [AT, "Schedule-Target: elsewhere.y"], 10190),
    ("rich", [AT, "Schedule-Target: SUBJECTS.*"], 10190),
    ("rich", [AT, TARGET], None),
    ("rich", ["Schedule: bogus", TARGET], 10189),
    ("rich", [AT, "Schedule-Time-Zone: UTC", TARGET], 10189),
    ("rich", [CRON, "Schedule-Time-Zone: UTC", TARGET], None),
    ("rich", [CRON, "Schedule-Time-Zone: Mars/X", TARGET], 10223),
    ("rich", ["Schedule: @daily", "Schedule-TTL: x", TARGET], 10191),
    ("rich", ["Schedule: @daily", "Schedule-Rollup: all", TARGET], 10192),
    ("rich", ["Schedule: @daily", "Schedule-Source: SUBJECTS.y", TARGET], 10203),
    ("rich", ["Schedule: @daily", "Schedule-Source: SUBJECTS.x", TARGET], 10203),
    ("rich", ["Schedule: @daily", "Schedule-Source: elsewhere", TARGET], 10203),
    ("rich", ["Schedule: @daily", "Schedule-Source: SUBJECTS.z", TARGET], None),
    ("rich", ["Schedule: @daily", "Rollup: all", TARGET], 10192),
    ("scheduled", ["Schedule: @daily", "Schedule-TTL: 5m", TARGET], 10166),
    ("rich", ["Schedule-Next: x", "Scheduler: SUBJECTS.y"], 10212),
    ("rich", ["Schedule-Next: purge"], 10212),
    ("rich", ["Schedule-Next: purge", "Scheduler: SUBJECTS.x"], 10212),
    ("rich", ["Schedule-Next: purge", "Scheduler: SUBJECTS.*"], 10212),
    ("rich", ["Schedule-Next: purge", "Scheduler: SUBJECTS.none"], None),
    ("rich", [f"Batch-Id: {'b' * 65}", "Batch-Sequence: 1"], 10179),
    ("rich", ["Batch-Id: b"], 10175),
    ("rich", ["Batch-Id: b", "Batch-Sequence: 1", "Batch-Commit: x"], 10200),
    ("rich", ["Batch-Id: b", "Batch-Sequence: 1", "Required-Api-Level: 99"], 10185),
    ("rich", ["Batch-Id: b", "Batch-Sequence: 1", "Required-Api-Level: 2"], None),
    ("rich", ["Required-Api-Level: 99"], None),
    ("counter", [], 10169),
    ("counter", ["Incr: 5"], None),
    ("counter", ["Incr: +5"], None),
    ("counter", ["Incr: -123456789012345678901234567890"], None),
    ("counter", ["Incr: 1_0"], 10171),
    ("counter", ["Incr: -"], 10171),
    ("counter", ["Incr: 5", "Expected-Last-Sequence: 1"], 10171),
    ("counter", ["Incr: 5", "Rollup: sub"], 10171),
    ("sealed", [], 10109),
]


async def _create(run: Session, kind: str, features: dict[str, bool]) -> None:
    """Creates a stream of the rows."""
    name = f"{run.name}-{kind}"
    config: dict[str, Any] = {"name": name, "subjects": [f"{name}.>"], **features}
    answers = [await run.request(f"STREAM.CREATE.{name}", config)]
    if kind == "sealed":
        answers.append(await run.request(f"STREAM.UPDATE.{name}", config | {"sealed": True}))
    assert not any("error" in answer for answer in answers), answers


async def _refusal(run: Session, kind: str, headers: list[str]) -> int | None:
    """Publishes one message; returns the code of the refusal."""
    name = f"{run.name}-{kind}"
    pairs = (header.split(": ") for header in headers)
    named = {
        f"Nats-{header}": value.replace("STREAM", name).replace("SUBJECTS", name)
        for header, value in pairs
    }
    answer = await run.client.request(f"{name}.x", b"", headers=named or None, timeout=DEADLINE_S)
    # The first message of a batch is answered without a body.
    code: int | None = json.loads(answer.data or b"{}").get("error", {}).get("err_code")
    return code


@scenario
async def test_each_publish_is_taken_or_refused(run: Session) -> None:
    for kind, features in STREAMS.items():
        await _create(run, kind, features)
    wrong = [
        (kind, headers, expected, code)
        for kind, headers, expected in ROWS
        if (code := await _refusal(run, kind, headers)) != expected
    ]
    assert not wrong


@scenario
async def test_an_increment_has_no_body(run: Session) -> None:
    await _create(run, "counter", STREAMS["counter"])
    subject = f"{run.name}-counter.x"
    answer = await run.client.request(subject, b"1", headers={"Nats-Incr": "5"}, timeout=DEADLINE_S)
    assert json.loads(answer.data)["error"]["err_code"] == 10170
