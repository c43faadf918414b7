"""Users: who may log in, from where, and with which effects (SECURITY AUTH-14, OPS-01, OPS-03)."""

import asyncio
import base64
import hashlib
import json
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
import nkeys
import pika
import pika.exceptions
import pytest

from harness.admin import ask, read
from harness.deadline import DEADLINE_S
from harness.imori import BINARY, Imori, running_imori

# Options of a NATS client that does not reconnect.
ONCE: dict[str, Any] = {"allow_reconnect": False, "max_reconnect_attempts": 0}
ALL = {"configure": ".*", "write": ".*", "read": ".*"}
SALT = b"\x01\x02\x03\x04"
# The password `secret`, as RabbitMQ stores it.
HASH_OF_SECRET = base64.b64encode(SALT + hashlib.sha256(SALT + b"secret").digest()).decode()


@contextmanager
def broker(folder: Path, **settings: object) -> Iterator[Imori]:
    dotted = {key.replace("__", "."): value for key, value in settings.items()}
    with running_imori(folder, amqp=True, admin=True, settings=dotted) as imori:
        yield imori
        assert imori.stop() == 0


@pytest.fixture
def imori(tmp_path: Path) -> Iterator[Imori]:
    with broker(tmp_path) as running:
        yield running


@contextmanager
def channel(imori: Imori, user: str, password: str, vhost: str = "/") -> Iterator[Any]:
    assert imori.amqp is not None
    host, port = imori.amqp
    credentials = pika.PlainCredentials(user, password)
    parameters = pika.ConnectionParameters(host, port, vhost, credentials)
    with pika.BlockingConnection(parameters) as connection:
        yield connection.channel()


def put(imori: Imori, path: str, body: object, status: int = 201) -> None:
    answer = ask(imori, path, method="PUT", body=body)
    assert answer.status == status, answer


def may_log_in(imori: Imori, user: str, password: str, vhost: str = "/") -> bool:
    with socket.create_connection(imori.addresses[0], DEADLINE_S) as stream:
        login = f"login:{user}\npasscode:{password}\nhost:vhost:{vhost}\n"
        stream.sendall(f"CONNECT\naccept-version:1.2\n{login}\n\0".encode())
        return stream.recv(4096).startswith(b"CONNECTED")


