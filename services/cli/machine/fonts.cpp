#include "services/cli/machine/fonts.hpp"

#include <array>

namespace holdfast::cli {

namespace {

struct Script {
  const char* language; // as fontconfig names it
  const char* name;
  const char* package;
};

constexpr std::array<Script, 7> kScripts{{{"zh-cn", "Chinese", "fonts-noto-cjk"},
                                          {"ja", "Japanese", "fonts-noto-cjk"},
                                          {"ko", "Korean", "fonts-noto-cjk"},
                                          {"ar", "Arabic", "fonts-noto-core"},
                                          {"hi", "Devanagari", "fonts-noto-core"},
                                          {"th", "Thai", "fonts-noto-core"},
                                          {"und-zsye", "emoji", "fonts-noto-color-emoji"}}};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

} // namespace

std::vector<FontNeed> font_needs(const RunProgram& run) {
  std::vector<FontNeed> needs;
  // fc-match always has an answer. Without a proportional font it is one of a typewriter.
  const auto general = first_line(run({"fc-match", "--format=%{family}|%{spacing}\n", "sans-serif"}));
  const auto bar = general.find('|');
  const bool proportional = bar != std::string::npos && (bar + 1 == general.size() || general.substr(bar + 1) == "0");
  needs.push_back({"sans-serif font", "fonts-dejavu-core", proportional ? general.substr(0, bar) : std::string()});
  for (const auto& script : kScripts)
    needs.push_back({std::string("font for ") + script.name, script.package,
                     first_line(run({"fc-list", "--format=%{family}\n", std::string(":lang=") + script.language}))});
  return needs;
}

} // namespace holdfast::cli
