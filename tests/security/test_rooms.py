"""The automation's API asks each caller for what its table says, and for nothing that a path says.

The table stands on the page on rights.
"""

from __future__ import annotations

import base64
import http.client
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from harness.admin import ask
from harness.automation import FINAL, Answer, Automation, running_automation, signed
from harness.deadline import DEADLINE_S, wait_for

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/rights.md"
ROW = re.compile(
    r"^\| (GET|PUT|POST|DELETE) \| `(/\S*)` \| ([^|]+) \| ([^|]+) \| ([^|]*) \| \d+ MiB \| \w+ \|$",
    re.MULTILINE,
)

TAGS = ["", "management", "policymaker", "monitoring", "administrator"]

# Values of the names in a path: of nothing that there is.
NAMES = {
    "ref": "absent.absent",
    "id": "0" * 24,
    "name": "absent",
    "type": "absent",
    "url": "absent",
    "path": "absent",
    "attribute": "status",
}

# What a search in the path might find.
SUFFIXES = [
    "/webhooks/signed",
    "%2Fwebhooks%2Fsigned",
    "/../webhooks/signed",
    "//webhooks/signed",
    "/tokens",
    "/workflows/inspect",
    ";/webhooks/signed",
    "?x=/webhooks/signed",
]


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    method: str
    path: str
    login: str
    permission: str

    def filled(self) -> str:
        """The path with the names of absent objects."""
        return re.sub(r"\{\*?(\w+)\}", lambda found: NAMES[found[1]], self.path)


ROWS = [Row(*found.groups()[:4]) for found in ROW.finditer(PAGE.read_text())]
PREFIXES = {"/api/v1": ["/api/v1", "/stream/v1", "/v1"], "/auth/v1": ["/auth/v1", ""]}


def status(
    automation: Automation, method: str, path: str, headers: Mapping[str, str], body: bytes = b"{}"
) -> int:
    """Sends a request with its path as it stands; returns the status without reading the answer."""
    connection = http.client.HTTPConnection(
        *automation.imori.named["automation"], timeout=DEADLINE_S
    )
    sent = {"Content-Type": "application/json", **headers}
    connection.request(method, path, body if method in ("POST", "PUT") else None, sent)
    found = connection.getresponse().status
    connection.close()
    return found


def basic(user: str, password: str) -> dict[str, str]:
    """The header of a login by password."""
    login = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {login}"}


@dataclass(frozen=True)
class Room:
    """An automation, and the headers by which each kind of caller asks it."""

    automation: Automation
    callers: Mapping[str, dict[str, str]]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """An automation of a broker with users and `guest`, of whom none has a role."""
    folder, settings = tmp_path_factory.mktemp("rooms"), {"users.guest": "always"}
    with running_automation(folder, is_open=False, admin=True, settings=settings) as automation:
        callers = {"nobody": {}, "guest": basic("guest", "guest")}
        for tag in TAGS:
            user = tag or "plain"
            body = {"password": user, "tags": tag}
            user_made = ask(automation.imori, f"/api/users/{user}", method="PUT", body=body)
            assert user_made.status in {201, 204}, user_made
            callers[user] = basic(user, user)
        chief = callers["administrator"]
        token = automation.ask("POST", "/auth/v1/tokens", {}, chief)
        assert token.status == 201, token
        callers["token"] = {"X-Auth-Token": token.body["token"]}
        key = automation.ask("POST", "/api/v1/apikeys", {}, chief)
        assert key.status == 201, key
        callers["key"] = {"St2-Api-Key": key.body["key"]}
        rule = {
            "name": "signed",
            "pack": "default",
            "enabled": True,
            "trigger": {
                "type": "core.st2.webhook",
                "parameters": {"url": "signed", "scheme": "github", "secret": "s3cret"},
            },
            "action": {"ref": "core.noop"},
        }
        made = automation.ask("POST", "/v1/rules", rule, chief)
        assert made.status == 201, made
        yield Room(automation, callers)
        assert automation.imori.stop() == 0


