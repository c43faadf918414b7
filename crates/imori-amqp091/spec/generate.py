#!/usr/bin/env python3
"""Writes `src/codec/methods.rs` from `methods.txt`; with `--check` says whether that is what stands there.

It needs no package, and rustfmt for the layout.

The table has one line for each of the 64 methods; the specification's XML has 500, and a licence of its own. Both
agree in every method, number and type of field, and so does RabbitMQ's JSON. The result is committed, because a build
script would run at each build for what changes once in ten years. Tests read the table a second time and compare
bytes with the crate `amq-protocol`.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE / "methods.txt"
RUST = HERE.parent / "src" / "codec" / "methods.rs"

# Type of a field in Rust, and how it is read and written.
TYPES = {
    "octet": ("u8", "octet"),
    "short": ("u16", "short"),
    "long": ("u32", "long"),
    "longlong": ("u64", "longlong"),
    "bit": ("bool", None),
    "shortstr": ("&'a str", "short_str"),
    "longstr": ("&'a [u8]", "long_str"),
    "table": ("Table<'a>", "table"),
}
BORROWING = {"shortstr", "longstr", "table"}
EMPTY = {"octet": "0", "short": "0", "long": "0", "longlong": "0", "shortstr": '""', "longstr": 'b""'}
SENDERS = {"client": "a client", "broker": "the broker", "both": "both ends"}
# Rust has other plans for the word.
RENAMED = {"type": "kind"}

HEAD = """\
//! The methods of AMQP 0-9-1 with RabbitMQ's extensions.
//!
//! `spec/generate.py` writes this file from `spec/methods.txt`; change that and run it.

use crate::codec::error::DecodeError;
use crate::codec::fields::{FieldError, Fields};
use crate::codec::method::{MethodFields, MethodId};
use crate::codec::push::{push_bits, push_long_str, push_short_str, push_table};
use crate::codec::table::Table;
"""


@dataclass
class Field:
    type: str
    name: str

    @property
    def is_reserved(self) -> bool:
        return self.name == "-"

    @property
    def rust(self) -> str:
        return RENAMED.get(self.name, self.name.replace("-", "_"))


@dataclass
class Method:
    class_id: int
    class_name: str
    id: int
    name: str
    sender: str
    fields: list[Field]

    @property
    def struct(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("-"))

    @property
    def variant(self) -> str:
        return self.class_name.capitalize() + self.struct

    @property
    def lifetime(self) -> str:
        borrows = any(field.type in BORROWING and not field.is_reserved for field in self.fields)
        return "<'a>" if borrows else ""

    def runs(self) -> list[list[Field]]:
        """Fields in order; bits that follow each other share an octet."""
        runs: list[list[Field]] = []
        for field in self.fields:
            if field.type == "bit" and runs and runs[-1][0].type == "bit":
                runs[-1].append(field)
            else:
                runs.append([field])
        return runs


def read_table() -> list[Method]:
    methods: list[Method] = []
    class_id, class_name = 0, ""
    for line in TABLE.read_text().splitlines():
        words = line.partition("#")[0].split()
        if words[:1] == ["class"]:
            class_id, class_name = int(words[1]), words[2]
        elif words:
            fields = [Field(*word.split(":")) for word in words[3:]]
            methods.append(Method(class_id, class_name, int(words[0]), words[1], words[2], fields))
    return methods


def struct(method: Method) -> str:
    fields = [field for field in method.fields if not field.is_reserved]
    lines = [f"/// `{method.class_name}.{method.name}`, which {SENDERS[method.sender]} may send."]
    lines.append("#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]")
    if not fields:
        return "\n".join([*lines, f"pub struct {method.struct};"])
    lines.append(f"pub struct {method.struct}{method.lifetime} {{")
    for field in fields:
        lines += [f"/// `{field.name}`.", f"pub {field.rust}: {TYPES[field.type][0]},"]
    return "\n".join([*lines, "}"])


def reading(method: Method) -> str:
    lines = []
    bits = 0
    for run in method.runs():
        if run[0].type == "bit":
            bits += 1
            lines.append(
                f"let bits{bits} = fields.octet()?;" if any(not bit.is_reserved for bit in run) else "fields.octet()?;"
            )
            for place, bit in enumerate(run):
                if not bit.is_reserved:
                    lines.append(f"let {bit.rust} = bits{bits} & {1 << place} != 0;")
            continue
        name = "" if run[0].is_reserved else f"let {run[0].rust} = "
        read = "Table::read(fields)" if run[0].type == "table" else f"fields.{TYPES[run[0].type][1]}()"
        lines.append(f"{name}{read}?;")
    names = [field.rust for field in method.fields if not field.is_reserved]
    made = f"{method.struct} {{ {', '.join(names)} }}" if names else method.struct
    return "\n".join([*lines, f"Ok({made})"])


def writing(method: Method) -> str:
    lines = []
    for run in method.runs():
        field = run[0]
        if field.type == "bit":
            bits = ", ".join("false" if bit.is_reserved else f"self.{bit.rust}" for bit in run)
            lines.append(f"push_bits(out, [{bits}]);")
            continue
        value = EMPTY[field.type] if field.is_reserved else f"self.{field.rust}"
        if field.type in BORROWING:
            lines.append(f"push_{TYPES[field.type][1]}(out, {value});")
        elif field.is_reserved:
            lines.append(f"out.extend_from_slice(&0_{TYPES[field.type][0]}.to_be_bytes());")
        else:
            lines.append(f"out.extend_from_slice(&{value}.to_be_bytes());")
    return "\n".join(lines)


def implementation(method: Method) -> str:
    fields, out = ("fields", "out") if method.fields else ("_", "_")
    lifetime = method.lifetime or ""
    return f"""\
