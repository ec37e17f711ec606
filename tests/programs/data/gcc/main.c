// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdio.h>

int Twice(int n);

static void* Run(void* n) { return (void*)(long)Twice((int)(long)n); }

int main(void) {
  pthread_t threads[8];
  long sum = 0;
  for (long i = 0; i < 8; ++i)
    if (pthread_create(&threads[i], NULL, Run, (void*)i) != 0) return 1;
  for (int i = 0; i < 8; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    sum += (long)result;
  }
  printf("sum: %ld\n", sum);
  return 0;
}
