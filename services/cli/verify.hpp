#pragma once
// `holdfast verify`: the files of sealed snapshots against their manifests and rows; see verbs.hpp.

#include "services/cli/context.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

struct VerifyOptions {
  std::vector<std::string> ids; // crawls or snapshots, whole or shortened
  bool all{false};
  bool collect{false}; // remove what lost attempts left beside them
};

// 1 if any file is missing, changed, unreadable, or should not be there.
int verify(Context& context, const VerifyOptions& options);

} // namespace holdfast::cli
