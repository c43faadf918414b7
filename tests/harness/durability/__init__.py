"""What the tests of durability share: a ledger, a load, disks that fail, and programs to kill."""
