"""lmdeploy's block manager with its prefix trie (PyTorch engine)."""

from functools import partial

from kvspec.impl.adapter import Implementation
from kvspec.impl.engines.lmdeploy.adapter import LmdeployAdapter, chain_key
from kvspec.impl.engines.lmdeploy.loading import light
from kvspec.spec.declaration import Covers, Declaration, FullHit, Publish

DECLARATION = Declaration(
    name="lmdeploy",
    profiles=frozenset({"pool", "prefix", "one", "collision", "namespace"}),
    publish=Publish.RESERVE,  # the trie takes full blocks at admission, before the forward pass
    same_step_hit=True,
    full_hit=FullHit.LAST_BLOCK,  # a hit ends before the last token
    covers=Covers.RESERVED,
    credits_shared=False,  # a block that decoding fills is found only once the next one is needed
    namespaces=True,  # one trie an adapter
    extra_owners=True,  # the trie holds a reference to each block in it
    merges=True,  # a full block that the trie has already is given back, and the trie's takes its place
)


def lmdeploy(where: str) -> Implementation:
    """The lmdeploy that ``lmdeploy`` or ``lmdeploy:WHERE`` names.  Raises LoadError."""
    loaded = light(where)
    return Implementation(
        name="lmdeploy",
        declaration=DECLARATION,
        create=partial(LmdeployAdapter, loaded),
        target=f"lmdeploy:{where}" if where else "lmdeploy",
        source=loaded.place.source,
        shape=f"version {loaded.place.version}, light, {loaded.loaded} modules",
        chain_hash=chain_key,
        version=loaded.place.version,
    )
