// The class Rendering of the compiled module.
#include "python/python_binding.h"

#include "text/characters.h"

namespace tokenweir::templates {
namespace {

nb::object text(PyRendering& self) {
  if (!self.text.is_valid()) self.text = new_str(self.view());
  return self.text;
}

nb::list spans(const PyRendering& self) {
  nb::list list;
  uint64_t at = 0;
  for (const Span& span : self.rendering->spans()) {
    list.append(nb::make_tuple(at, at + span.size, span.origin, span.offset, span.changed));
    at += span.size;
  }
  return list;
}

nb::list character_spans(const PyRendering& self) {
  nb::list list;
  uint64_t at = 0;
  for (const Span& span : self.rendering->spans()) {
    list.append(nb::make_tuple(at, at + span.characters, span.origin, span.changed));
    at += span.characters;
  }
  return list;
}

nb::list left_out(const PyRendering& self) {
  nb::list list;
  const Origins& origins = self.rendering->origins();
  const std::vector<bool> written = self.rendering->written();
  for (uint32_t i = Origins::kFirst; i < origins.size(); i++) {
    const Origin& origin = origins.at(i);
    if (origin.is_text && origin.step != Origin::Step::Key && !written[i]) list.append(origins.path(i));
  }
  return list;
}

// (start, end, message, part) of what the template wrote for media parts, in characters. What it wrote around a text of the
// part, or around digits, is one place.
nb::list places(const PyRendering& self) {
  const Origins& origins = self.rendering->origins();
  const auto belongs_to = [&](uint32_t origin, uint32_t part) {
    while (origin > part && origin >= Origins::kFirst) origin = origins.at(origin).parent;  // parents come first
    return origin == part;
  };
  struct Found {
    uint64_t start, end;
    uint32_t part;
  };
  std::vector<Found> found;
  uint64_t at = 0;
  bool open = false;  // whether all since the last place belongs to its part
  for (const Span& span : self.rendering->spans()) {
    const bool is_place = span.origin >= Origins::kFirst && origins.at(span.origin).step == Origin::Step::Place;
    if (is_place && open && found.back().part == origins.at(span.origin).parent) {
      found.back().end = at + span.characters;
    } else if (is_place) {
      found.push_back({at, at + span.characters, origins.at(span.origin).parent});
      open = true;
    } else {
      open = open && (span.origin == kFromEngine || belongs_to(span.origin, found.back().part));
    }
    at += span.characters;
  }
  nb::list list;
  for (const Found& place : found) {
    const Origin& part = origins.at(place.part);
    list.append(nb::make_tuple(place.start, place.end, origins.at(origins.at(part.parent).parent).index, part.index));
  }
  return list;
}

// Generation blocks in characters.
nb::list character_generation(const PyRendering& self) {
  const std::string_view text = self.view();
  nb::list list;
  uint64_t byte = 0, character = 0;
  const auto to_character = [&](uint64_t to) {
    character += count_characters(text.substr(byte, to - byte));
    byte = to;
    return character;
  };
  for (const auto& [begin, end] : self.rendering->generation()) {
    const uint64_t start = to_character(begin);
    list.append(nb::make_tuple(start, to_character(end)));
  }
  return list;
}

nb::tuple guarded(const PyRendering& self, const nb::object& tokens) {
  std::vector<uint64_t> offsets;
  if (self.searched.is_valid() && self.searched.is(tokens)) {
    offsets = self.found;
  } else {
    const auto& wanted = nb::cast<const ControlTokens&>(tokens);
    const std::string_view text = self.view();
    const GilRelease unlocked;
    offsets = wanted.guarded(*self.rendering, text);
  }
  return nb::tuple(nb::cast(offsets));
}

// (start, end, answered) of the stretches that are neither the template's nor vouched for, in characters
nb::list unvouched(const PyRendering& self) {
  nb::list list;
  const Origins& origins = self.rendering->origins();
  uint64_t at = 0;
  for (const Span& span : self.rendering->spans()) {
    if (!origins.vouched(span.origin))
      list.append(
          nb::make_tuple(at, at + span.characters, span.origin >= Origins::kFirst && origins.at(span.origin).answered));
    at += span.characters;
  }
  return list;
}

void cut(PyRendering& self, uint64_t characters) {
  self.searched = nb::object();
  self.text = nb::object();
  self.utf8 = std::make_shared<const std::string>(self.rendering->cut(self.view(), characters));
}

nb::tuple roles(const PyRendering& self) {
  nb::list list;
  for (const Symbol* const role : self.rendering->roles) list.append(new_str(role->text));
  return nb::tuple(list);
}

// (UTF-8, spans, origins, generation, steps, roles), for pickle
nb::tuple state(const PyRendering& self) {
  const Rendering& rendering = *self.rendering;
  nb::list spans, origins;
  for (const Span& span : rendering.spans())
    spans.append(nb::make_tuple(span.size, span.characters, span.origin, span.offset, span.changed));
  for (const Origin& origin : rendering.origins().inputs())
    origins.append(nb::make_tuple(origin.parent, static_cast<int>(origin.step), origin.vouched, origin.is_text,
                                  origin.answered, origin.key ? nb::object(new_str(origin.key->text)) : nb::none(),
                                  origin.index));
  return nb::make_tuple(nb::bytes(self.utf8->data(), self.utf8->size()), spans, origins, rendering.generation(),
                        rendering.steps(), roles(self));
}

void restore(PyRendering& self, const nb::tuple& state) {
  std::vector<Span> spans;
  for (const nb::handle span : state[1])
    spans.push_back({nb::cast<uint32_t>(span[0]), nb::cast<uint32_t>(span[1]), nb::cast<uint32_t>(span[2]),
                     nb::cast<uint32_t>(span[3]), nb::cast<bool>(span[4])});
  auto generation = nb::cast<std::vector<std::pair<uint64_t, uint64_t>>>(state[3]);
  auto rendering = std::make_shared<Rendering>(std::move(spans), std::move(generation), nb::cast<uint64_t>(state[4]));
  std::vector<Origin> origins;
  for (const nb::handle origin : state[2]) {
    const nb::object key = origin[5];
    origins.push_back({nb::cast<uint32_t>(origin[0]), static_cast<Origin::Step>(nb::cast<int>(origin[1])),
                       nb::cast<bool>(origin[2]), nb::cast<bool>(origin[3]), nb::cast<bool>(origin[4]),
                       key.is_none() ? nullptr : rendering->name(nb::cast<std::string>(key)),
                       nb::cast<uint32_t>(origin[6])});
  }
  rendering->origins().restore(std::move(origins));
  for (const nb::handle role : state[5]) rendering->roles.push_back(rendering->name(nb::cast<std::string>(role)));
  const auto text = nb::cast<nb::bytes>(state[0]);
  new (&self) PyRendering{rendering, std::make_shared<const std::string>(text.c_str(), text.size())};
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const std::string& text = *nb::inst_ptr<Utf8>(nb::handle(self))->text;
  return PyBuffer_FillInfo(view, self, const_cast<char*>(text.data()), static_cast<Py_ssize_t>(text.size()), 1, flags);
}

PyType_Slot utf8_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)}, {0, nullptr}};

