#include "rendering.h"

#include "characters.h"

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

uint64_t Rendering::most_steps() const {
  uint64_t longest = 0;
  for (uint32_t i = 0; i < inputs_->size; i++)
    if (const Value& value = inputs_->entries[i].value; value.kind == Kind::List)
      longest = std::max<uint64_t>(longest, value.list->size);
  return std::min(kMostSteps, kFewestSteps + kStepsPerPair * longest * longest);
}

void Rendering::run(const Clock& clock) {
  Workspace& workspace = *workspace_;
  workspace.steps = 0;
  workspace.max_steps = most_steps();
  Evaluator evaluator(workspace, *inputs_, clock);
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
  written_.resize(origins_.size());
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
      const bool follows = leaf->origin < Origins::kFirst || (leaf->changed ? last.changed : !last.changed && last_end == leaf->bytes);
      if (last.origin == leaf->origin && follows) {
        last.size += leaf->size;
        last.characters += characters;
        last_end = leaf->bytes + leaf->size;
        return;
      }
    }
    last_end = leaf->bytes + leaf->size;
    written_[leaf->origin] = true;
    const bool is_input = leaf->origin >= Origins::kFirst;
    spans_.push_back({leaf->size, characters, leaf->origin, is_input ? leaf->offset : 0, is_input && leaf->changed});
  });
}

}  // namespace tokenweir::templates
