"""Components from outside: a user's own package, installed in an environment of its own, with her permission alone."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import final

import pytest
from tests.house.copies import CALLS, ROOT

from sixjars import Field, FieldSettings, WordEmbedding

SOURCES = [str(ROOT / "src"), str(ROOT / "runtime" / "src")]
MODULES = {
    "my_lab/__init__.py": """
import os

with open(os.environ["IMPORTED"], "w"):  # importing a module runs it
    pass
""",
    "my_lab/fields.py": """
import numpy as np
from sixjars import Field, FieldSettings, Padded


class SignSettings(FieldSettings):
    reverse: bool = False


class SignField(Field):
    kind = "signs"
    settings_class = SignSettings
    holds = "tokens"
    fact_names = ("signs",)

    def check(self, text, row):
        super().check(text, row)
        if set(text) - set("+-"):
            raise ValueError(f"the {self.name} must be plus and minus signs, but is {text!r}.")

    def arrays(self, texts):
        order = -1 if self.settings.reverse else 1
        return [np.array([4 + "+-".index(sign) for sign in text[::order]]) for text in texts]

    def blank(self):
        return Padded.of([[4]])

    def facts(self):
        return {"signs": 6}

    def describe(self):
        return "plus and minus signs"
""",
    "my_lab/model.py": """
import torch
from sixjars import Bridge, Context, Decoder, DecoderOutput, Encoded, Encoder, Hypothesis, Prepared, StateShape
from torch import nn


class SignEncoder(Encoder):
    letters = {"table.weight": "E_enc"}

    def __init__(self, *, signs: int, size: int = 4) -> None:
        super().__init__()
        self.table = nn.Embedding(signs, size)
        self.output_size = self.summary_size = size

    def forward(self, source):
        memory = self.table(source.values) * source.mask.unsqueeze(-1)
        return Encoded(memory, source.mask, memory.sum(1))

    def equations(self):
        return ["h_j = E_enc[x_j]", "h_T = sum_j h_j"]


class ScaledBridge(Bridge):
    context_size = 0
    letters = {"scale": "a"}

    def __init__(self, *, summary_size: int, first: float = 1.0) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((summary_size,), first))

    def start(self, encoded):
        return Prepared(self.scale * encoded.summary, encoded.summary, encoded.memory, encoded.mask)

    def step(self, query, prepared):
        return Context(prepared.summary[:, :0])

    def equations(self):
        return ["s_0 = a * h_T"]


class ClassDecoder(Decoder):
    produces = "classes"
    searches = False
    letters = {"output.weight": "V_out", "output.bias": "b_out"}

    def __init__(self, *, bridge: Bridge, classes: int, size: int = 4) -> None:
        super().__init__()
        self.bridge = bridge
        self.output = nn.Linear(size, classes)

    @staticmethod
    def state_shape(settings):
        return StateShape(settings["size"], state_count=1)

    def teach(self, encoded, target):
        return DecoderOutput(self.output(self.bridge.start(encoded).first_state).unsqueeze(1))

    def answer(self, encoded, search, prefix=None):
        chances, labels = self.teach(encoded, None).logits[:, 0].log_softmax(-1).max(-1)
        return [[Hypothesis((label,), log, log)] for log, label in zip(chances.tolist(), labels.tolist(), strict=True)]

    def loss_equation(self):
        return "L = -log P(y | x)"

    def equations(self):
        return ["P(y | x) = softmax(V_out s_0 + b_out)"]


class Unfinished(Encoder):
    def equations(self):
        return []
""",
    "my_lab/metrics.py": """
from sixjars import Metric


def right(outcomes):
    return sum(one.candidates[0] in one.references for one in outcomes) / len(outcomes)


RIGHT = Metric("right", right)
""",
}
RECIPE = """
task: document_classification
data:
  train: signs.tsv
  source: {kind: my_lab.fields.SignField, column: signs, reverse: true}
  label: {column: class}
