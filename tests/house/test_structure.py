"""The house rules that a machine can check: layers, lengths, names, docstrings, abstract or final."""

import ast
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel

import sixjars
import sixjars_runtime
from sixjars.flow.contracts import Component

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path for folder in ("src", "runtime/src") for path in (ROOT / folder).rglob("*.py")
)
MOST_LINES, MOST_PARAMETERS = 70, 7
KERNELS = "_kernels.py"
"""Files whose functions are compiled: their parameters are tensors with their strides."""
MOST_PARAMETERS_OF_A_COMPONENT = MOST_PARAMETERS + 2
"""Each is a key of a recipe, written there by name; a decoder is also given its bridge, which is no key."""
BASES = {
    "sixjars.flow.contracts.Component",
    "sixjars.flow.values.Rows",
    "sixjars.flow.values.Tensors",
    "sixjars.progress.Reporter",
    "sixjars_runtime.errors.SixJarsError",
}
"""Classes that others extend and that can also be made themselves."""
FORBIDDEN = ["/" + "work/", "/tmp/" + "bash", "." + "library"]
"""Paths of the machines that this was written on; in pieces, so that this file has none."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def functions() -> list[tuple[str, Function]]:
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, Function)
    ]


@cache
def classes() -> dict[str, type]:
    found = {}
    modules = [
        module
        for package in (sixjars, sixjars_runtime)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for module in modules:
        # kernels need Triton, which only CUDA builds bring
        if not module.name.endswith(("__main__", "_kernels")):
            for _, kind in inspect.getmembers(
                importlib.import_module(module.name), inspect.isclass
            ):
                if kind.__module__ == module.name:
                    found[f"{kind.__module__}.{kind.__qualname__}"] = kind
    return found


def constructors_of_components() -> set[str]:
    """The `__init__` of every encoder, bridge and decoder, called as `functions` calls them."""
    codes = [
        vars(kind)["__init__"].__code__
        for kind in classes().values()
        if issubclass(kind, Component) and "__init__" in vars(kind)
    ]
    return {
        f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_firstlineno} __init__"
        for code in codes
    }


def tracked() -> list[Path]:
    """What a commit would hold; where there is no git, every file of the usual folders."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [
            path
            for folder in ("src", "runtime", "tests", "docs", "benchmarks")
            for path in (ROOT / folder).rglob("*")
        ]
    return [path for path in paths if path.is_file() and "__pycache__" not in path.parts]


def test_there_is_something_to_check() -> None:
    assert len(SOURCES) > 50
    assert len(functions()) > 300
    assert len(classes()) > 50
    assert set(SOURCES) <= set(tracked())


def test_imports_keep_their_layers() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    assert f"{len(wanted)} kept, 0 broken" in ran.stdout


def test_functions_are_short() -> None:
    """Parameters aside: those of a command are its options, with what --help says of each."""
    lengths = {name: (node.end_lineno or 0) - node.body[0].lineno + 1 for name, node in functions()}
    too_long = {name: length for name, length in lengths.items() if length > MOST_LINES}
    assert too_long == {}


def test_functions_have_few_parameters() -> None:
    """Commands aside: their parameters are the options of the command line, named there and nowhere called by hand.

    Whoever has more says why, where ruff is told to let it pass. `backend` is handed to every component alike, so it
    does not count.
    """
    lines = {path: path.read_text(encoding="utf-8").splitlines() for path in SOURCES}
    excused = {
        f"{path.relative_to(ROOT)}:{number}"
        for path, text in lines.items()
        for number, line in enumerate(text, start=1)
        if "# noqa: PLR0913 - " in line
    }
    counts = {}
    for name, node in functions():
        if KERNELS in name:
            continue
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        counts[name] = len([one for one in given if one.arg not in {"self", "cls", "backend"}])
    components = constructors_of_components()
    most = {
        name: MOST_PARAMETERS_OF_A_COMPONENT if name in components else MOST_PARAMETERS
        for name in counts
    }
    over = {name: count for name, count in counts.items() if count > most[name]}
    assert len(components) > 10
    assert components <= set(counts)
    own = {name: count for name, count in over.items() if not name.startswith("src/sixjars/cli/")}
    assert {name: count for name, count in own.items() if name.split()[0] not in excused} == {}
    assert len(own) <= 11


def test_every_class_is_abstract_or_final() -> None:
    faults = []
    for name, kind in classes().items():
        settings, protocol = issubclass(kind, BaseModel), getattr(kind, "_is_protocol", False)
        if not (settings or protocol or name in BASES) and inspect.isabstract(kind) == getattr(
            kind, "__final__", False
        ):
            faults.append(name)
    assert faults == []
    assert set(classes()) >= BASES


def test_no_two_classes_share_a_name() -> None:
    """Within the sources of both distributions, so that a name in a message or a search is of one thing."""
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: at for name, at in places.items() if len(at) > 1} == {}
    assert len(places) > 400


def test_packages_of_runs_are_small() -> None:
    """What a person does with one run is in a package for each noun, none with more than fifteen files."""
    runs = ROOT / "src" / "sixjars" / "runs"
    counts = {path.name: len([*path.glob("*.py")]) for path in [runs, *runs.glob("*/")]}
    counts = {name: count for name, count in counts.items() if count}
    assert len(counts) > 5
    assert {name: count for name, count in counts.items() if count > 15} == {}


def test_there_is_no_drawer_for_everything() -> None:
    words = {"util", "utils", "helper", "helpers", "misc", "common"}
    assert [
        path for path in SOURCES if words & set(path.relative_to(ROOT).with_suffix("").parts)
    ] == []


def test_every_module_says_what_it_is() -> None:
    silent = [path for path in SOURCES if not ast.get_docstring(tree_of(path))]
    assert silent == []


def test_tensor_code_has_a_legend() -> None:
    """Wherever a local name ends in a shape, the file opens with what the letters mean."""
    faults, shaped = [], 0
    for path in SOURCES:
        tree = tree_of(path)
        nodes = list(ast.walk(tree))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        letters = {
            letter
            for name in names
            if (ending := name.rpartition("_")[2]).isupper() and name.rpartition("_")[0].islower()
            for letter in ending
            if letter.isalpha()
        }
        shaped += bool(letters)
        legend = (ast.get_docstring(tree) or "").partition("Dims:")[2]
        missing = sorted(letter for letter in letters if f"{letter} " not in legend)
        faults += [f"{path.relative_to(ROOT)}: {', '.join(missing)}"] if missing else []
    assert shaped > 25
    assert faults == []


def test_no_file_names_a_machine() -> None:
    faults = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", errors="ignore")
        faults += [f"{path.relative_to(ROOT)}: {word}" for word in FORBIDDEN if word in text]
    assert faults == []


def test_a_file_that_names_a_machine_would_be_found(tmp_path: Path) -> None:
    assert [word in f"cd {word}x" for word in FORBIDDEN] == [True, True, True]


LIGHT = """
import sys
sys.argv = ["sixjars", *sys.argv[1:]]
import sixjars
if sys.argv[1:]:
    from sixjars.cli import main
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
heavy = {"torch", "lightning_fabric", "numpy", "pyarrow", "matplotlib", "tokenizers", "PIL", "av", "timm"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--help",
        "train --help",
        "predict --help",
        "inspect --help",
        "serve --help",
        "tasks",
        "tasks --json",
    ],
)
def test_what_answers_at_once_loads_nothing_heavy(words: str) -> None:
    command = [sys.executable, "-c", LIGHT, *words.split()]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "100"}
    )
    assert ran.returncode == 0, ran.stderr
    assert bool(ran.stdout) == bool(words)
