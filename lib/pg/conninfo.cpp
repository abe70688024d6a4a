#include "lib/pg/conninfo.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"

#include <libpq-fe.h>

#include <poll.h>

#include <algorithm>
#include <cctype>

namespace holdfast::pg {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::filesystem::path password_file;

std::string in_seconds_rounded_up(milliseconds duration) { return std::to_string((duration.count() + 999) / 1000); }

std::string session_settings(const ConnectionOptions& options) {
  const auto timeout = [](const char* name, milliseconds value) {
    return " -c " + std::string(name) + "=" + std::to_string(value.count());
  };
  return "-c client_min_messages=warning" + timeout("statement_timeout", options.statement_timeout) +
         timeout("lock_timeout", options.lock_timeout) + " -c idle_session_timeout=0" +
         timeout("idle_in_transaction_session_timeout", options.idle_in_transaction_timeout);
}

// "FATAL:  28P01: password authentication failed" -> "28P01". The severity may be translated.
std::string find_sqlstate(const std::string& message) {
  for (auto at = message.find(":  "); at != std::string::npos; at = message.find(":  ", at + 1)) {
    const std::string candidate = message.substr(at + 3, 5);
    const bool plausible = candidate.size() == 5 &&
                           std::all_of(candidate.begin(), candidate.end(),
                                       [](unsigned char c) { return std::isdigit(c) != 0 || std::isupper(c) != 0; });
    if (plausible && message.compare(at + 8, 1, ":") == 0) return candidate;
  }
  return {};
}

// "value" -> "'value'", with quotes and backslashes escaped, for keyword strings.
std::string quoted_value(const std::string& value) {
  std::string quoted = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '\'';
}

// Parses `dsn`; the keys are the option names that `name` selects.
std::map<std::string, std::string> parsed(const std::string& dsn, char* PQconninfoOption::*name) {
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(dsn.c_str(), &message),
                                                                             &PQconninfoFree);
  if (!options) {
    // libpq's message quotes parts of the string, perhaps the password, so ours is general.
    PQfreemem(message);
    throw base::Error(base::ErrorClass::configuration, "the database URL cannot be parsed",
                      "use postgresql://user:password@host:5432/database (special characters percent-encoded), or "
                      "host=... dbname=... user=...");
  }
  std::map<std::string, std::string> values;
  for (const auto* option = options.get(); option->keyword != nullptr; ++option)
    if (option->val != nullptr && option->*name != nullptr) values[option->*name] = option->val;
  return values;
}

} // namespace

std::map<std::string, std::string> parse_conninfo(const std::string& dsn) {
  return parsed(dsn, &PQconninfoOption::keyword);
}

std::map<std::string, std::string> environment_of(const std::string& dsn) {
  return parsed(dsn, &PQconninfoOption::envvar);
}

std::string join_conninfo(const std::map<std::string, std::string>& values) {
  std::string conninfo;
  for (const auto& [keyword, value] : values)
    conninfo += keyword + '=' + quoted_value(value) + ' ';
  return conninfo;
}

std::vector<std::filesystem::path> socket_directories(const std::string& dsn) {
  std::vector<std::filesystem::path> directories;
  const std::string hosts = dsn.empty() ? "" : parse_conninfo(dsn)["host"];
  for (std::size_t begin = 0; begin < hosts.size();) {
    const auto end = std::min(hosts.find(',', begin), hosts.size());
    if (hosts[begin] == '/') directories.emplace_back(hosts.substr(begin, end - begin));
    begin = end + 1;
  }
  return directories;
}

void use_password_file(const std::filesystem::path& file) { password_file = file; }

std::string with_password(const std::string& dsn) {
  if (password_file.empty()) return dsn;
  auto password = base::secret_text(password_file, "database.password_file");
  password.erase(std::min(password.find('\n'), password.size()));
  if (password.ends_with('\r')) password.pop_back(); // of an editor for Windows
  auto values = parse_conninfo(dsn);
  if (!values.try_emplace("password", password).second) return dsn;
  return join_conninfo(values);
}

std::string conninfo_with_role(const std::string& dsn, const std::string& role) {
  auto values = parse_conninfo(dsn);
  auto& session = values["options"];
  session += (session.empty() ? "-c role=" : " -c role=") + role;
  return join_conninfo(values);
}

std::string session_conninfo(const std::string& dsn, const ConnectionOptions& options) {
  auto values = parse_conninfo(dsn);
  // holdfast.database_waits() knows our sessions by their names.
  auto& name = values.try_emplace("application_name", options.application_name).first->second;
  if (!name.starts_with("holdfast")) name = "holdfast " + name;
  values.try_emplace("connect_timeout", in_seconds_rounded_up(options.connect_timeout));
  values.try_emplace("tcp_user_timeout", std::to_string(options.tcp_user_timeout.count()));
  // A peer that vanished while the session was idle is noticed within 10 + 3 * 5 seconds.
  values.try_emplace("keepalives_idle", "10");
  values.try_emplace("keepalives_interval", "5");
  values.try_emplace("keepalives_count", "3");
  values["client_encoding"] = "UTF8"; // Params promises UTF-8 whatever the database or the environment prefer
  auto& session = values["options"];  // the last of two equal settings wins, so the owner's come last
  session = session_settings(options) + (session.empty() ? "" : " " + session);
  return join_conninfo(values);
}

std::string sqlstate_of_refusal(const std::string& conninfo, milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  const std::unique_ptr<PGconn, decltype(&PQfinish)> session(PQconnectStart(conninfo.c_str()), &PQfinish);
  if (!session || PQstatus(session.get()) == CONNECTION_BAD) return {};
  PQsetErrorVerbosity(session.get(), PQERRORS_VERBOSE);
  auto state = PGRES_POLLING_WRITING;
  while (state == PGRES_POLLING_READING || state == PGRES_POLLING_WRITING) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return {};
    pollfd socket{PQsocket(session.get()), static_cast<short>(state == PGRES_POLLING_READING ? POLLIN : POLLOUT), 0};
    ::poll(&socket, 1, static_cast<int>(left.count()));
    state = PQconnectPoll(session.get());
  }
  return state == PGRES_POLLING_FAILED ? find_sqlstate(PQerrorMessage(session.get())) : std::string{};
}

} // namespace holdfast::pg
