/* mod_plimsoll: Apache decides on each request by Plimsoll before it does any work for it (docs/module.md).
 *
 * A thin shell over libplimsoll, for the prefork, worker and event MPMs. A request is decided on when its path is translated:
 * it is rejected with 503 and Retry-After, or gets the prefix of its level's content tree, if the prefixed path exists. Handlers
 * and logs read PLIMSOLL_LEVEL and PLIMSOLL_REASON. The request departs at its log line, or with its pool if it has none.
 *
 * Each child attaches to the shared state. A child that cannot attach serves as without the module, logs why, and tries again.
 */
#include <httpd.h>
#include <ap_mpm.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <apr_hash.h>
#include <apr_optional_hooks.h>
#include <apr_strings.h>
#include <apr_thread_mutex.h>
#include <util_filter.h>
#include <mod_status.h>
#include <inttypes.h>
#include <plimsoll.h>
#include <stdlib.h>
#include <strings.h>

extern module AP_MODULE_DECLARE_DATA plimsoll_module;
APLOG_USE_MODULE(plimsoll);

/* The longest prefix of a level. */
#define LONGEST_PREFIX 1024
#define RETRY apr_time_from_sec(1)

/* A shared state to which this child is attached, or tries to be. */
typedef struct {
    const char *path;
    plimsoll_t *volatile handle;
    apr_thread_mutex_t *lock;
    apr_time_t next_try;
    /* The errors that were logged last: of attaching, and of a request. */
    int told, told_of_request;
    volatile int was_frozen;
} attachment_t;

/* What the configuration says of a virtual host. */
typedef struct {
    const char *state;
    attachment_t *attachment;
} server_t;

/* A request under way. A subrequest or an internal redirect has no number. */
typedef struct {
    plimsoll_t *handle;
    uint64_t number;
    request_rec *request;
    /* The prefix that its level puts before the path; may be empty. */
    const char *prefix;
    /* The path for an application behind this server; NULL for the path as it came. */
    const char *proxied;
    /* The other modules are translating its path. */
    int is_translating;
    /* Its level is below the highest, and its tree answers. */
    int is_degraded, is_lighter;
} under_way_t;

/* The attachments of a child, by the path of the state. */
static apr_hash_t *attachments;

/* Whether an idle connection holds none of this server's processes and threads. */
static int is_async;

static ap_filter_rec_t *head_filter;

static apr_status_t detach(void *data) {
    attachment_t *own = data;
    plimsoll_close(own->handle);
    own->handle = NULL;
    return APR_SUCCESS;
}

/* Attaches if a try is due. The state may not exist yet when Apache starts. */
static plimsoll_t *attached(attachment_t *own, server_rec *server) {
    /* If the clock was set back, more than RETRY is left, and a try is due. */
    apr_time_t left = own->next_try - apr_time_now();
    if (own->handle || (left > 0 && left <= RETRY) || apr_thread_mutex_trylock(own->lock) != APR_SUCCESS)
        return own->handle;
    if (!own->handle) {
        plimsoll_t *handle = NULL;
        int error = plimsoll_init(own->path, &handle);
        if (error == 0) {
            ap_log_error(APLOG_MARK, APLOG_INFO, 0, server, "attached to %s", own->path);
            own->told = 0;
            own->handle = handle;
        } else {
            if (own->told != error)
                ap_log_error(APLOG_MARK, APLOG_ERR, 0, server, "requests go as they came: %s: %s", own->path,
                             plimsoll_strerror(error));
            own->told = error;
            own->next_try = apr_time_now() + RETRY;
        }
    }
    apr_thread_mutex_unlock(own->lock);
    return own->handle;
}

static void child_init(apr_pool_t *pool, server_rec *main_server) {
    attachments = apr_hash_make(pool);
    ap_mpm_query(AP_MPMQ_IS_ASYNC, &is_async);
    for (server_rec *server = main_server; server; server = server->next) {
        server_t *config = ap_get_module_config(server->module_config, &plimsoll_module);
        if (!config->state) continue;
        attachment_t *own = apr_hash_get(attachments, config->state, APR_HASH_KEY_STRING);
        if (!own) {
            own = apr_pcalloc(pool, sizeof *own);
            own->path = config->state;
            apr_thread_mutex_create(&own->lock, APR_THREAD_MUTEX_DEFAULT, pool);
            apr_hash_set(attachments, own->path, APR_HASH_KEY_STRING, own);
            apr_pool_cleanup_register(pool, own, detach, apr_pool_cleanup_null);
            attached(own, server);
        }
        config->attachment = own;
    }
}

