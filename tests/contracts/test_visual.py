"""Images and videos against loops: which number comes from which cell, frame and weight."""

from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn

from sixjars.errors import RecipeError, ShapeError
from sixjars.flow.values import Encoded, Layout, Padded
from sixjars.model.bridges.initial import InitialState
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.encoders.image import ImageEncoder, ImageQuestionEncoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.encoders.video import VideoEncoder
from sixjars.model.visual import SmallBackbone, VisualInput, learns

from .examples import features, frames, numbers_of, ragged, texts, vectors, words

pytestmark = pytest.mark.usefixtures("in_64_bits")
PIXELS = 12
"""Of each side; two halvings leave 3×3 cells."""


def small(train_from: str | None = None) -> VisualInput:
    return VisualInput(
        pixels=PIXELS, widths=(4, 6), frozen=train_from is None, train_from=train_from
    )


def video(lengths: tuple[int, ...] = (4, 1, 3)) -> Padded:
    return frames(small(), lengths)


def alone(visual: VisualInput, frame: Tensor) -> tuple[Tensor, Tensor]:
    """One frame alone through the backbone: its maps (C, h, w) and its vector."""
    assert isinstance(visual.backbone, SmallBackbone)
    maps, vector = visual.backbone(frame.view(1, 3, PIXELS, PIXELS))
    return maps[0], vector[0]


def test_which_backbones_learn() -> None:
    assert learns("small", frozen=True)
    assert learns("efficientnet_lite0", frozen=False)
    assert not learns("efficientnet_lite0", frozen=True)


def test_weights_learn_from_the_named_layer_on() -> None:
    """Below it they stay as they are; the features are the same."""
    whole, half = small(), small("blocks.1")
    half.load_state_dict(whole.state_dict())
    given = video()
    for one, two in zip(whole(given), half(given), strict=True):
        assert torch.equal(one, two)
    frozen = {name for name, weight in half.named_parameters() if not weight.requires_grad}
    assert (
        frozen
        == {name for name, _ in half.named_parameters() if name.startswith("backbone.blocks.0.")}
        != set()
    )
    assert all(weight.requires_grad for weight in whole.parameters())
    told = r"layer of the backbone 'block9' is unknown\. Did you mean 'blocks'\?"
    with pytest.raises(RecipeError, match=told):
        small("block9")


def test_frames_have_no_influence_on_each_other_and_padding_is_zero() -> None:
    visual, given = small(), video()
    maps, vectors = visual(given)
    for row in range(3):
        for place in range(4):
            wanted = alone(visual, given.values[row, place])
            real = float(given.mask[row, place])
            torch.testing.assert_close(maps[row, place], wanted[0] * real)
            torch.testing.assert_close(vectors[row, place], wanted[1] * real)


def test_features_made_beforehand_are_read_back_as_they_were_written() -> None:
    """Maps first, channel by channel and row by row, then the vector; kept in 16 bits."""
    visual = features()
    shape = visual.shape
    maps_NCHW = torch.randn(3, shape.channels, shape.height, shape.width).half()
    vector_NK = torch.randn(3, shape.vector).half()
    numbers_BFN = torch.cat([maps_NCHW.flatten(1), vector_NK], 1).unsqueeze(1)
    maps, vector = visual(Padded(numbers_BFN, torch.ones(3, 1, dtype=torch.bool)))
    assert (maps.dtype, vector.dtype) == (torch.float64, torch.float64)
    assert torch.equal(maps[:, 0], maps_NCHW.double())
    assert torch.equal(vector[:, 0], vector_NK.double())
    assert not list(visual.parameters())


def test_the_vector_alone_is_kept_where_nothing_attends_to_cells() -> None:
    visual = vectors()
    vector_BFK = torch.randn(2, 3, 1280).half()
    mask_BF = torch.tensor([[True, True, True], [True, False, False]])
    assert numbers_of(visual.shape) == visual.shape.vector == 1280
    maps, vector = visual(Padded(vector_BFK, mask_BF))
    assert maps.shape == (2, 3, 112, 0, 0)
    assert torch.equal(vector, vector_BFK.double() * mask_BF.unsqueeze(-1))
    assert visual.equations() == [
        "v = CNN(I): a vector of 1280 (efficientnet_lite0, frozen, computed once)"
    ]
    found = ImageEncoder(backbone=visual)(Padded(vector_BFK[:, :1], mask_BF[:, :1]))
    assert (found.memory.shape, found.mask.shape) == ((2, 0, 112), (2, 0))
    assert found.layout == Layout("grid", (0, 0))


def test_pixels_have_cells_in_any_case() -> None:
    """A backbone that learns is given pixels all the same; there is nothing to leave out."""
    assert VisualInput(pixels=PIXELS, widths=(4, 6), cells=False).shape == small().shape


def test_equations_name_the_sizes() -> None:
    shown = "r_1..r_S, v = CNN(I): 3×3 cells of 6 numbers, a vector of 128 (small, learned)"
    assert small().equations() == [shown]
    assert small().equations("_j") == [shown.replace("r_1..r_S, v = CNN(I)", "r_j, v_j = CNN(I_j)")]
    kept = "r_1..r_S, v = CNN(I): 2×2 cells of 112 numbers, a vector of 1280 (efficientnet_lite0, frozen, computed once)"
    assert features().equations() == [kept]


