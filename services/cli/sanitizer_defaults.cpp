// Functions that the sanitizers' runtimes call; only in builds with them. Called before main.

extern "C" const char* __asan_default_options();
extern "C" const char* __lsan_default_options();
extern "C" const char* __lsan_default_suppressions();

// The fault suite preloads a library that shifts the clock.
extern "C" const char* __asan_default_options() { return "verify_asan_link_order=0"; }

extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; } // tests read our output

// libpqxx 6 drops a result if the connection is lost just as it reads the result's encoding: once for a lost
// connection. libarchive keeps its buffer when its output has failed.
extern "C" const char* __lsan_default_suppressions() { return "leak:libpqxx-6\nleak:libarchive"; }