def nats_lets_in(imori: Imori, login: Callable[[str], dict[str, str]]) -> bool:
    """Logs in with the options that `login` derives from the nonce."""
    with socket.create_connection(imori.addresses[0], DEADLINE_S) as stream:
        reader = stream.makefile("rb")
        info = json.loads(reader.readline().removeprefix(b"INFO "))
        options = {"verbose": False, **login(info["nonce"])}
        stream.sendall(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
        with reader:
            return reader.readline() == b"PONG\r\n"


def by_token(token: str) -> Callable[[str], dict[str, str]]:
    return lambda _: {"auth_token": token}


def test_a_user_logs_in_with_the_right_password_and_where_it_may(imori: Imori) -> None:
    put(imori, "/api/users/joe", {"password": "secret", "tags": ""})
    put(imori, "/api/vhosts/blue", {})
    assert not may_log_in(imori, "joe", "secret"), "without a permission no vhost is open"
    put(imori, "/api/permissions/%2F/joe", ALL)
    for user, password, vhost, expected in [
        ("joe", "secret", "/", True),
        ("joe", "Secret", "/", False),
        ("joe", "", "/", False),
        ("Joe", "secret", "/", False),
        ("joe", "secret", "blue", False),
        ("joe", "secret", "green", False),
    ]:
        assert may_log_in(imori, user, password, vhost) is expected, (user, password, vhost)
    put(imori, "/api/users/joe", {"password": "other", "tags": ""}, status=204)
    assert not may_log_in(imori, "joe", "secret"), "the old password is forgotten at once"
    assert may_log_in(imori, "joe", "other")
    assert ask(imori, "/api/users/joe", method="DELETE").status == 204
    assert not may_log_in(imori, "joe", "other")
    assert read(imori, "/api/permissions/") == [{"user": "admin", "vhost": "/", **ALL}]


def test_a_flood_of_passwords_is_checked_on_few_threads_that_yield_to_the_cells(
    imori: Imori,
) -> None:
    # SECURITY AUTH-09: over any protocol and over HTTP. The first of a second do not yield.
    names = [f"flooded-{number}" for number in range(10)]
    for name in names:
        put(imori, f"/api/users/{name}", {"password": "secret", "tags": ""})
    for name in names:
        for _ in range(5):
            assert ask(imori, "/api/whoami", login=f"{name}:wrong").status == 401
        assert not may_log_in(imori, name, "wrong")
    tasks = Path(f"/proc/{imori.process.pid}/task")
    # The name is in parentheses; the 16th field after it is the nice value.
    stats = [(task / "stat").read_text().rpartition(")") for task in tasks.iterdir()]
    nice = [rest.split()[16] for head, _, rest in stats if head.endswith("(hasher")]
    assert set(nice) == {"0", "10"}
    assert nice.count("10") <= 2


def test_rights_hold_on_the_wire(imori: Imori) -> None:
    put(imori, "/api/users/joe", {"password": "secret", "tags": ""})
    put(imori, "/api/permissions/%2F/joe", {"configure": "^joe", "write": "^joe", "read": "^$"})
    with channel(imori, "joe", "secret") as own:
        own.queue_declare("joe-1")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
            own.queue_declare("other")
        assert (refused.value.reply_code, "configure" in refused.value.reply_text) == (403, True)


def test_a_user_that_is_deleted_is_cut_off(imori: Imori) -> None:
    """SECURITY AUTH-12: a silent connection is ended too."""
    put(imori, "/api/users/joe", {"password": "secret", "tags": ""})
    put(imori, "/api/permissions/%2F/joe", ALL)
    with socket.create_connection(imori.addresses[0], DEADLINE_S) as stream:
        stream.sendall(b"CONNECT\naccept-version:1.2\nlogin:joe\npasscode:secret\nhost:/\n\n\0")
        assert stream.recv(4096).startswith(b"CONNECTED")
        assert ask(imori, "/api/users/joe", method="DELETE").status == 204
        said = b""
        while part := stream.recv(4096):
            said += part
    assert said.startswith(b"ERROR\n")


def test_vhosts_come_and_go_with_all_they_have(imori: Imori) -> None:
    put(imori, "/api/vhosts/blue", {"description": "of the blue team", "tags": "blue,team"})
    told = read(imori, "/api/vhosts/blue")
    assert (told["description"], told["tags"]) == ("of the blue team", ["blue", "team"])
    with channel(imori, "guest", "guest", "blue") as inside:
        inside.queue_declare("kept", durable=True)
        inside.queue_declare("own", exclusive=True)
        inside.exchange_declare("routes", durable=True)
        inside.basic_publish("", "kept", b"x")
        assert ask(imori, "/api/vhosts/blue", method="DELETE").status == 204
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
            inside.queue_declare("more")
    assert ask(imori, "/api/vhosts/blue").status == 404
    put(imori, "/api/vhosts/blue", {})
    assert read(imori, "/api/queues/blue") == []
    named = {row["name"] for row in read(imori, "/api/exchanges/blue")}
    assert "routes" not in named


def test_a_user_whose_client_names_no_vhost_is_at_home(tmp_path: Path) -> None:
    with running_imori(tmp_path, protocol="nats", amqp=True, admin=True) as imori:
        put(imori, "/api/vhosts/blue", {})
        put(imori, "/api/users/joe", {"password": "secret", "tags": "", "vhost": "blue"})
        put(imori, "/api/permissions/blue/joe", ALL)
        with channel(imori, "joe", "secret", "blue") as own:
            own.queue_declare("heard")
            own.queue_bind("heard", "amq.topic", "news.#")
            with socket.create_connection(imori.addresses[0], DEADLINE_S) as stream:
                login = b'CONNECT {"user":"joe","pass":"secret","verbose":false}\r\n'
                stream.sendall(login + b"PUB news.1 2\r\nhi\r\nPING\r\n")
                said = b""
                while b"PONG" not in said:
                    said += stream.recv(4096)
            assert own.basic_get("heard", auto_ack=True)[2] == b"hi"
        assert imori.stop() == 0


def test_a_token_stands_for_its_user(tmp_path: Path) -> None:
    with running_imori(tmp_path, protocol="nats", amqp=True, admin=True) as imori:
        put(imori, "/api/users/joe", {"tags": "management"})
        put(imori, "/api/permissions/%2F/joe", ALL)
        made = ask(imori, "/api/users/joe/tokens", method="POST")
        token = made.json()["token"]
        assert (made.status, token.startswith("imori_")) == (201, True)
        assert token not in ask(imori, "/api/users/joe").body, "only its digest is kept"
        with channel(imori, "joe", token) as own:
            own.queue_declare("tokens", exclusive=True)
        bearer = {"Authorization": f"Bearer {token}"}
        seen = ask(imori, "/api/whoami", login=None, headers=bearer).json()
        assert seen == {"name": "joe", "tags": ["management"]}

        async def connect() -> None:
            host, port = imori.addresses[0]
            client = await nats.connect(f"nats://{host}:{port}", token=token, **ONCE)
            await client.close()

        asyncio.run(connect())
        for wrong in [token + "x", token[:-1], "imori_", "joe"]:
            assert not nats_lets_in(imori, by_token(wrong)), wrong
        assert ask(imori, "/api/users/joe/tokens", method="DELETE").status == 204
        assert not nats_lets_in(imori, by_token(token))
        assert imori.stop() == 0


def test_a_key_of_nats_signs_the_nonce(tmp_path: Path) -> None:
    seed = nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER)
    public = nkeys.from_seed(seed).public_key.decode()
    stranger = nkeys.encode_seed(bytes(range(1, 33)), nkeys.PREFIX_BYTE_USER)
    with running_imori(tmp_path, protocol="nats", admin=True) as imori:
        put(imori, "/api/users/joe", {"nkeys": [public]})
        put(imori, "/api/permissions/%2F/joe", ALL)
        refused = ask(imori, "/api/users/eve", method="PUT", body={"nkeys": [public[:-1] + "A"]})
        assert (refused.status, "no public key" in refused.body) == (400, True)

        async def connect() -> None:
            host, port = imori.addresses[0]
            url = f"nats://{host}:{port}"
            client = await nats.connect(url, nkeys_seed_str=seed.decode(), **ONCE)
            await client.publish("news", b"x")
            await client.flush()
            await client.close()

        def signed(signing: bytes, text: str | None = None) -> Callable[[str], dict[str, str]]:
            def login(nonce: str) -> dict[str, str]:
                signature = nkeys.from_seed(bytearray(signing)).sign((text or nonce).encode())
                return {"nkey": public, "sig": base64.b64encode(signature).decode()}

            return login

        asyncio.run(connect())
        assert nats_lets_in(imori, signed(seed))
        assert not nats_lets_in(imori, signed(stranger)), "somebody else signed it"
        assert not nats_lets_in(imori, signed(seed, "another nonce")), "it was signed elsewhere"
        assert ask(imori, "/api/users/joe", method="DELETE").status == 204
        assert not nats_lets_in(imori, signed(seed))
        assert imori.stop() == 0


