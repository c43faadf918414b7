"""The datastore: secrets, also those that StackStorm encrypted, scopes, prefixes and ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.automation import Automation, running_automation
from harness.deadline import wait_for

# Made by StackStorm's own functions: the key file, and `s3cret` encrypted with it.
KEY = """{"hmacKey": {"hmacKeyString": "XzkiYPL1vlrIN10KAwRUqVCnFH2wdT1Ya9vCKp69bGQ", "size": 256},
"aesKeyString": "se9kHQvxd7-8tWVaDbNfhxcLsBK6lIlOBoJ8W7W-WOw", "mode": "CBC", "size": 256}"""
ENCRYPTED = (
    "3030303030BFE89718F399D5CE0F02A39D9613511D0073ADEC425936E9DDFF51"
    "39D4AAE503C5815AF88AB623E78D51F4601129F7221027940A"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the broker."""
    return tmp_path_factory.mktemp("datastore")


@pytest.fixture(scope="module")
def automation(folder: Path) -> Iterator[Automation]:
    """One automation for all tests."""
    with running_automation(folder) as automation:
        yield automation


def put(automation: Automation, name: str, value: str, **more: object) -> None:
    """Sets a key."""
    body = {"name": name, "value": value, **more}
    answer = automation.ask("PUT", f"/v1/keys/{name}", body)
    assert answer.status == 200, answer


def names(automation: Automation, query: str) -> list[str]:
    """The names of the keys that a query finds."""
    return [key["name"] for key in automation.get(f"/v1/keys?{query}")]


def test_a_value_that_stackstorm_encrypted_is_imported(
    automation: Automation, folder: Path
) -> None:
    body = {"name": "imported", "value": ENCRYPTED, "encrypted": True}
    refused = automation.ask("PUT", "/v1/keys/imported", body)
    assert refused.status == 400
    assert "encrypted by StackStorm; copy its `datastore_key.json`" in refused.body["faultstring"]
    key = folder / "data/automation/datastore_key.json"
    key.write_text(KEY)
    wrong = {"name": "wrong", "value": ENCRYPTED[:-1] + "B", "encrypted": True}
    assert automation.ask("PUT", "/v1/keys/wrong", wrong).status == 400
    put(automation, "imported", ENCRYPTED, encrypted=True)
    shown = automation.get("/v1/keys/imported")
    assert (shown["secret"], shown["encrypted"]) == (True, True)
    assert shown["value"] not in {"s3cret", ENCRYPTED}, "it is encrypted by the key of the engine"
    assert automation.get("/v1/keys/imported?decrypt=true")["value"] == "s3cret"
    ended = automation.run("core.local", cmd="echo {{ st2kv.system.imported | decrypt_kv }}")
    assert ended["result"]["stdout"] == "s3cret"
    # What the engine encrypted is imported likewise.
    put(automation, "again", shown["value"], encrypted=True)
    assert automation.get("/v1/keys/again?decrypt=true")["value"] == "s3cret"


def test_a_list_is_decrypted_on_request(automation: Automation) -> None:
    put(automation, "list.open", "open")
    put(automation, "list.secret", "s3cret", secret=True)
    found = automation.get("/v1/keys?prefix=list.&decrypt=true")
    assert [key["value"] for key in found] == ["open", "s3cret"]
    masked = automation.get("/v1/keys?prefix=list.")
    assert masked[0]["value"] == "open"
    assert masked[1]["value"] != "s3cret"


def test_keys_belong_to_the_system_or_to_a_user(automation: Automation) -> None:
    put(automation, "scoped.a", "of the system")
    put(automation, "scoped.a", "of stanley", scope="user")
    put(automation, "scoped.b", "of ann", scope="user", user="ann")
    rows = [
        ("prefix=scoped.", ["of the system"]),
        ("prefix=scoped.&scope=system", ["of the system"]),
        ("prefix=scoped.&scope=user", ["of stanley"]),
        ("prefix=scoped.&scope=user&user=ann", ["of ann"]),
        ("prefix=scoped.&user=ann", ["of ann"]),
        ("prefix=scoped.&scope=all", ["of the system", "of stanley"]),
        ("prefix=scoped.a&limit=1", ["of the system"]),
        ("prefix=scoped.c", []),
        ("prefix=SCOPED.", []),
    ]
    for query, values in rows:
        assert [key["value"] for key in automation.get(f"/v1/keys?{query}")] == values, query
    assert automation.get("/v1/keys/scoped.b?user=ann")["value"] == "of ann"
    assert automation.ask("GET", "/v1/keys/scoped.b").status == 404
    assert automation.ask("GET", "/v1/keys?scope=everyone").status == 400


def test_a_key_ends_with_its_time_to_live(automation: Automation) -> None:
    put(automation, "short.lived", "x", ttl=1)
    put(automation, "short.kept", "x", ttl=3600)
    assert names(automation, "prefix=short.") == ["short.kept", "short.lived"]
    assert automation.get("/v1/keys/short.lived")["expire_timestamp"]
    wait_for(lambda: automation.ask("GET", "/v1/keys/short.lived").status == 404)
    assert names(automation, "prefix=short.") == ["short.kept"]
    assert automation.ask("DELETE", "/v1/keys/short.lived").status == 404
