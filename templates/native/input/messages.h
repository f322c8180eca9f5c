// A conversation that is read once, for any number of renders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/origin.h"
#include "values/value.h"

namespace tokenweir::templates {

// Messages as values with origins below the variable `messages`. Threads may share them, unless the list grows.
class Messages {
 public:
  Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // The memory and the origins of the messages.
  Workspace& workspace() { return workspace_; }
  Origins& origins() { return origins_; }
  // The origin of the list.
  uint32_t root() const { return Origins::kFirst; }
  void set(const List* list) { list_ = list; }
  // Reads a JSON list of objects. Raises BadInput, BadText or Failure. `bytes` must live as long as this.
  void read_json(std::string_view bytes);

  const List& list() const { return *list_; }
  uint32_t size() const { return list_->size; }
  const Value& operator[](uint32_t index) const { return list_->items[index]; }
  // Bytes of all strings that are no keys.
  uint64_t text_size() const;
  // A message as bytes that no other message has: type, length and content of each value, in order.
  std::string canonical(uint32_t index) const;
  // For each message a hash of its own texts, calls left out. Of a long text it has the length and samples. Those of the
  // first messages may be known.
  void add_text_digests(std::vector<uint64_t>& digests) const;

  // The messages as values of a render, whose origins must be empty. Texts are shared, so this must live until it has run.
  List* copy_into(Workspace& workspace, Origins& origins) const;

 private:
  Arena names_;
  Workspace workspace_;
  Origins origins_;
  const List* list_ = nullptr;
};

// The digest of each prefix of a conversation, by the digests of its messages. That of the empty one is `start`.
std::vector<uint64_t> chain(uint64_t start, const std::vector<uint64_t>& digests);

}  // namespace tokenweir::templates
