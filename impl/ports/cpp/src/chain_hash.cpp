#include "chain_hash.hpp"

#include <xxhash.h>

namespace kvspec {
namespace {

void append_little_endian(std::vector<unsigned char>& bytes, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<unsigned char>(number >> shift));
}

}  // namespace

Key chain_hash(const std::vector<Token>& tokens, std::optional<Key> parent) {
  std::vector<unsigned char> bytes;
  bytes.reserve(8 * (tokens.size() + 1));
  if (parent) append_little_endian(bytes, *parent);
  for (const Token token : tokens) append_little_endian(bytes, static_cast<std::uint64_t>(token));
  return XXH64(bytes.data(), bytes.size(), 0);
}

Key weak_hash(const std::vector<Token>& tokens, std::optional<Key> parent) {
  constexpr Token values = 5;
  Token mixed = parent ? (7 * static_cast<Token>(*parent % values) + 3) % values : -7 + 3;
  for (const Token token : tokens) mixed = (11 * mixed + token % values) % values;
  return static_cast<Key>(1 + (mixed + values) % values);
}

}  // namespace kvspec
