"""Builds the documentation site from the pages of the repository: sidebar, search, light and dark.

Usage: ci/site.py OUTPUT_FOLDER

Sphinx does that. The order of the sidebar is that of docs/README.md. Links to files that are no pages become plain text.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("sphinx==8.2.3", "myst-parser==4.0.1", "furo==2025.7.19")

HOME = "README.md"

# TOML files that are pages of the site, each with a title.
SHOWN = {"docs/reference/imori.toml": "imori.toml"}

# Pages outside docs/.
OTHERS = (HOME, "ARCHITECTURE.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
OTHERS_DEEPER = ("bench/README.md", "tests/interop/README.md", "console/README.md")

# Pages that have the other pages of their folder below them.
BRANCHES = ("docs/decisions/README.md", "docs/internals/README.md")

CONFIGURATION = """
project = html_title = "Imori"
root_doc = "README"
extensions = ["myst_parser"]
myst_enable_extensions = ["tasklist"]
myst_heading_anchors = 5
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = html_show_sphinx = False
# Blocks of JSON and TOML leave things out.
suppress_warnings = ["misc.highlighting_failure"]
"""

# Long lines of help texts and comments are read without scrolling.
STYLE = "pre { white-space: pre-wrap; }\n"

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s:]+)\)")
SECTION = re.compile(r"^\[(\w+)\]$", re.MULTILINE)
FENCE = re.compile(r"^(\s*)(```+)(\w+)[ \t].*$", re.MULTILINE)


def pages() -> list[str]:
    """The paths of all pages, from the root of the repository."""
    docs = (str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))
    return [*OTHERS, *OTHERS_DEEPER, *docs, *(page_of(path) for path in SHOWN)]


def page_of(path: str) -> str:
    """The path of the page that shows a file.

    >>> page_of("docs/reference/imori.toml"), page_of("docs/guides/tls.md"), page_of("docs/reference/openapi.json")
    ('docs/reference/imori.toml.md', 'docs/guides/tls.md', 'docs/reference/openapi.json')
    """
    return f"{path}.md" if path in SHOWN else path


def read_page(path: str) -> str:
    """The text of a page, made from its file if that is of another kind."""
    for shown, title in SHOWN.items():
        if path == page_of(shown):
            return f"# {title}\n" + toml_page((ROOT / shown).read_text())
    return (ROOT / path).read_text()


def toml_page(text: str) -> str:
    """A TOML file with a heading for each section.

    >>> toml_page("# All.\\n\\n# Limits.\\n[limits]\\n\\n#queues = 2\\n")
    '\\n```toml\\n# All.\\n```\\n\\n## limits\\n\\n```toml\\n# Limits.\\n[limits]\\n\\n#queues = 2\\n```\\n'
    """
    parts = [("", "")]
    for paragraph in text.strip().split("\n\n"):
        section = SECTION.search(paragraph)
        if section:
            parts.append((f"\n## {section[1]}\n", paragraph))
        else:
            heading, before = parts.pop()
            parts.append((heading, f"{before}\n\n{paragraph}".strip()))
    return "".join(f"{heading}\n```toml\n{part}\n```\n" for heading, part in parts)


def as_page(text: str, path: str, known: set[str]) -> str:
    """A page for the site: no words behind the language of a block, and no links to what is no page.

    >>> as_page("see [it](b.md#c), [that](../d.rs)", "docs/a.md", {"docs/b.md"})
    'see [it](b.md#c), that'
    >>> as_page("every [key](reference/imori.toml)", "docs/a.md", set())
    'every [key](reference/imori.toml.md)'
    """

    def checked(link: re.Match[str]) -> str:
        target = link[2].partition("#")[0]
        if not target or "://" in target or target.startswith("mailto:"):
            return link[0]
        found = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if found in SHOWN:
            return f"[{link[1]}]({link[2]}.md)"
        return link[0] if found in known else link[1]

    return LINK.sub(checked, FENCE.sub(r"\1\2\3", text))


def sections() -> dict[str, list[str]]:
    """The pages of each section of the sidebar, as docs/README.md lists them; what it does not list comes last."""
    index = (ROOT / "docs/README.md").read_text()
    listed: dict[str, list[str]] = {}
    shown = {HOME, *BRANCHES}
    for heading, text in re.findall(r"^## ([^\n:]+)[^\n]*\n(.*?)(?=^## |\Z)", index, re.MULTILINE | re.DOTALL):
        for link in LINK.finditer(text):
            path = page_of(os.path.normpath(f"docs/{link[2].partition('#')[0]}"))
            if path in BRANCHES or (path.endswith(".md") and path not in shown):
                shown.add(path)
                listed.setdefault(heading, []).append(path)
    below = {path for path in pages() for branch in BRANCHES if path.startswith(os.path.dirname(branch) + "/")}
    listed["Project"] = [path for path in pages() if path not in shown | below]
    return listed


def tree(caption: str, paths: list[str], page: str) -> str:
    """The sidebar's entries below a page, in Sphinx's words."""
    lines = [os.path.relpath(path, os.path.dirname(page) or ".").removesuffix(".md") for path in paths]
    head = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n{head}:hidden:\n\n" + "\n".join(lines) + "\n```\n"


def write_pages(folder: Path) -> None:
    """Writes the pages as Sphinx takes them."""
    known = set(pages())
    for path in sorted(known):
        text = as_page(read_page(path), path, known)
        if path == HOME:
            text += "".join(tree(caption, paths, path) for caption, paths in sections().items())
        if path in BRANCHES:
            below = [other for other in pages() if other.startswith(os.path.dirname(path) + "/") and other != path]
            text += tree("", below, path)
        page = folder / path
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)
        for picture in PICTURE.finditer(text):
            found = Path(path).parent / picture[1]
            (folder / found).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / found, folder / found)
    (folder / "conf.py").write_text(CONFIGURATION)
    (folder / "static").mkdir()
    (folder / "static/site.css").write_text(STYLE)


def installed() -> Path:
    """Sphinx with its theme, in an environment of its own."""
    environment = ROOT / ".tools/site"
    mark, wanted = environment / "installed", " ".join(PACKAGES)
    if not mark.exists() or mark.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        pip = [str(environment / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        subprocess.run(pip, check=True)
        mark.write_text(wanted)
    return environment / "bin/sphinx-build"


def main() -> None:
    """Builds the site."""
    output = Path(sys.argv[1]).resolve()
    shutil.rmtree(output, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "pages"
        write_pages(source)
        build = [str(installed()), "--quiet", "--fail-on-warning", "--keep-going", "--jobs", "auto"]
        subprocess.run([*build, "--doctree-dir", str(Path(folder) / "trees"), str(source), str(output)], check=True)
    (output / "index.html").write_text(
        f'<meta http-equiv="refresh" content="0; url={HOME.removesuffix(".md")}.html">\n'
    )
    print(f"{output}: {sum(1 for _ in output.rglob('*.html'))} pages")


if __name__ == "__main__":
    main()
