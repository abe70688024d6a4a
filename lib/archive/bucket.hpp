#pragma once
// The archive in an object store: the same tree of keys as a directory would hold, without links. An attempt counts
// once its manifest is there, which is written last; every key holds its fence, so that no two owners ever write the
// same one. Used by root.cpp, publish.cpp and verify.cpp, whose headers describe the functions. Blocking; any thread.

#include "lib/archive/attempt.hpp"
#include "lib/archive/verify.hpp"
#include "lib/s3/client.hpp"

#include <string>
#include <vector>

namespace holdfast::archive {

// The sentinel's text; made first if it is missing and `create`. Empty: there is none.
std::string bucket_sentinel(s3::Client& bucket, const std::string& id, bool create);

// Renames what has a longer key than S3 takes (1,024 bytes), so that the manifest names it as it will be kept.
void shorten_paths(int attempt, const std::filesystem::path& where, std::size_t key_bytes_before);

// Sends an attempt: all of `contents`, with the targets of links, and the manifest last. Throws Error(unavailable) when
// that takes far longer than so many files with so many bytes should.
void publish_to_bucket(s3::Client& bucket, int attempt, const std::filesystem::path& where,
                       const std::string& directory, std::uint64_t bytes, PublishedFiles contents);

std::vector<Defect> verify_bucket_attempt(s3::Client& bucket, const std::string& directory,
                                          const std::string& manifest_sha256);
// "<snapshot directory>/a<fence>" of each attempt that has any object.
std::vector<std::string> bucket_attempts(s3::Client& bucket, const std::string& snapshot_directory);
void remove_from_bucket(s3::Client& bucket, const std::string& directory);

} // namespace holdfast::archive
