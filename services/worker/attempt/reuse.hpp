#pragma once
// Judges from the records of a page that hooks have captured whether its files alone decide what a reader sees.

#include "lib/change/reuse.hpp"
#include "services/worker/attempt/page_work.hpp"

namespace holdfast::worker {

// Blocking; reads the HTML documents and scripts among the records, before payloads are removed.
change::Reuse judge_reuse(const PageWork& work);

} // namespace holdfast::worker
