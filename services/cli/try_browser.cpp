#include "services/cli/try_browser.hpp"

#include "lib/base/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/process/launcher.hpp"
#include "services/cli/temporary_directory.hpp"

#include <cstdlib>

namespace holdfast::cli {

namespace {

constexpr std::chrono::seconds kLongest{60};

// The last line of a log, without its end.
std::string last_line(const std::filesystem::path& log) {
  const auto lines = base::split(base::tail_of(log, 4096), "\n");
  return lines.empty() ? std::string() : lines.back();
}

} // namespace

BrowserState try_browser(const worker::Options& options, const worker::SandboxState& state,
                         const std::string& program) {
  const TemporaryDirectory place("browser"), log("browser-log");
  process::Command command;
  command.argv = {process::executable_directory() / "holdfast-capture", "browser"};
  command.environment = {"PATH=/usr/bin:/bin", "BROWSER_BINARY=" + program, "HOME=" + place.path().native(),
                         "TMPDIR=" + place.path().native(), "CRAWL_DIR=" + place.path().native()};
  if (const char* own = std::getenv("CHROME_SANDBOX"))
    process::set_variable(command.environment, "CHROME_SANDBOX", own);
  command.directory = place.path();
  command.stdout_path = log.path() / "stdout";
  command.stderr_path = log.path() / "stderr";
  command.cookie = "HOLDFAST_COOKIE=doctor." + base::random_hex32();
  const auto user = state.users.lease();
  command.sandbox = state.with(user);
  command.sandbox.writable = {place.path()};
  command.sandbox.temporary = place.path();
  worker::give_to_hooks(command.sandbox, place.path());

  const bool starts = process::run_to_end(options.shim, command, kLongest).clean();
  const auto words = last_line(starts ? command.stdout_path : command.stderr_path);
  return {starts, words.empty() ? "the browser does not start" : words};
}

} // namespace holdfast::cli
