"""Chat commands, tokens, API keys and roles, through StackStorm's API."""

import base64
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.admin import ask as ask_operators
from harness.automation import Answer, Automation, running_automation
from harness.deadline import DEADLINE_S, wait_for

ALIAS = {
    "name": "greet",
    "pack": "default",
    "action_ref": "core.local",
    "formats": [
        {"display": "greet {{ cmd }}", "representation": ["greet {{ cmd }}", "hail {{ cmd }}"]},
        "wave at (?P<cmd>[a-z]+)",
    ],
    "ack": {"format": "{{ execution.id }} greets", "extra": {"ref": "{{ actionalias.ref }}"}},
    "immutable_parameters": {"timeout": 7},
}


@pytest.fixture(scope="module")
def automation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Automation]:
    """One automation for all tests; its roles are files of its folder."""
    folder = tmp_path_factory.mktemp("access")
    with running_automation(folder, admin=True) as automation:
        automation.ask("POST", "/v1/actionalias", ALIAS)
        yield automation


def test_a_command_runs_the_action_of_its_alias(automation: Automation) -> None:
    (listed,) = automation.get("/v1/actionalias?pack=default")
    assert automation.get("/v1/actionalias/default.greet") == listed
    found = automation.ask("POST", "/v1/actionalias/match", {"command": "hail 'echo hi'"})
    assert found.body["representation"] == "hail {{ cmd }}"
    assert found.body["actionalias"]["ref"] == "default.greet"
    body = {"command": "greet 'echo hi' cwd=/", "user": "u", "source_channel": "c"}
    made = automation.ask("POST", "/v1/aliasexecution/match_and_execute", body)
    assert made.status == 201, made
    (result,) = made.body["results"]
    execution = automation.ended(result["execution"]["id"])
    assert execution["result"]["stdout"] == "hi"
    assert execution["parameters"] == {"cmd": "echo hi", "cwd": "/", "timeout": 7}
    assert execution["context"]["action_alias_ref"]["ref"] == "default.greet"
    assert execution["context"]["source_channel"] == "c"
    assert result["message"] == f"{execution['id']} greets"
    assert result["extra"] == {"ref": "default.greet"}
    named = {"name": "greet", "format": "wave at (?P<cmd>[a-z]+)", "command": "wave at true"}
    assert automation.ask("POST", "/v1/aliasexecution", named).status == 201


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/match", {"command": "dance"}, "Command 'dance' matched no patterns"),
        ("", ALIAS | {"formats": ["a ("]}, "format `a (` is no regular expression"),
        ("", ALIAS | {"colour": 1}, "key `colour` is unknown"),
        ("", {"name": "x"}, "key `pack` is missing"),
    ],
)
def test_wrong_aliases_and_commands_are_refused(
    automation: Automation, path: str, body: dict[str, object], reason: str
) -> None:
    answer = automation.ask("POST", f"/v1/actionalias{path}", body)
    assert answer.status == 400
    assert reason in answer.body["faultstring"]


def test_aliases_are_changed_helped_and_deleted(automation: Automation) -> None:
    other = ALIAS | {"name": "other", "formats": ["other {{ cmd }}"]}
    made = automation.ask("POST", "/v1/actionalias", other)
    assert made.status == 201
    assert automation.ask("POST", "/v1/actionalias", other).status == 409
    shown = [
        item["display"]
        for item in automation.get("/v1/actionalias/help?pack=default")["helpstrings"]
    ]
    assert shown == ["greet {{ cmd }}", "wave at (?P<cmd>[a-z]+)", "other {{ cmd }}"]
    path = "/v1/actionalias/default.other"
    assert automation.ask("PUT", path, other | {"enabled": False}).body["enabled"] is False
    refused = automation.ask("POST", "/v1/actionalias/match", {"command": "other x"})
    assert refused.status == 400
    immutable = {"command": "greet x timeout=1"}
    refused = automation.ask("POST", "/v1/aliasexecution/match_and_execute", immutable)
    assert "Immutable arguments cannot be overriden: timeout" in refused.body["faultstring"]
    assert automation.ask("DELETE", path).status == 204
    assert automation.ask("GET", path).status == 404


