"""Every neural encoder-decoder, told as six jars: task, data, model, loss, learning, evaluation.

    import sixjars
    run = sixjars.train("translation/sample_attention", out="runs/en-hi")
    print(sixjars.load("runs/en-hi").predict(["I am going home"])[0].text)

The names below are loaded when they are first used, so that `import sixjars` costs nothing.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sixjars.errors import SixJarsError as SixJarsError
    from sixjars.flow.inputs import Padded as Padded
    from sixjars.flow.values import Encoded as Encoded
    from sixjars.flow.values import Hypothesis as Hypothesis
    from sixjars.model.bridges.attention import AdditiveAttention as AdditiveAttention
    from sixjars.model.bridges.attention import DotAttention as DotAttention
    from sixjars.model.bridges.attention import GeneralAttention as GeneralAttention
    from sixjars.model.bridges.every_step import EveryStep as EveryStep
    from sixjars.model.bridges.initial import InitialState as InitialState
    from sixjars.model.bridges.pooling import AttentionPooling as AttentionPooling
    from sixjars.model.bridges.two_level import TwoLevelAttention as TwoLevelAttention
    from sixjars.model.decoders.label import LabelDecoder as LabelDecoder
    from sixjars.model.decoders.pointer import PointerDecoder as PointerDecoder
    from sixjars.model.decoders.sequence import SequenceDecoder as SequenceDecoder
    from sixjars.model.encoders.hierarchy import HierarchyEncoder as HierarchyEncoder
    from sixjars.model.encoders.image import ImageEncoder as ImageEncoder
    from sixjars.model.encoders.image_question import ImageQuestionEncoder as ImageQuestionEncoder
    from sixjars.model.encoders.nothing import NothingEncoder as NothingEncoder
    from sixjars.model.encoders.points import PointsEncoder as PointsEncoder
    from sixjars.model.encoders.text import TextEncoder as TextEncoder
    from sixjars.model.encoders.video import VideoEncoder as VideoEncoder
    from sixjars.model.layers import WordEmbedding as WordEmbedding
    from sixjars.model.network import Network as Network
    from sixjars.model.sight import Sight as Sight
    from sixjars.serving.predictor import Predictor as Predictor
    from sixjars.serving.predictor import load as load
    from sixjars.tasks.training import train as train

_HOMES = {
    "AdditiveAttention": "sixjars.model.bridges.attention",
    "AttentionPooling": "sixjars.model.bridges.pooling",
    "DotAttention": "sixjars.model.bridges.attention",
    "Encoded": "sixjars.flow.values",
    "EveryStep": "sixjars.model.bridges.every_step",
    "GeneralAttention": "sixjars.model.bridges.attention",
    "HierarchyEncoder": "sixjars.model.encoders.hierarchy",
    "Hypothesis": "sixjars.flow.values",
    "ImageEncoder": "sixjars.model.encoders.image",
    "ImageQuestionEncoder": "sixjars.model.encoders.image_question",
    "InitialState": "sixjars.model.bridges.initial",
    "LabelDecoder": "sixjars.model.decoders.label",
    "Network": "sixjars.model.network",
    "NothingEncoder": "sixjars.model.encoders.nothing",
    "Padded": "sixjars.flow.inputs",
    "PointerDecoder": "sixjars.model.decoders.pointer",
    "PointsEncoder": "sixjars.model.encoders.points",
    "Predictor": "sixjars.serving.predictor",
    "SequenceDecoder": "sixjars.model.decoders.sequence",
    "Sight": "sixjars.model.sight",
    "SixJarsError": "sixjars.errors",
    "TextEncoder": "sixjars.model.encoders.text",
    "TwoLevelAttention": "sixjars.model.bridges.two_level",
    "VideoEncoder": "sixjars.model.encoders.video",
    "WordEmbedding": "sixjars.model.layers",
    "load": "sixjars.serving.predictor",
    "train": "sixjars.tasks.training",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("sixjars")
    if name not in _HOMES:
        raise AttributeError(f"module 'sixjars' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
