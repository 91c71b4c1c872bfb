// Managers with one planted fault each: the conformance suite must catch every one of them.

import { BlockManager, Refused } from "./block_manager.js";

/** Keys lose their low bits, as they do when they are kept as numbers instead of 64-bit integers. */
class KeysAsNumbers extends BlockManager {
  hash(tokens, parent) {
    return BigInt(Number(super.hash(tokens, parent)));
  }
}

/** The tokens of a block are compared, but not those before it: a collision further up the chain passes. */
class OwnTokensOnly extends BlockManager {
  prefixOf(tokens, entry, parent) {
    const prefix = super.prefixOf(tokens, entry, parent);
    prefix.equals = (other) => other && prefix.key === other.key && `${prefix.tokens}` === `${other.tokens}`;
    return prefix;
  }
}

/** A second release of a sequence drops its references again. */
class ReleasesTwice extends BlockManager {
  tables = new Map();

  release(name) {
    if (this.sequences.has(name)) this.tables.set(name, this.live(name).table);
    else for (const id of this.tables.get(name) ?? []) if (this.blocks[id].references) this.drop(id);
    super.release(name);
  }
}

/** The index entry goes with the last holder, not when the block is recycled: nothing survives a release. */
class ForgetsOnRelease extends BlockManager {
  drop(id) {
    super.drop(id);
    const { references, prefix } = this.blocks[id];
    if (!references && prefix && this.index.get(prefix.key) === id) this.index.delete(prefix.key);
  }
}

/** A prompt that can never fit is told to wait. */
class WaitsForEver extends BlockManager {
  admit(name, tokens, limit) {
    const answer = super.admit(name, tokens, limit);
    return answer instanceof Refused ? new Refused("no_space") : answer;
  }
}

/** The hits are counted as room that is needed, although they are in use already. */
class CountsHitsTwice extends BlockManager {
  cachedBlocks(tokens) {
    const hit = super.cachedBlocks(tokens);
    const needed = this.blocksFor(tokens.length);
    return needed > this.free.size ? [] : hit;
  }
}

export const FAULTS = {
  "counts-hits-twice": CountsHitsTwice,
  "forgets-on-release": ForgetsOnRelease,
  "keys-as-numbers": KeysAsNumbers,
  "own-tokens-only": OwnTokensOnly,
  "releases-twice": ReleasesTwice,
  "waits-for-ever": WaitsForEver,
};
