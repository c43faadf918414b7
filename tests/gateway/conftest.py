"""Fixtures of the gateway's tests."""

from harness.gateway import start_gateway

__all__ = ["start_gateway"]
