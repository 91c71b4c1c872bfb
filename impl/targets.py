"""Reading the text given to ``--impl``, and finding the package around a file."""

import ast
from dataclasses import dataclass
from pathlib import Path

from kvspec.impl.errors import LoadError


@dataclass(frozen=True, slots=True)
class Target:
    """`file` or `module`, and the name in it (empty: find it)."""

    text: str
    name: str
    file: Path | None = None
    module: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file belongs: it is module `module` below `folder`; `package` is its top-level package, if it has one."""

    folder: Path
    module: str
    package: str | None


def parsed(text: str) -> Target:
    """The target as its parts.  Raises LoadError if there is no such file, or the text is neither form."""
    location, name = _split(text)
    if location.endswith(".py") or "/" in location or "\\" in location:
        file = Path(location).expanduser()
        if file.is_dir():
            raise LoadError(f"{location} is a folder. Give the file of the block manager in it: {location}/….py:Class.")
        if not file.is_file():
            raise LoadError(f"There is no file {location} (looked in {Path.cwd()}).")
        return Target(text, name, file=file.resolve())
    if not location or not all(part.isidentifier() for part in location.split(".")):
        raise LoadError(
            f"{text!r} is no target. "
            "Give path/to/block_manager.py:Class, or package.module:Class, or the word 'bundled'."
        )
    return Target(text, name, module=location)


def _split(text: str) -> tuple[str, str]:
    """Location and name: the last colon separates them, except in a drive letter."""
    location, colon, name = text.strip().rpartition(":")
    if not colon or "/" in name or "\\" in name:
        return text.strip(), ""
    return location, name


def place_of(file: Path) -> Place:
    """The package around a file, from what its imports imply, from relative imports, and from ``__init__`` files.

    Raises LoadError if the file cannot be parsed.
    """
    absolute, level = _imports(file)
    top = _implied_top(file, absolute) or _top_by_init(file, level)
    if top is None:
        return Place(file.parent, file.stem, None)
    module = ".".join((*file.parent.relative_to(top.parent).parts, file.stem))
    return Place(top.parent, module, top.name)


def _imports(file: Path) -> tuple[list[str], int]:
    """The absolute names that a file imports, and how many folders its relative imports reach up."""
    absolute, level = [], 0
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            absolute += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            level = max(level, node.level)
            absolute += [node.module] if node.module and not node.level else []
    return absolute, level


def _tree(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        raise LoadError(syntax_error(file, error)) from error
    except (OSError, ValueError) as error:
        raise LoadError(f"{file} cannot be read as Python: {error}") from error


def syntax_error(file: Path | str, error: SyntaxError) -> str:
    """One line for a file that is no Python (of this version)."""
    where = f"{error.filename or file}, line {error.lineno}"
    return f"{where}: {error.msg}. Repair the file, or run kvspec with the Python version that it is written for."


def _implied_top(file: Path, absolute: list[str]) -> Path | None:
    """A folder above the file from which one of its absolute imports resolves."""
    for name in absolute:
        first, *rest = name.split(".")
        for folder in file.parents:
            if folder.name == first and _resolves(folder, rest):
                return folder
    return None


def _resolves(folder: Path, rest: list[str]) -> bool:
    if not rest:
        return True
    inner = folder.joinpath(*rest)
    return inner.is_dir() or inner.with_suffix(".py").is_file() or inner.parent.with_suffix(".py").is_file()


def _top_by_init(file: Path, level: int) -> Path | None:
    """The outermost folder of the package: by ``__init__`` files, and at least as far as relative imports reach."""
    top = None
    for depth, folder in enumerate(file.parents, start=1):
        if not folder.name.isidentifier() or not ((folder / "__init__.py").is_file() or depth <= level):
            return top
        top = folder
    return top
