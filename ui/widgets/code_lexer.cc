#include "ui/widgets/code_lexer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <unordered_set>

namespace octavo::ui {

enum class Grammar : std::uint8_t { kProgram, kData, kStyleSheet, kMarkup, kMarkdown, kDiff };

struct LongString {
  std::string_view open, close;
  CodeKind kind = CodeKind::kString;
};

struct CodeSyntax {
  std::string_view title;
  std::string_view names;  // separated by spaces, lower case
  Grammar grammar = Grammar::kProgram;
  std::array<std::string_view, 2> line_comments = {};
  std::string_view comment_open = {}, comment_close = {};
  std::string_view quotes = {};                 // each ends on its line; a backslash escapes
  std::array<LongString, 2> long_strings = {};  // may go on over lines
  std::string_view keywords = {};
  std::string_view types = {};
  bool any_case = false;    // of keywords
  bool directives = false;  // "#include" at the start of a line
  bool attributes = false;  // "@Override"
  bool dollar_variables = false;
  bool quote_may_be_lifetime = false;  // 'a without a closing quote
};

namespace {

constexpr CodeSyntax kSyntaxes[] = {
    {.title = "C",
     .names = "c h",
     .line_comments = {"//"},
     .comment_open = "/*",
     .comment_close = "*/",
     .quotes = "\"'",
     .keywords = "auto break case const continue default do else enum extern for goto if inline register "
                 "restrict return "
                 "sizeof static struct switch typedef union volatile while NULL true false nullptr constexpr",
     .types = "void char short int long float double signed unsigned bool size_t ssize_t int8_t int16_t "
              "int32_t int64_t "
              "uint8_t uint16_t uint32_t uint64_t FILE",
     .directives = true},
    {.title = "C++",
     .names = "cpp c++ cc cxx hpp hxx hh",
     .line_comments = {"//"},
     .comment_open = "/*",
     .comment_close = "*/",
     .quotes = "\"'",
     .keywords = "alignas alignof and asm auto break case catch class co_await co_return co_yield concept "
                 "const consteval "
                 "constexpr constinit const_cast continue decltype default delete do dynamic_cast else enum "
                 "explicit export "
                 "extern false final for friend goto if inline mutable namespace new noexcept not nullptr "
                 "operator or override "
                 "private protected public register reinterpret_cast requires return sizeof static "
                 "static_assert static_cast "
                 "struct switch template this thread_local throw true try typedef typeid typename union "
                 "using virtual "
                 "volatile while xor",
     .types = "void char short int long float double signed unsigned bool size_t wchar_t char8_t char16_t "
              "char32_t int8_t "
              "int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t string string_view vector map set "
              "array optional "
              "variant span pair tuple unique_ptr shared_ptr",
     .directives = true},
    {.title = "C#",
     .names = "csharp cs c#",
     .line_comments = {"//"},
     .comment_open = "/*",
     .comment_close = "*/",
     .quotes = "\"'",
     .keywords = "abstract as async await base break case catch checked class const continue default "
                 "delegate do else enum "
                 "event explicit extern false finally fixed for foreach get goto if implicit in init "
                 "interface internal is "
                 "lock namespace new null operator out override params private protected public readonly "
                 "record ref return "
                 "sealed set sizeof static struct switch this throw true try typeof unchecked unsafe using "
                 "var virtual "
                 "volatile where while with yield",
     .types = "bool byte char decimal double dynamic float int long object sbyte short string uint ulong "
              "ushort void Task List "
              "Dictionary",
     .directives = true},
    {.title = "Python",
     .names = "python py python3 pycon ipython",
     .line_comments = {"#"},
     .quotes = "\"'",
     .long_strings = {LongString{"\"\"\"", "\"\"\""}, LongString{"'''", "'''"}},
     .keywords =
         "and as assert async await break case class continue def del elif else except False finally for "
         "from global "
         "if import in is lambda match None nonlocal not or pass raise return True try while with yield self",
     .types = "int float str bool bytes list dict set tuple object type Exception range print len",
     .attributes = true},
    {.title = "JavaScript",
     .names = "javascript js jsx mjs cjs node",
     .line_comments = {"//"},
     .comment_open = "/*",
     .comment_close = "*/",
     .quotes = "\"'",
     .long_strings = {LongString{"`", "`"}},
     .keywords = "async await break case catch class const continue debugger default delete do else export "
                 "extends false "
                 "finally for from function get if import in instanceof let new null of return set static "
                 "super switch this "
                 "throw true try typeof undefined var void while with yield",
     .types =
         "Array Boolean Date Error Map Math Number Object Promise RegExp Set String Symbol console JSON"},
    {.title = "TypeScript",
     .names = "typescript ts tsx",
     .line_comments = {"//"},
     .comment_open = "/*",
     .comment_close = "*/",
     .quotes = "\"'",
     .long_strings = {LongString{"`", "`"}},
     .keywords = "abstract as async await break case catch class const continue debugger declare default "
                 "delete do else enum "
                 "export extends false finally for from function get if implements import in infer "
                 "instanceof interface is "
                 "keyof let namespace new null of private protected public readonly return satisfies set "
                 "static super switch "
                 "this throw true try type typeof undefined var void while with yield",
     .types = "any boolean never number object string symbol unknown bigint Array Boolean Date Error Map "
              "Math Number Object "
              "Partial Promise Record RegExp Set String console JSON",
     .attributes = true},
    {.title = "Rust",
     .names = "rust rs",
     .line_comments = {"//"},
     .comment_open = "/*",
     .comment_close = "*/",
     .quotes = "\"'",
     .keywords =
         "as async await break const continue crate dyn else enum extern false fn for if impl in let loop "
         "match mod move "
         "mut pub ref return self Self static struct super trait true type union unsafe use where while",
     .types = "bool char str i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 String Vec Option "
              "Result Box Rc Arc "
              "HashMap Some None Ok Err",
     .quote_may_be_lifetime = true},
    {.title = "Go",
     .names = "go golang",
     .line_comments = {"//"},
     .comment_open = "/*",
     .comment_close = "*/",
     .quotes = "\"'",
     .long_strings = {LongString{"`", "`"}},
     .keywords = "break case chan const continue default defer else fallthrough false for func go goto if "
                 "import interface iota "
                 "map nil package range return select struct switch true type var",
     .types = "any bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune "
              "string uint uint8 "
              "uint16 uint32 uint64 uintptr"},
    {.title = "Java",
     .names = "java kotlin kt",
     .line_comments = {"//"},
     .comment_open = "/*",
     .comment_close = "*/",
     .quotes = "\"'",
     .long_strings = {LongString{"\"\"\"", "\"\"\""}},
     .keywords = "abstract assert break case catch class const continue default do else enum extends false "
                 "final finally for fun "
                 "goto if implements import instanceof interface native new null package permits private "
                 "protected public "
                 "record return sealed static strictfp super switch synchronized this throw throws transient "
                 "true try val var "
                 "void volatile when while yield",
     .types = "boolean byte char double float int long short String Integer Long Double Boolean Object List "
              "Map Set Optional",
     .attributes = true},
    {.title = "Shell",
     .names = "sh bash zsh shell console fish ksh shellscript",
     .line_comments = {"#"},
     .quotes = "\"'`",
     .keywords = "break case continue do done elif else esac eval exec exit export fi for function if in "
                 "local readonly return "
                 "select set shift source then trap unset until while",
     .types = "cat cd chmod cp curl echo find git grep ls mkdir mv printf rm sed sudo tar test true false",
     .dollar_variables = true},
    {.title = "JSON",
     .names = "json jsonc json5 jsonl",
     .grammar = Grammar::kData,
     .line_comments = {"//"},
     .comment_open = "/*",
     .comment_close = "*/",
     .quotes = "\"",
     .keywords = "true false null"},
    {.title = "YAML",
     .names = "yaml yml",
     .grammar = Grammar::kData,
     .line_comments = {"#"},
     .quotes = "\"'",
     .keywords = "true false null yes no on off"},
    {.title = "TOML",
     .names = "toml ini cfg conf",
     .grammar = Grammar::kData,
     .line_comments = {"#"},
     .quotes = "\"'",
     .long_strings = {LongString{"\"\"\"", "\"\"\""}, LongString{"'''", "'''"}},
     .keywords = "true false inf nan"},
    {.title = "HTML",
     .names = "html xml svg xhtml vue xaml",
     .grammar = Grammar::kMarkup,
     .comment_open = "<!--",
     .comment_close = "-->",
     .quotes = "\"'"},
    {.title = "CSS",
     .names = "css scss less",
     .grammar = Grammar::kStyleSheet,
     .line_comments = {"//"},
     .comment_open = "/*",
     .comment_close = "*/",
     .quotes = "\"'",
     .keywords = "important inherit initial none auto"},
    {.title = "SQL",
     .names = "sql mysql postgresql postgres sqlite plsql tsql",
     .line_comments = {"--"},
     .comment_open = "/*",
     .comment_close = "*/",
     .quotes = "'\"`",
     .keywords = "add all alter and any as asc begin between by case check column commit constraint create "
                 "cross database default "
                 "delete desc distinct drop else end except exists foreign from full group having if in "
                 "index inner insert "
                 "intersect into is join key left like limit not null offset on or order outer over "
                 "partition primary "
                 "references returning right rollback select set table then transaction truncate union "
                 "unique update using "
                 "values view when where with",
     .types = "bigint blob boolean char date datetime decimal double float int integer json numeric real "
              "smallint text time "
              "timestamp varchar count sum avg min max coalesce",
     .any_case = true},
    {.title = "Markdown", .names = "markdown md", .grammar = Grammar::kMarkdown},
    {.title = "Lua",
     .names = "lua",
     .line_comments = {"--"},
     .quotes = "\"'",
     .long_strings = {LongString{"--[[", "]]", CodeKind::kComment}, LongString{"[[", "]]"}},
     .keywords = "and break do else elseif end false for function goto if in local nil not or repeat return "
                 "then true until while",
     .types = "string table math io os pairs ipairs print require self"},
    {.title = "Diff", .names = "diff patch", .grammar = Grammar::kDiff},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80u) != 0;
}
bool in_name(char c) { return begins_name(c) || is_digit(c); }

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

bool holds_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const bool begins = at == 0 || words[at - 1] == ' ';
    const std::size_t end = at + word.size();
    if (begins && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

using WordSet = std::unordered_set<std::string_view>;

WordSet split_words(std::string_view words) {
  WordSet result;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (end > 0) result.insert(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return result;
}

// The words of each row of the table, made once.
struct Words {
  std::array<WordSet, std::size(kSyntaxes)> keywords, types;
  Words() {
    for (std::size_t i = 0; i < std::size(kSyntaxes); ++i) {
      keywords[i] = split_words(kSyntaxes[i].keywords);
      types[i] = split_words(kSyntaxes[i].types);
    }
  }
};

const Words& words() {
  static const Words kWords;
  return kWords;
}

class LineLexer {
 public:
  LineLexer(const CodeSyntax& syntax, std::string_view line, CodeState& state, std::vector<CodeToken>& tokens)
      : syntax_(syntax),
        index_(static_cast<std::size_t>(&syntax - kSyntaxes)),
        line_(line),
        state_(state),
        tokens_(tokens) {}

  void run() {
    if (syntax_.grammar == Grammar::kDiff) return diff();
    if (syntax_.grammar == Grammar::kMarkdown) return markdown();
    finish_what_began_before();
    if (at_ == 0 && syntax_.directives) directive();
    while (at_ < line_.size()) {
      if (syntax_.grammar == Grammar::kMarkup) {
        markup();
      } else {
        program();
      }
    }
  }

 private:
  bool here(std::string_view word) const { return !word.empty() && line_.substr(at_, word.size()) == word; }
  char ahead(std::size_t offset) const { return at_ + offset < line_.size() ? line_[at_ + offset] : '\0'; }

  void add(std::size_t begin, std::size_t end, CodeKind kind) {
    if (end > begin)
      tokens_.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end), kind});
    at_ = end;
  }

