"""The registry of known-bad managers, filled by the modules beside it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kvspec.impl.adapter import Implementation
from kvspec.impl.known_bad.notation import Example, read
from kvspec.spec.clauses import CLAUSES

KINDS: dict[str, str] = {
    "ownership": "a block is given back twice, never, or by the wrong holder",
    "stale": "an index entry outlives the content of its block",
    "unbacked": "a hit is not backed by the right K/V: not computed, wrong position, wrong block",
    "unpinned": "what was found is not what is used",
    "room": "the room arithmetic is wrong, either way",
    "traces": "a refused or failed operation leaves traces",
    "shared-write": "a block is written while another sequence reads it, or is read after it was given back",
    "identity": "the key leaves out something that tells two prefixes apart",
    "progress": "nothing is left to compute, or a legal request is never served",
    "lost": "what is still there is not found",
    "order": "blocks are recycled in the wrong order",
    "answer": "the answer itself is wrong",
    "input": "bad input is taken for good, or ends in an accident",
}


@dataclass(frozen=True, slots=True)
class KnownBad:
    """A manager with one planted fault.

    `clause`: the clause it must be caught for.  `sentence`: the fault.  `kind`: one of KINDS.  `reports`: public reports
    of the same fault.  `base`: the sound manager it is planted in.  `shape`: how that is called.  `context`: where the
    fault shows.  `example`: a smallest program that shows it, or None where only a scenario can.
    """

    slug: str
    clause: str
    sentence: str
    kind: str
    reports: tuple[str, ...]
    base: str
    shape: str
    context: str
    example: Example | None
    make: Callable[[], Implementation]

    def implementation(self) -> Implementation:
        """The manager behind an adapter, as ``--impl known-bad:SLUG`` loads it."""
        made = self.make()
        declaration = replace(made.declaration, name=f"known-bad:{self.slug}")
        return replace(made, name=declaration.name, declaration=declaration, target=declaration.name, shape=self.shape)


KNOWN_BAD: dict[str, KnownBad] = {}


def known_bad(
    slug: str, clause: str, kind: str, *reports: str, context: str = "steps", shows: str | None = None
) -> Callable[[type], type]:
    """Register the decorated class, whose docstring begins with the fault in one sentence.

    Its attributes `declaration`, `chain_hash`, `base` and `shape` come from the sound manager it is derived from; a
    class that is not an adapter itself says with the class method `implementation` how it is run.
    """
    if clause not in CLAUSES or kind not in KINDS or slug in KNOWN_BAD:
        raise ValueError(f"known-bad manager {slug}: unknown clause or kind, or the slug is taken")

    def register(cls: Any) -> Any:
        make = getattr(cls, "implementation", None) or (lambda: direct(cls))
        example = read(shows) if shows else None
        sentence = " ".join((cls.__doc__ or "").partition("\n\n")[0].split())
        KNOWN_BAD[slug] = KnownBad(slug, clause, sentence, kind, reports, cls.base, cls.shape, context, example, make)
        return cls

    return register


def direct(cls: Any) -> Implementation:
    """A class that implements the five operations itself."""
    return Implementation(cls.declaration.name, cls.declaration, cls, chain_hash=cls.chain_hash)


def load_known_bad(slug: str) -> KnownBad:
    """The known-bad manager `slug`.  Raises KeyError with the nearest slugs if there is none."""
    if slug not in KNOWN_BAD:
        from difflib import get_close_matches

        near = ", ".join(get_close_matches(slug, KNOWN_BAD)) or f"one of {len(KNOWN_BAD)}: see kvspec known-bad"
        raise KeyError(f"no known-bad manager {slug}; did you mean {near}?")
    return KNOWN_BAD[slug]
