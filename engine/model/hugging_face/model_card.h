// What the model card of a Hugging Face folder, its README.md, says in the YAML between its first lines
// "---".
#pragma once

#include <filesystem>
#include <string>

namespace octavo::model {

// The licence by its short name, "apache-2.0". Empty where there is no card, or it names none: a card is for
// people, and what cannot be read in it harms nothing.
std::string licence_of_card(const std::filesystem::path& folder);

}  // namespace octavo::model
