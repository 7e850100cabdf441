"""The six jars as settings: read, checked, overridden, saved."""

from typing import Any

import yaml

from sixjars.recipe.fields import Settings
from sixjars.recipe.jars import DataSettings, EvaluationSettings, LearningSettings, LossSettings
from sixjars.recipe.ranges import Number


class ModelSettings(Settings):
    """Jar 3: which parts; the keys of each are the parameters of its constructor."""

    encoder: dict[str, Any]
    """Turns the input into annotation vectors and a summary."""
    bridge: dict[str, Any]
    """How the decoder hears the encoder: `initial`, `every_step`, `attention`, `pooling` or `two_level`."""
    decoder: dict[str, Any]
    """Says the output: writes a text, chooses a label, or points at inputs."""


class Recipe(Settings):
    """A whole run, told as six jars."""

    task: str
    """Jar 1: the system."""
    data: DataSettings
    """Jar 2: the examples."""
    model: ModelSettings
    """Jar 3: encoder, bridge, decoder."""
    loss: LossSettings = LossSettings()
    """Jar 4: what is made small."""
    learning: LearningSettings = LearningSettings()
    """Jar 5: how."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """Jar 6: how good it is."""
    expect: dict[str, Number] = {}
    """The floor (or ceiling, where lower is better) that a metric reaches on the test part."""

    def to_yaml(self) -> str:
        """Everything filled in, ready to be read again."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)
