#pragma once
// Reads text/blocks.jsonl, which the plugin text writes: a line about the page, then a line for each block. Pure.

#include "lib/base/text/text.hpp"

#include <nlohmann/json.hpp>

#include <string_view>
#include <utility>

namespace holdfast::change {

// Calls page(json) with the first line and block(json) with each other one. Lines of another shape are left out.
template <class Page, class Block>
void each_block(std::string_view lines, Page page, Block block) {
  bool first = true;
  for (const auto& line : base::split(lines, "\n")) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    try {
      if (std::exchange(first, false))
        page(json);
      else
        block(json);
    } catch (const nlohmann::json::exception&) { // not as the plugin writes it
    }
  }
}

} // namespace holdfast::change
