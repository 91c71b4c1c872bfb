#include "block_manager.hpp"

#include <algorithm>
#include <utility>

namespace kvspec {
namespace {

World checked(World world) {
  if (world.blocks < 1) throw BadRequest("a pool has at least one block, not " + std::to_string(world.blocks));
  if (world.block_size < 1) throw BadRequest("a block has at least one token, not " + std::to_string(world.block_size));
  return world;
}

// Equal tokens all the way up.  Prefixes of one chain are shared, so this ends after one step unless a block in between
// was recycled and computed again.
bool equal(const Prefix* one, const Prefix* other) {
  while (one != other) {
    if (!one || !other || one->tokens != other->tokens) return false;
    one = one->parent.get();
    other = other->parent.get();
  }
  return true;
}

}  // namespace

// Free queue ----------------------------------------------------------------------------------------------------------

FreeQueue::FreeQueue(std::size_t blocks) : next_(blocks + 1, blocks), previous_(blocks + 1, blocks) {
  for (BlockId block = 0; block < blocks; ++block) push_back(block);
}

void FreeQueue::push_back(BlockId block) {
  const std::size_t anchor = next_.size() - 1, last = previous_[anchor];
  next_[last] = previous_[anchor] = block;
  previous_[block] = last;
  next_[block] = anchor;
  ++size_;
}

BlockId FreeQueue::pop_front() {
  const BlockId block = next_.back();
  remove(block);
  return block;
}

void FreeQueue::remove(BlockId block) {
  next_[previous_[block]] = next_[block];
  previous_[next_[block]] = previous_[block];
  --size_;
}

Table FreeQueue::in_order() const {
  Table blocks;
  const std::size_t anchor = next_.size() - 1;
  for (std::size_t block = next_[anchor]; block != anchor; block = next_[block]) blocks.push_back(block);
  return blocks;
}

// The five operations -------------------------------------------------------------------------------------------------

BlockManager::BlockManager(World world)
    : world_(checked(world)), blocks_(static_cast<std::size_t>(world.blocks)), free_(blocks_.size()) {}

std::variant<Admitted, Refusal> BlockManager::admit(const std::string& name, std::vector<Token> tokens,
                                                    std::size_t limit) {
  if (tokens.empty()) throw BadRequest("the prompt of " + name + " has no tokens");
  if (limit < 1) throw BadRequest("at least one token must be planned");
  if (sequences_.count(name)) throw BadRequest(name + " is live already");
  if (blocks_for(tokens.size()) > blocks_.size()) return Refusal::too_large;

  // A cached block that is in use needs no room; one that is free leaves the queue, as a new one would.
  Table hit = cached_blocks(tokens);
  const auto in_use = [this](BlockId block) { return blocks_[block].references > 0; };
  const std::size_t shared = static_cast<std::size_t>(std::count_if(hit.begin(), hit.end(), in_use));
  if (blocks_for(tokens.size()) - shared > free_.size()) return Refusal::no_space;

  // All claims before the first take: a take could recycle a block that is about to be claimed.
  Sequence sequence;
  sequence.tokens = std::move(tokens);
  sequence.computed = hit.size() * static_cast<std::size_t>(world_.block_size);
  sequence.reserved = std::min(limit, sequence.tokens.size() - sequence.computed);
  for (const BlockId block : hit) claim(block);
  sequence.table = std::move(hit);
  while (sequence.table.size() < blocks_for(sequence.tokens.size())) sequence.table.push_back(take());

  const Sequence& added = sequences_[name] = std::move(sequence);
  return Admitted{added.computed, added.reserved, added.table};
}

std::variant<Table, Refusal> BlockManager::reserve(const std::string& name, std::size_t count) {
  Sequence& sequence = live(name);
  if (sequence.reserved) throw BadRequest("the last reservation of " + name + " is not committed");
  if (count < 1 || sequence.computed + count > sequence.tokens.size())
    throw BadRequest(name + " does not have that many tokens to compute");
  const std::size_t missing = missing_blocks(sequence);
  if (missing > free_.size()) return Refusal::no_space;
  for (std::size_t taken = 0; taken < missing; ++taken) sequence.table.push_back(take());
  sequence.reserved = count;
  return sequence.table;
}

std::vector<Table> BlockManager::commit(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!live(name).reserved) throw BadRequest(name + " has nothing to commit");
  std::vector<Table> tables;
  for (const std::string& name : names) {
    Sequence& sequence = live(name);
    publish(sequence, sequence.computed + sequence.reserved);
    sequence.computed += sequence.reserved;
    sequence.reserved = 0;
    tables.push_back(sequence.table);
  }
  return tables;
}

