#pragma once
// Numbers in the text format that Prometheus reads, and those of this process. Any thread.

#include "lib/base/metrics.hpp"

#include <string>
#include <vector>

namespace holdfast::serve {

inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

// Samples of one family must follow each other.
std::string prometheus_text(const std::vector<base::Sample>& samples);

// Returns metrics of this process: its memory, processor time and files, and its own counters.
std::vector<base::Sample> process_samples();

} // namespace holdfast::serve
