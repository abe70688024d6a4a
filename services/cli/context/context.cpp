#include "services/cli/context/context.hpp"

#include "lib/base/address.hpp"
#include "lib/base/error.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text/text.hpp"
#include "lib/pg/connection.hpp"
#include "lib/pg/conninfo.hpp"
#include "lib/pg/hosts.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/schema.hpp"
#include "services/cli/context/collection.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/machine/machine_plugins.hpp"
#include "services/serve/endpoint.hpp"
#include "services/worker/hook/binary_lookup.hpp"
#include "services/worker/machine/free_resources.hpp"

#include <spdlog/spdlog.h>

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <map>

extern char** environ;

namespace holdfast::cli {

namespace {

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (const auto equals = text.find('='); equals != std::string::npos)
      all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return all;
}

// Returns the path of the generated key of personas, if the settings name no file.
std::filesystem::path made_key(const config::Settings& settings) { return settings.path("data_dir") / "persona.key"; }

// Returns the paths that no hook may see: files with secrets, and the directory of the database's socket.
std::vector<std::filesystem::path> secret_paths(const config::Settings& settings, const std::string& dsn) {
  std::vector<std::filesystem::path> paths{settings.file()};
  for (const char* key : {"database.password_file", "webhooks.secret_file", "mail.password_file", "apprise.config",
                          "persona.key_file", "token_file"})
    paths.push_back(settings.path(key));
  paths.push_back(made_key(settings));
  for (const auto& host : pg::socket_directories(dsn))
    paths.push_back(host);
  std::erase(paths, std::filesystem::path());
  return paths;
}

config::Settings load(const GlobalOptions& options) {
  return config::Settings::load(options.config_file, own_environment(), options.overrides);
}

} // namespace

Context::Context(GlobalOptions options) : options_(std::move(options)), settings_(load(options_)) {
  for (const auto& [file, found] : machine_options(data_dir()))
    settings_.add_hook_options(found, file.string());
  json_ = options_.json || (!options_.table && isatty(STDOUT_FILENO) == 0);
  const std::string format = settings_.text("log.format");
  base::configure_logging(format == "json"   ? base::LogFormat::json
                          : format == "text" ? base::LogFormat::text
                                             : base::LogFormat::automatic,
                          settings_.text("log.level"));
}

Context::~Context() {
  collection_.reset();
  connection_.reset();
}

bool Context::remote() const { return !settings_.value("server").text.empty(); }

bool Context::embedded() const { return !remote() && settings_.text("database.url").empty(); }

std::filesystem::path Context::data_dir() const { return settings_.path("data_dir"); }

std::filesystem::path Context::archive_root() const {
  need_database();
  return settings_.path("archive.root");
}

bool Context::has_embedded_data() const {
  std::error_code ignored;
  return std::filesystem::exists(data_dir() / "postgres" / "PG_VERSION", ignored);
}

void Context::need_database() const {
  if (remote())
    throw base::Error(base::ErrorClass::usage, "this command needs the database, not a server",
                      "run it where the database is, without HOLDFAST_SERVER");
}

Collection& Context::collection(bool create) {
  create_ = create_ || create;
  if (!collection_ && !remote()) collection_ = database_collection(*this);
  if (!collection_) {
    auto token = settings_.value("token").text;
    if (const auto file = settings_.path("token_file"); token.empty() && !file.empty())
      token = base::trimmed(base::secret_text(file, "token_file"));
    collection_ = server_collection(settings_.value("server").text, token);
  }
  return *collection_;
}

const std::string& Context::dsn() {
  if (!dsn_.empty()) return dsn_;
  need_database();
  if (embedded()) {
    server_ = server::EmbeddedServer::start(data_dir());
    dsn_ = server_->dsn();
  } else {
    dsn_ = settings_.text("database.url");
    pg::use_password_file(settings_.path("database.password_file"));
    pg::remember_timelines(data_dir() / "timelines");
  }
  return dsn_;
}

pg::Connection& Context::connection(bool create) {
  if (connection_ && !connection_->broken()) return *connection_;
  need_database();
  if (embedded() && !create && !create_ && !has_embedded_data())
    throw base::Error(base::ErrorClass::unavailable, "there is no collection in " + data_dir().string() + " yet",
                      "holdfast add URL makes one; --data-dir or HOLDFAST_DATA_DIR names another place");
  auto connection = std::make_unique<pg::Connection>(dsn());
  if (embedded())
    store::migrator().migrate(*connection);
  else
    store::migrator().require_current(*connection);
  connection_ = std::move(connection);
  if (diagnosing_) connection_->call("set lock_timeout = '2s'");
  return *connection_;
}

std::string Context::who_blocks() noexcept { return connection_ ? pg::who_blocks(*connection_) : ""; }

