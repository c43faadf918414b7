"""Policies of actions, and notifications of what has ended."""

import json
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

from harness.automation import Automation, Start
from harness.deadline import wait_for

NOTIFY = "core.st2.generic.notifytrigger"

PACK = "name: limited\ndescription: d\nversion: 1.0.0\nauthor: a\nemail: a@example.com\n"

WAITS = "touch {path}.began; while [ ! -e {path} ]; do sleep 0.02; done"


def kill(automation: Automation) -> None:
    """Ends the broker at once."""
    automation.imori.process.send_signal(signal.SIGKILL)
    automation.imori.process.wait()


def action(automation: Automation, name: str, **more: object) -> str:
    """Creates an action that runs a command, and returns its reference."""
    body = {"name": name, "pack": "default", "runner_type": "local-shell-cmd", **more}
    answer = automation.ask("POST", "/v1/actions", body)
    assert answer.status == 201, answer
    reference: str = answer.body["ref"]
    return reference


def policy(automation: Automation, action: str, kind: str, /, **parameters: object) -> str:
    """Creates a policy of an action, and returns its reference."""
    body = {
        "name": f"{action}.{kind}",
        "resource_ref": action,
        "policy_type": f"action.{kind}",
        "parameters": parameters,
    }
    answer = automation.ask("POST", "/v1/policies", body)
    assert answer.status == 201, answer
    reference: str = answer.body["ref"]
    return reference


def request(automation: Automation, action: str, **parameters: object) -> str:
    """Requests an execution, and returns its id."""
    body = {"action": action, "parameters": parameters}
    answer = automation.ask("POST", "/v1/executions", body)
    assert answer.status == 201, answer
    execution: str = answer.body["id"]
    return execution


def status(automation: Automation, execution: str) -> str:
    """The status of an execution."""
    found: str = automation.get(f"/v1/executions/{execution}")["status"]
    return found


def statuses(automation: Automation, action: str) -> list[str]:
    """The statuses of the executions of an action, oldest first."""
    return [execution["status"] for execution in automation.executions(action=action)]


def reached(automation: Automation, execution: str, wanted: str) -> None:
    """Waits until an execution has a status."""
    wait_for(lambda: status(automation, execution) == wanted)


def test_a_failed_execution_runs_again_until_it_succeeds(
    automation: Automation, tmp_path: Path
) -> None:
    flaky = action(automation, "flaky")
    applied = policy(automation, flaky, "retry", retry_on="failure", max_retry_count=5)
    tries = tmp_path / "tries"
    first = automation.run(flaky, cmd=f"echo . >> {tries}; test $(wc -l < {tries}) = 3")
    assert first["status"] == "failed"
    wait_for(lambda: statuses(automation, flaky) == ["failed", "failed", "succeeded"])
    executions = automation.executions(action=flaky)
    assert "policies" not in executions[0]["context"]
    for before, (count, retry) in zip(executions, enumerate(executions[1:], 1), strict=False):
        assert retry["context"]["policies"]["retry"] == {
            "applied_policy": applied,
            "retry_count": count,
            "retried_liveaction_id": before["id"],
        }
        assert retry["parameters"] == first["parameters"]


def test_retries_end_with_their_number(automation: Automation) -> None:
    failing = action(automation, "failing")
    again = policy(automation, failing, "retry", retry_on="failure", max_retry_count=2)
    automation.run(failing, cmd="exit 1")
    # A retry is stored with the end of the execution that failed.
    wait_for(lambda: statuses(automation, failing) == ["failed"] * 3)
    body = automation.get(f"/v1/policies/{again}") | {
        "parameters": {"retry_on": "timeout", "max_retry_count": 1}
    }
    assert automation.ask("PUT", f"/v1/policies/{again}", body).status == 200
    automation.run(failing, cmd="exit 1")
    assert statuses(automation, failing) == ["failed"] * 4
    automation.run(failing, cmd="sleep 60", timeout=1)
    wait_for(lambda: statuses(automation, failing)[4:] == ["timeout"] * 2)
    assert automation.ask("DELETE", f"/v1/policies/{again}").status == 204
    automation.run(failing, cmd="sleep 60", timeout=1)
    assert len(statuses(automation, failing)) == 7


