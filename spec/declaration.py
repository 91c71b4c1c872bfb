"""Legal differences between managers: declared by an adapter, taken by the judge as a parameter, never guessed."""

from dataclasses import dataclass
from enum import StrEnum

from .clauses import PROFILES


class Publish(StrEnum):
    """When a full block becomes findable."""

    RESERVE = "reserve"  # when the tokens that fill it are planned, before the forward pass
    COMMIT = "commit"  # when the forward pass that filled it has ended
    RELEASE = "release"  # when the sequence that filled it is released
    PROMPT = (
        "prompt"  # as COMMIT for the tokens of its admission; what was sampled since, when the sequence has finished
    )


class FullHit(StrEnum):
    """What is computed again when the cache holds the whole prompt."""

    LAST_BLOCK = "last_block"  # the last block is never taken from the cache
    LAST_TOKEN = "last_token"  # all blocks are taken and the last token is computed again in place
    NOTHING = "nothing"  # nothing is left to compute, and the scheduler is known to cope


class Covers(StrEnum):
    """Which tokens the block table has room for after admit and reserve."""

    KNOWN = "known"  # exactly all tokens the sequence has
    RESERVED = "reserved"  # exactly the computed and reserved tokens
    AT_LEAST = "at_least"  # at least the computed and reserved tokens


@dataclass(frozen=True, slots=True)
class Declaration:
    """What one implementation claims (`profiles`) and how it legally differs.

    `credits_shared`: admission counts a hit on a block in use as needing no room; not to be declared by a manager that may
    fail to find what is intact (no cache, a time to live).  `same_step_hit`: a block may be hit in the step that computes
    it; then a step is committed as a whole and judged when it ends.  `release_in_flight`: a sequence may be released
    between reserve and commit.  `withheld`: blocks a refusal may keep back (watermark).  `unusable`: block ids that are
    never handed out (a null block): a world of N blocks is a pool of N besides them.  `extra_owners`: reference counts
    may exceed the number of table entries.  `stale_index`: index entries may be out of date, because each hit verifies
    what it finds.  `repoints`: at a commit, the table entry of a computed full block may come to name another block that
    holds the same prefix.  `evicts_early`: the cache may give up blocks that nobody holds before they are needed, also for
    a request that is then refused.  `publish_at_truncate`: full blocks of confirmed draft tokens become findable when
    they are confirmed, not with the tokens computed next.  `merges`: a full block may be replaced by a findable one that
    holds the same prefix, when its last tokens are planned; they may be computed again in place.  `namespace_axes`: the
    axes of ``namespaces`` that the manager tells apart, each by itself; one that has some has `namespaces`, too.

    Raises ValueError if a profile is declared that there is not.
    """

    name: str
    profiles: frozenset[str] = frozenset({"pool", "prefix"})
    publish: Publish = Publish.COMMIT
    same_step_hit: bool = False
    full_hit: FullHit = FullHit.LAST_BLOCK
    covers: Covers = Covers.AT_LEAST
    credits_shared: bool = True
    release_in_flight: bool = False
    namespaces: bool = False
    extra_owners: bool = False
    stale_index: bool = False
    repoints: bool = False
    evicts_early: bool = False
    withheld: int = 0
    unusable: frozenset[int] = frozenset()
    smallest_block_size: int = 1
    largest_block_size: int = 1 << 20
    publish_at_truncate: bool = False
    merges: bool = False
    namespace_axes: frozenset[str] = frozenset()
    nano_vllm_order: bool = False  # chooses exactly the blocks that nano-vllm would choose: compared with the model

    def __post_init__(self) -> None:
        if unknown := sorted(self.profiles - set(PROFILES)):
            raise ValueError(f"{self.name} declares {', '.join(unknown)}; the profiles are {', '.join(PROFILES)}")

    def block_ids(self, blocks: int) -> frozenset[int]:
        """The ids of a pool of `blocks` blocks: the first ones that are not unusable."""
        ids = range(blocks + len(self.unusable))
        return frozenset([block for block in ids if block not in self.unusable][:blocks])
