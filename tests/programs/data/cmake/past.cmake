# SPDX-License-Identifier: Apache-2.0
file(DOWNLOAD http://127.0.0.1:$ENV{TARGET}/ page STATUS status LOG log)
list(GET status 0 code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${status}\n${log}")
endif()
