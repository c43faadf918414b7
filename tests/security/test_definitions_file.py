"""A definitions file named by the configuration: read at the start and on every reload."""

import json
from pathlib import Path
from typing import Any

from harness.admin import ask, read
from harness.reloadable import Reloadable, free_port, listeners, running_reloadable

PERMISSION = {"configure": ".*", "write": ".*", "read": ".*"}


def document(password: str, **more: object) -> dict[str, Any]:
    """Returns definitions with an administrator, a service and a queue, in RabbitMQ's format."""
    # SHA-256 of a four-byte salt and the password, as RabbitMQ stores it.
    hashes = {
        "one": "AAAAAO3/BmigU9r71n1QckhO57GGMmRLp3USfwz8Yn4A+iCn",
        "two": "AAAAAFPfTqa15kyALunoYLiLUrHHuWoBS+mUylY0ntf6brpN",
    }
    return {
        "rabbit_version": "3.12.0",
        "users": [
            {"name": "root", "password_hash": hashes["one"], "tags": "administrator"},
            {"name": "billing", "password_hash": hashes[password], "tags": ""},
        ],
        "vhosts": [{"name": "/"}, {"name": "shop"}],
        "permissions": [
            {"user": "root", "vhost": "/", **PERMISSION},
            {"user": "billing", "vhost": "shop", **PERMISSION},
        ],
        "queues": [{"name": "orders", "vhost": "shop", "durable": True, "arguments": {}}],
        **more,
    }


def configuration(folder: Path, port: int) -> str:
    """Returns a configuration with a definitions file in this folder."""
    begin = listeners(stomp=f"127.0.0.1:{port}", admin="127.0.0.1:0")
    return begin + f'[definitions]\nfile = "{folder / "definitions.json"}"\n'


def write(folder: Path, definitions: object) -> None:
    """Writes the definitions file."""
    (folder / "definitions.json").write_text(json.dumps(definitions))


def status(imori: Reloadable, login: str, path: str = "/api/whoami") -> int:
    """Returns the status of a user's request."""
    return ask(imori, path, login=login).status


def test_definitions_are_there_at_the_start_and_belong_to_their_file(tmp_path: Path) -> None:
    write(tmp_path, document("one"))
    text = configuration(tmp_path, free_port())
    with running_reloadable(tmp_path, text) as imori:
        # The users come from the file, so no `admin` is created and no password is printed.
        assert "created user admin" not in imori.log.read_text()
        assert ask(imori, "/api/users/admin").status == 404
        assert status(imori, "root:one") == 200
        assert read(imori, "/api/queues/shop/orders")["durable"] is True
        for method, path, body in [
            ("PUT", "/api/users/billing", {"password": "mine", "tags": ""}),
            ("DELETE", "/api/users/billing", None),
            ("PUT", "/api/permissions/shop/billing", {**PERMISSION, "read": "^$"}),
            ("DELETE", "/api/permissions/shop/billing", None),
            ("PUT", "/api/vhost-limits/shop/max-queues", {"value": 1}),
        ]:
            refused = ask(imori, path, method=method, body=body)
            told = f"belongs to the definitions file `{tmp_path / 'definitions.json'}`"
            assert refused.status == 400, (path, refused)
            assert told in refused.json()["reason"], refused
        # Other users can still be created, changed and deleted.
        made = ask(imori, "/api/users/own", method="PUT", body={"password": "own", "tags": ""})
        assert made.status == 201
        write(tmp_path, document("two", queues=[]))
        told = imori.reload(text)
        assert "users=own" in told.replace('"', ""), told
        hashes = {user["name"]: user["password_hash"] for user in read(imori, "/api/users")}
        assert hashes["billing"].startswith("AAAAAFPf")
        assert status(imori, "root:one") == 200
        assert read(imori, "/api/queues/shop/orders")["name"] == "orders", "what is there stays"
        # Without the file, its users are like all others.
        imori.reload(text[: text.index("[definitions]")])
        assert ask(imori, "/api/users/billing", method="DELETE").status == 204


def test_a_definitions_file_that_is_wrong_is_named(tmp_path: Path) -> None:
    write(tmp_path, document("one"))
    text = configuration(tmp_path, free_port())
    line = text[: text.index("file =")].count("\n") + 1
    with running_reloadable(tmp_path, text) as imori:
        file = tmp_path / "definitions.json"
        for content, why in [
            ("{", "EOF"),
            ('{"users": ' + "[" * 10_000, "recursion limit"),
            ('{"users": [{"name": 1}]}', "`users`, row 1"),
            (
                '{"permissions": [{"user": "no", "vhost": "/", "configure": "", "write": "",'
                ' "read": ""}]}',
                "there is no user `no`",
            ),
        ]:
            file.write_text(content)
            told = imori.reload(text)
            assert f"{imori.file}:{line}:1: the definitions file `{file}` is not taken over" in told
            assert why in told, told
        file.unlink()
        assert "cannot be read" in imori.reload(text)
        assert status(imori, "root:one") == 200


def test_policies_of_the_file_act_on_its_queues_from_the_start(tmp_path: Path) -> None:
    def policies(length: int) -> dict[str, Any]:
        policy = {"vhost": "shop", "name": "short", "pattern": "^o", "apply-to": "all"}
        return {"policies": [{**policy, "priority": 0, "definition": {"max-length": length}}]}

    def max_length(imori: Reloadable) -> object:
        return read(imori, "/api/queues/shop/orders")["effective_policy_definition"]["max-length"]

    write(tmp_path, document("one", **policies(3)))
    text = configuration(tmp_path, free_port())
    with running_reloadable(tmp_path, text) as imori:
        assert max_length(imori) == 3
        write(tmp_path, document("one", **policies(4)))
        imori.reload(text)
        assert max_length(imori) == 4
