#pragma once
// The connection string that is really used: the owner's, plus our session settings. Pure; any thread.

#include "lib/pg/connection.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace holdfast::pg {

// The settings of a libpq URI or keyword string, and a keyword string of settings. parse_conninfo throws
// Error(configuration) if it cannot be parsed.
std::map<std::string, std::string> parse_conninfo(const std::string& dsn);
// Returns the settings as variables of libpq programs (PGHOST, PGPASSWORD), so that no password stands in a command
// line.
std::map<std::string, std::string> environment_of(const std::string& dsn);
std::string join_conninfo(const std::map<std::string, std::string>& values);

// Merges `options` into a libpq URI or keyword string; the owner's string wins where both set a value.
std::string session_conninfo(const std::string& dsn, const ConnectionOptions& options);

// A keyword string for sessions that act as `role`. With PgBouncer, which drops startup options, they act as the login.
std::string conninfo_with_role(const std::string& dsn, const std::string& role);

// Sets the file of the password, which then stands in no command line and no settings file. It is read for each
// connection, because passwords are rotated. Empty: none. Call it before the first connection.
void use_password_file(const std::filesystem::path& file);
// With the password of that file, if the string has none. Throws Error(configuration) if it cannot be read.
std::string with_password(const std::string& dsn);

// The directories of the sockets by which the server is reached; none for a server that is named by its host.
std::vector<std::filesystem::path> socket_directories(const std::string& dsn);

// Connects once more, with the SQLSTATE in the message of a refused connection: libpq has no other way to report it.
// Empty if the server could not be reached, or accepts the connection now.
std::string sqlstate_of_refusal(const std::string& conninfo, std::chrono::milliseconds timeout);

} // namespace holdfast::pg
