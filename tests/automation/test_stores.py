"""The automation on both stores: a file, and a PostgreSQL server that may fail."""

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.admin import ready
from harness.automation import Automation, Start, running_automation
from harness.deadline import wait_for
from harness.imori import BINARY, REPOSITORY
from harness.postgres import INSTALLED, PostgresServer, running_postgres

needs_postgres = pytest.mark.skipif(not INSTALLED, reason="postgresql is not installed")

CHAIN = """
chain:
- name: first
  ref: core.local
  parameters: {cmd: echo one}
  publish: {said: "{{ first.stdout }}"}
  on-success: second
- name: second
  ref: core.local
  parameters: {cmd: "sleep 1; echo {{ said }} two"}
  on-success: last
- {name: last, ref: core.local, parameters: {cmd: "seq 1 20000"}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One server for all tests."""
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs_postgres)])
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings of a broker with an empty store of each kind."""
    if request.param == "sqlite":
        return {}
    server: PostgresServer = request.getfixturevalue("server")
    return {"automation.store": server.url(server.database())}


def hook(automation: Automation, url: str, command: str) -> None:
    """A rule that runs a command for each request to a webhook."""
    automation.rule(
        name=url,
        trigger={
            "type": "core.st2.webhook",
            "parameters": {"url": url, "delivery_header": "X-Number"},
        },
        action={"ref": "core.local", "parameters": {"cmd": command}},
    )


def send(automation: Automation, url: str, number: int) -> int:
    """Sends a delivery of this number; returns the status of the answer."""
    headers = {"X-Number": str(number)}
    return automation.ask("POST", f"/v1/webhooks/{url}", {"number": number}, headers).status


def kill(automation: Automation) -> None:
    """Ends a broker as a crash does."""
    automation.imori.process.send_signal(signal.SIGKILL)
    automation.imori.process.wait()


def fsck(automation: Automation, settings: dict[str, str]) -> str:
    """What the check of the store prints."""
    data = automation.imori.log.parent / "data"
    command = [BINARY, "automate", "fsck", "--data-dir", str(data)]
    environment = {**os.environ, "IMORI__AUTOMATION__STORE": settings.get("automation.store", "")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()


def test_events_keys_and_results_outlive_a_broker_that_is_killed(
    start: Start, settings: dict[str, str]
) -> None:
    first = start(settings=settings)
    hook(first, "orders", "echo order {{ trigger.body.number }} {{ st2kv.system.mood }}")
    assert first.ask("PUT", "/v1/keys/mood", {"name": "mood", "value": "fine"}).status == 200
    assert send(first, "orders", 1) == 202
    (execution,) = first.executions(rule="default.orders")
    assert first.ended(execution["id"])["result"]["stdout"] == "order 1 fine"
    long = first.run("core.local", cmd="seq 1 20000")
    kill(first)
    second = start(settings=settings)
    assert send(second, "orders", 1) == 202
    assert send(second, "orders", 2) == 202
    wait_for(lambda: len(second.executions(rule="default.orders", status="succeeded")) == 2)
    found = second.get(f"/v1/executions/{long['id']}")
    assert found["result"] == long["result"]
    assert len(found["result"]["stdout"]) > 100_000
    shown = second.get("/v1/executions?limit=2&sort=-start_timestamp&exclude_attributes=result")
    assert len(shown) == 2
    assert second.get("/v1/keys?prefix=mo")[0]["value"] == "fine"
    assert fsck(second, settings) == "nothing is wrong"


def test_a_workflow_goes_on_after_a_broker_that_is_killed(
    start: Start, settings: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "data" / "automation" / "packs" / "flows" / "actions"
    (folder / "chains").mkdir(parents=True)
    about = "description: x\nversion: 1.0.0\nauthor: a\nemail: a@example.com\n"
    (folder.parent / "pack.yaml").write_text(f"name: flows\n{about}")
    (folder / "chains" / "flow.yaml").write_text(CHAIN)
    (folder / "flow.yaml").write_text(
        "name: flow\nrunner_type: action-chain\nentry_point: chains/flow.yaml\nenabled: true\n"
    )
    first = start(settings=settings)
    body = {"action": "flows.flow", "parameters": {}}
    execution = first.ask("POST", "/v1/executions", body).body["id"]
    children = f"/v1/executions?parent={execution}&limit=100"
    wait_for(lambda: any(child["status"] == "succeeded" for child in first.get(children)))
    kill(first)
    second = start(settings=settings)
    assert second.ended(execution)["status"] == "succeeded"
    assert len(second.get(children)) == 3
    assert fsck(second, settings) == "nothing is wrong"


@needs_postgres
def test_events_during_a_crash_of_the_server_happen_once(
    start: Start, server: PostgresServer, tmp_path: Path
) -> None:
    database = server.database()
    settings = {"automation.store": server.url(database)}
    automation = start(settings=settings, admin=True)
    lines = tmp_path / "lines"
    hook(automation, "counted", f"echo {{{{ trigger.body.number }}}} >> {lines}")
    body = {"action": "core.local", "parameters": {"cmd": "sleep 1; echo slept"}}
    running = automation.ask("POST", "/v1/executions", body).body["id"]
    with ThreadPoolExecutor(4) as senders:
        sent = [senders.submit(send, automation, "counted", number) for number in range(100)]
        sent[30].result()
        server.crash()
        wait_for(lambda: ready(automation.imori, "?part=automation") == 503)
        assert ready(automation.imori) == 200
        server.start()
        assert {answer.result() for answer in sent} <= {202, 503}
    # A source sends again what was not accepted, and sometimes what was.
    for number in range(100):
        wait_for(lambda number=number: send(automation, "counted", number) == 202)  # type: ignore[misc]
    ended = (
        "SELECT count(*) FROM executions WHERE rule = 'default.counted' AND status = 'succeeded'"
    )
    wait_for(lambda: server.sql(ended, database) == "100")
    assert sorted(map(int, lines.read_text().split())) == list(range(100))
    assert automation.ended(running)["result"]["stdout"] == "slept"
    wait_for(lambda: ready(automation.imori, "?part=automation") == 200)
    log = automation.imori.log.read_text()
    assert "the automation has reached its store" in log
    assert server.password not in log
    assert fsck(automation, settings) == "nothing is wrong"


@needs_postgres
def test_a_broker_waits_for_another_broker_whose_store_it_adopts(
    server: PostgresServer, tmp_path: Path
) -> None:
    settings = {"automation.store": server.url(server.database())}
    with running_automation(tmp_path / "first", settings=settings) as first:
        hook(first, "shared", "echo {{ trigger.body.number }}")
        with running_automation(tmp_path / "second", settings=settings, waits=False) as second:
            wait_for(lambda: "the definitions do not know" in second.imori.log.read_text())
            assert send(second, "shared", 1) == 503
            with ThreadPoolExecutor(1) as adopting:
                adopted = adopting.submit(second.ask, "POST", "/v1/imori/store/adopt", {})
                wait_for(lambda: "another broker uses this store" in second.imori.log.read_text())
                assert send(first, "shared", 1) == 202
                kill(first)
                assert adopted.result().status == 200
            wait_for(lambda: send(second, "shared", 2) == 202)
            wait_for(lambda: len(second.executions(rule="default.shared", status="succeeded")) == 2)


@needs_postgres
def test_the_password_is_shown_nowhere(server: PostgresServer) -> None:
    url = server.url("postgres")
    environment = {**os.environ, "IMORI__AUTOMATION__STORE": url}
    shown = subprocess.run(
        [BINARY, "config", "show"], env=environment, capture_output=True, text=True, check=True
    )
    assert "postgres://imori:***@127.0.0.1" in shown.stdout
    assert server.password not in shown.stdout + shown.stderr
    wrong = {**os.environ, "IMORI__AUTOMATION__STORE": url.replace("postgres://", "mysql://")}
    refused = subprocess.run(
        [BINARY, "config", "show"], env=wrong, capture_output=True, text=True, check=False
    )
    assert "automation.store" in refused.stderr
    assert server.password not in refused.stderr


@needs_postgres
def test_the_units_of_the_store_pass_on_a_server(server: PostgresServer) -> None:
    """Runs what `cargo test` has built, where it is built."""
    main = "crates/imori-engine/tests/it/main.rs"
    listed = (REPOSITORY / "target/debug/deps").glob("it-*.d")
    built = [path.with_suffix("") for path in listed if main in path.read_text()]
    tests = sorted((path for path in built if path.exists()), key=os.path.getmtime)
    if not tests:
        pytest.skip("`cargo test -p imori-engine --test it` has built nothing")
    environment = {**os.environ, "IMORI_TEST_POSTGRES": server.url(server.database())}
    done = subprocess.run(
        [tests[-1], "store::", "store_server::", "retention::"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("... ok") == 23, done.stdout
