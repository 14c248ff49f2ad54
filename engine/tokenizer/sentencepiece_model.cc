#include "engine/tokenizer/sentencepiece_model.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>

#include "bpe_model.h"
#include "sentencepiece_model.pb.h"

#include "engine/base/text.h"

namespace octavo::tokenizer {
namespace {

using LibraryPiece = sentencepiece::ModelProto::SentencePiece;

LibraryPiece::Type type_of(PieceRole role) {
  if (role == PieceRole::kUserDefined) return LibraryPiece::USER_DEFINED;
  return role == PieceRole::kUnused ? LibraryPiece::UNUSED : LibraryPiece::NORMAL;
}

Error not_accepted(std::string_view reason) {
  return {ErrorCode::kUnsupported,
          "tokenizer.ggml.tokens: sentencepiece rejects these pieces (" + escape_for_message(reason) +
              "): choose another model",
          "tokenizer.ggml.tokens"};
}

// The library's own merging, with its vocabulary, over texts for which its queue is too slow: a megabyte of
// one character takes it over a second, eight take twelve times that. Merges that are found from left to
// right, as those of a run are, wait here in order, without a heap; and nothing recurses.
class LongMerge {
 public:
  LongMerge(const sentencepiece::bpe::Model& model, std::string_view text, const std::stop_token& stop)
      : model_(model), text_(text), stop_(stop) {}

  // Parts of the text with the library's indices of pieces.
  std::vector<std::pair<std::string_view, int>> run() {
    cut_into_symbols();
    for (std::uint32_t i = 1; i < symbols_.size() && !is_stopped(i); ++i) add_pair(i - 1, i);
    for (std::uint32_t i = 0; !waiting_.empty() && !is_stopped(i); ++i) merge_best();
    std::vector<std::pair<std::string_view, int>> found;
    if (symbols_.empty()) return found;
    for (std::uint32_t i = 0; i != kNone; i = symbols_[i].next) append(text_of(i), found);
    return found;
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  // Turns of a loop between two looks at stop_: far less than a millisecond.
  static constexpr std::uint32_t kTurnsPerLook = 1024;

  bool is_stopped(std::uint32_t turn) const { return turn % kTurnsPerLook == 0 && stop_.stop_requested(); }

  struct Symbol {
    std::uint32_t begin, length;  // length 0: merged into the one before
    std::uint32_t previous, next;
    bool frozen;
  };
  struct Pair {
    std::uint32_t left, right;
    std::uint32_t length;  // of both, when it was found: another now, and it is no more

    bool operator>(const Pair& other) const { return left > other.left; }
  };
  // Pairs of one score, the leftmost first.
  struct Pairs {
    std::vector<Pair> ascending;
    std::size_t first = 0;  // of `ascending` that is left
    std::priority_queue<Pair, std::vector<Pair>, std::greater<>> others;

    bool empty() const { return first == ascending.size() && others.empty(); }
    void push(const Pair& pair) {
      if (ascending.empty() || ascending.back().left <= pair.left) {
        ascending.push_back(pair);
      } else {
        others.push(pair);
      }
    }
    Pair pop() {
      const bool from_others =
          first == ascending.size() || (!others.empty() && others.top().left < ascending[first].left);
      if (!from_others) return ascending[first++];
      const Pair pair = others.top();
      others.pop();
      return pair;
    }
  };

  std::string_view text_of(std::uint32_t i) const {
    return text_.substr(symbols_[i].begin, symbols_[i].length);
  }

  void cut_into_symbols() {
    for (std::size_t begin = 0; begin < text_.size();) {
      bool is_user_defined = false;
      const auto rest = text_.substr(begin);
      const int length = model_.prefix_matcher()->PrefixMatch({rest.data(), rest.size()}, &is_user_defined);
      const auto index = static_cast<std::uint32_t>(symbols_.size());
      symbols_.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(length),
                          index == 0 ? kNone : index - 1, index + 1, is_user_defined});
      begin += static_cast<std::size_t>(length);
    }
    if (!symbols_.empty()) symbols_.back().next = kNone;
  }

  void add_pair(std::uint32_t left, std::uint32_t right) {
    if (left == kNone || right == kNone || symbols_[left].frozen || symbols_[right].frozen) return;
    const std::uint32_t length = symbols_[left].length + symbols_[right].length;
    const std::string_view text = text_.substr(symbols_[left].begin, length);
    const int piece = model_.PieceToId({text.data(), text.size()});
    if (model_.IsUnknown(piece)) return;
    waiting_[model_.GetScore(piece)].push({left, right, length});
    if (model_.IsUnused(piece)) left_parts_[text] = symbols_[left].length;
  }

