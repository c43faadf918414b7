"""The name of `Action` before it moved to `st2common.runners.base_action`."""
