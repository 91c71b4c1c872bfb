"""mini-sglang's cache manager with its radix cache, and the part of its scheduler that admits requests."""

from functools import partial

from kvspec.impl.adapter import Implementation
from kvspec.impl.engines.minisgl.adapter import MinisglAdapter
from kvspec.impl.engines.minisgl.loading import light
from kvspec.impl.engines.tree_keys import chain_hash
from kvspec.spec.declaration import Covers, Declaration, FullHit, Publish

DECLARATION = Declaration(
    name="mini-sglang",
    profiles=frozenset({"pool", "prefix", "reuse", "chunked", "one"}),
    publish=Publish.RELEASE,  # the prompt already after its last chunk, output tokens when the request is freed
    full_hit=FullHit.LAST_BLOCK,  # a match is capped at one token less than the request has
    covers=Covers.AT_LEAST,  # a request is admitted if all of its prompt fits, though its row grows by chunks
    credits_shared=True,
    evicts_early=True,  # whole nodes of the tree
    repoints=True,  # what the tree has already is freed; the row must then name the pages of the tree
    withheld=1,  # room for one output token is kept back at admission
)


def minisgl(where: str) -> Implementation:
    """The mini-sglang that ``mini-sglang`` or ``mini-sglang:WHERE`` names.  Raises LoadError."""
    loaded = light(where)
    return Implementation(
        name="mini-sglang",
        declaration=DECLARATION,
        create=partial(MinisglAdapter, loaded),
        target=f"mini-sglang:{where}" if where else "mini-sglang",
        source=loaded.place.source,
        shape=f"version {loaded.place.version}, {loaded.how}",
        chain_hash=chain_hash,
        version=loaded.place.version,
    )