def test_a_delayed_retry_survives_a_kill(start: Start) -> None:
    first = start()
    failing = action(first, "failing")
    policy(first, failing, "retry", retry_on="failure", max_retry_count=1, delay=2)
    began = time.monotonic()
    first.run(failing, cmd="exit 1")
    _, retry = first.executions(action=failing)
    kill(first)
    second = start()
    ended = second.ended(retry["id"])
    assert time.monotonic() - began >= 2
    assert ended["status"] == "failed"
    assert [entry["status"] for entry in ended["log"]][:2] == ["requested", "delayed"]
    assert statuses(second, failing) == ["failed", "failed"]


def test_an_execution_above_the_threshold_waits_also_after_a_kill(
    start: Start, tmp_path: Path
) -> None:
    first = start()
    single = action(first, "single")
    policy(first, single, "concurrency", threshold=1)
    paths = [tmp_path / f"go-{number}" for number in range(3)]
    running, delayed = (request(first, single, cmd=WAITS.format(path=path)) for path in paths[:2])
    reached(first, running, "running")
    reached(first, delayed, "delayed")
    canceled = request(first, single, cmd="true")
    reached(first, canceled, "delayed")
    assert first.ask("DELETE", f"/v1/executions/{canceled}").status == 200
    assert first.ended(canceled)["status"] == "canceled"
    # An action begins once its process is noted; one that a kill cuts off before is abandoned.
    wait_for((tmp_path / "go-0.began").exists)
    kill(first)
    second = start()
    # What is requested before the waiting executions are taken up may come before them.
    second.imori.await_log("the automation has started")
    last = request(second, single, cmd=WAITS.format(path=paths[2]))
    reached(second, last, "delayed")
    assert [status(second, one) for one in (running, delayed)] == ["running", "delayed"]
    paths[0].touch()
    assert second.ended(running)["status"] == "succeeded"
    reached(second, delayed, "running")
    assert status(second, last) == "delayed"
    paths[1].touch()
    paths[2].touch()
    assert second.ended(last)["status"] == "succeeded"
    log = [entry["status"] for entry in second.get(f"/v1/executions/{last}")["log"]]
    assert log == ["requested", "delayed", "running", "succeeded"]
    other = action(second, "other")
    assert second.run(other, cmd="true")["status"] == "succeeded"


def test_an_execution_above_the_threshold_is_canceled(
    automation: Automation, tmp_path: Path
) -> None:
    single = action(automation, "canceling")
    running = request(automation, single, cmd=WAITS.format(path=tmp_path / "go"))
    reached(automation, running, "running")
    # A new policy counts what runs already.
    applied = policy(automation, single, "concurrency", threshold=1, action="cancel")
    canceled = automation.run(single, cmd="true")
    assert canceled["status"] == "canceled"
    assert canceled["result"]["message"].startswith(f"canceled by policy `{applied}`")
    (tmp_path / "go").touch()
    automation.ended(running)
    assert automation.run(single, cmd="true")["status"] == "succeeded"


def test_executions_are_counted_by_their_attributes(automation: Automation, tmp_path: Path) -> None:
    hosts = action(automation, "hosts", parameters={"host": {"type": "string"}})
    policy(automation, hosts, "concurrency.attr", threshold=1, attributes=["host"])
    waits = WAITS.format(path=tmp_path / "go")
    running = request(automation, hosts, host="a", cmd=waits)
    reached(automation, running, "running")
    delayed = request(automation, hosts, host="a", cmd="true")
    reached(automation, delayed, "delayed")
    assert automation.run(hosts, host="b", cmd="true")["status"] == "succeeded"
    assert automation.run(hosts, cmd="true")["status"] == "succeeded"
    (tmp_path / "go").touch()
    assert automation.ended(delayed)["status"] == "succeeded"


