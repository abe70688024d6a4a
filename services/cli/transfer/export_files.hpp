#pragma once
// holdfast export --format files: the files of snapshots for users, with index.jsonl, which lists the snapshots.
// Blocking; main thread.

#include "lib/archive/root.hpp"
#include "lib/store/capture.hpp"
#include "services/cli/transfer/destination.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace holdfast::cli {

struct ExportedFiles {
  std::size_t snapshots{0}, files{0};
  std::uint64_t bytes{0};
};
// Exports to <host>/<time>-<id>/... ; calls `told` after each snapshot.
ExportedFiles export_files(pg::Connection& connection, const archive::Root& root, const store::ExportQuery& query,
                           Destination& to, const std::function<void(const ExportedFiles&)>& told);

} // namespace holdfast::cli
