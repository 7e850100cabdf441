"""A user's own encoder, bridge, decoder, field or metric, used only with her permission.

A recipe names it by its path, `kind: my_package.module.MyEncoder`, or by its bare name if it is
handed over. Importing a module runs it, so nothing is imported because a recipe or a run folder
asks for it: the user says `--allow my_package`, or hands the class over in Python.
"""

import sys
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any, final

from sixjars_runtime.errors import RecipeError


@final
@dataclass(frozen=True)
class AllowedCode:
    """Permission for outside code: names of packages, and components handed over."""

    packages: tuple[str, ...] = ()
    components: tuple[Any, ...] = ()

    def hands(self, name: str) -> bool:
        """Whether something of this bare name was handed over."""
        return any(getattr(thing, "__name__", None) == name for thing in self.components)

    @property
    def listed(self) -> str:
        """The end of a message: the components handed over."""
        things = self.components
        names = [
            getattr(thing, "__name__", None) or getattr(thing, "name", "?") for thing in things
        ]
        return f" Handed over: {', '.join(map(str, names))}." if things else ""

    def component(self, path: str, base: type, where: str, *, is_class: bool = True) -> Any:
        """Find the class (or metric) at a path; RecipeError if it does not fit `base`."""
        handed = [thing for thing in self.components if _is_at(thing, path)]
        thing = handed[0] if handed else self._imported(path, where)
        if is_class:
            fits = isinstance(thing, type) and issubclass(thing, base)
        else:
            fits = isinstance(thing, base | FunctionType)
        if not fits:
            raise RecipeError([f"{where}: {path} is no {base.__name__}."])
        if lacks := ", ".join(sorted(getattr(thing, "__abstractmethods__", ()))):
            must = f"as every {base.__name__} must."
            raise RecipeError([f"{where}: {path} does not define {lacks}, {must}"])
        return thing

    def _imported(self, path: str, where: str) -> Any:
        module, _, name = path.rpartition(".")
        if not any(f"{module}.".startswith(f"{allowed}.") for allowed in self.packages):
            package = path.partition(".")[0]
            fault = (
                f"{where}: {path} is code from outside this toolkit. If you trust it, say "
                f"--allow {package} (in Python: allow=[{package!r}]).{self.listed}"
            )
            raise RecipeError([fault])
        try:
            return getattr(import_module(module), name)
        except ImportError as error:
            raise RecipeError([f"{where}: {path} cannot be imported: {error}."]) from error
        except AttributeError:
            raise RecipeError([f"{where}: module {module} has no {name!r}."]) from None


def _is_at(thing: Any, path: str) -> bool:
    """Whether a path names a thing: its bare name, its definition, or a module that has it."""
    module, _, name = path.rpartition(".")
    bare = getattr(thing, "__name__", None)
    if path == bare:
        return True
    if bare is not None and f"{thing.__module__}.{thing.__qualname__}" == path:
        return True
    return getattr(sys.modules.get(module), "__dict__", {}).get(name) is thing


NOTHING = AllowedCode()  # no permission: the components of this toolkit alone