/* Logs once that levels stand still, and why, and once that they move again. */
static void tell_frozen(attachment_t *own, request_rec *r, int frozen) {
    if (own->was_frozen == frozen) return;
    own->was_frozen = frozen;
    if (frozen == 2)
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                      "%s: the state was made anew, so levels stand still: start the server's processes anew (apachectl graceful)",
                      own->path);
    else if (frozen)
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "%s: no controller is awake, so levels stand still: start `plimsoll control`",
                      own->path);
    else
        ap_log_rerror(APLOG_MARK, APLOG_NOTICE, 0, r, "%s: a controller is awake again", own->path);
}

/* Ends a request: reports its bytes and its outcome. */
static void depart(under_way_t *own) {
    if (!own->number) return;
    request_rec *last = own->request;
    while (last->next) last = last->next;
    plimsoll_log_size(own->handle, own->number, (uint64_t)last->bytes_sent);
    int has_left = own->request->connection->aborted;
    int outcome = has_left ? PLIMSOLL_OUTCOME_ABANDONED : plimsoll_outcome_of((uint32_t)last->status);
    plimsoll_done(own->handle, own->number, outcome);
    own->number = 0;
}

static apr_status_t depart_with_pool(void *data) {
    depart(data);
    return APR_SUCCESS;
}

static int log_transaction(request_rec *r) {
    while (r->prev) r = r->prev;
    under_way_t *own = ap_get_module_config(r->request_config, &plimsoll_module);
    if (own) depart(own);
    return DECLINED;
}

/* Takes the level's prefix out of fields that name a place on the site, as the gateway does. */
static void map_head(request_rec *r, const char *prefix, const apr_table_t *head) {
    plimsoll_place_t place = {.host = r->hostname, .prefix = prefix};
    const apr_array_header_t *fields = apr_table_elts(head);
    for (int index = 0; index < fields->nelts; index++) {
        apr_table_entry_t *field = &APR_ARRAY_IDX(fields, index, apr_table_entry_t);
        size_t room = strlen(field->val) + 1;
        char *seen = apr_palloc(r->pool, room);
        if (plimsoll_map_place(&place, field->key, field->val, seen, room) == 0) field->val = seen;
    }
}

/* Whether a field gives orders to caches of any kind. */
static int tells_caches(const char *name) {
    static const char *const fields[] = {"Expires", "Last-Modified", "Surrogate-Control", "X-Accel-Expires", NULL};
    size_t length = strlen(name), end = strlen("Cache-Control");
    if (length >= end && !ap_cstr_casecmp(name + length - end, "Cache-Control")) return 1;
    for (const char *const *field = fields; *field; field++)
        if (!ap_cstr_casecmp(name, *field)) return 1;
    return 0;
}

/* All levels of a page have one URL: no cache may keep a lighter copy, nor take the copy for the page by its date. */
static void keep_from_caches(request_rec *r) {
    apr_table_t *tables[] = {r->headers_out, r->err_headers_out};
    int is_secret = 0;
    for (int table = 0; table < 2; table++) {
        const apr_array_header_t *fields = apr_table_elts(tables[table]);
        for (int index = 0; index < fields->nelts; index++) {
            apr_table_entry_t *field = &APR_ARRAY_IDX(fields, index, apr_table_entry_t);
            if (tells_caches(field->key)) is_secret |= ap_find_token(r->pool, field->val, "no-store");
        }
        for (int index = 0; index < fields->nelts;) {
            const char *name = APR_ARRAY_IDX(fields, index, apr_table_entry_t).key;
            if (tells_caches(name)) apr_table_unset(tables[table], name);
            else index++;
        }
    }
    /* A cache of this server has already seen the response. */
    r->no_cache = 0;
    apr_table_setn(r->headers_out, "Cache-Control", is_secret ? "no-store" : "private, no-cache");
}

