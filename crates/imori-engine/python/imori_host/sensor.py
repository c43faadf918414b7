"""Runs one sensor of a pack in a process of its own.

The engine starts this file with a socket as standard input. Its first byte brings two descriptors:
a socket for questions to the engine, and a pipe that ends with the engine. Then come frames: the
request, and triggers that were added or removed.
"""

from __future__ import annotations

import array
import fcntl
import os
import select
import signal
import socket
import sys
import warnings

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DESCRIPTORS = 2


def main(pack_folder: str) -> None:
    """Runs the sensor that the engine asks for, and ends this process with it."""
    sys.path[0] = FOLDER
    questions, lifeline = _receive_descriptors()
    _end_with_engine(lifeline)

    from imori_host.frames import Channel
    from imori_host.output import open_output
    from imori_host.paths import set_paths

    commands = Channel(os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    open_output()
    set_paths(pack_folder, "sensors")
    request = commands.receive()
    if request is None:
        sys.exit(1)

    from imori_host.sensor_host import SensorHost

    is_green = _make_green()
    SensorHost(request, Channel(questions), commands, is_green).run()


def _make_green() -> bool:
    """Patches the standard library as StackStorm does, where `eventlet` is installed."""
    # Its own resolver takes half of the memory of a sensor.
    os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")
    warnings.filterwarnings("ignore", message="\\s*Eventlet is deprecated")
    from st2common.util.monkey_patch import monkey_patch, use_select_poll_workaround

    try:
        monkey_patch()
    except ImportError:
        return False
    use_select_poll_workaround(nose_only=False)
    return True


def _receive_descriptors() -> tuple[int, int]:
    numbers = array.array("i")
    commands = socket.socket(fileno=os.dup(0))
    room = socket.CMSG_SPACE(DESCRIPTORS * numbers.itemsize)
    _, control, _, _ = commands.recvmsg(1, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
    commands.close()
    if len(numbers) != DESCRIPTORS:
        sys.exit("the engine sent no descriptors")
    return numbers[0], numbers[1]


def _end_with_engine(lifeline: int) -> None:
    """Lets the kernel kill the process group when the engine's end of the pipe closes.

    Unlike a thread that watches, this ends a sensor that is busy in C code, and its children.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    # It may have closed before.
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    if poll.poll(0):
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
