"""The errors that the toolkit raises on purpose, each with a sentence for a person.

`SixJarsError` is the class of all of them. They are defined in `sixjars_runtime.errors`, which says
when each is raised.
"""

from sixjars_runtime.errors import DataError as DataError
from sixjars_runtime.errors import Interrupted as Interrupted
from sixjars_runtime.errors import LearningError as LearningError
from sixjars_runtime.errors import MissingExtra as MissingExtra
from sixjars_runtime.errors import RecipeError as RecipeError
from sixjars_runtime.errors import RequestError as RequestError
from sixjars_runtime.errors import RunError as RunError
from sixjars_runtime.errors import ShapeError as ShapeError
from sixjars_runtime.errors import SixJarsError as SixJarsError
