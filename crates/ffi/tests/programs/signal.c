/* Children that are ended by a signal in the middle of calls, as Apache's prefork ends its own: the handler ends the request that
 * is under way, closes the handle and exits. */
#include <plimsoll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static plimsoll_t *plimsoll;
static plimsoll_decision_t decision;

static void end(int signal) {
    (void)signal;
    plimsoll_log_size(plimsoll, decision.request, 1);
    plimsoll_done(plimsoll, decision.request, PLIMSOLL_OUTCOME_COMPLETED);
    plimsoll_close(plimsoll);
    _exit(0);
}

static int child(const char *state, int number) {
    plimsoll_request_t request = {.method = "GET", .host = "here", .path = "/%61;x", .client = "192.0.2.1"};
    char path[64];
    if (plimsoll_init(state, &plimsoll)) return 1;
    signal(SIGALRM, end);
    struct itimerval timer = {.it_value = {.tv_usec = 500 + number % 97}};
    setitimer(ITIMER_REAL, &timer, NULL);
    for (;;) {
        if (plimsoll_adapt(plimsoll, &request, path, sizeof path, &decision)) return 2;
        plimsoll_log_size(plimsoll, decision.request, 1);
        plimsoll_done(plimsoll, decision.request, PLIMSOLL_OUTCOME_COMPLETED);
    }
}

int main(int count, char **arguments) {
    int children = count > 2 ? atoi(arguments[2]) : 1;
    for (int number = 0; number < children; number++) {
        pid_t own = fork();
        if (own == 0) return child(arguments[1], number);
        int status = 0;
        /* Ten seconds: the children end after less than a millisecond. */
        for (int wait = 0; waitpid(own, &status, WNOHANG) == 0; wait++) {
            if (wait == 10000) {
                kill(own, SIGKILL);
                fprintf(stderr, "child %d hangs\n", number);
                return 1;
            }
            usleep(1000);
        }
        if (status) {
            fprintf(stderr, "child %d ends with %d\n", number, status);
            return 1;
        }
    }
    return 0;
}
