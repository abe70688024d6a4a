#include "services/webhook/apprise.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/process/subprocess.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>

namespace holdfast::webhook {

// Leaves the output of the program alone, because it may name the URLs of services.
std::string send_by_apprise(const std::string& program, const std::filesystem::path& config, const std::string& tag,
                            const Notice& notice, std::chrono::milliseconds limit) try {
  constexpr int kNoService = 3;
  base::secret_text(config, "apprise.config"); // refuses a file that others may read
  const base::Fd text(::memfd_create("holdfast-notice", MFD_CLOEXEC));
  if (!text || !base::write_all(text.get(), notice.subject + "\n\n" + notice.text) ||
      ::lseek(text.get(), 0, SEEK_SET) != 0)
    return "no memory for the text: " + base::errno_text(errno);
  process::Program run;
  run.argv = {program, "--config=" + config.string(), "--tag=" + tag, "--title=Holdfast", "--input-format=text"};
  run.environment = {"LC_ALL=C.UTF-8"}; // and nothing that may hold a secret
  for (const char* name : {"PATH", "HOME", "http_proxy", "https_proxy", "no_proxy"})
    if (const char* value = std::getenv(name)) run.environment.push_back(std::string(name) + "=" + value);
  run.input = text.get();
  const auto status = process::run_to_end(run, limit);
  if (!status) return "apprise did not end within the time limit";
  if (*status == 0) return "";
  const auto command = "apprise --config=" + config.string() + " --tag=" + tag + " --body=test -vv";
  if (*status == kNoService) return "no service has the tag " + tag + " in " + config.string();
  return "apprise ended with " + std::to_string(*status) + "; to see why: " + command;
} catch (const base::Error& error) {
  return error.what();
}

} // namespace holdfast::webhook
