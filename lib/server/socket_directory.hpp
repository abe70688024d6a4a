#pragma once
// Directory of the server's socket. Private to lib/server; pure apart from the directory it makes.

#include "lib/server/launch.hpp"

#include <filesystem>

namespace holdfast::server {

// <data_dir>/postgres-run if a socket's path fits into it (107 bytes, and no character that means something in a list
// of hosts), else a short directory below $XDG_RUNTIME_DIR or /tmp, named by a digest of data_dir.
std::filesystem::path socket_directory(const std::filesystem::path& data_dir, const User& user);

// Makes it, for the user alone. Throws Error(cannot_create), also if another process made it first.
void make_socket_directory(const std::filesystem::path& directory, const User& user);

} // namespace holdfast::server
