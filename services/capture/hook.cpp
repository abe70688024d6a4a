#include "services/capture/hook.hpp"

#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/formats/link.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace holdfast::capture {

namespace fs = std::filesystem;

namespace {

constexpr int kExitFailed = 1, kExitSkipped = 10;
constexpr std::size_t kLongestLine = 1000;
constexpr std::size_t kLargestSibling = 4u << 20;

void write_out(std::string_view text) { base::write_all(STDOUT_FILENO, text); }

std::string in_seconds(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// Text for the handler of the alarm: made before, because a handler may do little.
std::string out_of_time;

void stop(int signal) {
  if (on_stop != nullptr) on_stop();
  ::_exit(128 + signal);
}

void alarm_rang(int) {
  if (on_stop != nullptr) on_stop();
  write_out(out_of_time);
  ::_exit(kExitFailed);
}

void handle_signals(double timeout, double margin) {
  struct sigaction action {};
  action.sa_handler = stop;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  action.sa_handler = alarm_rang;
  ::sigaction(SIGALRM, &action, nullptr);
  const std::string reason = "timed out after " + in_seconds(timeout) + " s";
  out_of_time =
      json_text({{"type", "ArchiveResult"}, {"status", "failed"}, {"output_str", reason}, {"error", reason}}) + "\n";
  const double at = std::max(0.05, timeout - margin / 2);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(at);
  timer.it_value.tv_usec = static_cast<suseconds_t>((at - std::floor(at)) * 1e6);
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

} // namespace

void (*on_stop)() = nullptr;

void stop_alarm() {
  const itimerval timer{};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

Job::Job(std::string plugin, std::string url) : plugin_(std::move(plugin)), url_(std::move(url)) {
  const auto directory = setting("SNAP_DIR");
  std::error_code error;
  const fs::path out = directory.empty() ? fs::current_path(error) : fs::path(directory) / plugin_;
  fs::create_directories(out, error);
  if (::chdir(out.c_str()) != 0) throw failed("cannot enter " + out.string() + ": " + std::strerror(errno));
  snapshot_ = out.parent_path();
  timeout_ = number(upper(plugin_) + "_TIMEOUT", number("TIMEOUT", 60));
  margin_ = std::min(5.0, 0.1 * timeout_);
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(timeout_ - margin_));
}

std::string Job::setting(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

bool Job::flag(const char* name, bool otherwise) {
  const auto value = lower_case(setting(name));
  return value.empty() ? otherwise : value == "true" || value == "1" || value == "yes" || value == "on";
}

double Job::number(const std::string& name, double otherwise) {
  const auto text = setting(name.c_str());
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0') throw failed(name + "='" + text + "' is not a number");
  if (!(value > 0 && value < 1e12)) throw failed(name + "='" + text + "' is out of range");
  return value;
}

std::uint64_t Job::size(const char* name, const char* otherwise) {
  const auto text = lower_case(setting(name, otherwise));
  char* end = nullptr;
  errno = 0;
  std::uint64_t value =
      std::isdigit(static_cast<unsigned char>(text[0])) != 0 ? std::strtoull(text.c_str(), &end, 10) : 0;
  std::string unit = end == nullptr ? "?" : end;
  std::erase(unit, ' ');
  constexpr std::string_view kUnits = "kmgt";
  if (const auto power = unit.empty() ? std::string_view::npos : kUnits.find(unit[0]);
      power != std::string_view::npos) {
    if (value >> (63 - 10 * (power + 1)) != 0) errno = ERANGE;
    value <<= 10 * (power + 1);
    unit.erase(0, 1);
  }
  if (errno != 0 || !(unit.empty() || unit == "b" || unit == "ib"))
    throw failed(std::string(name) + "='" + text + "' is not a size; write for example 500m or 1g");
  return value;
}

std::string Job::program(const char* setting_name, const std::vector<std::string>& names, const char* package) {
  std::vector<std::string> wanted{setting(setting_name)};
  wanted.insert(wanted.end(), names.begin(), names.end());
  const auto path = setting("PATH", "/usr/local/bin:/usr/bin:/bin");
  for (const auto& name : wanted) {
    if (name.empty()) continue;
    if (name.find('/') != std::string::npos) {
      if (::access(name.c_str(), X_OK) == 0) return name;
      continue;
    }
    for (const auto& directory : base::split(path, ":"))
      if (const auto file = directory + "/" + name; file[0] == '/' && ::access(file.c_str(), X_OK) == 0) return file;
  }
  throw skipped(std::string(package) + " is not installed (apt install " + package + ")");
}

double Job::remaining() const { return std::max(0.1, Seconds(deadline_ - Clock::now()).count()); }

void Job::write(const std::string& name, std::string_view bytes) const {
  write_pieces(name, [&](const auto& take) { take(bytes); });
}

void Job::write_pieces(const std::string& name, const Pieces& pieces) const {
  const auto partial = name + ".part";
  if (!write_file(partial, pieces) || ::rename(partial.c_str(), name.c_str()) != 0)
    throw failed("cannot write " + name + ": " + std::strerror(errno));
}

void Job::write_json(const std::string& name, const Json& value) const { write(name, json_text(value, 1) + "\n"); }

Json Job::sibling(const std::string& name) const {
  const auto value = Json::parse(read_file(snapshot_ / name, kLargestSibling), nullptr, false);
  return value.is_object() ? value : Json::object();
}

void Job::report_response(const std::string& url, int status, const std::string& content_type) const {
  if (status != 0) emit({{"type", "Response"}, {"url", url}, {"status", status}, {"mime", media_type(content_type)}});
}

void Job::report_resources(std::size_t count, const std::vector<std::pair<std::string, std::string>>& missing) const {
  Json reasons = Json::object();
  for (const auto& [url, reason] : missing)
    reasons[reason] = reasons.value(reason, 0) + 1;
  emit({{"type", "Resources"}, {"count", count}, {"missing", reasons}});
}

void Job::report_redirect(const std::string& url, const std::string& location, int status) {
  if (location == url || !redirects_.insert(location).second) return;
  Json record = {{"type", "Redirect"}, {"url", url}, {"location", location}};
  if (status != 0) record["status"] = status;
  emit(record);
}

void Job::report_rate_limit(const std::string& host, int status, const std::string& retry_after) const {
  Json record = {{"type", "RateLimit"}, {"host", host}, {"status", status}};
  if (!retry_after.empty()) record["retry_after"] = retry_after;
  emit(record);
}

bool write_file(const fs::path& path, const Pieces& pieces) {
  const base::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  bool written = static_cast<bool>(file);
  if (written) pieces([&](std::string_view piece) { written = written && base::write_all(file.get(), piece); });
  return written;
}

void emit(const Json& record) { write_out(json_text(record) + "\n"); }

void emit_result(Status status, const std::string& output, const Json& detail, const std::string& error) {
  Json record = {{"type", "ArchiveResult"}, {"status", status}, {"output_str", one_line(output, kLongestLine)}};
  if (!detail.is_null()) record["output_json"] = detail;
  if (!error.empty()) record["error"] = one_line(error, kLongestLine);
  emit(record);
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return text;
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json joined(const Headers& headers) {
  Json result = Json::object();
  for (const auto& [name, value] : headers) {
    const auto key = lower_case(name);
    const auto before = result.find(key);
    if (before == result.end())
      result[key] = value;
    else
      result[key] = before->get<std::string>() + (key == "set-cookie" ? "\n" : ", ") + value;
  }
  return result;
}

int run_hook(const std::string& plugin, const std::string& url, const std::function<Result(Job&)>& body) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    if (url.empty()) throw failed("no --url=URL was given");
    if (!base::is_web_url(url)) throw no_results("not an http or https URL");
    Job job(plugin, url);
    handle_signals(job.timeout(), job.margin());
    const auto result = body(job);
    stop_alarm();
    emit_result(Status::succeeded, result.output, result.detail, "");
    return 0;
  } catch (const Ending& ending) {
    stop_alarm();
    if (ending.unreachable) emit({{"type", "Unreachable"}, {"reason", one_line(ending.reason, kLongestLine)}});
    const bool is_failure = ending.status == Status::failed;
    emit_result(ending.status, ending.reason, ending.detail, is_failure ? ending.reason : "");
    return is_failure ? kExitFailed : ending.status == Status::skipped ? kExitSkipped : 0;
  } catch (const std::exception& error) { // a defect, or a page that was not thought of: still one clear line
    stop_alarm();
    emit_result(Status::failed, error.what(), nullptr, error.what());
    return kExitFailed;
  }
}

} // namespace holdfast::capture
