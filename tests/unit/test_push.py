"""`push` and `hf:user/name`, against a stand-in for the hub on this machine."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sixjars.runs.folder.archive import FILES

from .conftest import Call
from .hub_server import TOKEN, Hub


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()
    yield made
    made.stop()


@pytest.fixture
def ours(hub: Hub, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """`sixjars` in this process, for which the stand-in is the hub."""
    from huggingface_hub import constants
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    monkeypatch.setattr(constants, "ENDPOINT", hub.address)
    monkeypatch.setattr(
        constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        hub.address + "/{repo_id}/resolve/{revision}/{filename}",
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return call


def test_a_run_goes_there_and_back(hub: Hub, ours: Call, run: Path, tmp_path: Path) -> None:
    said = ours("push", run, "me/words", "--licence", "CC BY 4.0", "--private")
    assert (said.code, said.err.strip()) == (
        0,
        f"{hub.address}/me/words; use it: sixjars predict hf:me/words INPUT",
    )
    assert hub.private == {"me/words"}
    files = hub.repositories["me/words"]
    kept = set(FILES)
    assert "model.safetensors" in kept
    assert set(files) == {"README.md", *kept, "fields/source.json", "fields/target.json"}
    assert files["model.safetensors"] == (run / "model.safetensors").read_bytes()
    _, head, card = files["README.md"].decode().split("---\n", 2)
    facts = yaml.safe_load(head)
    [result] = facts.pop("model-index")[0]["results"]
    assert facts == {
        "library_name": "sixjars",
        "tags": ["sixjars", "encoder-decoder", "transliteration"],
        "license": "cc-by-4.0",
    }
    assert result["dataset"]["name"] == "8 examples of the test set"
    assert [one["type"] for one in result["metrics"]] == ["character_error_rate"]
    assert '`sixjars.load("hf:me/words").predict("INPUT")`' in card
    files |= {"evil.py": b"raise SystemExit('run')", "checkpoints/last.pt": b"no"}
    wanted = ours("predict", run, "ghar", "kamal")
    assert ours("predict", "hf:me/words", "ghar", "kamal") == wanted
    assert ours("predict", "hf:me/words@main", "ghar", "kamal").out == wanted.out
    fetched = {path.name for path in (tmp_path / "hf").rglob("snapshots/*/*") if path.is_file()}
    assert fetched == {"README.md", *kept}
    hub.calls.clear()
    scored = ours("evaluate", "hf:me/words", "--json").out
    assert scored == ours("evaluate", run, "--json").out.replace(str(run), "hf:me/words")
    assert not any("safetensors" in call for call in hub.calls)  # it is here already
    assert ours("explain", "hf:me/words").out == ours("explain", run).out


def test_what_goes_wrong_is_a_sentence(
    hub: Hub, ours: Call, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repositories["me/other"] = {"README.md": b"# Other", "config.json": b"{}"}
    for name, sentence in {
        "hf:me": "a run on the hub is called user/name, but this is 'hf:me'.",
        "hf:../x/y": "a run on the hub is called user/name, but this is 'hf:../x/y'.",
        "hf:me/other": "hf:me/other is not a run of sixjars: it has no recipe.yaml.",
        "hf:me/other@old": "me/other has no such revision on the hub.",
        "hf:me/none": "me/none is not on the hub, or not for you; sign in with `hf auth login`, or set HF_TOKEN, if "
        "it is yours.",
    }.items():
        assert ours("predict", name, "ghar").sentence == sentence
    expected = "a run on the hub is called user/name, but this is 'words'."
    assert ours("push", run, "words").sentence == expected
    with monkeypatch.context() as patch:
        patch.setenv("HF_TOKEN", "hf_wrong")
        refused = ours("push", run, "me/words").sentence
    assert refused == "the hub refused me/words: Invalid username or password."
    (tmp_path / "empty").mkdir()
    for name in ("recipe.yaml", "run.json"):
        (tmp_path / "empty" / name).write_bytes((run / name).read_bytes())
    assert ours("push", tmp_path / "empty", "me/words").sentence == (
        f"{tmp_path / 'empty'} has no trained weights yet (model.safetensors), so there is nothing to share."
    )
    hub.stop()
    gone = ours("predict", "hf:me/words", "ghar").sentence
    assert gone.startswith("the hub cannot be reached for me/words: Server disconnected")
    assert ours("predict", "hf:me/words", "ghar").sentence == (
        "me/words cannot be downloaded: the hub cannot be reached, and it was never here."
    )
    assert ours("push", run, "me/words").sentence.startswith(
        "the hub cannot be reached for me/words: "
    )


@pytest.mark.parametrize(
    ("licence", "facts"),
    [
        ("", {}),
        ("MIT", {"license": "mit"}),
        ("Our own: ask", {"license": "other", "license_name": "our-own:-ask"}),
    ],
)
def test_metadata_of_a_licence(licence: str, facts: dict[str, str], run: Path) -> None:
    from sixjars.runs.folder.model_card import hub_card
    from sixjars.runs.folder.run_folder import open_run

    head = yaml.safe_load(hub_card(open_run(run), "me/words", licence).split("---\n")[1])
    assert {key: value for key, value in head.items() if key.startswith("license")} == facts


def test_another_hub_by_the_usual_variable(
    hub: Hub, warm_python: str, run: Path, tmp_path: Path
) -> None:
    env = {
        **os.environ,
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(tmp_path / "hf"),
        "HF_TOKEN": TOKEN,
    }
    env |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    code = "import sixjars, sys; print(sixjars.push(sys.argv[1], 'me/words')); "
    code += "print(sixjars.load('hf:me/words').predict('ghar').error)"
    done = subprocess.run(
        [warm_python, "-c", code, run],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == (f"{hub.address}/me/words\nNone\n", "")
