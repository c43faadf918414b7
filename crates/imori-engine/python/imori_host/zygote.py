"""Forks a process for each action of a pack from one that has everything imported already.

The engine starts this file with a socket of packets as standard input. A packet is JSON: `run`
brings three descriptors and is answered with the `pid` of the new process and, when that has
ended, its `status`; `signal` ends one. No code of a pack runs here.
"""

from __future__ import annotations

import array
import gc
import json
import os
import select
import signal
import socket
import sys
from typing import Any

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKET_BYTES = 4096
DESCRIPTORS = 3
# How often a session is looked through for processes that were forked meanwhile.
SESSION_ROUNDS = 16


class Zygote:
    """The processes that were forked and have not been waited for."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._wakeup, self._signalled = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._pids: dict[int, int] = {}
        self._doomed: set[int] = set()
        signal.set_wakeup_fd(self._signalled)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> int | None:
        """Serves until the engine closes the socket and what was forked has ended.

        In a forked process, returns its socket.
        """
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        is_open = True
        while is_open or self._pids:
            ready = [fd for fd, _ in poll.poll()]
            if self._wakeup in ready:
                self._reap()
            if self._control.fileno() in ready:
                packet, fds = self._packet()
                if not packet:
                    poll.unregister(self._control)
                    is_open = False
                    continue
                request = json.loads(packet)
                if "run" in request:
                    channel = self._fork(request["run"], fds)
                    if channel is not None:
                        return channel
                else:
                    self._signal(request["id"], request["signal"])
        return None

    def _packet(self) -> tuple[bytes, list[int]]:
        numbers = array.array("i")
        room = socket.CMSG_SPACE(DESCRIPTORS * numbers.itemsize)
        packet, control, _, _ = self._control.recvmsg(PACKET_BYTES, room, socket.MSG_CMSG_CLOEXEC)
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
        return packet, list(numbers)

    def _fork(self, number: int, fds: list[int]) -> int | None:
        if len(fds) != DESCRIPTORS:
            self._report(id=number, error="the engine sent no descriptors")
            return None
        try:
            pid = os.fork()
        except OSError as error:
            self._report(id=number, error=f"no process can be forked: {error.strerror}")
            pid = -1
        if pid == 0:
            self._become_action(fds)
            return fds[2]
        for fd in fds:
            os.close(fd)
        if pid > 0:
            self._pids[number] = pid
            self._report(id=number, pid=pid)
        return None

    def _become_action(self, fds: list[int]) -> None:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._control.close()
        os.close(self._wakeup)
        os.close(self._signalled)
        os.dup2(fds[0], 1)
        os.dup2(fds[1], 2)
        os.close(fds[0])
        os.close(fds[1])
        gc.enable()

    def _reap(self) -> None:
        try:
            while os.read(self._wakeup, PACKET_BYTES):
                pass
        except BlockingIOError:
            pass
        for number, pid in list(self._pids.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            # Until it is waited for, its number belongs to nobody else.
            if number in self._doomed:
                _kill_session(pid, signal.SIGKILL)
                self._doomed.remove(number)
            del self._pids[number]
            _, status = os.waitpid(pid, 0)
            self._report(id=number, status=_exit_code(status))

    def _signal(self, number: int, which: int) -> None:
        leader = self._pids.get(number)
        if leader is not None:
            # What it leaves behind at its end is killed then.
            self._doomed.add(number)
            _kill_session(leader, which)

    def _report(self, **report: Any) -> None:
        try:
            self._control.send(json.dumps(report).encode())
        except OSError:
            # The engine has ended.
            return


def _kill_session(leader: int, which: int) -> None:
    """Sends a signal to all processes of a session, also to those that it forks meanwhile."""
    told: set[int] = set()
    for _ in range(SESSION_ROUNDS):
        found = _session(leader) - told
        for pid in found:
            try:
                os.kill(pid, which)
            except ProcessLookupError:
                continue
        told |= found
        if not found:
            return


def _session(leader: int) -> set[int]:
    """The processes of a session that run."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, _, _, session = file.read().rpartition(b")")[2].split()[:4]
            except OSError:
                continue
            if int(session) == leader and state != b"Z":
                found.add(int(name))
    return found


def _exit_code(status: int) -> int:
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main(pack_folder: str) -> int:
    """Serves the actions of a pack; returns the exit code of this process, or of the action."""
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.path[0] = FOLDER

    from imori_host import action
    from imori_host.ending import end
    from imori_host.paths import set_paths

    set_paths(pack_folder, os.path.join("actions", "lib"))

    zygote = Zygote(control)
    # Pages that the collector never writes to stay shared with the processes forked.
    gc.disable()
    gc.freeze()
    channel = zygote.serve()
    if channel is not None:
        end(action.main(channel))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
