// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over the files of a directory, each once: a corpus as a test, with any compiler.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "tests/fuzz/fuzz.h"

int main(int argc, char** argv) {
  size_t files = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      // Before the run, so that the file which ends it is known. A copy of its exact size, for a sanitizer to guard.
      (void)std::fprintf(stderr, "%s\n", entry.path().c_str());
      const auto bytes = std::make_unique<uint8_t[]>(text.size());
      std::ranges::copy(text, bytes.get());
      (void)LLVMFuzzerTestOneInput(bytes.get(), text.size());
      ++files;
    }
  (void)std::printf("%zu inputs\n", files);
  return files >= 10 ? 0 : 1;
}
