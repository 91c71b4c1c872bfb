"""The profiles named on a command line."""

from collections.abc import Iterable

from kvspec.spec.clauses import PROFILES


def split_profiles(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list.  Raises ValueError for a name that is no profile."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    require_profiles(names)
    return names


def require_profiles(names: Iterable[str]) -> None:
    """Raises ValueError for a name that is no profile."""
    if unknown := set(names) - PROFILES.keys():
        raise ValueError(f"no such profile: {', '.join(sorted(unknown))}; there are {', '.join(PROFILES)}")
