/* libplimsoll: the processes of a server share one controller (docs/module.md).
 *
 * Made from crates/ffi/src/api.rs by cbindgen. All functions but plimsoll_close may be called by several threads at once. */

#ifndef PLIMSOLL_H
#define PLIMSOLL_H

#include <stddef.h>
#include <stdint.h>

/*
 How a request ended.
 */
typedef enum plimsoll_outcome {
  /*
   The whole response was delivered.
   */
  PLIMSOLL_OUTCOME_COMPLETED = 0,
  /*
   The server failed to answer it.
   */
  PLIMSOLL_OUTCOME_FAILED = 1,
  /*
   The client left before its response's end.
   */
  PLIMSOLL_OUTCOME_ABANDONED = 2,
} plimsoll_outcome;

/*
 An error. Its number is part of the C interface and stays.
 */
typedef enum plimsoll_error {
  /*
   An argument is null, or not what it should be.
   */
  PLIMSOLL_ERROR_ARGUMENT = -1,
  /*
   The file cannot be opened or mapped.
   */
  PLIMSOLL_ERROR_FILE = -2,
  /*
   The file is no shared state.
   */
  PLIMSOLL_ERROR_NOT_STATE = -3,
  /*
   The shared state is of another version of Plimsoll.
   */
  PLIMSOLL_ERROR_VERSION = -4,
  /*
   The configuration in the shared state cannot be understood.
   */
  PLIMSOLL_ERROR_CONFIGURATION = -5,
  /*
   All lanes belong to living processes.
   */
  PLIMSOLL_ERROR_NO_LANE = -6,
  /*
   The handle belongs to the process that this one was forked from.
   */
  PLIMSOLL_ERROR_FORKED = -7,
  /*
   No site has the request's host.
   */
  PLIMSOLL_ERROR_NO_SITE = -8,
  /*
   The rewritten path does not fit the buffer.
   */
  PLIMSOLL_ERROR_TOO_LONG = -9,
  /*
   No request has this number.
   */
  PLIMSOLL_ERROR_NO_REQUEST = -10,
  /*
   Something failed inside Plimsoll; this is a defect.
   */
  PLIMSOLL_ERROR_INTERNAL = -11,
  /*
   As many responses stay open as this process may have; the request keeps its place.
   */
  PLIMSOLL_ERROR_TOO_MANY_STREAMS = -12,
  /*
   The call comes from a signal handler that has interrupted another one in the same thread.
   */
  PLIMSOLL_ERROR_INTERRUPTED = -13,
  /*
   The process is in another PID namespace than the controller.
   */
  PLIMSOLL_ERROR_NAMESPACE = -14,
  /*
   The kernel lacks what the library needs: `MADV_WIPEONFORK`, which is in Linux 4.14.
   */
  PLIMSOLL_ERROR_KERNEL = -15,
  /*
   The request's path has a dot segment: the server would serve another path than the one that was decided on.
   */
  PLIMSOLL_ERROR_PATH = -16,
} plimsoll_error;

/*
 A process that is attached to the shared state.
 */
typedef struct plimsoll_t plimsoll_t;

/*
 Finds the value of a header by its name, in any case: `context` is that of the request. NULL if the request has none. The
 value must last until plimsoll_adapt returns. An exception of C++ that leaves it aborts the process.
 */
typedef const char *(*plimsoll_header_t)(void *context, const char *name);

/*
 A request. All texts end with NUL.
 */
typedef struct plimsoll_request_t {
  /*
   The method, as sent. NULL is none.
   */
  const char *method;
  /*
   The host, with or without port. NULL if the request names none.
   */
  const char *host;
  /*
   The path as it was sent, without query: rules decode it. A server that has decoded it encodes it again.
   */
  const char *path;
  /*
   The query, without its question mark. NULL if there is none.
   */
  const char *query;
  /*
   The client's address as text: `192.0.2.1` or `2001:db8::1`. It must not be NULL: that is PLIMSOLL_ERROR_ARGUMENT.
   */
  const char *client;
  /*
   Finds headers; NULL if no rule names one and the file has no `decides_itself`, with which a gateway sends its load
   in one.
   */
  plimsoll_header_t header;
  /*
   The first argument of each call of `header`.
   */
  void *context;
} plimsoll_request_t;

/*
 The decision on a request.
 */
