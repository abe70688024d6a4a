#include "lib/archive/file_work.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/time.hpp"
#include "lib/catalog/list.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/collection.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

namespace holdfast::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMost = 100'000; // snapshots of a crawl
constexpr std::chrono::milliseconds kLogPoll{300};
constexpr std::uint64_t kTail = 64u << 10; // of a log that is there already
constexpr std::size_t kReadAtOnce = 1u << 20;

// The hook and the stream of a log, by its name: "on_Snapshot__35_wget.<32 hex>.stderr.log".
std::optional<std::pair<std::string, std::string>> log_named(const std::string& name) {
  static const std::regex kLog("(.*)\\.[0-9a-f]{32}\\.(stdout|stderr)\\.log");
  std::smatch parts;
  return std::regex_match(name, parts, kLog) ? std::optional(std::pair(parts.str(1), parts.str(2))) : std::nullopt;
}

// Returns names in a directory below `top`; none if it does not exist or is a link, which a hook may have left in its
// place: users run this verb as root, and its output goes further than the files that root may read.
std::vector<std::string> names_below(const fs::path& top, const fs::path& relative) {
  const auto directory = archive::open_below(top, relative, O_RDONLY | O_DIRECTORY);
  if (!directory) return {};
  try {
    return archive::list_names(directory.get(), (top / relative).native());
  } catch (const base::Error&) { // removed meanwhile
    return {};
  }
}

// Prints files as they grow. A file is identified by its name, which is random: it is the same in the archive as it was
// in the scratch directory.
class Printer {
public:
  Printer(Context& context, std::string plugin) : json_(context.json()), plugin_(std::move(plugin)) {}

  // Everything new in the logs of a snapshot's directory, relative to `top`.
  void look(const fs::path& top, const fs::path& directory, const std::string& url) {
    for (const auto& plugin : names_below(top, directory))
      for (const auto& name : names_below(top, directory / plugin))
        take(plugin, name, url, [&] { return archive::open_file_below(top, directory / plugin / name); });
  }

  // Does the same for an attempt that was published: its manifest lists the logs.
  void look(Collection& collection, const pg::Row& row) {
    const auto directory = row["directory"].value_or("");
    const auto open = [&](const std::string& file) { return collection.open(row["id"], directory, file); };
    const auto manifest = directory.empty() ? base::Fd() : open(archive::kManifestName);
    std::istringstream lines(manifest ? archive::read_rest(manifest.get(), archive::kManifestName) : "");
    for (std::string line; std::getline(lines, line);) {
      if (line.size() < 67) continue; // 64 digits, two spaces, a path
      const fs::path file(line.substr(66));
      if (std::distance(file.begin(), file.end()) == 2)
        take(file.parent_path(), file.filename(), row.text("url"), [&] { return open(file.native()); });
    }
  }

  void print(const std::string& url, const std::string& plugin, const std::string& hook, const std::string& stream,
             const std::string& text) {
    printed_ = true;
    if (json_) {
      print_record("Log", {{"url", url}, {"plugin", plugin}, {"hook_name", hook}, {"stream", stream}, {"text", text}});
      return;
    }
    const std::string title = plugin + "/" + hook + " " + stream + "  " + url;
    if (title != title_) std::cout << (title_.empty() ? "" : "\n") << "==> " << printable(title) << " <==\n";
    title_ = title;
    std::string line;
    for (const char letter : text) { // line by line: what steers terminals is taken out, what parts lines is not
      if (letter != '\n' && letter != '\t') {
        line += letter;
        continue;
      }
      std::cout << printable(line) << letter;
      line.clear();
    }
    std::cout << printable(line);
    if (!line.empty() && !following_) std::cout << '\n';
  }

  void follow() { following_ = true; }
  bool printed() const { return printed_; }

private:
  // Prints what is new in a file of a plugin's directory, if it is a log. `open` may find no file.
  void take(const std::string& plugin, const std::string& name, const std::string& url,
            const std::function<base::Fd()>& open) {
    const auto log = plugin_.empty() || plugin == plugin_ ? log_named(name) : std::nullopt;
    if (!log) return;
    const auto file = open();
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const auto known = offsets_.find(name);
    std::uint64_t from = known != offsets_.end() ? known->second : size > kTail ? size - kTail : 0;
    if (from > size) from = 0; // the hook has emptied it
    auto cut = known == offsets_.end() && from > 0
                   ? "(the last " + base::format_size(kTail) + " of " + base::format_size(size) + ")\n"
                   : "";
    while (from < size) {
      std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(size - from, kReadAtOnce)), '\0');
      const auto got = base::read_at(file.get(), text.data(), text.size(), from);
      if (got <= 0) break;
      text.resize(static_cast<std::size_t>(got));
      from += text.size();
      print(url, plugin, log->first, log->second, std::exchange(cut, "") + text);
    }
    offsets_[name] = from;
  }

  const bool json_;
  const std::string plugin_;
  bool following_{false}, printed_{false};
  std::string title_;
  std::map<std::string, std::uint64_t> offsets_;
};

