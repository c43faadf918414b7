"""Runs one action in the process that was forked for it."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any

from imori_host import results
from imori_host.frames import Channel
from imori_host.output import open_output
from imori_host.services import ActionService, ActionWrapper, Engine
from st2common.constants.runners import PYTHON_RUNNER_INVALID_ACTION_STATUS_EXIT_CODE
from st2common.runners.base_action import Action
from st2common.runners.utils import get_action_class_instance
from st2common.util import loader

INVALID_STATUS = """\
run() returned a tuple whose first item is neither True nor False: {status!r}
Return (True, result) or (False, result), or a list instead of the tuple.
"""
TOO_LARGE = """\
the result has {size} bytes of JSON; at most {limit} are kept
Return less, or write it to a file and return its path.
"""


def main(fd: int) -> int:
    """Runs the action that the engine asks for on this socket; returns the exit code."""
    open_output()
    channel = Channel(fd)
    request = channel.receive()
    if request is None:
        # The engine has ended; its successor sees that nothing was done.
        return 1
    results.mark(request["started_file"])
    _enter(request)
    pid = os.getpid()
    execution: str | None = request.get("execution_id")
    try:
        exit_code, frame = _run(request, channel)
    except SystemExit as error:
        exit_code = _exit_code(error)
        frame = results.failure(exit_code, execution)
    except BaseException as error:
        _finish(request, channel, pid, results.failure(1, execution))
        error.__traceback__ = _without_host(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    _finish(request, channel, pid, frame)
    return exit_code


def _enter(request: dict[str, Any]) -> None:
    os.environ.update(request["environment"])
    if "TZ" in request["environment"]:
        time.tzset()
    os.chdir(request["working_folder"])
    sys.argv = [request["entry_point"]]


def _run(request: dict[str, Any], channel: Channel) -> tuple[int, bytes]:
    execution = request.get("execution_id")
    returned = _instance(request, channel).run(**request["parameters"])
    status, result = None, returned
    if isinstance(returned, tuple) and len(returned) == 2:
        status, result = returned
    if status is not None and not isinstance(status, bool):
        sys.stderr.write(INVALID_STATUS.format(status=status))
        code = PYTHON_RUNNER_INVALID_ACTION_STATUS_EXIT_CODE
        return code, results.failure(code, execution)
    frame = results.output(result, status, execution)
    limit: int = request["result_limit"]
    if len(frame) > limit:
        sys.stderr.write(TOO_LARGE.format(size=len(frame), limit=limit))
        return 1, results.failure(1, execution)
    return 0, frame


def _instance(request: dict[str, Any], channel: Channel) -> Any:
    path = request["entry_point"]
    try:
        classes = loader.register_plugin(Action, path)
    except Exception as error:
        sys.stderr.write(f"{path} has no action that loads: {error}\n")
        raise
    if not classes:
        raise ValueError(f"{path} has no action class; its name must end in `.py`")
    wrapper = ActionWrapper(
        request["pack"], request["config"], request["user"], request["log_level"]
    )
    wrapper._class_name = classes[0].__name__
    service = ActionService(wrapper, Engine(channel))
    return get_action_class_instance(classes[0], request["config"], service)


def _finish(request: dict[str, Any], channel: Channel, pid: int, frame: bytes) -> None:
    # A process that the action forked may come here too, with a copy of everything.
    if os.getpid() != pid:
        return
    path = request["result_file"]
    try:
        results.keep(path, frame)
    except OSError as error:
        sys.stderr.write(f"{path} cannot hold the result: {error}\n")
    if channel.is_open():
        try:
            channel.send(frame)
        except OSError:
            # The engine has ended; its successor reads the file.
            return


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def _without_host(trace: TracebackType | None) -> TracebackType | None:
    here = os.path.dirname(os.path.abspath(__file__))
    own = trace
    while own is not None and own.tb_frame.f_code.co_filename.startswith(here):
        own = own.tb_next
    return own or trace
