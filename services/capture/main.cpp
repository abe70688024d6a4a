// holdfast-capture SCRIPT [--url=URL ...]: the built-in hooks. SCRIPT is the hook's file; it names this program as its
// interpreter, and its directory is the plugin. For holdfast-capture replay DIRECTORY, see replay.hpp. holdfast-capture
// browser starts the browser, reports it, and ends it; holdfast-capture sign-in URL lets a user drive it.
#include "services/capture/browser/browser_host.hpp"
#include "services/capture/browser/sign_in.hpp"
#include "services/capture/browser/tab.hpp"
#include "services/capture/browser/view.hpp"
#include "services/capture/extract/readers.hpp"
#include "services/capture/fetch/wget.hpp"
#include "services/capture/hook.hpp"
#include "services/capture/replay/replay.hpp"

#include <cstdio>
#include <filesystem>
#include <map>

using namespace holdfast::capture;

namespace {

const std::map<std::string, Result (*)(Job&)> kHooks = {
    {"browser", run_tab},        {"headers", save_headers},       {"wget", run_wget},
    {"favicon", save_favicon},   {"screenshot", take_screenshot}, {"pdf", print_pdf},
    {"dom", save_dom},           {"title", save_title},           {"text", save_text},
    {"outlinks", save_outlinks}, {"hashes", save_hashes}};

} // namespace

#ifdef __SANITIZE_ADDRESS__
// The sandbox of hooks forbids what the search for leaks does, which then ends the program as if it had found one.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

int main(int count, char** arguments) {
  if (count < 2) {
    std::fputs("usage: holdfast-capture HOOK --url=URL\n", stderr);
    return 64;
  }
  if (count == 3 && std::string_view(arguments[1]) == "replay") return run_replay(arguments[2]);
  if (count == 2 && std::string_view(arguments[1]) == "browser") return try_browser();
  if (count == 3 && std::string_view(arguments[1]) == "sign-in") return run_sign_in(arguments[2]);
  const std::filesystem::path script = arguments[1];
  const auto plugin = script.parent_path().filename().string();
  if (script.filename().string().starts_with("on_CrawlSetup")) return run_browser_host();
  const auto hook = kHooks.find(plugin);
  if (hook == kHooks.end()) {
    std::fprintf(stderr, "holdfast-capture has no hook for the plugin \"%s\"\n", plugin.c_str());
    return 64;
  }
  std::string url;
  for (int i = 2; i < count; ++i)
    if (const std::string_view argument = arguments[i]; argument.starts_with("--url=")) url = argument.substr(6);
  return run_hook(plugin, url, hook->second);
}
