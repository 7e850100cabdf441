"""Uses models that `sixjars export` wrote, with the answers of sixjars and without torch: `load(OUT).predict(…)`."""

from sixjars_runtime.errors import SixJarsError
from sixjars_runtime.exported.model import Model, load
from sixjars_runtime.exported.prediction import Prediction

__all__ = ["Model", "Prediction", "SixJarsError", "load"]
