#include "services/serve/metrics.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

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

std::string sample_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

} // namespace

std::string prometheus_text(const std::vector<base::Sample>& samples) {
  std::string out, last;
  for (const auto& sample : samples) {
    if (sample.family != last) {
      out += "# HELP " + sample.family + " " + escaped(sample.help, false) + "\n# TYPE " + sample.family + " " +
             sample.type + "\n";
      last = sample.family;
    }
    out += sample.name;
    if (!sample.labels.empty()) {
      std::string inside;
      for (const auto& [name, value] : sample.labels)
        inside += (inside.empty() ? "" : ",") + name + "=\"" + escaped(value, true) + "\"";
      out += "{" + inside + "}";
    }
    out += " " + sample_text(sample.value) + "\n";
  }
  return out;
}

std::vector<base::Sample> process_samples() {
  std::vector<base::Sample> samples;
  const auto gauge = [&](const std::string& name, const std::string& type, const std::string& help, double value) {
    samples.push_back({name, name, type, help, {}, value});
  };
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  if (statm >> pages >> resident)
    gauge("process_resident_memory_bytes", "gauge", "Memory of this process itself, without its hooks.",
          resident * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    gauge("process_cpu_seconds_total", "counter", "Processor time of this process itself.",
          seconds(usage.ru_utime) + seconds(usage.ru_stime));
  }
  std::error_code error;
  const auto files = std::filesystem::directory_iterator("/proc/self/fd", error);
  if (!error)
    gauge("process_open_fds", "gauge", "Files that this process holds open.",
          static_cast<double>(std::distance(begin(files), end(files))));
  const auto own = base::own_samples();
  samples.insert(samples.end(), own.begin(), own.end());
  return samples;
}

} // namespace holdfast::serve
