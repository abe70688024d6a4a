#include "lib/upkeep/kept_captures.hpp"

#include "lib/archive/captures.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"

#include <spdlog/spdlog.h>

namespace holdfast::upkeep {

void keep_captures(pg::Connection& connection, const archive::Root& root, const std::vector<std::string>& directories) {
  for (const auto& kept : store::captures_to_move(connection, directories)) {
    if (archive::keep_record(root, kept.source_file, kept.source_offset, kept.length, kept.file))
      store::call(connection, "captures_moved", kept.snapshot_id, kept.position);
    else
      spdlog::warn("a record that other snapshots need is gone: {} at {}", kept.source_file, kept.source_offset);
  }
}

} // namespace holdfast::upkeep
