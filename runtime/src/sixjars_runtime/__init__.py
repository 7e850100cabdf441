"""What the sixjars toolkit stands on, and all that an exported model needs: `load(OUT).predict(…)`.

    import sixjars_runtime
    print(sixjars_runtime.load("exported").predict("I am going home").text)

It needs numpy, onnxruntime and tokenizers, and no torch. The names below are loaded when they are
first used, so that a module of this package costs no more than what it imports itself.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sixjars_runtime.errors import SixJarsError as SixJarsError
    from sixjars_runtime.exported.model import Model as Model
    from sixjars_runtime.exported.model import load as load
    from sixjars_runtime.exported.outputs import Prediction as Prediction

_HOMES = {
    "Model": "sixjars_runtime.exported.model",
    "Prediction": "sixjars_runtime.exported.outputs",
    "SixJarsError": "sixjars_runtime.errors",
    "load": "sixjars_runtime.exported.model",
}

__all__ = ["Model", "Prediction", "SixJarsError", "load"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sixjars_runtime' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