  // To the end of what `close` ends, or of the line.
  void until(std::string_view close, std::size_t begin, std::size_t from, CodeKind kind) {
    const std::size_t found = line_.find(close, from);
    if (found == std::string_view::npos) return add(begin, line_.size(), kind);
    state_ = {};
    add(begin, found + close.size(), kind);
  }

  void finish_what_began_before() {
    if (state_.inside == CodeState::Inside::kComment) until(syntax_.comment_close, 0, 0, CodeKind::kComment);
    if (state_.inside == CodeState::Inside::kLongString) {
      const LongString& string = syntax_.long_strings[state_.which];
      if (at_ == 0) until(string.close, 0, 0, string.kind);
    }
  }

  void program() {
    const char c = line_[at_];
    if (is_blank(c)) {
      ++at_;
    } else if (comment() || long_string() || string()) {
      return;
    } else if (is_digit(c) || (c == '.' && is_digit(ahead(1))) || hex_colour()) {
      number();
    } else if (begins_name(c)) {
      name();
    } else if (syntax_.dollar_variables && c == '$') {
      variable();
    } else if ((syntax_.attributes || syntax_.grammar == Grammar::kStyleSheet) && c == '@' &&
               begins_name(ahead(1))) {
      const std::size_t begin = at_++;
      add(begin, name_end(), CodeKind::kKeyword);
    } else {
      ++at_;
    }
  }

