"""Update rules against torch's own, schedules against their definitions."""

import math
from typing import Any

import pytest
import torch
from torch import nn, optim

from sixjars.learning.engine import learning_rate, optimizer_for
from sixjars.recipe.sections import LearningSettings

RATE, DECAY = 0.3, 0.01
RULES: dict[str, tuple[dict[str, Any], type[optim.Optimizer], dict[str, Any]]] = {
    "adam": ({}, optim.Adam, {"fused": True}),
    "adamw": ({}, optim.AdamW, {"fused": True}),
    "sgd": ({"momentum": 0.9}, optim.SGD, {"momentum": 0.9}),
    "adadelta": ({}, optim.Adadelta, {}),
}


@pytest.mark.parametrize("kind", RULES)
def test_the_rule_that_the_recipe_names(kind: str) -> None:
    given, rule, same = RULES[kind]
    settings = LearningSettings.model_validate(
        {"optimizer": kind, "rate": RATE, "weight_decay": DECAY, **given}
    )
    one, two = nn.Linear(3, 2), nn.Linear(3, 2)
    two.load_state_dict(one.state_dict())
    ours = optimizer_for(one.parameters(), settings)
    theirs: Any = rule(two.parameters(), lr=RATE, weight_decay=DECAY, **same)  # type: ignore[call-arg]
    for network, optimizer in ((one, ours), (two, theirs)):
        for _ in range(3):
            optimizer.zero_grad()
            network(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()
    assert type(ours) is rule
    assert torch.equal(one.weight, two.weight)


def rates(total: int = 20, halvings: int = 0, **settings: Any) -> list[float]:
    chosen = LearningSettings(rate=RATE, **settings)
    return [
        learning_rate(chosen, step, total=total, halvings=halvings) for step in range(1, total + 1)
    ]


@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt", "plateau", "cosine"])
def test_warm_up_is_even_and_ends_at_the_peak(schedule: str) -> None:
    found = rates(schedule=schedule, warmup=5)
    assert found[:5] == pytest.approx([RATE * step / 5 for step in range(1, 6)])
    assert max(found) == pytest.approx(RATE)


def test_constant() -> None:
    assert rates() == [RATE] * 20


def test_inverse_square_root() -> None:
    assert rates(schedule="inverse_sqrt", warmup=4)[3:] == pytest.approx(
        [RATE * 2 / math.sqrt(step) for step in range(4, 21)]
    )
    assert rates(schedule="inverse_sqrt") == pytest.approx(
        [RATE / math.sqrt(step) for step in range(1, 21)]
    )


def test_cosine_as_torch_does_it() -> None:
    optimizer = optim.SGD([nn.Parameter(torch.zeros(1))], lr=RATE)
    theirs = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    wanted = []
    for _ in range(20):
        optimizer.step()
        theirs.step()
        wanted.append(theirs.get_last_lr()[0])
    assert rates(schedule="cosine") == pytest.approx(wanted, abs=1e-12)
    assert rates(schedule="cosine", warmup=5)[-1] == pytest.approx(0.0, abs=1e-12)


def test_plateau_halves() -> None:
    assert rates(schedule="plateau", halvings=3) == [RATE / 8] * 20
    assert rates(schedule="constant", halvings=3) == [RATE] * 20


def test_warm_up_longer_than_the_run() -> None:
    assert rates(schedule="cosine", warmup=50)[-1] == pytest.approx(RATE * 20 / 50)
