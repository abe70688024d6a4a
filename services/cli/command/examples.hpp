#pragma once
// What `holdfast VERB --help` shows below the options. Main thread.

namespace CLI {
class App;
}

namespace holdfast::cli {

// Gives every verb that has no footer yet its examples. Called when all verbs have been added.
void add_examples(CLI::App& app);

} // namespace holdfast::cli
