// One render: its input, its bounds and its output.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evaluate/evaluator.h"
#include "language/template.h"
#include "text/origin.h"

namespace tokenweir::templates {

// A stretch of the output that one origin wrote.
struct Span {
  uint32_t size, characters;
  uint32_t origin;
  uint32_t offset;  // in bytes of the origin's text; where the changed text began, if it was changed
  bool changed;
};

class Rendering {
 public:
  // Bytes of memory beside the output, and bytes of any text.
  static constexpr size_t kMostMemory = 160 << 20, kMostText = 64 << 20;

  explicit Rendering(std::shared_ptr<const Template> source);
  // Restores the results of `run` from a saved state. `name` makes the keys of its origins.
  Rendering(std::vector<Span> spans, std::vector<std::pair<uint64_t, uint64_t>> generation, uint64_t steps);
  const Symbol* name(std::string_view text) { return restored_->intern(text); }
  void set_input(std::string_view name, const Value& value);

  // The roles of the messages, where the input was a conversation.
  std::vector<const Symbol*> roles;
  // Paths of arguments of calls that were mended, and lost text by it.
  std::vector<std::string> mended;

  // The workspace and tables into which the input is read, before `run`.
  Workspace& workspace() { return *workspace_; }
  Dict& inputs() { return *inputs_; }
  Origins& origins() { return origins_; }
  const Origins& origins() const { return origins_; }

  // Renders. Raises Failure with the line. The workspace is gone after it, and what inputs refer to need not live on.
  void run(const Clock& clock);

  std::string take_text() { return std::move(text_); }
  const std::vector<Span>& spans() const { return spans_; }
  // Byte offsets of generation blocks, ascending; those within another are left out.
  const std::vector<std::pair<uint64_t, uint64_t>>& generation() const { return generation_; }
  uint64_t steps() const { return steps_; }
  // For each origin, whether the output has any of it.
  std::vector<bool> written() const;
  // Drops the output behind `characters` characters. `text` is the output; its remaining part is returned.
  std::string_view cut(std::string_view text, uint64_t characters);

 private:
  uint64_t most_steps() const;
  void note_answers();
  void join(Text* output);

  std::shared_ptr<const Template> source_;
  std::unique_ptr<Arena> names_;  // of the keys in `origins_`
  std::unique_ptr<SymbolTable> restored_;
  std::unique_ptr<Workspace> workspace_;
  Dict* inputs_;
  Origins origins_;
  std::string text_;
  std::vector<Span> spans_;
  std::vector<std::pair<uint64_t, uint64_t>> generation_;
  uint64_t steps_ = 0;
};

}  // namespace tokenweir::templates
