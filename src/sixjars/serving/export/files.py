"""The files of an exported run: its graphs, vocabularies and settings, and a model card."""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast, final

import torch

from sixjars.data.dataset import Fields
from sixjars.data.field import Field
from sixjars.flow.contracts import Generator
from sixjars.flow.values import Encoded, Padded
from sixjars.model.build import Network
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.folder.model_card import model_card
from sixjars.runs.folder.run_folder import RunFolder, open_run
from sixjars.runs.output_file import check_writable
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.recipes import Blueprint
from sixjars.serving.export.agreement import Agreement, compare
from sixjars.serving.export.card import whole_card
from sixjars.serving.export.examples import SHAPES, inputs_of
from sixjars.serving.export.graphs import Value, exportable, write_graph
from sixjars.serving.export.int8 import quantise
from sixjars.serving.export.stages import NetworkStages
from sixjars.serving.export.whole import search_inside, write_whole
from sixjars_runtime.errors import RecipeError, RunError, need, unknown
from sixjars_runtime.exported.inputs import READERS
from sixjars_runtime.exported.outputs import WRITERS
from sixjars_runtime.exported.settings import CHOOSE, ENCODER, FORMAT, SETTINGS, STEP

PRECISIONS = ("32", "int8")
"""Bits of the numbers that the step multiplies by."""
USAGE = (
    '`sixjars_runtime.load("OUT").predict("INPUT")` in Python (`pip install sixjars-runtime`), '
    "where OUT is this folder"
)
"""How to use an exported run."""


@final
@dataclass(frozen=True)
class Exported:
    """A folder for `sixjars_runtime.load`, and its agreement with torch where it was checked.

    >>> Exported(Path("words")).agreement is None
    True
    """

    folder: Path
    agreement: Agreement | None = None


