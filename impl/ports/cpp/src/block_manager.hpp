// A KV-cache block manager: hands out blocks, shares full blocks between sequences with the same prefix, recycles them.
//
// It makes the choices of nano-vllm, so that it can be compared block for block:
//   * free blocks form a queue: taken at the front, given back at the end, the tail of a sequence first;
//   * a full block becomes findable when it has been computed, and stays findable until it is recycled;
//   * of two equal blocks the one that was published last owns the index entry;
//   * the block that holds the last token of a prompt is never taken from the cache.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "chain_hash.hpp"

namespace kvspec {

using BlockId = std::size_t;
using Table = std::vector<BlockId>;

struct World {
  std::int64_t blocks;
  std::int64_t block_size;
  bool weak_hash;
};

// The caller asked for something that makes no sense.  Nothing was changed.
struct BadRequest : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

enum class Refusal { no_space, too_large };

struct Admitted {
  std::size_t cached;    // tokens whose K/V was found
  std::size_t reserved;  // tokens that are planned now
  Table table;
};

// What a published block holds: its own tokens, and all blocks before them.  Two prefixes are equal only if every token
// is; comparing keys and the own tokens of a block would let a collision further up the chain pass.
struct Prefix {
  std::shared_ptr<const Prefix> parent;  // none for a first block
  std::vector<Token> tokens;
  Key key;
};
using PrefixPointer = std::shared_ptr<const Prefix>;

struct Block {
  std::size_t references = 0;
  PrefixPointer prefix;  // none: not published, so it can't be found
};

// Block ids in the order in which they became free.  A hit takes one out of the middle, so it is a doubly linked list.
class FreeQueue {
 public:
  explicit FreeQueue(std::size_t blocks);
  std::size_t size() const { return size_; }
  void push_back(BlockId block);
  BlockId pop_front();
  void remove(BlockId block);
  Table in_order() const;

 private:
  std::vector<std::size_t> next_, previous_;  // the entry behind the last block is the ring's anchor
  std::size_t size_ = 0;
};

class BlockManager {
 public:
  explicit BlockManager(World world);
  virtual ~BlockManager() = default;

  // A sequence asks in with all its known tokens; at most `limit` of those that are not cached are planned.
  std::variant<Admitted, Refusal> admit(const std::string& name, std::vector<Token> tokens, std::size_t limit);
  // The next `count` known tokens are planned: room for all known tokens must exist afterwards.
  std::variant<Table, Refusal> reserve(const std::string& name, std::size_t count);
  // The planned tokens of these sequences have been computed: full blocks become findable.
  std::vector<Table> commit(const std::vector<std::string>& names);
  // A sampled token joins.  Its K/V does not exist yet.
  void append(const std::string& name, Token token);
  // The blocks are given back; harmless if the sequence was released before.
  void release(const std::string& name);

  virtual Key hash(const std::vector<Token>& tokens, std::optional<Key> parent) const;

  const std::vector<Block>& blocks() const { return blocks_; }
  const std::unordered_map<Key, BlockId>& index() const { return index_; }
  Table free_in_order() const { return free_.in_order(); }

 protected:
  struct Sequence {
    std::vector<Token> tokens;
    Table table;
    std::size_t computed = 0;  // leading tokens whose K/V exists
    std::size_t reserved = 0;  // tokens that the step in flight computes
  };

  virtual BlockId take();
  virtual void publish(Sequence& sequence, std::size_t computed);
  virtual void give_back(const Table& table);
  virtual std::size_t missing_blocks(const Sequence& sequence) const;

  void publish_block(const Sequence& sequence, std::size_t entry);
  void claim(BlockId block);
  void drop(BlockId block);
  std::size_t blocks_for(std::size_t tokens) const;
  std::vector<Token> tokens_of_block(const std::vector<Token>& tokens, std::size_t entry) const;
  Table cached_blocks(const std::vector<Token>& tokens) const;
  Sequence& live(const std::string& name);

  World world_;
  std::vector<Block> blocks_;
  FreeQueue free_;
  std::unordered_map<Key, BlockId> index_;
  std::unordered_map<std::string, Sequence> sequences_;
};

}  // namespace kvspec
