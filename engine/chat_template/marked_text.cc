#include "engine/chat_template/marked_text.h"

#include <algorithm>
#include <utility>

namespace octavo::tokenizer {

MarkedText MarkedText::message_content(std::string text, std::int32_t index) {
  MarkedText marked(std::move(text));
  if (!marked.text_.empty()) marked.runs_.push_back({marked.text_.size(), index, 0});
  return marked;
}

MarkedText MarkedText::derived(std::string text, bool from_input) {
  MarkedText marked(std::move(text));
  if (from_input && !marked.text_.empty()) marked.runs_.push_back({marked.text_.size(), kChangedInput, 0});
  return marked;
}

MarkedText MarkedText::of_input(std::string text, std::int32_t input) {
  MarkedText marked(std::move(text));
  if (!marked.text_.empty()) marked.runs_.push_back({marked.text_.size(), part_of(input), 0});
  return marked;
}

MarkedText MarkedText::computed_from(const MarkedText& whole, std::string text) {
  MarkedText marked;
  marked.append_text(text, whole.source_of_computed());
  return marked;
}

std::int32_t MarkedText::source_of_computed() const {
  for (const Run& run : runs_) {
    if (run.is_input()) return run.source >= 0 ? part_of(run.source) : run.source;
  }
  return kTemplate;
}

bool MarkedText::has_input() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.is_input(); });
}

std::vector<MarkedText::Run> MarkedText::runs() const {
  if (runs_.empty() && !text_.empty()) return {{text_.size(), kTemplate, 0}};
  return runs_;
}

void MarkedText::append(const MarkedText& other, std::size_t begin, std::size_t end) {
  if (begin >= end) return;
  if (runs_.empty() && !text_.empty() && !other.runs_.empty()) runs_.push_back({text_.size(), kTemplate, 0});
  text_.append(other.text_, begin, end - begin);
  if (other.runs_.empty()) {
    if (!runs_.empty()) append_run(end - begin, kTemplate, 0);
    return;
  }
  auto run = std::upper_bound(other.runs_.begin(), other.runs_.end(), begin,
                              [](std::size_t position, const Run& r) { return position < r.end; });
  std::size_t run_begin = run == other.runs_.begin() ? 0 : std::prev(run)->end;
  for (std::size_t position = begin; position < end; ++run) {
    const std::size_t run_end = std::min(run->end, end);
    append_run(run_end - position, run->source, run->source >= 0 ? run->offset + (position - run_begin) : 0);
    position = run_end;
    run_begin = run->end;
  }
}

void MarkedText::append_text(std::string_view text, std::int32_t source) {
  if (text.empty()) return;
  if (runs_.empty() && !text_.empty() && source != kTemplate) runs_.push_back({text_.size(), kTemplate, 0});
  const bool is_marked = !runs_.empty() || source != kTemplate;
  text_ += text;
  if (is_marked) append_run(text.size(), source, 0);
}

MarkedText MarkedText::slice(std::size_t begin, std::size_t end) const {
  MarkedText part;
  part.append(*this, begin, end);
  return part;
}

void MarkedText::append_run(std::size_t length, std::int32_t source, std::size_t offset) {
  const std::size_t begin = runs_.empty() ? 0 : runs_.back().end;
  if (!runs_.empty() && runs_.back().source == source) {
    Run& last = runs_.back();
    const std::size_t last_begin = runs_.size() > 1 ? runs_[runs_.size() - 2].end : 0;
    const bool continues = source < 0 || last.offset + (last.end - last_begin) == offset;
    if (continues) {
      last.end += length;
      return;
    }
  }
  runs_.push_back({begin + length, source, offset});
}

}  // namespace octavo::tokenizer