/* Changes the head of a response before it is sent. A stream of events stays open for as long as its client likes, and gives
 * its place back. */
static apr_status_t see_head(ap_filter_t *filter, apr_bucket_brigade *brigade) {
    request_rec *r = filter->r, *first = r;
    while (first->prev) first = first->prev;
    under_way_t *own = ap_get_module_config(first->request_config, &plimsoll_module);
    const char *type = r->content_type;
    if (own && own->number && type && !ap_cstr_casecmpn(type, "text/event-stream", strlen("text/event-stream")))
        plimsoll_stays_open(own->handle, own->number);
    if (own && *own->prefix) {
        map_head(r, own->prefix, r->headers_out);
        map_head(r, own->prefix, r->err_headers_out);
    }
    if (own && own->is_lighter) keep_from_caches(r);
    ap_filter_t *next = filter->next;
    ap_remove_output_filter(filter);
    return ap_pass_brigade(next, brigade);
}

static void insert_filter(request_rec *r) {
    request_rec *first = r;
    while (first->prev) first = first->prev;
    if (!r->main && ap_get_module_config(first->request_config, &plimsoll_module))
        ap_add_output_filter_handle(head_filter, NULL, r, r->connection);
}

static const char *header(void *context, const char *name) {
    return apr_table_get(((request_rec *)context)->headers_in, name);
}

static int reject(request_rec *r, const plimsoll_decision_t *decision) {
    apr_table_setn(r->err_headers_out, "X-Plimsoll", apr_psprintf(r->pool, "level=0; reason=%s", decision->reason));
    /* If no site has the host, to come again later does not help, and there is no time for it. */
    if (decision->retry_after) {
        apr_table_setn(r->err_headers_out, "Retry-After", apr_psprintf(r->pool, "%u", decision->retry_after));
        apr_table_setn(r->err_headers_out, "Cache-Control", "no-store");
        apr_table_setn(r->err_headers_out, "RateLimit",
                       apr_psprintf(r->pool, "\"%s\";r=0;t=%u", decision->reason, decision->retry_after));
    }
    /* If Apache has no reason phrase for a status, it would send 500 instead. */
    if (atoi(ap_get_status_line((int)decision->status)) != (int)decision->status)
        r->status_line = apr_psprintf(r->pool, "%u Rejected", decision->status);
    return (int)decision->status;
}

/* Counts the connections that wait to be accepted. Under prefork and worker a connection holds a process or a thread while it
 * is open, even if it is idle: if others wait, it ends with this answer, since the others would starve. */
static void look_at_queue(request_rec *r, plimsoll_t *handle) {
    /* An async server looks once for each connection, at its first request. */
    if (is_async && r->connection->keepalives) return;
    int waiting = plimsoll_look_at_queue(handle);
    if (waiting > 0 && !is_async && !r->connection->master) r->connection->keepalive = AP_CONN_CLOSE;
}

/* Whether a request is upgraded to h2c: it then comes again as the first stream of the HTTP/2 connection. Apache makes the same
 * check when it handles the request. */
static int comes_again(request_rec *r) {
    const char *upgrade = apr_table_get(r->headers_in, "Upgrade");
    apr_array_header_t *offers = NULL;
    if (!upgrade || r->connection->master ||
        !ap_find_token(r->pool, apr_table_get(r->headers_in, "Connection"), "upgrade") ||
        ap_parse_token_list_strict(r->pool, upgrade, &offers, 0))
        return 0;
    const char *selected = ap_select_protocol(r->connection, r, r->server, offers);
    return selected && !strcmp(selected, "h2c");
}

/* Where a translated path leads. A folder is never served with the prefix: its index is looked for by a subrequest. */
enum { NOWHERE, TO_A_FILE, TO_A_FOLDER, TO_AN_APPLICATION };

static int leads(request_rec *r) {
    apr_finfo_t found;
    if (!r->filename) return NOWHERE;
    if (r->proxyreq && !strncmp(r->filename, "proxy:", strlen("proxy:"))) return TO_AN_APPLICATION;
    apr_status_t status = apr_stat(&found, r->filename, APR_FINFO_TYPE, r->pool);
    /* The path may go on behind the name of a script. */
    if (status != APR_SUCCESS) return APR_STATUS_IS_ENOTDIR(status) ? TO_A_FILE : NOWHERE;
    return found.filetype == APR_DIR ? TO_A_FOLDER : TO_A_FILE;
}