def test_a_disabled_policy_lets_waiting_executions_run(
    automation: Automation, tmp_path: Path
) -> None:
    single = action(automation, "disabled")
    applied = policy(automation, single, "concurrency", threshold=0)
    delayed = request(automation, single, cmd="true")
    reached(automation, delayed, "delayed")
    body = automation.get(f"/v1/policies/{applied}") | {"enabled": False}
    assert automation.ask("PUT", f"/v1/policies/{applied}", body).body["enabled"] is False
    assert automation.ended(delayed)["status"] == "succeeded"


def pack(automation: Automation, files: dict[str, str]) -> None:
    """Registers the pack `limited` with these files."""
    folder = automation.imori.log.parent / "data" / "automation" / "packs" / "limited"
    for name, text in {"pack.yaml": PACK, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    answer = automation.ask("POST", "/v1/packs/register", {"packs": ["limited"]})
    assert answer.status == 200, answer


CHAIN = "name: chain\nrunner_type: action-chain\nenabled: true\nentry_point: chains/chain.yaml\n"
TASKS = """
chain:
- {name: waits, ref: limited.waits, on-success: after, on-failure: after}
- {name: after, ref: core.noop, notify: {on-complete: {routes: [task]}}}
"""
ACTION = """
name: waits
runner_type: local-shell-cmd
enabled: true
parameters: {cmd: {default: "while [ ! -e PATH ]; do sleep 0.02; done; exit 1"}}
"""
ONE = """
name: one
resource_ref: limited.chain
policy_type: action.concurrency
parameters: {threshold: 1}
"""
AGAIN = """
name: again
resource_ref: limited.waits
policy_type: action.retry
parameters: {retry_on: failure}
"""


def test_a_paused_workflow_counts_and_its_tasks_are_not_retried(
    start: Start, tmp_path: Path
) -> None:
    automation = start()
    files = {
        "actions/chain.yaml": CHAIN,
        "actions/chains/chain.yaml": TASKS,
        "actions/waits.yaml": ACTION.replace("PATH", str(tmp_path / "go")),
        "policies/one.yaml": ONE,
        "policies/again.yaml": AGAIN,
    }
    pack(automation, files)
    (one,) = automation.get("/v1/policies?resource_ref=limited.chain")
    assert (one["ref"], one["enabled"]) == ("limited.one", True)
    paused = request(automation, "limited.chain")
    wait_for(lambda: statuses(automation, "limited.waits") == ["running"])
    body = {"status": "pausing"}
    assert automation.ask("PUT", f"/v1/executions/{paused}", body).status == 200
    (tmp_path / "go").touch()
    reached(automation, paused, "paused")
    delayed = request(automation, "limited.chain")
    reached(automation, delayed, "delayed")
    kill(automation)
    automation = start()
    assert [status(automation, one) for one in (paused, delayed)] == ["paused", "delayed"]
    body = {"status": "resuming"}
    assert automation.ask("PUT", f"/v1/executions/{paused}", body).status == 200
    assert automation.ended(delayed)["status"] == "succeeded"
    assert status(automation, paused) == "succeeded"
    assert statuses(automation, "limited.waits") == ["failed", "failed"]


def test_a_policy_of_a_pack_stays_disabled(start: Start) -> None:
    first = start()
    pack(first, {"policies/one.yaml": ONE, "policies/again.yaml": AGAIN})
    again = first.get("/v1/policies/limited.again")
    assert again["parameters"] == {"retry_on": "failure", "max_retry_count": 2}
    disabled = first.ask("PUT", "/v1/policies/limited.again", again | {"enabled": False})
    assert disabled.body == again | {"enabled": False}
    first.ask("POST", "/v1/packs/register", {"packs": ["limited"]})
    assert first.get("/v1/policies/limited.again")["enabled"] is False
    assert first.imori.stop() == 0
    second = start()
    assert second.get("/v1/policies/limited.again")["enabled"] is False
    changed = again | {"parameters": {"retry_on": "timeout"}}
    for answer in [
        second.ask("PUT", "/v1/policies/limited.again", changed),
        second.ask("DELETE", "/v1/policies/limited.again"),
    ]:
        assert answer.status == 400
        assert "the folder of pack `limited`" in answer.body["faultstring"]


def test_policies_and_their_types_are_shown_as_by_stackstorm(automation: Automation) -> None:
    types = automation.get("/v1/policytypes?resource_type=action")
    references = [f"action.{name}" for name in ["concurrency", "concurrency.attr", "retry"]]
    assert [shown["ref"] for shown in types] == references
    assert automation.get("/v1/policytypes/action.retry") == types[2]
    assert automation.get(f"/v1/policytypes/{types[2]['id']}") == types[2]
    assert automation.ask("GET", "/v1/policytypes/action.fly").status == 404
    shown = policy(automation, "some.action", "retry", retry_on="failure", delay=0.5)
    (found,) = automation.get("/v1/policies?resource_ref=some.action&policy_type=action.retry")
    assert found == {
        "id": found["id"],
        "name": "some.action.retry",
        "pack": "default",
        "ref": shown,
        "uid": "policy:default:some.action.retry",
        "description": None,
        "enabled": True,
        "resource_ref": "some.action",
        "policy_type": "action.retry",
        "parameters": {"retry_on": "failure", "delay": 0.5, "max_retry_count": 2},
        "metadata_file": "",
    }
    assert automation.get(f"/v1/policies/{found['id']}") == found
    renamed = automation.ask("PUT", f"/v1/policies/{shown}", found | {"name": "renamed"})
    assert renamed.body["ref"] == "default.renamed"
    assert automation.ask("GET", f"/v1/policies/{shown}").status == 404
    limit = {"threshold": 1}
    for body, code, reason in [
        ({"name": "x", "policy_type": "action.retry"}, 400, "key `resource_ref` is missing"),
        (found | {"policy_type": "action.fly"}, 400, "policy type `action.fly` is unknown"),
        (found | {"parameters": limit}, 400, "'threshold' was unexpected"),
        (found | {"name": "other"}, 409, "has the policy `default.renamed` of type"),
        (found | {"name": "renamed", "resource_ref": "a.b"}, 409, "exists already"),
    ]:
        answer = automation.ask("POST", "/v1/policies", body)
        assert answer.status == code, answer
        assert reason in answer.body["faultstring"]


def payloads(automation: Automation, execution: str) -> list[dict[str, Any]]:
    """The payloads of the notifications of an execution, by route and message."""
    found = automation.get(f"/v1/triggerinstances?trigger={NOTIFY}&limit=100")
    payloads = [one["payload"] for one in found if one["payload"]["execution_id"] == execution]
    return sorted(payloads, key=lambda payload: (payload["route"], payload["message"]))


def test_the_end_of_an_action_is_told_through_a_rule(automation: Automation) -> None:
    notify = {
        "on-complete": {"routes": ["people", "logs"]},
        "on-success": {
            "message": "{{ action_parameters.cmd }} of {{ action_context.user }} said "
            "{{ action_results.stdout }}",
            "data": {"code": "{{ action_results.return_code }}", "list": ["{{ 1 + 1 }}"]},
        },
        "on-failure": {"message": "{{ nothing.at.all }}", "channels": ["people"]},
    }
    loud = action(automation, "loud", notify=notify)
    automation.rule(
        name="tell",
        trigger={"type": NOTIFY},
        criteria={"trigger.route": {"type": "equals", "pattern": "people"}},
        action={
            "ref": "core.local",
            "parameters": {"cmd": "echo '{{ trigger.message }} {{ trigger.status }}'"},
        },
    )
    ended = automation.run(loud, cmd="echo 5")
    wait_for(lambda: len(payloads(automation, ended["id"])) == 3)
    logs, default, people = payloads(automation, ended["id"])
    assert people == logs | {"route": "people", "channel": "people"}
    assert people == {
        "message": "Action default.loud completed.",
        "data": {"result": people["data"]["result"]},
        "execution_id": ended["id"],
        "status": "succeeded",
        "start_timestamp": ended["start_timestamp"].replace("Z", "+00:00"),
        "end_timestamp": ended["end_timestamp"].replace("Z", "+00:00"),
        "action_ref": "default.loud",
        "runner_ref": "local-shell-cmd",
        "route": "people",
        "channel": "people",
    }
    assert default["message"] == "echo 5 of stanley said 5"
    assert default["route"] == "notify.default"
    assert (default["data"]["code"], default["data"]["list"]) == ("0", ["2"])
    assert '"return_code":0' in default["data"]["result"]
    wait_for(lambda: len(automation.executions(rule="default.tell")) == 1)
    (told,) = automation.executions(rule="default.tell")
    told = automation.ended(told["id"])
    assert told["result"]["stdout"] == "Action default.loud completed. succeeded"
    failed = automation.run(loud, cmd="exit 1")["id"]
    wait_for(lambda: len(payloads(automation, failed)) == 3)
    assert payloads(automation, failed)[2]["message"] == "{{ nothing.at.all }}"


def test_a_notification_that_a_crash_left_is_told_once(start: Start) -> None:
    automation = start()
    automation.rule(name="hear", trigger={"type": NOTIFY}, action={"ref": "core.noop"})
    ended = automation.run(action(automation, "silent"), cmd="true")["id"]
    notification = {"id": ended, "notify": {"on-success": {"routes": ["people"]}}}
    path = automation.imori.log.parent / "data/automation/state.db"
    for _ in range(2):
        assert automation.imori.stop() == 0
        with sqlite3.connect(path) as store:
            store.execute(
                "INSERT INTO notifications (id, body) VALUES (?, ?)",
                [ended, json.dumps(notification)],
            )
        automation = start()
        wait_for(lambda: not stored(path, "notifications"))
        assert len(payloads(automation, ended)) == 1
    assert len(automation.executions(rule="default.hear")) == 1


def stored(path: Path, collection: str) -> list[str]:
    """The ids of the documents of a collection."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
        return [row[0] for row in store.execute(f"SELECT id FROM {collection}")]


def test_a_chat_hears_of_the_end_of_its_command(automation: Automation) -> None:
    automation.rule(name="hear", trigger={"type": NOTIFY}, action={"ref": "core.noop"})
    spoken = action(automation, "spoken")
    alias = {"name": "say", "pack": "default", "action_ref": spoken, "formats": ["say {{ cmd }}"]}
    assert automation.ask("POST", "/v1/actionalias", alias).status == 201
    body = {
        "command": "say true",
        "user": "ann",
        "source_channel": "room",
        "notification_route": "chat",
    }
    made = automation.ask("POST", "/v1/aliasexecution/match_and_execute", body)
    execution = made.body["results"][0]["execution"]["id"]
    wait_for(lambda: len(payloads(automation, execution)) == 1)
    (told,) = payloads(automation, execution)
    assert (told["route"], told["data"]["source_channel"]) == ("chat", "room")


def test_tasks_of_a_chain_are_told_of_unless_it_skips_them(start: Start, tmp_path: Path) -> None:
    automation = start()
    (tmp_path / "go").touch()
    waits = ACTION.replace("PATH", str(tmp_path / "go"))
    chain = (
        f"{CHAIN}notify: {{on-complete: {{routes: [flow]}}}}\n"
        "parameters: {skip_notify: {default: [waits]}}\n"
    )
    files = {"actions/chain.yaml": chain, "actions/chains/chain.yaml": TASKS}
    pack(automation, {**files, "actions/waits.yaml": waits})
    automation.rule(name="hear", trigger={"type": NOTIFY}, action={"ref": "core.noop"})
    ended = automation.run("limited.chain")
    path = f"/v1/triggerinstances?trigger={NOTIFY}"
    wait_for(lambda: len(automation.get(path)) == 2)
    told = {(one["payload"]["action_ref"], one["payload"]["route"]) for one in automation.get(path)}
    assert told == {("limited.chain", "flow"), ("core.noop", "task")}
    assert ended["status"] == "succeeded"
