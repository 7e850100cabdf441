"""Neural encoder-decoder models in six sections (the six jars): task, data, model, loss, learning, evaluation.

    import sixjars
    run = sixjars.train("translation/sample_attention", out="runs/en-hi")
    print(sixjars.load("runs/en-hi").predict(["I am going home"])[0].text)

The names below are loaded when they are first used, so that `import sixjars` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sixjars.version import version_of as version_of

if TYPE_CHECKING:
    from sixjars.comparison.compare import compare as compare
    from sixjars.comparison.result import Comparison as Comparison
    from sixjars.data.field import Field as Field
    from sixjars.data.field import Positions as Positions
    from sixjars.data.packing import packed as packed
    from sixjars.decoding import beam_rows as beam_rows
    from sixjars.decoding import search as search
    from sixjars.drawing.draw import draw as draw
    from sixjars.drawing.matplotlib.heatmap import heat_map as heat_map
    from sixjars.errors import SixJarsError as SixJarsError
    from sixjars.evaluation.baselines.result import Baseline as Baseline
    from sixjars.evaluation.metrics.outcome import Metric as Metric
    from sixjars.evaluation.metrics.outcome import Outcome as Outcome
    from sixjars.evaluation.metrics.outcome import Score as Score
    from sixjars.evaluation.metrics.table import score as score
    from sixjars.flow.contracts import Bridge as Bridge
    from sixjars.flow.contracts import Decoder as Decoder
    from sixjars.flow.contracts import Encoder as Encoder
    from sixjars.flow.contracts import Generator as Generator
    from sixjars.flow.contracts import StateShape as StateShape
    from sixjars.flow.searching import Hypothesis as Hypothesis
    from sixjars.flow.searching import SpecialTokens as SpecialTokens
    from sixjars.flow.values import Batch as Batch
    from sixjars.flow.values import Context as Context
    from sixjars.flow.values import DecoderOutput as DecoderOutput
    from sixjars.flow.values import Encoded as Encoded
    from sixjars.flow.values import Layout as Layout
    from sixjars.flow.values import Padded as Padded
    from sixjars.flow.values import Prepared as Prepared
    from sixjars.flow.values import SegmentLevel as SegmentLevel
    from sixjars.flow.values import Segments as Segments
    from sixjars.flow.values import State as State
    from sixjars.flow.values import StepOutput as StepOutput
    from sixjars.loss import token_loss as token_loss
    from sixjars.model.bridges.attention import Attention as Attention
    from sixjars.model.bridges.attention import TwoLevelAttention as TwoLevelAttention
    from sixjars.model.bridges.every_step import EveryStep as EveryStep
    from sixjars.model.bridges.initial import InitialState as InitialState
    from sixjars.model.bridges.location import LocationAttention as LocationAttention
    from sixjars.model.bridges.pooling import AttentionPooling as AttentionPooling
    from sixjars.model.build import Network as Network
    from sixjars.model.decoders.label import LabelDecoder as LabelDecoder
    from sixjars.model.decoders.pointer import PointerDecoder as PointerDecoder
    from sixjars.model.decoders.sequence import SequenceDecoder as SequenceDecoder
    from sixjars.model.encoders.bag import BagEncoder as BagEncoder
    from sixjars.model.encoders.bag import NgramVectors as NgramVectors
    from sixjars.model.encoders.bag import WideDeepEncoder as WideDeepEncoder
    from sixjars.model.encoders.image import ImageEncoder as ImageEncoder
    from sixjars.model.encoders.image import ImageQuestionEncoder as ImageQuestionEncoder
    from sixjars.model.encoders.nothing import NothingEncoder as NothingEncoder
    from sixjars.model.encoders.pair import PairEncoder as PairEncoder
    from sixjars.model.encoders.points import PointsEncoder as PointsEncoder
    from sixjars.model.encoders.text import HierarchyEncoder as HierarchyEncoder
    from sixjars.model.encoders.text import TextEncoder as TextEncoder
    from sixjars.model.encoders.video import VideoEncoder as VideoEncoder
    from sixjars.model.layers import WordEmbedding as WordEmbedding
    from sixjars.model.visual import VisualInput as VisualInput
    from sixjars.progress import ConsoleProgress as ConsoleProgress
    from sixjars.progress import Reporter as Reporter
    from sixjars.recipe.data import FieldSettings as FieldSettings
    from sixjars.recipe.sections import Recipe as Recipe
    from sixjars.recipe.sections import SearchSettings as SearchSettings
    from sixjars.reports.report import report as report
    from sixjars.runs.align import Alignment as Alignment
    from sixjars.runs.align import align as align
    from sixjars.runs.data.prepare import generate_sample as generate_sample
    from sixjars.runs.evaluate import Evaluation as Evaluation
    from sixjars.runs.evaluate import evaluate as evaluate
    from sixjars.runs.explanation.explain import Explanation as Explanation
    from sixjars.runs.explanation.explain import explain as explain
    from sixjars.runs.faithfulness import AttentionCheck as AttentionCheck
    from sixjars.runs.faithfulness import check_attention as check_attention
    from sixjars.runs.folder.share import pack as pack
    from sixjars.runs.folder.share import push as push
    from sixjars.runs.prediction.prediction import Prediction as Prediction
    from sixjars.runs.prediction.predictor import Predictor as Predictor
    from sixjars.runs.prediction.predictor import load as load
    from sixjars.runs.recipes import read_recipe as read_recipe
    from sixjars.runs.run import Run as Run
    from sixjars.runs.train import train as train
    from sixjars.serving.client import Answer as Answer
    from sixjars.serving.client import Client as Client
    from sixjars.serving.export.agreement import Agreement as Agreement
    from sixjars.serving.export.files import Exported as Exported
    from sixjars.serving.export.files import export as export
    from sixjars.serving.server.run import serve as serve
    from sixjars.serving.server.settings import ServerSettings as ServerSettings
    from sixjars.starter.baselines import baselines as baselines
    from sixjars.starter.write import new as new
    from sixjars.tuning.result import Tuning as Tuning
    from sixjars.tuning.tune import tune as tune

_MODULES = {
    "data.field": "Field Positions",
    "data.packing": "packed",
    "errors": "SixJarsError",
    "evaluation.metrics.outcome": "Metric Outcome Score",
    "evaluation.metrics.table": "score",
    "decoding": "beam_rows search",
    "flow.contracts": "Bridge Decoder Encoder Generator StateShape",
    "flow.searching": "Hypothesis SpecialTokens",
    "flow.values": "Batch Context DecoderOutput Encoded Layout Padded Prepared SegmentLevel Segments State StepOutput",
    "drawing.draw": "draw",
    "drawing.matplotlib.heatmap": "heat_map",
    "loss": "token_loss",
    "model.bridges.attention": "Attention TwoLevelAttention",
    "model.bridges.location": "LocationAttention",
    "model.bridges.every_step": "EveryStep",
    "model.bridges.initial": "InitialState",
    "model.bridges.pooling": "AttentionPooling",
    "model.build": "Network",
    "model.decoders.label": "LabelDecoder",
    "model.decoders.pointer": "PointerDecoder",
    "model.decoders.sequence": "SequenceDecoder",
    "model.encoders.bag": "BagEncoder NgramVectors WideDeepEncoder",
    "model.encoders.image": "ImageEncoder ImageQuestionEncoder",
    "model.encoders.nothing": "NothingEncoder",
    "model.encoders.pair": "PairEncoder",
    "model.encoders.points": "PointsEncoder",
    "model.encoders.text": "HierarchyEncoder TextEncoder",
    "model.encoders.video": "VideoEncoder",
    "model.layers": "WordEmbedding",
    "model.visual": "VisualInput",
    "progress": "ConsoleProgress Reporter",
    "recipe.data": "FieldSettings",
    "recipe.sections": "Recipe SearchSettings",
    "evaluation.baselines.result": "Baseline",
    "runs.align": "Alignment align",
    "starter.baselines": "baselines",
    "comparison.compare": "compare",
    "comparison.result": "Comparison",
    "runs.evaluate": "Evaluation evaluate",
    "runs.explanation.explain": "Explanation explain",
    "runs.faithfulness": "AttentionCheck check_attention",
    "runs.prediction.predictor": "Predictor load",
    "runs.prediction.prediction": "Prediction",
    "runs.data.prepare": "generate_sample",
    "runs.recipes": "read_recipe",
    "reports.report": "report",
    "runs.run": "Run",
    "runs.folder.share": "pack push",
    "starter.write": "new",
    "runs.train": "train",
    "tuning.tune": "tune",
    "tuning.result": "Tuning",
    "serving.export.agreement": "Agreement",
    "serving.export.files": "Exported export",
    "serving.client": "Answer Client",
    "serving.server.run": "serve",
    "serving.server.settings": "ServerSettings",
}
_HOMES = {name: f"sixjars.{module}" for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version_of()
    if name not in _HOMES:
        raise AttributeError(f"module 'sixjars' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
