#pragma once
// Metrics of this process, for its own /metrics: counters, the largest value seen, and histograms. Each name is in the
// table of metrics.cpp, with its type and help. Any thread; a count takes one lock for less than a microsecond.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::base {

using Labels = std::map<std::string, std::string>;

// One line of the text that Prometheus reads. A histogram has several: <family>_bucket, _sum and _count.
struct Sample {
  std::string family, name, type, help; // type: counter, gauge or histogram
  Labels labels;
  double value{0};
};

void count(std::string_view family, const Labels& labels = {}, double by = 1);
// A value of a histogram; of a gauge, the largest is kept.
void observe(std::string_view family, const Labels& labels, double value);

// All of them, each family together, also those that are still zero.
std::vector<Sample> own_samples();

} // namespace holdfast::base