impl<'a> MethodFields<'a> for {method.struct}{lifetime} {{
    const ID: MethodId = MethodId {{ class: {method.class_id}, method: {method.id} }};

    fn read({fields}: &mut Fields<'a>) -> Result<Self, FieldError> {{
        {reading(method)}
    }}

    fn push(&self, {out}: &mut Vec<u8>) {{
        {writing(method)}
    }}
}}
"""


def module(name: str, methods: list[Method]) -> str:
    bodies = "\n\n".join(f"{struct(method)}\n\n{implementation(method)}" for method in methods)
    return f"/// Methods of class `{name}`.\npub mod {name} {{\nuse super::*;\n\n{bodies}\n}}\n"


def union(methods: list[Method]) -> str:
    path = [f"{method.class_name}::{method.struct}{method.lifetime}" for method in methods]
    variants = "\n".join(
        f"/// `{method.class_name}.{method.name}`.\n{method.variant}({path[index]}),"
        for index, method in enumerate(methods)
    )
    reads = "\n".join(
        f"({method.class_id}, {method.id}) => {method.class_name}::{method.struct}::read(&mut fields).map(Method::{method.variant}),"
        for method in methods
    )
    pushes = "\n".join(f"Method::{method.variant}(fields) => fields.push(out)," for method in methods)
    ids = "\n".join(f"Method::{method.variant}(_) => {method.class_name}::{method.struct}::ID," for method in methods)
    names = "\n".join(f'({method.class_id}, {method.id}) => "{method.class_name}.{method.name}",' for method in methods)
    return f"""\
/// A method of either end, whose strings and tables are still in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method<'a> {{
{variants}
}}

impl<'a> Method<'a> {{
    /// Reads the payload of a method frame.
    ///
    /// # Errors
    /// [`DecodeError::UnknownMethod`], or [`DecodeError::Method`] where its fields do not fill the payload.
    pub fn decode(payload: &'a [u8]) -> Result<Method<'a>, DecodeError> {{
        let mut fields = Fields::new(payload);
        let id = MethodId::read(&mut fields).map_err(|_| DecodeError::NoMethod)?;
        let read = match (id.class, id.method) {{
            {reads}
            _ => return Err(DecodeError::UnknownMethod(id)),
        }};
        let method = read.map_err(|error| DecodeError::Method {{ id, error }})?;
        fields.end().map_err(|error| DecodeError::Method {{ id, error }})?;
        Ok(method)
    }}

    /// Its class and its number in the class.
    pub fn id(&self) -> MethodId {{
        match self {{
            {ids}
        }}
    }}

    /// Appends its fields, without the id in front of them.
    pub fn push_fields(&self, out: &mut Vec<u8>) {{
        match self {{
            {pushes}
        }}
    }}
}}

impl MethodId {{
    /// The name of the method, such as `queue.declare`; `none` where there is no such method.
    pub fn name(self) -> &'static str {{
        match (self.class, self.method) {{
            {names}
            _ => "none",
        }}
    }}
}}
"""


def generated() -> str:
    methods = read_table()
    classes = list(dict.fromkeys(method.class_name for method in methods))
    modules = [module(name, [method for method in methods if method.class_name == name]) for name in classes]
    source = "\n".join([HEAD, union(methods), *modules])
    command = ["rustfmt", "--edition", "2024", "--config-path", str(HERE.parents[2])]
    return subprocess.run(command, input=source, text=True, stdout=subprocess.PIPE, check=True).stdout


def main() -> int:
    source = generated()
    if sys.argv[1:] != ["--check"]:
        RUST.write_text(source)
        return 0
    if RUST.read_text() == source:
        return 0
    print(f"{RUST}: not what its table says; run {Path(__file__).name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
