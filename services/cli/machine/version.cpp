#include "lib/base/error.hpp"
#include "lib/store/schema.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>

namespace holdfast::cli {

namespace {

int version(Context& context) {
  if (context.json())
    print_record("Version", {{"version", HOLDFAST_VERSION}, {"revision", store::migrator().revision()}});
  else
    std::cout << "holdfast " << HOLDFAST_VERSION << ", schema revision " << store::migrator().revision() << std::endl;
  return base::kExitSuccess;
}

} // namespace

Action version_verb(CLI::App&) { return &version; }

} // namespace holdfast::cli
