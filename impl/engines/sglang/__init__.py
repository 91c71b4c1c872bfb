"""SGLang's radix cache with its allocators: one token a page, or several."""

from functools import partial

from kvspec.impl.adapter import Implementation
from kvspec.impl.engines.sglang.adapter import SglangAdapter
from kvspec.impl.engines.sglang.loading import light
from kvspec.impl.engines.tree_keys import chain_hash
from kvspec.spec.declaration import Covers, Declaration, FullHit, Publish

DECLARATION = Declaration(
    name="sglang",
    profiles=frozenset({"pool", "prefix", "reuse", "chunked", "one", "namespace"}),
    publish=Publish.PROMPT,  # checkpoint_kv_cache after each chunk of a prompt; output tokens when the request finishes
    full_hit=FullHit.LAST_BLOCK,  # a match is capped at one token less than the request has
    covers=Covers.RESERVED,
    credits_shared=True,
    namespaces=True,  # extra_key
    evicts_early=True,  # whole nodes of the tree, and for a decode step that is then refused
    repoints=True,  # a checkpoint frees what the tree has already, and repoints the row to it
    unusable=frozenset({0}),  # the padded slot
)


def sglang(where: str) -> Implementation:
    """The SGLang that ``sglang`` or ``sglang:WHERE`` names.  Raises LoadError."""
    loaded = light(where)
    return Implementation(
        name="sglang",
        declaration=DECLARATION,
        create=partial(SglangAdapter, loaded),
        target=f"sglang:{where}" if where else "sglang",
        source=loaded.place.source,
        shape=f"version {loaded.place.version}, {loaded.how}",
        chain_hash=chain_hash,
        version=loaded.place.version,
    )
