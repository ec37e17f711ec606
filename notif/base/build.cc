// SPDX-License-Identifier: Apache-2.0
#include "notif/base/build.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <string_view>

namespace oarlock {
namespace {

// The first object that is walked is the executable itself.
int FindBuildId(dl_phdr_info* info, size_t, void* result) {
  auto* text = static_cast<std::string*>(result);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);  // NOLINT(performance-no-int-to-ptr): so it is told
    const char* const end = at + segment.p_memsz;
    // A note's name and content fill whole words of the segment's alignment.
    const size_t align = segment.p_align == 8 ? 8 : 4;
    const auto padded = [align](size_t size) { return (size + align - 1) / align * align; };
    ElfW(Nhdr) note;
    while (static_cast<size_t>(end - at) >= sizeof(note)) {
      std::memcpy(&note, at, sizeof(note));
      const char* const name = at + sizeof(note);
      const size_t size = sizeof(note) + padded(note.n_namesz) + padded(note.n_descsz);
      if (size > static_cast<size_t>(end - at)) break;
      if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, note.n_namesz) == std::string_view("GNU\0", 4)) {
        constexpr char kDigits[] = "0123456789abcdef";
        for (const char* c = name + padded(note.n_namesz); text->size() < size_t{2} * note.n_descsz; ++c) {
          const auto byte = static_cast<unsigned char>(*c);
          *text += kDigits[byte >> 4];
          *text += kDigits[byte & 15];
        }
        return 1;
      }
      at += size;
    }
  }
  return 1;
}

}  // namespace

std::string BuildVersion() { return OARLOCK_VERSION; }

std::string BuildId() {
  std::string text;
  (void)::dl_iterate_phdr(FindBuildId, &text);
  return text;
}

}  // namespace oarlock
