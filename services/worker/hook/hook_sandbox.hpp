#pragma once
// Files that the hooks of this worker may see: the part of each sandbox that is the same for all of them. A pure
// function of the worker's options and of the paths that exist.

#include "lib/process/hook_users.hpp"
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
  process::HookUsers users; // whom hooks in it run as
  // For the log and for holdfast doctor: the level, the users that hooks run as if they are others, and why the level
  // is not a higher one. "full, each crawl's as a user of their own (50000 to 59999)", "user (not full: cannot enter
  // its sandbox: ...)", "none: ...".
  std::string description;

  // For the hooks of one crawl: as the user who was leased for them, if any.
  process::Sandbox with(const std::shared_ptr<const process::HookUser>& user) const;
};

// Decides by hook.sandbox and by what works here. Throws Error(unavailable) if level full is required and does not
// work, and Error(configuration) if hook.users is no range.
SandboxState choose_sandbox(const Options& options, const std::filesystem::path& work_dir);

// Makes a directory, with all that is in it, the hook's own where hooks run as another user, and closes it to all
// others. Links are not followed.
// Throws Error if the directory is not there.
void give_to_hooks(const process::Sandbox& sandbox, const std::filesystem::path& directory);
// Writes a file in a directory of hooks, or replaces it. Follows no link that a hook may have left there. Returns
// false, with errno, if it cannot be written.
bool replace_own_file(const std::filesystem::path& file, std::string_view text, mode_t mode);
// Takes it back, before it is published.
void take_from_hooks(const process::Sandbox& sandbox, const std::filesystem::path& directory);

} // namespace holdfast::worker
