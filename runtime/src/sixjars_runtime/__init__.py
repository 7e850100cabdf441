"""Uses models that `sixjars export` wrote, with the answers of sixjars and without torch: `load(OUT).predict(…)`."""

from sixjars_runtime.model import Model, load
from sixjars_runtime.prediction import Prediction
from sixjars_runtime.shared.errors import SixJarsError

__all__ = ["Model", "Prediction", "SixJarsError", "load"]
