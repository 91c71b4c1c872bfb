"""What ``kvspec init`` writes."""

ADAPTER_TEMPLATE = '''"""Connects my block manager to kvspec.  Try it: kvspec check THIS_FILE.py:MyAdapter"""

from kvspec.spec.declaration import Covers, Declaration, FullHit, Publish
from kvspec.spec.operations import Admitted, Appended, Committed, Refused, Released, Reserved
from kvspec.spec.state import World


class MyAdapter:
    # What you claim, and how your manager legally differs: see spec/declaration.py.
    declaration = Declaration(
        name="my-manager",
        profiles=frozenset({"pool", "prefix"}),
        publish=Publish.COMMIT,  # a full block becomes findable when the forward pass has ended
        covers=Covers.KNOWN,  # the table has room for all tokens of the sequence
        full_hit=FullHit.LAST_BLOCK,  # the last block of a prompt is always computed
    )

    def __init__(self, world: World):
        raise NotImplementedError("make a manager with world.blocks blocks of world.block_size tokens")

    def admit(self, sequence, tokens, limit, namespace):
        # Look up the longest cached prefix, make room; plan at most `limit` of the tokens that are left.
        # return Refused() if there is no room, else:
        return Admitted(cached=0, reserved=min(limit, len(tokens)), table=())

    def reserve(self, sequence, count):
        # The next `count` known tokens are planned: their K/V needs room now.  Refused() if there is none.
        return Reserved(table=())

    def commit(self, sequences):
        # The forward pass of these sequences ended: what was reserved is computed; publish full blocks.
        return Committed(tables=tuple(() for _ in sequences))

    def append(self, sequence, token):
        return Appended()  # a sampled token joins; its K/V does not exist yet

    def release(self, sequence, cause):
        return Released()  # give the blocks back; must be harmless when called again
'''
