// SPDX-License-Identifier: Apache-2.0
#include "tests/bypass/bypass.h"

int main(int argc, char** argv) {
  const int helper = bypass::RunHelper(argc, argv);
  return helper >= 0 ? helper : bypass::RunOutside(argc, argv);
}
