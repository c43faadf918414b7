"""Every configuration key named in the documents exists."""

import re

from harness.imori import REPOSITORY
from harness.page import pages

_SECTION = re.compile(r"^\[(\w+)\]$")
_KEY = re.compile(r"^#?(\w+) = ")
_DOTTED = re.compile(r"`([a-z]+)\.([a-z_]+)(?: = [^`]*)?`")
_VARIABLE = re.compile(r"IMORI__([A-Z]+)__([A-Z_]+)")

# Pages on which a section's name also begins other names: selectors call properties `amqp.to`.
OTHER_NAMES = {("docs/reference/selectors.md", "amqp")}

# Extensions of file names that look like keys of sections such as `stomp` or `definitions`.
FILE_ENDINGS = {"dict", "json", "md", "properties", "py", "redb", "rs", "toml", "txt", "xml"}


def declared() -> dict[str, set[str]]:
    """Returns the keys of each section."""
    sections: dict[str, set[str]] = {}
    section = ""
    for line in (REPOSITORY / "docs/reference/imori.toml").read_text("utf-8").splitlines():
        if found := _SECTION.match(line):
            section = found[1]
            sections[section] = set()
        elif (found := _KEY.match(line)) and section:
            sections[section].add(found[1])
    return sections


def test_every_key_that_is_named_exists() -> None:
    sections = declared()
    assert sections["stomp"], "the reference has keys"
    wrong = [
        f"{page.name}: `{section}.{key}`"
        for page in pages()
        for section, key in _named(page.path.read_text("utf-8"))
        if section in sections
        and (page.name, section) not in OTHER_NAMES
        and key not in sections[section] | FILE_ENDINGS
    ]
    assert not wrong, "\n".join(wrong)


def _named(text: str) -> list[tuple[str, str]]:
    variables = [(section.lower(), key.lower()) for section, key in _VARIABLE.findall(text)]
    return [*_DOTTED.findall(text), *variables]
