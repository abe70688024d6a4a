// Objects that are sent in pieces: begun, each piece sent and named by the tag that the store gave it, completed; or
// aborted, so that no pieces are left that cost money.
#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/s3/client.hpp"

#include <spdlog/spdlog.h>

#include <pugixml.hpp>
#include <sstream>

namespace holdfast::s3 {

using base::Error;
using base::ErrorClass;

namespace {

constexpr std::uint64_t kMostParts = 10000; // what S3 takes

} // namespace

class Multipart {
public:
  Multipart(Client& client, const std::string& key, const std::string& type) : client_(client), key_(key) {
    const auto answer = client_.request({"POST", key_, {{"uploads", ""}}, {}, {{"content-type", type}}, {}});
    pugi::xml_document document;
    document.load_buffer(answer.body.data(), answer.body.size());
    id_ = document.child("InitiateMultipartUploadResult").child_value("UploadId");
    if (id_.empty())
      throw Error(ErrorClass::input_output, "the object store did not start the multipart upload of " + key_);
  }

  ~Multipart() {
    if (done_) return;
    try {
      client_.request({"DELETE", key_, {{"uploadId", id_}}, {}, {}, {}}, {404});
    } catch (const Error& error) {
      spdlog::warn("could not abort the multipart upload of {}; its parts remain in the object store: {}", key_,
                   error.what());
    }
  }
  Multipart(const Multipart&) = delete;
  Multipart& operator=(const Multipart&) = delete;

  void send(std::string_view piece) {
    const auto number = std::to_string(tags_.size() + 1);
    const auto answer = client_.request({"PUT", key_, {{"partNumber", number}, {"uploadId", id_}}, piece, {}, {}});
    const auto tag = answer.header("etag");
    if (tag.empty()) throw Error(ErrorClass::input_output, "the object store returned no ETag for a part of " + key_);
    tags_.push_back(tag);
  }

  void complete() {
    pugi::xml_document document;
    auto list = document.append_child("CompleteMultipartUpload");
    list.append_attribute("xmlns") = "http://s3.amazonaws.com/doc/2006-03-01/";
    for (std::size_t i = 0; i < tags_.size(); ++i) {
      auto part = list.append_child("Part");
      part.append_child("PartNumber").text().set(static_cast<unsigned long long>(i + 1));
      part.append_child("ETag").text().set(tags_[i].c_str());
    }
    std::ostringstream text;
    document.save(text, "", pugi::format_raw);
    const std::string body = text.str();
    // After a lost answer the repeated upload does not exist, because it is complete.
    const auto answer =
        client_.request({"POST", key_, {{"uploadId", id_}}, body, {{"content-type", "application/xml"}}, {}}, {404});
    pugi::xml_document result;
    result.load_buffer(answer.body.data(), answer.body.size());
    if (answer.status == 404 ? !exists() : !result.child("CompleteMultipartUploadResult")) // an error may come as 200
      throw Error(ErrorClass::unavailable, "the object store did not complete the multipart upload of " + key_);
    done_ = true;
  }

private:
  bool exists() {
    const auto found = client_.list(key_, false).objects;
    return !found.empty() && found.front().key == key_;
  }

  Client& client_;
  std::string key_, id_;
  std::vector<std::string> tags_;
  bool done_{false};
};

namespace {

// Fills `piece` with as much as there is and fits.
void fill(std::string& piece, std::size_t room, const Client::Read& read) {
  piece.resize(room);
  std::size_t have = 0;
  while (have < piece.size()) {
    const auto got = read(piece.data() + have, piece.size() - have);
    if (got == 0) break;
    have += got;
  }
  piece.resize(have);
}

} // namespace

void Client::put_stream(const std::string& key, const std::string& type, const Read& read) {
  std::string piece;
  fill(piece, kLargePart, read);
  if (piece.size() < kLargePart) return put(key, piece, type);
  Multipart upload(*this, key, type);
  for (std::uint64_t parts = 0; !piece.empty(); ++parts) {
    if (parts == kMostParts)
      throw Error(ErrorClass::cannot_create, key + " is larger than an object of an object store can be");
    upload.send(piece);
    fill(piece, kLargePart, read);
  }
  upload.complete();
}

std::string Client::put_stream(const std::string& key, std::uint64_t size, const std::string& type, const Read& read) {
  const auto part = std::max<std::uint64_t>(kPartSize, size / (kMostParts - 1) + 1);
  base::Sha256 digest;
  std::string piece;
  const auto next = [&] {
    fill(piece, static_cast<std::size_t>(std::min<std::uint64_t>(part, size + 1)), read);
    digest.update(piece);
    return piece.size();
  };
  next();
  if (size <= kPartSize) {
    if (piece.size() != size) throw Error(ErrorClass::input_output, key + " changed while it was being published");
    put(key, piece, type);
    return digest.finish();
  }
  Multipart upload(*this, key, type);
  std::uint64_t sent = 0;
  do {
    upload.send(piece);
    sent += piece.size();
  } while (next() > 0);
  if (sent != size) throw Error(ErrorClass::input_output, key + " changed while it was being published");
  upload.complete();
  return digest.finish();
}

} // namespace holdfast::s3
