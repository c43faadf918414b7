"""Reads the parameters of a chat command by the format of an alias."""

from __future__ import annotations

import re
from typing import Any, Match

from st2common.exceptions.content import ParseException

__all__ = [
    "ActionAliasFormatParser",
    "extract_parameters",
    "extract_parameters_for_action_alias_db",
]

DEFAULT = r"""(?:""|''|".+?"|'.+?'|\{.+?\}|.+?)"""
PLACEHOLDER = re.compile(rf"(\s*)\{{\{{\s*(\S+?)\s*(?:=\s*({DEFAULT})\s*)?\}}\}}", re.DOTALL)
WORD = r"""(?:""|''|"(?:.+?)"|'(?:.+?)'|\{.+?\}|\S+)"""
PAIR = re.compile(rf"(?:^|\s+)\s*(\S+?)\s*=({WORD})", re.DOTALL)
PAIRS = re.compile(rf".*?((?:(?:^|\s+)\s*\S+?\s*={WORD}\s*)*)$", re.DOTALL)
# What a placeholder stands for: quoted, in braces, or as little as the rest of the format leaves.
VALUE = r"""["']?(?P<{name}>(?<=').+?(?=')|(?<=").+?(?=")|\{{.+?\}}|.+?)["']?"""
QUOTED = re.compile(r"""("|')(.*)\1""", re.DOTALL)
ESCAPED = re.compile(r"\\.", re.DOTALL)


class ActionAliasFormatParser:
    """The parameters of a command: its placeholders, and `key=value` pairs at its end."""

    def __init__(self, alias_format: str | None = None, param_stream: str | None = None) -> None:
        self._format = alias_format or ""
        self._command = param_stream or ""
        self._defaults: list[tuple[str, str]] = []
        self._regex = re.compile(self._anchored(PLACEHOLDER.sub(self._value, self._format)), re.S)
        self._pairs, self._rest = _split_pairs(self._command)

    def get_extracted_param_value(self) -> dict[str, str | None]:
        """The parameters; raises `ParseException` if the command does not match the format."""
        return self._parameters(self._regex.search(self._rest))

    def get_multiple_extracted_param_value(self) -> list[dict[str, str | None]]:
        """The parameters of each place that matches."""
        return [self._parameters(match) for match in self._regex.finditer(self._rest)]

    def _value(self, placeholder: Match[str]) -> str:
        space, name, default = placeholder.groups()
        value = space + VALUE.format(name=name)
        if default is None:
            return value
        quoted = QUOTED.fullmatch(default)
        self._defaults.append((name, quoted.group(2) if quoted else default))
        return f"(?:{value})?"

    def _anchored(self, regex: str) -> str:
        bare = ESCAPED.sub("", regex)
        begins = "^" in bare.replace("[^", "") or r"\A" in regex
        ends = "$" in bare or r"\Z" in regex
        return ("" if begins else r"^\s*") + regex + ("" if ends else r"\s*$")

    def _parameters(self, match: Match[str] | None) -> dict[str, str | None]:
        if match is None:
            raise ParseException(f"command `{self._command}` does not match `{self._format}`")
        found = match.groupdict()
        for name, default in self._defaults:
            found[name] = found[name] or default
        found.update(self._pairs)
        if self._format and not (self._rest.strip() or any(found.values())):
            raise ParseException("the command has no value, and the format no default for it")
        return found


def extract_parameters(
    format_str: str, param_stream: str, match_multiple: bool = False
) -> dict[str, str | None] | list[dict[str, str | None]]:
    """The parameters of a command by a format; of each place that matches if `match_multiple`."""
    parser = ActionAliasFormatParser(format_str, param_stream)
    if match_multiple:
        return parser.get_multiple_extracted_param_value()
    return parser.get_extracted_param_value()


def extract_parameters_for_action_alias_db(
    action_alias_db: Any, format_str: str, param_stream: str, match_multiple: bool = False
) -> dict[str, str | None] | list[dict[str, str | None]]:
    """The parameters of a command by a format, which must be one of the alias."""
    if format_str not in action_alias_db.get_format_strings():
        raise ValueError(f"alias `{action_alias_db.name}` has no format `{format_str}`")
    return extract_parameters(format_str, param_stream, match_multiple)


def _split_pairs(command: str) -> tuple[dict[str, str], str]:
    match = PAIRS.match(command)
    tail = match.group(1) if match else ""
    pairs = {}
    for key, value in PAIR.findall(tail):
        quoted = QUOTED.fullmatch(value)
        pairs[key] = quoted.group(2) if quoted else value
    rest = command.replace(tail, "") if tail else command
    return pairs, f" {rest} "
