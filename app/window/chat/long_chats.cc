#include "app/window/chat/long_chats.h"

#include <string>

namespace octavo::app {
namespace {

constexpr std::int32_t kAnswerTokens = 280;

}  // namespace

const std::array<std::string_view, 2>& long_questions() {
  static constexpr std::array<std::string_view, 2> kQuestions = {
      "The lighthouse keeper\n\nRead how the story begins, then tell what happens next, at length.\n\n"
      "Every evening at six, old Marten climbed the hundred and twelve steps to the lamp room, trimmed the "
      "wick and polished the brass until he could see his own tired face in it. The island had no other "
      "house, no tree, and no road. A boat came on the first of each month with oil, flour, letters and "
      "news that was already old. In the winter of the great storms the boat did not come at all, and on "
      "the fortieth day without it Marten found, at the foot of the tower, a wooden box that the sea had "
      "carried up. It was tied with red string. On its lid somebody had painted, in careful white letters, "
      "the name that he had not used since he was a boy. He carried it inside, set it on the table beside "
      "the lamp, and for a long time did nothing but listen to the wind.",
      "A garden for a school\n\nRead what there is, then plan the first year in detail, month by month.\n\n"
      "The yard behind the school is thirty metres long and twelve metres wide. Along its northern side "
      "runs a brick wall that is warm all afternoon; the southern side lies in the shade of four lime "
      "trees. The soil is heavy clay, wet in spring and hard as stone in August. There is one tap, a shed "
      "with eleven spades, two wheelbarrows of which one has a flat tyre, and a heap of old window frames "
      "from the last repair. Sixty children between seven and eleven years of age will work there, in "
      "groups of ten, for one hour a week. They want strawberries, pumpkins, sunflowers, a pond for frogs "
      "and something that grows taller than their teacher. The parents have collected four hundred pounds, "
      "and the cook will take everything that can be eaten. Nobody is there during the summer holidays, "
      "from the middle of July to the end of August."};
  return kQuestions;
}

// Answers end at a length and not where the model would end them: else one may be over before the other
// needs its blocks. The chats' own sampling, never the settings'.
void LongChats::apply(const ui::actions::StartTwoLongChats&) {
  for (const std::string_view question : long_questions()) {
    const ChatId id = chats_.begin();
    Chat& chat = chats_.change(id, Changed::kHead)->chat;
    chat.system_prompt.clear();
    chat.sampling.ignore_eos = true;
    chat.sampling.max_tokens = kAnswerTokens;
    questions_.apply(ui::actions::SendMessage{id, std::string(question)});
  }
  state_.workspace = ui::Workspace::kMemory;
}

}  // namespace octavo::app
