/* Loaded into a broker by LD_PRELOAD: some writes write fewer bytes than they were asked to, and say so.
 *
 * What they say is written is written, as by a disk that is interrupted or nearly full.
 * SHORT_PATH is a part of the names of files, which do not end in `.new` unless they are segments; SHORT_WHEN how many of their writes go before the first, SHORT_THEN the
 * errno of the next write to the same file, or 0; with SHORT_EACH each write is short. SHORT_LOG is told of each. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef ssize_t (*pwrite_call)(int, const void *, size_t, off_t);

static atomic_int seen;
/* The file that fails next, or -1. */
static atomic_int failing = -1;

static int is_meant(int fd, char *name, size_t size)
{
	const char *part = getenv("SHORT_PATH");
	char link[64];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, name, size - 1);
	if (part == NULL || length < 0)
		return 0;
	name[length] = 0;
	const char *end = length < 4 ? name : name + length - 4;
	/* A segment has its name once it is whole. */
	int is_written_so = strstr(name, "/segments/") != NULL;
	return strstr(name, part) != NULL && (is_written_so || strcmp(end, ".new") != 0);
}

static void tell(const char *what, const char *name, size_t count, size_t asked)
{
	char line[4400];
	const char *log = getenv("SHORT_LOG");
	int length = snprintf(line, sizeof line, "%s %zu of %zu to %s\n", what, count, asked, name);
	int out = log == NULL ? -1 : open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (out < 0 || length < 0 || write(out, line, (size_t)length) != length)
		abort();
	close(out);
}

static int number(const char *name)
{
	const char *text = getenv(name);
	return text == NULL ? 0 : atoi(text);
}

static ssize_t short_pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
	static _Atomic(pwrite_call) real;
	pwrite_call call = atomic_load(&real);
	if (call == NULL) {
		call = (pwrite_call)dlsym(RTLD_NEXT, "pwrite64");
		atomic_store(&real, call);
	}
	char name[4096];
	if (count < 2 || !is_meant(fd, name, sizeof name))
		return call(fd, bytes, count, offset);
	int then = number("SHORT_THEN"), here = fd;
	if (then != 0 && atomic_compare_exchange_strong(&failing, &here, -1)) {
		tell("failed", name, 0, count);
		errno = then;
		return -1;
	}
	int at = atomic_fetch_add(&seen, 1) - number("SHORT_WHEN");
	if (at < 0 || (at > 0 && number("SHORT_EACH") == 0))
		return call(fd, bytes, count, offset);
	/* Neither a sector nor a record ends there. */
	ssize_t written = call(fd, bytes, count / 2 + 1 - (count / 2) % 2, offset);
	if (written > 0) {
		tell("wrote", name, (size_t)written, count);
		if (then != 0)
			atomic_store(&failing, fd);
	}
	return written;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset)
{
	return short_pwrite(fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
	return short_pwrite(fd, bytes, count, offset);
}
