// Preloaded into a program: its wall clock is off by as many seconds as the file that WALL_OFFSET names says. All other
// clocks stay as they are.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, id, now);
    const char *name = getenv("WALL_OFFSET");
    long seconds;
    FILE *file;
    if (result != 0 || id != CLOCK_REALTIME || name == NULL) {
        return result;
    }
    file = fopen(name, "r");
    if (file != NULL) {
        if (fscanf(file, "%ld", &seconds) == 1) {
            now->tv_sec += seconds;
        }
        fclose(file);
    }
    return result;
}
