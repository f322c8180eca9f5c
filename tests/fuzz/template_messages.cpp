// Messages as JSON: any bytes are read or refused; what is read is shaped for the server or not, then for a template, and
// rendered. The first byte chooses how.
#include "input/chat_messages.h"
#include "input/history.h"
#include "input/message_forms.h"
#include "input/messages.h"
#include "template.h"

namespace tokenweir::templates {
namespace {

// Reads messages; null: they are refused.
std::unique_ptr<Messages> read(std::string_view json, bool from_server) {
  auto messages = std::make_unique<Messages>();
  try {
    messages->read_json(json);
    if (!from_server) return messages;
    const uint64_t items = count_chat_items(*messages);
    promised(items >= messages->size(), "each message is an item");
    const List* const before = &messages->list();
    if (shape_chat_messages(*messages)) return messages;
    promised(&messages->list() == before, "messages that are not plain stay as they were");
  } catch (const Error& error) {
    promised(*error.what() != '\0', "a refusal says why");
  }
  return nullptr;
}

struct Written {
  std::string text, error;
};

// Renders messages as `render_chat` does.
Written write(const Messages& messages, const std::shared_ptr<const Template>& source, const MessageForm& form,
              const HistoryForm* history, const Continuation* continued) {
  Written out;
  try {
    Rendering rendering(source);
    Workspace& workspace = rendering.workspace();
    List* const list = messages.copy_into(workspace, rendering.origins());
    std::map<uint32_t, std::string> texts;
    note_texts(Value::of_list(list), texts);
    MessageShaper shaper(workspace, rendering.origins(), form);
    shaper.shape(*list, history);
    for (uint32_t i = 0; i < list->size; i++)
      promised(form.roles.contains(std::string(shaper.role(list->items[i])->text)), "a role is one of those allowed");
    if (history) HistoryTidier(workspace, rendering.origins(), *history).tidy(*list, continued);
    if (continued) workspace.flat(shaper.mark_end(*list, *continued));
    note_texts(Value::of_list(list), texts);
    rendering.set_input("messages", Value::of_list(list));
    rendering.run(Clock{});
    out.text = rendering.take_text();
    check_origins(rendering, out.text, texts);
  } catch (const Error& error) {
    out.error = error.what();
  }
  return out;
}

}  // namespace
}  // namespace tokenweir::templates

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  using namespace tokenweir::templates;
  static constexpr std::string_view kSource =
      "{% for m in messages %}{{ m.role }}:{{ m.content }}{{ m.reasoning_content }}{{ m|tojson }}"
      "{% for c in m.tool_calls or [] %}{{ (c.function or c).arguments }}{{ c.id }}{% endfor %};{% endfor %}";
  static const auto source = parsed(kSource);
  if (!size) return 0;
  const uint8_t choice = data[0];
  const std::string json(view(data + 1, size - 1));
  const bool from_server = choice & 1;
  const auto messages = read(json, from_server), again = read(json, from_server);
  promised(!messages == !again, "messages are refused each time or never");
  if (!messages) return 0;
  promised(messages->size() == again->size() && messages->text_size() == again->text_size(), "the same are read");
  std::vector<uint64_t> digests, others;
  messages->add_text_digests(digests);
  again->add_text_digests(others);
  promised(digests == others && digests.size() == messages->size(), "a message has one digest");
  for (uint32_t i = 0; i < messages->size(); i++)
    promised(messages->canonical(i) == again->canonical(i), "and one canonical form");
  static const MessageForm kForms[] = {
      {{"system", "user", "assistant", "tool"}, false, ArgumentForm::Object, {}},
      {{"system", "user", "assistant", "tool"}, true, ArgumentForm::Text, {}},
      {{"system", "developer", "user", "assistant", "tool"}, false, ArgumentForm::Either, {}},
  };
  const MessageForm& form = kForms[(choice >> 1) % 3];
  const bool joins = choice & 0x40;
  const HistoryForm tidied{.arguments = form.arguments,
                           .system = {},
                           .user = {true, form.takes_parts},
                           .assistant = {},
                           .tool = {},
                           .of_calls = NoContent::None,
                           .of_answer = NoContent::Empty,
                           .replaces_empty = joins,
                           .parts_calls = joins,
                           .orders_results = joins,
                           .takes_orphans = !joins,
                           .joins_thinking = joins,
                           .joins_system = joins,
                           .takes_later_system = !joins,
                           .takes_developer = !joins,
                           .call_ids = joins ? "functions.{name}:{number}" : "{letters}"};
  const HistoryForm* const history = choice & 0x20 ? &tidied : nullptr;
  const Continuation continued{choice & 0x10 ? "content" : "reasoning_content", "END", kSource};
  const Continuation* const end = choice & 0x80 ? &continued : nullptr;
  const Written first = write(*messages, source, form, history, end),
                second = write(*again, source, form, history, end);
  const Written shared = write(*messages, source, form, history, end);  // a render leaves the messages as they are
  for (const Written& other : {second, shared})
    promised(first.text == other.text && first.error == other.error, "messages render the same each time");
  return 0;
}