def test_views_of_packs_and_services_are_shown(automation: Automation) -> None:
    files = automation.get("/v1/packs/views/files/core")
    assert "pack.yaml" in [file["file_path"] for file in files]
    assert "name: core" in automation.ask("GET", "/v1/packs/views/file/core/pack.yaml").body
    assert automation.ask("GET", "/v1/packs/views/file/core/..%2Fx").status == 404
    assert automation.get("/v1/service_registry/groups")["groups"]
    assert automation.get("/v1/user")["rbac"] == {"enabled": False, "roles": [], "is_admin": True}
    body = {
        "action": "core.noop",
        "context": {"trace_context": {"trace_tag": "a-trace"}},
    }
    execution = automation.ask("POST", "/v1/executions", body).body["id"]
    (trace,) = automation.get("/v1/traces?trace_tag=a-trace")
    assert [part["object_id"] for part in trace["action_executions"]] == [execution]
    assert automation.get(f"/v1/traces/{trace['id']}") == trace


USERS = {"boss": "administrator", "ann": "", "eye": "", "out": ""}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Automation]:
    """An automation of a broker with users, of whom some have roles."""
    folder = tmp_path_factory.mktemp("secured")
    with running_automation(folder, is_open=False, admin=True) as automation:
        for user, tags in USERS.items():
            body = {"password": user, "tags": tags}
            made = ask_operators(automation.imori, f"/api/users/{user}", method="PUT", body=body)
            assert made.status in {201, 204}, made
        assert ask(automation, "boss", "POST", "/v1/actionalias", ALIAS).status == 201
        yield automation


def ask(automation: Automation, user: str, method: str, path: str, body: object = None) -> Answer:
    """Sends a request with the password of a user."""
    login = base64.b64encode(f"{user}:{user}".encode()).decode()
    return automation.ask(method, path, body, {"Authorization": f"Basic {login}"})


def test_keys_and_tokens_stand_for_their_user(secured: Automation) -> None:
    assert secured.ask("GET", "/v1/actions").status == 401
    assert ask(secured, "ann", "GET", "/v1/actions").status == 403
    made = ask(secured, "boss", "POST", "/v1/apikeys", {"metadata": {"for": "tests"}})
    assert made.status == 201, made
    key, path = made.body["key"], f"/v1/apikeys/{made.body['id']}"
    header = {"St2-Api-Key": key}
    run = {"action": "core.noop"}
    execution = secured.ask("POST", "/v1/executions", run, header).body
    assert execution["context"]["user"] == "boss"
    assert secured.ask("GET", f"/v1/actions?limit=1&st2-api-key={key}").status == 200
    listed = secured.ask("GET", "/v1/apikeys", None, header)
    assert key not in json.dumps(listed.body)
    assert listed.body[0]["key_hash"] == "********"
    disabled = ask(secured, "boss", "PUT", path, {"user": "boss", "enabled": False})
    assert disabled.body["enabled"] is False
    assert secured.ask("GET", "/v1/actions", None, header).status == 401
    assert ask(secured, "boss", "DELETE", path).status == 204

    made = ask(secured, "boss", "POST", "/auth/v1/tokens", {"ttl": 60, "metadata": {"a": 1}})
    assert (made.body["user"], made.body["metadata"]) == ("boss", {"a": 1})
    header = {"X-Auth-Token": made.body["token"]}
    valid = secured.ask("POST", "/auth/v1/tokens/validate", {"token": made.body["token"]}, header)
    assert valid.body == {"valid": True}
    assert secured.ask("DELETE", f"/auth/v1/tokens/{made.body['id']}", None, header).status == 204
    assert secured.ask("GET", "/v1/actions", None, header).status == 401
    long = ask(secured, "boss", "POST", "/auth/v1/tokens", {"ttl": 10**6})
    assert "is greater than max allowed" in long.body["faultstring"]
    service = {"ttl": 10**6, "service": True, "user": "robot"}
    assert ask(secured, "boss", "POST", "/auth/v1/tokens", service).body["user"] == "robot"


