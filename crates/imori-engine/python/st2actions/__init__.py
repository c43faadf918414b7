"""What packs import from `st2actions`, provided by Imori."""

from st2common.provided import explain_missing_modules

explain_missing_modules()
