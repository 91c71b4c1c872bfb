// Speaks the pipe protocol: one JSON object a line on standard input, one answer line for each on standard output.
//
//   kvspec check "cmd:build/kvspec-cpp"
//   kvspec check "cmd:build/kvspec-cpp --fault stale-index"     a planted fault, which must be caught
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "block_manager.hpp"
#include "faults.hpp"

namespace {

using namespace kvspec;
using Json = nlohmann::ordered_json;  // answers keep the order in which their fields were written

const Json introduction = {
    {"outcome", "hello"},
    {"protocol", 1},
    {"version", "0.1"},
    {"language", "C++17"},
    {"snapshot", true},
    {"hash", true},
    {"declaration",
     {{"name", "kvspec-cpp"},
      {"profiles", {"pool", "prefix", "order", "chunked", "one", "collision", "hash", "robust"}},
      {"publish", "commit"},
      {"full_hit", "last_block"},
      {"covers", "known"},
      {"credits_shared", true},
      {"release_in_flight", true},
      {"smallest_block_size", 1},
      {"nano_vllm_order", true}}},
};

// Keys are 64-bit numbers, which not every JSON reader keeps exactly: they travel as decimal text.
Json text(Key key) { return std::to_string(key); }

std::string refusal(Refusal reason) { return reason == Refusal::too_large ? "too_large" : "no_space"; }

Json refused(Refusal reason) { return {{"outcome", "refused"}, {"reason", refusal(reason)}}; }

Json failed(const std::string& error, bool clear) {
  return {{"outcome", "failed"}, {"error", error}, {"clear", clear}};
}

class Session {
 public:
  explicit Session(std::string fault) : fault_(std::move(fault)) {}

  Json answer(const Json& request) {
    const std::string op = request.at("op");
    if (op == "hello") return introduction;
    if (op == "start") return start(request.at("world"));
    if (op == "hash") return hash(request);
    if (op == "stop") return {{"outcome", "stopped"}};
    if (!manager_) return failed("there is no manager yet: start comes first", true);
    if (op == "admit") return admit(request);
    if (op == "reserve") return reserve(request);
    if (op == "commit") return {{"outcome", "committed"}, {"tables", manager_->commit(request.at("sequences"))}};
    if (op == "append") {
      manager_->append(request.at("sequence"), request.at("token"));
      return {{"outcome", "appended"}};
    }
    if (op == "release") {
      manager_->release(request.at("sequence"));
      return {{"outcome", "released"}};
    }
    if (op == "snapshot") return snapshot();
    return failed("unknown request: " + op, true);
  }

 private:
  Json start(const Json& world) {
    manager_ = make_manager(fault_, {world.at("blocks"), world.at("block_size"), world.at("weak_hash")});
    return {{"outcome", "started"}};
  }

  Json admit(const Json& request) {
    const auto result = manager_->admit(request.at("sequence"), request.at("tokens"), request.at("limit"));
    if (const auto* reason = std::get_if<Refusal>(&result)) return refused(*reason);
    const Admitted& admitted = std::get<Admitted>(result);
    return {{"outcome", "admitted"},
            {"cached", admitted.cached},
            {"reserved", admitted.reserved},
            {"table", admitted.table}};
  }

  Json reserve(const Json& request) {
    const auto result = manager_->reserve(request.at("sequence"), request.at("count"));
    if (const auto* reason = std::get_if<Refusal>(&result)) return refused(*reason);
    return {{"outcome", "reserved"}, {"table", std::get<Table>(result)}};
  }

  // The chain hash does not depend on a manager, but a planted fault may change it.
  Json hash(const Json& request) {
    const Json& parent = request.at("parent");
    const std::optional<Key> key =
        parent.is_null() ? std::nullopt : std::optional<Key>(std::stoull(parent.get<std::string>()));
    return {{"outcome", "hash"}, {"key", text(make_manager(fault_, {1, 1, false})->hash(request.at("tokens"), key))}};
  }

  Json snapshot() const {
    Json references = Json::array(), hashes = Json::array(), contents = Json::array(), used = Json::array();
    for (BlockId id = 0; id < manager_->blocks().size(); ++id) {
      const Block& block = manager_->blocks()[id];
      references.push_back(block.references);
      hashes.push_back(block.prefix ? text(block.prefix->key) : Json());
      contents.push_back(block.prefix ? block.prefix->tokens : std::vector<Token>());
      if (block.references) used.push_back(id);
    }
    Json index = Json::array();
    for (const auto& [key, block] : std::map<Key, BlockId>(manager_->index().begin(), manager_->index().end()))
      index.push_back({text(key), block});
    return {{"outcome", "snapshot"}, {"free", manager_->free_in_order()}, {"used", used}, {"references", references},
            {"hashes", hashes},      {"contents", contents},              {"index", index}};
  }

  std::string fault_;
  std::unique_ptr<BlockManager> manager_;
};

// A request that makes no sense gets a clear error; anything else that is thrown is an accident, and is told apart.
Json answer_line(Session& session, const std::string& line) {
  try {
    return session.answer(Json::parse(line));
  } catch (const BadRequest& error) {
    return failed(error.what(), true);
  } catch (const std::exception& error) {
    return failed(error.what(), false);
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::string fault;
  if (count == 3 && std::string(arguments[1]) == "--fault") fault = arguments[2];
  const std::vector<std::string> names = fault_names();
  if ((count != 1 && fault.empty()) || (!fault.empty() && std::find(names.begin(), names.end(), fault) == names.end())) {
    std::cerr << "usage: kvspec-cpp [--fault NAME], NAME being one of";
    for (const std::string& name : names) std::cerr << ' ' << name;
    std::cerr << '\n';
    return 2;
  }
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  Session session(fault);
  for (std::string line; std::getline(std::cin, line);) {
    const Json answer = answer_line(session, line);
    std::cout << answer.dump() << '\n';
    // Requests come in batches: the answers are sent when no request is waiting.
    if (std::cin.rdbuf()->in_avail() <= 0) std::cout.flush();
    if (answer["outcome"] == "stopped") break;
  }
  std::cout.flush();
}