def test_the_token_of_an_action_ends_with_it(secured: Automation, tmp_path: Path) -> None:
    """AUTO-06: it stands for the user of the execution until the action ends."""
    go = tmp_path / "go"
    show = "echo $ST2_ACTION_API_URL $ST2_ACTION_AUTH_TOKEN $ST2_ACTION_PACK_NAME"
    command = f"{show} $ST2_ACTION_EXECUTION_ID; while [ ! -e {go} ]; do sleep 0.05; done"
    body = {"action": "core.local", "parameters": {"cmd": command}}
    execution = ask(secured, "boss", "POST", "/v1/executions", body).body["id"]
    path = f"/v1/executions/{execution}"

    def shown() -> list[str]:
        return str(ask(secured, "boss", "GET", f"{path}/output").body).split()

    wait_for(lambda: len(shown()) == 4)
    url, token, pack, own = shown()
    assert (url, pack, own) == (f"{secured.url}/v1", "core", execution)
    header = {"X-Auth-Token": token}
    assert secured.ask("GET", path, None, header).body["status"] == "running"
    assert secured.ask("GET", "/v1/user", None, header).body["username"] == "boss"
    forged = token.replace(execution, "0" * len(execution))
    for wrong in [forged, token[:-4], token.rpartition(".")[0], "action..", "sensor.x"]:
        assert secured.ask("GET", path, None, {"X-Auth-Token": wrong}).status == 401, wrong
    go.touch()
    wait_for(lambda: ask(secured, "boss", "GET", path).body["status"] == "succeeded")
    assert secured.ask("GET", path, None, header).status == 401


ROLE = """
name: greeter
permission_grants:
  - resource_uid: action:core:local
    permission_types: [action_execute]
  - resource_uid: pack:examples
    permission_types: [rule_all]
  - resource_uid: policy:default:own
    permission_types: [policy_all]
  - permission_types: [action_list]
"""


