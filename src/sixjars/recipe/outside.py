"""Code from outside: a user's own encoder, bridge, decoder, field or metric, used only with her permission.

A recipe names it by its path, `kind: my_package.module.MyEncoder`. Importing a module runs it, so nothing is imported
because a recipe or a run folder asks for it: the user says `--allow my_package`, or hands the class over in Python.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

from sixjars.errors import RecipeError


def path_of(thing: Any) -> str:
    """How a recipe names a class or a metric: its module, and its name there.

    >>> path_of(Outside)
    'sixjars.recipe.outside.Outside'
    """
    return f"{thing.__module__}.{getattr(thing, '__qualname__', None) or thing.name}"


@final
@dataclass(frozen=True)
class Outside:
    """What may be used from outside: packages by name, and components that were handed over."""

    packages: tuple[str, ...] = ()
    components: tuple[Any, ...] = ()

    def component(self, path: str, base: type, where: str) -> Any:
        """The class (or, of a metric, the object) at a path, which must be a `base`."""
        found = next((one for one in self.components if path_of(one) == path), None)
        if found is None:
            found = self._imported(path, where)
        fits = issubclass(found, base) if isinstance(found, type) else isinstance(found, base)
        if not fits:
            raise RecipeError([f"{where}: {path} is not a {base.__name__}."])
        return found

    def _imported(self, path: str, where: str) -> Any:
        module, _, name = path.rpartition(".")
        if not any(module == allowed or module.startswith(f"{allowed}.") for allowed in self.packages):
            package = path.partition(".")[0]
            raise RecipeError(
                [
                    f"{where}: {path} is code from outside this toolkit. If you trust it, say --allow {package} "
                    f"(in Python: allow=[{package!r}])."
                ]
            )
        try:
            return getattr(import_module(module), name)
        except ImportError as error:
            raise RecipeError([f"{where}: {path} cannot be imported: {error}."]) from error
        except AttributeError:
            raise RecipeError([f"{where}: module {module} has no {name!r}."]) from None


NOTHING = Outside()
"""No permission: the components of this toolkit alone."""
