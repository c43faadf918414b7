"""Makes the standard library green, for sensors that use `eventlet`."""

from __future__ import annotations

__all__ = ["monkey_patch", "use_select_poll_workaround"]


def monkey_patch(patch_thread: bool | None = None) -> None:
    """Patches modules as `eventlet.monkey_patch`, which the pack must require."""
    import eventlet

    thread = patch_thread is None or patch_thread
    eventlet.monkey_patch(os=True, select=True, socket=True, thread=thread, time=True)


def use_select_poll_workaround(nose_only: bool = True) -> None:
    """Gives `select` its blocking `poll` back, unless that is for tests alone."""
    if nose_only:
        return
    import select

    import eventlet.patcher

    vars(select)["poll"] = eventlet.patcher.original("select").poll
