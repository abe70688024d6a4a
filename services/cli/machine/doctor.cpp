#include "lib/base/address.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/uuid.hpp"
#include "lib/hooks/binary.hpp"
#include "lib/pg/migrator.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/schema.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/directories.hpp"
#include "services/cli/machine/machine_plugins.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/worker/hook/binary_lookup.hpp"
#include "services/worker/hook/binary_resolver.hpp"
#include "services/worker/hook/browser_watch.hpp"
#include "services/worker/hook/hook_network.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/machine/free_resources.hpp"

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

namespace holdfast::cli {

namespace {

// Asks binaries for their versions, one after the other, once each.
class Versions {
public:
  Versions()
      : launcher_(std::make_unique<process::Launcher>(io_.get_executor(),
                                                      process::executable_directory() / "holdfast-shim")) {}

  const std::string& of(const std::string& path) {
    const auto known = versions_.find(path);
    if (known != versions_.end()) return known->second;
    return versions_[path] = hooks::version_in(output_of({path, "--version"}));
  }

  std::string output_of(std::vector<std::string> argv) {
    std::string output;
    std::shared_ptr<process::Child> running;
    asio::co_spawn(io_,
                   worker::binary_output(*launcher_, std::move(argv), scratch_.path(),
                                         "HOLDFAST_COOKIE=doctor." + base::random_hex32(), running),
                   [&](std::exception_ptr, std::string answer) { output = std::move(answer); });
    io_.restart();
    io_.run();
    return output;
  }

private:
  TemporaryDirectory scratch_{"doctor"};
  asio::io_context io_;
  std::unique_ptr<process::Launcher> launcher_;
  std::map<std::string, std::string> versions_;
};

// The plugins of ArchiveBox and their requirements are installed together, into a directory of their own, which the
// options of its plugins name. Packages that apt-get or npm install elsewhere are not found there.
constexpr const char* kInstaller = "plugins install abx";

std::string command_of(const hooks::Installation& installation) {
  if (installation.manager != kInstaller) return installation.command();
  return std::string("holdfast ") + kInstaller + " -p " + base::join(installation.packages, ",");
}

struct Finding {
  std::string plugin, binary, state, path, version, wanted, install;
};

// Interpreters are no entries of required_binaries, but no hook runs without its own.
std::vector<hooks::WantedBinary> needs_of(const hooks::Plugin& plugin, const hooks::Options& resolved) {
  auto needs = hooks::wanted_binaries(plugin, resolved);
  for (const auto& hook : plugin.hooks) {
    const auto interpreter = hooks::interpreter_of(hook);
    const auto same = [&](const hooks::WantedBinary& binary) {
      return std::filesystem::path(binary.name).filename() == std::filesystem::path(interpreter).filename();
    };
    if (interpreter.empty() || std::any_of(needs.begin(), needs.end(), same)) continue;
    hooks::WantedBinary binary;
    binary.name = interpreter;
    binary.providers = "env,apt,brew";
    if (interpreter == "node") binary.overrides = R"({"apt": ["nodejs"]})";
    needs.push_back(std::move(binary));
  }
  return needs;
}

// Prints one line for each program: its place or how it can be installed, and the plugins that require it.
void print_findings(const std::vector<Finding>& findings) {
  std::vector<std::pair<Finding, std::string>> lines; // and all its plugins
  for (const auto& finding : findings) {
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const auto& line) {
      const auto& other = line.first;
      return !finding.binary.empty() && finding.plugin != "fonts" && other.binary == finding.binary &&
             other.state == finding.state && other.wanted == finding.wanted && other.install == finding.install;
    });
    if (same == lines.end())
      lines.emplace_back(finding, finding.plugin);
    else
      same->second += ", " + finding.plugin;
  }
  const auto column = [](const std::string& text, std::size_t width) {
    const auto cut = fitted(printable(text), width);
    return cut + std::string(width > display_width(cut) ? width - display_width(cut) : 0, ' ') + "  ";
  };
  for (const auto& [finding, plugins] : lines) {
    std::cout << column(finding.state, 16) << column(std::filesystem::path(finding.binary).filename().string(), 20)
              << printable(finding.path.empty() ? finding.install : finding.path + " " + finding.version);
    if (finding.state == "old")
      std::cout << ", " << printable(finding.wanted) << " or newer is wanted: " << printable(finding.install);
    std::cout << " (" << printable(plugins) << ")\n";
  }
}

