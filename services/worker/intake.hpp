#pragma once
// Whether this machine has room for new work. Owned by Worker; main thread only.

#include "services/worker/archive_watch.hpp"
#include "services/worker/options.hpp"
#include "services/worker/scratch.hpp"

#include <string>

namespace holdfast::worker {

class Intake {
public:
  Intake(const Options& options, const Scratch& scratch, const ArchiveWatch& archive)
      : options_(options), scratch_(scratch), archive_(archive) {}

  // Why no new work is taken; empty: it is.
  std::string shortage() const;

private:
  const Options& options_;
  const Scratch& scratch_;
  const ArchiveWatch& archive_;
};

} // namespace holdfast::worker
