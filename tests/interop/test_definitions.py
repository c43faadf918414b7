"""Definitions: a document is moved between brokers, and RabbitMQ's documents are imported."""

import base64
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.admin import ask, read
from harness.deadline import DEADLINE_S
from harness.imori import BINARY, Imori, running_imori


def run(imori: Imori, *arguments: str) -> tuple[int, str, str]:
    assert imori.admin is not None
    host, port = imori.admin
    command = [BINARY, "definitions", *arguments, "--admin", f"http://{host}:{port}"]
    command += ["--data-dir", str(imori.log.parent / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    return done.returncode, done.stdout, done.stderr


def document() -> dict[str, Any]:
    """Returns a document as exported by RabbitMQ 3.13."""
    salt = b"\x01\x02\x03\x04"
    hashed = base64.b64encode(salt + hashlib.sha256(salt + b"secret").digest()).decode()
    return {
        "rabbit_version": "3.13.7",
        "rabbitmq_version": "3.13.7",
        "product_name": "RabbitMQ",
        "product_version": "3.13.7",
        "users": [
            {
                "name": "joe",
                "password_hash": hashed,
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": ["management"],
                "limits": {},
            },
            {
                "name": "old",
                "password_hash": "x",
                "hashing_algorithm": "rabbit_password_hashing_md5",
                "tags": "",
                "limits": {},
            },
        ],
        "vhosts": [
            {
                "name": "shop",
                "description": "orders",
                "tags": [],
                "default_queue_type": "classic",
                "metadata": {"description": "orders", "tags": []},
            }
        ],
        "permissions": [
            {"user": "joe", "vhost": "shop", "configure": ".*", "write": ".*", "read": ".*"}
        ],
        "topic_permissions": [
            {"user": "joe", "vhost": "shop", "exchange": "amq.topic", "write": "^a", "read": ".*"}
        ],
        "parameters": [
            {
                "component": "vhost-limits",
                "name": "limits",
                "vhost": "shop",
                "value": {"max-queues": 100},
            }
        ],
        "global_parameters": [{"name": "cluster_name", "value": "rabbit@host"}],
        "queues": [
            {
                "name": f"orders-{number}",
                "vhost": "shop",
                "durable": True,
                "auto_delete": False,
                "arguments": {"x-max-length": number + 1},
            }
            for number in range(100)
        ],
        "exchanges": [
            {
                "name": "events",
                "vhost": "shop",
                "type": "topic",
                "durable": True,
                "auto_delete": False,
                "internal": False,
                "arguments": {"alternate-exchange": "amq.fanout"},
            }
        ],
        "bindings": [
            {
                "source": "events",
                "vhost": "shop",
                "destination": f"orders-{number}",
                "destination_type": "queue",
                "routing_key": f"order.{number}.#",
                "arguments": {},
            }
            for number in range(100)
        ],
    }


def test_a_document_of_rabbitmq_is_taken_over_and_goes_on(tmp_path: Path) -> None:
    written = tmp_path / "definitions.json"
    written.write_text(json.dumps(document()))
    with running_imori(tmp_path / "one", admin=True) as imori:
        code, said, errors = run(imori, "import", str(written))
        assert (code, errors) == (0, "")
        assert said.splitlines() == [
            "left out: user `old`: a password hashed by `rabbit_password_hashing_md5`; "
            "set a new one",
            "left out: `global_parameters`, 1 of them",
            "the definitions are imported",
        ]
        assert ask(imori, "/api/whoami", login="joe:secret").json()["tags"] == ["management"]
        assert len(read(imori, "/api/queues/shop")) == 100
        code, exported, _ = run(imori, "export")
        assert code == 0
        assert imori.stop() == 0
    first = json.loads(exported)
    for kind in ["permissions", "topic_permissions", "queues", "exchanges", "bindings"]:
        taken = {json.dumps(row, sort_keys=True) for row in document()[kind]}
        assert taken <= {json.dumps(row, sort_keys=True) for row in first[kind]}, kind
    written.write_text(exported)
    with running_imori(tmp_path / "two", admin=True) as imori:
        assert run(imori, "import", str(written))[:2] == (0, "the definitions are imported\n")
        second = json.loads(run(imori, "export")[1])
        assert imori.stop() == 0
    # Each broker has an administrator of its own until the document provides another.
    assert second == first


def test_an_administrator_imports_what_it_may_make(tmp_path: Path) -> None:
    """A new vhost with its objects, the first time, whether or not the document has the rights."""
    with running_imori(tmp_path, admin=True) as imori:
        body: object = {"password": "chief", "tags": "administrator"}
        assert ask(imori, "/api/users/chief", method="PUT", body=body).status == 201
        exchange = {"name": "orders", "type": "topic", "durable": True, "arguments": {}}
        own = {"user": "chief", "configure": ".*", "write": ".*", "read": ".*"}
        for vhost, permissions in (("first", []), ("second", [own | {"vhost": "second"}])):
            made = {
                "vhosts": [{"name": vhost}],
                "permissions": permissions,
                "exchanges": [exchange | {"vhost": vhost}],
            }
            for _ in range(2):
                answer = ask(
                    imori, "/api/definitions", method="POST", login="chief:chief", body=made
                )
                assert answer.status == 204, answer.body
            assert ask(imori, f"/api/exchanges/{vhost}/orders", login="chief:chief").status == 200
        assert ask(
            imori, "/api/vhosts/third", method="PUT", login="chief:chief", body={}
        ).status in (201, 204)
        rights = read(imori, "/api/permissions/third/chief")
        assert (rights["configure"], rights["write"], rights["read"]) == (".*", ".*", ".*")
        for user, vhost in (("chief", "nowhere"), ("nobody", "/")):
            refused = ask(
                imori,
                "/api/definitions",
                method="POST",
                body={"permissions": [own | {"user": user, "vhost": vhost}]},
            )
            assert refused.status == 400, refused
            assert f"`{user if user == 'nobody' else vhost}`" in refused.body
        assert imori.stop() == 0


# The rows of a document that a broker takes, of which a broken one is refused at its end.
QUEUE = {"name": "made", "vhost": "/", "durable": True, "arguments": {}}
BROKEN_BINDING = {
    "source": "nowhere",
    "vhost": "/",
    "destination": "made",
    "destination_type": "queue",
    "routing_key": "",
    "arguments": {},
}
CONSUMER = {"durable_name": "reader", "ack_policy": "explicit"}
STREAM = {
    "name": "KEPT",
    "vhost": "/",
    "configuration": {"name": "KEPT", "subjects": ["kept.>"]},
    "consumers": [],
}
OWN_PASSWORD = {"name": "chief", "password": "changed", "tags": "administrator"}
RIGHTS = {"user": "chief", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}


def everything(imori: Imori) -> dict[str, Any]:
    """Returns all definitions, with the hashes of passwords."""
    exported: dict[str, Any] = read(imori, "/api/definitions")
    return exported


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"permissions": [RIGHTS], "bindings": [BROKEN_BINDING]}, "`nowhere`"),
        ({"queues": [QUEUE]}, "`made`"),
        (
            {
                "permissions": [RIGHTS],
                "queues": [QUEUE, QUEUE | {"name": "kept", "arguments": {"x-max-length": 7}}],
            },
            "queue `kept`",
        ),
        (
            {
                "permissions": [RIGHTS],
                "parameters": [
                    {
                        "component": "vhost-limits",
                        "name": "limits",
                        "vhost": "/",
                        "value": {"max-queues": 3},
                    }
                ],
                "queues": [QUEUE, QUEUE | {"name": "over"}],
            },
            "queue `over`",
        ),
        (
            {
                "permissions": [RIGHTS],
                "streams": [
                    {
                        "name": "TAKEN",
                        "vhost": "/",
                        "configuration": {"name": "TAKEN", "subjects": ["taken.>"]},
                        "consumers": [CONSUMER],
                    },
                    STREAM | {"consumers": [CONSUMER]},
                ],
                "bindings": [
                    BROKEN_BINDING | {"source": "amq.fanout", "destination": "kept"},
                    BROKEN_BINDING,
                ],
            },
            "`nowhere`",
        ),
    ],
)
def test_a_refused_document_changes_nothing(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    """SECURITY ROOM-13: above all no password, so that the importer can correct and repeat it."""
    with running_imori(tmp_path, admin=True) as imori:
        chief: object = {"password": "chief", "tags": "administrator"}
        assert ask(imori, "/api/users/chief", method="PUT", body=chief).status == 201
        kept = {"queues": [QUEUE | {"name": "kept"}], "streams": [STREAM]}
        assert ask(imori, "/api/definitions", method="POST", body=kept).status == 204
        before = everything(imori)
        refused = {
            "users": [OWN_PASSWORD],
            "vhosts": [{"name": "fresh"}, {"name": "/", "description": "changed"}],
            "exchanges": [
                {"name": "made", "vhost": vhost, "type": "topic", "durable": True, "arguments": {}}
                for vhost in ("fresh", "/")
                if vhost == "fresh" or "permissions" in change
            ],
            "policies": [
                {"name": "p", "vhost": "/", "pattern": "", "definition": {"max-length": 9}}
            ],
        } | change
        if change.get("bindings"):
            refused["queues"] = [QUEUE]
        for _ in range(2):
            answer = ask(
                imori, "/api/definitions", method="POST", login="chief:chief", body=refused
            )
            assert (answer.status, reason in answer.json()["reason"]) == (400, True), answer
            assert everything(imori) == before
        assert imori.stop() == 0


def test_an_importer_gets_its_new_password_and_rights_with_the_document(tmp_path: Path) -> None:
    with running_imori(tmp_path, admin=True) as imori:
        chief: object = {"password": "chief", "tags": "administrator"}
        assert ask(imori, "/api/users/chief", method="PUT", body=chief).status == 201
        taken = {"users": [OWN_PASSWORD], "permissions": [RIGHTS], "queues": [QUEUE]}
        for password, status in (("chief", 204), ("chief", 401), ("changed", 204)):
            login = f"chief:{password}"
            answer = ask(imori, "/api/definitions", method="POST", login=login, body=taken)
            assert answer.status == status, answer
        assert ask(imori, "/api/queues/%2F/made").status == 200
        assert imori.stop() == 0


def test_a_hash_of_md5_and_a_default_type_are_told_as_left_out(tmp_path: Path) -> None:
    hashed = base64.b64encode(b"salt" + bytes(16)).decode()
    with running_imori(tmp_path, admin=True) as imori:
        taken = {
            "users": [
                {"name": "unsaid", "password_hash": hashed, "tags": ""},
                {
                    "name": "said",
                    "password_hash": hashed,
                    "hashing_algorithm": "rabbit_password_hashing_md5",
                    "tags": "",
                },
            ],
            "vhosts": [
                {"name": "a", "default_queue_type": "quorum"},
                {"name": "b", "metadata": {"default_queue_type": "stream"}},
                {"name": "c", "default_queue_type": "undefined"},
            ],
        }
        answer = ask(imori, "/api/definitions", method="POST", body=taken)
        assert answer.json()["left_out"] == [
            f"user `{name}`: a password hashed by `rabbit_password_hashing_md5`; set a new one"
            for name in ("unsaid", "said")
        ] + [
            f'vhost `{name}`: `default_queue_type` "{kind}"; '
            "give queues the argument `x-queue-type`"
            for name, kind in (("a", "quorum"), ("b", "stream"))
        ]
        assert imori.stop() == 0


def test_the_definitions_of_a_vhost_go_to_another(tmp_path: Path) -> None:
    with running_imori(tmp_path, admin=True) as imori:
        assert ask(imori, "/api/definitions", method="POST", body=document()).status == 200
        (tmp_path / "shop.json").write_text(run(imori, "export", "--vhost", "shop")[1])
        assert ask(imori, "/api/vhosts/copy", method="PUT").status == 201
        code, said, _ = run(imori, "import", "--vhost", "copy", str(tmp_path / "shop.json"))
        assert (code, said) == (0, "the definitions are imported\n")
        assert len(read(imori, "/api/bindings/copy")) == 200
        assert imori.stop() == 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"users": 7}, "`users` is not a list"),
        ({"queues": [{"vhost": "/"}]}, "`queues`, row 1: missing field `name`"),
        ({"queues": [{"name": "a", "durable": True}]}, "queue `a`: `vhost` is missing"),
        (
            {
                "queues": [
                    {"name": "a", "vhost": "/", "durable": True, "arguments": {"x-expires": 0}}
                ]
            },
            "queue `a` in vhost `/`: invalid arg 'x-expires'",
        ),
        ({"permissions": [{"user": "joe", "vhost": "/"}]}, "missing field `configure`"),
        (
            {
                "users": [{"name": "joe", "password_hash": "nothing", "tags": ""}],
            },
            "user `joe`: `password_hash` is no hash",
        ),
    ],
)
def test_what_is_no_document_is_refused_with_its_place(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    with running_imori(tmp_path, admin=True) as imori:
        answer = ask(imori, "/api/definitions", method="POST", body=change)
        assert (answer.status, reason in answer.json()["reason"]) == (400, True), answer
        assert [user["name"] for user in read(imori, "/api/users")] == ["admin"]
        assert imori.stop() == 0


def test_documents_without_end_are_refused(tmp_path: Path) -> None:
    """SECURITY WEB-07: depth and length are limited."""
    with running_imori(tmp_path, admin=True) as imori:
        assert imori.admin is not None
        deep = '{"users":' + "[" * 10_000 + "]" * 10_000 + "}"
        large = '{"users":[' + " " * (11 * 1024 * 1024) + "]}"
        for text, status in [(deep, 400), (large, 413)]:
            path = tmp_path / "document.json"
            path.write_text(text)
            login = f"operator:{imori.operator_password()}"
            url = "http://{}:{}/api/definitions".format(*imori.admin)
            curl = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-u", login]
            curl += ["-H", "Content-Type: application/json"]
            asked = subprocess.run(
                [*curl, "--data-binary", f"@{path}", url], capture_output=True, text=True
            )
            assert asked.stdout == str(status)
        assert imori.stop() == 0
