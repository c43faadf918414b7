"""Checks the structure of the Rust tree.

A file imports only from files declared after it in its `lib.rs` (or `mod.rs`), so that reading down follows a message;
a path has at most one folder below `src`; no file has a catch-all name; nothing in the repository mentions how it was
made; one file alone has `unsafe`; crates whose sources hold no tests are compiled once; and each limit is obeyed
somewhere. prose.py checks how types and pages read, and files.py which files are tracked.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from files import check_files
from prose import check_prose

DRAWERS = {"utils", "util", "common", "helpers", "helper", "manager", "misc"}
MOD = re.compile(r"^\s*(?:pub(?:\([a-z ]+\))?\s+)?mod\s+(\w+)\s*;", re.MULTILINE)
USE = re.compile(r"\b((?:crate|super|self)(?:::\w+)+)")
TEST = re.compile(r"#\[cfg\(test\)\]\s*(?:pub\(crate\)\s+)?mod\s+\w+\s*;")
TEST_BLOCK = re.compile(r"#\[cfg\(test\)\]\s*(?:pub\(crate\)\s+)?mod\s+\w+\s*\{.*\Z", re.DOTALL)
COMMENT = re.compile(r"//.*$", re.MULTILINE)
# The file that may contain `unsafe`, and its crate, whose lints are the workspace's otherwise (decision 0128).
UNSAFE_FILE = Path("crates/imori-ruby/src/ffi.rs")
UNSAFE_CRATE = Path("crates/imori-ruby/Cargo.toml")
UNSAFE = re.compile(r"\bunsafe\s*(?:\{|fn\b|impl\b|extern\b|trait\b)|\[unsafe\(|allow\(unsafe_code")
TEST_IN_SOURCE = re.compile(r"#\[(?:tokio::)?test\]|#\[cfg\(test\)\]")
# What a crate's own tests reach beside its public items.
FOR_TESTS = re.compile(r"#\[doc\(hidden\)\]\npub mod for_tests \{(.*?)\n\}", re.DOTALL)
LIMIT = re.compile(r"^pub(?:\([a-z ]+\))? const (\w+):", re.MULTILINE)
NAME = re.compile(r"\w+")
FORBIDDEN = re.compile("|".join(["TO" + "DO", "FIX" + "ME", r"\.\./" + "shared"]))


@dataclass
class Module:
    """A file and the modules that it declares, in reading order."""

    path: tuple[str, ...]
    file: Path
    children: list[Module] = field(default_factory=list)

    def child(self, name: str) -> int | None:
        """Returns the index of the child with this name, if there is one."""
        return next((at for at, child in enumerate(self.children) if child.path[-1] == name), None)


def read(file: Path) -> str:
    """Returns the text of a file without tests and comments."""
    text = TEST_BLOCK.sub("", TEST.sub("", file.read_text(encoding="utf-8")))
    return COMMENT.sub("", text)


def load(path: tuple[str, ...], file: Path) -> Module:
    """Loads a module with all modules below it."""
    module = Module(path, file)
    folder = file.parent if file.name in {"lib.rs", "main.rs", "mod.rs"} else file.with_suffix("")
    for name in MOD.findall(read(file)):
        candidates = [folder / f"{name}.rs", folder / name / "mod.rs"]
        found = next((candidate for candidate in candidates if candidate.exists()), None)
        if found is not None:
            module.children.append(load((*path, name), found))
    return module


def walk(module: Module) -> list[Module]:
    """Returns a module and all modules below it."""
    return [module, *(below for child in module.children for below in walk(child))]


def absolute(base: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Resolves an import in module `base` to a path from the crate's root."""
    parts = text.split("::")
    if parts[0] == "crate":
        return tuple(parts[1:])
    here = list(base)
    while parts and parts[0] in {"super", "self"}:
        if parts.pop(0) == "super" and here:
            here.pop()
    return (*here, *parts)


def wrong_order(root: Module, module: Module, target: tuple[str, ...]) -> bool:
    """Returns whether `target` is declared before `module`."""
    node = root
    for depth, name in enumerate(target):
        there = node.child(name)
        own = module.path[depth] if depth < len(module.path) else None
        if there is None or own is None or own == name:
            if there is None or own is None:
                return False
            node = node.children[there]
            continue
        here = node.child(own)
        return here is not None and there < here
    return False


def check_crate(root_file: Path) -> list[str]:
    """Returns complaints about one crate."""
    complaints = []
    root = load((), root_file)
    for module in walk(root):
        if module is root:
            continue
        below_src = module.file.relative_to(root_file.parent)
        if len(below_src.parts) > 2:
            complaints.append(f"{module.file}: deeper than one folder below src")
        if module.path[-1] in DRAWERS:
            complaints.append(f"{module.file}: name what it holds, not that it holds something")
        for text in sorted(set(USE.findall(read(module.file)))):
            if wrong_order(root, module, absolute(module.path, text)):
                complaints.append(f"{module.file}: imports `{text}`, which stands before it")
    return complaints


