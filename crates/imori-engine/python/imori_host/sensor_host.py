"""A sensor and what it is told: its triggers, and that it has to end."""

from __future__ import annotations

import _thread
import logging
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any, NoReturn

from imori_host.frames import Channel
from imori_host.sensor_service import SensorService, SensorWrapper
from imori_host.services import Engine
from st2common.util import loader
from st2reactor.sensor.base import PollingSensor, Sensor

# Taken at import, before `eventlet` replaces them.
_allocate_lock = _thread.allocate_lock
_get_ident = _thread.get_ident
_start_thread = _thread.start_new_thread
_kill = os.kill
_exit = os._exit

# Time that `run` has to end once the sensor is told to stop.
STOP_S = 1.0

LOG_FORMAT = "%(levelname)s %(name)s: %(message)s"


class Stop(SystemExit):
    """The engine asks the sensor to end."""


class SensorEngine(Engine):
    """Asks the engine for a sensor, which ends at `SIGTERM`, but never before an answer is read."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel, "sensor_service")
        self._main = _get_ident()
        self._is_asking = False
        self._is_stopping = False
        self._is_late = False

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Raises `Stop`, once."""
        if not self.begin_stop():
            return
        if self._is_asking:
            self._is_late = True
        else:
            raise Stop(0)

    def begin_stop(self) -> bool:
        """Notes that the sensor is told to stop; returns false if it was before."""
        is_first = not self._is_stopping
        self._is_stopping = True
        return is_first

    def exchange(self, frame: dict[str, Any]) -> dict[str, Any]:
        """Sends a frame and returns the engine's answer."""
        if _get_ident() != self._main:
            return super().exchange(frame)
        self._is_asking = True
        try:
            return super().exchange(frame)
        finally:
            self._is_asking = False
            if self._is_late:
                self._is_late = False
                raise Stop(0)


class SensorHost:
    """Runs a sensor to its end."""

    def __init__(
        self, request: dict[str, Any], questions: Channel, commands: Channel, is_green: bool
    ) -> None:
        self._request = request
        self._commands = commands
        self._is_green = is_green
        self._engine = SensorEngine(questions)
        self._wrapper = SensorWrapper(request["pack"], request["class_name"])
        self._logger = self._wrapper._logger
        self._triggers: dict[str, dict[str, Any]] = {}
        # The green thread of `run`.
        self._main: Any = None
        # Held by the thread that ends this process.
        self._ending = _allocate_lock()

    def run(self) -> NoReturn:
        """Ends this process; with 0 if `run` has returned or the sensor was told to end."""
        level = getattr(logging, self._request["log_level"].upper(), logging.INFO)
        logging.basicConfig(stream=sys.stderr, level=level, format=LOG_FORMAT)
        signal.signal(signal.SIGTERM, self._engine.on_signal)
        sensor = None
        exit_code = 0
        try:
            sensor = self._instance()
            sensor.setup()
            for trigger in self._request["triggers"]:
                self._add(sensor, trigger)
            self._engine.exchange({"kind": "ready"})
            self._watch(sensor)
            sensor.run()
            _join_threads()
        except Stop:
            exit_code = 0
        except SystemExit as error:
            exit_code = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            self._logger.exception("the sensor has failed")
            exit_code = 1
        if not self._ending.acquire(False):
            # The other thread ends the process.
            while True:
                time.sleep(STOP_S)
        self._end(sensor, exit_code)

    def _instance(self) -> Any:
        request = self._request
        kind = loader.register_plugin_class(Sensor, request["entry_point"], request["class_name"])
        if kind is None:
            raise ValueError(
                f"{request['entry_point']} is no Python file; its name must end in `.py`"
            )
        service = SensorService(self._wrapper, self._engine, request["frame_limit"])
        arguments: dict[str, Any] = {"sensor_service": service, "config": request["config"]}
        if request["poll_interval"] and issubclass(kind, PollingSensor):
            arguments["poll_interval"] = request["poll_interval"]
        return kind(**arguments)

    def _watch(self, sensor: Any) -> None:
        """Tells the sensor of triggers while it runs, whenever it lets another green thread run."""
        if self._is_green:
            import eventlet
            import greenlet

            self._main = greenlet.getcurrent()
            eventlet.spawn(self._follow, sensor)
        else:
            _start_thread(self._follow, (sensor,))

    def _follow(self, sensor: Any) -> None:
        while True:
            if self._is_green:
                from eventlet.hubs import trampoline

                trampoline(self._commands.fileno(), read=True)
            command = self._commands.receive()
            if command is None or "stop" in command:
                self._stop(sensor)
                return
            if "add" in command:
                self._add(sensor, command["add"])
            elif "remove" in command:
                self._remove(sensor, command["remove"])

    def _stop(self, sensor: Any) -> None:
        """Interrupts `run`, or ends the process itself if `run` does not let that happen."""
        if not self._is_green:
            _kill(os.getpid(), signal.SIGTERM)
        elif self._engine.begin_stop():
            from eventlet.hubs import get_hub

            # A signal would interrupt this green thread.
            get_hub().schedule_call_global(0, self._main.throw, Stop(0))
        time.sleep(STOP_S)
        if self._ending.acquire(False):
            self._end(sensor, 0)

    def _end(self, sensor: Any, exit_code: int) -> NoReturn:
        if sensor is not None:
            exit_code = self._clean_up(sensor, exit_code)
        _flush()
        _exit(exit_code & 0xFF)

    def _add(self, sensor: Any, trigger: dict[str, Any]) -> None:
        self._triggers[trigger["id"]] = trigger
        try:
            sensor.add_trigger(trigger=trigger)
        except Exception:
            self._logger.exception("`add_trigger` has failed for trigger `%s`", trigger["ref"])

    def _remove(self, sensor: Any, trigger_id: str) -> None:
        trigger = self._triggers.pop(trigger_id, None)
        if trigger is None:
            return
        try:
            sensor.remove_trigger(trigger=trigger)
        except Exception:
            self._logger.exception("`remove_trigger` has failed for trigger `%s`", trigger["ref"])

    def _clean_up(self, sensor: Any, exit_code: int) -> int:
        try:
            sensor.cleanup()
        except BaseException:
            self._logger.exception("`cleanup` has failed")
            return exit_code or 1
        return exit_code


def _join_threads() -> None:
    """Waits for what `run` has left behind, as Python does at its end."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
