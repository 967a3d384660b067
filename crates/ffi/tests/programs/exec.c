/* A process that attaches, has a request under way, and replaces itself by the same program so many times. */
#include <plimsoll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments) {
    plimsoll_t *plimsoll = NULL;
    plimsoll_request_t request = {.method = "GET", .host = "here", .path = "/", .client = "192.0.2.1"};
    plimsoll_decision_t decision;
    char path[64], left[16];
    int times = count > 2 ? atoi(arguments[2]) : 0;
    int error = plimsoll_init(arguments[1], &plimsoll);
    if (!error) error = plimsoll_adapt(plimsoll, &request, path, sizeof path, &decision);
    if (error) {
        fprintf(stderr, "%d times before the end: %s\n", times, plimsoll_strerror(error));
        return 1;
    }
    snprintf(left, sizeof left, "%d", times - 1);
    if (times > 0) execl(arguments[0], arguments[0], arguments[1], left, (char *)NULL);
    plimsoll_done(plimsoll, decision.request, PLIMSOLL_OUTCOME_COMPLETED);
    plimsoll_close(plimsoll);
    return times > 0;
}
