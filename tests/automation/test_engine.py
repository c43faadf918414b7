"""The engine in the broker, through StackStorm's API: actions, rules and their triggers."""

import json
import signal
import subprocess
from pathlib import Path

import pika
import pytest

from harness.automation import Automation, Start, signed
from harness.deadline import wait_for


def connect(automation: Automation) -> pika.BlockingConnection:
    """An AMQP client of the broker."""
    host, port = automation.imori.named["amqp"]
    return pika.BlockingConnection(pika.ConnectionParameters(host, port))


def test_a_command_runs_and_its_execution_is_shown_as_by_stackstorm(automation: Automation) -> None:
    ended = automation.run("core.local", cmd="echo out; echo err >&2; exit 3")
    assert ended["status"] == "failed"
    assert ended["result"] == {
        "failed": True,
        "succeeded": False,
        "return_code": 3,
        "stdout": "out",
        "stderr": "err",
    }
    assert ended["action"]["ref"] == "core.local"
    assert ended["runner"]["name"] == "local-shell-cmd"
    assert [entry["status"] for entry in ended["log"]] == ["requested", "running", "failed"]
    assert automation.run("core.noop")["status"] == "succeeded"
    assert automation.run("core.local", cmd="echo '{\"a\": 1}'")["result"]["stdout"] == {"a": 1}


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({}, "'cmd' is a required property"),
        ({"cmd": 5}, 'Value "5" must either be a string or None. Got "int".'),
        ({"cmd": "x", "wat": 1}, "Additional properties are not allowed ('wat' was unexpected)"),
        ({"cmd": "{{ nothing }}"}, "nothing"),
    ],
)
def test_wrong_parameters_are_refused_in_stackstorms_words(
    automation: Automation, parameters: dict[str, object], reason: str
) -> None:
    body = {"action": "core.local", "parameters": parameters}
    answer = automation.ask("POST", "/v1/executions", body)
    assert answer.status == 400
    assert reason in answer.body["faultstring"]


def test_an_action_that_takes_too_long_is_ended_with_all_it_started(
    automation: Automation, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    command = f"trap '' TERM; (trap '' TERM; while :; do date > {mark}; sleep 0.05; done) & wait"
    ended = automation.run("core.local", cmd=command, timeout=1)
    assert ended["status"] == "timeout"
    assert commands_with(str(mark)) == [], "what the command started has ended too"


def commands_with(text: str) -> list[str]:
    """The commands of processes that have a text in them."""
    listed = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=True)
    return [command for command in listed.stdout.splitlines() if text in command]


def test_a_running_execution_is_canceled(automation: Automation) -> None:
    body = {"action": "core.local", "parameters": {"cmd": "sleep 600"}}
    execution = automation.ask("POST", "/v1/executions", body).body["id"]
    wait_for(lambda: automation.get(f"/v1/executions/{execution}")["status"] == "running")
    assert automation.ask("DELETE", f"/v1/executions/{execution}").status == 200
    assert automation.ended(execution)["status"] == "canceled"


def test_a_signed_webhook_runs_the_action_of_a_rule_once(automation: Automation) -> None:
    automation.rule(
        name="issues",
        trigger={
            "type": "core.st2.webhook",
            "parameters": {"url": "github", "scheme": "github", "secret": "s3cret"},
        },
        criteria={
            "trigger.headers['X-Github-Event']": {"type": "equals", "pattern": "issues"},
            "trigger.body.action": {"type": "equals", "pattern": "opened"},
        },
        action={
            "ref": "core.local",
            "parameters": {"cmd": "echo {{ trigger.body.issue.title }}"},
        },
    )
    body = json.dumps({"action": "opened", "issue": {"title": "It burns"}}).encode()
    headers = {"X-GitHub-Event": "issues", "X-GitHub-Delivery": "d-1"} | signed("s3cret", body)
    assert automation.ask("POST", "/v1/webhooks/github", body, headers).status == 202
    # GitHub sends a delivery again whose answer it has not seen.
    assert automation.ask("POST", "/v1/webhooks/github", body, headers).status == 202
    forged = headers | signed("other", body)
    assert automation.ask("POST", "/v1/webhooks/github", body, forged).status == 401
    (execution,) = automation.executions(rule="default.issues")
    ended = automation.ended(execution["id"])
    assert ended["result"]["stdout"] == "It burns"
    assert ended["trigger_type"]["ref"] == "core.st2.webhook"
    (enforcement,) = automation.get("/v1/ruleenforcements?rule_ref=default.issues")
    assert enforcement["execution_id"] == execution["id"]
    closed = json.dumps({"action": "closed"}).encode()
    headers = {"X-GitHub-Event": "issues", "X-GitHub-Delivery": "d-2"} | signed("s3cret", closed)
    assert automation.ask("POST", "/v1/webhooks/github", closed, headers).status == 202
    assert len(automation.executions(rule="default.issues")) == 1


