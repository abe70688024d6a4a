#pragma once
// The directory of one attempt while its hooks run: whose files are in it, and whether a hook has touched those of
// another. Owned by SnapshotJob; main thread only, with the blocking work on the files thread.

#include "lib/archive/attempt.hpp"
#include "lib/base/async.hpp"
#include "lib/hooks/catalog.hpp"
#include "services/worker/hook/hook_services.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::worker {

class AttemptFiles {
public:
  // `results`: of the hooks so far, running ones included; what a hook changes afterwards is corrected there.
  // `most`: bytes that the page may have, 0: any number.
  AttemptFiles(HookServices& context, std::filesystem::path directory, std::vector<archive::ResultView>& results,
               std::uint64_t most)
      : context_(context), directory_(std::move(directory)), results_(results), most_(most) {}

  const std::filesystem::path& directory() const noexcept { return directory_; }
  // For hooks in this sandbox.
  awaitable<void> make(const process::Sandbox& sandbox);
  // /tmp of the hooks in their sandbox.
  std::filesystem::path temporary() const;
  // Blocking. Throws Error(refused) unless the directory is still the one that was made: what is not must not be
  // tidied up, nor published.
  void check() const;
  // Files that an ended hook left, without those of other hooks of its plugin before; paths relative to the attempt.
  // Everything is measured before anything is read: if the plugin's directory holds more than hook.output_limit or the
  // page may have, its files are removed, and `refusal` has the reason.
  struct Left {
    std::vector<archive::OutputFile> files;
    archive::Survey survey;        // of the attempt, once the plugin's directory is tidy
    std::vector<std::string> lost; // paths too long or too deep to be kept
    std::string refusal;
  };
  awaitable<Left> left_by(const archive::ResultView& result);
  // Blocking. Throws Error(refused) if the attempt holds more than the page may have, or if what lies in no directory
  // of a plugin is more than hook.output_limit.
  void check_weight() const;
  // Throws Error(input_output) if the attempt has to be copied and the archive has no space for it, while there would
  // be space for others. That counts as an attempt: every other try would fetch the page in vain. Blocking.
  void check_room(const archive::Root& root) const;
  // Scans and publications end early, with Error(temporary).
  void abandon() noexcept { abandoned_ = true; }
  const std::atomic<bool>& abandoned() const noexcept { return abandoned_; }

  // Finds writes of a hook into other plugins' directories. Hooks of one snapshot run as the same user and can write
  // there. Files that were changed, or only touched, in the directory of a plugin whose hooks have all ended may not be
  // of that plugin (the files are not hashed before they are published, and a hook can set times back): its results are
  // made to list the present files, and to name the suspects. Returns the changes of `hook`, which has just ended, if
  // it can only have been that one. `running`: plugin and name of `hook` and of those that run beside it.
  using Names = std::vector<std::pair<std::string, std::string>>;
  // `survey`: after `hook`.
  awaitable<std::string> find_meddling(const hooks::Hook& hook, const archive::Survey& survey, Names running,
                                       bool beside_crawl_hooks);
  // Plugins whose files were changed after they had ended.
  const std::set<std::string>& spoiled() const noexcept { return spoiled_; }

  // Returns the size of the plugin's directory so far, by results.
  std::uint64_t bytes_of(const std::string& plugin) const;
  awaitable<void> drop(const std::vector<archive::OutputFile>& files);
  void remove_all() noexcept; // blocking

  // "not kept, because their paths are too long or too deep (2): ..."; "" if there are none.
  static std::string describe_lost(const std::vector<std::string>& lost);

private:
  std::map<std::string, archive::ScanReport> changes_beside(const archive::Survey& survey,
                                                            const std::set<std::string>& busy) const;
  std::string overweight(const archive::Survey& survey, const std::string& plugin) const;
  void refuse_astray(const archive::Survey& survey) const;
  void forget_files_of(const archive::ResultView& culprit);
  std::vector<std::string> remove_planted(const archive::Survey& survey) const;
  std::vector<std::string> correct(const std::string& plugin, std::vector<archive::OutputFile> files,
                                   const archive::Trace& before);

  HookServices& context_;
  const std::filesystem::path directory_;
  std::vector<archive::ResultView>& results_;
  const std::uint64_t most_;
  std::atomic<bool> abandoned_{false};
  std::pair<std::uint64_t, std::uint64_t> inode_; // device and number: hooks could put another in its place
  std::map<std::string, archive::Trace> left_;    // by plugin: its directory as its last hook left it
  std::set<std::string> spoiled_;
};

} // namespace holdfast::worker
