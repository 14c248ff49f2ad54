// The sentencepiece library's byte-pair encoding (Kudo and Richardson 2018, arXiv:1808.06226) over pieces
// that were checked: normalised text in, pieces out. The only file that sees the library.
//
// Immutable; any thread.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/tokenizer/sentencepiece_pieces.h"

namespace octavo::tokenizer {

class SentencePieceModel {
 public:
  // Longer texts without a border of words in them, which are no texts that anybody writes, are merged by
  // the same rule in memory and time that the library does not keep to.
  static constexpr std::size_t kMaxLibraryBytes = std::size_t{16} << 10;

  struct Found {
    std::string_view text;  // a part of what was encoded
    TokenId token_id;       // -1: no piece; then it is one character
  };

  // `scores` as many as pieces.  REQUIRES: check_pieces made them
  static Result<std::unique_ptr<SentencePieceModel>> create(std::span<const Piece> pieces,
                                                            std::span<const float> scores);
  ~SentencePieceModel();

  // The pieces that `normalized` consists of; once a stop was requested, perhaps smaller ones, which nobody
  // should use.  REQUIRES: valid UTF-8, fewer than 2^31 bytes
  std::vector<Found> encode(std::string_view normalized, const std::stop_token& stop) const;

 private:
  struct Library;
  explicit SentencePieceModel(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
};

}  // namespace octavo::tokenizer
