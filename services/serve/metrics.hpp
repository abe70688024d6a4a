#pragma once
// Numbers in the text format that Prometheus reads. Pure, but for the query.

#include "lib/pg/connection.hpp"

#include <map>
#include <string>
#include <vector>

namespace holdfast::serve {

struct Sample {
  std::string name, type, help; // type: gauge or counter
  std::map<std::string, std::string> labels;
  double value{0};
};

// Samples of one name must follow each other.
std::string prometheus_text(const std::vector<Sample>& samples);

// Of the whole collection: holdfast.metrics().
std::string collection_metrics(pg::Connection& connection);

// Of the node that this process runs: holdfast.node_metrics(), and its memory. Empty if it is none that is counted on.
std::string node_metrics(pg::Connection& connection);

} // namespace holdfast::serve
