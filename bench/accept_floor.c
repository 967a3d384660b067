/* The least that a program can do with a connection that it turns away, for bench/accept.py: what the system's own work costs.
 *
 *   accept_floor MODE      prints its port, and serves until it is ended
 *
 *   close         accept, close
 *   reset         accept, close with a reset, which the accepted socket inherits from the listener (SO_LINGER)
 *   answer        accept, send, close
 *   last          the same, with the answer and the connection's end in one packet
 *   read          accept, read a request, send, close; whoever has not sent it yet is waited for in an epoll
 *   uring-close   as close, by io_uring: one accept for all connections, descriptors of its own kind, all closes of a turn in one call
 *   uring-answer  as answer, in the same way, each close linked to its send
 *
 * It has no time-out, no limit and no code for failures: whoever serves clients does more. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char ANSWER[] =
    "HTTP/1.1 503 Service Unavailable\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\nretry-after: 12\r\n"
    "x-plimsoll: level=0; reason=overload\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 62\r\n"
    "connection: close\r\n\r\nThis site is busy right now. Please try again in a moment.....\n";

static void need(int works, const char *what) {
    if (!works) {
        perror(what);
        exit(1);
    }
}

static int listener(int resets) {
    int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(own, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (resets)
        setsockopt(own, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    need(bind(own, (struct sockaddr *)&at, length) == 0 && listen(own, 4096) == 0, "listen");
    getsockname(own, (struct sockaddr *)&at, &length);
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    return own;
}

/* A blocking accept: no look for readiness, and no call that finds nobody. */
static void plain(int own, int answers, int at_once) {
    for (;;) {
        int client = accept4(own, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            continue;
        if (answers)
            send(client, ANSWER, sizeof ANSWER - 1, MSG_DONTWAIT | MSG_NOSIGNAL | (at_once ? MSG_MORE : 0));
        if (at_once)
            shutdown(client, SHUT_WR);
        close(client);
    }
}

static void reading(int own) {
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = own}, ready[64];
    char request[4096];
    epoll_ctl(poll, EPOLL_CTL_ADD, own, &wanted);
    for (;;) {
        int count = epoll_wait(poll, ready, 64, -1);
        for (int at = 0; at < count; at++) {
            int client = ready[at].data.fd;
            if (client == own)
                client = accept4(own, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (recv(client, request, sizeof request, 0) < 0 && errno == EAGAIN) {
                wanted.data.fd = client;
                epoll_ctl(poll, EPOLL_CTL_ADD, client, &wanted);
                continue;
            }
            send(client, ANSWER, sizeof ANSWER - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
            close(client);
        }
    }
}

enum { ENTRIES = 1024, DESCRIPTORS = 4096 };

static struct {
    int fd;
    unsigned *head, *tail, mask, own_tail;
    struct io_uring_sqe *entries;
    unsigned *done_head, *done_tail, done_mask;
    struct io_uring_cqe *done;
} ring;

static void make_ring(void) {
    struct io_uring_params p = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
        .cq_entries = 4 * ENTRIES,
    };
    ring.fd = syscall(SYS_io_uring_setup, ENTRIES, &p);
    need(ring.fd >= 0, "io_uring");
    size_t size = p.sq_off.array + p.sq_entries * 4, done = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    int shared = MAP_SHARED | MAP_POPULATE, rights = PROT_READ | PROT_WRITE;
    char *all = mmap(NULL, size > done ? size : done, rights, shared, ring.fd, IORING_OFF_SQ_RING);
    ring.entries = mmap(NULL, p.sq_entries * sizeof *ring.entries, rights, shared, ring.fd, IORING_OFF_SQES);
    need(all != MAP_FAILED && ring.entries != MAP_FAILED, "mmap");
    ring.head = (unsigned *)(all + p.sq_off.head), ring.tail = (unsigned *)(all + p.sq_off.tail);
    ring.mask = *(unsigned *)(all + p.sq_off.ring_mask);
    ring.done_head = (unsigned *)(all + p.cq_off.head), ring.done_tail = (unsigned *)(all + p.cq_off.tail);
    ring.done_mask = *(unsigned *)(all + p.cq_off.ring_mask), ring.done = (struct io_uring_cqe *)(all + p.cq_off.cqes);
    for (unsigned at = 0; at < p.sq_entries; at++)
        ((unsigned *)(all + p.sq_off.array))[at] = at;
    struct io_uring_rsrc_register table = {.nr = DESCRIPTORS, .flags = IORING_RSRC_REGISTER_SPARSE};
    need(syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES2, &table, sizeof table) >= 0, "descriptors");
}

static unsigned submit(unsigned wanted) {
    unsigned count = ring.own_tail - atomic_load_explicit((_Atomic unsigned *)ring.head, memory_order_acquire);
    atomic_store_explicit((_Atomic unsigned *)ring.tail, ring.own_tail, memory_order_release);
    return syscall(SYS_io_uring_enter, ring.fd, count, wanted, IORING_ENTER_GETEVENTS, NULL, 0);
}

static struct io_uring_sqe *next(int operation, int fd) {
    struct io_uring_sqe *own = &ring.entries[ring.own_tail++ & ring.mask];
    memset(own, 0, sizeof *own);
    own->opcode = operation, own->fd = fd;
    return own;
}

static void accept_all(int own) {
    struct io_uring_sqe *accepts = next(IORING_OP_ACCEPT, own);
    accepts->ioprio = IORING_ACCEPT_MULTISHOT, accepts->file_index = IORING_FILE_INDEX_ALLOC, accepts->user_data = 1;
}

static void by_ring(int own, int answers) {
    make_ring();
    accept_all(own);
    for (;;) {
        submit(1);
        unsigned head = *ring.done_head;
        unsigned tail = atomic_load_explicit((_Atomic unsigned *)ring.done_tail, memory_order_acquire);
        for (; head != tail; head++) {
            struct io_uring_cqe *done = &ring.done[head & ring.done_mask];
            if (done->user_data != 1)
                continue;
            if (!(done->flags & IORING_CQE_F_MORE))
                accept_all(own);
            if (done->res < 0)
                continue;
            if (ring.own_tail - *(volatile unsigned *)ring.head > ENTRIES - 4)
                submit(0);
            if (answers) {
                struct io_uring_sqe *sends = next(IORING_OP_SEND, done->res);
                sends->addr = (uintptr_t)ANSWER, sends->len = sizeof ANSWER - 1;
                sends->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
                sends->flags = IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK | IOSQE_CQE_SKIP_SUCCESS;
            }
            struct io_uring_sqe *closes = next(IORING_OP_CLOSE, 0);
            closes->file_index = done->res + 1, closes->flags = IOSQE_CQE_SKIP_SUCCESS;
        }
        atomic_store_explicit((_Atomic unsigned *)ring.done_head, head, memory_order_release);
    }
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "";
    int own = listener(!strcmp(mode, "reset"));
    if (!strncmp(mode, "uring", 5))
        by_ring(own, !strcmp(mode, "uring-answer"));
    else if (!strcmp(mode, "read"))
        reading(own);
    else
        plain(own, !strcmp(mode, "answer") || !strcmp(mode, "last"), !strcmp(mode, "last"));
    return 0;
}
