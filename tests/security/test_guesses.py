"""Wrong passwords are limited by source and user, without locking out the user elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.admin import ask
from harness.broker import broker_of
from harness.imori import Imori, running_imori
from harness.raw import RawClient

# Wrong logins per user and source that are checked; one per second is forgiven.
BURST = 20
# Far more than are checked within the time that they take.
MANY = 400
HERE, ELSEWHERE = "127.0.0.1", "127.0.0.2"


@pytest.fixture
def imori(tmp_path: Path) -> Iterator[Imori]:
    with running_imori(tmp_path, admin=True, settings={"users.guest": "always"}) as running:
        for user in ("joe", "ann"):
            put_user(running, user, "right")
            path = f"/api/permissions/%2F/{user}"
            rights = {"configure": ".*", "write": ".*", "read": ".*"}
            assert ask(running, path, method="PUT", body=rights).status == 201
        yield running
        assert running.stop() == 0


def put_user(imori: Imori, user: str, password: str) -> None:
    body = {"password": password, "tags": "management"}
    assert ask(imori, f"/api/users/{user}", method="PUT", body=body).status in (201, 204)


def by_stomp(imori: Imori, user: str, password: str, source: str = HERE) -> bool:
    """Returns whether a login over STOMP succeeds."""
    with RawClient(broker_of(imori), source=source) as raw:
        return raw.login(headers={"login": user, "passcode": password}).command == "CONNECTED"


def by_http(imori: Imori, user: str, password: str) -> bool:
    """Returns whether a login over HTTP succeeds."""
    return ask(imori, "/api/whoami", login=f"{user}:{password}").status == 200


@pytest.mark.parametrize("log_in", [by_stomp, by_http])
def test_a_remembered_password_is_not_compared_without_bound(
    imori: Imori, log_in: Callable[[Imori, str, str], bool]
) -> None:
    # SECURITY AUTH-09.
    assert log_in(imori, "joe", "right")
    assert not any(log_in(imori, "joe", f"wrong-{guess}") for guess in range(MANY))
    # Passwords are no longer compared: the right one is refused like the wrong ones.
    assert not log_in(imori, "joe", "right")
    assert log_in(imori, "ann", "right"), "another user of this source"
    assert by_stomp(imori, "joe", "right", ELSEWHERE), "the same user from elsewhere"
    assert by_stomp(imori, "guest", "guest")


def test_the_built_in_user_is_bounded_too(imori: Imori) -> None:
    # SECURITY AUTH-09.
    assert by_stomp(imori, "guest", "guest")
    assert not any(by_stomp(imori, "guest", f"wrong-{guess}") for guess in range(MANY))
    assert not by_stomp(imori, "guest", "guest")
    assert by_stomp(imori, "guest", "guest", ELSEWHERE)


def test_nobody_shuts_the_operator_out(imori: Imori) -> None:
    # SECURITY AUTH-09: its password is too long to guess, but every local process could try.
    assert not any(by_http(imori, "operator", f"wrong-{guess}") for guess in range(2 * BURST))
    assert ask(imori, "/api/whoami").status == 200


def test_a_change_of_a_user_ends_what_is_remembered(imori: Imori) -> None:
    # SECURITY AUTH-09, AUTH-12.
    assert by_stomp(imori, "joe", "right")
    put_user(imori, "joe", "other")
    assert not by_stomp(imori, "joe", "right")
    assert by_stomp(imori, "joe", "other")
    assert ask(imori, "/api/users/joe", method="DELETE").status == 204
    assert not by_stomp(imori, "joe", "other")