def test_all_of_it_outlives_the_process(tmp_path: Path) -> None:
    with broker(tmp_path) as imori:
        put(imori, "/api/vhosts/blue", {"description": "kept"})
        put(imori, "/api/users/joe", {"password": "secret", "tags": "monitoring"})
        put(imori, "/api/permissions/blue/joe", ALL)
        topic = {"exchange": "amq.topic", "write": "^a", "read": ".*"}
        put(imori, "/api/topic-permissions/blue/joe", topic)
    with broker(tmp_path) as imori:
        assert may_log_in(imori, "joe", "secret", "blue")
        assert read(imori, "/api/users/joe")["tags"] == ["monitoring"]
        assert read(imori, "/api/vhosts/blue")["description"] == "kept"
        rows = read(imori, "/api/topic-permissions/blue/joe")
        assert rows == [{"user": "joe", "vhost": "blue", **topic}]


def test_guest_is_there_until_there_are_users(imori: Imori) -> None:
    assert may_log_in(imori, "guest", "guest")
    assert ask(imori, "/api/overview", login="guest:guest").status == 401, "it administers nothing"
    put(imori, "/api/users/joe", {"password": "secret", "tags": ""})
    assert not may_log_in(imori, "guest", "guest")


@pytest.mark.parametrize(
    ("guest", "before", "after"), [("always", True, True), ("never", False, False)]
)
def test_guest_can_be_kept_and_switched_off(
    tmp_path: Path, guest: str, before: bool, after: bool
) -> None:
    with broker(tmp_path, users__guest=guest) as imori:
        assert may_log_in(imori, "guest", "guest") is before
        put(imori, "/api/users/joe", {"password": "secret", "tags": ""})
        assert may_log_in(imori, "guest", "guest") is after