def test_the_page_has_the_whole_table() -> None:
    assert len(ROWS) > 100
    assert {row.login for row in ROWS} == {
        "needed",
        "needed; a password counts alone",
        "a password alone",
        "needed, or the webhook's signature",
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path}")
def test_a_row_admits_operators_alone(room: Room, row: Row) -> None:
    """ROOM-01, ROOM-02: without roles, and whatever is set for `guest`."""
    admitted = {"administrator"}
    if row.login != "a password alone":
        admitted |= {"token", "key"}
    prefix = next(prefix for prefix in PREFIXES if row.path.startswith(prefix))
    for caller, headers in room.callers.items():
        # Operators end what they may; what they may is not asked of each prefix.
        prefixes = PREFIXES[prefix] if caller not in admitted else [prefix]
        for other in prefixes:
            path = other + row.filled().removeprefix(prefix)
            found = status(room.automation, row.method, path, headers)
            if caller in admitted:
                assert found not in (401, 403), f"{caller}: {found}"
            else:
                unknown = caller in {"nobody", "token", "key"}
                assert found == (401 if unknown else 403), f"{caller} {path}: {found}"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_path_says_nothing_about_who_may(room: Room, suffix: str) -> None:
    """ROOM-01: foreign suffixes, slashes and encodings."""
    for row in ROWS:
        if row.path.endswith("/webhooks/{*url}"):
            continue
        path = row.filled() + suffix
        for method in ("GET", "PUT", "POST", "DELETE"):
            found = status(room.automation, method, path, {})
            assert found in (401, 404, 405), f"{method} {path}: {found}"


def test_a_key_whose_name_looks_like_a_webhook_needs_a_login(room: Room) -> None:
    """ROOM-01, ROOM-04."""
    automation, chief = room.automation, room.callers["administrator"]
    path, value = "/v1/keys/x/webhooks/signed", {"value": "set"}
    assert automation.ask("PUT", path, value).status == 401
    assert automation.ask("GET", path, headers=chief).status == 404
    assert automation.ask("PUT", path, value, chief).status == 200
    assert automation.ask("DELETE", path).status == 401
    assert automation.ask("DELETE", path, {"scope": "user"}, chief).status == 400
    assert automation.ask("DELETE", path, None, chief).status == 204


def test_a_signature_opens_its_webhook_alone(room: Room) -> None:
    """ROOM-01, ROOM-09: none opens or closes what another's scheme demands."""
    automation, chief = room.automation, room.callers["administrator"]
    body = b'{"a": 1}'
    proof = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "d-1"} | signed("s3cret", body)
    assert automation.ask("POST", "/v1/webhooks/signed", body, proof).status == 202
    assert automation.ask("POST", "/v1/webhooks/signed", body).status == 401
    assert automation.ask("GET", "/v1/webhooks/signed").status == 401
    rule = {
        "name": "plain",
        "pack": "default",
        "enabled": True,
        "trigger": {"type": "core.st2.webhook", "parameters": {"url": "signed"}},
        "action": {"ref": "core.noop"},
    }
    made = automation.ask("POST", "/v1/rules", rule, chief)
    assert made.status == 201, made
    proof |= {"X-GitHub-Delivery": "d-2"}
    assert automation.ask("POST", "/v1/webhooks/signed", body, proof).status == 202
    assert automation.ask("POST", "/v1/webhooks/signed", body).status == 401
    assert automation.ask("POST", "/v1/webhooks/signed", body, chief).status == 202

    def counts() -> tuple[int, int]:
        both = [
            automation.ask("GET", f"/v1/ruleenforcements?rule_ref=default.{name}", None, chief).body
            for name in ("signed", "plain")
        ]
        return len(both[0]), len(both[1])

    wait_for(lambda: counts() == (2, 1), "each rule has what it may have")


def test_a_password_counts_alone_for_a_token(room: Room) -> None:
    """ROOM-03: a valid token beside a wrong password makes no token."""
    automation = room.automation
    both = room.callers["token"] | basic("administrator", "wrong")
    assert automation.ask("POST", "/auth/v1/tokens", {}, both).status == 401
    assert automation.ask("POST", "/tokens", {}, room.callers["administrator"]).status == 201


