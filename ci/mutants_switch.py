"""Instruments Rust code, so that one of many mutants can be selected at run time."""

from __future__ import annotations

import re
from dataclasses import dataclass

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

PARSER = Parser(Language(tree_sitter_rust.language()))


@dataclass(frozen=True)
class Mutant:
    """A mutant as listed by `cargo mutants`, with its position in lines and columns from 1."""

    number: int
    name: str
    file: str
    genre: str
    replacement: str
    place: tuple[tuple[int, int], tuple[int, int]]


def offsets(source: bytes, mutant: Mutant) -> tuple[int, int]:
    """Returns the byte offsets at which a mutant begins and ends."""
    lines = source.split(b"\n")
    begins = [0]
    for text in lines:
        begins.append(begins[-1] + len(text) + 1)
    (line, column), (end_line, end_column) = mutant.place

    def at(line: int, column: int) -> int:
        return begins[line - 1] + len(lines[line - 1].decode()[: column - 1].encode())

    return at(line, column), at(end_line, end_column)


def choice(changes: list[tuple[Mutant, bytes]], original: bytes) -> bytes:
    """Returns an expression that selects one of several; its marks assign compiler errors to mutants."""
    text = b"("
    for mutant, changed in changes:
        text += b"if crate::mutant::is(%d) { /*<%d*/ %s /*>%d*/ } else " % (
            mutant.number, mutant.number, changed, mutant.number,
        )  # fmt: skip
    return text + b"{ " + original + b" })"


def marks_at(text: bytes, begin: int, end: int) -> set[int]:
    """Returns the innermost mutant around a span, or else all that begin within it."""
    around: list[int] = []
    for mark in re.finditer(rb"/\*([<>])(\d+)\*/", text):
        if mark.start() >= begin:
            break
        if mark[1] == b"<":
            around.append(int(mark[2]))
        else:
            around.pop()
    if around:
        return {around[-1]}
    return {int(mark[1]) for mark in re.finditer(rb"/\*<(\d+)\*/", text[begin:end])}


def is_constant(node: Node) -> bool:
    """Returns whether the compiler evaluates a node, where a mutant cannot be selected at run time."""
    parent = node.parent
    is_length = parent is not None and parent.child_by_field_name("length") == node
    return node.type in ("const_item", "static_item") or is_length


class Instrument:
    """The instrumentation of one file; `made` are the mutants that could be inserted."""

    def __init__(self, source: bytes, mutants: list[Mutant]) -> None:
        self.source = source
        self.made: set[Mutant] = set()
        self.at: dict[tuple[str, int], list[Mutant]] = {}
        self.ends: dict[Mutant, int] = {}
        for mutant in mutants:
            begin, end = offsets(source, mutant)
            self.at.setdefault((mutant.genre, begin), []).append(mutant)
            self.ends[mutant] = end

    def mutants(self, genre: str, node: Node | None) -> list[Mutant]:
        return self.at.get((genre, node.start_byte), []) if node else []

    def text(self, node: Node) -> bytes:
        """Returns the code of a node, with all mutants within it inserted."""
        if is_constant(node):
            return self.source[node.start_byte : node.end_byte]
        plain = self.plain(node)
        if node.type in ("binary_expression", "compound_assignment_expr"):
            left, operator, right = (node.child_by_field_name(name) for name in ("left", "operator", "right"))
            operator = operator or next((child for child in node.children if not child.is_named), None)
            mutants = self.mutants("BinaryOperator", operator)
            if mutants and left and right:
                self.made.update(mutants)
                left_text, right_text = self.text(left), self.text(right)
                changes = [
                    (mutant, left_text + b" " + mutant.replacement.encode() + b" " + right_text) for mutant in mutants
                ]
                plain = choice(changes, plain)
        if node.type == "unary_expression":
            mutants = self.mutants("UnaryOperator", node)
            if mutants:
                self.made.update(mutants)
                operand = self.text(node.named_children[-1])
                plain = choice([(mutant, operand) for mutant in mutants], plain)
        if node.type == "field_initializer":
            plain = self.field(node, plain)
        guards = [mutant for mutant in self.mutants("MatchArmGuard", node) if self.ends[mutant] == node.end_byte]
        if guards and node.type not in ("let_condition", "let_chain") and not self.made.issuperset(guards):
            self.made.update(guards)
            plain = choice([(mutant, mutant.replacement.encode()) for mutant in guards], plain)
        return plain

    def plain(self, node: Node) -> bytes:
        if not node.children:
            return self.source[node.start_byte : node.end_byte]
        text, at = b"", node.start_byte
        for child in node.children:
            text += self.source[at : child.start_byte] + self.text(child)
            at = child.end_byte
            if node.type == "block" and child.type == "{":
                text += self.returns(node)
            if node.type == "match_arm" and child == node.child_by_field_name("pattern"):
                text = self.arm(node, child, text)
        return text + self.source[at : node.end_byte]

    def returns(self, block: Node) -> bytes:
        """Returns early returns that replace the body of a function."""
        is_body = block.parent is not None and block.parent.type == "function_item"
        first = next((child for child in block.named_children if "comment" not in child.type), None)
        text = b""
        for mutant in self.mutants("FnValue", first) if is_body else []:
            # All mutants would need one common type.
            if "-> impl " in mutant.name:
                continue
            self.made.add(mutant)
            value = mutant.replacement.encode()
            text += b" if crate::mutant::is(%d) { /*<%d*/ return %s; /*>%d*/ } " % (
                mutant.number, mutant.number, value, mutant.number,
            )  # fmt: skip
        return text

    def arm(self, arm: Node, pattern: Node, text: bytes) -> bytes:
        """Deletes a match arm by giving it a guard that is false."""
        for mutant in self.mutants("MatchArm", arm):
            if any("let" in child.type for child in pattern.children):
                continue
            self.made.add(mutant)
            condition = pattern.child_by_field_name("condition")
            unless = b"!crate::mutant::is(%d)" % mutant.number
            if condition is None:
                text += b" if " + unless
            else:
                begin = len(text) - len(self.text(condition))
                text = text[:begin] + unless + b" && (" + text[begin:] + b")"
        return text

    def field(self, node: Node, plain: bytes) -> bytes:
        """Deletes a field of a struct expression by taking its value from the base expression."""
        name, value = node.child_by_field_name("field"), node.child_by_field_name("value")
        siblings = node.parent.named_children if node.parent else []
        base = next((child for child in siblings if child.type == "base_field_initializer"), None)
        mutants = self.mutants("StructField", node)
        if not mutants or not name or not value or not base:
            return plain
        self.made.update(mutants)
        of_base = b"(" + self.text(base.named_children[0]) + b")." + self.plain(name)
        return self.plain(name) + b": " + choice([(mutant, of_base) for mutant in mutants], self.text(value))


def instrument(source: bytes, mutants: list[Mutant]) -> tuple[bytes, list[Mutant]]:
    """Returns an instrumented file, and the mutants that could not be inserted."""
    file = Instrument(source, mutants)
    text = file.text(PARSER.parse(source).root_node)
    return text, [mutant for mutant in mutants if mutant not in file.made]