// Free space where files are written. The nearest directory that is there stands for one that will be made.
std::string space_at(const std::filesystem::path& path) {
  if (path.native().starts_with("s3:")) return path.string();
  std::error_code error;
  auto place = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(place, error) && place.has_relative_path())
    place = place.parent_path();
  const auto space = std::filesystem::space(place, error);
  return path.string() + (error ? "" : ", " + base::format_size(space.available) + " free");
}

// Requirements of the plugins of this machine, and where they are.
class Examination {
public:
  explicit Examination(const worker::Options& options)
      : options_(options), binaries_(options.binary_directories, options.data_dir / "lib") {
    for (const auto& manager : kManagers)
      if (binaries_.locate(manager)) available_.push_back(manager);
  }

  void look_at(const hooks::Plugin& plugin) {
    const auto& name = plugin.name;
    hooks::Options resolved;
    try {
      resolved = hooks::resolve_options(*options_.plugin_set, plugin, options_.hook_options);
    } catch (const base::Error& error) {
      findings_.push_back({name, "", "wrong option", "", "", "", error.what()});
      return;
    }
    const auto before = findings_.size();
    for (const auto& binary : needs_of(plugin, resolved))
      look_for(plugin, binary);
    if (findings_.size() == before) findings_.push_back({name, "", "needs nothing", "", "", "", ""});
  }

  // Pages need fonts, if there is a browser.
  void look_for_fonts() {
    const bool browser = std::any_of(findings_.begin(), findings_.end(), [](const Finding& finding) {
      return finding.binary.find("chrom") != std::string::npos && finding.state == "found";
    });
    if (!browser) return;
    const auto run = [&](std::vector<std::string> argv) {
      const auto path = locate(argv.front());
      if (!path) return std::string();
      argv.front() = *path;
      return versions_.output_of(std::move(argv));
    };
    const bool apt = std::find(available_.begin(), available_.end(), "apt-get") != available_.end();
    // Without the programs of fontconfig the fonts are unknown.
    for (const auto& need :
         locate("fc-list") ? font_needs(run) : std::vector<FontNeed>{{"fc-list", "fontconfig", ""}}) {
      Finding finding{"fonts", need.what, need.found.empty() ? "missing" : "found", need.found, "", "", ""};
      const hooks::Installation installation{"apt-get", {need.package}};
      if (need.found.empty()) {
        finding.install = apt ? installation.command() : "by hand (" + need.package + ")";
        if (apt) want(installation);
      }
      findings_.push_back(std::move(finding));
    }
  }

  // Returns the path and version of a program that is no plugin's; empty: it is not installed.
  std::string program(const std::string& name) {
    const auto path = locate(name);
    return path ? *path + " " + versions_.of(*path) : "";
  }

  const std::vector<Finding>& findings() const { return findings_; }
  const std::map<std::string, std::vector<std::string>>& packages() const { return packages_; }

private:
  static inline const std::vector<std::string> kManagers{"apt-get", "brew", "npm", "pipx", "cargo"};

  // The stand-in for abxpkg, and our own programs, are what hooks find last.
  std::optional<std::string> locate(const std::string& name) {
    auto path = binaries_.locate(name);
    if (!path) path = hooks::find_binary(name, hooks::path_directories(options_.last_on_path()));
    return path;
  }

  // Returns how the binary of a plugin is installed here, or nothing.
  std::optional<hooks::Installation> way_to(const hooks::Plugin& plugin, const hooks::WantedBinary& binary) const {
    const auto set = (options_.data_dir / "lib/abx").lexically_normal().native() + "/";
    if (!plugin.directory.lexically_normal().native().starts_with(set))
      return hooks::installation_of(binary, available_);
    // Others come from places that the installer does not support either.
    if (!hooks::installation_of(binary, kManagers)) return std::nullopt;
    return hooks::Installation{kInstaller, {plugin.name}};
  }

