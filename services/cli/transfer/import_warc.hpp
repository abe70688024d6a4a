#pragma once
// holdfast import warc.

#include "services/cli/command/verb.hpp"

namespace holdfast::cli {

Action import_warc_verb(CLI::App& command);

} // namespace holdfast::cli
