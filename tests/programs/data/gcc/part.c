// SPDX-License-Identifier: Apache-2.0
int Twice(int n) { return 2 * n; }
