"""What packs import from `st2reactor`, provided by Imori."""

from st2common.provided import explain_missing_modules

explain_missing_modules()
