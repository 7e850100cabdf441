"""Run from its sources: a package that is not installed has no version, and trains all the same."""

import os
import subprocess
import sys
from pathlib import Path

import sixjars
import sixjars_runtime


def test_training_from_a_source_tree_that_is_not_installed(run_recipe: str, tmp_path: Path) -> None:
    """All that is installed here but `sixjars`: `-S` leaves it out, links bring the rest back."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for folder in (
        Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))
    ):
        for path in folder.iterdir():
            if "sixjars" not in path.name and not (packages / path.name).exists():
                (packages / path.name).symlink_to(path)
    for package in (sixjars, sixjars_runtime):
        (packages / package.__name__).symlink_to(Path(str(package.__file__)).parent)
    out = tmp_path / "run"
    ended = subprocess.run(
        [
            sys.executable,
            "-S",
            "-m",
            "sixjars",
            "train",
            run_recipe,
            "learning.epochs=2",
            "--out",
            out,
        ],
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert len((out / "log.jsonl").read_text().splitlines()) == 2
    assert "sixjars:not installed" in ended.stdout
