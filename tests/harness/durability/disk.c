/* A disk that remembers: a FUSE file system with two files, by the kernel's own protocol.
 *
 * `disk` is for a loop device. `marks` is for whoever wants to note what was true when: what is
 * written to it stands in the same log, so that it is before or after each write of the disk.
 * The log has an entry for each write ('W', offset, bytes), flush ('F') and mark ('M', bytes).
 *
 * Usage: disk FOLDER IMAGE LOG FLUSH_US
 * IMAGE is what the disk holds; it says `ready` when it is mounted and ends when it is unmounted.
 * A flush takes FLUSH_US microseconds at least.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { ROOT = FUSE_ROOT_ID, DISK = 2, MARKS = 3 };
enum { WRITE_MAX = 1 << 20, PAGES_MAX = 256 };

/* What stands before the bytes of each entry of the log. */
struct entry {
    uint8_t kind;
    uint64_t offset;
    uint32_t length;
} __attribute__((packed));

static int fuse, log_file;
static long flush_us;
static unsigned char *image;
static uint64_t image_bytes, marks_bytes;

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static void note(uint8_t kind, uint64_t offset, const void *bytes, uint32_t length) {
    struct entry entry = {kind, offset, length};
    struct iovec parts[2] = {{&entry, sizeof entry}, {(void *)bytes, length}};
    if (writev(log_file, parts, 2) != (ssize_t)(sizeof entry + length)) {
        die("the log cannot be written");
    }
}

static void answer(uint64_t unique, int error, const void *body, size_t length) {
    struct fuse_out_header head = {(uint32_t)(sizeof head + length), -error, unique};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)body, length}};
    /* A request that was interrupted is not there any more; nothing waits for the answer. */
    if (writev(fuse, parts, 2) < 0 && errno != ENOENT) {
        die("a request cannot be answered");
    }
}

static struct fuse_attr attributes(uint64_t node) {
    struct fuse_attr attr = {.ino = node, .nlink = 1, .blksize = 4096};
    attr.mode = node == ROOT ? S_IFDIR | 0700 : S_IFREG | 0600;
    attr.size = node == DISK ? image_bytes : node == MARKS ? marks_bytes : 0;
    attr.blocks = attr.size / 512;
    return attr;
}

static void look_up(uint64_t unique, const char *name) {
    struct fuse_entry_out out = {.entry_valid = 3600, .attr_valid = 3600};
    out.nodeid = strcmp(name, "disk") == 0 ? DISK : strcmp(name, "marks") == 0 ? MARKS : 0;
    if (out.nodeid == 0) {
        answer(unique, ENOENT, NULL, 0);
        return;
    }
    out.attr = attributes(out.nodeid);
    answer(unique, 0, &out, sizeof out);
}

static void read_at(uint64_t unique, uint64_t node, const struct fuse_read_in *in) {
    uint64_t size = in->size;
    if (node != DISK || in->offset >= image_bytes) {
        size = 0;
    } else if (in->offset + size > image_bytes) {
        size = image_bytes - in->offset;
    }
    answer(unique, 0, image + in->offset, size);
}

static void write_at(uint64_t unique, uint64_t node, const struct fuse_write_in *in) {
    const unsigned char *bytes = (const unsigned char *)(in + 1);
    struct fuse_write_out out = {.size = in->size};
    if (node == DISK && in->offset + in->size > image_bytes) {
        answer(unique, ENOSPC, NULL, 0);
        return;
    }
    if (node == DISK) {
        memcpy(image + in->offset, bytes, in->size);
        note('W', in->offset, bytes, in->size);
    } else {
        marks_bytes += in->size;
        note('M', 0, bytes, in->size);
    }
    answer(unique, 0, &out, sizeof out);
}

static void flush(uint64_t unique, uint64_t node) {
    if (node == DISK) {
        struct timespec pause = {flush_us / 1000000, flush_us % 1000000 * 1000};
        note('F', 0, NULL, 0);
        nanosleep(&pause, NULL);
    }
    answer(unique, 0, NULL, 0);
}

static void obey(const struct fuse_in_header *head) {
    const void *body = head + 1;
    struct fuse_attr_out attr = {.attr_valid = 3600, .attr = attributes(head->nodeid)};
    struct fuse_init_out init = {
        .major = FUSE_KERNEL_VERSION,
        .minor = 31,
        .max_readahead = 1 << 17,
        .flags = FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_ASYNC_READ,
        .max_background = 64,
        .congestion_threshold = 48,
        .max_write = WRITE_MAX,
        .max_pages = PAGES_MAX,
    };
    struct fuse_open_out opened = {.open_flags = FOPEN_DIRECT_IO};
    struct fuse_statfs_out space = {.st = {.bsize = 4096, .namelen = 255, .frsize = 4096}};
    switch (head->opcode) {
    case FUSE_INIT:
        answer(head->unique, 0, &init, sizeof init);
        break;
    case FUSE_LOOKUP:
        look_up(head->unique, body);
        break;
    case FUSE_GETATTR:
    case FUSE_SETATTR:
        answer(head->unique, 0, &attr, sizeof attr);
        break;
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        answer(head->unique, 0, &opened, sizeof opened);
        break;
    case FUSE_READ:
        read_at(head->unique, head->nodeid, body);
        break;
    case FUSE_WRITE:
        write_at(head->unique, head->nodeid, body);
        break;
    case FUSE_FSYNC:
        flush(head->unique, head->nodeid);
        break;
    case FUSE_STATFS:
        answer(head->unique, 0, &space, sizeof space);
        break;
    case FUSE_READDIR:
    case FUSE_FLUSH:
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_DESTROY:
        answer(head->unique, 0, NULL, 0);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break;
    default:
        answer(head->unique, ENOSYS, NULL, 0);
    }
}

static void map_image(const char *path) {
    struct stat stat;
    int file = open(path, O_RDWR);
    if (file < 0 || fstat(file, &stat) < 0) {
        die(path);
    }
    image_bytes = (uint64_t)stat.st_size;
    image = mmap(NULL, image_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (image == MAP_FAILED) {
        die(path);
    }
}

int main(int count, char **words) {
    static char request[WRITE_MAX + 4096] __attribute__((aligned(8)));
    char options[128];
    if (count != 5) {
        fprintf(stderr, "usage: disk FOLDER IMAGE LOG FLUSH_US\n");
        return 2;
    }
    map_image(words[2]);
    flush_us = atol(words[4]);
    log_file = open(words[3], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    fuse = open("/dev/fuse", O_RDWR);
    if (log_file < 0 || fuse < 0) {
        die("the log or /dev/fuse cannot be opened");
    }
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    if (mount("disk", words[1], "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
        die("the file system cannot be mounted");
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        ssize_t length = read(fuse, request, sizeof request);
        if (length >= (ssize_t)sizeof(struct fuse_in_header)) {
            obey((const struct fuse_in_header *)request);
        } else if (errno == ENODEV) {
            return 0;
        } else if (errno != EINTR && errno != EAGAIN && errno != ENOENT) {
            die("no request can be read");
        }
    }
}