  bool comment() {
    // A shell's "#" counts only where a word could begin: "$#" and "a#b" are none.
    for (const std::string_view mark : syntax_.line_comments) {
      if (!here(mark)) continue;
      if (mark == "#" && at_ > 0 && !is_blank(line_[at_ - 1]) && syntax_.dollar_variables) continue;
      if (mark == "--" && here("--[[") && !syntax_.long_strings[0].open.empty()) continue;
      if (mark == "//" && at_ > 0 && line_[at_ - 1] == ':') continue;  // of an address
      add(at_, line_.size(), CodeKind::kComment);
      return true;
    }
    if (!here(syntax_.comment_open)) return false;
    state_.inside = CodeState::Inside::kComment;
    until(syntax_.comment_close, at_, at_ + syntax_.comment_open.size(), CodeKind::kComment);
    return true;
  }

  bool long_string() {
    for (std::size_t i = 0; i < syntax_.long_strings.size(); ++i) {
      const LongString& string = syntax_.long_strings[i];
      if (!here(string.open)) continue;
      state_ = {CodeState::Inside::kLongString, static_cast<std::uint8_t>(i)};
      until(string.close, at_, at_ + string.open.size(), string.kind);
      return true;
    }
    return false;
  }

  bool string() {
    const char quote = line_[at_];
    if (syntax_.quotes.find(quote) == std::string_view::npos) return false;
    if (quote == '\'' && syntax_.quote_may_be_lifetime && ahead(1) != '\\' && ahead(2) != '\'') {
      const std::size_t begin = at_++;
      add(begin, name_end(), CodeKind::kType);
      return true;
    }
    std::size_t end = at_ + 1;
    while (end < line_.size() && line_[end] != quote) end += line_[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, line_.size());
    const bool key = syntax_.grammar == Grammar::kData && followed_by(end, ":=");
    add(at_, end, key ? CodeKind::kType : CodeKind::kString);
    return true;
  }

