#include "app/window/compare/prompt_list.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "engine/base/ascii.h"
#include "engine/base/format.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

Error wrong(std::size_t line, const std::string& sentence) {
  return {ErrorCode::kInvalidArgument, "Line " + std::to_string(line) + ": " + sentence};
}

struct Row {
  std::size_t line = 0;  // in which it begins, 1-based
  std::vector<std::string> fields = {};
};

// The rows of a table, one after the other.
class TableReader {
 public:
  explicit TableReader(std::string_view text) : text_(text) {}

  // nullopt at the end.
  Result<std::optional<Row>> next() {
    while (at_ < text_.size() && at_line_end()) skip_line_end();
    if (at_ >= text_.size()) return std::optional<Row>();
    Row row{.line = line_};
    while (true) {
      OCTAVO_TRY(std::string field, next_field());
      row.fields.push_back(std::move(field));
      if (at_ >= text_.size()) break;
      if (at_line_end()) {
        skip_line_end();
        break;
      }
      ++at_;  // the comma
    }
    return std::optional(std::move(row));
  }

 private:
  bool at_line_end() const {
    return text_[at_] == '\n' || (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n');
  }
  void skip_line_end() {
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
  }

  // Up to a comma, a line end or the end of the text, which stays.
  Result<std::string> next_field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_field();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && !at_line_end()) {
      if (text_[at_] == '"')
        return wrong(line_, "a quote stands inside a field. Quote the whole field and write this one twice.");
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  Result<std::string> quoted_field() {
    const std::size_t opened = line_;
    std::string field;
    for (++at_;; ++at_) {
      if (at_ >= text_.size())
        return wrong(opened, "a quoted field begins here and never ends. Close it with a quote.");
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        field += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        field += '"';
        ++at_;
      } else {
        break;
      }
    }
    ++at_;
    if (at_ < text_.size() && text_[at_] != ',' && !at_line_end())
      return wrong(line_, "text stands behind a closing quote. Put a comma there, or write the quote twice.");
    return field;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

bool is_header_of_prompts(std::string_view field) {
  return ascii_lower_case(without_blanks(field)) == "prompt";
}

Result<std::vector<std::string>> read_table(std::string_view text) {
  TableReader reader(text);
  std::vector<std::string> prompts;
  std::size_t num_columns = 0, column = 0, first_line = 0;
  while (true) {
    OCTAVO_TRY(std::optional<Row> row, reader.next());
    if (!row) return prompts;
    if (row->fields.size() == 1 && is_blank(row->fields.front())) continue;
    if (num_columns == 0) {
      num_columns = row->fields.size();
      first_line = row->line;
      const auto header = std::find_if(row->fields.begin(), row->fields.end(), is_header_of_prompts);
      if (header != row->fields.end()) {
        column = static_cast<std::size_t>(header - row->fields.begin());
        continue;
      }
      if (num_columns > 1)
        return wrong(row->line, "this table has " + std::to_string(num_columns) +
                                    " columns. Add a header that names one of them “prompt”.");
    }
    if (row->fields.size() != num_columns)
      return wrong(row->line, count_text(static_cast<std::int64_t>(row->fields.size()), "field") +
                                  " here, and " + std::to_string(num_columns) + " in line " +
                                  std::to_string(first_line) + ". Quote a field that has commas in it.");
    std::string& prompt = row->fields[column];
    if (is_blank(prompt)) return wrong(row->line, "the prompt is empty. Write one, or delete the row.");
    prompts.push_back(std::move(prompt));
  }
}

std::vector<std::string> read_lines(std::string_view text) {
  std::vector<std::string> prompts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = without_blanks(text.substr(0, end));
    if (!line.empty()) prompts.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return prompts;
}

}  // namespace

Result<std::vector<std::string>> read_prompts(std::string_view text, ui::PromptFormat format) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<std::string> prompts;
  if (format == ui::PromptFormat::kCsv) {
    OCTAVO_TRY(prompts, read_table(text));
  } else {
    prompts = read_lines(text);
  }
  if (prompts.empty())
    return Error{ErrorCode::kInvalidArgument, "There is no prompt. Write one on each line, or open a file."};
  if (prompts.size() > ui::kMostBatchPrompts)
    return Error{ErrorCode::kInvalidArgument,
                 "These are " + with_thousands(static_cast<std::int64_t>(prompts.size())) +
                     " prompts. Cut them to " + with_thousands(ui::kMostBatchPrompts) + " at most."};
  for (std::string& prompt : prompts) prompt = sanitise_utf8(prompt);
  return prompts;
}

}  // namespace octavo::app