  void merge_best() {
    const auto best = waiting_.begin();
    const Pair pair = best->second.pop();
    if (best->second.empty()) waiting_.erase(best);
    Symbol& left = symbols_[pair.left];
    Symbol& right = symbols_[pair.right];
    if (left.length == 0 || right.length == 0 || left.length + right.length != pair.length) return;
    left.length = pair.length;
    left.next = right.next;
    if (right.next != kNone) symbols_[right.next].previous = pair.left;
    right.length = 0;
    add_pair(left.previous, pair.left);
    add_pair(pair.left, left.next);
  }

  // Unused pieces fall apart into what they were merged from.
  void append(std::string_view whole, std::vector<std::pair<std::string_view, int>>& found) {
    std::vector<std::string_view> parts = {whole};  // the last comes first
    while (!parts.empty()) {
      const std::string_view text = parts.back();
      parts.pop_back();
      const int piece = model_.PieceToId({text.data(), text.size()});
      const auto made_from = model_.IsUnused(piece) ? left_parts_.find(text) : left_parts_.end();
      if (made_from == left_parts_.end()) {
        found.emplace_back(text, piece);
      } else {
        parts.push_back(text.substr(made_from->second));
        parts.push_back(text.substr(0, made_from->second));
      }
    }
  }

  const sentencepiece::bpe::Model& model_;
  std::string_view text_;
  const std::stop_token& stop_;
  std::vector<Symbol> symbols_;
  std::map<float, Pairs, std::greater<>> waiting_;
  std::unordered_map<std::string_view, std::uint32_t>
      left_parts_;  // of unused pieces: bytes of the left part
};

}  // namespace

struct SentencePieceModel::Library {
  sentencepiece::ModelProto pieces;                  // those that text can become, and the unknown one
  std::vector<TokenId> token_ids;                    // of `pieces`
  std::unique_ptr<sentencepiece::bpe::Model> model;  // looks at `pieces`
};

SentencePieceModel::SentencePieceModel(std::unique_ptr<Library> library) : library_(std::move(library)) {}
SentencePieceModel::~SentencePieceModel() = default;

Result<std::unique_ptr<SentencePieceModel>> SentencePieceModel::create(std::span<const Piece> pieces,
                                                                       std::span<const float> scores) {
  try {
    auto library = std::make_unique<Library>();
    const auto add = [&](const std::string& text, float score, LibraryPiece::Type type, TokenId token_id) {
      LibraryPiece* const piece = library->pieces.add_pieces();
      piece->set_piece(text);
      piece->set_score(score);
      piece->set_type(type);
      library->token_ids.push_back(token_id);
    };
    for (std::size_t id = 0; id < pieces.size(); ++id) {
      const PieceRole role = pieces[id].role;
      if (role == PieceRole::kByte || role == PieceRole::kNever) continue;
      add(pieces[id].text, scores[id], type_of(role), static_cast<TokenId>(id));
    }
    // The library wants an unknown piece. No text is this one: it is not UTF-8.
    add("\xff", 0, LibraryPiece::UNKNOWN, -1);
    library->model = std::make_unique<sentencepiece::bpe::Model>(library->pieces);
    if (const auto status = library->model->status(); !status.ok()) return not_accepted(status.message());
    return std::unique_ptr<SentencePieceModel>(new SentencePieceModel(std::move(library)));
  } catch (const std::exception& problem) {
    return not_accepted(problem.what());
  }
}

std::vector<SentencePieceModel::Found> SentencePieceModel::encode(std::string_view normalized,
                                                                  const std::stop_token& stop) const {
  std::vector<Found> found;
  const auto add = [&](std::string_view text, int index) {
    found.push_back({text, library_->token_ids[static_cast<std::size_t>(index)]});
  };
  if (normalized.size() > kMaxLibraryBytes) {
    for (const auto& [text, index] : LongMerge(*library_->model, normalized, stop).run()) add(text, index);
    return found;
  }
  for (const auto& [text, index] : library_->model->Encode({normalized.data(), normalized.size()})) {
    add({text.data(), text.size()}, index);
  }
  return found;
}

}  // namespace octavo::tokenizer