/* Has the other modules translate the path as it came, and then, on a copy of the request, the path with the level's prefix. If
 * the prefixed path exists, it is served. The rules of <Location> and of other modules hold for the path as it came. */
static int translate_both(request_rec *r, under_way_t *own) {
    request_rec *copy = apr_pmemdup(r->pool, r, sizeof *r);
    copy->notes = apr_table_clone(r->pool, r->notes);
    copy->subprocess_env = apr_table_clone(r->pool, r->subprocess_env);
    copy->headers_out = apr_table_clone(r->pool, r->headers_out);
    copy->err_headers_out = apr_table_clone(r->pool, r->err_headers_out);
    const char *first_root = ap_document_root(r);
    /* ProxyPass with `mapping=encoded` maps the path before it is decoded. */
    int is_mapped = r->proxyreq;

    ap_set_module_config(r->request_config, &plimsoll_module, own);
    own->is_translating = 1;
    int answer = ap_run_translate_name(r);
    if (answer == OK) {
        const char *root = ap_document_root(r), *context = ap_context_prefix(r), *context_root = ap_context_document_root(r);
        ap_set_document_root(r, first_root);
        ap_set_context_info(r, NULL, NULL);
        copy->uri = apr_pstrcat(r->pool, own->prefix, r->uri, NULL);
        /* ProxyPass with `nocanon` passes this path on. */
        if (r->unparsed_uri && r->unparsed_uri[0] == '/')
            copy->unparsed_uri = apr_pstrcat(r->pool, own->prefix, r->unparsed_uri, NULL);
        if (is_mapped) {
            copy->proxyreq = PROXYREQ_NONE;
            copy->filename = NULL;
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 109) /* 2.4.49, as is that mapping */
            ap_run_pre_translate_name(copy);
#endif
        }
        int to = ap_run_translate_name(copy) == OK ? leads(copy) : NOWHERE;
        /* A file stands in for an application only for GET, and an application only for an application or a file. */
        int is_there = to == TO_A_FILE           ? r->method_number == M_GET || leads(r) != TO_AN_APPLICATION
                       : to == TO_AN_APPLICATION ? leads(r) == TO_AN_APPLICATION || leads(r) == TO_A_FILE
                                                 : 0;
        if (is_there) {
            r->filename = copy->filename;
            r->canonical_filename = copy->canonical_filename;
            r->proxyreq = copy->proxyreq;
            r->handler = copy->handler;
            r->notes = copy->notes;
            own->is_lighter = own->is_degraded;
            r->no_cache |= own->is_degraded;
            own->proxied = to == TO_AN_APPLICATION ? copy->uri : NULL;
        } else {
            ap_set_document_root(r, root);
            ap_set_context_info(r, context, context_root);
        }
    }
    own->is_translating = 0;
    return answer;
}

/* An application gets the prefixed path only after all rules for the path as it came were applied. */
static int fixups(request_rec *r) {
    under_way_t *own = ap_get_module_config(r->request_config, &plimsoll_module);
    if (own && own->proxied) r->uri = (char *)own->proxied;
    return DECLINED;
}

/* A subrequest or an internal redirect is a part of its request, and is looked for in the tree of the request's level. Apache
 * renames the variables of a request that was redirected, as by ErrorDocument, and logs the new one, so they are copied. */
static int translate_part(request_rec *r) {
    request_rec *first = r;
    static const char *const variables[] = {"PLIMSOLL_LEVEL", "PLIMSOLL_REASON"};
    for (int index = 0; r->prev && index < 2; index++) {
        const char *value = apr_table_get(r->prev->subprocess_env, variables[index]);
        if (value) apr_table_setn(r->subprocess_env, variables[index], value);
    }
    while (first->main || first->prev) first = first->main ? first->main : first->prev;
    under_way_t *whole = ap_get_module_config(first->request_config, &plimsoll_module);
    if (!whole || !*whole->prefix) return DECLINED;
    under_way_t *own = apr_palloc(r->pool, sizeof *own);
    *own = (under_way_t){.handle = whole->handle, .request = r, .prefix = whole->prefix, .is_degraded = whole->is_degraded};
    int answer = translate_both(r, own);
    whole->is_lighter |= own->is_lighter;
    first->no_cache |= own->is_lighter;
    return answer;
}

