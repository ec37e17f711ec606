// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "page.h"

int main(void) {
  puts(PAGE);
  return 0;
}
