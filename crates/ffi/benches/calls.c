/* What the three calls cost: calls STATE THREADS ROUNDS REQUESTS.
 *
 * Each thread makes REQUESTS requests in each round, after a round that is not counted. Prints one line: the least and the
 * median processor time of a round, in ns a request; the number of allocations in the rounds; requests served, and rejected.
 */
#include <errno.h>
#include <plimsoll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CLIENTS 64

static plimsoll_t *plimsoll;
static char clients[CLIENTS][16];
static long rounds, requests, threads;
static pthread_barrier_t together;
static double *costs;
static atomic_ulong allocations, served, rejected;
static unsigned long allocated;

#ifndef __SANITIZE_ADDRESS__
/* Whoever asks for memory, the library too, comes by here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    allocations++;
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
    allocations++;
    return __libc_realloc(old, size);
}
int posix_memalign(void **memory, size_t alignment, size_t size) {
    allocations++;
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}
#endif

static void check(const char *call, int error) {
    if (error == 0) return;
    fprintf(stderr, "%s: %s\n", call, plimsoll_strerror(error));
    exit(EXIT_FAILURE);
}

static double spent(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static void round_of_requests(void) {
    unsigned long turned_away = 0;
    char path[256];
    for (long i = 0; i < requests; i++) {
        plimsoll_request_t request = {
            .method = "GET", .host = "www.example.org", .path = "/index.html", .client = clients[i % CLIENTS]};
        plimsoll_decision_t decision;
        check("plimsoll_adapt", plimsoll_adapt(plimsoll, &request, path, sizeof path, &decision));
        if (decision.level == 0) {
            turned_away++;
            continue;
        }
        check("plimsoll_log_size", plimsoll_log_size(plimsoll, decision.request, 1024));
        check("plimsoll_done", plimsoll_done(plimsoll, decision.request, PLIMSOLL_OUTCOME_COMPLETED));
    }
    rejected += turned_away;
    served += (unsigned long)requests - turned_away;
}

static void *work(void *is_first) {
    for (long round = 0; round <= rounds; round++) {
        pthread_barrier_wait(&together);
        double start = spent();
        unsigned long before = allocations;
        round_of_requests();
        pthread_barrier_wait(&together);
        if (is_first && round > 0) {
            costs[round - 1] = (spent() - start) / (double)(threads * requests);
            allocated += allocations - before;
        }
    }
    return NULL;
}

static int by_size(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

int main(int argc, char **argv) {
    if (argc != 5) return EXIT_FAILURE;
    threads = atol(argv[2]), rounds = atol(argv[3]), requests = atol(argv[4]);
    for (int i = 0; i < CLIENTS; i++) snprintf(clients[i], sizeof clients[i], "10.0.0.%d", i);
    check("plimsoll_init", plimsoll_init(argv[1], &plimsoll));
    costs = calloc((size_t)rounds, sizeof *costs);
    pthread_t *others = calloc((size_t)threads, sizeof *others);
    if (!costs || !others || pthread_barrier_init(&together, NULL, (unsigned)threads)) return EXIT_FAILURE;
    for (long i = 1; i < threads; i++)
        if (pthread_create(&others[i], NULL, work, NULL)) return EXIT_FAILURE;
    work(&threads);
    for (long i = 1; i < threads; i++) pthread_join(others[i], NULL);
    qsort(costs, (size_t)rounds, sizeof *costs, by_size);
    printf("%.1f %.1f %lu %lu %lu\n", costs[0], costs[rounds / 2], allocated, served, rejected);
    free(costs);
    free(others);
    plimsoll_close(plimsoll);
    return EXIT_SUCCESS;
}
