"""Code from outside: a user's own encoder, bridge, decoder, field or metric, used only with her permission.

A recipe names it by its path, `kind: my_package.module.MyEncoder`, or by its bare name if it is handed over. Importing
a module runs it, so nothing is imported because a recipe or a run folder asks for it: the user says `--allow
my_package`, or hands the class over in Python.
"""

import sys
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any, final

from sixjars_runtime.errors import RecipeError


@final
@dataclass(frozen=True)
class Outside:
    """What may be used from outside: packages by name, and components that were handed over."""

    packages: tuple[str, ...] = ()
    components: tuple[Any, ...] = ()

    def hands(self, name: str) -> bool:
        """Whether something of this bare name was handed over."""
        return any(getattr(one, "__name__", None) == name for one in self.components)

    @property
    def listed(self) -> str:
        """The end of a message: what was handed over."""
        names = [
            str(getattr(one, "__name__", None) or getattr(one, "name", "?"))
            for one in self.components
        ]
        return f" Handed over: {', '.join(names)}." if names else ""

    def component(self, path: str, base: type, where: str, *, is_class: bool = True) -> Any:
        """What a path names: a class that extends `base`, or (of a metric) an object of it or a function."""
        handed = [one for one in self.components if _is_at(one, path)]
        found = handed[0] if handed else self._imported(path, where)
        fits = (
            isinstance(found, type) and issubclass(found, base)
            if is_class
            else isinstance(found, base | FunctionType)
        )
        if not fits:
            raise RecipeError([f"{where}: {path} is no {base.__name__}."])
        lacks = sorted(getattr(found, "__abstractmethods__", ()))
        if lacks:
            raise RecipeError(
                [
                    f"{where}: {path} does not define {', '.join(lacks)}, as every {base.__name__} must."
                ]
            )
        return found

    def _imported(self, path: str, where: str) -> Any:
        module, _, name = path.rpartition(".")
        if not any(
            module == allowed or module.startswith(f"{allowed}.") for allowed in self.packages
        ):
            package = path.partition(".")[0]
            raise RecipeError(
                [
                    f"{where}: {path} is code from outside this toolkit. If you trust it, say --allow {package} "
                    f"(in Python: allow=[{package!r}]).{self.listed}"
                ]
            )
        try:
            return getattr(import_module(module), name)
        except ImportError as error:
            raise RecipeError([f"{where}: {path} cannot be imported: {error}."]) from error
        except AttributeError:
            raise RecipeError([f"{where}: module {module} has no {name!r}."]) from None


def _is_at(thing: Any, path: str) -> bool:
    """Whether a recipe may mean a thing by this path: its bare name, where it was defined, or a module that has it."""
    module, _, name = path.rpartition(".")
    own = getattr(thing, "__name__", None)
    defined = path == own or (
        own is not None and f"{thing.__module__}.{thing.__qualname__}" == path
    )
    return defined or getattr(sys.modules.get(module), "__dict__", {}).get(name) is thing


NOTHING = Outside()
"""No permission: the components of this toolkit alone."""
