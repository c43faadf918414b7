"""Links have a target, and every page of `docs/` is linked to."""

from harness.imori import REPOSITORY
from harness.page import Page, pages, read

PAGES = pages()


def test_relative_links_lead_to_a_file_and_a_heading() -> None:
    wrong = [
        f"{page.name}:{line}: `{target}`"
        for page in PAGES
        for line, target in page.links
        if not _is_elsewhere(target) and not _leads_somewhere(page, target)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_page_of_docs_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [REPOSITORY / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in reached:
            continue
        reached.add(path)
        targets = (target.partition("#")[0] for _, target in read(path).links)
        waiting += [
            (path.parent / target).resolve()
            for target in targets
            if target.endswith(".md") and "://" not in target
        ]
    lost = [
        page.name for page in PAGES if page.name.startswith("docs/") and page.path not in reached
    ]
    assert not lost, lost


def _is_elsewhere(target: str) -> bool:
    return target.startswith(("https://", "mailto:"))


def _leads_somewhere(page: Page, target: str) -> bool:
    name, _, anchor = target.partition("#")
    path = (page.path.parent / name).resolve() if name else page.path
    if not path.exists():
        return False
    return not anchor or (path.suffix == ".md" and anchor in read(path).anchors)
