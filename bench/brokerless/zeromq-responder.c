/* Answers requests over ZeroMQ without a broker: what RPC over one is compared with.
 *
 *   zeromq-responder rep PORT       on a REP socket, one request at a time
 *   zeromq-responder router PORT    on a ROUTER socket, as they come
 *
 * The last part of a request is a decimal number padded with spaces; the reply has its successor,
 * padded to the same length. All parts before it are returned as they are. One I/O thread; prints
 * "ready" once it listens on loopback.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { PARTS_MAX = 8 };

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(1);
}

static void *listening(void *context, int kind, const char *endpoint) {
    void *socket = zmq_socket(context, kind);
    int unlimited = 0;
    zmq_setsockopt(socket, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
    if (zmq_bind(socket, endpoint) != 0) fail(endpoint);
    return socket;
}

/* What does not begin with a number, or has no room for the next one, stays as it is. */
static void count_up(char *body, size_t size) {
    uint64_t value = 0;
    size_t digits = 0;
    for (; digits < size && digits < 19 && body[digits] >= '0' && body[digits] <= '9'; digits++)
        value = value * 10 + (uint64_t)(body[digits] - '0');
    char next[24];
    size_t length = (size_t)snprintf(next, sizeof next, "%llu", (unsigned long long)value + 1);
    if (digits > 0 && length <= size) memcpy(body, next, length);
}

/* A REP socket sends only once it has received every part. */
static void answer(void *socket) {
    static zmq_msg_t parts[PARTS_MAX];
    for (;;) {
        int count = 0, more = 1;
        for (; more; count++) {
            if (count == PARTS_MAX) fprintf(stderr, "a request has too many parts\n"), exit(1);
            zmq_msg_init(&parts[count]);
            if (zmq_msg_recv(&parts[count], socket, 0) < 0) fail("receive");
            more = zmq_msg_more(&parts[count]);
        }
        count_up(zmq_msg_data(&parts[count - 1]), zmq_msg_size(&parts[count - 1]));
        for (int at = 0; at < count; at++)
            if (zmq_msg_send(&parts[at], socket, at + 1 < count ? ZMQ_SNDMORE : 0) < 0) fail("send");
    }
}

int main(int count, char **arguments) {
    int is_rep = count == 3 && !strcmp(arguments[1], "rep");
    int is_router = count == 3 && !strcmp(arguments[1], "router");
    if (!is_rep && !is_router) {
        fprintf(stderr, "usage: zeromq-responder rep|router PORT\n");
        return 2;
    }
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%s", arguments[2]);
    void *context = zmq_ctx_new();
    zmq_ctx_set(context, ZMQ_IO_THREADS, 1);
    void *socket = listening(context, is_rep ? ZMQ_REP : ZMQ_ROUTER, endpoint);
    puts("ready");
    fflush(stdout);
    answer(socket);
}
