#include "engine/model/hugging_face/vocabulary_templates.h"

#include <optional>
#include <string_view>
#include <utility>

#include "engine/base/ascii.h"
#include "engine/model/limits.h"

namespace octavo::model::vocabulary {
namespace {

// The form of Llama 2's chats (Touvron et al. 2023, arXiv:2307.09288): a system prompt stands within the
// first question, and each pair of question and answer is a sequence of its own.
constexpr std::string_view kLlama2Template = R"({%- set turns = messages -%}
{%- set rules = '' -%}
{%- if messages[0]['role'] == 'system' -%}
  {%- set turns = messages[1:] -%}
  {%- set rules = '<<SYS>>\n' + messages[0]['content'] + '\n<</SYS>>\n\n' -%}
{%- endif -%}
{%- for turn in turns -%}
  {%- if (turn['role'] == 'user') != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('Questions and answers must alternate, beginning with a question.') -}}
  {%- endif -%}
  {%- if turn['role'] == 'user' -%}
    {{- bos_token + '[INST] ' + (rules if loop.first else '') -}}{{- turn['content'].strip() -}}{{- ' [/INST]' -}}
  {%- else -%}
    {{- ' ' -}}{{- turn['content'].strip() -}}{{- ' ' + eos_token -}}
  {%- endif -%}
{%- endfor -%})";

struct NamedForm {
  std::string_view part, further_part;  // of a name in small letters
  std::string_view source;
  std::string_view title;
};
constexpr NamedForm kNamedForms[] = {
    {"vicuna", "", "vicuna", "Vicuna's"},  // ChatTemplate::parse knows it
    {"llama-2", "chat", kLlama2Template, "Llama 2's"},
};

// The folder's own name, and that of its repository in the cache of the hub: its grandparent is
// models--owner--name.
std::vector<std::string> names_of(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  const std::filesystem::path absolute = std::filesystem::absolute(folder).lexically_normal();
  for (const std::filesystem::path& part : absolute) {
    const std::string name = ascii_lower_case(part.string());
    if (name.starts_with("models--")) names.push_back(name);
  }
  const std::filesystem::path own =
      absolute.has_filename() ? absolute.filename() : absolute.parent_path().filename();
  names.push_back(ascii_lower_case(own.string()));
  return names;
}

const NamedForm* form_by_name(const std::filesystem::path& folder) {
  for (const std::string& name : names_of(folder)) {
    for (const NamedForm& form : kNamedForms) {
      const bool is_first_vicuna = name.find("-v0") != std::string::npos;  // "### Human:", another form
      if (name.find(form.part) != std::string::npos && name.find(form.further_part) != std::string::npos &&
          !is_first_vicuna)
        return &form;
    }
  }
  return nullptr;
}

// A text, or a list of texts with names.
Result<std::optional<std::string>> template_in(const Json& config, const std::string& file) {
  const Json* const value = find(config, "chat_template");
  if (value == nullptr) return std::optional<std::string>();
  if (value->is_string()) return std::optional<std::string>(value->get<std::string>());
  if (!value->is_array()) return damaged(file, "has a chat_template that is neither a text nor a list");
  for (const Json& named : *value) {
    if (find_text(named, "name") == "default") return find_text(named, "template");
  }
  return std::optional<std::string>();
}

}  // namespace

Result<void> read_chat_template(const std::filesystem::path& folder, const Json& tokenizer_config,
                                tokenizer::Vocabulary& vocabulary) {
  OCTAVO_TRY(std::optional<std::string> source,
             read_file(folder, "chat_template.jinja", kMaxChatTemplateBytes));
  if (!source) {
    OCTAVO_TRY(const Json file, read_object(folder, "chat_template.json"));
    OCTAVO_TRY(source, template_in(file, "chat_template.json"));
  }
  if (!source) {
    OCTAVO_TRY(source, template_in(tokenizer_config, "tokenizer_config.json"));
  }
  if (source && source->size() > kMaxChatTemplateBytes) {
    return unsupported("tokenizer_config.json", "has a chat template of " + std::to_string(source->size()) +
                                                    " bytes; at most " +
                                                    std::to_string(kMaxChatTemplateBytes) + " are supported");
  }
  if (source) {
    vocabulary.chat_template = *std::move(source);
  } else if (const NamedForm* const form = form_by_name(folder)) {
    vocabulary.chat_template = std::string(form->source);
    vocabulary.notice =
        "the folder has no chat template: chats have " + std::string(form->title) + " form, by its name";
  }
  return {};
}

}  // namespace octavo::model::vocabulary