def check_words() -> list[str]:
    """Returns complaints about the content of tracked files."""
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout
    complaints = []
    for name in listed.splitlines():
        file = Path(name)
        if file.suffix not in {".rs", ".py", ".md", ".toml", ".ts", ".mjs", ".rb", ".sh"} or not file.exists():
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if FORBIDDEN.search(line):
                complaints.append(f"{name}:{number}: `{line.strip()}` does not belong in the repository")
    return complaints


def check_unsafe() -> list[str]:
    """Returns complaints about `unsafe` outside of its file, and about the lints of the file's crate."""
    files = [*sorted(Path("crates").glob("*/src/**/*.rs")), *sorted(Path("crates").glob("*/build/**/*.rs"))]
    found = [file for file in files if file != UNSAFE_FILE and UNSAFE.search(COMMENT.sub("", file.read_text("utf-8")))]
    complaints = [f"{file}: has `unsafe`, which only {UNSAFE_FILE} may have" for file in found]
    workspace = tomllib.loads(Path("Cargo.toml").read_text("utf-8"))["workspace"]["lints"]
    wanted = {**workspace, "rust": {**workspace["rust"], "unsafe_code": "deny"}}
    if tomllib.loads(UNSAFE_CRATE.read_text("utf-8"))["lints"] != wanted:
        complaints.append(f"{UNSAFE_CRATE}: its lints differ from the workspace's by more than `unsafe_code`")
    return complaints


def is_compiled_for_tests(crate: Path) -> bool:
    """Returns whether cargo compiles the sources of a crate once more, with the tests in them."""
    manifest = tomllib.loads((crate / "Cargo.toml").read_text("utf-8"))
    library = (crate / "src/lib.rs").exists() and bool(manifest.get("lib", {}).get("test", True))
    programs = [target.get("test", True) for target in manifest.get("bin", [{}] if has_main(crate) else [])]
    return library or any(programs)


def has_main(crate: Path) -> bool:
    """Returns whether a crate has a program that its manifest need not name."""
    return (crate / "src/main.rs").exists()


def exported(block: str) -> set[str]:
    """Returns the names that a module re-exports.

    >>> sorted(exported("pub use crate::a::b::C;\\npub use crate::d::{E, f as g};"))
    ['C', 'E', 'g']
    """
    paths = [path for use in re.findall(r"pub use ([^;]+);", block) for path in re.split(r"[{},]", use)]
    last = [NAME.findall(path)[-1:] for path in paths if not path.strip().endswith("::")]
    return {name for names in last for name in names}


def check_tests(crate: Path) -> list[str]:
    """Returns complaints about where the tests of a crate are, and what of it is there for them alone."""
    complaints = []
    sources = {file: file.read_text("utf-8") for file in sorted(crate.glob("src/**/*.rs"))}
    if not is_compiled_for_tests(crate):
        complaints += [
            f"{file}: has tests, which `test = false` leaves out; they belong into {crate}/tests/it"
            for file, text in sources.items()
            if TEST_IN_SOURCE.search(text)
        ]
    for_tests = FOR_TESTS.search(sources.get(crate / "src/lib.rs", ""))
    tests = "\n".join(file.read_text("utf-8") for file in crate.glob("tests/**/*.rs"))
    if for_tests:
        # Types are there for what functions take and give, and tests need not name them.
        names = {name for name in exported(for_tests.group(1)) if not name[0].isupper() or name.isupper()}
        unused = names - set(NAME.findall(tests))
        complaints += [f"{crate}/src/lib.rs: `for_tests` has `{name}`, which no test names" for name in sorted(unused)]
    complaints += [
        f"{file}: `for_tests` is for tests alone"
        for file, text in sources.items()
        if "for_tests::" in COMMENT.sub("", text)
    ]
    return complaints


def check_limits() -> list[str]:
    """Returns complaints about limits that nothing obeys."""
    files = {file: COMMENT.sub("", file.read_text("utf-8")) for file in sorted(Path("crates").glob("*/src/**/*.rs"))}
    words: dict[str, int] = {}
    for text in files.values():
        for word in NAME.findall(text):
            words[word] = words.get(word, 0) + 1
    return [
        f"{file}: nothing obeys `{name}`"
        for file, text in files.items()
        if file.name == "limits.rs"
        for name in LIMIT.findall(text)
        if words[name] == 1
    ]


def main() -> int:
    """Prints all complaints; the exit code is 1 if there are any."""
    failed = doctest.testmod(sys.modules[__name__]).failed
    roots = sorted(Path("crates").glob("*/src/lib.rs")) + sorted(Path("crates").glob("*/src/main.rs"))
    complaints = [complaint for root in roots for complaint in check_crate(root)]
    complaints += [f"ci/tree.py: {failed} of its own examples fail"] if failed else []
    complaints += [complaint for crate in sorted(Path("crates").iterdir()) for complaint in check_tests(crate)]
    complaints += check_limits()
    complaints += check_unsafe() + check_files() + check_words() + check_prose()
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
