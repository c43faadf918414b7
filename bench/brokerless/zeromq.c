/* Requests and replies over ZeroMQ without a broker: what RPC over one is compared with.
 *
 *   zeromq rep ENDPOINT                          answers on a REP socket
 *   zeromq router ENDPOINT                       answers on a ROUTER socket
 *   zeromq req ENDPOINT REQUESTERS SECONDS       lock-step: REQ sockets of one thread, each with one request out
 *   zeromq dealer ENDPOINT DEPTH SECONDS         pipelined: one DEALER socket with so many requests out
 *
 * A request is 128 bytes that begin with its number; a reply repeats it. The clients check every
 * reply and print one line of JSON.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

enum { BODY = 128, REQUESTERS_MAX = 1024, SAMPLES_MAX = 20000000 };

static uint32_t *samples;
static size_t sampled;

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(1);
}

static void *opened(void *context, int kind, const char *endpoint, int listens) {
    void *socket = zmq_socket(context, kind);
    int unlimited = 0, at_once = 0;
    zmq_setsockopt(socket, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
    zmq_setsockopt(socket, ZMQ_LINGER, &at_once, sizeof at_once);
    if ((listens ? zmq_bind(socket, endpoint) : zmq_connect(socket, endpoint)) != 0) fail(endpoint);
    return socket;
}

static void answer(void *socket) {
    for (;;) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, socket, 0) < 0) fail("receive");
        int more = zmq_msg_more(&part);
        if (zmq_msg_send(&part, socket, more ? ZMQ_SNDMORE : 0) < 0) fail("send");
    }
}

static void send_request(void *socket, uint64_t number) {
    char body[BODY] = {0};
    memcpy(body, &number, sizeof number);
    if (zmq_send(socket, body, BODY, 0) != BODY) fail("send");
}

static void check_reply(void *socket, uint64_t number) {
    char body[BODY];
    uint64_t answered;
    if (zmq_recv(socket, body, BODY, 0) != BODY) fail("receive");
    memcpy(&answered, body, sizeof answered);
    if (answered != number) {
        fprintf(stderr, "reply %llu came for request %llu\n", (unsigned long long)answered,
                (unsigned long long)number);
        exit(1);
    }
}

static void note(double micros) {
    if (sampled < SAMPLES_MAX) samples[sampled++] = (uint32_t)(micros * 1000);
}

static int rising(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(uint64_t replies, double seconds) {
    qsort(samples, sampled, sizeof *samples, rising);
    printf("{\"per_second\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n", replies / seconds,
           samples[sampled / 2] / 1e3, samples[sampled * 99 / 100] / 1e3);
}

static void lock_step(void *context, const char *endpoint, int requesters, double seconds) {
    static zmq_pollitem_t items[REQUESTERS_MAX];
    static double sent_at[REQUESTERS_MAX];
    static uint64_t numbers[REQUESTERS_MAX];
    uint64_t replies = 0, number = 0;
    for (int at = 0; at < requesters; at++) {
        items[at].socket = opened(context, ZMQ_REQ, endpoint, 0);
        items[at].events = ZMQ_POLLIN;
    }
    double start = now_us(), end = start + seconds * 1e6, now = start;
    for (int at = 0; at < requesters; at++) {
        sent_at[at] = now;
        send_request(items[at].socket, numbers[at] = number++);
    }
    while (now < end) {
        if (zmq_poll(items, requesters, 1000) < 0) fail("poll");
        for (int at = 0; at < requesters; at++) {
            if (!(items[at].revents & ZMQ_POLLIN)) continue;
            check_reply(items[at].socket, numbers[at]);
            now = now_us();
            note(now - sent_at[at]);
            replies++;
            sent_at[at] = now;
            send_request(items[at].socket, numbers[at] = number++);
        }
    }
    report(replies, (now - start) / 1e6);
}

static void pipelined(void *context, const char *endpoint, uint64_t depth, double seconds) {
    void *socket = opened(context, ZMQ_DEALER, endpoint, 0);
    double *sent_at = calloc(depth, sizeof *sent_at);
    uint64_t sent = 0, replies = 0;
    double start = now_us(), end = start + seconds * 1e6, now = start;
    while (now < end) {
        for (; sent < replies + depth; sent++) {
            sent_at[sent % depth] = now_us();
            send_request(socket, sent);
        }
        check_reply(socket, replies);
        now = now_us();
        note(now - sent_at[replies % depth]);
        replies++;
    }
    report(replies, (now - start) / 1e6);
}

int main(int count, char **arguments) {
    if (count < 3) return fprintf(stderr, "usage: zeromq rep|router|req|dealer ENDPOINT ...\n"), 2;
    const char *mode = arguments[1], *endpoint = arguments[2];
    void *context = zmq_ctx_new();
    samples = malloc(SAMPLES_MAX * sizeof *samples);
    if (!strcmp(mode, "rep")) answer(opened(context, ZMQ_REP, endpoint, 1));
    if (!strcmp(mode, "router")) answer(opened(context, ZMQ_ROUTER, endpoint, 1));
    if (count < 5) return fprintf(stderr, "usage: zeromq %s ENDPOINT COUNT SECONDS\n", mode), 2;
    int wanted = atoi(arguments[3]);
    if (wanted < 1 || wanted > REQUESTERS_MAX) return fprintf(stderr, "1 to %d\n", REQUESTERS_MAX), 2;
    if (!strcmp(mode, "req")) lock_step(context, endpoint, wanted, atof(arguments[4]));
    else if (!strcmp(mode, "dealer")) pipelined(context, endpoint, wanted, atof(arguments[4]));
    else return fprintf(stderr, "nobody knows what `%s` means\n", mode), 2;
    return 0;
}
