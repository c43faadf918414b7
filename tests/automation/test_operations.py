"""Operating the automation: large results, history, the memory of rules, and `imori automate`."""

import json
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

from harness.automation import Automation, Start
from harness.deadline import DEADLINE_S, wait_for
from harness.imori import BINARY


def automate(automation: Automation, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `imori automate` against an automation."""
    command = [BINARY, "automate", *arguments, "--api", automation.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def state(automation: Automation) -> Path:
    """The store's file."""
    return automation.imori.log.parent / "data/automation/state.db"


def emit(automation: Automation, trigger: str, **payload: object) -> None:
    """Sends an event."""
    body = {"trigger": trigger, "payload": payload}
    assert automation.ask("POST", "/v1/webhooks/st2", body).status == 202


def register_trigger(automation: Automation, name: str) -> str:
    """Registers a trigger type, and returns its reference."""
    body = {"name": name, "pack": "default"}
    assert automation.ask("POST", "/v1/triggertypes", body).status == 201
    return f"default.{name}"


def last_event(automation: Automation, execution: str) -> tuple[str, dict[str, Any]]:
    """Reads the stream as `st2` does, until it ends with the execution; returns its last event."""
    query = f"end_execution_id={execution}&end_event=st2.execution__update"
    answer = automation.ask("GET", f"/stream/v1/stream?{query}&execution_ids={execution}")
    name, data = answer.body.strip().split("\n\n")[-1].splitlines()
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_a_stream_ends_with_the_execution_that_its_reader_names(automation: Automation) -> None:
    body = {"action": "core.local", "parameters": {"cmd": "true"}}
    execution = automation.ask("POST", "/v1/executions", body).body["id"]
    # At first the end comes before or after the reader, and then surely before.
    for _ in range(2):
        name, shown = last_event(automation, execution)
        assert (name, shown["id"]) == ("st2.execution__update", execution)
        assert shown["status"] == "succeeded", shown


def test_a_large_result_lies_beside_and_lists_do_not_read_it(automation: Automation) -> None:
    ended = automation.run("core.local", cmd="seq -f 'line %.0f of the output' 40000")
    assert len(ended["result"]["stdout"]) > 900_000
    assert ended["result"]["stdout"].endswith("line 40000 of the output")
    assert automation.get(f"/v1/executions/{ended['id']}")["result"] == ended["result"]
    (listed,) = automation.get(f"/v1/executions?id={ended['id']}&exclude_attributes=result")
    assert listed["status"] == "succeeded"
    assert "result" not in listed
    (listed,) = automation.get(f"/v1/executions?id={ended['id']}&include_attributes=result,status")
    assert listed["result"] == ended["result"]
    with sqlite3.connect(f"file:{state(automation)}?mode=ro", uri=True) as store:
        (body,) = store.execute(
            "SELECT body FROM executions WHERE id = ?", [ended["id"]]
        ).fetchone()
        (size,) = store.execute("SELECT SUM(LENGTH(bytes)) FROM large_values").fetchone()
    assert len(body) < 10_000
    assert size < 1_500_000


def test_history_goes_by_age_and_open_executions_stay(start: Start) -> None:
    automation = start(settings={"automation.history_age_s": 1})
    kept = automation.ask(
        "POST", "/v1/executions", {"action": "core.local", "parameters": {"cmd": "sleep 600"}}
    ).body["id"]
    ended = automation.ask(
        "POST", "/v1/executions", {"action": "core.local", "parameters": {"cmd": "echo bye"}}
    ).body["id"]
    wait_for(lambda: automation.ask("GET", f"/v1/executions/{ended}").status == 404)
    assert automation.get(f"/v1/executions/{kept}")["status"] == "running"
    automation.ask("DELETE", f"/v1/executions/{kept}")


def test_the_oldest_history_goes_when_the_store_is_too_large(start: Start) -> None:
    automation = start(settings={"automation.history_bytes": "2MiB"})
    # Text that does not compress.
    command = "head -c 300000 /dev/urandom | base64 -w 0"
    executions = [automation.run("core.local", cmd=command)["id"] for _ in range(12)]
    wait_for(lambda: automation.ask("GET", f"/v1/executions/{executions[0]}").status == 404)
    assert automation.get(f"/v1/executions/{executions[-1]}")["status"] == "succeeded"
    assert state(automation).stat().st_size < 12 << 20


def test_a_count_goes_on_after_a_broker_is_killed(start: Start) -> None:
    first = start()
    trigger = register_trigger(first, "door")
    first.rule(
        name="three",
        trigger={"type": trigger},
        criteria={"trigger.door": {"type": "exists"}},
        action={"ref": "core.noop"},
        **{"x-imori": {"count": {"n": 3, "within": "1h"}}},
    )
    for _ in range(2):
        emit(first, trigger, door="front")
    assert first.executions(rule="default.three") == []
    first.imori.process.send_signal(signal.SIGKILL)
    first.imori.process.wait()
    second = start()
    emit(second, trigger, door="front")
    wait_for(lambda: len(second.executions(rule="default.three")) == 1)


def test_a_limit_refuses_what_is_too_much(automation: Automation) -> None:
    trigger = register_trigger(automation, "limited")
    automation.rule(
        name="limited",
        trigger={"type": trigger},
        criteria={"trigger.seconds": {"type": "exists"}},
        action={"ref": "core.local", "parameters": {"cmd": "sleep {{ trigger.seconds }}"}},
        **{"x-imori": {"limit": 1}},
    )
    emit(automation, trigger, seconds=600)
    emit(automation, trigger, seconds=0)
    (execution,) = automation.executions(rule="default.limited")
    enforcements = automation.get("/v1/ruleenforcements?rule_ref=default.limited")
    (refused,) = [one for one in enforcements if one["status"] == "failed"]
    assert "its `limit` is 1" in refused["failure_reason"]
    automation.ask("DELETE", f"/v1/executions/{execution['id']}")
    automation.ended(execution["id"])
    emit(automation, trigger, seconds=0)
    assert len(automation.executions(rule="default.limited")) == 2


def test_a_rule_that_triggers_itself_is_suspended(automation: Automation) -> None:
    automation.rule(
        name="loop",
        trigger={"type": "core.st2.generic.actiontrigger"},
        criteria={"trigger.action_name": {"type": "equals", "pattern": "noop"}},
        action={"ref": "core.noop"},
        **{"x-imori": {"breaker": {"n": 20, "within": "1m"}}},
    )
    automation.run("core.noop")
    wait_for(lambda: "suspended" in automation.get("/v1/rules/default.loop"))
    shown = automation.get("/v1/rules/default.loop")
    assert "more than 20 times in 60 s" in shown["suspended"]["reason"]
    assert len(automation.executions(rule="default.loop")) == 20
    latest = "/v1/ruleenforcements?rule_ref=default.loop&limit=1"
    wait_for(lambda: "failure_reason" in automation.get(latest)[0])
    assert "is suspended until" in automation.get(latest)[0]["failure_reason"]
    assert any("a rule is suspended" in line for line in automation.imori.log_lines())
    disabled = automate(automation, "rule", "disable", "default.loop")
    assert disabled.returncode == 0, disabled
    assert "suspended" not in automation.get("/v1/rules/default.loop")


def test_a_rule_is_tried_without_running(automation: Automation, tmp_path: Path) -> None:
    trigger = register_trigger(automation, "tried")
    rule: dict[str, Any] = {
        "name": "tried",
        "pack": "default",
        "trigger": {"type": trigger},
        "criteria": {
            "trigger.count": {"type": "gt", "pattern": 3},
            "trigger.kind": {"type": "equals", "pattern": "tea"},
        },
        "action": {"ref": "core.local", "parameters": {"cmd": "echo {{ trigger.count }}"}},
    }
    body = {"rule": rule, "payload": {"count": 5, "kind": "coffee"}}
    tried = automation.ask("POST", "/v1/imori/rules/test", body).body
    assert tried["match"] is False
    verdicts = {one["key"]: (one["value"], one["match"]) for one in tried["criteria"]}
    assert verdicts == {"trigger.count": (5, True), "trigger.kind": ("coffee", False)}
    assert tried["actions"] == [{"ref": "core.local", "parameters": {"cmd": "echo 5"}}]
    registered = automation.rule(**rule)
    for count in [1, 4, 9]:
        emit(automation, trigger, count=count, kind="tea")
    path = tmp_path / "rule.yaml"
    changed = rule | {"criteria": {"trigger.count": {"type": "gt", "pattern": 0}}}
    path.write_text(json.dumps(changed))
    for subject, matched in [(registered["ref"], 2), (str(path), 3)]:
        told = automate(automation, "rule", "test", subject, "--json")
        assert told.returncode == 0, told
        assert (json.loads(told.stdout)["matched"], json.loads(told.stdout)["tested"]) == (
            matched,
            3,
        )
    told = automate(automation, "rule", "test", "default.tried", "--payload", '{"count": 1}')
    assert told.returncode == 1
    assert "does not match" in told.stderr
    assert len(automation.executions(rule="default.tried")) == 2
    for wrong, reason in [
        ({}, "either `rule`"),
        ({"ref": "default.tried", "limit": 0}, "`limit` is no number"),
        ({"ref": "default.tried", "wat": 1}, "`wat` is unknown"),
        ({"rule": {"name": "x"}}, "trigger"),
    ]:
        answer = automation.ask("POST", "/v1/imori/rules/test", wrong)
        assert answer.status == 400, wrong
        assert reason in answer.body["faultstring"], wrong


def test_the_commands_run_actions_and_set_keys(automation: Automation) -> None:
    ran = automate(automation, "run", "core.local", "cmd=echo hello")
    assert ran.returncode == 0, ran
    assert "stdout: hello" in ran.stdout
    failed = automate(automation, "run", "core.local", "cmd=exit 3")
    assert failed.returncode == 1
    assert "ended with the status `failed`" in failed.stderr
    unknown = automate(automation, "run", "no.such")
    assert unknown.returncode == 1
    assert 'Action "no.such" cannot be found' in unknown.stderr
    queued = automate(automation, "run", "core.local", "cmd=echo out; sleep 60", "--async")
    execution = queued.stdout.strip()
    wait_for(lambda: automate(automation, "exec", "output", execution).stdout == "out\n")
    assert automate(automation, "exec", "cancel", execution).returncode == 0
    assert automation.ended(execution)["status"] == "canceled"
    assert execution in automate(automation, "exec", "list", "--status", "canceled").stdout
    assert "status: canceled" in automate(automation, "exec", "get", execution).stdout
    assert automate(automation, "kv", "set", "colour", "red").returncode == 0
    assert automate(automation, "kv", "get", "colour").stdout == "red\n"
    assert "colour" in automate(automation, "kv", "list").stdout
    assert automate(automation, "kv", "delete", "colour").returncode == 0
    assert automate(automation, "kv", "get", "colour").returncode == 1
    assert "core" in automate(automation, "pack", "list").stdout
    assert "core.st2.webhook" in automate(automation, "trigger", "list").stdout


def test_a_new_pack_works_and_the_store_is_sound(start: Start, tmp_path: Path) -> None:
    automation = start()
    made = subprocess.run(
        [BINARY, "automate", "new", "pack", "visitors", "--dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made
    packs = automation.imori.log.parent / "data/automation/packs"
    packs.mkdir(exist_ok=True)
    (tmp_path / "visitors").rename(packs / "visitors")
    registered = automate(automation, "pack", "register", "visitors")
    assert registered.returncode == 0, registered
    assert "rules: 1" in registered.stdout
    rules = automate(automation, "rule", "list", "--pack", "visitors")
    assert "visitors.greet_visitors" in rules.stdout
    body = {"visitor": "Ann"}
    told = automate(
        automation,
        "rule",
        "test",
        "visitors.greet_visitors",
        "--payload",
        json.dumps({"body": body}),
    )
    assert told.returncode == 0, told
    assert automation.ask("POST", "/v1/webhooks/visitors", body).status == 202
    (execution,) = automation.executions(rule="visitors.greet_visitors")
    ended = automation.ended(execution["id"])
    assert ended["result"]["result"] == {"greeting": "Hello, Ann"}, ended
    data = str(automation.imori.log.parent / "data")
    check = [BINARY, "automate", "fsck", "--data-dir", data]
    sound = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (sound.returncode, sound.stdout) == (0, "nothing is wrong\n")
    assert automation.imori.stop() == 0
    with sqlite3.connect(state(automation)) as store:
        store.execute(
            # A body without a checksum counts as one of an earlier version.
            "UPDATE executions SET body = json_remove("
            """json_set(body, '$.status', 'running'), '$."$sum"') WHERE id = ?""",
            [execution["id"]],
        )
    broken = subprocess.run(check, capture_output=True, text=True, check=False)
    assert broken.returncode == 1
    assert f"execution `{execution['id']}`: its status is `running`" in broken.stdout