static int translate_name(request_rec *r) {
    server_t *config = ap_get_module_config(r->server->module_config, &plimsoll_module);
    under_way_t *own = ap_get_module_config(r->request_config, &plimsoll_module);
    if (!config->attachment || r->uri[0] != '/' || (own && own->is_translating)) return DECLINED;
    if (r->main || r->prev) return translate_part(r);
    if (comes_again(r)) return DECLINED;
    plimsoll_t *handle = attached(config->attachment, r->server);
    if (!handle) return DECLINED;

    look_at_queue(r, handle);

    /* The library wants an encoded path, and Apache has decoded it, unless ProxyPass maps it as it came. */
    const char *came = r->proxyreq ? r->uri : ap_escape_uri(r->pool, r->uri);
    plimsoll_request_t request = {.method = r->method,
                                  .host = r->hostname,
                                  .path = came,
                                  .query = r->args,
                                  .client = r->useragent_ip,
                                  .header = header,
                                  .context = r};
    plimsoll_decision_t decision;
    size_t capacity = strlen(came) + LONGEST_PREFIX;
    char *path = apr_palloc(r->pool, capacity);
    int error = plimsoll_adapt(handle, &request, path, capacity, &decision);
    if (error == PLIMSOLL_ERROR_NO_SITE || error == PLIMSOLL_ERROR_PATH) return reject(r, &decision);
    int told = config->attachment->told_of_request;
    config->attachment->told_of_request = error;
    if (error) {
        if (told != error)
            ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "requests go as they came: %s", plimsoll_strerror(error));
        return DECLINED;
    }
    tell_frozen(config->attachment, r, (int)decision.frozen);
    apr_table_setn(r->subprocess_env, "PLIMSOLL_LEVEL", apr_psprintf(r->pool, "%u", decision.level));
    apr_table_setn(r->subprocess_env, "PLIMSOLL_REASON", decision.reason);
    if (decision.level == 0) return reject(r, &decision);

    own = apr_palloc(r->pool, sizeof *own);
    /* The library puts the prefix before the path, and changes nothing else. */
    path[decision.path_length - strlen(came)] = '\0';
    *own = (under_way_t){.handle = handle,
                         .number = decision.request,
                         .request = r,
                         .prefix = path,
                         .is_degraded = !strcmp(decision.reason, "degraded")};
    ap_set_module_config(r->request_config, &plimsoll_module, own);
    apr_pool_cleanup_register(r->pool, own, depart_with_pool, apr_pool_cleanup_null);
    return *own->prefix ? translate_both(r, own) : DECLINED;
}

