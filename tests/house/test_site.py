"""The documentation site and the project's files agree with the package; links of a built site are checked."""

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

import sixjars

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))


def checker() -> Any:
    spec = importlib.util.spec_from_file_location("check_links", DOCS / "check_links.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.html").write_text(
        '<h1 id="top">b</h1><a href="../a.html#here">a</a><img src="c.png">'
    )
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here">1</a><a href="#there">2</a><a href="sub/b.html#top">3</a>'
        '<a href="sub/b.html#end">4</a><a href="https://example.org/x?y=1">5</a><a href="https://example">6</a>'
        '<a href="htp://example.org">7</a><img src="data:image/png;base64,AA=="><a href="sub">8</a>'
    )
    assert list(checker().faults(tmp_path)) == [
        "a.html: #there: no such heading",
        "a.html: htp://example.org: not a well-formed address",
        "a.html: https://example: not a well-formed address",
        "a.html: sub: no such file",
        "a.html: sub/b.html#end: no such heading",
        "sub/b.html: c.png: no such file",
    ]


def test_a_folder_without_pages_is_refused(tmp_path: Path) -> None:
    assert list(checker().faults(tmp_path)) == [f"{tmp_path} has no pages."]


def test_every_public_name_is_on_one_api_page() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md")]
    described = re.findall(
        r"^\.\. auto(?:class|function):: sixjars\.(\w+)$", "\n".join(pages), re.MULTILINE
    )
    assert sorted(described) == sorted(sixjars.__all__)


def test_pages_that_show_a_file_name_one() -> None:
    wrappers = sorted((DOCS / "project").glob("*.md"))
    shown = [
        re.fullmatch(r"```\{include\} (\S+)\n```\n", page.read_text(encoding="utf-8"))
        for page in wrappers
    ]
    assert len(wrappers) > 4
    assert [str(page) for page, match in zip(wrappers, shown, strict=True) if match is None] == []
    assert all((DOCS / "project" / match[1]).is_file() for match in shown if match)


def test_the_citation_has_the_version_of_the_package() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == PROJECT["version"]
    assert cited["license"] == PROJECT["license"]


def test_the_workflow_tries_what_the_package_admits() -> None:
    matrix = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]
    [torch] = [one for one in PROJECT["dependencies"] if one.startswith("torch")]
    assert matrix["torch"] == [f"{torch.replace('>=', '==')}.0", "torch"]
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"


def test_the_workflow_runs_the_commands_that_people_run() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [
        step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step
    ]
    assert set(commands) >= {"make lint", "make test", "make site", "make wheel"}
    for command in commands:
        target = command.removeprefix("make ")
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), command
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in WORKFLOW["jobs"].values())