typedef struct plimsoll_decision_t {
  /*
   The request's number, for the calls that follow; 0 where it is rejected, and then none follows.
   */
  uint64_t request;
  /*
   The level at which the request is served, from 1 to M, the highest; 0 if it is rejected.
   */
  uint32_t level;
  /*
   The status code of a rejection; 0 otherwise.
   */
  uint32_t status;
  /*
   The time after which a client that is rejected may come again (s), for `Retry-After`.
   */
  uint32_t retry_after;
  /*
   0 while a controller is awake, so that levels move. 1 while there is none: levels stand still until there is one
   again. 2 if the state was made anew: no controller will come back to the one that this process has, so start the
   process anew. Log it.
   */
  uint32_t frozen;
  /*
   Why, as in the headers and metrics of the gateway. It lasts for ever.
   */
  const char *reason;
  /*
   The bytes of the rewritten path, without its NUL.
   */
  size_t path_length;
} plimsoll_decision_t;

/*
 How a request has come to the server: its host, and the parts of its path that the client did not ask for. All texts end
 with NUL; NULL is none.
 */
typedef struct plimsoll_place_t {
  /*
   The host that the client asked, with or without port.
   */
  const char *host;
  /*
   The part of the path before the prefix, at which an application is mounted.
   */
  const char *root;
  /*
   The prefix that the level has put before the path.
   */
  const char *prefix;
} plimsoll_place_t;

/*
 The state of the controller and the counts of all processes.
 */
typedef struct plimsoll_status_t {
  /*
   The process number of the controller; 0 if there is none.
   */
  uint32_t controller;
  /*
   0 while the controller is awake, else 1 or 2 as in a decision.
   */
  uint32_t frozen;
  /*
   The number of lanes: the most processes that may be attached.
   */
  uint32_t lanes;
  /*
   The number of processes that are attached.
   */
  uint32_t attached;
  /*
   How often the controller has published.
   */
  uint64_t generation;
  /*
   Requests that have arrived since the shared state was made.
   */
  uint64_t arrived;
  /*
   Requests that have ended, whether they were served or rejected.
   */
  uint64_t ended;
  /*
   Requests that are in service now.
   */
  uint64_t in_service;
  /*
   Processes that were found dead.
   */
  uint64_t deaths;
  /*
   Requests that dead processes held; each counts as failed.
   */
  uint64_t returned;
} plimsoll_status_t;

/*
 A class of requests, in the report of the state.
 */
typedef struct plimsoll_class_t {
  /*
   The names of the site and the class. They last until plimsoll_close.
   */
  const char *site;
  /*
   The class's name; `default` and `exempt` are classes of every site.
   */
  const char *name;
  /*
   m, the service level, from 0 to `levels`.
   */
  double service_level;
  /*
   The number M of the highest level.
   */
  uint32_t levels;
  /*
   Requests that have arrived.
   */
  uint64_t arrived;
  /*
   Requests that were rejected.
   */
  uint64_t rejected;
  /*
   Requests that ended, without those that were rejected.
   */
  uint64_t ended;
  /*
   Bytes that were delivered.
   */
  uint64_t bytes;
} plimsoll_class_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Attaches this process to the shared state that `plimsoll control` keeps at `path`, and stores a handle. To be called once
 in each process, after the fork. Returns 0 or an error.

 # Safety
 `path` is a text that ends with NUL, and `handle` may be written to; either may be NULL, which is an error.
 */
int plimsoll_init(const char *path,
                  struct plimsoll_t **handle);

/*
 Decides on a request that has come, and writes its rewritten path into `path`, which has room for `capacity` bytes. `path`
 may lie over the texts of the request, whose own path is then written over; it becomes empty if the request is rejected,
 and after PLIMSOLL_ERROR_NO_SITE and PLIMSOLL_ERROR_PATH. Returns 0, also if the request is rejected (`level` 0), or an
 error; after an error the request goes as it came, and is not counted. After these two the decision has the gateway's
 answer to such a request: `level` 0, `status` 421 or 400, and the reason.

 # Safety
 The pointers point to what their types say, and `path` to `capacity` bytes.
 */
int plimsoll_adapt(const struct plimsoll_t *handle,
                   const struct plimsoll_request_t *request,
                   char *path,
                   size_t capacity,
                   struct plimsoll_decision_t *decision);

