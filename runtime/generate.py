"""Copies what the runtime shares with the toolkit, so that each rule is written once: `python runtime/generate.py`.

The copies are part of the repository, and a test compares them with what this would write.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "runtime" / "src" / "sixjars_runtime" / "shared"
SHARED = (
    "data/containers.py",
    "data/media/images.py",
    "data/media/videos.py",
    "data/text/given.py",
    "data/text/joiners.py",
    "data/text/pieces.py",
    "data/text/points.py",
    "data/text/segments.py",
    "data/text/sentences.py",
    "data/text/spelling.py",
    "errors.py",
    "flow/memory.py",
    "flow/ranges.py",
    "flow/small_files.py",
    "flow/special.py",
)
"""Modules of the toolkit that need numpy and small libraries alone."""
PACKAGE = (
    '"""Copies of modules of sixjars, written by runtime/generate.py: change the originals."""\n'
)


def copies() -> dict[Path, str]:
    """What each file of the shared package holds: a module with its imports, and the extras it names, renamed."""
    found = {TARGET / "__init__.py": PACKAGE}
    for name in SHARED:
        text = (ROOT / "src" / "sixjars" / name).read_text(encoding="utf-8")
        text = re.sub(r"^from sixjars\.", "from sixjars_runtime.shared.", text, flags=re.MULTILINE)
        found[TARGET / name] = text.replace("'sixjars[", "'sixjars-runtime[")
        found |= {
            folder / "__init__.py": PACKAGE
            for folder in (TARGET / name).parents
            if TARGET in folder.parents
        }
    return found


def main() -> None:
    """Write them."""
    for path, text in copies().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
