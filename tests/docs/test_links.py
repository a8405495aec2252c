"""Every relative link in the documentation leads to a file, and every anchor to a heading."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])

FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+).+?\1")
LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)")
HTML = re.compile(r"<(?:img|source|a)\b[^>]*?\b(?:src|srcset|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t]*#*$", re.MULTILINE)
NAMED = re.compile(r"`((?:benchmarks|examples|tests)/[\w/.-]+)`")
EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading: lower case, no punctuation, hyphens for spaces."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors(markdown: str) -> Iterator[str]:
    """The anchors of a page; headings that repeat are numbered."""
    seen = Counter[str]()
    for heading in HEADING.findall(FENCE.sub("", markdown)):
        name = slug(heading)
        yield f"{name}-{seen[name]}" if seen[name] else name
        seen[name] += 1


def targets(markdown: str) -> list[str]:
    """What the links of a page lead to, those in code left out."""
    prose = CODE.sub("", FENCE.sub("", markdown))
    return [*LINK.findall(prose), *HTML.findall(prose)]


def links(markdown: str) -> list[str]:
    """The targets of a page's relative links."""
    return [target for target in targets(markdown) if not EXTERNAL.match(target)]


def broken(document: Path) -> Iterator[str]:
    """The relative links of a page that lead nowhere."""
    for target in links(document.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        page = document.parent / path if path else document
        if not page.exists() or (
            anchor and anchor not in anchors(page.read_text(encoding="utf-8"))
        ):
            yield target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_and_anchors_resolve(document: Path) -> None:
    assert list(broken(document)) == []


def test_tests_and_benchmarks_that_pages_name_exist() -> None:
    pages = [page for page in DOCUMENTS if page.name != "CHANGELOG.md"]
    named = {name for page in pages for name in NAMED.findall(page.read_text(encoding="utf-8"))}
    assert "tests/runs/test_other_users.py" in named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_stay_inside_the_repository(document: Path) -> None:
    for target in links(document.read_text(encoding="utf-8")):
        page = (document.parent / target.partition("#")[0]).resolve()
        assert page.is_relative_to(ROOT.resolve()), target


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page.suffix == ".md" and page not in reached:
            reached.add(page)
            targets = links(page.read_text(encoding="utf-8"))
            waiting += [page.parent / target.partition("#")[0] for target in targets]
    pages = {page.resolve() for page in (ROOT / "docs").glob("**/*.md")}
    assert sorted(pages - reached) == []


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("The outer schedule, ablated", "the-outer-schedule-ablated"),
        ("200 classes at 224×224", "200-classes-at-224224"),
        ("`svhn-gray` → MNIST", "svhn-gray--mnist"),
        ("Does it reach its *claim*?", "does-it-reach-its-claim"),
        ("See [the artefact](artefact.md)", "see-the-artefact"),
    ],
)
def test_anchors_follow_githubs_rule(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


ADDRESS = re.compile(r"https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[\w.~/%-]*)?(#[\w-]+)?")
MOST_ADDRESSES = 10


def test_addresses_outside_are_well_formed_and_few() -> None:
    """Nothing is asked for over a network here: each is to be opened by whoever adds it."""
    found = {
        target
        for document in DOCUMENTS
        for target in targets(document.read_text(encoding="utf-8"))
        if EXTERNAL.match(target)
    }
    assert len(found) >= 4  # of safetensors, Optuna, and the changelog
    assert [target for target in found if not ADDRESS.fullmatch(target)] == []
    assert len(found) <= MOST_ADDRESSES


def test_broken_links_and_anchors_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n# One\n```sh\n# not a heading\n[no](link.md)\n```\n`[no](link.md)`\n"
        "[a](#one) [b](#one-1) [c](page.md#one) [d](https://example.org/x) [e](.)\n"
        "[f](#one-2) [g](#not-a-heading) [h](absent.md) ![i](absent.png) [j](page.md#two)\n"
        '<source media="(x)" srcset="dark.png"><img alt="k" src="light.png">\n'
    )
    assert list(broken(page)) == [
        "#one-2",
        "#not-a-heading",
        "absent.md",
        "absent.png",
        "page.md#two",
        "dark.png",
        "light.png",
    ]
