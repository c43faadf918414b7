"""Operators' view of streams: admin API, command line, metrics, monitor, definitions, verify."""

import asyncio
import base64
import json
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nats.js import api

from harness.admin import Answer, ask, read
from harness.deadline import DEADLINE_S, wait_for
from harness.imori import BINARY, Imori, running_imori
from harness.monitor import asked, metric, page
from harness.nats.behaviour import IMORI
from harness.nats.broker import LAME_DUCK_SIGNAL, NatsBroker
from harness.nats.jetstream import Session, session

pytestmark = pytest.mark.skipif(
    os.environ.get("BROKER") is not None, reason="operators look at Imori"
)

# Enough bodies of a kilobyte for several pages on disk, with the smallest memory of a queue.
MANY = 200
SMALL_MEMORY = {"limits.queue_memory_bytes": "16KiB"}


@pytest.fixture
def imori(tmp_path: Path) -> Iterator[Imori]:
    """A broker for NATS and operators, whose queues keep little in memory."""
    with running_imori(
        tmp_path, settings=SMALL_MEMORY, admin=True, nats=True, monitor=True
    ) as imori:
        yield imori


def with_session(imori: Imori, body: Callable[[Session], Awaitable[None]], name: str) -> None:
    """Runs a coroutine function with a session on the broker."""

    async def run() -> None:
        assert imori.nats is not None
        broker = NatsBroker(*imori.nats, IMORI, imori.process, LAME_DUCK_SIGNAL)
        async with session(broker, name) as opened:
            await body(opened)

    asyncio.run(run())


async def fill_ponds(run: Session) -> None:
    """Makes a stream of five messages on two subjects, and a consumer that is behind."""
    await run.add(max_msgs=100)
    await run.publish("north", "one newt")
    await run.js.publish(run.subject("south"), b"\xff", headers={"colour": "red"})
    await run.publish("north", "two newts", "three newts", "four newts")
    reader = await run.consumer("counter", filter_subject=run.subject("north"))
    first, _ = await reader.fetch(2, timeout=DEADLINE_S)
    await first.ack_sync()


def fill_many(imori: Imori) -> None:
    """Makes a stream `many` with more messages than memory."""

    async def fill(run: Session) -> None:
        await run.add()
        for number in range(MANY):
            await run.js.publish(run.subject(f"n{number % 2}"), f"{number:1000}".encode())

    with_session(imori, fill, "many")


def send(imori: Imori, method: str, path: str) -> Answer:
    return ask(imori, f"/v1/streams/%2F{path}", method=method)


