#pragma once
// What the hooks of this worker may see: the part of each sandbox that is the same for all of them. A pure function of
// the worker's options and of the paths that exist.

#include "lib/process/sandbox.hpp"
#include "services/worker/options.hpp"

#include <filesystem>
#include <string>

namespace holdfast::worker {

// Hidden: data_dir, work_dir, the archive, the database's socket directory, files with secrets, the home directory,
// /run. Shown read-only where they lie in one of these: plugins, what program options name, directories of PATH, the
// library and the personas. `work_dir` is that of the settings, above the worker's own. At level user, what is shown is
// listed instead: these, and the largest directories in which nothing is hidden.
process::Sandbox hook_sandbox(const Options& options, const std::filesystem::path& work_dir,
                              process::SandboxLevel level);

struct SandboxState {
  process::Sandbox sandbox; // level none: hooks have none
  // For the log and for holdfast doctor: the level, the user that hooks run as if it is another one, and why the level
  // is not a higher one. "full, as user nobody", "user (not full: cannot enter its sandbox: ...)", "none: ...".
  std::string description;
};

// Decides by hook.sandbox and by what works here. Throws Error(unavailable) if level full is required and does not
// work, and Error(configuration) if hook.user is no user.
SandboxState choose_sandbox(const Options& options, const std::filesystem::path& work_dir);

// Makes a directory, with all that is in it, the hook's own where hooks run as another user. Links are not followed.
// Throws Error if the directory is not there.
void give_to_hooks(const process::Sandbox& sandbox, const std::filesystem::path& directory);
// Takes it back, before it is published.
void take_from_hooks(const process::Sandbox& sandbox, const std::filesystem::path& directory);

} // namespace holdfast::worker
