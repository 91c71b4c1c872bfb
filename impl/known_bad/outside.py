"""Faults in what somebody outside of the scheduler asks: reset, probe, and owners outside."""

from typing import Any

from kvspec.impl.known_bad.bases.hard import Hard
from kvspec.impl.known_bad.registry import known_bad


@known_bad(
    "reset-refused-in-the-log-only",
    "RESET",
    "answer",
    "vLLM PR 12284",
    "vLLM PR 28827",
    context="reset",
    shows="2x2: admit A 00 / commit A / reset",
)
class ResetRefusedInTheLogOnly(Hard):
    """A reset that cannot be done, because blocks are held, is answered with a yes."""

    def reset(self) -> bool:
        super().reset()
        return True


@known_bad(
    "reset-keeps-the-cache",
    "RESET",
    "stale",
    "LMDeploy #4917",
    "miles PR 2783",
    "vLLM #42125",
    context="reset",
    shows="2x2: admit A 00 / commit A / release A / reset",
)
class ResetKeepsTheCache(Hard):
    """New weights, and the cache is kept: the reset only looks whether it would be possible."""

    def reset(self) -> bool:
        return not self.used_block_ids


@known_bad(
    "reset-of-free-blocks-only",
    "RESET",
    "stale",
    "vLLM PR 28827",
    "SGLang PR 33784",
    context="reset",
    shows="2x2: admit A 00 / commit A / reset",
)
class ResetOfFreeBlocksOnly(Hard):
    """A reset empties the free blocks and says yes, though those of live sequences are still found."""

    def reset(self) -> bool:
        self._changes += 1
        for block_id in self.free_block_ids:
            block = self.blocks[block_id]
            if block.node is not None:
                self._unpublish(block.node, block_id)
                block.node = None
        return True


@known_bad(
    "reset-begins-before-it-asks",
    "RESET",
    "traces",
    "SGLang #33783",
    "AReaL PR 140",
    context="reset",
    shows="3x2: admit A 00 / commit A / release A / admit B 1 / reset",
)
class ResetBeginsBeforeItAsks(ResetOfFreeBlocksOnly):
    """A reset empties the free blocks first, and then finds out that it must say no."""

    def reset(self) -> bool:
        return super().reset() and Hard.reset(self)


@known_bad(
    "reset-waits-for-an-empty-cache",
    "RESET",
    "progress",
    "SGLang #33783",
    "SGLang PR 33784",
    context="reset",
    shows="2x2: admit A 00 / commit A / release A / reset",
)
class ResetWaitsForAnEmptyCache(Hard):
    """A reset is refused as long as anything is cached, which it alone could change."""

    def reset(self) -> bool:
        return not self.hash_to_block_id and super().reset()


@known_bad(
    "probe-counts-as-use",
    "PROBE",
    "traces",
    "SGLang #5221",
    "vLLM #37076",
    context="probe",
    shows="3x2: admit A 0000 / commit A / release A / probe 00000",
)
class ProbeCountsAsUse(Hard):
    """The free blocks that a probe finds go to the end of the queue, as if they had been used."""

    def probe(self, seq: Any) -> tuple[int, bool]:
        for block_id in self._search(seq)[0]:
            if block_id in self.free_block_ids:
                self.free_block_ids.move_to_end(block_id)
        return super().probe(seq)


@known_bad(
    "probe-pins-what-it-finds",
    "PROBE",
    "ownership",
    "vLLM #11562",
    "mini-sglang PR 52",
    context="probe",
    shows="2x2: admit A 00 / commit A / probe 001",
)
class ProbePinsWhatItFinds(Hard):
    """A probe takes references to what it finds, and nobody gives them back."""

    def probe(self, seq: Any) -> tuple[int, bool]:
        answer = super().probe(seq)
        for block_id in self._search(seq)[0]:
            self._claim(block_id)
        return answer


@known_bad(
    "probe-counts-free-hits-twice",
    "PROBE",
    "room",
    "vLLM #11562",
    "ATOM PR 902",
    context="probe",
    shows="2x2: admit A 00 / commit A / release A / admit B 1 / probe 0011 / admit C 0011",
)
class ProbeCountsFreeHitsTwice(Hard):
    """For a probe a hit on a free block needs no room, for an admission it does."""

    def probe(self, seq: Any) -> tuple[int, bool]:
        cached, _ = super().probe(seq)
        return cached, seq.num_blocks - cached <= len(self.free_block_ids)


@known_bad(
    "probe-finds-the-last-block",
    "PROBE",
    "answer",
    "vLLM #53495",
    "UCM #1059",
    context="probe",
    shows="2x2: admit A 00 / commit A / probe 00 / admit B 00",
)
class ProbeFindsTheLastBlock(Hard):
    """A probe counts the last block of the prompt, which an admission computes again."""

    def probe(self, seq: Any) -> tuple[int, bool]:
        cached, fits = super().probe(seq)
        node = self._root
        for i in range(len(seq) // self.block_size):
            found = node.children.get(tuple(seq.block(i)))
            if found is None or not found.blocks:
                return cached, fits
            node = found
        return len(seq) // self.block_size, fits


@known_bad(
    "owner-outside-uncounted",
    "REFCOUNT",
    "ownership",
    "LMCache PR 5248",
    "Atlas PR 373",
    context="owners",
    shows="2x2: admit A 00 / commit A / retain A K",
)
class OwnerOutsideUncounted(Hard):
    """Only the name of an owner outside is noted: its blocks are recycled while it still reads them."""

    def retain(self, seq: Any, owner: str) -> list[int]:
        kept = super().retain(seq, owner)
        self._owners[owner] = []
        self._drop(kept)
        return kept


@known_bad(
    "owner-goes-with-the-sequence",
    "RELEASE",
    "ownership",
    "LMCache PR 5248",
    "FastDeploy PR 3710",
    context="owners",
    shows="2x2: admit A 00 / commit A / retain A K / release A",
)
class OwnerGoesWithTheSequence(Hard):
    """The release of a sequence drops what owners outside keep of its blocks as well."""

    def deallocate(self, seq: Any) -> None:
        mine = set(seq.block_table)
        super().deallocate(seq)
        for owner, kept in self._owners.items():
            if mine & set(kept):
                self._drop(kept)
                self._owners[owner] = []


@known_bad(
    "owner-never-lets-go",
    "RELEASE",
    "ownership",
    "vmlx PR 68",
    "SGLang Rust port PR 508",
    context="owners",
    shows="2x2: admit A 00 / commit A / retain A K / drop K",
)
class OwnerNeverLetsGo(Hard):
    """When an owner outside lets go its name is forgotten, and its blocks stay in use."""

    def drop(self, owner: str) -> None:
        if owner not in self._owners:
            super().drop(owner)
        del self._owners[owner]


@known_bad(
    "drop-frees-at-once",
    "PARTITION",
    "ownership",
    "Atlas PR 373",
    "LMCache PR 5248",
    context="owners",
    shows="2x2: admit A 00 / commit A / retain A K / drop K",
)
class DropFreesAtOnce(Hard):
    """What an owner outside lets go of is queued as free, though a sequence may hold it."""

    def drop(self, owner: str) -> None:
        kept = self._owners.get(owner, [])
        super().drop(owner)
        self.free_block_ids.update(dict.fromkeys(kept))
