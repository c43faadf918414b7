"""SASL SCRAM-SHA-256 on the AMQP 1.0 listener (SECURITY AUTH-09)."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.admin import ask, read
from harness.amqp.scram import (
    GRANTED,
    MECHANISM,
    OUTCOME,
    REFUSED,
    Conversation,
    answer,
    challenge,
    init,
    log_in,
)
from harness.imori import BINARY, Imori, running_imori

# Wrong logins of one user that are checked in a row.
BURST = 20


@contextmanager
def broker(folder: Path, *, scram: bool = True) -> Iterator[Imori]:
    settings = {"users.scram": "true" if scram else "false"}
    with running_imori(folder, protocol="amqp", admin=True, settings=settings) as imori:
        yield imori
        assert imori.stop() == 0


def put(imori: Imori, user: str, password: str) -> None:
    body = {"password": password, "tags": ""}
    assert ask(imori, f"/api/users/{user}", method="PUT", body=body).status in (201, 204)


def plain(address: tuple[str, int], user: str, password: str) -> int:
    with Conversation(address) as login:
        outcome = login.send(init("PLAIN", f"\0{user}\0{password}".encode()))
        assert outcome.code == OUTCOME
        return outcome.fields[-1]


def users(imori: Imori, *arguments: str) -> str:
    assert imori.admin is not None
    host, port = imori.admin
    login = f"operator:{imori.operator_password()}"
    command = [BINARY, "user", "ls", "--admin", f"http://{login}@{host}:{port}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_whoever_has_the_password_proves_it_and_nobody_else(tmp_path: Path) -> None:
    with broker(tmp_path) as imori:
        address = imori.addresses[0]
        put(imori, "joe", "secret")
        for user, password, outcome in [
            ("guest", "guest", REFUSED),
            ("joe", "secret", GRANTED),
            ("joe", "Secret", REFUSED),
            ("joe", "", REFUSED),
            ("Joe", "secret", REFUSED),
            ("nobody", "secret", REFUSED),
            ("operator", imori.operator_password(), REFUSED),
        ]:
            assert log_in(address, user, password) == outcome, (user, password)
        put(imori, "joe", "other")
        assert log_in(address, "joe", "secret") == REFUSED, "the old password is forgotten at once"
        assert log_in(address, "joe", "other") == GRANTED
        # Responses that do not answer this challenge.
        for forge in (
            lambda last: last.replace("r=", "r=x"),
            lambda last: last.replace("c=biws", "c=eSws"),
            lambda last: last.rsplit(",p=")[0],
            lambda last: last + "x",
            lambda _: "",
        ):
            assert log_in(address, "joe", "other", forge) == REFUSED
        assert log_in(address, "joe", "other") == GRANTED


def test_the_built_in_user_is_one_as_long_as_it_is_there(tmp_path: Path) -> None:
    with broker(tmp_path) as imori:
        assert log_in(imori.addresses[0], "guest", "guest") == GRANTED
        assert log_in(imori.addresses[0], "guest", "wrong") == REFUSED


def test_a_name_that_is_nobodys_looks_like_any_other(tmp_path: Path) -> None:
    with broker(tmp_path) as imori:
        put(imori, "joe", "secret")
        told = {user: challenge(imori.addresses[0], user) for user in ("joe", "eve", "guest")}
        assert {(len(each.salt), each.iterations) for each in told.values()} == {(16, 15_000)}
        assert len({each.salt for each in told.values()}) == len(told)
    with broker(tmp_path) as imori:
        for user, before in told.items():
            after = challenge(imori.addresses[0], user)
            assert (after.salt, after.iterations) == (before.salt, before.iterations), user
            assert after.nonce != before.nonce


def test_a_burst_of_wrong_proofs_is_the_last_for_a_while(tmp_path: Path) -> None:
    with broker(tmp_path) as imori:
        for user in ("joe", "ann"):
            put(imori, user, "secret")

        def is_looked_at(mechanism: Callable[[tuple[str, int], str, str], int]) -> bool:
            assert log_in(imori.addresses[0], "joe", "wrong") == REFUSED
            return mechanism(imori.addresses[0], "joe", "secret") == GRANTED

        # One per second is forgiven, so the burst may take a few more.
        assert not all(is_looked_at(log_in) for _ in range(5 * BURST))
        assert not all(is_looked_at(plain) for _ in range(5 * BURST)), "by no mechanism"
        assert log_in(imori.addresses[0], "ann", "secret") == GRANTED, "another user"


def test_it_is_off_unless_it_is_turned_on(tmp_path: Path) -> None:
    with broker(tmp_path, scram=False) as imori:
        put(imori, "joe", "secret")
        with Conversation(imori.addresses[0]) as login:
            assert MECHANISM.encode() not in login.mechanisms
            assert login.send(init(MECHANISM, b"n,,n=joe,r=abc")).code == OUTCOME
        assert "scram" not in json.dumps(read(imori, "/api/users"))


def test_users_from_before_have_no_keys_until_they_log_in_by_plain(tmp_path: Path) -> None:
    with broker(tmp_path, scram=False) as imori:
        for user in ("joe", "ann"):
            put(imori, user, "secret")
    with broker(tmp_path) as imori:
        warned = next(line for line in imori.log_lines() if "cannot log in by SCRAM" in line)
        assert "joe" in warned
        assert "ann" in warned
        assert "15000" not in users(imori)
        assert log_in(imori.addresses[0], "joe", "secret") == REFUSED
        assert plain(imori.addresses[0], "joe", "wrong") == REFUSED
        assert log_in(imori.addresses[0], "joe", "wrong") == REFUSED
        assert plain(imori.addresses[0], "joe", "secret") == GRANTED
        assert log_in(imori.addresses[0], "joe", "secret") == GRANTED
        shown = {line.split()[0]: line.split()[-1] for line in users(imori).splitlines()}
        assert (shown["joe"], shown["ann"]) == ("yes", "-")


def offered(imori: Imori) -> bool:
    with Conversation(imori.addresses[0]) as login:
        return MECHANISM.encode() in login.mechanisms


def test_it_is_offered_once_every_user_has_keys(tmp_path: Path) -> None:
    with broker(tmp_path, scram=False) as imori:
        for user in ("joe", "ann"):
            put(imori, user, "secret")
    with broker(tmp_path) as imori:
        assert not offered(imori)
        assert plain(imori.addresses[0], "joe", "secret") == GRANTED
        assert not offered(imori)
        put(imori, "ann", "another")
        assert not offered(imori), "the first user has none either"
        admin = {"password": "another", "tags": "administrator"}
        assert ask(imori, "/api/users/admin", method="PUT", body=admin).status == 204
        assert offered(imori)
        nobody = {"tags": "", "password_hash": ""}
        assert ask(imori, "/api/users/tom", method="PUT", body=nobody).status == 201
        assert offered(imori), "a user who cannot log in by a password"
        assert ask(imori, "/v1/users/tom/tokens", method="POST").status in (200, 201)
        assert not offered(imori), "one who can by a token"


def test_keys_move_with_the_definitions(tmp_path: Path) -> None:
    with broker(tmp_path / "from") as imori:
        put(imori, "joe", "secret")
        definitions = read(imori, "/api/definitions")
    with broker(tmp_path / "to") as imori:
        path = "/api/definitions"
        assert ask(imori, path, method="POST", body=definitions).status == 204
        assert log_in(imori.addresses[0], "joe", "secret") == GRANTED
        joe = next(user for user in definitions["users"] if user["name"] == "joe")
        for wrong in ("", "SCRAM-SHA-256$1:AAAA$AAAA:AAAA", joe["scram_sha256"] + "A"):
            body = {"users": [joe | {"scram_sha256": wrong}]}
            refused = ask(imori, path, method="POST", body=body)
            assert refused.status == 400, wrong
            assert "SCRAM-SHA-256$15000" in refused.body
        assert log_in(imori.addresses[0], "joe", "secret") == GRANTED


def test_messages_out_of_turn_are_refused(tmp_path: Path) -> None:
    with broker(tmp_path) as imori:
        first = init(MECHANISM, b"n,,n=joe,r=abc")
        with Conversation(imori.addresses[0]) as login:
            assert login.send(answer(b"c=biws,r=abc,p=AAAA")).fields[-1] != GRANTED
        with Conversation(imori.addresses[0]) as login:
            login.send(first)
            assert login.send(first).code == OUTCOME, "a login begins once"
        for message in (b"", b"n", b"p=tls-unique,,n=joe,r=abc", b"n,a=ann,n=joe,r=abc", b"\xff"):
            with Conversation(imori.addresses[0]) as login:
                outcome = login.send(init(MECHANISM, message))
                assert (outcome.code, outcome.fields[-1]) == (OUTCOME, REFUSED), message
