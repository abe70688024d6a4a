#include "services/worker/hook/try_browser.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/process/launcher.hpp"

#include <cstdlib>

namespace holdfast::worker {

namespace {

constexpr std::chrono::seconds kLongest{60};

} // namespace

std::string last_line(const std::filesystem::path& log) {
  const auto lines = base::split(base::tail_of(log, 4096), "\n");
  return lines.empty() ? std::string() : lines.back();
}

BrowserState try_browser(const Options& options, const SandboxState& state, const std::string& program,
                         const std::filesystem::path& place) {
  const auto home = place / "home";
  // Short, because browsers put sockets there (Scratch::temporary).
  const auto shown = state.sandbox.level == process::SandboxLevel::full ? std::filesystem::path("/tmp")
                     : options.temporary_dir.empty()                    ? home
                                                     : options.temporary_dir / place.filename() / "home";
  process::Command command;
  command.argv = {process::executable_directory() / "holdfast-capture", "browser"};
  command.environment = {"PATH=/usr/bin:/bin", "BROWSER_BINARY=" + program, "HOME=" + shown.native(),
                         "TMPDIR=" + shown.native(), "CRAWL_DIR=" + home.native()};
  if (const char* own = std::getenv("CHROME_SANDBOX"))
    process::set_variable(command.environment, "CHROME_SANDBOX", own);
  command.directory = home;
  command.stdout_path = place / "stdout";
  command.stderr_path = place / "stderr";
  command.cookie = "HOLDFAST_COOKIE=doctor." + base::random_hex32();
  try {
    std::filesystem::create_directories(home);
    std::filesystem::permissions(place, std::filesystem::perms(0711)); // hooks may be another user
    const auto user = state.users.lease();
    command.sandbox = state.with(user);
    command.sandbox.writable = {home};
    command.sandbox.temporary = home;
    give_to_hooks(command.sandbox, home);
    const bool starts = process::run_to_end(options.shim, command, kLongest).clean();
    const auto words = last_line(starts ? command.stdout_path : command.stderr_path);
    return {starts, words.empty() ? "it does not start" : words};
  } catch (const std::exception& error) {
    return {false, error.what()};
  }
}

} // namespace holdfast::worker
