#include "lib/archive/diff_page.hpp"
#include "lib/archive/page_text.hpp"
#include "lib/base/error.hpp"
#include "lib/catalog/list.hpp"
#include "lib/store/find.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/collection.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

struct DiffOptions {
  std::string a, b;
  bool html{false};
};

struct Capture {
  std::string id, url, sealed_at, directory, from;
};

Capture capture_of(Collection& collection, const std::string& name) {
  const auto found = collection.find(name, store::FindAs::newest);
  if (found.kind != "snapshot")
    throw base::Error(base::ErrorClass::usage, "\"" + name + "\" is a " + found.kind + ", not a snapshot",
                      "give the id of a snapshot or a URL; ids are in holdfast list snapshots");
  const auto rows = collection.rows(catalog::ListQuery{"snapshots", 1}.by("snapshot", found.id));
  const auto row = rows.one();
  return {found.id, row["url"], row["sealed_at"].value_or(""), row["directory"].value_or(""),
          row["change_from"].value_or("")};
}

void print_words(const change::Difference& difference) {
  const bool colours = ::isatty(STDOUT_FILENO) == 1;
  std::cout << change::to_text(difference, [colours](const change::Piece& piece) {
    const change::Piece shown{piece.kind, printable(piece.text)};
    if (!colours || piece.kind == change::Piece::Kind::same) return change::word_mark(shown);
    return (piece.kind == change::Piece::Kind::added ? "\033[32m" : "\033[31m") + shown.text + "\033[0m";
  });
}

int diff(Context& context, const DiffOptions& options) {
  auto& collection = context.collection();
  auto now = capture_of(collection, options.b.empty() ? options.a : options.b);
  if (options.b.empty() && now.from.empty())
    throw base::Error(base::ErrorClass::refused, "snapshot " + now.id + " was not compared with an earlier capture",
                      "name two snapshots: holdfast diff A B");
  auto before = capture_of(collection, options.b.empty() ? now.from : options.a);
  if (!options.b.empty() && before.sealed_at > now.sealed_at) std::swap(before, now);
  const auto open = [&](const std::string& path) {
    const auto& one = path.starts_with(before.directory + "/") ? before : now;
    return collection.open(one.id, one.directory, path.substr(one.directory.size() + 1));
  };
  const auto difference = archive::difference(open, before.directory, now.directory);
  if (options.html) {
    const auto picture = [&](const Capture& one) {
      const auto page = collection.page_of_snapshot(one.id, one.directory); // a file that a browser opens, or a URL
      const auto file = page.starts_with("/") ? archive::screenshot_of(open, one.directory) : "";
      return file.empty() ? file : "file://" + page.substr(0, page.rfind('/')) + file.substr(one.directory.size());
    };
    std::cout << archive::page_frame("Changes of " + now.url, "",
                                     archive::difference_html(difference, picture(before), picture(now)));
  } else if (context.json()) {
    auto json = change::to_json(difference);
    json["type"] = "Diff";
    json["from"] = before.id;
    json["id"] = now.id;
    std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else {
    print_words(difference);
    std::cerr << local_time(before.sealed_at) << " to " << local_time(now.sealed_at) << ": " << difference.words_added
              << " words added, " << difference.words_removed << " removed\n";
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

} // namespace

Action diff_verb(CLI::App& command) {
  const auto options = std::make_shared<DiffOptions>();
  command.add_option("A", options->a, "A snapshot, by its id or URL; alone: compared with the capture before it")
      ->required();
  command.add_option("B", options->b, "Another snapshot; the earlier one is the first, whatever the order");
  command.add_flag("--html", options->html, "Print a page with the texts side by side and the pictures");
  return [options](Context& context) { return diff(context, *options); };
}

} // namespace holdfast::cli
