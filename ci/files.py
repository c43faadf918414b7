"""Checks which files may be tracked: names at the root, extensions in each folder, and no private key outside tests.

A program that writes into the working directory leaves a file that the next `git add` would track. A new kind of file
is allowed by adding its extension to its folder below.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

ROOT_NAMES = {
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "RELEASING.md",
    "SECURITY.md",
    "clippy.toml",
    "deny.toml",
    "rust-toolchain.toml",
    "rustfmt.toml",
}

# Allowed extensions per top-level folder. A file without an extension is listed by its name.
EXTENSIONS = {
    ".cargo": {"toml"},
    ".ci": {"run"},
    ".github": {"yml"},
    "bench": {"c", "go", "gz", "java", "json", "md", "mod", "py", "sh", "sum", "svg", "toml", "xml"},
    "ci": {"py", "sh", "sha256", "toml"},
    "console": {"css", "gitignore", "html", "json", "md", "mjs", "npmrc", "svg", "ts", "tsx"},
    "crates": {"c", "conf", "css", "js", "py", "rb", "rs", "sh", "talk", "toml", "txt", "yaml"},
    "deploy": {
        *("Dockerfile", "control", "copyright", "group", "helmignore", "json", "passwd", "postinst", "postrm"),
        *("prerm", "rb", "service", "toml", "tpl", "txt", "yaml", "yml"),
    },
    "docs": {"json", "md", "png", "toml"},
    "examples": {"html", "java", "js", "md", "py", "sh", "toml", "xml"},
    "fuzz": {"dict", "rs", "toml"},
    "tests": {
        *("c", "cpp", "go", "java", "json", "lock", "md", "mjs", "mod", "npmrc", "php", "pl"),
        *("properties", "py", "rb", "rs", "sh", "sum", "toml", "txt", "xml"),
        *("yaml", "yml"),
    },
}

# Raw files of benchmark runs are compressed, and a few pages have pictures of the console; all other tracked files are
# text.
BINARY = {"gz", "png"}

# A picture is downloaded with its page and kept by every clone in each of its versions.
PICTURE_BYTES_MAX = 150_000

PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{16}")
KEY_MAY_BE_IN = re.compile(r"^tests/|^crates/[^/]+/tests/|/tests\.rs$")


def extension(name: str) -> str:
    """The extension of a file's name without its dot, or the name itself where it has none.

    >>> extension("ci/tree.py"), extension(".ci/run"), extension("tests/interop/js/.npmrc")
    ('py', 'run', 'npmrc')
    """
    return name.rsplit("/", 1)[-1].rsplit(".", 1)[-1]


def complaint(name: str, text: str) -> str | None:
    """Says why a tracked file of this name and text is wrong, if it is.

    >>> complaint("derby.log", "")
    'derby.log: no such file belongs at the root; remove it, or add it to ROOT_NAMES in ci/files.py'
    >>> complaint("certs/ca.pem", "")
    'certs/ca.pem: no folder `certs` belongs at the root; remove it, or add it to EXTENSIONS in ci/files.py'
    >>> complaint("docs/notes.docx", "")
    'docs/notes.docx: no `docx` files belong in `docs`; remove it, or add the extension in ci/files.py'
    >>> key = "-----BEGIN PRIVATE" + " KEY-----\\nMIGHAgEAMBMGByqGSM49\\n"
    >>> complaint("docs/guides/tls.md", key)
    'docs/guides/tls.md: holds a private key; only tests may'
    >>> complaint("tests/harness/jwt.py", key), complaint("ci/tree.py", "")
    (None, None)
    """
    top, slash, _ = name.partition("/")
    if not slash and name not in ROOT_NAMES:
        return f"{name}: no such file belongs at the root; remove it, or add it to ROOT_NAMES in ci/files.py"
    if slash and top not in EXTENSIONS:
        return f"{name}: no folder `{top}` belongs at the root; remove it, or add it to EXTENSIONS in ci/files.py"
    if slash and extension(name) not in EXTENSIONS[top]:
        return f"{name}: no `{extension(name)}` files belong in `{top}`; remove it, or add the extension in ci/files.py"
    if PRIVATE_KEY.search(text) and not KEY_MAY_BE_IN.search(name):
        return f"{name}: holds a private key; only tests may"
    return None


def check_files() -> list[str]:
    """Returns complaints about tracked files, and about files at the root that git neither tracks nor ignores."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
    failed = doctest.testmod(sys.modules[__name__]).failed
    complaints = [f"ci/files.py: {failed} of its own examples fail"] if failed else []
    for name in listed.splitlines():
        file = Path(name)
        if not file.is_file():
            continue
        text = "" if file.suffix.lstrip(".") in BINARY else file.read_text(encoding="utf-8", errors="replace")
        said = complaint(name, text)
        if said is not None:
            complaints.append(said)
        if file.suffix == ".png" and file.stat().st_size > PICTURE_BYTES_MAX:
            complaints.append(f"{name}: {file.stat().st_size} bytes, more than {PICTURE_BYTES_MAX}; crop it")
    return complaints
