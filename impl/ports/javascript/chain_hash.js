// The chain hash: what a full block of tokens after a given prefix is filed under.

const P1 = 0x9e3779b185ebca87n;
const P2 = 0xc2b2ae3d27d4eb4fn;
const P3 = 0x165667b19e3779f9n;
const P4 = 0x85ebca77c2b2ae63n;
const P5 = 0x27d4eb2f165667c5n;

const wrap = (number) => BigInt.asUintN(64, number);
const rotate = (number, bits) => wrap((number << bits) | (number >> (64n - bits)));
const round = (sum, lane) => wrap(rotate(wrap(sum + lane * P2), 31n) * P1);

/** xxh64 with seed 0 over 64-bit numbers, each of which stands for its 8 little-endian bytes. */
export function xxh64(lanes) {
  let place = 0;
  let hash = P5;
  if (lanes.length >= 4) {
    const sums = [wrap(P1 + P2), P2, 0n, wrap(-P1)];
    for (; place + 4 <= lanes.length; place += 4) {
      for (let i = 0; i < 4; i++) sums[i] = round(sums[i], lanes[place + i]);
    }
    hash = wrap(rotate(sums[0], 1n) + rotate(sums[1], 7n) + rotate(sums[2], 12n) + rotate(sums[3], 18n));
    for (const sum of sums) hash = wrap((hash ^ round(0n, sum)) * P1 + P4);
  }
  hash = wrap(hash + 8n * BigInt(lanes.length));
  for (; place < lanes.length; place++) hash = wrap(rotate(hash ^ round(0n, lanes[place]), 27n) * P1 + P4);
  hash = wrap((hash ^ (hash >> 33n)) * P2);
  hash = wrap((hash ^ (hash >> 29n)) * P3);
  return hash ^ (hash >> 32n);
}

/**
 * xxh64 over the parent's key and the tokens, each as 8 little-endian bytes.  A first block has no parent (null): nothing
 * is hashed in its place, so no number is reserved to say "none".
 */
export function chainHash(tokens, parent) {
  const lanes = tokens.map((token) => wrap(BigInt(token)));
  return xxh64(parent === null ? lanes : [parent, ...lanes]);
}

/** A hash with five values, for worlds that ask for one that collides (see "Weak hash" in spec/PORTING.md). */
export function weakHash(tokens, parent) {
  let mixed = 7n * (parent ?? -1n) + 3n;
  for (const token of tokens) mixed = 11n * mixed + BigInt(token);
  return 1n + (((mixed % 5n) + 5n) % 5n);
}
