"""What packs import from `st2common`, provided by Imori."""

from st2common.provided import explain_missing_modules

__version__ = "3.9.0"

explain_missing_modules()
