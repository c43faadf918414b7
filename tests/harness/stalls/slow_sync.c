/* Preloaded into a program: while the file named by SLOW_SYNC_FLAG exists, no fdatasync returns. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_while_flagged(void) {
    const char *flag = getenv("SLOW_SYNC_FLAG");
    while (flag != NULL && access(flag, F_OK) == 0) {
        usleep(1000);
    }
}

int fdatasync(int file) {
    long result = syscall(SYS_fdatasync, file);
    wait_while_flagged();
    return (int)result;
}
