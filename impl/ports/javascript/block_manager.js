// A KV-cache block manager: hands out blocks, shares full blocks between sequences with the same prefix, recycles them.
//
// It makes the choices of nano-vllm, so that it can be compared block for block:
//   * free blocks form a queue: taken at the front, given back at the end, the tail of a sequence first;
//   * a full block becomes findable when it has been computed, and stays findable until it is recycled;
//   * of two equal blocks the one that was published last owns the index entry;
//   * the block that holds the last token of a prompt is never taken from the cache.

import { chainHash, weakHash } from "./chain_hash.js";

/** The caller asked for something that makes no sense.  Nothing was changed. */
export class BadRequest extends Error {}

/** Answer to a request that does not fit: "no_space" (not now) or "too_large" (never). */
export class Refused {
  constructor(reason) {
    this.reason = reason;
  }
}

/** One physical block.  `prefix` is what it holds once it is published; null: it can't be found. */
class Block {
  references = 0;
  prefix = null;
}

/**
 * What a published block holds: its own tokens, and all blocks before them.  Two prefixes are equal only if every token
 * is; comparing keys and the own tokens of a block would let a collision further up the chain pass.
 */
class Prefix {
  constructor(parent, tokens, key) {
    this.parent = parent;
    this.tokens = tokens;
    this.key = key;
  }

  /** Prefixes of one chain are shared, so this ends after one step unless a block in between was recycled and is back. */
  equals(other) {
    let mine = this;
    while (mine !== other) {
      if (!mine || !other || !sameTokens(mine.tokens, other.tokens)) return false;
      [mine, other] = [mine.parent, other.parent];
    }
    return true;
  }
}

function sameTokens(one, other) {
  return one.length === other.length && one.every((token, place) => token === other[place]);
}

/** A live sequence.  `computed`: leading tokens whose K/V exists; `reserved`: tokens that the step in flight computes. */
class Sequence {
  table = [];
  computed = 0;
  reserved = 0;

  constructor(tokens) {
    this.tokens = tokens;
  }
}

export class BlockManager {
  constructor({ blocks, block_size: blockSize, weak_hash: weak = false }) {
    if (!(blocks >= 1)) throw new BadRequest(`a pool has at least one block, not ${blocks}`);
    if (!(blockSize >= 1)) throw new BadRequest(`a block has at least one token, not ${blockSize}`);
    this.blockSize = blockSize;
    this.weak = weak;
    this.blocks = Array.from({ length: blocks }, () => new Block());
    this.free = new Set(this.blocks.keys()); // a Set keeps the order of insertion, and a hit can leave its middle
    this.index = new Map(); // key -> block
    this.sequences = new Map();
  }

  // The five operations ---------------------------------------------------------------------------------------------

  /** A sequence asks in with all its known tokens; at most `limit` of those that are not cached are planned. */
  admit(name, tokens, limit) {
    if (!tokens.length) throw new BadRequest(`the prompt of ${name} has no tokens`);
    if (!(limit >= 1)) throw new BadRequest("at least one token must be planned");
    if (this.sequences.has(name)) throw new BadRequest(`${name} is live already`);
    const needed = this.blocksFor(tokens.length);
    if (needed > this.blocks.length) return new Refused("too_large");

    // A cached block that is in use needs no room; one that is free leaves the queue, as a new one would.
    const hit = this.cachedBlocks(tokens);
    const shared = hit.filter((block) => this.blocks[block].references > 0).length;
    if (needed - shared > this.free.size) return new Refused("no_space");

    // All claims before the first take: a take could recycle a block that is about to be claimed.
    const sequence = new Sequence([...tokens]);
    sequence.computed = hit.length * this.blockSize;
    sequence.reserved = Math.min(limit, tokens.length - sequence.computed);
    for (const block of hit) this.claim(block);
    sequence.table.push(...hit);
    while (sequence.table.length < needed) sequence.table.push(this.take());

    this.sequences.set(name, sequence);
    return { cached: sequence.computed, reserved: sequence.reserved, table: sequence.table };
  }

