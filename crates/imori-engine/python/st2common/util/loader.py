"""Loads the classes of actions and sensors from their files."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import sys
from types import ModuleType
from typing import Any

from st2common.exceptions.plugins import IncompatiblePluginException, PluginLoadError
from st2common.log import getLogger

__all__ = ["load_meta_file", "register_plugin", "register_plugin_class"]

LOG = getLogger(__name__)
ALLOWED_EXTS = [".json", ".yaml", ".yml"]


def register_plugin(plugin_base_class: Any, plugin_abs_file_path: str) -> list[Any] | None:
    """The classes of a file that have the methods of a base class, in the order of their names.

    `None` if the file is no Python file. Raises what the file raises, and `PluginLoadError` if no
    class fits.
    """
    module = _load(plugin_abs_file_path)
    if module is None:
        return None
    fitting = []
    for kind in _get_classes_in_module(module):
        try:
            _register(plugin_base_class, kind)
        except (IncompatiblePluginException, TypeError) as error:
            LOG.debug("class %s is passed over: %s", kind.__name__, error)
        else:
            fitting.append(kind)
    if not fitting:
        methods = ", ".join(f"`{name}`" for name in sorted(plugin_base_class.__abstractmethods__))
        raise PluginLoadError(f"{plugin_abs_file_path} has no class with the method {methods}")
    return fitting


def register_plugin_class(base_class: Any, file_path: str, class_name: str) -> Any:
    """The class of a file with this name; `None` if the file is no Python file."""
    module = _load(file_path)
    if module is None:
        return None
    kind = getattr(module, class_name, None)
    if not kind:
        raise PluginLoadError(f"{file_path} has no class `{class_name}`")
    _register(base_class, kind)
    return kind


def load_meta_file(file_path: str) -> Any:
    """What a JSON or YAML file holds; YAML needs PyYAML in the pack's environment."""
    if not os.path.isfile(file_path):
        raise PluginLoadError(f"{file_path} is no file")
    extension = os.path.splitext(file_path)[1]
    if extension not in ALLOWED_EXTS:
        raise PluginLoadError(f"{file_path} must end in one of {', '.join(ALLOWED_EXTS)}")
    with open(file_path, encoding="utf-8") as file:
        if extension == ".json":
            return json.load(file)
        import yaml

        return yaml.safe_load(file)


def _load(path: str) -> ModuleType | None:
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise PluginLoadError(f"{folder} is no folder")
    if all(entry.rstrip(os.sep) != folder for entry in sys.path):
        sys.path.append(folder)
    name, extension = os.path.splitext(os.path.basename(path))
    if extension != ".py":
        return None
    # Not in `sys.modules`: an action may have the name of a module that others import.
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _get_classes_in_module(module: ModuleType) -> list[Any]:
    classes = inspect.getmembers(module, inspect.isclass)
    return [kind for _, kind in classes if kind.__module__ == module.__name__]


def _register(base: Any, kind: Any) -> None:
    methods = {
        name
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not getattr(method, "__isabstractmethod__", False)
    }
    missing = sorted(base.__abstractmethods__ - methods)
    if missing:
        raise IncompatiblePluginException(
            f"class `{kind.__name__}` lacks the method `{missing[0]}` of `{base.__name__}`"
        )
    base.register(kind)