  bool followed_by(std::size_t from, std::string_view any) const {
    while (from < line_.size() && is_blank(line_[from])) ++from;
    return from < line_.size() && any.find(line_[from]) != std::string_view::npos;
  }

  bool hex_colour() const {
    return syntax_.grammar == Grammar::kStyleSheet && line_[at_] == '#' &&
           std::isxdigit(static_cast<unsigned char>(ahead(1))) != 0;
  }

  void number() {
    std::size_t end = at_ + 1;
    while (end < line_.size()) {
      const char c = line_[end], before = lower(line_[end - 1]);
      const bool exponent_sign = (c == '+' || c == '-') && (before == 'e' || before == 'p') && !here("0x");
      if (!in_name(c) && c != '.' && c != '%' && c != '\'' && !exponent_sign) break;
      if (c == '\'' && !(end + 1 < line_.size() && is_digit(line_[end + 1]))) break;
      if (c == '.' && end + 1 < line_.size() && line_[end + 1] == '.') break;  // a range
      ++end;
    }
    add(at_, end, CodeKind::kNumber);
  }

  std::size_t name_end() const {
    std::size_t end = at_;
    while (end < line_.size() && in_name(line_[end])) ++end;
    return end;
  }

  void name() {
    std::size_t end = name_end();
    const bool dashes = syntax_.grammar == Grammar::kStyleSheet || syntax_.grammar == Grammar::kData;
    while (dashes && end < line_.size() && (in_name(line_[end]) || line_[end] == '-' || line_[end] == '.'))
      ++end;
    const std::string_view word = line_.substr(at_, end - at_);
    const CodeKind kind = kind_of(word, end);
    if (kind == CodeKind::kPlain) {
      at_ = end;
    } else {
      add(at_, end, kind);
    }
  }

  CodeKind kind_of(std::string_view word, std::size_t end) const {
    if (syntax_.grammar == Grammar::kData && followed_by(end, ":=")) return CodeKind::kType;
    if (syntax_.grammar == Grammar::kStyleSheet && followed_by(end, ":")) return CodeKind::kType;
    const auto listed = [&](const WordSet& set) {
      return syntax_.any_case ? set.count(lower_case(word)) > 0 : set.count(word) > 0;
    };
    if (listed(words().keywords[index_])) return CodeKind::kKeyword;
    if (listed(words().types[index_])) return CodeKind::kType;
    if (syntax_.grammar == Grammar::kProgram && end < line_.size() && line_[end] == '(')
      return CodeKind::kFunction;
    return CodeKind::kPlain;
  }

