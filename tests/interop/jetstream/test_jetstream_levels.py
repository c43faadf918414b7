"""Requests that require a later level of the API than the server has."""

import json

from nats.aio.msg import Msg

from harness.deadline import DEADLINE_S
from harness.nats.jetstream import Session, scenario, status_of

# A value of the header, and whether the server has this level.
LEVELS = [("", True), ("0", True), ("1", True), ("-1", True), ("99", False), ("soon", False)]

# Requests whose answers are JSON; `ORDERS` stands for the name of the stream.
CONFIG = '{"name": "ORDERS", "subjects": ["ORDERS.>"], "allow_direct": true}'
REQUESTS = [
    ("INFO", ""),
    ("STREAM.NAMES", ""),
    ("STREAM.LIST", ""),
    ("STREAM.CREATE.ORDERS", CONFIG),
    ("STREAM.UPDATE.ORDERS", CONFIG),
    ("STREAM.INFO.ORDERS", ""),
    ("STREAM.MSG.GET.ORDERS", '{"seq": 1}'),
    ("STREAM.PURGE.ORDERS", '{"filter": "ORDERS.none"}'),
    ("CONSUMER.NAMES.ORDERS", ""),
    ("CONSUMER.LIST.ORDERS", ""),
    ("CONSUMER.INFO.ORDERS.reader", ""),
    ("CONSUMER.DELETE.ORDERS.reader", ""),
    ("STREAM.DELETE.ORDERS", ""),
]

# Requests for messages, which a status refuses.
REQUESTS_FOR_MESSAGES = [
    ("DIRECT.GET.ORDERS", '{"seq": 1}'),
    ("DIRECT.GET.ORDERS.ORDERS.a", ""),
    ("CONSUMER.MSG.NEXT.ORDERS.reader", '{"batch": 1}'),
]


async def _filled(run: Session) -> None:
    """Creates the stream with a message and a consumer."""
    await run.add(allow_direct=True)
    await run.publish("a", "first")
    await run.consumer()


async def _answer(run: Session, subject: str, body: str, level: str) -> Msg:
    """Sends a request that requires a level; returns the first answer.

    A message of a consumer has its own subject, by which `request` would not know it as an answer.
    """
    subject, body = (text.replace("ORDERS", run.name) for text in (subject, body))
    headers = {"Nats-Required-Api-Level": level}
    inbox = run.client.new_inbox()
    answers = await run.client.subscribe(inbox, max_msgs=1)
    await run.client.publish(f"$JS.API.{subject}", body.encode(), inbox, headers)
    return await answers.next_msg(timeout=DEADLINE_S)


@scenario
async def test_a_request_that_requires_a_later_level_is_refused(run: Session) -> None:
    await _filled(run)
    description = "JetStream minimum api level required"
    refusal = {"code": 412, "err_code": 10185, "description": description}
    for subject, body in REQUESTS:
        for level, is_known in LEVELS:
            if is_known and ".DELETE." in subject:
                continue
            answer = json.loads((await _answer(run, subject, body, level)).data)
            assert answer.get("error") == (None if is_known else refusal), (subject, level)
    assert (await run.state()).messages == 1, "nothing was deleted"


@scenario
async def test_a_request_for_a_message_is_refused_by_a_status(run: Session) -> None:
    await _filled(run)
    for subject, body in REQUESTS_FOR_MESSAGES:
        for level in ("99", "soon"):
            answer = await _answer(run, subject, body, level)
            found = (status_of(answer), answer.data)
            assert found == ("412 Required Api Level", b""), (subject, level)
        assert (await _answer(run, subject, body, "1")).data == b"first", subject
