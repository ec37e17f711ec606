// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "notif/base/text.h"
#include "policy/json.h"
#include "policy/names.h"

// How the fields of POLICY.json are read: the state of one reading, and the checks that many fields share.
// What the fields are stands in policy/fields.cc.
namespace oarlock::policy {

struct Reader;

// A value and its place.
struct At {
  const JsonValue& value;
  std::string pointer;
};

struct FieldRow {
  std::string_view name;  // "limits.cpu", "roots[].path"
  std::string_view type;  // completes "must be ..."
  bool null_is_absent;
  bool built;
  void (*read)(Reader&, const At&);
  // Where not built, the one value that is accepted: how it is written (empty: only by leaving the field
  // out), and the test.
  std::string_view strictest = {};
  bool (*is_strictest)(const Policy&) = nullptr;
};
[[nodiscard]] std::span<const FieldRow> FieldRows() noexcept;
[[nodiscard]] bool IsBuilt(std::string_view name) noexcept;

// The stages of Parse's order, below the text's own.
enum class Stage : uint8_t { kVersion, kRules, kNotBuilt };
struct Found {
  Stage stage;
  size_t position;
  Problem problem;
};

struct Reader {
  bool from_environment = false;
  Policy policy;
  std::vector<Found> found;

  // What several fields settle between them, once all are read.
  std::optional<bool> exec_writable;
  struct HostUse {
    std::string_view host;
    Code code;
    std::string pointer;
    size_t position;
  };
  std::vector<HostUse> host_uses;  // each must stand in net_allow
  // The list element that is being read.
  Root* root = nullptr;
  Injection* injection = nullptr;
  SeccompRule* rule = nullptr;
  SeccompArgument* argument = nullptr;

  // Reads the members of an object, whose fields' names start with `prefix`: "", "limits.", "roots[]."
  void Members(const At& at, std::string_view prefix);
  // Fills in the defaults, checks one field against another, then refuses what is not built.
  void Finish(const JsonValue& root);

  void Add(Code code, const At& at, std::string text);
  void WrongType(const At& at, std::string_view type);
  void WrongType(const At& at) { WrongType(at, active.back()->type); }
  void OutOfRange(const At& at, const std::string& got, std::string_view hint = {});

  [[nodiscard]] bool Is(const At& at, JsonValue::Kind kind, std::string_view type);
  void Bool(const At& at, bool* out);
  // An integer, written as one.
  [[nodiscard]] bool Integer(const At& at, int64_t low, int64_t high, int64_t* out);
  [[nodiscard]] bool Number(const At& at, double* out);
  void Label(const At& at, size_t limit, std::string* out);
  // Absolute, in form; `*out` stays as it was where it is not.
  void Path(const At& at, std::string_view type, size_t limit, std::string* out);
  void Paths(const At& at, std::vector<std::string>* out);
  // The string members of a list, each given to `check(item)` first.
  template <typename Check>
  void Strings(const At& at, std::vector<std::string>* out, Check check);
  template <typename Value, size_t N>
  void Choose(const At& at, const std::array<Named<Value>, N>& names, Value* out);
  template <typename Each>
  void List(const At& at, Each each);
  void NeedsMember(const At& at, std::string_view key);

  [[nodiscard]] bool Has(std::string_view name) const { return seen.contains(name); }
  // Read without a problem, or absent: what a conflict may be judged by.
  [[nodiscard]] bool Sound(std::string_view name) const { return !failed.contains(name); }
  void Conflict(std::string_view name, std::string text);
  // So many that the rest would teach nobody anything; the policy is refused whatever follows.
  [[nodiscard]] bool Enough() const { return found.size() >= 4 * kMaxProblems; }

  std::vector<const FieldRow*> active;      // the fields that are being read, outermost first
  std::map<std::string_view, size_t> seen;  // fields that are present, and where
  std::set<std::string_view> failed;        // fields with a problem of their own

 private:
  void Defaults();
  void CheckFiles();
  void CheckNetwork();
  void CheckBuilt();
};

// A value from the file inside a message: quoted, printable, cut.
[[nodiscard]] inline std::string Shown(std::string_view value) { return "\"" + Printable(value, 60) + "\""; }

// Control characters of Unicode: C0, DEL and, since the text is UTF-8, C1.
[[nodiscard]] inline bool HasControl(std::string_view text) noexcept {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < 0x20 || byte == 0x7f) return true;
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<uint8_t>(text[i + 1]) < 0xa0) return true;
  }
  return false;
}

template <typename Each>
void Reader::List(const At& at, Each each) {
  if (!Is(at, JsonValue::Kind::kList, active.back()->type)) return;
  for (size_t i = 0; i < at.value.items.size() && !Enough(); ++i)
    each(At{at.value.items[i], at.pointer + "/" + std::to_string(i)});
}

template <typename Check>
void Reader::Strings(const At& at, std::vector<std::string>* out, Check check) {
  List(at, [&](const At& item) {
    if (!Is(item, JsonValue::Kind::kString, "a string") || !check(item)) return;
    out->push_back(item.value.string);
  });
}

template <typename Value, size_t N>
void Reader::Choose(const At& at, const std::array<Named<Value>, N>& names, Value* out) {
  if (!Is(at, JsonValue::Kind::kString, active.back()->type)) return;
  const auto row = std::ranges::find(names, at.value.string, &Named<Value>::name);
  if (row != names.end()) {
    *out = row->value;
    return;
  }
  std::array<std::string_view, N> words;
  std::ranges::transform(names, words.begin(), &Named<Value>::name);
  OutOfRange(at, Shown(at.value.string), Nearest(at.value.string, words));
}

}  // namespace oarlock::policy