  void look_for(const hooks::Plugin& plugin, const hooks::WantedBinary& binary) {
    Finding finding{plugin.name, binary.name, "", "", "", binary.min_version, ""};
    if (const auto path = locate(binary.name)) {
      finding.path = *path;
      finding.version = versions_.of(*path);
      finding.state = hooks::older(finding.version, binary.min_version) ? "old" : "found";
    } else {
      finding.state = binary.from_environment ? "missing" : "left to the hook";
    }
    if (finding.state == "missing" || finding.state == "old") {
      if (const auto installation = way_to(plugin, binary)) {
        finding.install = command_of(*installation);
        // The installer has taken the newest already.
        if (finding.state == "missing" || installation->manager != kInstaller) want(*installation);
      } else {
        finding.install =
            "by hand (" + (binary.providers.empty() ? std::string("no provider named") : binary.providers) + ")";
      }
    }
    findings_.push_back(std::move(finding));
  }

  void want(const hooks::Installation& installation) {
    auto& wanted = packages_[installation.manager];
    for (const auto& package : installation.packages)
      if (std::find(wanted.begin(), wanted.end(), package) == wanted.end()) wanted.push_back(package);
  }

  const worker::Options& options_;
  worker::BinaryLookup binaries_;
  std::vector<std::string> available_; // package managers
  Versions versions_;
  std::vector<Finding> findings_;
  std::map<std::string, std::vector<std::string>> packages_; // by manager
};

void print_findings_as_json(const std::vector<Finding>& findings) {
  for (const auto& finding : findings)
    print_record("Need", {{"plugin", finding.plugin},
                          {"binary", finding.binary},
                          {"state", finding.state},
                          {"path", finding.path},
                          {"version", finding.version},
                          {"wanted", finding.wanted},
                          {"install", finding.install}});
}

struct HookSurroundings {
  std::string sandbox, network;
  std::optional<worker::BrowserState> browser; // none: no plugin needs it, or it is missing
};

HookSurroundings describe_surroundings(const worker::Options& options, const std::string& browser) {
  HookSurroundings found;
  std::optional<worker::SandboxState> chosen;
  try {
    chosen = worker::choose_sandbox(options, options.work_dir);
    found.sandbox = chosen->description;
    found.network = worker::HookNetworks(options, *chosen).description();
  } catch (const base::Error& error) {
    (found.sandbox.empty() ? found.sandbox : found.network) = std::string("none: ") + error.what();
  }
  if (chosen && !browser.empty())
    found.browser = worker::try_browser(options, *chosen, browser, TemporaryDirectory("browser").path());
  return found;
}

// Returns problems of this machine's clock, certificates and key of personas; empty: none.
std::vector<std::string> machine_problems(const worker::Options& options) {
  std::vector<std::string> problems;
  if (const auto clock = worker::clock_trouble(); !clock.empty()) problems.push_back(clock);
  if (!options.key_ring_problem.empty()) problems.push_back(options.key_ring_problem);
  const char* const own = std::getenv("SSL_CERT_FILE");
  const std::filesystem::path certificates = own != nullptr ? own : "/etc/ssl/certs/ca-certificates.crt";
  std::error_code error;
  if (const auto size = std::filesystem::file_size(certificates, error); error || size == 0)
    problems.push_back("there are no certificates to check sites with, " + certificates.native() +
                       " is missing or empty: install ca-certificates");
  return problems;
}

// Returns what an external database lacks or makes wait, or why there is none; empty: nothing.
std::vector<std::string> database_problems(Context& context) {
  if (context.embedded()) return {};
  std::vector<std::string> problems;
  try {
    pg::Connection connection(context.dsn());
    for (const auto& [what, remedy] : pg::unmet_preconditions(connection))
      problems.push_back("needs " + what + ": " + remedy);
    if (store::has_schema(connection))
      for (auto& problem : store::database_problems(connection))
        problems.push_back(std::move(problem));
  } catch (const base::Error& error) {
    problems.push_back(error.what() + (error.hint().empty() ? "" : ": " + error.hint()));
  }
  return problems;
}