std::shared_ptr<const hooks::PluginSet> Context::plugin_set() {
  if (!plugin_set_) {
    // A later plugin replaces an earlier one of its name: installed ones give way to ours, because all share a browser,
    // and both give way to the user's own.
    std::vector<std::filesystem::path> directories;
    if (settings_.boolean("plugins.built_in")) {
      directories = machine_plugins(data_dir());
      directories.push_back(process::companion("share/holdfast/plugins", "plugins"));
    }
    for (const auto& own : settings_.path_list("plugins.path"))
      directories.push_back(own);
    plugin_set_ = hooks::PluginSet::load(directories);
  }
  return plugin_set_;
}

worker::Options Context::worker_options(bool with_database) {
  config::check_lease_rule(settings_);
  worker::Options options;
  if (with_database) options.dsn = dsn();
  options.connections = static_cast<std::size_t>(settings_.integer("database.connections"));
  options.version = HOLDFAST_VERSION;
  options.data_dir = data_dir();
  options.work_dir = settings_.path("work_dir");
  options.archive_root = archive_root();
  options.shim = process::executable_directory() / "holdfast-shim";
  options.libexec = process::companion("libexec/holdfast", "libexec"); // stand-ins for binaries that hooks expect
  options.binary_directories = settings_.path_list("binaries.path");
  options.plugin_set = plugin_set();
  for (const auto& [key, value] : settings_.hook_options())
    options.hook_options[key] = value.text;
  if (settings_.value("hook.timeout").origin != "default" && !options.hook_options.contains("TIMEOUT"))
    options.hook_options["TIMEOUT"] = std::to_string(settings_.duration("hook.timeout").count() / 1000);
  options.hook_options.merge(hooks::environment_options(*options.plugin_set, options.hook_options));
  hooks::check_agents(options.hook_options);
  options.environment_names = base::split(settings_.text("plugins.environment"), ",");
  options.hook_limits.stdout_bytes = settings_.size("hook.stdout_limit");
  options.hook_limits.stderr_bytes = settings_.size("hook.stderr_limit");
  options.hook_limits.output_bytes = settings_.size("hook.output_limit");
  options.hook_limits.stall = settings_.duration("hook.stall_timeout");
  options.hook_limits.process.open_files = static_cast<std::uint64_t>(settings_.integer("hook.open_files"));
  if (const auto processes = settings_.integer("hook.processes"); processes > 0)
    options.hook_limits.process.tree_processes = static_cast<std::uint64_t>(processes);
  // A single file cannot outgrow the limit between two checks. Browsers measure their shared memory by this as well.
  options.hook_limits.process.file_bytes = std::max(options.hook_limits.output_bytes, std::uint64_t{1} << 30);
  options.sandbox = settings_.text("hook.sandbox");
  options.hook_users = settings_.text("hook.users");
  options.egress = settings_.text("hook.network") == "auto";
  options.ports = egress::parse_ports(settings_.text("hook.ports"), "hook.ports");
  options.secret_paths = secret_paths(settings_, options.dsn);
  options.cgroups = settings_.boolean("hook.cgroups");
  options.allow_private = settings_.boolean("urls.allow_private");
  options.slots = static_cast<int>(settings_.integer("worker.snapshots"));
  if (auto memory = settings_.size("hook.memory_limit"); memory > 0) {
    if (settings_.value("hook.memory_limit").origin == "default")
      memory = worker::memory_of_hook(memory, worker::available_memory(), options.slots);
    options.hook_limits.process.tree_memory_bytes = memory;
  }
  const auto endpoint = serve::parse_endpoint(settings_.text("worker.address"), "worker.address");
  options.address = endpoint.address;
  options.port = endpoint.port;
  options.labels = base::split(settings_.text("worker.labels"), ",");
  options.persona_plugins = base::split(settings_.text("persona.plugins"), ",");
  options.redact = settings_.text("archive.redact") == "on";
  try {
    options.key_ring = key_ring();
  } catch (const base::Error& error) { // it does all else
    options.key_ring_problem = error.what();
  }
  options.snapshot_timeout = settings_.duration("worker.snapshot_timeout");
  options.check_replay = settings_.text("capture.check") == "replay";
  options.reuse_files = settings_.boolean("changes.reuse");
  options.learn_changes = settings_.duration("changes.learn");
  options.kind = settings_.text("worker.kind");
  options.claim_order = {settings_.text("claim.order") == "newest",
                         static_cast<int>(settings_.integer("claim.from_top_n"))};
  options.rate_limit_retries = static_cast<int>(settings_.integer("politeness.retries"));
  options.robots_delay_max = settings_.duration("politeness.robots_delay_max");
  options.deduplicate = settings_.text("archive.deduplicate");
  options.text_bytes = settings_.size("search.text_limit");
  options.poll = settings_.duration("worker.poll");
  options.lease = settings_.duration("lease");
  options.heartbeat = settings_.duration("heartbeat");
  options.margin = settings_.duration("margin");
  options.kill_grace = settings_.duration("kill_grace");
  options.drain_timeout = settings_.duration("drain_timeout");
  options.stop_timeout = settings_.duration("stop_timeout");
  options.session_max = static_cast<std::size_t>(settings_.integer("sessions.max"));
  options.session_linger = settings_.duration("sessions.linger");
  options.minimum_free_bytes = settings_.size("disk.minimum_free");
  options.minimum_free_memory_bytes = settings_.size("memory.minimum_free");
  options.maximum_load = settings_.integer("load.maximum");
  return options;
}

