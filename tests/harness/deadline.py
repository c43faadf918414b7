"""How long a test waits for an event that must come. It decides nothing but when to give up."""

import os

DEADLINE_S = float(os.environ.get("INTEROP_DEADLINE_S", "30"))
