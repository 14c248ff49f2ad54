#include "engine/tokenizer/pipeline_splitter.h"

#include <algorithm>
#include <utility>

#include "engine/base/overloaded.h"
#include "engine/base/text.h"
#include "engine/base/unicode_classes.h"
#include "engine/tokenizer/byte_level.h"

namespace octavo::tokenizer {
namespace {

bool is_number(char32_t c) { return classify(c) == CharacterClass::kNumber; }
bool is_space(char32_t c) { return classify(c) == CharacterClass::kSpace; }
bool is_punctuation(char32_t c) {
  const bool is_ascii =
      (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  return is_ascii || categorise(c) == Category::kP;
}

// A text is a row of stretches, each matched or not; some of them leave.
struct Stretch {
  std::size_t begin, end;
  bool is_match;
};

std::vector<Stretch> stretches_of(std::size_t size, const std::vector<Match>& matches, bool inverted) {
  std::vector<Stretch> stretches;
  std::size_t begin = 0;
  for (const Match& match : matches) {
    if (begin < match.begin) stretches.push_back({begin, match.begin, inverted});
    stretches.push_back({match.begin, match.end, !inverted});
    begin = match.end;
  }
  if (begin < size) stretches.push_back({begin, size, inverted});
  return stretches;
}

// In the order in which they are given, `join` says whether the next one becomes part of the one before.
template <class Range, class Join>
std::vector<Stretch> joined(const Range& stretches, Join join) {
  std::vector<Stretch> pieces;
  bool after_match = false;
  for (const Stretch& stretch : stretches) {
    if (!pieces.empty() && join(stretch.is_match, after_match)) {
      pieces.back().begin = std::min(pieces.back().begin, stretch.begin);
      pieces.back().end = std::max(pieces.back().end, stretch.end);
    } else {
      pieces.push_back(stretch);
    }
    after_match = stretch.is_match;
  }
  return pieces;
}

std::vector<Stretch> behave(std::vector<Stretch> stretches, SplitBehavior behavior) {
  const auto is_first_match = [](bool is_match, bool after_match) { return is_match && !after_match; };
  switch (behavior) {
    case SplitBehavior::kIsolated: return stretches;
    case SplitBehavior::kRemoved:
      std::erase_if(stretches, [](const Stretch& stretch) { return stretch.is_match; });
      return stretches;
    case SplitBehavior::kContiguous:
      return joined(stretches, [](bool is_match, bool after_match) { return is_match == after_match; });
    case SplitBehavior::kMergedWithPrevious: return joined(stretches, is_first_match);
    case SplitBehavior::kMergedWithNext: {
      std::ranges::reverse(stretches);
      std::vector<Stretch> pieces = joined(stretches, is_first_match);
      std::ranges::reverse(pieces);
      return pieces;
    }
  }
  return stretches;
}

template <class Find>
void find_each(std::string_view text, Find find, std::vector<Match>& matches) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::optional<Match> match = find(text.substr(begin));
    if (!match) return;
    matches.push_back({begin + match->begin, begin + match->end});
    begin += match->end;
  }
}

void find_text(std::string_view text, std::string_view wanted, std::vector<Match>& matches) {
  for (std::size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + wanted.size()))
    matches.push_back({at, at + wanted.size()});
}

void find_characters(std::string_view text, bool (*is_wanted)(char32_t), std::vector<Match>& matches) {
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (is_wanted(c.value)) matches.push_back({i, i + c.length});
    i += c.length;
  }
}

void add_pieces(const Pieces::Piece& whole, const std::vector<Stretch>& stretches,
                std::vector<Pieces::Piece>& out) {
  for (const Stretch& stretch : stretches) {
    if (stretch.begin == stretch.end) continue;
    out.push_back({whole.text.substr(stretch.begin, stretch.end - stretch.begin),
                   whole.starts_prompt && stretch.begin == 0});
  }
}

std::string spelled(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 4);
  for (const char byte : bytes) append_utf8(text, byte_spelling(static_cast<std::uint8_t>(byte)));
  return text;
}

}  // namespace

Result<PipelineSplitter::SplitStep> PipelineSplitter::prepare(const Split& split) {
  SplitStep step{{FindMatch{}}, split.behavior, split.inverted};
  switch (split.pattern.kind) {
    case TextPattern::Kind::kExpression:
      if (const FindMatch find = find_known_pattern(split.pattern.source)) {
        step.pattern = find;
      } else {
        OCTAVO_TRY(step.pattern, TextRegex::compile(split.pattern.source));
      }
      break;
    case TextPattern::Kind::kText:
      if (split.pattern.source.empty())
        return Error{ErrorCode::kUnsupported, "tokenizer.json splits by an empty text: choose another model"};
      step.pattern = split.pattern.source;
      break;
    case TextPattern::Kind::kNumber: step.pattern = CharacterTest{is_number}; break;
    case TextPattern::Kind::kSpace: step.pattern = CharacterTest{is_space}; break;
    case TextPattern::Kind::kPunctuation: step.pattern = CharacterTest{is_punctuation}; break;
  }
  return step;
}

