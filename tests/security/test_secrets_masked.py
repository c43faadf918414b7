"""Secrets are masked wherever the automation copies them.

SECURITY ROOM-06: canary secrets go through every kind of document, and no answer, log or file of
text has them.
"""

from __future__ import annotations

import json
import threading
import urllib.request
from pathlib import Path

from harness.automation import FINAL, Automation, running_automation, signed
from harness.deadline import DEADLINE_S, wait_for
from security.test_rooms import PREFIXES, ROWS

# A secret parameter of an action, of a webhook, of a sender's header, of a key, and of a payload.
OF_ACTION = "canary-of-the-action"
OF_WEBHOOK = "canary-of-the-webhook"
OF_HEADER = "canary-of-the-header"
OF_KEY = "canary-of-the-key"
OF_PAYLOAD = "canary-of-the-payload"
ALL = (OF_ACTION, OF_WEBHOOK, OF_HEADER, OF_KEY, OF_PAYLOAD)

PACK = {
    "pack.yaml": "name: canary\ndescription: d\nversion: 1.0.0\nauthor: a\nemail: a@example.org\n",
    "actions/take.yaml": """
name: take
runner_type: local-shell-cmd
enabled: true
notify:
  on-complete: {message: "{{ action_parameters.password }}", routes: [one]}
parameters:
  password: {type: string, secret: true}
  cmd: {default: "true"}
""",
    "triggers/told.yaml": """
name: told
pack: canary
payload_schema:
  type: object
  properties:
    token: {type: string, secret: true}
    name: {type: string}
""",
    "rules/ended.yaml": """
name: ended
pack: canary
enabled: true
trigger: {type: core.st2.generic.actiontrigger}
criteria: {trigger.action_ref: {type: equals, pattern: canary.take}}
action:
  ref: core.noop
""",
    "rules/notified.yaml": """
name: notified
pack: canary
enabled: true
trigger: {type: core.st2.generic.notifytrigger}
action:
  ref: core.noop
""",
    "rules/told.yaml": """
name: told
pack: canary
enabled: true
trigger: {type: canary.told}
action:
  ref: canary.take
  parameters: {password: "{{ trigger.token }}"}
""",
    "rules/hook.yaml": f"""
name: hook
pack: canary
enabled: true
trigger:
  type: core.st2.webhook
  parameters: {{url: hook, scheme: token, header: X-Sender, secret: {OF_HEADER}}}
action:
  ref: core.noop
""",
}


def follow(automation: Automation, seen: list[str], ready: threading.Event) -> None:
    """Collects what the stream tells, until the broker ends."""
    with urllib.request.urlopen(f"{automation.url}/v1/stream", timeout=DEADLINE_S) as stream:
        ready.set()
        try:
            for line in stream:
                seen.append(line.decode())
        except OSError:
            pass


def test_no_answer_has_a_secret(tmp_path: Path) -> None:
    """ROOM-06: also not the stream, and the log."""
    pack = tmp_path / "data" / "automation" / "packs" / "canary"
    for name, text in PACK.items():
        (pack / name).parent.mkdir(parents=True, exist_ok=True)
        (pack / name).write_text(text)
    with running_automation(tmp_path, admin=True) as automation:
        wait_for(
            lambda: automation.ask("GET", "/v1/rules/canary.hook").status == 200, "the pack's rules"
        )
        seen: list[str] = []
        ready = threading.Event()
        follower = threading.Thread(target=follow, args=(automation, seen, ready))
        follower.start()
        assert ready.wait(DEADLINE_S)

        # The webhook that signs, beside the one whose secret is the header.
        automation.rule(
            name="signed",
            trigger={
                "type": "core.st2.webhook",
                "parameters": {"url": "signed", "scheme": "github", "secret": OF_WEBHOOK},
            },
            action={"ref": "core.noop"},
        )
        body = b'{"a": 1}'
        proof = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "d"} | signed(OF_WEBHOOK, body)
        assert automation.ask("POST", "/v1/webhooks/signed", body, proof).status == 202
        sender = {"X-Sender": OF_HEADER}
        assert automation.ask("POST", "/v1/webhooks/hook", body, sender).status == 202
        key = {"value": OF_KEY, "secret": True}
        assert automation.ask("PUT", "/v1/keys/canary", key).status == 200
        told = {"trigger": "canary.told", "payload": {"token": OF_PAYLOAD, "name": "n"}}
        assert automation.ask("POST", "/v1/webhooks/st2", told).status == 202
        run = {"action": "canary.take", "parameters": {"password": OF_ACTION}}
        made = automation.ask("POST", "/v1/executions", run)
        assert made.status == 201, made
        first = made.body["id"]
        again = automation.ask("POST", f"/v1/executions/{first}/re_run", {"parameters": {}})
        assert again.status == 201, again

        def has_settled() -> bool:
            runs = automation.executions(action="canary.take")
            events = automation.get("/v1/triggerinstances?limit=100")
            kinds = {event["trigger"] for event in events}
            return (
                len(runs) == 3
                and all(run["status"] in FINAL for run in runs)
                and {"core.st2.generic.actiontrigger", "core.st2.generic.notifytrigger"} <= kinds
            )

        wait_for(has_settled, "all events and executions")
        instances = automation.get("/v1/triggerinstances?limit=100")
        enforcements = automation.get("/v1/ruleenforcements?limit=100")
        names: dict[str, list[str]] = {
            "id": [first]
            + [instance["id"] for instance in instances]
            + [enforcement["id"] for enforcement in enforcements],
            "ref": ["canary.take", "canary.told", "canary.hook", "canary", "default.signed"],
            "url": ["hook", "signed"],
            "name": ["canary"],
            "attribute": ["parameters", "result", "liveaction", "trigger", "rule"],
        }
        asked = answered = 0
        for row in ROWS:
            if row.method != "GET" or row.path == "/api/v1/stream":
                continue
            for path in filled(row.path, names):
                answer = automation.ask("GET", path)
                asked += 1
                answered += answer.status == 200
                for canary in ALL:
                    # Its author may write the rule, so that an open automation shows what is in it.
                    is_own = "/rules" in path and canary in (OF_WEBHOOK, OF_HEADER)
                    is_file = "/packs/views/" in path
                    assert canary not in json.dumps(answer.body) or is_own or is_file, path
        assert answered > 80, f"{answered} of {asked}"
        assert automation.imori.stop() == 0
        follower.join(DEADLINE_S)
        log = automation.imori.log.read_text()
        assert seen
        for canary in ALL:
            assert canary not in log
            assert not any(canary in line for line in seen), canary


def filled(path: str, names: dict[str, list[str]]) -> list[str]:
    """The path with every combination of these names; with none where a name is unknown."""
    paths = [path]
    for name, values in names.items():
        for form in (f"{{{name}}}", f"{{*{name}}}"):
            paths = [
                one.replace(form, value)
                for one in paths
                for value in (values if form in one else [""])
            ]
    assert all(path.startswith(tuple(PREFIXES)) for path in paths)
    return [path for path in paths if "{" not in path]
