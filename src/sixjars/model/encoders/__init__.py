"""Encoders: each file encodes one kind of source; this table is the whole registry."""

from sixjars.flow.contracts import Encoder
from sixjars.model.encoders.bag import BagEncoder, WideDeepEncoder
from sixjars.model.encoders.image import ImageEncoder, ImageQuestionEncoder
from sixjars.model.encoders.nothing import NothingEncoder
from sixjars.model.encoders.pair import PairEncoder
from sixjars.model.encoders.points import PointsEncoder
from sixjars.model.encoders.text import HierarchyEncoder, TextEncoder
from sixjars.model.encoders.video import VideoEncoder

ENCODERS: dict[str, type[Encoder]] = {
    "none": NothingEncoder,
    "text": TextEncoder,
    "hierarchy": HierarchyEncoder,
    "bag": BagEncoder,
    "wide_deep": WideDeepEncoder,
    "pair": PairEncoder,
    "image": ImageEncoder,
    "image_question": ImageQuestionEncoder,
    "video": VideoEncoder,
    "points": PointsEncoder,
}
