// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof(address));
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)atoi(getenv("TARGET")));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr*)&address, sizeof(address)) != 0) {
    perror("connect");
    return 3;
  }
  char text[64];
  ssize_t got = read(fd, text, sizeof(text) - 1);
  if (got > 0) printf("%.*s\n", (int)got, text);
  return 0;
}
