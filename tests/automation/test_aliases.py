"""Commands are read by the formats of aliases as StackStorm reads them."""

import pytest
from st2common.exceptions.content import ParseException
from st2common.models.utils.action_alias_utils import extract_parameters

# Quotes in the middle of a value are no quotes.
QUIRK = {"c": "run", "g": 'k2="a', "a": "b\" it's"}
BRACES = '{{g={"k": 1}}}'


@pytest.mark.parametrize(
    ("format_string", "command", "parameters"),
    [
        ("run {{a}}", "run x y", {"a": "x y"}),
        ("run {{ a }} on {{ b }}", 'run "x y" on z', {"a": "x y", "b": "z"}),
        ("run {{a}} on {{b=here}}", "run x", None),
        ("run {{a}}( on {{b=here}})?", "run x", {"a": "x", "b": "here"}),
        ("run {{a=1}}", "run", {"a": "1"}),
        ("run {{a='q r'}}", "run", {"a": "q r"}),
        ("run {{a}}", "run 'it' k=v k2=\"a b\"", {"a": "it", "k": "v", "k2": "a b"}),
        ("run {{a}}", 'run {"j": 1}', {"a": '{"j": 1}'}),
        (BRACES, "", {"g": '{"k": 1}'}),
        (BRACES, "foo end k3='c d'", {"g": "foo end", "k3": "c d"}),
        (f"{{{{c=1}}}} {BRACES} {{{{a}}}}", 'run k2="a b" it\'s', QUIRK),
        ("(foo|bar) {{a}}", "bar x", {"a": "x"}),
        ("^go {{a}}$", "go x", None),
        ("", "anything", None),
    ],
)
def test_a_command_has_these_parameters(
    format_string: str, command: str, parameters: dict[str, str] | None
) -> None:
    if parameters is None:
        with pytest.raises(ParseException):
            extract_parameters(format_string, command)
    else:
        assert extract_parameters(format_string, command) == parameters