def put_user(automation: Automation, name: str, password: str, tags: str) -> None:
    """Makes or changes a user."""
    body = {"password": password, "tags": tags}
    made = ask(automation.imori, f"/api/users/{name}", method="PUT", body=body)
    assert made.status in {201, 204}, made


@dataclass
class Made:
    """A token and an API key that a user has made."""

    automation: Automation
    headers: list[dict[str, str]]

    @staticmethod
    def by(automation: Automation, login: dict[str, str]) -> Made:
        token = automation.ask("POST", "/tokens", {}, login).body["token"]
        key = automation.ask("POST", "/v1/apikeys", {}, login).body["key"]
        return Made(automation, [{"X-Auth-Token": token}, {"St2-Api-Key": key}])

    def statuses(self) -> list[int]:
        return [status(self.automation, "GET", "/v1/packs", headers) for headers in self.headers]


def test_a_key_is_no_longer_than_its_user(room: Room) -> None:
    """ROOM-03: a lost tag counts at the next use, and equal values change nothing.

    A changed password ends tokens. Deleting the user ends tokens and keys; a new user of the same
    name does not get them.
    """
    automation, login = room.automation, basic("temp", "temp")
    put_user(automation, "temp", "temp", "administrator")
    made = Made.by(automation, login)
    assert made.statuses() == [200, 200]
    put_user(automation, "temp", "temp", "")
    assert made.statuses() == [403, 403]
    put_user(automation, "temp", "temp", "administrator")
    assert made.statuses() == [200, 200]
    put_user(automation, "temp", "other", "administrator")
    assert made.statuses() == [401, 200]
    put_user(automation, "temp", "temp", "administrator")
    made = Made.by(automation, login)
    assert ask(automation.imori, "/api/users/temp", method="DELETE").status == 204
    assert made.statuses() == [401, 401]
    put_user(automation, "temp", "temp", "administrator")
    assert made.statuses() == [401, 401]
    made = Made.by(automation, login)
    assert made.statuses() == [200, 200]
    assert ask(automation.imori, "/api/users/temp/tokens", method="DELETE").status == 204
    assert made.statuses() == [401, 401]
    assert status(automation, "GET", "/v1/packs", login) == 200


@pytest.mark.parametrize("kind", ["password", "token", "key"])
def test_a_stream_ends_with_the_right_to_it(room: Room, kind: str) -> None:
    """ROOM-03: also a quiet one, and one that the user has still open."""
    automation, login = room.automation, basic("reader", "reader")
    put_user(automation, "reader", "reader", "administrator")
    token, key = Made.by(automation, login).headers
    headers = {"password": login, "token": token, "key": key}[kind]
    connection = http.client.HTTPConnection(
        *automation.imori.named["automation"], timeout=DEADLINE_S
    )
    connection.request("GET", "/v1/stream", headers=headers)
    stream = connection.getresponse()
    assert stream.status == 200
    # A change of another user changes nothing.
    put_user(automation, "neighbour", "neighbour", "")
    run = {"action": "core.noop"}
    assert automation.ask("POST", "/v1/executions", run, login).status == 201
    assert stream.readline().startswith(b"event: st2.")
    assert ask(automation.imori, "/api/users/reader", method="DELETE").status == 204
    stream.read()
    connection.close()


