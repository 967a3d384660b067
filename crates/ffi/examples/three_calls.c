/* The three calls for requests that a server would have read: three_calls STATE REQUESTS [PATH].
 *
 *   cc three_calls.c $(pkg-config --cflags --libs plimsoll) -o three_calls
 *   plimsoll control examples/module.toml --state /run/plimsoll/state &
 *   ./three_calls /run/plimsoll/state 1000
 */
#include <inttypes.h>
#include <plimsoll.h>
#include <stdio.h>
#include <stdlib.h>

/* A server looks into the head of its request. */
static const char *header(void *context, const char *name) {
    (void)context;
    (void)name;
    return NULL;
}

static int failed(const char *call, int error) {
    fprintf(stderr, "%s: %s\n", call, plimsoll_strerror(error));
    return EXIT_FAILURE;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "three_calls STATE REQUESTS [PATH]\n");
        return EXIT_FAILURE;
    }
    plimsoll_t *plimsoll = NULL;
    int error = plimsoll_init(argv[1], &plimsoll);
    if (error) return failed("plimsoll_init", error);

    long served = 0, rejected = 0;
    char path[1024], client[16];
    for (long i = 0; i < atol(argv[2]); i++) {
        snprintf(client, sizeof client, "10.0.%ld.%ld", i / 256 % 256, i % 256);
        plimsoll_request_t request = {
            .method = "GET", .host = "www.example.org", .path = argc > 3 ? argv[3] : "/index.html", .client = client, .header = header};
        plimsoll_decision_t decision;
        error = plimsoll_adapt(plimsoll, &request, path, sizeof path, &decision);
        if (error) return failed("plimsoll_adapt", error);
        if (decision.level == 0) {
            rejected++; /* 503, Retry-After: decision.retry_after */
            continue;
        }
        /* Here the server sends `path`. */
        served++;
        error = plimsoll_log_size(plimsoll, decision.request, 1024);
        if (error) return failed("plimsoll_log_size", error);
        error = plimsoll_done(plimsoll, decision.request, PLIMSOLL_OUTCOME_COMPLETED);
        if (error) return failed("plimsoll_done", error);
    }
    plimsoll_status_t status;
    error = plimsoll_status(plimsoll, &status);
    if (error) return failed("plimsoll_status", error);
    printf("served %ld, rejected %ld, last path %s; in all %" PRIu64 " arrived, %" PRIu64 " ended, %" PRIu64 " in service\n",
           served, rejected, path, status.arrived, status.ended, status.in_service);
    plimsoll_close(plimsoll);
    return EXIT_SUCCESS;
}
