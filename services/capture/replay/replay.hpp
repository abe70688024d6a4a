#pragma once
// holdfast-capture replay DIRECTORY: opens a snapshot's page from its WARC files, in a Chromium without a network, with
// the hooks that captured it, and compares what they save with what the capture saved. Reads replay.json in the
// directory and writes result.json there. `holdfast verify --replay` starts it.

#include "services/capture/hook.hpp"

#include <string>

namespace holdfast::capture {

// replay.json: {url, records (see ReplaySource), picture, dom, width, height}; picture and dom are files of the
// capture, or empty; width and height: of the picture, if another program made it.
// result.json: {screenshot, text, resources, missing, missing_urls, problem}; the first three are shares of what is
// equal, or null.
int run_replay(const std::filesystem::path& directory);

// The share of words that two texts have in common, each as often as it occurs.
double same_words(const std::string& left, const std::string& right);

} // namespace holdfast::capture
