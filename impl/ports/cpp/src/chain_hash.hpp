// The chain hash: what a full block of tokens after a given prefix is filed under.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace kvspec {

using Token = std::int64_t;
using Key = std::uint64_t;

// xxh64 over the parent's key and the tokens, each as 8 little-endian bytes.  A first block has no parent: nothing is
// hashed in its place, so no number is reserved to say "none".
Key chain_hash(const std::vector<Token>& tokens, std::optional<Key> parent);

// A hash with five values, for worlds that ask for one that collides (see "Weak hash" in spec/PORTING.md).
Key weak_hash(const std::vector<Token>& tokens, std::optional<Key> parent);

}  // namespace kvspec
