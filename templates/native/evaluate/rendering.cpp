#include "evaluate/rendering.h"

#include "text/characters.h"

namespace tokenweir::templates {

namespace {
// A template may look at each message from each other one: real ones take 2.5 steps for each pair.
constexpr uint64_t kFewestSteps = 1 << 22, kMostSteps = 1 << 26, kStepsPerPair = 64;
}  // namespace

Rendering::Rendering(std::shared_ptr<const Template> source)
    : source_(std::move(source)),
      names_(std::make_unique<Arena>(kMostMemory)),
      workspace_(std::make_unique<Workspace>(*names_, &source_->symbols(), kMostMemory, kMostText)),
      inputs_(Dict::make(*workspace_, 16)) {}

Rendering::Rendering(std::vector<Span> spans, std::vector<std::pair<uint64_t, uint64_t>> generation, uint64_t steps)
    : names_(std::make_unique<Arena>(kMostMemory)),
      restored_(std::make_unique<SymbolTable>(*names_)),
      inputs_(nullptr),
      spans_(std::move(spans)),
      generation_(std::move(generation)),
      steps_(steps) {}

void Rendering::set_input(std::string_view name, const Value& value) {
  set_name(*workspace_, *inputs_, workspace_->symbols.intern(name), value);
}

uint64_t Rendering::most_steps() const {
  uint64_t longest = 0;
  for (const Entry& entry : *inputs_)
    if (entry.value.kind == Kind::List) longest = std::max<uint64_t>(longest, entry.value.list->size);
  return std::min(kMostSteps, kFewestSteps + kStepsPerPair * longest * longest);
}

void Rendering::run(const Clock& clock) {
  Workspace& workspace = *workspace_;
  note_answers();
  workspace.steps = 0;
  workspace.max_steps = most_steps();
  Evaluator evaluator(workspace, origins_, *inputs_, clock);
  try {
    Rope rope(workspace);
    evaluator.run(source_->statements(), source_->slots());
    join(rope.finish());
  } catch (Failure& failure) {
    if (!failure.line) failure.line = evaluator.line();
    throw;
  }
  steps_ = workspace.steps;
  workspace_.reset();
}

void Rendering::join(Text* output) {
  Workspace& workspace = *workspace_;
  text_.reserve(output->size);
  spans_.reserve(32);
  uint32_t open = 0;
  uint64_t began = 0;
  const char* last_end = nullptr;
  workspace.leaves(output, [&](Text* leaf) {
    if (leaf->is_mark()) {
      if (leaf->origin == kGenerationBegins && !open++) began = text_.size();
      if (leaf->origin == kGenerationEnds && open && !--open) generation_.emplace_back(began, text_.size());
      return;
    }
    if (!leaf->size) return;
    text_.append(leaf->bytes, leaf->size);
    const std::string_view bytes{leaf->bytes, leaf->size};
    const auto characters = static_cast<uint32_t>(leaf->ascii == 1 ? leaf->size : count_characters(bytes));
    if (!spans_.empty()) {
      Span& last = spans_.back();
      const bool follows =
          leaf->origin < Origins::kFirst || (leaf->changed ? last.changed : !last.changed && last_end == leaf->bytes);
      if (last.origin == leaf->origin && follows) {
        last.size += leaf->size;
        last.characters += characters;
        last_end = leaf->bytes + leaf->size;
        return;
      }
    }
    last_end = leaf->bytes + leaf->size;
    const bool is_input = leaf->origin >= Origins::kFirst;
    spans_.push_back({leaf->size, characters, leaf->origin, is_input ? leaf->offset : 0, is_input && leaf->changed});
  });
}

// Tells the texts of assistants' contents, in which thinking tags may count as the template's.
void Rendering::note_answers() {
  const Symbol* const messages = workspace_->symbols.find("messages");
  const Symbol *const role = workspace_->symbols.find("role"), *const content = workspace_->symbols.find("content");
  const Value* const list = messages ? inputs_->find(messages) : nullptr;
  if (!list || !role || !content || list->kind != Kind::List) return;
  const auto note = [&](auto& self, const Value& value) -> void {
    if (value.is_text())
      workspace_->leaves(value.text, [&](const Text* leaf) {
        if (leaf->origin >= Origins::kFirst && !leaf->is_mark()) origins_.at(leaf->origin).answered = true;
      });
    if (value.kind == Kind::List)
      for (const Value& item : *value.list) self(self, item);
    if (value.kind == Kind::Dict)
      for (const Entry& entry : *value.dict) self(self, entry.value);
  };
  for (const Value& message : *list->list) {
    if (message.kind != Kind::Dict) continue;
    const Value *const name = message.dict->find(role), *const text = message.dict->find(content);
    if (name && text && name->is_text() && workspace_->flat(name->text) == "assistant") note(note, *text);
  }
}

std::vector<bool> Rendering::written() const {
  std::vector<bool> written(origins_.size());
  for (const Span& span : spans_) written[span.origin] = true;
  return written;
}

std::string_view Rendering::cut(std::string_view text, uint64_t characters) {
  uint64_t kept = 0;
  size_t size = 0, count = 0;
  for (; count < spans_.size() && kept < characters; count++) {
    Span& span = spans_[count];
    if (kept + span.characters > characters) {
      span.characters = static_cast<uint32_t>(characters - kept);
      span.size = static_cast<uint32_t>(byte_of_character(text.substr(size, span.size), span.characters));
    }
    kept += span.characters;
    size += span.size;
  }
  spans_.resize(count);
  std::erase_if(generation_, [&](const auto& stretch) { return stretch.first >= size; });
  for (auto& stretch : generation_) stretch.second = std::min<uint64_t>(stretch.second, size);
  return text.substr(0, size);
}

}  // namespace tokenweir::templates
