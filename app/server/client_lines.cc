#include "app/server/client_lines.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>

#include "app/json/json_text.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

// As one word of a shell.
std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string shell_key(const ServedAddress& served) {
  if (!served.key.empty()) return shell_word(served.key);
  return served.key_file.empty() ? "none" : "\"$(cat " + shell_word(served.key_file) + ")\"";
}

// OpenCode replaces {file:...} in its configuration.
std::string configured_key(const ServedAddress& served) {
  if (!served.key.empty()) return served.key;
  return served.key_file.empty() ? "none" : "{file:" + served.key_file + "}";
}

}  // namespace

std::string http_address(const std::string& host, std::uint16_t port, const std::string& scheme) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return scheme + "://" + (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::vector<PastedLine> client_lines(const ServedAddress& served) {
  const std::string key = shell_key(served), model = shell_word(sanitise_utf8(served.model));
  const std::string openai = served.address + "/v1";
  const std::string provider = R"('model_providers.octavo={name="Octavo",base_url=")" + openai +
                               R"(",wire_api="responses",env_key="OCTAVO_API_KEY"}')";
  const Json open_code = {{"provider",
                           {{"octavo",
                             {{"npm", "@ai-sdk/openai-compatible"},
                              {"options", {{"baseURL", openai}, {"apiKey", configured_key(served)}}},
                              {"models", {{sanitise_utf8(served.model), Json::object()}}}}}}}};
  return {
      {"OpenAI's clients", "export OPENAI_BASE_URL=" + openai + " OPENAI_API_KEY=" + key},
      {"Anthropic's clients", "export ANTHROPIC_BASE_URL=" + served.address + " ANTHROPIC_AUTH_TOKEN=" + key},
      {"Claude Code",
       "ANTHROPIC_BASE_URL=" + served.address + " ANTHROPIC_AUTH_TOKEN=" + key +
           " ANTHROPIC_DEFAULT_OPUS_MODEL=" + model + " ANTHROPIC_DEFAULT_SONNET_MODEL=" + model +
           " ANTHROPIC_DEFAULT_HAIKU_MODEL=" + model + " CLAUDE_CODE_SUBAGENT_MODEL=" + model + " claude"},
      {"Codex", "OCTAVO_API_KEY=" + key + " codex -c model_provider=octavo -c " + provider + " -m " + model},
      {"OpenCode's config", dump(open_code)},
      {"Copilot CLI", "COPILOT_PROVIDER_BASE_URL=" + openai +
                          " COPILOT_PROVIDER_WIRE_API=responses COPILOT_PROVIDER_API_KEY=" + key +
                          " COPILOT_MODEL=" + model + " copilot"},
      {"Open WebUI", "OPENAI_API_BASE_URL=" + openai + " OPENAI_API_KEY=" + key + " open-webui serve"},
      {"curl",
       "curl " + openai + "/chat/completions -H \"Authorization: Bearer " +
           (served.key.empty() && !served.key_file.empty() ? "$(cat " + shell_word(served.key_file) + ")"
                                                           : key) +
           R"(" -H "Content-Type: application/json" -d '{"messages": [{"role": "user", "content": "Hello"}]}')"},
  };
}

std::string random_hex() {
  static std::mutex mutex;
  static std::random_device device;
  const std::lock_guard lock(mutex);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  while (hex.size() < 32) {
    std::uint32_t bits = device();
    for (int i = 0; i < 8; ++i, bits >>= 4) hex += kDigits[bits & 15u];
  }
  return hex;
}

std::string new_server_key() { return "octavo-" + random_hex(); }

}  // namespace octavo::app
