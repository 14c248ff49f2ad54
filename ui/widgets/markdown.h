// Messages as blocks and spans that say what to show and which bytes of the message it stands for. Markdown
// is read by md4c; its parts here are paragraphs, headings, lists, quotes, code, tables, rules, emphasis,
// links and images (as text). TeX (mathematics.h) is shown as it was written, as code is. HTML is text, and a
// line break stays a line break. Nothing is fetched and nothing is run: text is data.
//
// Text that grows at its end, as an answer does, is read in chunks: a chunk ends where CommonMark lets
// nothing after it change it any more (a line at the left margin behind an empty one, the next item of a
// list, a fence), or when it becomes too long. Only the last chunk is open and read again; so growth costs
// time by the length of that chunk, and no text, however hostile, makes md4c read more than kLongestChunk
// bytes at once.
//
// What differs from CommonMark for that: reference definitions ("[name]: address") are shown as they stand,
// and what is longer than kLongestChunk without a place to divide it continues as if it started there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::ui {

enum class TextFormat : std::uint8_t { kPlain, kMarkdown };

enum class BlockKind : std::uint8_t { kParagraph, kHeading, kCode, kTableRow, kRule };
enum class ContainerKind : std::uint8_t { kQuote, kListItem };
enum class MarkerKind : std::uint8_t { kNone, kBullet, kNumber, kTaskOpen, kTaskDone };
enum class CellAlignment : std::uint8_t { kLeft, kCentre, kRight };

// Bytes [begin, end) of the message.
struct TextRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool empty() const { return begin >= end; }
  bool operator==(const TextRange&) const = default;
};

// Of a span, any of them together.
namespace span_style {
inline constexpr std::uint8_t kBold = 1, kItalic = 2, kStrike = 4, kCode = 8, kQuiet = 16;
}

enum class SpanKind : std::uint8_t {
  kText,     // the bytes themselves
  kLiteral,  // literals()[literal] in place of the bytes
  kBreak     // a line break
};

struct TextSpan {
  TextRange range;
  SpanKind kind = SpanKind::kText;
  std::uint8_t style = 0;
  std::int32_t link = -1;     // index into links(), or -1
  std::int32_t literal = -1;  // index into literals(), or -1
};

struct TableCell {
  std::uint32_t first_span = 0, num_spans = 0;
  CellAlignment alignment = CellAlignment::kLeft;
};

struct MarkdownBlock {
  static constexpr std::size_t kDeepest = 8;  // deeper ones are shown at this depth

  BlockKind kind = BlockKind::kParagraph;
  TextRange source = {};  // whole lines, with markers and fences
  std::uint32_t first_span = 0, num_spans = 0;
  std::uint32_t first_cell = 0, num_cells = 0;          // of a table row
  std::array<ContainerKind, kDeepest> containers = {};  // outermost first
  std::uint8_t num_containers = 0;
  std::uint8_t level = 0;  // of a heading, 1..6
  MarkerKind marker = MarkerKind::kNone;
  char delimiter = '.';      // behind a number
  std::uint32_t number = 0;  // of a list item
  bool formula = false;      // of code: it is TeX
  bool header = false;       // of a table: its first row
  bool continues = false;    // the block before was cut for its length, and this is its rest
  TextRange language = {};   // of code: the word after the fence
};

class MarkdownDocument {
 public:
  static constexpr std::size_t kLongestChunk = 16 * 1024;
  static constexpr std::size_t kMostColumns = 64;

  // Takes the text as it is now. Cheap when it has only grown since the last call; any other text must be
  // announced by `clear`. Returns the index of the first block that may have changed.
  std::size_t update(std::string_view text, TextFormat format);
  void clear();

  const std::vector<MarkdownBlock>& blocks() const { return blocks_; }
  const std::vector<TextSpan>& spans() const { return spans_; }
  const std::vector<TableCell>& cells() const { return cells_; }
  const std::vector<std::string>& literals() const { return literals_; }
  const std::vector<std::string>& links() const { return links_; }  // http, https or mailto addresses

  // What readers see of a span, for copying and searching; "\n" of a line break.
  std::string_view shown(std::string_view text, const TextSpan& span) const;
  // The bytes of code of which the block is a part, without fences and the indentation of a list.
  std::string code_of(std::string_view text, std::size_t block) const;

  // Bytes read so far, also again: what growth costs.
  std::uint64_t num_bytes_parsed() const { return num_bytes_parsed_; }

 private:
  friend class MarkdownReader;
  // What must be known to continue reading at the start of a chunk.
  struct ChunkState {
    char fence = '\0';  // of code that continues: '`' or '~'
    std::uint32_t fence_length = 0;
    std::uint32_t fence_indent = 0;
    TextRange language = {};
    bool continues = false;
  };
  struct Chunk {
    std::uint32_t begin = 0;
    ChunkState state = {};
    std::size_t num_blocks = 0, num_spans = 0, num_cells = 0, num_literals = 0, num_links = 0;  // before it
  };
  struct Cut {
    std::uint32_t end = 0;
    ChunkState next = {};
  };

  Cut read_chunk(std::string_view text, const Chunk& chunk, TextFormat format);
  Cut read_display(std::string_view text, const Chunk& chunk, std::size_t end);
  Cut read_plain(std::string_view text, const Chunk& chunk);
  Cut read_code(std::string_view text, const Chunk& chunk, const ChunkState& fence, std::uint32_t content);
  static Cut find_markdown_end(std::string_view text, const Chunk& chunk);
  void truncate(const Chunk& chunk);

  TextFormat format_ = TextFormat::kPlain;
  std::size_t text_size_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<MarkdownBlock> blocks_;
  std::vector<TextSpan> spans_;
  std::vector<TableCell> cells_;
  std::vector<std::string> literals_, links_;
  std::uint64_t num_bytes_parsed_ = 0;
};

// Whether `block` is an item that follows another block of a list, and so stands close below it.
bool goes_on_closely(const MarkdownBlock& above, const MarkdownBlock& block);

// Whether an address is one that a reader may be asked to open: http, https or mailto, and nothing in it that
// could hide what follows.
bool is_openable(std::string_view address);

// The part of a message inside `range` as readers see it: without markers of emphasis and addresses of links,
// with bullets and numbers of lists, and tabs between the cells of tables.
std::string plain_text(std::string_view text, TextFormat format, TextRange range);

// The part of the message's own text that `range` stands for; a block that is taken from its first to its
// last character comes with its markers and fences.
std::string markdown_text(std::string_view text, TextFormat format, TextRange range);

}  // namespace octavo::ui
