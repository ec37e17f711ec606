// SPDX-License-Identifier: Apache-2.0
// For sanitized builds of our programs. LeakSanitizer looks at a process by ptrace from a clone of it, which no process can do
// that is confined or not dumpable, and it then ends with exit code 1. The unit tests have it, with the same code in them.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