model:
  encoder: {kind: my_lab.model.SignEncoder, size: 3}
  bridge: {kind: my_lab.model.ScaledBridge, first: 0.5}
  decoder: {kind: my_lab.model.ClassDecoder, size: 3}
learning: {rate: 5.0e-2, epochs: 30, batch_examples: 16, metric: my_lab.metrics.RIGHT}
evaluation: {metrics: [my_lab.metrics.RIGHT]}
expect: {my_lab.metrics.RIGHT: 0.9}
"""
NAMED = (
    "data.source: kind: my_lab.fields.SignField",
    "model.encoder.kind: my_lab.model.SignEncoder",
    "model.bridge.kind: my_lab.model.ScaledBridge",
    "model.decoder.kind: my_lab.model.ClassDecoder",
    "metric: my_lab.metrics.RIGHT",
)
COMPONENTS = NAMED[:-1]
"""What a run that was trained needs: its metrics are looked for where they are computed."""
REFUSED = "is code from outside this toolkit. If you trust it, say --allow my_lab (in Python: allow=['my_lab'])."
TRAIN = ["train", "signs.yaml", "--out", "run"]
USES = (["predict", "run", "++-+"], ["evaluate", "run"], ["explain", "run"])


@final
class Lab:
    """An environment with our toolkit in it, a folder to work in, and a file that is written when `my_lab` is run."""

    def __init__(self, folder: Path, warm_python: str) -> None:
        self.warm_python = warm_python
        self.folder = folder / "work"
        self.imported = folder / "imported"
        self.environment = folder / "environment"
        self.folder.mkdir()
        command = [sys.executable, "-m", "venv", "--without-pip", str(self.environment)]
        subprocess.run(command, check=True)
        ours = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
        lines = "".join(f"import site; site.addsitedir({path!r})\n" for path in sorted(ours))
        lines += f"import sys; sys.path[:0] = {SOURCES!r}\n"  # the toolkit of this folder, wherever it is installed
        self.packages = next(self.environment.glob("lib/python*/site-packages"))
        (self.packages / "ours.pth").write_text(lines, encoding="utf-8")
        (self.folder / "signs.yaml").write_text(RECIPE, encoding="utf-8")
        rows = [f"{number:05b}".replace("0", "-").replace("1", "+") for number in range(32)]
        lines = "".join(f"{row}\t{'up' if row.count('+') > 2 else 'down'}\n" for row in rows * 3)
        (self.folder / "signs.tsv").write_text(f"signs\tclass\n{lines}", encoding="utf-8")

    def install(self) -> None:
        """The package as a wheel, by pip, into this environment alone."""
        wheel = self.folder.parent / "my_lab-1.0-py3-none-any.whl"
        about = {
            "my_lab-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: my_lab\nVersion: 1.0\n",
            "my_lab-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        with zipfile.ZipFile(wheel, "w") as file:
            for name, text in {**MODULES, **about}.items():
                file.writestr(name, text)
            listed = "".join(
                f"{name},,\n" for name in [*MODULES, *about, "my_lab-1.0.dist-info/RECORD"]
            )
            file.writestr("my_lab-1.0.dist-info/RECORD", listed)
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(self.environment),
            "--disable-pip-version-check",
        ]
        command = [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def python(
        self, program: str, *words: str, folder: Path | None = None, real: bool = False
    ) -> str:
        """What a program prints; like an installed command, it does not look for modules where it is called.

        The Python of the environment takes seconds to start, so most programs get a warm one with its packages.
        """
        paths = {
            "PYTHONSAFEPATH": "1",
            "IMPORTED": str(self.imported),
            "SIXJARS_CACHE": str(self.folder / "cache"),
        }
        paths |= {} if real else {"PYTHONPATH": os.pathsep.join([*SOURCES, str(self.packages)])}
        around = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONHOME")
        }
        python = str(self.environment / "bin" / "python") if real else self.warm_python
        done = subprocess.run(
            [python, "-c", program, *words],
            cwd=folder or self.folder,
            env={**around, **paths, "COLUMNS": "120"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def called(
        self, *commands: list[str], folder: Path | None = None, real: bool = False
    ) -> list[tuple[int, str, str]]:
        """The exit code of each command, what it prints and what it tells; all in one process."""
        found = self.python(CALLS, json.dumps(commands), folder=folder, real=real)
        return [(code, out, err) for code, out, err in json.loads(found)]

    def ran(self) -> bool:
        """Whether the package was imported since the last time."""
        there = self.imported.exists()
        self.imported.unlink(missing_ok=True)
        return there


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, warm_python: str) -> Lab:
    """The package is installed, and a model of its components is trained."""
    made = Lab(tmp_path_factory.mktemp("lab"), warm_python)
    made.install()
    [(code, out, err)] = made.called([*TRAIN, "--allow", "my_lab"], real=True)
    assert code == 0, err
    assert "my_lab.metrics.RIGHT" in out
    # so its metric was found where weights are chosen, and where the score is expected
    assert "expects" not in err
    assert made.ran()
    return made


def refused(
    lab: Lab, *commands: list[str], folder: Path | None = None, named: tuple[str, ...] = NAMED
) -> None:
    """Each command is an error that names all of them, and none of their code is run."""
    lab.ran()  # what earlier tests did does not count
    for code, out, err in lab.called(*commands, folder=folder):
        assert (code, out) == (2, ""), err
        for name in named:
            assert f"{name} {REFUSED}" in err, err
    assert not lab.ran()


def test_the_package_is_in_the_temporary_environment_alone(lab: Lab) -> None:
    found = lab.python("import my_lab, sixjars; print(my_lab.__file__)", real=True)
    assert lab.ran()
    assert Path(found).is_relative_to(lab.environment)
    here = [sys.executable, "-c", "import my_lab"]
    done = subprocess.run(here, cwd=lab.folder, capture_output=True, text=True, check=False)
    assert "No module named 'my_lab'" in done.stderr


def test_nothing_is_imported_without_permission(lab: Lab) -> None:
    train = ["train", "signs.yaml", "--out", "none"]
    other = [*train, "--allow", "my_la", "--allow", "my_lab.no", "--allow", "sixjars"]
    of_recipes = [train, other, ["explain", "signs.yaml"], ["features", "signs.yaml"]]
    refused(lab, *of_recipes, [*TRAIN, "--resume"])
    refused(lab, *USES, ["compare", "run", "run"], named=COMPONENTS)
    assert not (lab.folder / "none").exists()


def test_each_command_works_with_permission(lab: Lab) -> None:
    also = (["predict", "run", "+x"], ["compare", "run", "run", "--metric", "my_lab.metrics.RIGHT"])
    done = lab.called(*([*words, "--allow", "my_lab"] for words in (*USES, *also)))
    predicted, evaluated, explained, bad, compared = done
    assert predicted[1].split()[0] == "up", predicted
    assert "my_lab.metrics.RIGHT      1.0000   my_lab.metrics.RIGHT|sixjars:" in evaluated[1], (
        evaluated
    )
    for line in (
        "x, the source: plus and minus signs",
        "s_0 = a * h_T",
        "encoder.table.weight",
        "b_out",
    ):
        assert line in explained[1], explained
    assert "the source must be plus and minus signs, but is '+x'." in bad[2], bad
    assert "my_lab.metrics.RIGHT on 30 examples of the validation set" in compared[1], compared


def test_a_run_from_elsewhere_imports_nothing(lab: Lab, tmp_path: Path) -> None:
    """Not even where the package lies beside the run, inside it, and in the folder of the call."""
    shutil.copytree(lab.folder / "run", tmp_path / "run")
    for place in (tmp_path, tmp_path / "run"):
        for name, text in MODULES.items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
    refused(lab, *USES, folder=tmp_path, named=COMPONENTS)


def test_what_is_no_component_is_refused(lab: Lab) -> None:
    """Nor a package that is not there."""
    told = {
        "model.encoder.kind=my_lab.model.ScaledBridge": "model.encoder.kind: my_lab.model.ScaledBridge is no Encoder.",
        "model.bridge.kind=my_lab.model.torch": "model.bridge.kind: my_lab.model.torch is no Bridge.",
        "data.source.kind=my_lab.model.SignEncoder": "data.source: kind: my_lab.model.SignEncoder is no Field.",
        "evaluation.metrics=[my_lab.metrics.Metric]": "metric: my_lab.metrics.Metric is no Metric.",
        "model.encoder.kind=my_lab.model.Unfinished": "my_lab.model.Unfinished does not define forward, as every",
        "model.encoder.kind=my_lab.model.Other": "model.encoder.kind: module my_lab.model has no 'Other'.",
        "model.decoder.kind=my_lab.gone.X": "my_lab.gone.X cannot be imported: No module named 'my_lab.gone'.",
        "model.encoder.kind=my_la.X": "model.encoder.kind: my_la.X cannot be imported: No module named 'my_la'.",
    }
    calls = [
        ["explain", "signs.yaml", key, "--allow", "my_lab", "--allow", "my_la"] for key in told
    ]
    for (code, _, err), sentence in zip(lab.called(*calls), told.values(), strict=True):
        assert code == 2
        assert sentence in err


PROGRAM = """
import sixjars
from my_lab.fields import SignField
from my_lab.metrics import RIGHT
from my_lab.model import ClassDecoder, ScaledBridge, SignEncoder

