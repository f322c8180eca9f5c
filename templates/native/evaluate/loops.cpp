// Loops, and the items of values.

#include "evaluate/evaluator.h"
#include "text/characters.h"
#include "values/text_edit.h"

namespace tokenweir::templates {

List* Evaluator::to_list(const Value& value) {
  switch (value.kind) {
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range: return value.list;
    case Kind::Undefined:
    case Kind::Missing: return List::make(workspace, 0);
    case Kind::Text: return characters(workspace, value.text);
    case Kind::Dict:
    case Kind::View: {
      const Dict& dict = *value.dict;
      const auto view = value.kind == Kind::Dict ? ViewKind::Keys : static_cast<ViewKind>(value.detail);
      List* const list = List::make(workspace, dict.size);
      workspace.spend(dict.size / 4);
      for (const Entry& entry : dict) {
        if (view != ViewKind::Items) {
          list->add(workspace, view == ViewKind::Keys ? entry.key : entry.value);
          continue;
        }
        const Value pair[] = {entry.key, entry.value};
        list->add(workspace, Value::of_tuple(List::of(workspace, pair, 2)));
      }
      return list;
    }
    case Kind::Generator: {
      List* const list = List::make(workspace, 4);
      for (Value item; value.generator->next(*this, item);) {
        workspace.spend(1);
        list->add(workspace, item);
      }
      return list;
    }
    case Kind::Loop: {  // what is left of it
      List* const list = List::make(workspace, 4);
      while (value.loop->has(*this, value.loop->at + 1))
        list->add(workspace, value.loop->items->items[++value.loop->at]);
      return list;
    }
    default: type_error("'", type_name(value), "' object is not iterable");
  }
}

Iterator Evaluator::iterate(const Value& value) {
  if (value.kind == Kind::Generator) return {nullptr, 0, value.generator};
  return {to_list(value), 0, nullptr};
}

bool LoopState::fetch(Evaluator& evaluator, uint32_t index) {
  Value item;
  while (index >= items->size) {
    if (!source.next(evaluator, item)) {
      complete = true;
      return false;
    }
    evaluator.workspace.spend(1);
    if (node->test) {
      evaluator.assign(*node->test_target, item, *frame);
      if (!truth(evaluator.eval(*node->test, *frame))) continue;
    }
    items->add(evaluator.workspace, item);
  }
  return true;
}

Value LoopState::field(Evaluator& evaluator, LoopField field) {
  const auto all = [&] {
    while (!complete) has(evaluator, items->size);
    return static_cast<int64_t>(items->size);
  };
  const int64_t index = at;
  switch (field) {
    case LoopField::Index: return Value::of_int(index + 1);
    case LoopField::Index0: return Value::of_int(index);
    case LoopField::RevIndex: return Value::of_int(all() - index);
    case LoopField::RevIndex0: return Value::of_int(all() - index - 1);
    case LoopField::First: return Value::boolean(index == 0);
    case LoopField::Last: return Value::boolean(!has(evaluator, at + 1));
    case LoopField::Length: return Value::of_int(all());
    case LoopField::Previous: return at ? items->items[at - 1] : Value::undefined_hint("there is no previous item");
    case LoopField::Next:
      return has(evaluator, at + 1) ? items->items[at + 1] : Value::undefined_hint("there is no next item");
    case LoopField::Depth: return Value::of_int(depth + 1);
    case LoopField::Depth0: return Value::of_int(depth);
    case LoopField::None: break;
  }
  return Value();
}

Evaluator::Flow Evaluator::loop(const For& node, Frame& frame, const Value& items, uint32_t depth) {
  // The state lives in the arena, since a macro or a namespace may keep `loop`.
  LoopState* const state = workspace.arena.make<LoopState>();
  state->node = &node;
  state->frame = &frame;
  state->source = iterate(items);
  state->depth = depth;
  state->complete = !node.test && !state->source.generator;
  state->items = state->complete ? state->source.list : List::make(workspace, 4);
  frame.slots[node.loop_slot] = Value::of(Kind::Loop, &Value::loop, state);
  bool ended = false;  // some turn came to the end of the body
  for (; state->has(*this, state->at); state->at++) {
    workspace.spend(1);
    clear(frame, node.body_slots);
    const Value& item = state->items->items[state->at];
    if (node.target->kind == Target::Kind::Variable)
      frame.slots[node.target->slot] = item;
    else
      assign(*node.target, item, frame);
    const uint32_t media = media_;
    if (item.kind == Kind::Dict && is_media(item)) media_ = item.origin;
    const Flow flow = run(node.body, frame);
    media_ = media;
    if (flow == Flow::Next) ended = true;
    if (flow == Flow::Break) break;
  }
  if (ended || !node.otherwise.size) return Flow::Next;
  clear(frame, node.else_slots);
  return run(node.otherwise, frame);
}

// Whether an item is a part of a message's content that stands for an image, a video or sound.
bool Evaluator::is_media(const Value& item) const {
  if (!origins_.is_part(item.origin)) return false;
  const auto names_media = [](std::string_view name) {
    for (const std::string_view kind : {"image", "video", "audio"})
      if (name.find(kind) != name.npos) return true;
    return false;
  };
  for (const Entry& entry : *item.dict) {
    if (names_media(entry.symbol->text)) return true;
    if (entry.symbol->text == "type" && entry.value.is_text() && names_media(workspace.flat(entry.value.text)))
      return true;
  }
  return false;
}

Value Evaluator::call_loop(LoopState& state, const Value& items) {
  const For& node = *state.node;
  if (!node.recursive) type_error("The loop must have the 'recursive' marker to be called recursively.");
  check_stack("loops");
  // The calling turn continues with its own variables.
  const SlotRange range = node.all_slots;
  const std::vector<Value> kept(state.frame->slots + range.begin, state.frame->slots + range.end);
  const uint32_t line = line_;
  Rope rope(workspace);
  loop(node, *state.frame, items, state.depth + 1);
  Text* const text = rope.finish();
  std::copy(kept.begin(), kept.end(), state.frame->slots + range.begin);
  line_ = line;
  return Value::of_text(text);
}

std::string loop_text(LoopState& loop) {
  return "<LoopContext " + std::to_string(loop.at + 1) + "/" + std::to_string(loop.items->size) + ">";
}

}  // namespace tokenweir::templates
