"""Check the links of the built site: `python docs/check_links.py build/site`.

A link inside the site must lead to a file that exists, and to a heading or name that exists there. A link that leaves
the site is only checked for its form, so that this needs no network.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

HOST = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")
NOT_FOLLOWED = {"data", "mailto"}


class Page(HTMLParser):
    """The links of a page, and the places in it that a link can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each element."""
        given = {name: value for name, value in attrs if value}
        self.links += [given[name] for name in ("href", "src") if name in given]
        self.places |= {given[name] for name in ("id", "name") if name in given}


def faults(site: Path) -> Iterator[str]:
    """A sentence for each link that leads nowhere."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }
    if not pages:
        yield f"{site} has no pages."
    for path, page in pages.items():
        for link in sorted(set(page.links)):
            if fault := _fault(link, path, pages):
                yield f"{path.relative_to(site.resolve())}: {link}: {fault}"


def _fault(link: str, path: Path, pages: dict[Path, Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme in NOT_FOLLOWED:
        return ""
    if parts.scheme or parts.netloc:
        well_formed = (
            parts.scheme in {"http", "https"}
            and HOST.fullmatch(parts.hostname or "")
            and " " not in link
        )
        return "" if well_formed else "not a well-formed address"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return "no such file"
    place = unquote(parts.fragment)
    return (
        "no such heading" if place and target in pages and place not in pages[target].places else ""
    )


def main() -> int:
    """Write what is wrong; 1 if anything is."""
    found = list(faults(Path(sys.argv[1])))
    sys.stderr.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
