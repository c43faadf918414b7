"""Tells new lines of files that rules name."""

import os
import threading
from typing import Any, BinaryIO

from st2reactor.sensor.base import Sensor

# Bytes that are read of a file at a time, and of a line that is told whole.
CHUNK_BYTES = 64 * 1024
LINE_BYTES_MAX = 1024 * 1024


class Watched:
    """A file from its end on; one that was replaced or shortened is read from its start."""

    def __init__(self, path: str, trigger: str) -> None:
        self.path = path
        self.trigger = trigger
        self.rest = b""
        self.file: BinaryIO | None = None
        self.open(at_end=True)

    def open(self, at_end: bool) -> None:
        """Opens the file if it is there."""
        self.close()
        try:
            self.file = os.fdopen(os.open(self.path, os.O_RDONLY), "rb")
        except OSError:
            return
        if at_end:
            self.file.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Closes the file if it is open."""
        if self.file is not None:
            self.file.close()
            self.file = None
        self.rest = b""

    def lines(self) -> list[str]:
        """Lines that were added."""
        try:
            there = os.stat(self.path)
        except OSError:
            self.close()
            return []
        here = os.fstat(self.file.fileno()) if self.file is not None else None
        if self.file is None or here is None or here.st_ino != there.st_ino or there.st_size < self.file.tell():
            self.open(at_end=False)
        if self.file is None:
            return []
        *lines, self.rest = (self.rest + self.file.read(CHUNK_BYTES)).split(b"\n")
        if len(self.rest) > LINE_BYTES_MAX:
            lines, self.rest = [*lines, self.rest], b""
        return [line.decode("utf-8", "replace") for line in lines]


class FileWatchSensor(Sensor):
    """Reads all files of its triggers a few times a second."""

    def __init__(self, sensor_service: Any, config: Any = None) -> None:
        super().__init__(sensor_service=sensor_service, config=config)
        self.watched: dict[str, Watched] = {}
        self.lock = threading.Lock()
        self.is_over = threading.Event()

    def setup(self) -> None:
        """Nothing to do: triggers name the files."""

    def run(self) -> None:
        """Tells lines until the sensor is cleaned up."""
        while not self.is_over.wait(0.5):
            with self.lock:
                watched = list(self.watched.values())
            for file in watched:
                for line in file.lines():
                    payload = {"file_path": file.path, "file_name": os.path.basename(file.path), "line": line}
                    self.sensor_service.dispatch(trigger=file.trigger, payload=payload)

    def cleanup(self) -> None:
        """Ends the sensor."""
        self.is_over.set()

    def add_trigger(self, trigger: dict[str, Any]) -> None:
        """Reads another file."""
        path = trigger["parameters"].get("file_path")
        if not path:
            self.sensor_service.get_logger(name="FileWatchSensor").error("a trigger lacks `file_path`")
            return
        with self.lock:
            self.watched[trigger["ref"]] = Watched(path, trigger["ref"])

    def update_trigger(self, trigger: dict[str, Any]) -> None:
        """Reads the file that the trigger names now."""
        self.add_trigger(trigger)

    def remove_trigger(self, trigger: dict[str, Any]) -> None:
        """Reads a file no more."""
        with self.lock:
            watched = self.watched.pop(trigger["ref"], None)
        if watched is not None:
            watched.close()