std::string origin(const PyRendering& self, uint32_t index) {
  if (index >= self.rendering->origins().size()) throw nb::index_error("no such origin");
  return self.rendering->origins().path(index);
}

}  // namespace

void bind_rendering(nb::module_& m) {
  nb::class_<Utf8>(m, "Utf8", nb::type_slots(utf8_slots)).def("__len__", [](const Utf8& self) {
    return self.text->size();
  });
  nb::class_<PyRendering>(m, "Rendering")
      .def_prop_ro("utf8", [](const PyRendering& self) { return Utf8{self.utf8}; })
      .def_prop_ro("text", &text)
      .def_prop_ro("continued", [](const PyRendering& self) { return new_str(self.continued); })
      .def_prop_ro("roles", &roles)
      .def_prop_ro("spans", &spans)
      .def_prop_ro("character_spans", &character_spans)
      .def_prop_ro("generation", [](const PyRendering& self) { return self.rendering->generation(); })
      .def_prop_ro("character_generation", &character_generation)
      .def_prop_ro("left_out", &left_out)
      .def_prop_ro("mended", [](const PyRendering& self) { return nb::tuple(nb::cast(self.rendering->mended)); })
      .def_prop_ro("places", &places)
      .def_prop_ro("steps", [](const PyRendering& self) { return self.rendering->steps(); })
      .def_prop_ro("unvouched", &unvouched)
      .def("origin", &origin, nb::arg("index"))
      .def(
          "guarded", [](const PyRendering& self, const nb::object& tokens) { return guarded(self, tokens); },
          nb::arg("tokens"))
      .def("cut", &cut, nb::arg("characters"))
      .def("__getstate__", &state)
      .def("__setstate__", &restore);
}

}  // namespace tokenweir::templates