def test_a_first_start_prints_a_password_once(tmp_path: Path) -> None:
    command = [BINARY, "serve", "--data-dir", str(tmp_path), "--listen", "admin=127.0.0.1:0"]
    command += ["--listen", "stomp=127.0.0.1:0"]

    def start() -> list[str]:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            lines: list[str] = []
            while not lines or lines[-1] != "ready":
                lines.append(process.stdout.readline().rstrip("\n"))
            process.terminate()
            logged = process.communicate(timeout=DEADLINE_S)[1]
        password = [
            line.rsplit(" ", 1)[1] for line in lines if line.startswith("created user admin")
        ]
        assert not any(secret in logged for secret in password), "no secret is ever logged"
        return password

    (password,) = start()
    assert len(password) == 25
    assert start() == []
    secret = tmp_path / "operator.secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_the_password_of_admin_can_come_from_a_file_that_is_closed_to_others(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("from-a-file\n")
    # Kubernetes gives its secrets to the group of the container.
    secret.chmod(0o440)
    with broker(tmp_path / "a", users__admin_password_file=secret) as imori:
        assert ask(imori, "/api/whoami", login="admin:from-a-file").json()["tags"] == [
            "administrator"
        ]
        assert ask(imori, "/api/whoami", login="admin:other").status == 401
    secret.chmod(0o644)
    command = [BINARY, "serve", "--data-dir", str(tmp_path / "b")]
    environment = {"IMORI__USERS__ADMIN_PASSWORD_FILE": str(secret)}
    command += ["--listen", "stomp=127.0.0.1:0"]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert ended.returncode == 1
    assert f"the secret in `{secret}` is not taken: others can read it" in ended.stderr


def test_a_hash_of_rabbitmq_is_taken_and_replaced_at_the_first_login(imori: Imori) -> None:
    hashed = HASH_OF_SECRET
    body = {
        "password_hash": hashed,
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": "",
    }
    put(imori, "/api/users/joe", body)
    put(imori, "/api/permissions/%2F/joe", ALL)
    assert read(imori, "/api/users/joe")["password_hash"] == hashed
    assert not may_log_in(imori, "joe", "wrong")
    assert read(imori, "/api/users/joe")["password_hash"] == hashed
    assert may_log_in(imori, "joe", "secret")
    assert read(imori, "/api/users/joe")["hashing_algorithm"] == "argon2id"
    assert may_log_in(imori, "joe", "secret")


@pytest.mark.parametrize("name", ["operator", "amq.user", "imori.cell"])
def test_names_of_the_broker_are_no_users(imori: Imori, name: str) -> None:
    for path, method, body in [
        (f"/api/users/{name}", "PUT", {"password": "secret", "tags": ""}),
        (f"/v1/users/{name}", "PUT", {"password": "secret"}),
        ("/api/definitions", "POST", {"users": [{"name": name, "password_hash": "", "tags": ""}]}),
    ]:
        answer = ask(imori, path, method=method, body=body)
        assert answer.status in (400, 422), (path, answer)
        told = answer.body
        assert f"user `{name}`" in told, told
        assert "use another name" in told, told
    assert name not in {user["name"] for user in read(imori, "/api/users")}
    assert imori.admin is not None
    host, port = imori.admin
    admin = f"http://operator:{imori.operator_password()}@{host}:{port}"
    ended = subprocess.run(
        [BINARY, "user", "set", name, "--admin", admin],
        input="secret\n",
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert ended.returncode != 0
    assert f"user `{name}`" in ended.stderr, ended.stderr
    assert "use another name" in ended.stderr, ended.stderr
    put(imori, "/api/users/operators", {"password": "secret", "tags": ""})


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        ({"password": 7}, "`password` is no text"),
        ({"password": ["secret"]}, "`password` is no text"),
        ({"password": ""}, "`password` is empty"),
        ({"password": 1025 * "x"}, "more than 1024 bytes"),
        ({"password": "other", "password_hash": HASH_OF_SECRET}, "contradict each other"),
    ],
)
def test_a_clear_password_that_cannot_be_taken_is_an_error(
    imori: Imori, secret: dict[str, object], why: str
) -> None:
    row = {"name": "joe", "tags": "", **secret}
    answer = ask(imori, "/api/definitions", method="POST", body={"users": [row]})
    told = answer.body
    assert (answer.status, "user `joe`" in told, why in told) == (400, True, True), answer
    assert "joe" not in {user["name"] for user in read(imori, "/api/users")}


