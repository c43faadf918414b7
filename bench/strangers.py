"""Measures how strangers affect callers: by full TLS handshakes, and by logins with wrong passwords.

python3 bench/strangers.py                        1,000 calls a second beside each, three rounds
python3 bench/strangers.py --program old/imori    another build

Strangers also cost the machine CPU time of their own. So the callers are measured again while the strangers
use another broker on the same machine; the difference is the effect of the broker itself.
Promised: a p99 of at most twice the p99 without strangers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import ssl
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HANDSHAKES = 200
LOGINS = 500
# User names used in turns, so that none fails too often to be checked.
NAMES = 1000
# A stranger's visit, given its number.
Visit = Callable[[int], Coroutine[Any, Any, None]]


class Broker:
    """A broker with a TLS listener, and its addresses."""

    def __init__(self, program: Path, folder: Path, certificates: Path) -> None:
        config = folder / "imori.toml"
        files = (("certificate", "server.pem"), ("key", "server-key.pem"))
        config.write_text("[tls]\n" + "".join(f'{key} = "{certificates / file}"\n' for key, file in files))
        command = [str(program), "serve", "--config", str(config), "--data-dir", str(folder / "data")]
        command += ["--listen", "stomp=127.0.0.1:0", "--listen", "stomp-tls=127.0.0.1:0"]
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.ports: dict[str, int] = {}
        assert self.process.stdout is not None
        for line in self.process.stdout:
            words = line.split()
            if words[:1] == ["listening"]:
                self.ports[words[1]] = int(words[-1].rsplit(":", 1)[1])
            if words == ["ready"]:
                return
        raise SystemExit(f"the broker does not start:\n{(folder / 'log').read_text()}")

    def end(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()


async def shake_hands(broker: Broker, context: ssl.SSLContext, _number: int) -> None:
    """Make one full handshake."""
    _reader, writer = await asyncio.open_connection("localhost", broker.ports["stomp-tls"], ssl=context)
    writer.close()


async def log_in(broker: Broker, number: int) -> None:
    """Try one wrong password, and wait for the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.ports["stomp"])
    name = number % NAMES
    writer.write(f"CONNECT\naccept-version:1.2\nhost:/\nlogin:u{name}\npasscode:{number}\n\n\0".encode())
    await reader.read()
    writer.close()


async def flood(visit: Visit, rate: int, ends: threading.Event) -> None:
    """Start `rate` visits per second until the end; return the number that failed."""
    began = asyncio.get_running_loop().time()
    visits: list[asyncio.Task[None]] = []
    while not ends.is_set():
        while len(visits) < (asyncio.get_running_loop().time() - began) * rate:
            visits.append(asyncio.ensure_future(visit(len(visits))))
        await asyncio.sleep(0.005)
    results = await asyncio.gather(*visits, return_exceptions=True)
    failed = sum(isinstance(result, Exception) for result in results)
    if failed:
        print(f"  {failed} of {len(results)} strangers found no answer")


@contextmanager
def flooded(visit: Visit, rate: int) -> Iterator[None]:
    """Run strangers on a thread of their own during the block."""
    ends = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(flood(visit, rate, ends)))
    thread.start()
    yield
    ends.set()
    thread.join()


def p99_us(program: Path, broker: Broker, folder: Path, seconds: int) -> float:
    """Measure calls for `seconds`; return the p99 in microseconds."""
    report = folder / "report.json"
    url = f"stomp://127.0.0.1:{broker.ports['stomp']}"
    command = [str(program), "bench", "rpc", "--url", url, "--rate", "1000", "--time", f"{seconds}s"]
    command += ["--warmup", "1s", "--json", str(report)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return float(find(json.loads(report.read_text()), "latency")["p99_us"])


def find(report: Any, key: str) -> Any:
    """Return the first value with this key, at any depth."""
    if isinstance(report, dict):
        if key in report:
            return report[key]
        report = list(report.values())
    if isinstance(report, list):
        return next((found for part in report if (found := find(part, key)) is not None), None)
    return None


def measure(choice: argparse.Namespace, folder: Path, brokers: tuple[Broker, Broker], ca: Path) -> None:
    """Print the p99 of each situation."""
    program = choice.program.resolve()
    context = ssl.create_default_context(cafile=str(ca))
    ours, other = brokers
    situations: dict[str, tuple[Visit, int] | None] = {"alone": None}
    for where, broker in (("elsewhere", other), ("here", ours)):
        situations[f"handshakes {where}"] = (partial(shake_hands, broker, context), HANDSHAKES)
        situations[f"wrong passwords {where}"] = (partial(log_in, broker), LOGINS)
    found: dict[str, list[float]] = {name: [] for name in situations}
    for _ in range(choice.rounds):
        for name, strangers in situations.items():
            with nullcontext() if strangers is None else flooded(*strangers):
                found[name].append(p99_us(program, ours, folder, choice.seconds))
    alone = statistics.median(found["alone"])
    print(f"p99 of 1,000 calls a second in us, {choice.rounds} rounds of {choice.seconds} s, beside")
    for name, each in found.items():
        median = statistics.median(each)
        print(f"  {name:25} median {median:6.0f}, {min(each):.0f} to {max(each):.0f}: {median / alone:.1f} x")


def main() -> None:
    """Start both brokers and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "imori")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    choice = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="imori-strangers-"))
    certificates = folder / "certs"
    subprocess.run(
        [str(choice.program), "cert", "dev", "--dir", str(certificates)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        brokers = []
        for name in ("ours", "other"):
            (folder / name).mkdir(mode=0o700)
            brokers.append(Broker(choice.program.resolve(), folder / name, certificates))
            stack.callback(brokers[-1].end)
        measure(choice, folder, (brokers[0], brokers[1]), certificates / "ca.pem")


if __name__ == "__main__":
    main()
