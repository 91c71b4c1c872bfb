"""vLLM's block manager (v1): ``KVCacheManager`` with one group of full attention."""

from dataclasses import replace
from functools import partial

from kvspec.impl.adapter import Implementation
from kvspec.impl.engines.calls import takes
from kvspec.impl.engines.vllm.adapter import VllmAdapter
from kvspec.impl.engines.vllm.keys import Keys
from kvspec.impl.engines.vllm.loading import Vllm, full, light
from kvspec.spec.declaration import Covers, Declaration, FullHit, Publish

DECLARATION = Declaration(
    name="vllm",
    profiles=frozenset({"pool", "prefix", "reuse", "order", "chunked", "one", "namespace"}),
    publish=Publish.RESERVE,  # blocks are listed in allocate_slots, before the forward pass
    same_step_hit=True,
    full_hit=FullHit.LAST_BLOCK,  # a hit is capped at one token less than the sequence has
    covers=Covers.RESERVED,
    credits_shared=True,
    namespaces=True,  # cache_salt
    unusable=frozenset({0}),  # the null block
)


def vllm(where: str) -> Implementation:
    """The vLLM that ``vllm`` or ``vllm:WHERE`` names.  Raises LoadError."""
    loaded = full() if where == "full" else light(where)
    keys = Keys(loaded.blocks.hash_block_tokens, loaded.hash_function)
    return Implementation(
        name="vllm",
        declaration=declaration_of(loaded),
        create=partial(VllmAdapter, loaded, keys),
        target=f"vllm:{where}" if where else "vllm",
        source=loaded.place.source,
        shape=f"version {loaded.place.version}, {loaded.how}",
        chain_hash=keys.chain_hash,
        version=loaded.place.version,
    )


def declaration_of(loaded: Vllm) -> Declaration:
    """What is declared of this release: later ones reuse blocks without a hash first, which is no order of release."""
    if "prepend_n" in loaded.pool.free_blocks.__code__.co_names and not takes(loaded.pool.free_blocks, "prepend"):
        return replace(DECLARATION, profiles=DECLARATION.profiles - {"order"})
    return DECLARATION
