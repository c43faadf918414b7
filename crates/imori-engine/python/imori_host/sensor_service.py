"""What a sensor reaches through `self.sensor_service`: events, the datastore and loggers."""

from __future__ import annotations

import json
import logging
from typing import Any

from imori_host import results
from imori_host.services import Engine, KeyService
from st2common.log import getLogger
from st2common.models.api.trace import TraceContext
from st2common.services.datastore import SensorDatastoreService


class SensorWrapper:
    """What `sensor_service` knows of the sensor, under the names that packs and tests use."""

    def __init__(self, pack: str, class_name: str) -> None:
        self._pack = pack
        self._class_name = class_name
        self._logger = getLogger(f"SensorWrapper.{pack}.{class_name}")


class SensorService(KeyService):
    """The `sensor_service` of a sensor."""

    def __init__(self, sensor_wrapper: SensorWrapper, engine: Engine, frame_limit: int) -> None:
        self._sensor_wrapper = sensor_wrapper
        self._logger = sensor_wrapper._logger
        self._engine = engine
        self._frame_limit = frame_limit
        self._datastore_service = SensorDatastoreService(
            logger=self._logger,
            pack_name=sensor_wrapper._pack,
            class_name=sensor_wrapper._class_name,
            engine=engine,
        )

    @property
    def datastore_service(self) -> SensorDatastoreService:
        """The datastore, for keys of the sensor's pack and class unless `local` is false."""
        return self._datastore_service

    def get_logger(self, name: str) -> logging.Logger:
        """A logger whose lines the engine keeps and logs."""
        logger = getLogger(f"{self._logger.name}.{name}")
        logger.propagate = True
        return logger

    def dispatch(self, trigger: Any, payload: Any = None, trace_tag: str | None = None) -> None:
        """Sends an event; it is on disk when this returns. The engine keeps no traces."""
        context = TraceContext(trace_tag=trace_tag) if trace_tag else None
        self.dispatch_with_context(trigger, payload, context)

    def dispatch_with_context(
        self, trigger: Any, payload: Any = None, trace_context: TraceContext | None = None
    ) -> None:
        """Sends an event; it is on disk when this returns.

        As in StackStorm, an event whose payload does not fit the schema of its trigger type is
        dropped with a warning. Raises `TypeError` for a payload that is no dictionary or has no
        JSON, `ValueError` for an unknown trigger, and `RuntimeError` if the engine cannot store it.
        """
        if payload and not isinstance(payload, dict):
            kind = type(payload).__name__
            raise TypeError(f"the payload of `{trigger}` is a {kind}; dispatch a dictionary")
        if trace_context and not isinstance(trace_context, TraceContext):
            kind = type(trace_context).__name__
            raise TypeError(f"the trace context is a {kind}; use `TraceContext`")
        try:
            plain = results.plain([trigger, payload])
            body = json.dumps(plain)
        except (TypeError, ValueError) as error:
            raise TypeError(f"the payload of `{trigger}` has no JSON: {error}") from error
        if len(body) > self._frame_limit:
            raise ValueError(
                f"the payload of `{trigger}` has {len(body)} bytes of JSON; "
                f"at most {self._frame_limit} are allowed"
            )
        frame = {"kind": "dispatch", "trigger": plain[0], "payload": plain[1]}
        answer = self._engine.exchange(frame)
        if "unknown" in answer:
            raise ValueError(answer["unknown"])
        if "error" in answer:
            raise RuntimeError(answer["error"])
        if "invalid" in answer:
            self._logger.warning("%s", answer["invalid"])