  void variable() {
    const std::size_t begin = at_++;
    if (ahead(0) == '{') {
      const std::size_t close = line_.find('}', at_);
      return add(begin, close == std::string_view::npos ? line_.size() : close + 1, CodeKind::kType);
    }
    add(begin, std::max(name_end(), at_), CodeKind::kType);
  }

  void directive() {
    std::size_t at = 0;
    while (at < line_.size() && is_blank(line_[at])) ++at;
    if (at == line_.size() || line_[at] != '#') return;
    at_ = at + 1;
    while (at_ < line_.size() && is_blank(line_[at_])) ++at_;
    add(at, name_end(), CodeKind::kKeyword);
    if (ahead(1) != '<') return;
    const std::size_t close = line_.find('>', at_);
    if (close != std::string_view::npos) add(at_ + 1, close + 1, CodeKind::kString);
  }

  // Tags with their attributes; text between them stays plain.
  void markup() {
    if (state_.inside == CodeState::Inside::kTag) return tag();
    if (comment()) return;
    if (line_[at_] == '<' &&
        (begins_name(ahead(1)) || ahead(1) == '/' || ahead(1) == '!' || ahead(1) == '?')) {
      state_.inside = CodeState::Inside::kTag;
      const std::size_t begin = at_;
      at_ += 2;
      while (at_ < line_.size() && (in_name(line_[at_]) || line_[at_] == '-' || line_[at_] == ':')) ++at_;
      return add(begin, at_, CodeKind::kKeyword);
    }
    if (line_[at_] == '&') {
      const std::size_t close = line_.find(';', at_);
      if (close != std::string_view::npos && close - at_ < 12) return add(at_, close + 1, CodeKind::kNumber);
    }
    ++at_;
  }

  void tag() {
    if (line_[at_] == '>') {
      state_ = {};
      return add(at_, at_ + 1, CodeKind::kKeyword);
    }
    if (string()) return;
    if (begins_name(line_[at_])) {
      const std::size_t begin = at_;
      while (at_ < line_.size() && (in_name(line_[at_]) || line_[at_] == '-' || line_[at_] == ':')) ++at_;
      return add(begin, at_, CodeKind::kType);
    }
    if (line_[at_] == '/') return add(at_, at_ + 1, CodeKind::kKeyword);
    ++at_;
  }

  void diff() {
    if (line_.empty()) return;
    if (line_.substr(0, 2) == "@@") return add(0, line_.size(), CodeKind::kFunction);
    if (line_.substr(0, 3) == "+++" || line_.substr(0, 3) == "---" || line_.substr(0, 4) == "diff") {
      return add(0, line_.size(), CodeKind::kKeyword);
    }
    if (line_[0] == '+') add(0, line_.size(), CodeKind::kAdded);
    if (line_[0] == '-') add(0, line_.size(), CodeKind::kRemoved);
  }

  void markdown() {
    std::size_t first = 0;
    while (first < line_.size() && is_blank(line_[first])) ++first;
    if (first == line_.size()) return;
    if (line_[first] == '#') return add(first, line_.size(), CodeKind::kKeyword);
    if (line_.substr(first, 3) == "```" || line_[first] == '>')
      return add(first, line_.size(), CodeKind::kComment);
    if (line_[first] == '-' || line_[first] == '*' || line_[first] == '+')
      add(first, first + 1, CodeKind::kKeyword);
    while (at_ < line_.size()) {
      if (line_[at_] != '`') {
        ++at_;
        continue;
      }
      const std::size_t close = line_.find('`', at_ + 1);
      add(at_, close == std::string_view::npos ? line_.size() : close + 1, CodeKind::kString);
    }
  }

  const CodeSyntax& syntax_;
  std::size_t index_;
  std::string_view line_;
  CodeState& state_;
  std::vector<CodeToken>& tokens_;
  std::size_t at_ = 0;
};

}  // namespace

const CodeSyntax* find_syntax(std::string_view name) {
  if (name.empty() || name.size() > 32 || name.find(' ') != std::string_view::npos) return nullptr;
  const std::string wanted = lower_case(name);
  for (const CodeSyntax& syntax : kSyntaxes) {
    if (holds_word(syntax.names, wanted)) return &syntax;
  }
  return nullptr;
}

std::string_view syntax_title(const CodeSyntax& syntax) { return syntax.title; }

void lex_line(const CodeSyntax& syntax, std::string_view line, CodeState& state,
              std::vector<CodeToken>& tokens) {
  LineLexer(syntax, line, state, tokens).run();
}

}  // namespace octavo::ui