Result<PipelineSplitter> PipelineSplitter::create(const std::vector<PreTokenizerStep>& steps) {
  PipelineSplitter splitter;
  for (const PreTokenizerStep& step : steps) {
    if (const auto* const split = std::get_if<Split>(&step)) {
      OCTAVO_TRY(SplitStep prepared, prepare(*split));
      splitter.steps_.emplace_back(std::move(prepared));
      splitter.removes_text_ |= split->behavior == SplitBehavior::kRemoved;
    } else if (const auto* const bytes = std::get_if<ByteLevel>(&step)) {
      splitter.steps_.emplace_back(*bytes);
      splitter.makes_bytes_ = true;
    } else {
      splitter.steps_.emplace_back(std::get<Metaspace>(step));
    }
  }
  return splitter;
}

Result<Pieces> PipelineSplitter::split(std::string_view text, bool starts_prompt,
                                       const std::stop_token& stop) const {
  Pieces pieces;
  if (text.empty()) return pieces;
  pieces.pieces.push_back({text, starts_prompt});
  bool is_spelled = false;
  for (const Step& step : steps_) {
    const bool is_last = &step == &steps_.back();
    if (const auto* const split = std::get_if<SplitStep>(&step)) {
      OCTAVO_TRY_VOID(apply(*split, pieces, stop));
    } else if (const auto* const bytes = std::get_if<ByteLevel>(&step)) {
      apply(*bytes, is_last, pieces);
      is_spelled = !is_last;
    } else {
      apply(std::get<Metaspace>(step), pieces);
    }
    if (stop.stop_requested()) return pieces;
  }
  if (!is_spelled) return pieces;
  for (Pieces::Piece& piece : pieces.pieces) {
    pieces.texts.push_back(spelled_bytes(piece.text).value_or(std::string()));
    piece.text = pieces.texts.back();
  }
  return pieces;
}

Result<void> PipelineSplitter::apply(const SplitStep& step, Pieces& pieces, const std::stop_token& stop) {
  std::vector<Pieces::Piece> out;
  std::vector<Match> matches;
  for (const Pieces::Piece& piece : pieces.pieces) {
    if (stop.stop_requested()) break;
    matches.clear();
    OCTAVO_TRY_VOID(std::visit(Overloaded{[&](FindMatch find) -> Result<void> {
                                            find_each(piece.text, find, matches);
                                            return {};
                                          },
                                          [&](const TextRegex& expression) -> Result<void> {
                                            return expression.find_all(piece.text, matches);
                                          },
                                          [&](CharacterTest is_wanted) -> Result<void> {
                                            find_characters(piece.text, is_wanted, matches);
                                            return {};
                                          },
                                          [&](const std::string& wanted) -> Result<void> {
                                            find_text(piece.text, wanted, matches);
                                            return {};
                                          }},
                               step.pattern));
    add_pieces(piece, behave(stretches_of(piece.text.size(), matches, step.inverted), step.behavior), out);
  }
  pieces.pieces = std::move(out);
  return {};
}

void PipelineSplitter::apply(const ByteLevel& step, bool is_last, Pieces& pieces) {
  std::vector<Pieces::Piece> out;
  std::vector<Match> matches;
  for (Pieces::Piece piece : pieces.pieces) {
    if (step.add_prefix_space && !piece.text.starts_with(' ')) {
      pieces.texts.push_back(" " + std::string(piece.text));
      piece.text = pieces.texts.back();
    }
    if (!step.splits) {
      out.push_back(piece);
      continue;
    }
    PieceCutter cutter(SplitPattern::kGpt2, piece.text);
    bool starts_prompt = piece.starts_prompt;
    for (std::string_view part = cutter.next(); !part.empty(); part = cutter.next())
      out.push_back({part, std::exchange(starts_prompt, false)});
  }
  if (!is_last) {
    for (Pieces::Piece& piece : out) {
      pieces.texts.push_back(spelled(piece.text));
      piece.text = pieces.texts.back();
    }
  }
  pieces.pieces = std::move(out);
}

void PipelineSplitter::apply(const Metaspace& step, Pieces& pieces) {
  std::vector<Pieces::Piece> out;
  std::vector<Match> matches;
  for (const Pieces::Piece& piece : pieces.pieces) {
    std::string text;
    text.reserve(piece.text.size() + piece.text.size() / 2);
    for (const char c : piece.text) {
      if (c == ' ') {
        text += step.spelled_space;
      } else {
        text.push_back(c);
      }
    }
    const bool wants_prefix = step.prefix == Metaspace::Prefix::kAlways ||
                              (step.prefix == Metaspace::Prefix::kFirst && piece.starts_prompt);
    if (wants_prefix && !text.starts_with(step.spelled_space)) text.insert(0, step.spelled_space);
    const Pieces::Piece whole{pieces.texts.emplace_back(std::move(text)), piece.starts_prompt};
    if (!step.splits) {
      out.push_back(whole);
      continue;
    }
    matches.clear();
    find_text(whole.text, step.spelled_space, matches);
    add_pieces(
        whole,
        behave(stretches_of(whole.text.size(), matches, /*inverted=*/false), SplitBehavior::kMergedWithNext),
        out);
  }
  pieces.pieces = std::move(out);
}

}  // namespace octavo::tokenizer