persona::KeyRing Context::key_ring() const {
  auto file = settings_.path("persona.key_file");
  if (file.empty() && (!embedded() || !has_embedded_data())) return {};
  if (file.empty()) persona::KeyRing::make(file = made_key(settings_));
  return persona::KeyRing::open(file);
}

std::unique_ptr<webhook::Deliverer> Context::deliverer(const std::string& role) {
  const auto file = settings_.path("webhooks.secret_file");
  webhook::DelivererOptions options;
  auto& mail = options.mail;
  mail.server = settings_.text("mail.server");
  options.apprise_config = settings_.path("apprise.config");
  if (!options.apprise_config.empty()) {
    worker::BinaryLookup programs(settings_.path_list("binaries.path"), settings_.path("data_dir") / "lib");
    options.apprise = programs.locate("apprise").value_or("");
    if (options.apprise.empty())
      spdlog::warn("apprise.config is set, but the program apprise is not on PATH: pipx install apprise");
  }
  if (file.empty() && mail.server.empty() && options.apprise.empty()) return nullptr;
  mail.from = settings_.text("mail.from");
  if (!mail.server.empty() && mail.from.find('@') == std::string::npos)
    throw base::Error(base::ErrorClass::configuration, "mail.from is not an e-mail address: \"" + mail.from + "\"",
                      "set mail.from to the sender: holdfast@example.org");
  if (!mail.server.empty() && !mail.server.starts_with("smtp://") && !mail.server.starts_with("smtps://"))
    throw base::Error(base::ErrorClass::configuration, "mail.server is no server of SMTP: \"" + mail.server + "\"",
                      "smtps://mail.example.org:465, or smtp://mail.example.org:587 with STARTTLS");
  mail.user = settings_.text("mail.user");
  mail.password_file = settings_.path("mail.password_file");
  mail.without_tls = !settings_.boolean("mail.tls");
  mail.ca_file = settings_.path("mail.ca_file");
  options.page = settings_.text("serve.url");
  while (options.page.ends_with('/'))
    options.page.pop_back();
  options.archive_root = archive_root();
  options.dsn = dsn();
  options.label = role + " on " + base::own_host_name() + " pid " + std::to_string(::getpid());
  options.version = HOLDFAST_VERSION;
  options.secret_file = file;
  options.allow_private = settings_.boolean("urls.allow_private");
  options.timeout = settings_.duration("webhooks.timeout");
  options.lease = 3 * options.timeout;
  return std::make_unique<webhook::Deliverer>(std::move(options));
}

std::string user_name() {
  const passwd* user = getpwuid(geteuid());
  return user != nullptr ? user->pw_name : std::to_string(geteuid());
}

void Context::guard() {
  need_database();
  config::check_lease_rule(settings_); // before anything is written
  std::ifstream comm("/proc/" + std::to_string(getppid()) + "/comm");
  std::string parent;
  if (std::getline(comm, parent) && parent == "holdfast-guard") return note_signals();
  const auto directory = process::executable_directory();
  const std::string guard = directory / "holdfast-guard";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<std::string> words = {guard};
  if (embedded()) { // others may use the server; if this was its last user, and was killed, the guard has it stopped
    words.push_back("--spare=" + server::EmbeddedServer::process_file(data_dir()).string());
    for (const std::string& word : {self, std::string(kStopUnusedServer), data_dir().string()})
      words.push_back("--at-end=" + word);
  }
  words.insert(words.end(), {"--", self});
  std::vector<char*> arguments;
  for (auto& word : words)
    arguments.push_back(word.data());
  for (char** argument = options_.arguments + 1; *argument != nullptr; ++argument)
    arguments.push_back(*argument);
  arguments.push_back(nullptr);
  execv(guard.c_str(), arguments.data());
  throw base::Error(base::ErrorClass::unavailable, "cannot run " + guard + ": " + base::errno_text(errno),
                    "holdfast, holdfast-guard and holdfast-shim belong in one directory");
}

} // namespace holdfast::cli
