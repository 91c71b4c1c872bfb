"""A namespace made of named axes as text, and back: ``adapter=a,salt=b``.

Two requests share K/V only if every axis agrees: the adapter (LoRA), the media (images, audio), the salt of a tenant.  The
text is canonical, so that comparing texts compares namespaces: axes in order of their names, empty ones left out, and in a
value ``%``, ``,`` and ``=`` written as ``%25``, ``%2C`` and ``%3D``.
"""

from collections.abc import Mapping

AXES = ("adapter", "media", "salt")

_ESCAPED = {"%": "%25", ",": "%2C", "=": "%3D"}


def spell(axes: Mapping[str, str]) -> str:
    """The namespace in which exactly these axes have a value."""
    given = {name: value for name, value in sorted(axes.items()) if value}
    return ",".join(f"{name}={_escaped(value)}" for name, value in given.items())


def parse(namespace: str) -> dict[str, str]:
    """The axes of a namespace.  Raises ValueError for a text that ``spell`` does not write."""
    axes = {}
    for part in namespace.split(",") if namespace else ():
        name, _, value = part.partition("=")
        axes[name] = _unescaped(value)
    if spell(axes) != namespace:
        raise ValueError(f"{namespace!r} is not written as axes: {spell(axes)!r} would be")
    return axes


def _escaped(value: str) -> str:
    return "".join(_ESCAPED.get(character, character) for character in value)


def _unescaped(value: str) -> str:
    for character in (",", "=", "%"):
        value = value.replace(_ESCAPED[character], character)
    return value
