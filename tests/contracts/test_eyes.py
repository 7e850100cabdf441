"""Pictures, films and labels against loops: which number comes from which cell, frame and weight."""

import math
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from sixjars.errors import RecipeError, ShapeError
from sixjars.flow.values import Encoded, Layout, Padded
from sixjars.model.backbones.small import SmallBackbone
from sixjars.model.bridges.attention import AdditiveAttention
from sixjars.model.bridges.initial import InitialState
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.encoders.image import ImageEncoder, ImageQuestionEncoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.encoders.video import VideoEncoder
from sixjars.model.visual import VisualInput, learns

from .promises import films, texts, words

PIXELS = 12
"""Of each side; three halvings leave 2×2 cells, two leave 3×3."""


def sight() -> VisualInput:
    return VisualInput(pixels=PIXELS, widths=(4, 6))


def film(lengths: tuple[int, ...] = (4, 1, 3)) -> Padded:
    return films(3 * PIXELS**2, pixels=True, lengths=lengths)


def seen(eyes: VisualInput, frame: Tensor) -> tuple[Tensor, Tensor]:
    """One frame alone through the backbone: its maps (C, h, w) and its vector."""
    assert isinstance(eyes.backbone, SmallBackbone)
    maps, vector = eyes.backbone(frame.view(1, 3, PIXELS, PIXELS))
    return maps[0], vector[0]


def test_which_backbones_learn() -> None:
    assert learns("small", frozen=True)
    assert learns("efficientnet_lite0", tuned=True)
    assert learns("efficientnet_lite0", tuned="block9")
    assert not learns("efficientnet_lite0", frozen=True)


def test_weights_learn_from_the_named_layer_on() -> None:
    """Below it they stay as they are; the picture is seen the same."""
    whole, half = sight(), VisualInput(pixels=PIXELS, widths=(4, 6), tuned="blocks.1")
    half.load_state_dict(whole.state_dict())
    given = film()
    for one, two in zip(whole(given), half(given), strict=True):
        assert torch.equal(one, two)
    frozen = {name for name, weight in half.named_parameters() if not weight.requires_grad}
    assert frozen == {name for name, _ in half.named_parameters() if name.startswith("backbone.blocks.0.")} != set()
    assert all(weight.requires_grad for weight in whole.parameters())
    with pytest.raises(RecipeError, match=r"part of the backbone 'block9' is unknown\. Did you mean 'blocks'\?"):
        VisualInput(pixels=PIXELS, widths=(4, 6), tuned="block9")


def test_every_frame_is_seen_alone_and_padding_is_dark() -> None:
    eyes, given = sight(), film()
    maps, vectors = eyes(given)
    for row in range(3):
        for place in range(4):
            wanted = seen(eyes, given.values[row, place])
            real = float(given.mask[row, place])
            torch.testing.assert_close(maps[row, place], wanted[0] * real)
            torch.testing.assert_close(vectors[row, place], wanted[1] * real)


def test_features_made_beforehand_are_read_back_as_they_were_written() -> None:
    """Maps first, channel by channel and row by row, then the vector; kept in 16 bits."""
    eyes = VisualInput(pixels=32, name="efficientnet_lite0")
    shape = eyes.shape
    maps_NCHW = torch.randn(3, shape.channels, shape.height, shape.width).half()
    vector_NK = torch.randn(3, shape.vector).half()
    numbers_BFN = torch.cat([maps_NCHW.flatten(1), vector_NK], 1).unsqueeze(1)
    maps, vector = eyes(Padded(numbers_BFN, torch.ones(3, 1, dtype=torch.bool)))
    assert (maps.dtype, vector.dtype) == (torch.float32, torch.float32)
    assert torch.equal(maps[:, 0], maps_NCHW.float())
    assert torch.equal(vector[:, 0], vector_NK.float())
    assert not list(eyes.parameters())