void BlockManager::append(const std::string& name, Token token) { live(name).tokens.push_back(token); }

void BlockManager::release(const std::string& name) {
  const auto found = sequences_.find(name);
  if (found == sequences_.end()) return;
  give_back(found->second.table);
  sequences_.erase(found);
}

// Blocks --------------------------------------------------------------------------------------------------------------

// Recycle the block that has been free for longest.  Its index entry goes, if it still names this block.
BlockId BlockManager::take() {
  const BlockId id = free_.pop_front();
  Block& block = blocks_[id];
  if (block.prefix) {
    const auto entry = index_.find(block.prefix->key);
    if (entry != index_.end() && entry->second == id) index_.erase(entry);
  }
  block.prefix = nullptr;
  block.references = 1;
  return id;
}

void BlockManager::claim(BlockId id) {
  if (blocks_[id].references++ == 0) free_.remove(id);
}

void BlockManager::drop(BlockId id) {
  if (--blocks_[id].references == 0) free_.push_back(id);
}

// Tail first: the tail is recycled before the head, so that what is left is a prefix and can still be hit.
void BlockManager::give_back(const Table& table) {
  for (auto block = table.rbegin(); block != table.rend(); ++block) drop(*block);
}

std::size_t BlockManager::missing_blocks(const Sequence& sequence) const {
  return blocks_for(sequence.tokens.size()) - sequence.table.size();
}

std::size_t BlockManager::blocks_for(std::size_t tokens) const {
  const std::size_t size = static_cast<std::size_t>(world_.block_size);
  return (tokens + size - 1) / size;
}

std::vector<Token> BlockManager::tokens_of_block(const std::vector<Token>& tokens, std::size_t entry) const {
  const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(entry) * world_.block_size;
  return {begin, begin + world_.block_size};
}

// Prefix cache --------------------------------------------------------------------------------------------------------

Key BlockManager::hash(const std::vector<Token>& tokens, std::optional<Key> parent) const {
  return world_.weak_hash ? weak_hash(tokens, parent) : chain_hash(tokens, parent);
}

// The longest cached prefix in whole blocks, without the block that holds the last token: something must be computed.
Table BlockManager::cached_blocks(const std::vector<Token>& tokens) const {
  Table hit;
  PrefixPointer parent;
  for (std::size_t entry = 0; entry + 1 < blocks_for(tokens.size()); ++entry) {
    Prefix wanted{parent, tokens_of_block(tokens, entry), 0};
    wanted.key = hash(wanted.tokens, parent ? std::optional<Key>(parent->key) : std::nullopt);
    const auto found = index_.find(wanted.key);
    if (found == index_.end() || !equal(blocks_[found->second].prefix.get(), &wanted)) break;
    hit.push_back(found->second);
    parent = blocks_[found->second].prefix;
  }
  return hit;
}

// Blocks that become full with the first `computed` tokens become findable; those that are full already are.
void BlockManager::publish(Sequence& sequence, std::size_t computed) {
  const std::size_t size = static_cast<std::size_t>(world_.block_size);
  for (std::size_t entry = sequence.computed / size; entry < computed / size; ++entry) publish_block(sequence, entry);
}

void BlockManager::publish_block(const Sequence& sequence, std::size_t entry) {
  const PrefixPointer parent = entry ? blocks_[sequence.table[entry - 1]].prefix : nullptr;
  std::vector<Token> tokens = tokens_of_block(sequence.tokens, entry);
  const Key key = hash(tokens, parent ? std::optional<Key>(parent->key) : std::nullopt);
  blocks_[sequence.table[entry]].prefix = std::make_shared<const Prefix>(Prefix{parent, std::move(tokens), key});
  index_[key] = sequence.table[entry];
}

BlockManager::Sequence& BlockManager::live(const std::string& name) {
  const auto found = sequences_.find(name);
  if (found == sequences_.end()) throw BadRequest(name + " is not live");
  return found->second;
}

}  // namespace kvspec
