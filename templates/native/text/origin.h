// The writer of a byte: the template, the engine, or a place in the input. Origins are numbers; this table has their paths.
#pragma once

#include <string>
#include <vector>

#include "text/symbol.h"
#include "text/text.h"

namespace tokenweir::templates {

// A place in the input: an item of another place, or a variable.
struct Origin {
  // `Key` is the key itself, `Value` what stands under it. `Place` is the template's text for a media part of a content.
  enum class Step : uint8_t { Variable, Key, Value, Item, Place };

  uint32_t parent;
  Step step;
  bool vouched;   // the caller stands for this text as for the template's
  bool is_text;   // a string that is not empty, not a container
  bool answered;  // in the content of an assistant's message
  const Symbol* key;
  uint32_t index;
};

class Origins {
 public:
  static constexpr uint32_t kFirst = 2;  // the first input; those before are kFromTemplate and kFromEngine

  Origins() { inputs_.reserve(32); }

  uint32_t add(uint32_t parent, Origin::Step step, const Symbol* key, uint32_t index = 0) {
    const bool vouched = parent >= kFirst && (at(parent).vouched || is_role(at(parent), step, key));
    inputs_.push_back({parent, step, vouched, false, false, key, index});
    return static_cast<uint32_t>(inputs_.size() - 1 + kFirst);
  }
  uint32_t add_variable(const Symbol* name) { return add(0, Origin::Step::Variable, name); }
  // The place of a media part.
  uint32_t add_place(uint32_t part) {
    inputs_.push_back({part, Origin::Step::Place, true, false, false, nullptr, 0});
    return static_cast<uint32_t>(inputs_.size() - 1 + kFirst);
  }
  // Whether an origin is `messages[i].content[j]`.
  bool is_part(uint32_t origin) const {
    if (origin < kFirst || at(origin).step != Origin::Step::Item) return false;
    const Origin& content = at(at(origin).parent);
    if (content.step != Origin::Step::Value || content.key->text != "content") return false;
    const Origin& message = at(content.parent);
    return message.step == Origin::Step::Item && at(message.parent).step == Origin::Step::Variable &&
           at(message.parent).key->text == "messages";
  }
  Origin& at(uint32_t origin) { return inputs_[origin - kFirst]; }
  const Origin& at(uint32_t origin) const { return inputs_[origin - kFirst]; }
  uint32_t size() const { return static_cast<uint32_t>(inputs_.size()) + kFirst; }
  bool vouched(uint32_t origin) const { return origin == kFromTemplate || (origin >= kFirst && at(origin).vouched); }

  // Such as `messages[3].tool_calls[0].function.arguments.city`; a key ends in ` (key)`.
  std::string path(uint32_t origin) const;

  // Takes the origins of input that was read before, under the same numbers; this object must be empty.
  template <class Translate>
  void adopt(const Origins& read, Translate&& translate) {
    inputs_ = read.inputs_;
    for (Origin& origin : inputs_)
      if (origin.key) origin.key = translate(origin.key);
  }

  // Drops those from a number on.
  void cut(uint32_t size) { inputs_.resize(size - kFirst); }

  const std::vector<Origin>& inputs() const { return inputs_; }
  void restore(std::vector<Origin> inputs) { inputs_ = std::move(inputs); }

 private:
  // The role of a message: callers check it against a list.
  bool is_role(const Origin& message, Origin::Step step, const Symbol* key) const {
    if (step != Origin::Step::Value || message.step != Origin::Step::Item || key->text != "role") return false;
    const Origin& list = at(message.parent);
    return list.step == Origin::Step::Variable && list.key->text == "messages";
  }

  std::vector<Origin> inputs_;
};

}  // namespace tokenweir::templates