def run(imori: Imori, *arguments: str) -> tuple[int, str, str]:
    """Runs `imori stream`; returns its exit code and its output."""
    assert imori.admin is not None
    host, port = imori.admin
    command = [BINARY, "stream", *arguments, "--admin", f"http://{host}:{port}"]
    command += ["--data-dir", str(imori.log.parent / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    return done.returncode, done.stdout, done.stderr


def test_streams_are_listed_and_shown(imori: Imori) -> None:
    with_session(imori, fill_ponds, "ponds")
    rows = read(imori, "/v1/streams/%2F")
    assert (rows["total"], [row["name"] for row in rows["items"]]) == (1, ["ponds"])
    assert read(imori, "/v1/streams?name=pond")["matching"] == 1
    assert read(imori, "/v1/streams?name=lake")["matching"] == 0
    shown = read(imori, "/v1/streams/%2F/ponds")
    facts = {name: shown[name] for name in ("subjects", "storage", "level", "retention")}
    assert facts == {
        "subjects": ["ponds.>"],
        "storage": "file",
        "level": "disk",
        "retention": "limits",
    }
    assert shown["limits"]["messages"] == 100
    state = shown["state"]
    counted = ("messages", "first_sequence", "last_sequence", "subjects", "deleted", "consumers")
    assert [state[name] for name in counted] == [5, 1, 5, 2, 0, 1]
    assert shown["created_at"] <= state["first_at"] <= state["last_at"]
    assert shown["configuration"]["name"] == "ponds"
    (consumer,) = shown["consumers"]
    facts_of = ("name", "kind", "pending", "ack_pending", "redelivered", "waiting_pulls", "durable")
    assert [consumer[name] for name in facts_of] == ["counter", "pull", 2, 1, 0, 0, True]
    assert consumer["filters"] == ["ponds.north"]
    # The message before the next one that is not acknowledged.
    assert consumer["ack_floor"]["sequence"] == 2
    assert consumer["delivered"]["sequence"] == 3
    assert "consumers" not in rows["items"][0]


def test_queues_and_streams_agree(imori: Imori) -> None:
    with_session(imori, fill_ponds, "ponds")
    row = read(imori, "/api/queues/%2F/ponds")
    counted = ("type", "messages", "messages_ready", "messages_unacknowledged", "consumers")
    assert [row[name] for name in counted] == ["stream", 5, 5, 0, 1]
    stats = row["message_stats"]
    assert [stats[name] for name in ("publish", "deliver", "ack", "redeliver")] == [5, 2, 1, 0]
    refused = ask(imori, "/api/queues/%2F/ponds?if-unused=true", method="DELETE")
    assert refused.status == 400, refused


def test_messages_are_read_in_memory_and_on_disk(imori: Imori) -> None:
    with_session(imori, fill_ponds, "ponds")
    message = read(imori, "/v1/streams/%2F/ponds/messages/2")
    assert (message["sequence"], message["subject"]) == (2, "ponds.south")
    assert base64.b64decode(message["body"]) == b"\xff"
    assert message["headers"] == {"colour": "red"}
    assert send(imori, "GET", "/ponds/messages/6").status == 404
    assert send(imori, "GET", "/ponds/messages/x").status == 400
    north = read(imori, "/v1/streams/%2F/ponds/messages?subject=ponds.north&from=2&count=2")
    assert [message["sequence"] for message in north["messages"]] == [3, 4]
    assert north["next_from"] == 5
    fill_many(imori)
    sequences: list[int] = []
    following: int | None = 0
    while following is not None:
        path = f"/v1/streams/%2F/many/messages?count=64&from={following}&subject=many.n1"
        found = read(imori, path)
        for message in found["messages"]:
            number = int(base64.b64decode(message["body"]))
            assert (number + 1, message["subject"]) == (message["sequence"], "many.n1")
        sequences += [message["sequence"] for message in found["messages"]]
        following = found["next_from"]
    assert sequences == list(range(2, MANY + 1, 2))
    for sequence in (1, 17, MANY):
        message = read(imori, f"/v1/streams/%2F/many/messages/{sequence}")
        assert int(base64.b64decode(message["body"])) == sequence - 1


def test_messages_are_deleted_and_purged(imori: Imori) -> None:
    fill_many(imori)
    assert send(imori, "DELETE", "/many/messages/3").status == 204
    assert send(imori, "DELETE", "/many/messages/3").status == 404
    assert send(imori, "GET", "/many/messages/3").status == 404
    for query, expected in (
        ("subject=many.n1&sequence=11&dry_run=true", 5),
        ("subject=many.n1&sequence=11", 5),
        ("subject=many.n0&keep=1&dry_run=true", MANY // 2 - 2),
        ("subject=many.n0&keep=1", MANY // 2 - 2),
        ("keep=10", MANY // 2 - 5 + 1 - 10),
        ("dry_run=true", 10),
        ("", 10),
    ):
        answer = send(imori, "POST", f"/many/purge?{query}")
        expected_answer = {"dry_run": "dry_run" in query, "messages": expected}
        assert answer.json() == expected_answer, (query, answer)
    state = read(imori, "/v1/streams/%2F/many")["state"]
    assert (state["messages"], state["last_sequence"], state["first_at"]) == (0, MANY, None)
    assert send(imori, "POST", "/many/purge?keep=1&sequence=1").status == 400
    assert send(imori, "POST", "/many/purge?subject=a..b").status == 400
    assert send(imori, "POST", "/none/purge").status == 404


def test_a_stream_that_denies_it_keeps_its_messages(imori: Imori) -> None:
    async def fill(run: Session) -> None:
        await run.add(deny_delete=True, deny_purge=True)
        await run.publish("a", "kept")

    with_session(imori, fill, "kept")
    for method, path in (("DELETE", "/kept/messages/1"), ("POST", "/kept/purge")):
        answer = send(imori, method, path)
        assert answer.status == 409, answer
        assert "forbids" in answer.json()["detail"]
    purged = ask(imori, "/api/queues/%2F/kept/contents", method="DELETE")
    assert purged.status == 400, purged
    assert read(imori, "/v1/streams/%2F/kept")["state"]["messages"] == 1
    assert send(imori, "DELETE", "/kept?dry_run=true").json()["messages"] == 1
    assert send(imori, "DELETE", "/kept").json() == {"dry_run": False, "messages": 1}
    assert send(imori, "GET", "/kept").status == 404


def test_a_deletion_ends_requests_that_wait(imori: Imori) -> None:
    async def wait(run: Session) -> None:
        await run.add()
        await run.consumer()
        waiting = asyncio.create_task(run.pull(batch=1, expires=60_000_000_000))
        while True:
            info = await run.js.consumer_info(run.name, "reader")
            if info.num_waiting:
                break
        answer = await asyncio.to_thread(send, imori, "DELETE", "/waited")
        assert answer.status == 200, answer
        assert await waiting == ["409 Consumer Deleted"]

    with_session(imori, wait, "waited")


def test_rights_to_streams_are_those_to_queues(imori: Imori) -> None:
    with_session(imori, fill_ponds, "ponds")
    for user, rights in (
        ("reader", {"configure": "", "write": "", "read": "ponds"}),
        ("maker", {"configure": "ponds", "write": "", "read": ""}),
        ("plain", None),
    ):
        tags = "management" if rights else ""
        body = {"password": "secret", "tags": tags}
        assert ask(imori, f"/api/users/{user}", method="PUT", body=body).status == 201
        if rights:
            path = f"/api/permissions/%2F/{user}"
            assert ask(imori, path, method="PUT", body=rights).status == 201
    for method, path, reader, maker in (
        ("GET", "", 200, 200),
        ("GET", "/ponds", 200, 200),
        ("GET", "/ponds/messages", 200, 403),
        ("GET", "/ponds/messages/1", 200, 403),
        ("DELETE", "/ponds/messages/1", 204, 403),
        ("POST", "/ponds/purge", 200, 403),
        ("DELETE", "/ponds", 403, 200),
    ):
        for user, expected in (("plain", 403), ("reader", reader), ("maker", maker)):
            where = f"/v1/streams/%2F{path}"
            answer = ask(imori, where, method=method, login=f"{user}:secret")
            assert answer.status == expected, (user, method, path, answer)


def test_the_command_line_shows_and_changes_streams(imori: Imori) -> None:
    with_session(imori, fill_ponds, "ponds")
    code, listed, _ = run(imori, "ls")
    head, row = (line.split() for line in listed.splitlines())
    assert (code, head[:3], row[:3]) == (0, ["VHOST", "NAME", "MESSAGES"], ["/", "ponds", "5"])
    code, shown, _ = run(imori, "info", "ponds")
    assert code == 0
    for line in (
        "stream: ponds in vhost /",
        "subjects: ponds.>",
        "storage: file, confirmed at level disk",
        "limits: messages 100",
        "messages: 5",
        "sequences: 1 to 5",
    ):
        assert line in shown.splitlines(), shown
    assert shown.splitlines()[-1].split()[:4] == ["counter", "pull", "2", "1"]
    code, shown, _ = run(imori, "info", "ponds", "--json")
    assert json.loads(shown)["state"]["messages"] == 5
    code, got, _ = run(imori, "get", "ponds", "1")
    assert (code, got.splitlines()[0].split()[:2]) == (0, ["#1", "ponds.north"])
    assert got.splitlines()[-1] == "  one newt"
    code, got, _ = run(imori, "get", "ponds", "2", "--count", "9", "--json")
    assert [message["sequence"] for message in json.loads(got)] == [2, 3, 4, 5]
    code, _, error = run(imori, "get", "ponds", "9")
    assert (code, "there is no message `9`" in error) == (1, True), error
    assert run(imori, "rm", "ponds", "--message", "5")[0] == 0
    code, purged, _ = run(imori, "purge", "ponds", "--subject", "ponds.north", "--keep", "1")
    assert purged == "2 messages of stream `ponds` in vhost `/` are gone\n"
    code, dry, _ = run(imori, "rm", "ponds", "--dry-run")
    assert dry == "2 messages of stream `ponds` in vhost `/` would go\n"
    assert run(imori, "rm", "ponds")[0] == 0
    code, _, error = run(imori, "info", "ponds")
    assert (code, "there is no stream `ponds`" in error) == (1, True), error


def test_metrics_have_streams_and_consumers(imori: Imori) -> None:
    with_session(imori, fill_ponds, "ponds")
    of_stream = '{vhost="/",stream="ponds"}'
    of_consumer = '{vhost="/",stream="ponds",consumer="counter"}'
    for name, expected in (
        ("imori_streams", 1),
        (f"imori_stream_messages{of_stream}", 5),
        (f"imori_stream_first_sequence{of_stream}", 1),
        (f"imori_stream_last_sequence{of_stream}", 5),
        (f"imori_stream_consumers{of_stream}", 1),
        (f"imori_stream_consumer_pending{of_consumer}", 2),
        (f"imori_stream_consumer_ack_pending{of_consumer}", 1),
        (f"imori_stream_consumer_redelivered{of_consumer}", 0),
    ):
        assert metric(imori, name) == expected, name
    assert metric(imori, f"imori_stream_bytes{of_stream}") > 0
    path = "/metrics/detailed?family=stream_metrics&family=stream_consumer_metrics"
    detailed = ask(imori, path).body
    assert f"imori_stream_messages{of_stream} 5" in detailed
    assert f"imori_stream_consumer_pending{of_consumer} 2" in detailed
    assert "rabbitmq_detailed_queue" not in detailed


def test_the_monitor_answers_as_nats_server_does(imori: Imori) -> None:
    with_session(imori, fill_ponds, "ponds")
    sums = page(imori, "/jsz")
    assert "account_details" not in sums
    counted = ("streams", "consumers", "messages", "accounts", "total")
    assert [sums[name] for name in counted] == [1, 1, 5, 1, 1]
    assert sums["storage"] == sums["bytes"] > 0
    assert sums["memory"] == 0
    assert sums["config"]["max_memory"] > 0
    (account,) = page(imori, "/jsz?accounts=1")["account_details"]
    assert (account["name"], "stream_detail" in account) == ("/", False)
    (account,) = page(imori, "/jsz?acc=%2F&streams=1")["account_details"]
    (detail,) = account["stream_detail"]
    assert "config" not in detail
    assert "consumer_detail" not in detail
    assert (detail["name"], detail["state"]["last_seq"]) == ("ponds", 5)
    (account,) = page(imori, "/jsz?consumers=1&config=1")["account_details"]
    (detail,) = account["stream_detail"]
    assert detail["config"]["subjects"] == ["ponds.>"]
    (consumer,) = detail["consumer_detail"]
    assert (consumer["name"], consumer["num_pending"]) == ("counter", 2)
    assert consumer["config"]["durable_name"] == "counter"
    assert asked(imori, "/jsz?streams=x")[0] == 400
    varz = page(imori, "/varz")["jetstream"]
    assert varz["stats"]["storage"] == sums["storage"]
    for path, expected in (
        ("js-enabled-only=1", 200),
        ("account=%2F&stream=ponds&consumer=counter", 200),
        ("account=%2F&stream=lakes", 404),
        ("account=%2F&stream=ponds&consumer=none", 404),
        ("account=none", 404),
        ("stream=ponds", 400),
        ("account=%2F&stream=lakes&js-enabled-only=1", 200),
    ):
        status, body = asked(imori, f"/healthz?{path}")
        assert status == expected, (path, body)


def test_requests_to_the_api_are_counted(imori: Imori) -> None:
    async def count(run: Session) -> None:
        async def counted() -> tuple[int, int]:
            api_stats = (await run.request("INFO"))["api"]
            assert api_stats["level"] >= 1
            return api_stats["total"], api_stats["errors"]

        assert await counted() == (0, 0)
        await run.request("STREAM.INFO.none")
        assert await counted() == (2, 1)
        await run.add()
        await run.consumer()
        total, errors = await counted()
        assert await run.pull(batch=1, no_wait=True) == ["404 No Messages"]
        assert await counted() == (total + 1, errors)

    with_session(imori, count, "counted")
    api_stats = page(imori, "/jsz")["api"]
    assert api_stats["total"] == metric(imori, "imori_stream_api_requests_total")
    assert api_stats["errors"] == metric(imori, "imori_stream_api_errors_total") == 1


def test_definitions_carry_streams_with_durable_consumers(imori: Imori, tmp_path: Path) -> None:
    async def make(run: Session) -> None:
        await fill_ponds(run)
        await run.js.add_stream(
            name="jobs", subjects=["jobs.*"], retention=api.RetentionPolicy.WORK_QUEUE
        )
        await run.consumer("ephemeral", inactive_threshold=60)
        config = api.ConsumerConfig(durable_name="pusher", deliver_subject="pushed", max_deliver=3)
        await run.js.add_consumer("ponds", config)

    with_session(imori, make, "ponds")
    binding = "/api/bindings/%2F/e/amq.direct/q/ponds"
    assert ask(imori, binding, method="POST", body={"routing_key": "k"}).status == 201
    document = read(imori, "/api/definitions")
    assert [stream["name"] for stream in document["streams"]] == ["jobs", "ponds"]
    assert document["queues"] == []
    assert [binding["source"] for binding in document["bindings"]] == ["amq.direct"]
    ponds = document["streams"][1]
    assert ponds["configuration"]["max_msgs"] == 100
    names = [consumer["durable_name"] for consumer in ponds["consumers"]]
    assert names == ["counter", "ephemeral", "pusher"]
    # The same broker takes its own document again.
    assert ask(imori, "/api/definitions", method="POST", body=document).status == 204
    with running_imori(tmp_path / "other", admin=True, nats=True) as other:
        answer = ask(other, "/api/definitions", method="POST", body=document)
        assert answer.status == 204, answer
        assert read(other, "/api/definitions")["streams"] == document["streams"]
        assert read(other, "/api/definitions")["bindings"] == document["bindings"]

        async def use(run: Session) -> None:
            assert await run.publish("north", "moved") == [1]
            assert await run.pull("counter", batch=1) == ["moved"]

        with_session(other, use, "ponds")
        (one,) = read(other, "/api/definitions/%2F")["streams"][:1]
        assert set(one) == {"name", "configuration", "consumers"}
        for change, said in (
            ({"max_msgs": 7}, "another configuration"),
            ({"mirror": {"name": "jobs"}}, "mirror"),
            ({"bogus": 1}, "bogus"),
        ):
            changed = {**ponds, "configuration": ponds["configuration"] | change}
            body = {"streams": [changed]}
            answer = ask(other, "/api/definitions", method="POST", body=body)
            assert answer.status == 400, answer
            assert said in answer.body
            assert "stream `ponds` in vhost `/`" in answer.body
        overlap = {"name": "lakes", "vhost": "/", "configuration": {"name": "lakes"}}
        overlap["configuration"] = {"name": "lakes", "subjects": ["ponds.north"]}
        answer = ask(other, "/api/definitions", method="POST", body={"streams": [overlap]})
        assert (answer.status, "overlap" in answer.body) == (400, True), answer


def test_verify_lists_streams(tmp_path: Path) -> None:
    with running_imori(tmp_path, settings=SMALL_MEMORY, admin=True, nats=True) as imori:
        fill_many(imori)
        with_session(imori, fill_ponds, "ponds")
        assert send(imori, "DELETE", "/ponds/messages/5").status == 204
        wait_for(lambda: any((tmp_path / "data/segments").iterdir()))
        assert imori.stop() == 0
    command = [BINARY, "verify", "--data-dir", str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done
    lines = [line for line in done.stdout.splitlines() if line.startswith("stream ")]
    many, ponds = sorted(lines)
    assert many.startswith("stream many: ")
    assert " messages in " in many
    assert "5 in the journal, 1 to 5; 1 removed since; 1 consumers" in ponds, done.stdout


def test_a_document_without_streams_has_an_empty_list(imori: Imori) -> None:
    document: dict[str, Any] = read(imori, "/api/definitions")
    assert document["streams"] == []


def test_operators_back_streams_up_and_restore_them(imori: Imori, tmp_path: Path) -> None:
    fill_many(imori)

    async def leave_a_gap(opened: Session) -> None:
        await opened.js.delete_msg("many", 3)
        reader = await opened.consumer("counter")
        for message in await reader.fetch(2, timeout=DEADLINE_S):
            await message.ack_sync()

    with_session(imori, leave_a_gap, "many")
    before = read(imori, "/v1/streams/%2F/many")
    last = read(imori, f"/v1/streams/%2F/many/messages/{MANY}")
    for place in ("folder/", "file"):
        path = f"{tmp_path}/{place}"
        code, said, error = run(imori, "backup", "many", path)
        assert (code, error) == (0, ""), error
        assert said.startswith("stream `many` in vhost `/` is in "), said
        code, _, error = run(imori, "restore", path)
        assert code != 0
        assert "there is a stream `many`; delete it first" in error
        assert run(imori, "rm", "many")[0] == 0
        assert run(imori, "restore", path) == (0, "stream `many` in vhost `/` is restored\n", "")
        after = read(imori, "/v1/streams/%2F/many")
        for part in ("configuration", "limits", "subjects"):
            assert after[part] == before[part], part
        assert {**after["state"], "last_at": 0} == {**before["state"], "last_at": 0}
        (old,), (new,) = before["consumers"], after["consumers"]
        assert new["pending"] == old["pending"] == MANY - 3
        assert new["created_at"] == old["created_at"]
        for position in ("delivered", "ack_floor"):
            assert {**new[position], "at": 0} == {**old[position], "at": 0}
        restored = read(imori, f"/v1/streams/%2F/many/messages/{MANY}")
        for part in ("sequence", "subject", "stored_at", "headers", "body"):
            assert restored[part] == last[part], part
    facts = json.loads((tmp_path / "folder/backup.json").read_text())
    assert (facts["config"]["name"], facts["state"]["last_seq"]) == ("many", MANY)
    assert (tmp_path / "folder/stream.arc.s2").exists()
    whole = (tmp_path / "file").read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    assert run(imori, "rm", "many")[0] == 0
    code, _, error = run(imori, "restore", f"{tmp_path}/half")
    assert code != 0
    assert "backup was truncated" in error
    assert send(imori, "GET", "many").status == 404