def test_a_message_of_a_queue_becomes_an_event_and_another_message(automation: Automation) -> None:
    with connect(automation) as connection:
        channel = connection.channel()
        channel.queue_declare("orders", durable=True)
        channel.queue_declare("answers", durable=True)
        automation.rule(
            name="orders",
            trigger={"type": "imori.queue", "parameters": {"queue": "orders"}},
            criteria={"trigger.body.count": {"type": "gt", "pattern": 1}},
            action={
                "ref": "imori.publish",
                "parameters": {
                    "queue": "answers",
                    "body": "{{ trigger.body.count }} of {{ trigger.headers.kind }}",
                },
            },
        )
        for count in [1, 2]:
            properties = pika.BasicProperties(headers={"kind": "tea"}, delivery_mode=2)
            channel.basic_publish("", "orders", json.dumps({"count": count}).encode(), properties)
        body = wait_for(lambda: channel.basic_get("answers", auto_ack=True)[2], "an answer")
        assert body == b"2 of tea"
        wait_for(lambda: channel.queue_declare("orders", passive=True).method.message_count == 0)
        assert channel.basic_get("answers")[0] is None


def test_a_rule_that_replies_is_a_service(automation: Automation) -> None:
    with connect(automation) as connection:
        channel = connection.channel()
        channel.queue_declare("sums")
        automation.rule(
            name="sums",
            trigger={"type": "imori.queue", "parameters": {"queue": "sums"}},
            action={
                "ref": "core.local",
                "parameters": {"cmd": "echo $(({{ trigger.body.a }} + {{ trigger.body.b }}))"},
            },
            **{"x-imori": {"reply": "result"}},
        )
        replies: list[bytes] = []
        channel.basic_consume(
            "amq.rabbitmq.reply-to", lambda *message: replies.append(message[3]), auto_ack=True
        )
        properties = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to")
        channel.basic_publish("", "sums", b'{"a": 2, "b": 3}', properties)

        def is_answered() -> bool:
            connection.process_data_events(0)
            return len(replies) > 0

        wait_for(is_answered, "a reply")
        assert json.loads(replies[0])["stdout"] == 5


def test_timers_fire(automation: Automation) -> None:
    automation.rule(
        name="ticks",
        trigger={
            "type": "core.st2.IntervalTimer",
            "parameters": {"unit": "seconds", "delta": 1},
        },
        action={"ref": "core.noop"},
    )
    wait_for(lambda: len(automation.executions(rule="default.ticks")) >= 2)
    assert automation.ask("DELETE", "/v1/rules/default.ticks").status == 204


def test_what_is_wrong_with_a_rule_is_named(automation: Automation) -> None:
    base = {"name": "wrong", "trigger": {"type": "core.st2.webhook", "parameters": {"url": "w"}}}
    rows: list[tuple[dict[str, object], str]] = [
        ({}, "action"),
        ({"action": {"ref": "core.noop"}, "criteria": {"trigger.x": {"type": "equalz"}}}, "equalz"),
        (
            {"action": {"ref": "core.noop"}, "trigger": {"type": "no.such"}},
            "`no.such` is not registered",
        ),
        ({"action": {"ref": "core.noop"}, "colour": "red"}, "colour"),
    ]
    for changes, reason in rows:
        answer = automation.ask("POST", "/v1/rules", base | changes)
        assert answer.status == 400, changes
        assert reason in answer.body["faultstring"], changes


def test_keys_are_kept_masked_and_read_by_templates(automation: Automation) -> None:
    put = automation.ask("PUT", "/v1/keys/greeting", {"name": "greeting", "value": "hello"})
    assert put.status in {200, 201}
    secret = {"name": "token", "value": "s3cret", "secret": True}
    assert automation.ask("PUT", "/v1/keys/token", secret).status in {200, 201}
    assert "s3cret" not in json.dumps(automation.get("/v1/keys"))
    assert automation.get("/v1/keys/token?decrypt=true")["value"] == "s3cret"
    ended = automation.run(
        "core.local",
        cmd="echo {{ st2kv.system.greeting }} {{ st2kv.system.token | decrypt_kv }}",
    )
    assert ended["result"]["stdout"] == "hello s3cret"
    assert automation.ask("DELETE", "/v1/keys/greeting").status == 204


def test_what_runs_outlives_a_broker_that_is_killed(start: Start, tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = start()
    command = f"while [ ! -e {go} ]; do sleep 0.05; done; echo done"
    body = {"action": "core.local", "parameters": {"cmd": command}}
    execution = first.ask("POST", "/v1/executions", body).body["id"]
    wait_for(lambda: first.get(f"/v1/executions/{execution}")["status"] == "running")
    first.imori.process.send_signal(signal.SIGKILL)
    first.imori.process.wait()
    second = start()
    go.touch()
    ended = second.ended(execution)
    assert (ended["status"], ended["result"]["stdout"]) == ("succeeded", "done")
    assert [entry["status"] for entry in ended["log"]].count("running") == 1


def test_a_page_of_another_origin_runs_nothing(automation: Automation) -> None:
    body = {"action": "core.local", "parameters": {"cmd": "true"}}
    before = len(automation.executions(action="core.local"))
    foreign = automation.ask("POST", "/v1/executions", body, {"Origin": "https://evil.example"})
    assert foreign.status == 403
    form = automation.ask("POST", "/v1/executions", b"a=b", {"Content-Type": "text/plain"})
    assert form.status == 415
    assert len(automation.executions(action="core.local")) == before
