#pragma once
// Work of operations that takes more than one function of the database, by the names of operation.cpp's rows.

#include "lib/catalog/operation.hpp"

namespace holdfast::catalog::work {

using Answer = nlohmann::ordered_json;
using Call = OperationCall;

Answer say_changed(bool value);
Answer cancel_crawl(const Call& call);
Answer retry(const Call& call);
Answer change_crawl(const Call& call);
Answer change_scope(const Call& call);
Answer run_schedule(const Call& call);
Answer change_watch(const Call& call);
Answer set_host(const Call& call);
Answer cancel_host(const Call& call);
Answer set_webhook(const Call& call);
Answer test_webhook(const Call& call);
Answer set_persona(const Call& call);
Answer sign_in(const Call& call);
Answer add_shelf(const Call& call);
Answer change_shelf(const Call& call);
Answer shelve(const Call& call);
Answer share(const Call& call);
Answer add_token(const Call& call);
Answer set_log_level(const Call& call);

} // namespace holdfast::catalog::work
