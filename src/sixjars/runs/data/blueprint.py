"""A recipe with its fields and the plan of its model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from sixjars.data.dataset import Fields
from sixjars.data.field import Equipment, Field
from sixjars.flow.contracts import ModelPlan
from sixjars.model.build import nested
from sixjars.progress import Reporter
from sixjars.recipe.allowed_code import NOTHING, AllowedCode
from sixjars.recipe.sections import Recipe
from sixjars.runs.recipes import make_fields, model_plan
from sixjars.samples import sample_folder


@final
@dataclass(frozen=True)
class Blueprint:
    """A recipe with its fields and the plan of its model: what data and network are made from."""

    recipe: Recipe
    fields: Fields
    plan: ModelPlan

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        outside: AllowedCode = NOTHING,
        *,
        device: torch.device | str = "cpu",
        places: Sequence[Path] | None = None,
        reporter: Reporter | None = None,
    ) -> "Blueprint":
        """Make it of a recipe; features are stored unless `places` are given, as to predict."""
        fields = make_fields(recipe, outside)
        plan = model_plan(recipe, fields, outside)
        extractors = _extractors(plan, fields, torch.device(device))

        def equipped(field: Field) -> Field:
            searched = media_places(recipe, field) if places is None else [*places]
            searched += [] if places is None else _archives(recipe, field)
            kit = Equipment(
                places=tuple(searched),
                extractor=extractors.get(field.name),
                stored=places is None,
                target_options=field.equipment.target_options,
                learned_from=plan.encoder.learned_from(field.name),
                reporter=reporter or Reporter(),
            )
            return field.equipped(kit)

        return cls(recipe, fields.mapped(equipped), plan)

    @property
    def fingerprints(self) -> dict[str, str]:
        """A number for the weights of each frozen backbone, by the field whose files it reads."""
        kits = {name: field.equipment.extractor for name, field in self.fields.all.items()}
        fingerprints = {name: kit.fingerprint for name, kit in kits.items() if kit is not None}
        return {name: number for name, number in fingerprints.items() if number is not None}


def _extractors(plan: ModelPlan, fields: Fields, device: torch.device) -> dict[str, Any]:
    """A feature extractor for each field that a visual input of the encoder reads."""
    cells = plan.encoder.needs_cells(plan.settings["encoder"], attended=plan.bridge.has_attention)
    return {
        inner.field: inner.kind.extractor(
            inner.section, pixels=fields.all[inner.field].settings.size, cells=cells, device=device
        )
        for inner in nested(plan)
        if hasattr(inner.kind, "extractor") and "cells" in fields.all[inner.field].fact_names
    }


def media_places(recipe: Recipe, field: Field) -> list[Path]:
    """The folders or archives of the files of a field."""
    data = recipe.data
    if not field.is_media:
        return [data.path(".")]
    if data.sample is not None:
        return [sample_folder(recipe.task)]
    if data.format == "folders":
        return [data.path(part.file) for part in data.training_files if isinstance(part.file, str)]
    media = field.settings.media
    return [data.path(place) for place in ([media] if isinstance(media, str) else media)]


def _archives(recipe: Recipe, field: Field) -> list[Path]:
    """Archives of the training data, whose files a prediction may name."""
    places, endings = media_places(recipe, field), field.archive_endings
    return [place for place in places if place.suffix.lower() in endings and place.exists()]
