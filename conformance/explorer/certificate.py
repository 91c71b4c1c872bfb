"""What an exploration says of itself: a few numbers that are equal for equal managers, in any language.

Definition.  A *state* is the judge's state together with the snapshot, up to a bijection of sequence names, of token
numbers and of hash values (``canonical``, ``digest``); block numbers are kept.  From each state every operation of the
alphabet that a scheduler may ask for is performed once (``world.Alphabet.possible``); each is a *transition*, also one
that is refused or leads nowhere new.  The *depth* of a state is the length of the shortest program to it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from kvspec.spec import __version__

FORMAT = 1

# What must be equal for equal managers; the rest tells how the numbers were found.
COMPARED = ("world", "exhausted", "states", "transitions", "depth", "operations", "levels", "digest")


@dataclass(slots=True)
class Certificate:
    """`operations`: transitions by kind.  `levels`: states by depth.  `digest`: SHA-256 over the compared numbers.

    `exhausted`: nothing is left to explore; else `stopped` says why not.  `muted`: clauses that were noted only.
    `told_apart`: how states of the manager are told apart (see ``identity``).  `copied`: how states were returned to.
    `expanded`: states told apart by more than they show are expanded more often than they are counted.  `evaluated`: the
    transitions, up to names, after which all that is proved was evaluated; 0 if that was not asked for.
    """

    implementation: str
    world: dict[str, object]
    states: int = 0
    transitions: int = 0
    depth: int = 0
    exhausted: bool = False
    stopped: str = ""
    operations: dict[str, int] = field(default_factory=dict)
    levels: list[int] = field(default_factory=list)
    digest: str = ""
    violation: str = ""
    muted: list[str] = field(default_factory=list)
    told_apart: str = "shown"
    copied: str = ""
    expanded: int = 0
    checked: int = 0
    evaluated: int = 0
    seconds: float = 0.0
    spec: str = __version__
    format: int = FORMAT

    def seal(self) -> None:
        """Compute the digest."""
        numbers = [self.world, self.exhausted, self.states, self.transitions, self.depth, self.operations, self.levels]
        self.digest = sha256(json.dumps(numbers, sort_keys=True).encode()).hexdigest()

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    def sentence(self) -> str:
        """One line for people."""
        rate = self.transitions / self.seconds if self.seconds else 0
        found = f"{self.states:,} states, {self.transitions:,} transitions, depth {self.depth}"
        took = f"{self.seconds:.1f} s, {rate:,.0f} transitions/s"
        return f"{found}, {took}: {'exhausted' if self.exhausted else f'not exhausted ({self.stopped})'}"


def write_certificates(path: Path, certificates: list[Certificate]) -> None:
    """Store certificates as JSON."""
    path.write_text(json.dumps([each.as_data() for each in certificates], indent=2) + "\n", encoding="utf-8")


def read_certificates(path: Path) -> list[dict[str, Any]]:
    """What `write_certificates` wrote.  Raises ValueError if the file is something else, OSError if it cannot be read."""
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, list) or not all(isinstance(each, dict) and each.get("format") == FORMAT for each in data):
        raise ValueError(f"{path} is not a list of certificates of format {FORMAT}")
    return data


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """What differs between two certificates, as sentences; empty if they are equal where they must be."""
    return [
        f"{name}: {one.get(name)} against {other.get(name)}" for name in COMPARED if one.get(name) != other.get(name)
    ]
