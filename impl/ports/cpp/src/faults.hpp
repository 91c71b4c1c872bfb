// Managers with one planted fault each: the conformance suite must catch every one of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "block_manager.hpp"

namespace kvspec {

std::vector<std::string> fault_names();

// A manager with the fault of that name; "" plants none.  Throws std::out_of_range if there is no such fault.
std::unique_ptr<BlockManager> make_manager(const std::string& fault, World world);

}  // namespace kvspec