def test_the_vector_alone_is_kept_where_nobody_looks_at_cells() -> None:
    eyes = VisualInput(pixels=32, name="efficientnet_lite0", cells=False)
    vector_BFK = torch.randn(2, 3, 1280).half()
    mask_BF = torch.tensor([[True, True, True], [True, False, False]])
    assert eyes.shape.numbers == eyes.shape.vector == 1280
    maps, vector = eyes(Padded(vector_BFK, mask_BF))
    assert maps.shape == (2, 3, 112, 0, 0)
    assert torch.equal(vector, vector_BFK.float() * mask_BF.unsqueeze(-1))
    assert eyes.equations() == ["v = CNN(I): a vector of 1280 (efficientnet_lite0, computed once, does not learn)"]
    said = ImageEncoder(backbone=eyes)(Padded(vector_BFK[:, :1], mask_BF[:, :1]))
    assert (said.memory.shape, said.mask.shape) == ((2, 0, 112), (2, 0))
    assert said.layout == Layout("grid", (0, 0))


def test_pixels_have_cells_whoever_looks() -> None:
    """A backbone that learns is given pixels all the same; there is nothing to leave out."""
    assert VisualInput(pixels=PIXELS, widths=(4, 6), cells=False).shape == sight().shape


def test_what_sees_says_how() -> None:
    assert sight().equations() == [
        "a_1..a_S, v = CNN(I): 3×3 cells of 6 numbers, a vector of 128 (small, learns)",
    ]
    assert VisualInput(pixels=32, name="efficientnet_lite0").equations() == [
        "a_1..a_S, v = CNN(I): 2×2 cells of 112 numbers, a vector of 1280 "
        "(efficientnet_lite0, computed once, does not learn)",
    ]


def evened(numbers: Tensor, norm: nn.LayerNorm) -> Tensor:
    """Minus their mean, over their standard deviation; then the gain and the shift."""
    spread = ((numbers - numbers.mean()).square().mean() + norm.eps).sqrt()
    return (numbers - numbers.mean()) / spread * norm.weight + norm.bias


def test_the_cells_of_a_picture_stand_row_by_row() -> None:
    """h_j = norm(a_j) ⊙ g_a + b_a and h_T = norm(v) ⊙ g_v + b_v."""
    encoder, given = ImageEncoder(backbone=sight()), film((1, 1, 1))
    for norm in (encoder.cells, encoder.whole):
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    said: Encoded = encoder(given)
    assert said.layout == Layout("grid", (3, 3))
    for row in range(3):
        maps, vector = seen(encoder.backbone, given.values[row, 0])
        torch.testing.assert_close(said.summary[row], evened(vector, encoder.whole))
        for down in range(3):
            for across in range(3):
                wanted = evened(maps[:, down, across], encoder.cells)
                torch.testing.assert_close(said.memory[row, 3 * down + across], wanted)


@pytest.mark.parametrize("summary", ["both", "question"])
def test_a_question_and_a_picture_stand_side_by_side(summary: Literal["both", "question"]) -> None:
    image, question = ImageEncoder(backbone=sight()), TextEncoder(embedding=words(), size=3, direction="both")
    encoder = ImageQuestionEncoder(image=image, question=question, summary=summary).eval()
    pictures, asked = film((1, 1, 1)), texts()
    said, picture, text = encoder(pictures, asked), image(pictures), question(asked)
    assert torch.equal(said.memory, picture.memory)
    assert said.layout == picture.layout
    wanted = [text.summary, picture.summary] if summary == "both" else [text.summary]
    assert torch.equal(said.summary, torch.cat(wanted, 1))
    assert encoder.equations()[-1] == ("h_T = [q_T; ĥ_I]" if summary == "both" else "h_T = q_T")


