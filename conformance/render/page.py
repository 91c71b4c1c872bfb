"""The templates of pages and pictures."""

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined


def _source(name: str) -> str | None:
    path = files("kvspec.conformance").joinpath("templates", name)
    return path.read_text(encoding="utf-8") if path.is_file() else None


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_source),
        autoescape=lambda name: name is None or not name.endswith(".md.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def fill(template: str, **values: Any) -> str:
    """A filled template; text is escaped unless the template is Markdown."""
    return _environment().get_template(template).render(**values)
