// SPDX-License-Identifier: Apache-2.0
int Broken(void) { return nothing; }
