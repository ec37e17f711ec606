// SPDX-License-Identifier: Apache-2.0
#include "policy/json.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "notif/base/check.h"
#include "notif/base/text.h"

namespace oarlock::policy {
namespace {

using Kind = JsonValue::Kind;
constexpr size_t kMaxQuoted = 160;

std::string Place(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const size_t line = 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
  const size_t start = before.rfind('\n');
  const size_t column = 1 + offset - (start == std::string_view::npos ? 0 : start + 1);
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Tells the handler how far the parser has read: SAX events carry no place of their own.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// Builds the tree. Returning false stops the parser.
class Builder {
 public:
  Builder(std::string_view text, JsonDocument* document)
      : text_(text), document_(document), seen_(text.data()) {}
  const char** seen() { return &seen_; }

  bool null() {
    Put(Kind::kNull);
    return true;
  }
  bool boolean(bool value) {
    Put(Kind::kBool).boolean = value;
    return true;
  }
  bool number_integer(int64_t value) {
    JsonValue& to = Put(Kind::kInteger);
    to.negative = value < 0;
    to.magnitude = to.negative ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
    to.real = static_cast<double>(value);
    return true;
  }
  bool number_unsigned(uint64_t value) {
    JsonValue& to = Put(Kind::kInteger);
    to.magnitude = value;
    to.real = static_cast<double>(value);
    return true;
  }
  bool number_float(double value, const std::string& token) {
    const bool integer = token.find_first_of(".eE") == std::string::npos;
    JsonValue& to = Put(integer ? Kind::kInteger : Kind::kReal);
    to.huge = integer;
    to.negative = token.starts_with('-');
    to.real = value;
    to.string = token;
    return true;
  }
  bool string(std::string& value) {
    Put(Kind::kString).string = std::move(value);
    return true;
  }
  bool binary(const std::vector<uint8_t>&) { OARLOCK_CHECK(false, "a text holds no binary value"); }
  bool key(std::string& value) {
    key_ = std::move(value);
    key_position_ = position();
    duplicate_ = !keys_.back().insert(key_).second;
    if (duplicate_)
      Add(Code::kDupKey, Pointer() + PointerStep(key_), "the key stands twice in this object; keep one");
    return true;
  }
  bool start_object(size_t) { return Open(Kind::kObject); }
  bool start_array(size_t) { return Open(Kind::kList); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }

  template <typename Exception>
  bool parse_error(size_t, const std::string& token, const Exception& exception) {
    static constexpr int kNumberOverflow = 406;
    if (exception.id == kNumberOverflow) {
      Add(Code::kRange, open_.empty() ? "" : Pointer() + Step(),
          "the number " + Printable(token, 40) + " is out of range");
      return false;
    }
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value -
    // ..."
    std::string_view what = exception.what();
    if (const size_t at = what.find("at line "); at != std::string_view::npos) what = what.substr(at);
    Add(Code::kJson, "", "not JSON " + Printable(what, kMaxQuoted));
    return false;
  }

 private:
  [[nodiscard]] size_t position() const { return static_cast<size_t>(seen_ - text_.data()); }
  void Add(Code code, std::string pointer, std::string problem) {
    // A file of nothing but repeated keys must not become a list of a hundred thousand messages.
    if (document_->problems.size() < kMaxProblems)
      document_->problems.push_back({code, std::move(pointer), std::move(problem)});
  }

  // The last step to the value that comes next.
  [[nodiscard]] std::string Step() const {
    const JsonValue& in = *open_.back();
    return in.kind == Kind::kObject ? PointerStep(key_) : "/" + std::to_string(in.items.size());
  }
  // To the innermost open container.
  [[nodiscard]] std::string Pointer() const {
    std::string pointer;
    for (size_t i = 1; i < open_.size(); ++i) {
      const JsonValue& parent = *open_[i - 1];
      pointer += parent.kind == Kind::kObject ? PointerStep(open_[i]->key)
                                              : "/" + std::to_string(parent.items.size() - 1);
    }
    return pointer;
  }

  JsonValue& Put(Kind kind) {
    JsonValue* to = &document_->root;
    if (!open_.empty()) {
      // No pointer in `open_` dangles: a container's list grows only while it is itself the innermost one.
      to = &open_.back()->items.emplace_back();
      if (open_.back()->kind == Kind::kObject) {
        to->key = std::move(key_);
        to->duplicate = duplicate_;
      }
    }
    to->kind = kind;
    to->position = to->key.empty() ? position() : key_position_;
    return *to;
  }
  bool Open(Kind kind) {
    if (open_.size() == kMaxDepth) {
      Add(Code::kJson, "",
          "nested deeper than " + std::to_string(kMaxDepth) + " levels at " + Place(text_, position() - 1));
      return false;
    }
    open_.push_back(&Put(kind));
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::string_view text_;
  JsonDocument* document_;
  const char* seen_;
  std::vector<JsonValue*> open_;
  std::vector<std::unordered_set<std::string>> keys_;  // beside `open_`; empty for lists
  std::string key_;
  size_t key_position_ = 0;
  bool duplicate_ = false;
};

// The letter of a two-character escape, or 0.
char ShortEscape(char c) {
  switch (c) {
    case '"':
    case '\\':
      return c;
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

}  // namespace

const JsonValue* JsonValue::Find(std::string_view name) const noexcept {
  const auto at = std::ranges::find(items, name, &JsonValue::key);
  return kind == Kind::kObject && at != items.end() ? &*at : nullptr;
}

JsonDocument ReadJson(std::string_view text) {
  JsonDocument document;
  const auto refuse = [&](Code code, std::string problem) {
    document.problems.push_back({code, "", std::move(problem)});
    return std::move(document);
  };
  if (text.size() > kMaxFileBytes)
    return refuse(Code::kRead, "holds " + std::to_string(text.size()) + " bytes, at most " +
                                   std::to_string(kMaxFileBytes) + " are read");
  if (text.empty()) return refuse(Code::kJson, "the policy is empty; the least one is {}");
  // Both are things that the parser below forgives: it skips the mark, and takes NUL for the end of the text.
  if (text.starts_with("\xef\xbb\xbf"))
    return refuse(Code::kJson, "starts with a byte order mark; save it as UTF-8 without one");
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    return refuse(Code::kJson, "a NUL byte at " + Place(text, nul));

  Builder builder(text, &document);
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the end is given.
  const Cursor begin(text.data(), builder.seen()), end(text.data() + text.size(), builder.seen());
  try {
    const bool whole = nlohmann::json::sax_parse(begin, end, &builder);
    OARLOCK_CHECK(whole || !document.problems.empty(), "the parser stopped without a reason");
  } catch (const nlohmann::json::exception& exception) {
    return refuse(Code::kJson, "not JSON: " + Printable(exception.what(), kMaxQuoted));
  }
  return document;
}

std::string PointerStep(std::string_view key) {
  std::string step = "/";
  for (const char c : key) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  return step;
}

std::string JsonQuote(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    if (const char letter = ShortEscape(c); letter != 0) {
      quoted += '\\';
      quoted += letter;
    } else if (static_cast<uint8_t>(c) < 0x20) {
      quoted += "\\u00";
      quoted += kDigits[static_cast<uint8_t>(c) >> 4];
      quoted += kDigits[static_cast<uint8_t>(c) & 15];
    } else {
      quoted += c;
    }
  }
  quoted += '"';
  return quoted;
}

}  // namespace oarlock::policy