// Attempts at a snapshot that run on this machine, relative to the work directory.
std::vector<fs::path> running_here(const fs::path& work_dir, const std::string& snapshot) {
  std::vector<fs::path> found;
  const fs::path workers = "workers";
  for (const auto& worker : names_below(work_dir, workers)) {
    const auto crawls = workers / worker / "attempts";
    for (const auto& crawl : names_below(work_dir, crawls))
      for (const auto& attempt : names_below(work_dir, crawls / crawl / snapshot))
        found.push_back(crawls / crawl / snapshot / attempt);
  }
  return found;
}

// The snapshots whose logs are printed, each sealed one once.
class Snapshots {
public:
  Snapshots(Context& context, Printer& printer)
      : context_(context), printer_(printer), work_dir_(context.settings().path("work_dir")) {}

  // Prints new output. Returns false if all are sealed.
  bool look(const pg::Result& rows) {
    bool open = false;
    elsewhere_.clear();
    for (const auto row : rows) {
      const auto id = row.text("id");
      if (done_.contains(id)) continue;
      if (row.text("status") == "sealed") {
        printer_.look(context_.collection(), row);
        done_.insert(id);
        continue;
      }
      open = true;
      const auto places = running_here(work_dir_, id);
      for (const auto& place : places)
        printer_.look(work_dir_, place, row.text("url"));
      if (places.empty() && row.text("status") == "started") elsewhere_ = row["owner"].value_or("");
    }
    std::cout << std::flush;
    return open;
  }

  // The worker on another machine that one of them runs on; empty: there is none.
  const std::string& elsewhere() const { return elsewhere_; }

private:
  Context& context_;
  Printer& printer_;
  const fs::path work_dir_;
  std::set<std::string> done_;
  std::string elsewhere_;
};

struct LogOptions {
  std::string id, plugin;
  bool follow{false};
};

int logs(Context& context, const LogOptions& options) {
  auto& collection = context.collection();
  const auto found = collection.find(options.id, store::FindAs::newest);
  if (found.kind == "process")
    throw base::Error(base::ErrorClass::refused, "hooks have logs, processes have not",
                      "holdfast logs takes the id of a snapshot or a crawl; holdfast why " + options.id);
  Printer printer(context, options.plugin);
  if (options.follow) printer.follow();
  if (found.kind == "crawl") {
    const auto sessions = collection.rows(catalog::ListQuery{"logs", kMost}.by("crawl", found.id));
    for (const auto one : sessions)
      if (options.plugin.empty() || one.text("plugin") == options.plugin)
        printer.print("crawl " + found.id + " on " + one.text("worker"), one["plugin"], one["hook_name"], "log",
                      one["log"]);
  }
  catalog::ListQuery query{"snapshots", kMost};
  query.by("crawl", found.kind == "crawl" ? found.id : found.crawl_id);
  if (found.kind == "snapshot") query.by("snapshot", found.id);
  Snapshots snapshots(context, printer);
  for (;;) {
    const bool ending = interrupted();
    const bool open = snapshots.look(collection.rows(query));
    if (ending) return base::kExitInterrupted;
    if (!options.follow || !open || !std::cout) break;
    interrupted_within(kLogPoll);
  }
  if (const auto& elsewhere = snapshots.elsewhere(); !elsewhere.empty() && !context.json())
    std::cerr << "it runs on another machine (" << printable(elsewhere)
              << "): what runs there is to be seen there alone\n";
  else if (!printer.printed() && !context.json())
    std::cerr << "no logs: those of hooks that succeed are not kept\n";
  return base::kExitSuccess;
}

} // namespace

Action logs_verb(CLI::App& command) {
  const auto options = std::make_shared<LogOptions>();
  command.add_option("id", options->id, "Id of a snapshot or crawl, or the first or last few digits of it")->required();
  command.add_flag("-f,--follow", options->follow, "Keep printing until it is sealed");
  command.add_option("-p,--plugin", options->plugin, "Only of this plugin");
  command.footer("Hooks that succeed leave no logs. What a hook may print is limited by hook.stdout_limit and "
                 "hook.stderr_limit;\n"
                 "of long logs the end is shown.");
  return [options](Context& context) { return logs(context, *options); };
}

} // namespace holdfast::cli
