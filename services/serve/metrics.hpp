#pragma once
// Numbers in the text format that Prometheus reads. Pure, but for the query.

#include "lib/base/metrics.hpp"
#include "lib/pg/connection.hpp"

#include <string>
#include <vector>

namespace holdfast::serve {

// Samples of one family must follow each other.
std::string prometheus_text(const std::vector<base::Sample>& samples);

// Of the whole collection: holdfast.metrics().
std::string collection_metrics(pg::Connection& connection);

// Of the worker that this process runs, as the database knows it: holdfast.worker_metrics(). Empty if it is none that
// is counted on.
std::vector<base::Sample> worker_samples(pg::Connection& connection);
// Of this process: its memory, processor time and files, and what it counts of itself.
std::vector<base::Sample> process_samples();

} // namespace holdfast::serve
