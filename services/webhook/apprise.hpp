#pragma once
// Notices through Apprise, a program that reaches over a hundred services. Their URLs, which hold secrets, stay in its
// configuration file. The text goes to its standard input, because command lines are public.

#include "services/webhook/notice.hpp"

#include <chrono>
#include <filesystem>
#include <string>

namespace holdfast::webhook {

// Sends a notice to the services with a tag. Returns why it was not sent; empty: it was. Kills the program when `limit`
// is over. Blocking; any thread.
std::string send_by_apprise(const std::string& program, const std::filesystem::path& config, const std::string& tag,
                            const Notice& notice, std::chrono::milliseconds limit);

} // namespace holdfast::webhook
