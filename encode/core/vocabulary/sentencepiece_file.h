// Reads the pieces of a SentencePiece model file, a protobuf message (sentencepiece_model.proto) with up to hundreds of
// thousands of them. formats/sentencepiece.py reads the few other fields.
//
// The file is not trusted: a length that exceeds its message is an error, unknown fields are skipped, and a known field
// must have its type.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/utf8_replace.h"

namespace tokenweir {

// A protobuf message, from `at` to `end` of a file.
class ProtobufMessage {
 public:
  enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  struct Field {
    uint64_t number;
    Wire wire;
    size_t start;     // of the tag
    size_t at, end;   // of the value
    uint64_t varint;  // the value of a varint
  };

  ProtobufMessage(std::string_view file, size_t at, size_t end) : file_(file), at_(at), end_(end) {}

  bool more() const { return at_ < end_; }

  // The next field; `path` names the message in errors.
  template <class Path>
  Field next(Path&& path) {
    Field field{};
    field.start = at_;
    const uint64_t tag = varint(path);
    field.number = tag >> 3;
    field.wire = static_cast<Wire>(tag & 7);
    if (field.number == 0 || tag > UINT32_MAX) fail(path, "field " + std::to_string(field.number), field.start);
    uint64_t length = 0;
    switch (field.wire) {
      case kVarint: field.at = at_, field.varint = varint(path); break;
      case kFixed64: length = 8; break;
      case kBytes: length = varint(path); break;
      case kFixed32: length = 4; break;
      default: fail(path, "wire type " + std::to_string(field.wire), field.start);
    }
    if (field.wire != kVarint) field.at = at_;
    if (length > end_ - at_)
      fail(path, "a value of " + std::to_string(length) + " bytes where " + std::to_string(end_ - at_) + " are left",
           at_);
    at_ += length;
    field.end = at_;
    return field;
  }

  template <class Path>
  [[noreturn]] static void fail(Path&& path, const std::string& what, size_t at) {
    throw FileError(path() + ": " + what + " at byte " + std::to_string(at));
  }

 private:
  template <class Path>
  uint64_t varint(Path&& path) {
    uint64_t value = 0;
    const size_t start = at_;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) fail(path, "a number is cut off", start);
      const auto byte = static_cast<uint8_t>(file_[at_++]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail(path, "a number of more than 10 bytes", start);
  }

  std::string_view file_;
  size_t at_, end_;
};

struct SentencePieceFile {
  std::vector<std::string_view> pieces;  // in the file's memory
  std::vector<float> scores;
  std::vector<uint8_t> types;
  std::vector<std::pair<size_t, size_t>> rest;  // the spans between the pieces

  explicit SentencePieceFile(std::string_view file) {
    const auto top = [] { return std::string("model"); };
    ProtobufMessage model(file, 0, file.size());
    size_t after = 0;  // the last piece
    while (model.more()) {
      const auto field = model.next(top);
      if (field.number != 1) continue;
      if (field.wire != ProtobufMessage::kBytes) ProtobufMessage::fail(top, "pieces of another type", field.start);
      if (after < field.start) rest.emplace_back(after, field.start);
      after = field.end;
      add(file, field.at, field.end);
    }
    if (after < file.size()) rest.emplace_back(after, file.size());
  }

 private:
  static constexpr size_t kTooLong = 8000;  // sentencepiece's own limit

  void add(std::string_view file, size_t at, size_t end) {
    const auto path = [&] { return "pieces[" + std::to_string(pieces.size()) + "]"; };
    std::string_view piece;
    float score = 0;
    uint64_t type = 1;
    for (ProtobufMessage message(file, at, end); message.more();) {
      const auto field = message.next(path);
      if (field.number < 1 || field.number > 3) continue;
      constexpr ProtobufMessage::Wire kWires[] = {ProtobufMessage::kBytes, ProtobufMessage::kFixed32,
                                                  ProtobufMessage::kVarint};
      constexpr const char* kNames[] = {"piece", "score", "type"};
      if (field.wire != kWires[field.number - 1])
        ProtobufMessage::fail(
            path, std::string(kNames[field.number - 1]) + " of wire type " + std::to_string(field.wire), field.start);
      if (field.number == 1) piece = file.substr(field.at, field.end - field.at);
      if (field.number == 2) std::memcpy(&score, file.data() + field.at, sizeof score);
      if (field.number == 3) type = field.varint;
    }
    if (piece.empty()) ProtobufMessage::fail(path, "an empty piece", at);
    if (piece.size() >= kTooLong)
      ProtobufMessage::fail(path, "a piece of " + std::to_string(piece.size()) + " bytes", at);
    if (piece.find('\0') != std::string_view::npos) ProtobufMessage::fail(path, "a piece with a NUL character", at);
    if (!is_utf8(piece)) ProtobufMessage::fail(path, "a piece that is not UTF-8", at);
    if (std::isnan(score)) ProtobufMessage::fail(path, "a score that is no number", at);
    if (type < 1 || type > 6) ProtobufMessage::fail(path, "type " + std::to_string(type), at);
    pieces.push_back(piece);
    scores.push_back(score);
    types.push_back(static_cast<uint8_t>(type));
  }
};

}  // namespace tokenweir