def test_the_secret_of_a_webhook_is_for_those_who_may_write_its_rule(tmp_path: Path) -> None:
    """ROOM-03, ROOM-09: an observer sees a mask, and no rule has a reserved address."""
    rbac = tmp_path / "data" / "automation" / "rbac"
    (rbac / "assignments").mkdir(parents=True)
    for user, role in [("operator", "admin"), ("chief", "admin"), ("watcher", "observer")]:
        (rbac / "assignments" / f"{user}.yaml").write_text(f"username: {user}\nroles: [{role}]\n")
    with running_automation(tmp_path, is_open=False, admin=True) as automation:
        for user in ("chief", "watcher"):
            put_user(automation, user, user, "")
        chief, watcher = basic("chief", "chief"), basic("watcher", "watcher")
        secret = "s3cret-of-a-sender"

        def make(name: str, **parameters: object) -> Answer:
            rule = {
                "name": name,
                "pack": "default",
                "trigger": {"type": "core.st2.webhook", "parameters": parameters},
                "action": {"ref": "core.noop"},
            }
            return automation.ask("POST", "/v1/rules", rule, chief)

        beside = make("beside", url="beside", scheme="github", secret=secret)
        assert beside.status == 201, beside
        below = make(
            "below", **{"url": "below", "x-imori": {"scheme": "github", "secrets": [secret]}}
        )
        assert below.status == 201, below
        for path in ["/v1/rules", "/v1/rules/views", "/v1/triggers", "/v1/webhooks"] + [
            f"/v1/rules/default.{name}" for name in ("beside", "below")
        ]:
            shown = automation.ask("GET", path, None, watcher)
            assert shown.status == 200, (path, shown)
            assert secret not in str(shown.body), path
            is_rule = path.startswith("/v1/rules")
            assert (secret in str(automation.ask("GET", path, None, chief).body)) == is_rule, path
        refused = make("reserved", url="/st2/", scheme="github", secret=secret)
        assert refused.status == 400, refused
        assert "`st2` is no address of a webhook" in refused.body["faultstring"]
        assert automation.imori.stop() == 0


def test_a_run_makes_no_token_and_no_key(room: Room) -> None:
    """ROOM-03: either would outlive it."""
    automation, chief = room.automation, room.callers["administrator"]
    sent = "-s -o /dev/null -w '%{http_code} ' -H 'Content-Type: application/json' -d '{}'"
    sent += ' -H "X-Auth-Token: $ST2_ACTION_AUTH_TOKEN"'
    command = "; ".join(
        f"curl {sent} {automation.url}{path}" for path in ("/auth/v1/tokens", "/v1/apikeys")
    )
    run = {"action": "core.local", "parameters": {"cmd": command}}
    made = automation.ask("POST", "/v1/executions", run, chief)
    assert made.status == 201, made
    path = f"/v1/executions/{made.body['id']}"

    def ended() -> bool:
        return automation.ask("GET", path, None, chief).body["status"] in FINAL

    wait_for(ended, "the end of the run")
    shown = automation.ask("GET", path, None, chief).body
    assert shown["result"]["stdout"].split() == ["403", "403"], shown


def test_nobody_runs_anything_before_the_first_user(tmp_path: Path) -> None:
    """ROOM-02: from the first start, also on this machine."""
    with running_automation(tmp_path, is_open=False) as automation:
        run = {"action": "core.local", "parameters": {"cmd": "true"}}
        for headers in ({}, basic("guest", "guest")):
            assert automation.ask("POST", "/v1/executions", run, headers).status in (401, 403)
        operator = basic("operator", automation.imori.operator_password())
        assert automation.ask("POST", "/v1/executions", run, operator).status == 201
        assert automation.imori.stop() == 0


def test_an_open_automation_says_so_at_each_start(tmp_path: Path) -> None:
    for _ in range(2):
        with running_automation(tmp_path) as automation:
            assert automation.ask("GET", "/v1/packs").status == 200
            assert automation.imori.stop() == 0
            assert "`automation.open` is set" in automation.imori.log.read_text()


def test_changes_leave_a_line_whoever_made_them(room: Room) -> None:
    """By password, token, key and signature."""
    automation = room.automation
    lines = []
    for caller in ("administrator", "token", "key"):
        path = f"/v1/keys/of-{caller}"
        answer = automation.ask("PUT", path, {"value": "x"}, room.callers[caller])
        assert answer.status == 200
        lines.append(f'user="administrator" .* action="PUT" object="{path}" result="done"')
    body = b'{"a": 2}'
    proof = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "d-9"} | signed("s3cret", body)
    assert automation.ask("POST", "/v1/webhooks/signed", body, proof).status == 202
    of_signer = r'user="\(signature\)" .* action="POST" object="/v1/webhooks/signed"'
    for line in [*lines, of_signer]:
        wait_for(partial(_told, automation, re.compile(line)), line)


def _told(automation: Automation, line: re.Pattern[str]) -> bool:
    return line.search(automation.imori.log.read_text()) is not None