static void show(request_rec *r, attachment_t *own, int is_short) {
    plimsoll_status_t status;
    plimsoll_class_t class;
    if (!own->handle || plimsoll_status(own->handle, &status)) {
        if (is_short)
            ap_rprintf(r, "PlimsollState: %s\nPlimsollNotAttached: 1\n", own->path);
        else
            ap_rprintf(r,
                       "<hr /><h2>Plimsoll: %s</h2>\n<p><b>This process is not attached to it: requests go as they came. The error "
                       "log says why.</b></p>\n",
                       ap_escape_html(r->pool, own->path));
        return;
    }
    if (is_short) {
        uint64_t rejected = 0;
        for (size_t number = 0; plimsoll_class(own->handle, number, &class) == 0; number++) rejected += class.rejected;
        ap_rprintf(r,
                   "PlimsollState: %s\nPlimsollController: %u\nPlimsollFrozen: %u\nPlimsollLanes: %u\nPlimsollAttached: %u\nPlimsollArrived: %" PRIu64
                   "\nPlimsollRejected: %" PRIu64 "\nPlimsollEnded: %" PRIu64 "\nPlimsollInService: %" PRIu64 "\nPlimsollDeaths: %" PRIu64
                   "\nPlimsollReturned: %" PRIu64 "\n",
                   own->path, status.controller, status.frozen, status.lanes, status.attached, status.arrived, rejected,
                   status.ended, status.in_service, status.deaths, status.returned);
        return;
    }
    ap_rprintf(r, "<hr /><h2>Plimsoll: %s</h2>\n<p>", ap_escape_html(r->pool, own->path));
    if (status.frozen == 2)
        ap_rputs("<b>The state was made anew: levels stand still. Start the server's processes anew (apachectl graceful).</b> ", r);
    else if (status.frozen)
        ap_rputs("<b>No controller is awake: levels stand still.</b> ", r);
    else
        ap_rprintf(r, "Controller: process %u. ", status.controller);
    ap_rprintf(r, "%u of %u lanes are in use; %" PRIu64 " requests are in service. %" PRIu64 " processes died at work.</p>\n",
               status.attached, status.lanes, status.in_service, status.deaths);
    ap_rputs("<table border=\"0\"><tr><th>site</th><th>class</th><th>m</th><th>levels</th><th>arrived</th><th>rejected</th>"
             "<th>ended</th><th>bytes</th></tr>\n",
             r);
    for (size_t number = 0; plimsoll_class(own->handle, number, &class) == 0; number++)
        ap_rprintf(r,
                   "<tr><td>%s</td><td>%s</td><td>%.3f</td><td>%u</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64
                   "</td><td>%" PRIu64 "</td></tr>\n",
                   ap_escape_html(r->pool, class.site), ap_escape_html(r->pool, class.name), class.service_level, class.levels,
                   class.arrived, class.rejected, class.ended, class.bytes);
    ap_rputs("</table>\n", r);
}

/* The section of /server-status, or its lines for machines. */
static int status_hook(request_rec *r, int flags) {
    if (!attachments) return OK;
    for (apr_hash_index_t *index = apr_hash_first(r->pool, attachments); index; index = apr_hash_next(index)) {
        void *own;
        apr_hash_this(index, NULL, NULL, &own);
        show(r, own, flags & AP_STATUS_SHORT);
    }
    return OK;
}

static void *create_server(apr_pool_t *pool, server_rec *server) {
    (void)server;
    return apr_pcalloc(pool, sizeof(server_t));
}

/* A virtual host has the state of the main server unless it names its own, or `off`. */
static void *merge_server(apr_pool_t *pool, void *base, void *more) {
    server_t *merged = apr_pcalloc(pool, sizeof *merged);
    const char *own = ((server_t *)more)->state;
    merged->state = own ? own : ((server_t *)base)->state;
    if (merged->state && !strcasecmp(merged->state, "off")) merged->state = NULL;
    return merged;
}

static const char *set_state(cmd_parms *command, void *unused, const char *path) {
    (void)unused;
    server_t *config = ap_get_module_config(command->server->module_config, &plimsoll_module);
    if (!strcasecmp(path, "off")) {
        config->state = command->server->is_virtual ? path : NULL;
        return NULL;
    }
    config->state = ap_server_root_relative(command->pool, path);
    return config->state ? NULL : apr_psprintf(command->pool, "PlimsollState: %s is no path", path);
}

static const command_rec directives[] = {
    AP_INIT_TAKE1("PlimsollState", set_state, NULL, RSRC_CONF,
                  "the file of the shared state that `plimsoll control` keeps; off for none"),
    {NULL}};

static void register_hooks(apr_pool_t *pool) {
    (void)pool;
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_translate_name(translate_name, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_fixups(fixups, NULL, NULL, APR_HOOK_REALLY_LAST);
    /* The filter runs after all that set fields, and before the one that writes them. */
    head_filter = ap_register_output_filter("PLIMSOLL_HEAD", see_head, NULL, AP_FTYPE_PROTOCOL - 1);
    ap_hook_insert_filter(insert_filter, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_error_filter(insert_filter, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_log_transaction(log_transaction, NULL, NULL, APR_HOOK_REALLY_LAST);
    APR_OPTIONAL_HOOK(ap, status_hook, status_hook, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA plimsoll_module = {
    STANDARD20_MODULE_STUFF, NULL, NULL, create_server, merge_server, directives, register_hooks, 0};