def clip(maps_FCHW: Tensor, convolution: nn.Conv3d, frame: int) -> Tensor:
    """g_t by five loops: what lies beyond the film or its frames is zero."""
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
                        if 0 <= place[0] < frames and 0 <= place[1] < height and 0 <= place[2] < width:
                            value += weight[:, :, time, by, along] @ maps_FCHW[place[0], :, place[1], place[2]]
            total += value.relu()
    return total / (height * width)


@pytest.mark.parametrize("reads", ["frames", "clips", "both"])
def test_a_film_is_read_frame_by_frame(reads: Literal["frames", "clips", "both"]) -> None:
    encoder, given = VideoEncoder(backbone=sight(), reads=reads, size=3).eval(), film()
    assert (encoder.clips is None) == (reads == "frames")
    said: Encoded = encoder(given)
    assert said.layout == Layout("frames")
    for row, length in enumerate((4, 1, 3)):
        frames = [seen(encoder.backbone, given.values[row, place]) for place in range(length)]
        maps_FCHW = torch.stack([maps for maps, _ in frames]).detach()
        told = []
        for place in range(length):
            one = [] if reads == "clips" else [frames[place][1]]
            if encoder.clips is not None:
                one.append(clip(maps_FCHW, encoder.clips, place))
            told.append(evened(torch.cat(one), encoder.even))
        states, summary = encoder.reading(torch.stack(told)[None], torch.ones(1, length, dtype=torch.bool))
        torch.testing.assert_close(said.memory[row, :length], states[0])
        torch.testing.assert_close(said.summary[row], summary[0])


def test_a_label_is_judged_by_a_softmax_over_weighted_sums() -> None:
    """P(y | x) = softmax(V s_0 + b), by hand."""
    decoder = LabelDecoder(bridge=InitialState(summary_size=4, state_size=4, start="copy"), classes=3, size=4).eval()
    source = Encoded(torch.randn(2, 5, 6), torch.ones(2, 5, dtype=torch.bool), torch.randn(2, 4))
    weight, bias = decoder.output.weight.tolist(), decoder.output.bias.tolist()
    for row, summary in enumerate(source.summary.tolist()):
        raised = [
            math.exp(bias[label] + sum(a * b for a, b in zip(weight[label], summary, strict=True)))
            for label in range(3)
        ]
        wanted = [value / sum(raised) for value in raised]
        assert decoder.choose(source).log_probabilities[row].exp().tolist() == pytest.approx(wanted, abs=1e-6)
    assert decoder.equations() == ["s = s_0", "P(y | x) = softmax(V s + b)"]


def test_attention_asks_for_a_label_with_the_first_state() -> None:
    bridge = AdditiveAttention(source_size=6, summary_size=3, state_size=4, size=5)
    decoder = LabelDecoder(bridge=bridge, classes=3, size=4).eval()
    source = Encoded(torch.randn(2, 5, 6), torch.ones(2, 5, dtype=torch.bool), torch.randn(2, 3))
    prepared = bridge.start(source)
    context = bridge.step(prepared.first, prepared)
    assert decoder.mix is not None
    mixed = torch.tanh(torch.cat([prepared.first, context.vector], 1) @ decoder.mix.weight.T + decoder.mix.bias)
    scores = mixed @ decoder.output.weight.T + decoder.output.bias
    chosen = decoder.choose(source)
    torch.testing.assert_close(chosen.log_probabilities, scores.log_softmax(1))
    assert chosen.weights is not None
    assert context.weights is not None
    assert torch.equal(chosen.weights, context.weights)
    assert decoder.equations() == ["s = tanh(W_c [s_0, c] + b_c)", "P(y | x) = softmax(V s + b)"]


def test_a_picture_of_another_size_is_refused() -> None:
    with pytest.raises(RuntimeError):
        sight()(films(3 * 16**2, pixels=True))
    with pytest.raises(ShapeError, match="start: copy needs a summary as large as the decoder's state"):
        LabelDecoder(bridge=InitialState(summary_size=5, state_size=4, start="copy"), classes=3, size=4)
