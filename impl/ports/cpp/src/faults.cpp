#include "faults.hpp"

#include <functional>
#include <map>

namespace kvspec {
namespace {

// The mapping is not deleted when its block is recycled.
struct StaleIndex : BlockManager {
  using BlockManager::BlockManager;
  BlockId take() override {
    const std::unordered_map<Key, BlockId> before = index_;
    const BlockId block = BlockManager::take();
    index_ = before;
    return block;
  }
};

// Tokens are hashed as 4 bytes: equal text, other keys than every other engine.
struct FourByteTokens : BlockManager {
  using BlockManager::BlockManager;
  Key hash(const std::vector<Token>& tokens, std::optional<Key> parent) const override {
    std::vector<Token> packed;
    for (std::size_t place = 0; place < tokens.size(); place += 2) {
      const std::uint64_t high = place + 1 < tokens.size() ? static_cast<std::uint64_t>(tokens[place + 1]) << 32 : 0;
      packed.push_back(static_cast<Token>(high | static_cast<std::uint32_t>(tokens[place])));
    }
    return BlockManager::hash(packed, parent);
  }
};

// 0 stands for "no parent": the first block and a block after a prefix with the key 0 get the same key.
struct ZeroIsNoHash : BlockManager {
  using BlockManager::BlockManager;
  Key hash(const std::vector<Token>& tokens, std::optional<Key> parent) const override {
    return BlockManager::hash(tokens, parent && *parent == 0 ? std::nullopt : parent);
  }
};

// A block is published when its first tokens are computed: fine without chunked prefill, wrong with it.
struct HalfFilledBlock : BlockManager {
  using BlockManager::BlockManager;
  void publish(Sequence& sequence, std::size_t computed) override {
    const std::size_t known = sequence.tokens.size() / static_cast<std::size_t>(world_.block_size);
    for (std::size_t entry = 0; entry < std::min(known, blocks_for(computed)); ++entry)
      if (!blocks_[sequence.table[entry]].prefix) publish_block(sequence, entry);
  }
};

// A new block is taken when the length leaves a remainder of 1, which at block size 1 it never does.
struct RemainderOfOne : BlockManager {
  using BlockManager::BlockManager;
  std::size_t missing_blocks(const Sequence& sequence) const override {
    return sequence.tokens.size() % static_cast<std::size_t>(world_.block_size) == 1 ? BlockManager::missing_blocks(sequence) : 0;
  }
};

// The head of a sequence is recycled before its tail: the blocks that are left can't be hit.
struct HeadFirst : BlockManager {
  using BlockManager::BlockManager;
  void give_back(const Table& table) override {
    for (const BlockId block : table) drop(block);
  }
};

template <class Manager>
std::unique_ptr<BlockManager> make(World world) {
  return std::make_unique<Manager>(world);
}

const std::map<std::string, std::function<std::unique_ptr<BlockManager>(World)>>& faults() {
  static const std::map<std::string, std::function<std::unique_ptr<BlockManager>(World)>> known = {
      {"", make<BlockManager>},
      {"four-byte-tokens", make<FourByteTokens>},
      {"half-filled-block", make<HalfFilledBlock>},
      {"head-first", make<HeadFirst>},
      {"remainder-of-one", make<RemainderOfOne>},
      {"stale-index", make<StaleIndex>},
      {"zero-is-no-hash", make<ZeroIsNoHash>},
  };
  return known;
}

}  // namespace

std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : faults())
    if (!name.empty()) names.push_back(name);
  return names;
}

std::unique_ptr<BlockManager> make_manager(const std::string& fault, World world) { return faults().at(fault)(world); }

}  // namespace kvspec
