#include "services/worker/attempt/steps.hpp"

#include "lib/base/coroutine.hpp"

namespace holdfast::worker {

namespace {

template <void (*Run)(PageWork&)>
awaitable<void> on_main_thread(PageWork& work) {
  Run(work);
  co_return;
}

template <void (*Run)(PageWork&)>
awaitable<void> on_files_thread(PageWork& work) {
  co_await base::on_thread(work.services.files, [&work] { Run(work); });
}

constexpr PageStep kBeforeSeal[] = {
    {"conclude", on_main_thread<conclude>},
    {"traffic", on_main_thread<count_traffic>},
    {"tidy", on_files_thread<tidy>},
    {"redact", on_files_thread<redact>},
    {"index captures", on_files_thread<index_captures>},
    {"witness", on_main_thread<witness>},
    {"replay", on_files_thread<check_replay>},
    {"change", find_change}, // before records become references
    {"deduplicate", deduplicate},
    {"search text", on_files_thread<read_search_text>},
    {"publish", publish},
};

constexpr PageStep kOfRecapture[] = {
    {"conclude", on_main_thread<conclude>},
    {"traffic", on_main_thread<count_traffic>},
    {"index captures", on_files_thread<index_captures>},
    {"change", on_main_thread<repeat_change>},
    {"search text", on_files_thread<read_search_text>},
    {"publish", publish},
};

constexpr PageStep kAfterSeal[] = {
    {"search text", keep_search_text},
    {"replay", keep_replay},
};

} // namespace

std::span<const PageStep> steps_before_seal() { return kBeforeSeal; }
std::span<const PageStep> steps_of_recapture() { return kOfRecapture; }
std::span<const PageStep> steps_after_seal() { return kAfterSeal; }

} // namespace holdfast::worker