/*
 Reports how many connections waited in the server's listen queue after this process had accepted one, or UINT32_MAX if
 the queue was all but full, since the number of those that come is not known then. Call it for each connection, or not
 at all. By it the controller knows the rate at which requests come, and not only that at which they are taken. While the
 queue is never empty no worker is free, and the controller lowers the load although the calls show less, since a worker
 is also busy before plimsoll_adapt and after plimsoll_done. Returns 0 or an error.

 # Safety
 `handle` is of plimsoll_init and not closed, or NULL.
 */
int plimsoll_saw_queue(const struct plimsoll_t *handle,
                       uint32_t waiting);

/*
 Counts the connections that wait in the listen queues of this process's TCP sockets, and reports their number as
 plimsoll_saw_queue does. Call it with each connection, or with each request where connections are not seen. It is none
 of the three calls: it asks the kernel, once for each socket. Returns how many wait (INT_MAX if a queue is all but full,
 0 if there is no such socket and while another thread counts), or an error. While some wait, a server whose processes
 are held by idle connections should close this one.

 # Safety
 `handle` is of plimsoll_init and not closed, or NULL.
 */
int plimsoll_look_at_queue(const struct plimsoll_t *handle);

/*
 Counts bytes of a response's body as they are delivered. Returns 0 or an error.

 # Safety
 `handle` is of plimsoll_init and not closed, or NULL.
 */
int plimsoll_log_size(const struct plimsoll_t *handle, uint64_t request, uint64_t bytes);

/*
 Reports that a response stays open for as long as its client likes: a stream of events, or an upgraded connection. Call
 it once, when the response's head is known. The request gives its place back, so that others are not rejected for it,
 unless the upstream has `tunnels_keep_places = true`; plimsoll_log_size and plimsoll_done follow as for any other.
 Returns 0 or an error; after PLIMSOLL_ERROR_TOO_MANY_STREAMS the request keeps its place.

 # Safety
 `handle` is of plimsoll_init and not closed, or NULL.
 */
int plimsoll_stays_open(const struct plimsoll_t *handle,
                        uint64_t request);

/*
 Writes the value of a response's field as the client must see it into `seen`, which has room for `capacity` bytes: without
 the level's prefix where it names a place on the site, as `Location`, `Content-Location`, `Refresh` and the path of
 `Set-Cookie` do. It is never longer than `value`, and must not be written over it. Returns 0 or an error.

 # Safety
 The pointers point to what their types say, and `seen` to `capacity` bytes; or they are NULL, which is an error.
 */
int plimsoll_map_place(const struct plimsoll_place_t *place,
                       const char *name,
                       const char *value,
                       char *seen,
                       size_t capacity);

/*
 Ends a request, exactly once; `outcome` is a `plimsoll_outcome`. Returns 0 or an error.

 # Safety
 `handle` is of plimsoll_init and not closed, or NULL.
 */
int plimsoll_done(const struct plimsoll_t *handle, uint64_t request, int outcome);

/*
 The outcome, for plimsoll_done, of a request whose whole answer has this status: a failure of the server from 500 on.
 */
int plimsoll_outcome_of(uint32_t status);

/*
 Detaches the process. Requests that it still has under way count as failed. A signal handler that ends the process may
 call it, in the middle of another call of its own thread too, but not while another thread is in a call.

 # Safety
 `handle` is of plimsoll_init, no other thread is in a call with it, and it is not used any more; or NULL.
 */
void plimsoll_close(struct plimsoll_t *handle);

/*
 Writes the state of the controller and the counts of all processes. Returns 0 or an error.

 # Safety
 The pointers point to what their types say, or are NULL, which is an error.
 */
int plimsoll_status(const struct plimsoll_t *handle, struct plimsoll_status_t *status);

/*
 Writes the state of the class of this number, which counts from 0. Returns 0, PLIMSOLL_ERROR_NO_REQUEST after the last
 one, or another error.

 # Safety
 The pointers point to what their types say, or are NULL, which is an error.
 */
int plimsoll_class(const struct plimsoll_t *handle,
                   size_t number,
                   struct plimsoll_class_t *class_);

/*
 The sentence that goes with an error. It lasts for ever.
 */
const char *plimsoll_strerror(int error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PLIMSOLL_H */