@pytest.mark.parametrize(
    ("settings", "how"),
    [
        ({"widths": (4, 6), "train_from": "blocks.1"}, "small, learned from blocks.1 on"),
        ({"name": "efficientnet_lite0"}, "efficientnet_lite0, fine-tuned"),
        (
            {"name": "efficientnet_lite0", "train_from": "block11"},
            "efficientnet_lite0, fine-tuned from block11 on",
        ),
    ],
)
def test_equations_tell_which_layers_learn(settings: dict[str, Any], how: str) -> None:
    visual = VisualInput(pixels=32, frozen=False, pretrained=False, **settings)
    assert visual.equations()[0].endswith(f"({how})")
    assert all(weight.requires_grad for weight in visual.parameters()) == ("from" not in how)


def evened(numbers: Tensor, norm: nn.LayerNorm) -> Tensor:
    """Minus their mean, over their standard deviation; then the gain and the shift."""
    spread = ((numbers - numbers.mean()).square().mean() + norm.eps).sqrt()
    return (numbers - numbers.mean()) / spread * norm.weight + norm.bias


def test_the_cells_of_an_image_stand_row_by_row() -> None:
    """h_j = γ_r ⊙ norm(r_j) + δ_r and h_T = γ_v ⊙ norm(v) + δ_v."""
    encoder, given = ImageEncoder(backbone=small()), video((1, 1, 1))
    for norm in (encoder.cells, encoder.whole):
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    found: Encoded = encoder(given)
    assert found.layout == Layout("grid", (3, 3))
    for row in range(3):
        maps, vector = alone(encoder.backbone, given.values[row, 0])
        torch.testing.assert_close(found.summary[row], evened(vector, encoder.whole))
        for down in range(3):
            for across in range(3):
                wanted = evened(maps[:, down, across], encoder.cells)
                torch.testing.assert_close(found.memory[row, 3 * down + across], wanted)


@pytest.mark.parametrize("summary", ["both", "question"])
def test_a_question_and_an_image_stand_side_by_side(summary: Literal["both", "question"]) -> None:
    image = ImageEncoder(backbone=small())
    question = TextEncoder(embedding=words(), size=3, direction="both")
    encoder = ImageQuestionEncoder(image=image, question=question, summary=summary).eval()
    images, words_of_questions = video((1, 1, 1)), texts()
    found = encoder(images, words_of_questions)
    cells = image(images)
    text = question(words_of_questions)
    assert torch.equal(found.memory, cells.memory)
    assert found.layout == cells.layout
    wanted = [text.summary, cells.summary] if summary == "both" else [text.summary]
    assert torch.equal(found.summary, torch.cat(wanted, 1))


def clip(maps_FCHW: Tensor, convolution: nn.Conv3d, frame: int) -> Tensor:
    """κ_j by five loops: what lies beyond the video or its frames is zero."""
    frames, _, height, width = maps_FCHW.shape
    weight, bias = convolution.weight.detach(), convolution.bias
    assert bias is not None
    total = torch.zeros(weight.shape[0])
    for down in range(height):
        for across in range(width):
            value = bias.detach().clone()
            for time in range(5):
                for by in range(3):
                    for along in range(3):
                        place = (frame + time - 2, down + by - 1, across + along - 1)
                        if (
                            0 <= place[0] < frames
                            and 0 <= place[1] < height
                            and 0 <= place[2] < width
                        ):
                            value += (
                                weight[:, :, time, by, along]
                                @ maps_FCHW[place[0], :, place[1], place[2]]
                            )
            total += value.relu()
    return total / (height * width)


@pytest.mark.parametrize("reads", ["frames", "clips", "both"])
def test_a_video_is_encoded_frame_by_frame(reads: Literal["frames", "clips", "both"]) -> None:
    encoder, given = VideoEncoder(backbone=small(), reads=reads, size=3).eval(), video()
    assert (encoder.clips is None) == (reads == "frames")
    found: Encoded = encoder(given)
    assert found.layout == Layout("frames")
    for row, length in enumerate((4, 1, 3)):
        parts = [alone(encoder.backbone, given.values[row, place]) for place in range(length)]
        maps_FCHW = torch.stack([maps for maps, _ in parts]).detach()
        inputs = []
        for place in range(length):
            one = [] if reads == "clips" else [parts[place][1]]
            if encoder.clips is not None:
                one.append(clip(maps_FCHW, encoder.clips, place))
            inputs.append(evened(torch.cat(one), encoder.norm))
        states, summary = encoder.rnn(
            torch.stack(inputs)[None], torch.ones(1, length, dtype=torch.bool)
        )
        torch.testing.assert_close(found.memory[row, :length], states[0])
        torch.testing.assert_close(found.summary[row], summary[0])


def test_other_sizes_are_refused() -> None:
    with pytest.raises(RuntimeError):
        small()(ragged(3 * 16**2, pixels=True))
    told = "start: copy needs a summary of the decoder's hidden size"
    with pytest.raises(ShapeError, match=told):
        LabelDecoder(
            bridge=InitialState(summary_size=5, state_size=4, start="copy"), classes=3, size=4
        )