def export(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    precision: str = "32",
    check: bool = False,
    data: str | os.PathLike[str] | None = None,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
    **search: Any,
) -> Exported:
    """Write a run as ONNX graphs into a new folder, with vocabularies, settings and a model card.

    With `check` the answers are compared with torch's, on the test set of the run or on `data`, a
    file with the same columns. With `precision="int8"` the matrices of the decoder's step have 8
    bits; nothing is written where fewer than 98 of 100 answers stay the same.

    With `whole="greedy"` or `"beam"`, encoder, decoder and search are one graph; settings of search
    may be beside it.

    >>> export("runs/never-made", "words")
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.RunError: run folder runs/never-made does not exist.
    """
    if precision not in PRECISIONS:
        raise RecipeError([unknown("precision", precision, PRECISIONS)], "export")
    target = Path(out)
    if target.exists():
        raise RunError(f"{target} is there already; remove it, or choose another name.")
    check_writable(target)
    opened = open_run(run, AllowedCode(tuple(allow), tuple(components)))
    for library in ("onnx", "onnxscript"):
        need(library, "export")
    predictor = Predictor(opened, device="cpu")
    _check_fields(predictor.fields)
    inside = search_inside(predictor, **search)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    beside.mkdir(parents=True)
    try:
        _write(opened, predictor, beside, inside)
        if precision == "int8":
            quantise(beside)
        agreement = None
        if check or precision == "int8" or data is not None:
            agreement = compare(opened, predictor, beside, data, inside)
        if agreement is not None and precision == "int8":
            agreement.check()
        os.replace(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return Exported(target, agreement)


def _write(
    run: RunFolder, predictor: Predictor, folder: Path, search: SearchSettings | None
) -> None:
    # Not the predictor's own network: on a CPU its matrices are packed, which no graph can hold.
    network = run.network(Blueprint.of(run.recipe, run.outside), predictor.fields).eval()
    exportable(network.encoder)
    # without gradients, a network takes paths that depend on the values that it reads
    with torch.enable_grad():
        about = _write_graphs(predictor, network, folder, search)
    (folder / "fields").mkdir()
    for name, field in predictor.fields.all.items():
        (folder / "fields" / f"{name}.json").write_text(field.to_json(), encoding="utf-8")
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    (folder / SETTINGS).write_text(text, encoding="utf-8")
    card = model_card(run, use=USAGE)
    if search is not None:
        card = model_card(run, use=f"{USAGE}, or with any ONNX runtime as told below")
        card += whole_card(folder, search, predictor.fields)
    (folder / "README.md").write_text(card, encoding="utf-8")


def _check_fields(fields: Fields) -> None:
    pairs = [(field, READERS) for field in fields.inputs.values()]
    for field, known in (*pairs, (fields.output, WRITERS)):
        if field.kind not in known:
            raise RunError(
                f"data.{field.name} is of kind {field.kind}, which cannot be exported; "
                f"the runtime knows {', '.join(sorted(known))}."
            )


def _write_backbones(extractors: Mapping[str, Any], folder: Path) -> None:
    for name, extractor in extractors.items():
        shapes = ((count, 3, extractor.pixels, extractor.pixels) for count in (3, 1, 2, 5))
        examples = [{"pixels": torch.randint(0, 256, shape).byte()} for shape in shapes]

        def features(value: Any, extractor: Any = extractor) -> Value:
            return {"values": extractor.features(value["pixels"])}

        what = f"the backbone {extractor.name}"
        write_graph(folder / f"{name}.onnx", features, [extractor.backbone], examples, what=what)


def _write_graphs(
    predictor: Predictor, network: Network, folder: Path, search: SearchSettings | None
) -> dict[str, Any]:
    """Write the graphs of a network; return all that the runtime must know besides them."""
    fields = predictor.fields
    examples = [inputs_of(fields, *shape) for shape in SHAPES]
    encoded = [network.encode(example) for example in examples]
    components = network.named_children()
    what = " and ".join(f"the {role} {type(part).__name__}" for role, part in components)
    extractors = {  # frozen backbones: others have no weights
        name: field.equipment.extractor
        for name, field in fields.inputs.items()
        if getattr(field.equipment.extractor, "fingerprint", None) is not None
    }
    if search is not None:
        write_whole(NetworkStages(network, search, extractors), fields, folder, what=what)
    else:
        _write_backbones(extractors, folder)
        if network.decoder.searches:
            _write_generator(network, folder, examples, what)
        else:
            choose = partial(_chosen, network)
            write_graph(folder / CHOOSE, choose, [network], examples, what=what)
    generator = cast(Generator, network.decoder)
    searches = network.decoder.searches
    return {
        "format": FORMAT,
        "task": predictor.recipe.task,
        "inputs": {name: _described(field) for name, field in fields.inputs.items()},
        "output": {fields.output.name: _described(fields.output)},
        "columns": predictor.columns,
        "positions_of": network.encoder.positions_of(),
        "layout": [encoded[0].layout.kind, *encoded[0].layout.shape],
        "has_attention": predictor.has_attention,
        "multi_label": fields.output.multi_label,
        "copies": fields.link is not None,
        "special": asdict(generator.special) if searches else None,
        "longest_beyond": _beyond(generator, encoded) if searches else None,
        "search": (search or predictor.recipe.evaluation.search).model_dump(),
        "batch_examples": predictor.recipe.evaluation.batch_examples,
    }


def _described(field: Field) -> dict[str, Any]:
    extractor = field.equipment.extractor
    pixels = {} if extractor is None else {"pixels": extractor.pixels}
    return {"kind": field.kind, "settings": field.settings.model_dump(mode="json"), **pixels}


def _write_generator(
    network: Network, folder: Path, examples: list[dict[str, Padded]], what: str
) -> None:
    """Write the step first, for the encoder need not give what the step does not read."""
    generator = cast(Generator, network.decoder)

    def encode(value: Any) -> Value:
        encoded = network.encode(value)
        state, prepared = generator.start(encoded)
        return {"state": state, "prepared": prepared, "mask": encoded.mask.clone()}

    def step(value: Any) -> Value:
        output, state = generator.step(value["token"], value["state"], value["prepared"])
        weights = {} if output.weights is None else {"weights": output.weights}
        return {"log_probabilities": output.log_probabilities, **weights, "after": state}

    states = []
    for example in examples:
        begun = dict(encode(example))
        rows = begun.pop("mask").shape[0]
        states.append({"token": torch.full((rows,), generator.special.go), **begun})
    read = write_graph(folder / STEP, step, [generator], states, what=what)
    keeps = {*read, "mask"}
    write_graph(folder / ENCODER, encode, [network], examples, what=what, keeps=keeps)


def _chosen(network: Network, value: Any) -> Value:
    """The log probability of every label, which is a target of one token with nothing before it."""
    encoded = network.encode(value)
    blank = torch.zeros(encoded.mask.shape[0], 1, dtype=torch.long)
    output = network.decoder.teach(encoded, Padded(blank, blank == 0))
    logits = output.logits[:, 0]
    chances = torch.log_softmax(logits, dim=-1)
    if output.multi_label:
        chances = torch.nn.functional.logsigmoid(logits)
    weights = {} if output.weights is None else {"weights": output.weights[:, 0]}
    return {"log_probabilities": chances, **weights, "mask": encoded.mask.clone()}


def _beyond(generator: Generator, encoded: list[Encoded]) -> int | None:
    """How many tokens an output may have beyond its source's positions, where that limits it."""
    longest = ((generator.longest(each), each.mask.shape[1]) for each in encoded)
    limits = {None if most is None else most - positions for most, positions in longest}
    if len(limits) > 1:
        raise RunError(
            f"the decoder {type(generator).__name__} cannot be exported: "
            "the length of its outputs depends on more than the source's."
        )
    return limits.pop()
