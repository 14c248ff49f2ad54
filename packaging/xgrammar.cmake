# The xgrammar library, for octavo_grammar: schemas, regular expressions and grammars as what may follow, as masks over a vocabulary.
# Built from the pinned sources without its Python bindings.
set(OCTAVO_XGRAMMAR "${octavo_cache_home}/octavo/xgrammar-0.2.8" CACHE PATH "Where packaging/setup unpacked xgrammar's cpp, include and 3rdparty")
if(NOT EXISTS ${OCTAVO_XGRAMMAR}/include/xgrammar/xgrammar.h)
  message(FATAL_ERROR "xgrammar is not in ${OCTAVO_XGRAMMAR}: run packaging/setup")
endif()
file(GLOB xgrammar_sources ${OCTAVO_XGRAMMAR}/cpp/*.cc ${OCTAVO_XGRAMMAR}/cpp/converter_ext/*.cc ${OCTAVO_XGRAMMAR}/cpp/support/*.cc)
list(FILTER xgrammar_sources EXCLUDE REGEX "/json_schema_converter\\.cc$")

# 0.2.8 lets through what is no JSON, or what its own pattern does not say: raw control characters where a string has a length, halves of
# surrogate pairs, quotes in strings whose pattern it cannot turn into states, and, as further properties, those of the schema in another spelling.
set(xgrammar_converter ${CMAKE_BINARY_DIR}/xgrammar/json_schema_converter.cc)
file(READ ${OCTAVO_XGRAMMAR}/cpp/json_schema_converter.cc xgrammar_text)
function(xgrammar_replace old new)
  string(FIND "${xgrammar_text}" "${old}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "packaging/xgrammar.cmake: json_schema_converter.cc does not hold '${old}'")
  endif()
  string(REPLACE "${old}" "${new}" xgrammar_text "${xgrammar_text}")
  set(xgrammar_text "${xgrammar_text}" PARENT_SCOPE)
endfunction()
xgrammar_replace([=[{{'"', '"'}, {'\\', '\\'}, {'\r', '\r'}, {'\n', '\n'}}, true);]=] [=[{{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {0xd800, 0xdfff}}, true);]=])
xgrammar_replace([=[      {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {'\r', '\r'}, {'\n', '\n'}}, true]=] [=[      {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {0xd800, 0xdfff}}, true]=])
xgrammar_replace([=[  builder_.UpdateRuleBody(kBasicEscape, Choice({escaped_character, unicode_escape}));]=]
[=[  const auto hex = hexadecimal_character;
  const auto d = builder_.AddCharacterClass({{'D', 'D'}, {'d', 'd'}});
  const auto other = builder_.AddCharacterClass({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}});
  const auto low = builder_.AddCharacterClass({{'0', '7'}});
  const auto first_half = builder_.AddCharacterClass({{'8', '9'}, {'A', 'B'}, {'a', 'b'}});
  const auto second_half = builder_.AddCharacterClass({{'C', 'F'}, {'c', 'f'}});
  (void)unicode_escape;
  builder_.UpdateRuleBody(
      kBasicEscape,
      Choice({escaped_character, Sequence({ByteString("u"), other, hex, hex, hex}), Sequence({ByteString("u"), d, low, hex, hex}),
              Sequence({ByteString("u"), d, first_half, hex, hex, ByteString("\\u"), d, second_half, hex, hex})}));]=])
xgrammar_replace([=[  if (!node.is_terminal) {
    choices.push_back(ByteString("\""));]=]
[=[  const bool is_inside = !node.children.empty() && (node.children.begin()->first & 0xc0) == 0x80;  // of a character
  if (!node.is_terminal && !is_inside) {
    choices.push_back(ByteString("\""));]=])
xgrammar_replace([=[    for (unsigned char c : prop.name) {
      cur = &cur->children[c];
    }
    cur->is_terminal = true;]=]
[=[    bool is_whole = true;  // what is escaped is no way into the key
    for (unsigned char c : prop.name) {
      is_whole = is_whole && c != '"' && c != '\\' && c >= 0x20;
      if (is_whole) cur = &cur->children[c];
    }
    cur->is_terminal = cur->is_terminal || is_whole;]=])
xgrammar_replace([=[    excluded.push_back({character, character});]=]
[=[    if (character < 0x80) excluded.push_back({character, character});
    else excluded.push_back({0x80, 0x10ffff});]=])
xgrammar_replace([=[  choices.push_back(Sequence({builder_.AddCharacterClass(excluded, true), RuleRef(kBasicStringSub)})]=]
[=[  excluded.push_back({0xd800, 0xdfff});
  if (!is_inside) choices.push_back(Sequence({builder_.AddCharacterClass(excluded, true), RuleRef(kBasicStringSub)})]=])
xgrammar_replace([=[  choices.push_back(Sequence({ByteString("\\"), RuleRef(kBasicEscape), RuleRef(kBasicStringSub)}));]=] [=[]=])
xgrammar_replace([=[  return AddSubGrammar(Grammar::FromEBNF(RegexToEBNF(regex)));]=]
[=[  if (json_string) XGRAMMAR_LOG(FATAL) << "the pattern is too much for a JSON string: " << regex;
  return AddSubGrammar(Grammar::FromEBNF(RegexToEBNF(regex)));]=])
file(CONFIGURE OUTPUT ${xgrammar_converter} CONTENT "@xgrammar_text@" @ONLY)
list(APPEND xgrammar_sources ${xgrammar_converter})
add_library(octavo_xgrammar STATIC ${xgrammar_sources})
set_target_properties(octavo_xgrammar PROPERTIES CXX_STANDARD 17)
target_include_directories(octavo_xgrammar SYSTEM PUBLIC
  ${OCTAVO_XGRAMMAR}/include ${OCTAVO_XGRAMMAR}/3rdparty/dlpack/include PRIVATE ${OCTAVO_XGRAMMAR}/3rdparty/picojson ${OCTAVO_XGRAMMAR}/cpp)
target_compile_definitions(octavo_xgrammar PRIVATE XGRAMMAR_ENABLE_CPPTRACE=0 XGRAMMAR_ENABLE_INTERNAL_CHECK=0)
# Masks are made while tokens wait for them; reading a schema is short, however slowly.
set(xgrammar_readers ${xgrammar_sources})
list(FILTER xgrammar_readers INCLUDE REGEX "(/converter_ext/.*|/(json_schema_converter|lark_converter|structural_tag|regex_converter|grammar_parser|grammar_printer|grammar_builder|config))\\.cc$")
set_source_files_properties(${xgrammar_readers} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O0>)
target_compile_options(octavo_xgrammar PRIVATE -w $<$<CONFIG:Release>:-O1>)
target_link_libraries(octavo_xgrammar PUBLIC Threads::Threads)
