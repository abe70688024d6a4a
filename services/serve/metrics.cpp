#include "services/serve/metrics.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <fstream>

namespace holdfast::serve {

namespace {

std::string escaped(const std::string& text, bool quotes) {
  std::string out;
  for (const char character : text)
    if (character == '\\')
      out += "\\\\";
    else if (character == '\n')
      out += "\\n";
    else if (character == '"' && quotes)
      out += "\\\"";
    else
      out += character;
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

} // namespace

std::string prometheus_text(const std::vector<Sample>& samples) {
  std::string out, last;
  for (const auto& sample : samples) {
    if (sample.name != last) {
      out += "# HELP " + sample.name + " " + escaped(sample.help, false) + "\n# TYPE " + sample.name + " " +
             sample.type + "\n";
      last = sample.name;
    }
    out += sample.name;
    if (!sample.labels.empty()) {
      std::string inside;
      for (const auto& [name, value] : sample.labels)
        inside += (inside.empty() ? "" : ",") + name + "=\"" + escaped(value, true) + "\"";
      out += "{" + inside + "}";
    }
    out += " " + number(sample.value) + "\n";
  }
  return out;
}

namespace {

std::vector<Sample> samples_of(const pg::Result& rows) {
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Sample sample{rows[i].text("name"), rows[i].text("type"), rows[i].text("help"), {}, rows[i].number("value")};
    const auto labels = nlohmann::json::parse(rows[i].text("labels")); // named: a loop would not keep it
    for (const auto& [name, value] : labels.items())
      sample.labels[name] = value.is_string() ? value.get<std::string>() : value.dump();
    samples.push_back(std::move(sample));
  }
  return samples;
}

} // namespace

std::string collection_metrics(pg::Connection& connection) {
  return prometheus_text(samples_of(connection.call("select * from holdfast.metrics() order by name, labels::text")));
}

std::string node_metrics(pg::Connection& connection) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  auto samples =
      samples_of(connection.call("select * from holdfast.node_metrics($1, $2::integer) order by name, labels::text",
                                 pg::Params::of(static_cast<const char*>(host), ::getpid())));
  if (samples.empty()) return "";
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  if (statm >> pages >> resident)
    samples.push_back({"process_resident_memory_bytes",
                       "gauge",
                       "Memory of the node itself, without its hooks.",
                       {},
                       resident * static_cast<double>(::sysconf(_SC_PAGESIZE))});
  return prometheus_text(samples);
}

} // namespace holdfast::serve