@pytest.mark.parametrize(
    "secret",
    [{"password": "secret"}, {"password": "secret", "password_hash": HASH_OF_SECRET}],
)
def test_a_clear_password_of_a_document_is_taken(imori: Imori, secret: dict[str, str]) -> None:
    row = {"name": "joe", "tags": "", **secret}
    rights = {"user": "joe", "vhost": "/", **ALL}
    document = {"users": [row], "permissions": [rights]}
    assert ask(imori, "/api/definitions", method="POST", body=document).status in (200, 204)
    assert may_log_in(imori, "joe", "secret")
    assert not may_log_in(imori, "joe", "other")


def test_contradictions_are_refused_whole(imori: Imori) -> None:
    put(imori, "/api/users/joe", {"password": "secret", "tags": ""})
    for path, body, reason in [
        ("/api/users/joe", {"password_hash": "secret"}, "`password_hash` is no hash"),
        ("/api/users/joe", {"tags": 7}, "`tags`: invalid type"),
        ("/api/users/a%00b", {}, "cannot be the name of a user"),
        ("/api/users/" + 300 * "x", {}, "cannot be the name of a user"),
        ("/api/permissions/%2F/joe", {"configure": "", "write": ""}, "`read` is missing"),
        ("/api/permissions/%2F/joe", {**ALL, "read": "("}, "`read` in vhost `/`"),
        ("/api/permissions/%2F/joe", {**ALL, "subjects": {"publsh": {}}}, "unknown field `publsh`"),
        ("/api/users/joe", [], "not a JSON object"),
    ]:
        answer = ask(imori, path, method="PUT", body=body)
        assert (answer.status, reason in answer.json()["reason"]) == (400, True), answer
    for path in ["/api/permissions/%2F/nobody", "/api/permissions/nowhere/joe"]:
        answer = ask(imori, path, method="PUT", body=ALL)
        assert answer.status == 404
    answer = ask(imori, "/api/users/admin", method="DELETE")
    assert (answer.status, "has to stay" in answer.json()["reason"]) == (400, True)
    assert ask(imori, "/api/users/admin", method="PUT", body={"password": "x"}).status == 400
    assert may_log_in(imori, "joe", "secret") is False


@pytest.mark.parametrize(
    ("tags", "seen"),
    [
        ("", []),
        ("management", ["/api/overview", "/api/queues"]),
        ("monitoring", ["/api/overview", "/api/queues", "/api/nodes"]),
        ("administrator", ["/api/overview", "/api/queues", "/api/nodes", "/api/users"]),
    ],
)
def test_each_path_asks_for_its_right(imori: Imori, tags: str, seen: list[str]) -> None:
    """SECURITY WEB-01: without the required right, no path answers."""
    put(imori, "/api/users/joe", {"password": "secret", "tags": tags})
    for path in ["/api/overview", "/api/queues", "/api/nodes", "/api/users"]:
        expected = 200 if path in seen else 401
        assert ask(imori, path, login="joe:secret").status == expected, path


def test_a_tenant_learns_nothing_of_another(imori: Imori) -> None:
    """SECURITY AUTH-14: a vhost without access looks like a missing one."""
    for name in ["blue", "green"]:
        put(imori, f"/api/vhosts/{name}", {"description": f"canary-{name}"})
        put(imori, f"/api/users/{name}", {"password": "secret", "tags": "management"})
        put(imori, f"/api/permissions/{name}/{name}", ALL)
        with channel(imori, name, "secret", name) as inside:
            inside.queue_declare(f"canary-{name}", durable=True)
    for path in [
        "/api/vhosts",
        "/api/queues",
        "/api/exchanges",
        "/api/bindings",
        "/api/connections",
    ]:
        answer = ask(imori, path, login="blue:secret")
        assert (answer.status, "green" in answer.body) == (200, False), answer
    for path in [
        "/api/vhosts/{}",
        "/api/queues/{}",
        "/api/queues/{}/canary-green",
        "/api/exchanges/{}",
    ]:
        closed = ask(imori, path.format("green"), login="blue:secret")
        absent = ask(imori, path.format("nowhere"), login="blue:secret")
        assert (closed.status, closed.body) == (absent.status, absent.body) == (404, absent.body)