def test_roles_decide_what_users_may(secured: Automation) -> None:
    folder = secured.imori.log.parent / "data" / "automation" / "rbac"
    (folder / "roles").mkdir(parents=True)
    (folder / "assignments").mkdir()
    (folder / "roles" / "greeter.yaml").write_text(ROLE)
    for user, role in [("boss", "admin"), ("ann", "greeter"), ("eye", "observer")]:
        text = f"username: {user}\nroles: [{role}]\n"
        (folder / "assignments" / f"{user}.yaml").write_text(text)
    reloaded = ask(secured, "boss", "POST", "/v1/rbac/reload")
    assert reloaded.body == {"roles": 1, "role_assignments": 3}
    command = {"action": "core.local", "parameters": {"cmd": "true"}}
    encoded = "/v1/actions/core%2Enoop"
    rule = {
        "name": "r",
        "pack": "examples",
        "trigger": {"type": "core.st2.webhook", "parameters": {"url": "r"}},
        "action": {"ref": "core.noop"},
    }
    policy = {
        "name": "own",
        "resource_ref": "some.action",
        "policy_type": "action.retry",
        "parameters": {"retry_on": "failure"},
    }
    rows: list[tuple[str, str, object, str]] = [
        ("GET", "/v1/actions", None, "boss ann eye"),
        ("GET", "/v1/actions/core.local", None, "boss ann eye"),
        ("GET", "/v1/actions/core.noop", None, "boss eye"),
        ("GET", encoded, None, "boss eye"),
        ("POST", "/v1/executions", command, "boss ann"),
        ("POST", "/v1/executions", {"action": "core.noop"}, "boss"),
        ("POST", "/v1/executions", command | {"user": "boss"}, "boss"),
        ("GET", "/v1/executions/last", None, "boss ann eye"),
        ("POST", "/v1/aliasexecution/match_and_execute", {"command": "greet true"}, "boss ann"),
        ("POST", "/v1/rules", rule, "boss"),
        ("POST", "/v1/policies", policy, "boss ann"),
        ("GET", "/v1/policies/default.own", None, "boss ann eye"),
        ("PUT", "/v1/policies/default.own", policy | {"name": "other"}, "boss"),
        ("GET", "/v1/policies/default.other", None, "boss eye"),
        ("GET", "/v1/policytypes/action.retry", None, "boss eye"),
        ("PUT", "/v1/keys/k", {"name": "k", "value": "v"}, "boss"),
        ("PUT", "/v1/keys/k?scope=user", {"name": "k", "value": "v"}, "boss ann eye"),
        ("GET", "/v1/keys/k?decrypt=true", None, "boss"),
        ("POST", "/v1/packs/register", {}, "boss"),
        ("GET", "/v1/rbac/roles", None, "boss"),
        ("GET", "/v1/nothing", None, "boss ann eye out"),
        ("GET", "/v1/user", None, "boss ann eye"),
        ("POST", "/auth/v1/tokens", {"user": "boss"}, "boss"),
        ("POST", "/auth/v1/tokens", {}, "boss ann eye"),
    ]
    for method, path, body, allowed in rows:
        found = [user for user in USERS if ask(secured, user, method, path, body).status != 403]
        assert " ".join(found) == allowed, (method, path)
    refused = ask(secured, "ann", "POST", "/v1/executions", {"action": "core.noop"})
    assert refused.body["faultstring"] == (
        'User "ann" doesn\'t have required permission "action_execute"'
        ' on resource "action:core:noop"'
    )
    assert ask(secured, "ann", "POST", "/v1/executions", command).body["context"]["user"] == "ann"
    token = ask(secured, "ann", "POST", "/auth/v1/tokens", {}).body["token"]
    header = {"X-Auth-Token": token}
    assert secured.ask("GET", "/v1/actions/core.noop", None, header).status == 403
    # AUTO-06: what an action may is what its user may.
    urls = ["$ST2_ACTION_API_URL/actions/core.noop", "$ST2_ACTION_API_URL/actions/core.local"]
    fetch = "curl -s -o /dev/null -w '%{http_code} ' -H X-Auth-Token:$ST2_ACTION_AUTH_TOKEN"
    fetching = {"cmd": " ; ".join(f"{fetch} {one}" for one in urls)}
    body = {"action": "core.local", "parameters": fetching}
    execution = f"/v1/executions/{ask(secured, 'ann', 'POST', '/v1/executions', body).body['id']}"
    wait_for(lambda: ask(secured, "boss", "GET", execution).body["status"] == "succeeded")
    result = ask(secured, "boss", "GET", execution).body["result"]
    assert result["stdout"].split() == ["403", "200"]
    (folder / "assignments" / "eye.yaml").write_text("username: eye\nroles: [nothing]\n")
    wrong = ask(secured, "boss", "POST", "/v1/rbac/reload")
    assert "role `nothing` is not defined" in wrong.body["faultstring"]
    assert ask(secured, "eye", "GET", "/v1/actions").status == 200, "the old roles stay"


def offered() -> list[tuple[str, str]]:
    """The methods and paths of StackStorm's API that are offered."""
    folder = Path(__file__).resolve().parents[2] / "crates/imori-engine/tests/it"
    lines = (folder / "stackstorm.txt").read_text().splitlines()
    absent = (folder / "absent.txt").read_text().splitlines()
    missing = {line.split(":")[0] for line in absent if line}
    return [(line.split()[0], line.split()[1]) for line in lines if line and line not in missing]


@pytest.mark.parametrize(("method", "path"), offered())
def test_each_offered_path_of_stackstorm_is_answered(
    automation: Automation, method: str, path: str
) -> None:
    if path.startswith("/stream/v1/stream"):
        with urllib.request.urlopen(f"{automation.url}{path}", timeout=DEADLINE_S) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
        return
    answer = automation.ask(
        method, path.replace("{", "").replace("}", ""), {} if method != "GET" else None
    )
    assert answer.status != 405, answer
    if answer.status == 404:
        # The object of this name does not exist, but the path does.
        assert not str(answer.body).count("path `"), answer
