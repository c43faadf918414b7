"""Shared by the durability tests: a ledger, a load, failing disks, and programs to kill."""