own = [SignField, SignEncoder, ScaledBridge, ClassDecoder, RIGHT]
run = sixjars.train("signs.yaml", out="again", components=own)
print(run.scores[0].value)
print(sixjars.load("again", components=own).predict(["++-+", "---+"])[1].text)
print(sixjars.evaluate("again", metrics=["right"], components=own).scores[0].name)
print(sixjars.explain("again", components=own).count)
print(sixjars.load("again", allow=["my_lab"]).predict(["++-+"])[0].text)
for some in (own[:-1], []):
    try:
        sixjars.load("again", components=some)
        print(0)
    except sixjars.SixJarsError as error:
        print(len(error.faults))
"""


def test_from_python_classes_are_handed_over(lab: Lab) -> None:
    value, label, metric, count, allowed, *refusals = lab.python(PROGRAM).split()
    assert float(value) == 1.0
    assert (label, metric, allowed) == ("down", "right", "up")
    assert int(count) == 6 * 3 + 3 + 2 * 3 + 2
    assert [int(number) for number in refusals] == [0, 4]  # to predict, no metric is needed


def test_a_package_in_the_current_folder_is_found(tmp_path: Path, warm_python: str) -> None:
    """Nothing is installed here; the command line looks into the current folder when a package is allowed."""
    lab = Lab(tmp_path, warm_python)
    for name, text in MODULES.items():
        (lab.folder / name).parent.mkdir(exist_ok=True)
        (lab.folder / name).write_text(text, encoding="utf-8")
    train = [*TRAIN, "learning.steps=2", "--allow", "my_lab"]
    trained, predicted = lab.called(train, [*USES[0], "--allow", "my_lab"])
    assert trained[0] == predicted[0] == 0, (trained, predicted)
    assert predicted[1].split()[0] in ("up", "down")
    assert lab.ran()


def test_a_field_need_not_have_vectors() -> None:
    """The settings of a text have a key for pretrained vectors; those of another field may have none."""
    settings = FieldSettings(kind="signs", column="signs")
    field = SimpleNamespace(name="source", settings=settings, has_vectors=Field.has_vectors)
    [told] = WordEmbedding.section_misfits({"frozen": True}, "model.encoder.embedding", field)
    sentence = "keeps pretrained vectors as they are, but data.source.vectors names none."
    assert told.endswith(sentence)