  /** The next `count` known tokens are planned: room for all known tokens must exist afterwards. */
  reserve(name, count) {
    const sequence = this.live(name);
    if (sequence.reserved) throw new BadRequest(`the last reservation of ${name} is not committed`);
    const left = sequence.tokens.length - sequence.computed;
    if (!(count >= 1 && count <= left)) throw new BadRequest(`${name} has ${left} tokens to compute, not ${count}`);
    const missing = this.missingBlocks(sequence);
    if (missing > this.free.size) return new Refused("no_space");
    for (let taken = 0; taken < missing; taken++) sequence.table.push(this.take());
    sequence.reserved = count;
    return sequence.table;
  }

  /** The planned tokens of these sequences have been computed: full blocks become findable. */
  commit(names) {
    for (const name of names) {
      if (!this.live(name).reserved) throw new BadRequest(`${name} has nothing to commit`);
    }
    return names.map((name) => {
      const sequence = this.live(name);
      this.publish(sequence, sequence.computed + sequence.reserved);
      sequence.computed += sequence.reserved;
      sequence.reserved = 0;
      return sequence.table;
    });
  }

  /** A sampled token joins.  Its K/V does not exist yet. */
  append(name, token) {
    this.live(name).tokens.push(token);
  }

  /** The blocks are given back; harmless if the sequence was released before. */
  release(name) {
    const sequence = this.sequences.get(name);
    if (!sequence) return;
    this.giveBack(sequence.table);
    this.sequences.delete(name);
  }

  // Blocks ----------------------------------------------------------------------------------------------------------

  /** Recycle the block that has been free for longest.  Its index entry goes, if it still names this block. */
  take() {
    const [id] = this.free;
    const block = this.blocks[id];
    this.free.delete(id);
    if (block.prefix && this.index.get(block.prefix.key) === id) this.index.delete(block.prefix.key);
    block.prefix = null;
    block.references = 1;
    return id;
  }

  /** One more holder; a block that was free leaves the queue as it is. */
  claim(id) {
    if (this.blocks[id].references++ === 0) this.free.delete(id);
  }

  /** One holder less; a block without holders is free, and stays findable. */
  drop(id) {
    if (--this.blocks[id].references === 0) this.free.add(id);
  }

  /** Tail first: the tail is recycled before the head, so that what is left is a prefix and can still be hit. */
  giveBack(table) {
    for (const id of [...table].reverse()) this.drop(id);
  }

  missingBlocks(sequence) {
    return this.blocksFor(sequence.tokens.length) - sequence.table.length;
  }

  blocksFor(tokens) {
    return Math.ceil(tokens / this.blockSize);
  }

  // Prefix cache ----------------------------------------------------------------------------------------------------

  hash(tokens, parent) {
    return this.weak ? weakHash(tokens, parent) : chainHash(tokens, parent);
  }

  prefixOf(tokens, entry, parent) {
    const own = tokens.slice(entry * this.blockSize, (entry + 1) * this.blockSize);
    return new Prefix(parent, own, this.hash(own, parent && parent.key));
  }

  /** The longest cached prefix in whole blocks, without the block that holds the last token: something must be computed. */
  cachedBlocks(tokens) {
    const hit = [];
    let parent = null;
    for (let entry = 0; entry + 1 < this.blocksFor(tokens.length); entry++) {
      const wanted = this.prefixOf(tokens, entry, parent);
      const id = this.index.get(wanted.key);
      if (id === undefined || !wanted.equals(this.blocks[id].prefix)) break;
      hit.push(id);
      parent = this.blocks[id].prefix;
    }
    return hit;
  }

  /** Blocks that become full with the first `computed` tokens become findable; those that are full already are. */
  publish(sequence, computed) {
    const full = (tokens) => Math.floor(tokens / this.blockSize);
    for (let entry = full(sequence.computed); entry < full(computed); entry++) this.publishBlock(sequence, entry);
  }

  publishBlock(sequence, entry) {
    const parent = entry ? this.blocks[sequence.table[entry - 1]].prefix : null;
    const id = sequence.table[entry];
    this.blocks[id].prefix = this.prefixOf(sequence.tokens, entry, parent);
    this.index.set(this.blocks[id].prefix.key, id);
  }

  live(name) {
    const sequence = this.sequences.get(name);
    if (!sequence) throw new BadRequest(`${name} is not live`);
    return sequence;
  }
}