int doctor(Context& context, const std::vector<std::string>& plugins) {
  const auto options = context.worker_options(false);
  const auto selected = hooks::selected_plugins(*options.plugin_set, plugins, options.hook_options);
  Examination examination(options);
  for (const auto& name : selected)
    examination.look_at(*options.plugin_set->find(name));
  examination.look_for_fonts();
  const auto& findings = examination.findings();
  const auto missing = std::count_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.state == "missing" || finding.state == "wrong option";
  });
  const auto browser = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.plugin == "browser" && finding.state == "found";
  });
  const auto hooks = describe_surroundings(options, browser == findings.end() ? "" : browser->path);
  const auto of_browser = hooks.browser ? hooks.browser->description : "none";
  const auto problems = database_problems(context);
  auto of_machine = machine_problems(options);
  const auto apprise = examination.program("apprise");
  const bool notifies = !context.settings().path("apprise.config").empty();
  if (notifies && apprise.empty())
    of_machine.emplace_back("apprise.config is set, and the program apprise is missing: pipx install apprise");
  const auto of_archive = archive::find_trouble(context.archive_root());
  const bool named = base::name_server_answers();
  const std::string cgroups = (options.cgroups ? process::Cgroups::find() : process::Cgroups()).describe();
  if (context.json()) {
    print_findings_as_json(findings);
    print_record("Machine", {{"cgroups", cgroups},
                             {"sandbox", hooks.sandbox},
                             {"network", hooks.network},
                             {"browser", of_browser},
                             {"database", problems},
                             {"archive", of_archive},
                             {"apprise", apprise},
                             {"problems", of_machine},
                             {"name_server", named}});
  } else {
    print_findings(findings);
    if (selected.empty()) std::cout << "no plugin is enabled: set plugins.path\n";
    if (!examination.packages().empty()) std::cout << "\nTo install what can be:\n";
    for (const auto& [manager, names] : examination.packages())
      std::cout << "  " << command_of({manager, names}) << '\n';
    if (missing == 0 && !selected.empty()) std::cout << "\nNothing is missing on this machine.\n";
    std::cout << "\nDatabase: "
              << (context.embedded() ? "its own"
                  : problems.empty() ? "has what it needs"
                                     : "")
              << '\n';
    for (const auto& problem : problems)
      std::cout << "  " << printable(problem) << '\n';
    std::cout << "Archive: "
              << printable(of_archive.empty() ? space_at(context.archive_root()) : "takes no pages: " + of_archive)
              << "\nWork directory: " << printable(space_at(options.work_dir)) << '\n';
    std::cout << "\nCgroups of hooks that are started from here: " << cgroups << '\n'
              << "Sandbox of hooks that are started from here: " << hooks.sandbox << '\n'
              << "Network of hooks that are started from here: " << hooks.network << '\n'
              << "Browser: " << of_browser << '\n'
              << "Apprise: " << (apprise.empty() ? "not installed" : printable(apprise))
              << (notifies ? "" : " (apprise.config is not set)") << '\n'
              << "Name server: " << (named ? "answers" : "none answers (/etc/resolv.conf)") << '\n';
    for (const auto& problem : of_machine)
      std::cout << "This machine: " << printable(problem) << '\n';
  }
  std::cout << std::flush;
  return missing == 0 && problems.empty() && of_machine.empty() && of_archive.empty() &&
                 (!hooks.browser || hooks.browser->starts)
             ? base::kExitSuccess
             : base::kExitFailedWork;
}

} // namespace

Action doctor_verb(CLI::App& command) {
  const auto names = std::make_shared<std::vector<std::string>>();
  command.add_option("plugins", *names, "Only these (default: all that are enabled)");
  command.footer("Exits with 1 if something is missing, here or in the database server, if the browser does not "
                 "start, or if the clock is wrong.");
  return [names](Context& context) { return doctor(context, *names); };
}

} // namespace holdfast::cli
