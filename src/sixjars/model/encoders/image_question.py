"""A picture and a question about it.

Dims: B batch, S cells, D source features, K summary features.
"""

from typing import Literal, final

import torch

from sixjars.flow import Encoded, Encoder, Padded
from sixjars.model.encoders.image import ImageEncoder
from sixjars.model.encoders.text import TextEncoder


@final
class ImageQuestionEncoder(Encoder):
    r"""ĥ_I = CNN(I), h̃_t = RNN(h̃_{t-1}, q_t), s = [h̃_T; ĥ_I]; the cells of the picture can be looked at.

    Ren, Kiros & Zemel 2015 (https://arxiv.org/abs/1505.02074) and Antol et al. 2015
    (https://arxiv.org/abs/1505.00468). With `summary="question"` the summary is h̃_T alone, so that attention asks with
    the question, as Yang et al. 2016 (https://arxiv.org/abs/1511.02274) do with one layer.

    >>> from sixjars import Sight, WordEmbedding
    >>> image = ImageEncoder(backbone=Sight(pixels=16, widths=(4, 8)))
    >>> question = TextEncoder(embedding=WordEmbedding(vocabulary=10, size=3), size=5)
    >>> picture = Padded(torch.zeros(2, 1, 3 * 16 * 16, dtype=torch.uint8), torch.ones(2, 1, dtype=torch.bool))
    >>> asked = ImageQuestionEncoder(image=image, question=question)(picture, Padded.of([[5, 6], [7]]))
    >>> asked.memory.shape, asked.summary.shape
    (torch.Size([2, 16, 8]), torch.Size([2, 133]))
    """

    letters = {**ImageEncoder.letters, **TextEncoder.letters}

    def __init__(
        self, *, image: ImageEncoder, question: TextEncoder, summary: Literal["both", "question"] = "both"
    ) -> None:
        super().__init__()
        self.image = image
        self.question = question
        self.summary = summary
        self.output_size = image.output_size
        self.attendable = image.attendable
        self.summary_size = question.summary_size + (image.summary_size if summary == "both" else 0)

    def forward(self, image: Padded, question: Padded) -> Encoded:
        """The picture's cells (B, S, D), and a summary (B, K) of both or of the question."""
        seen, asked = self.image(image), self.question(question)
        summary_BK = asked.summary
        if self.summary == "both":
            summary_BK = torch.cat([asked.summary, seen.summary], dim=-1)
        return Encoded(seen.memory, seen.mask, summary_BK, seen.layout)

    def equations(self) -> list[str]:
        """The lines of the lecture."""
        picture = [line.replace("h_T", "ĥ_I") for line in self.image.equations()]
        question = self.question.reading.equations(told="e(q_t)", unit="word", state="q")
        joined = "h_T = [q_T; ĥ_I]" if self.summary == "both" else "h_T = q_T"
        return [*picture, *question, joined]
