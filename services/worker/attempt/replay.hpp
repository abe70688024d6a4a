#pragma once
// Opens a page from records of WARC files in a Chromium without a network, and compares it with what was captured:
// holdfast-capture replay. Blocking; takes some seconds.

#include "lib/process/command.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace holdfast::worker {

// A page whose score is below this does not replay.
inline constexpr double kReplays = 0.9;

// `asked`: the records of warc::replay_record(), URL, picture and DOM file. The command gives environment and sandbox;
// it works in `directory`, which is there. Returns screenshot, text and resources, each from 0 to 1 or null, missing,
// missing_urls and problem.
nlohmann::json replay_page(const std::filesystem::path& directory, const nlohmann::json& asked,
                           process::Command command);
// Returns the smallest of the three; 0 if there is a problem, null if nothing can be compared.
nlohmann::json replay_score(const nlohmann::json& quality);

} // namespace holdfast::worker
