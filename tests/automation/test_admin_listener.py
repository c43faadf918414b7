"""StackStorm's API at the admin listener, for users whom that listener has logged in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.admin import Answer, ask
from harness.automation import Automation, running_automation
from harness.imori import running_imori

PACKS = "/automation/v1/packs"
RUN = {"action": "core.noop"}

USERS = {"boss": ["administrator"], "ann": ["management"], "out": []}


@pytest.fixture(scope="module")
def automation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Automation]:
    """An automation of a broker with users, none of whom has a role."""
    folder = tmp_path_factory.mktemp("listener")
    with running_automation(folder, is_open=False, admin=True) as automation:
        for user, tags in USERS.items():
            body = {"password": user, "tags": tags}
            made = ask(automation.imori, f"/v1/users/{user}", method="PUT", body=body)
            assert made.status in {201, 204}, made
        yield automation


def session(automation: Automation, user: str) -> dict[str, str]:
    """Signs a user in; returns the header with the cookie."""
    body = {"user": user, "password": user}
    answer = ask(automation.imori, "/v1/session", method="POST", login=None, body=body)
    assert answer.status == 200, answer
    return {"Cookie": answer.headers["Set-Cookie"].split(";")[0]}


def execute(automation: Automation, headers: dict[str, str]) -> Answer:
    """Asks for an execution without a password."""
    path = "/automation/v1/executions"
    return ask(automation.imori, path, method="POST", login=None, headers=headers, body=RUN)


def test_a_session_of_an_administrator_runs_an_action_in_that_name(automation: Automation) -> None:
    cookie = session(automation, "boss")
    packs = ask(automation.imori, PACKS, login=None, headers=cookie)
    assert "core" in [pack["ref"] for pack in packs.json()]
    host, port = automation.imori.admin or ("", 0)
    own = {"Origin": f"http://{host}:{port}", "Sec-Fetch-Site": "same-origin"}
    made = execute(automation, {**cookie, **own})
    assert made.status == 201, made
    assert made.json()["context"]["user"] == "boss"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://other.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_a_page_of_another_origin_changes_nothing(
    automation: Automation, headers: dict[str, str], status: int
) -> None:
    """The cookie is valid: the request is refused for its origin or its type."""
    refused = execute(automation, {**session(automation, "boss"), **headers})
    assert refused.status == status, refused


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_origin_reads_nothing(automation: Automation, site: str) -> None:
    headers = {**session(automation, "boss"), "Sec-Fetch-Site": site}
    assert ask(automation.imori, PACKS, login=None, headers=headers).status == 401


def test_a_user_who_is_no_administrator_and_has_no_role_is_refused(automation: Automation) -> None:
    refused = ask(automation.imori, PACKS, login=None, headers=session(automation, "ann"))
    assert refused.status == 403, refused
    assert "ann" in refused.json()["faultstring"]
    assert execute(automation, session(automation, "ann")).status == 403
    assert ask(automation.imori, PACKS, login="out:out").status == 403


def test_no_other_credential_than_a_login_of_the_broker_counts(automation: Automation) -> None:
    assert ask(automation.imori, PACKS, login=None).status == 401
    assert ask(automation.imori, PACKS, login="boss:wrong").status == 401
    forged = {"Cookie": "imori_session=" + "0" * 64}
    assert ask(automation.imori, PACKS, login=None, headers=forged).status == 401
    path, body = "/automation/v1/apikeys", {"metadata": {"for": "tests"}}
    key = ask(automation.imori, path, method="POST", login="boss:boss", body=body)
    assert key.status == 201, key
    sent = {"St2-Api-Key": key.json()["key"]}
    assert automation.ask("GET", "/v1/packs", None, sent).status == 200
    assert ask(automation.imori, PACKS, login=None, headers=sent).status == 401


def test_the_cookie_of_a_session_opens_no_other_listener(automation: Automation) -> None:
    assert automation.ask("GET", "/v1/packs", None, session(automation, "boss")).status == 401


def test_a_broker_without_automation_says_so(tmp_path: Path) -> None:
    with running_imori(tmp_path, admin=True) as imori:
        absent = ask(imori, PACKS)
        assert absent.status == 404, absent
        assert "listener `automation`" in absent.json()["detail"]
        assert ask(imori, PACKS, login=None).status == 401
