// What the gateway sends, from its Rust types: crates/gateway/src/admin. Do not edit.

export type BuffersDocument = {
/** Bytes in memory. */
memory_bytes: number,
/** Bytes in temporary files. */
file_bytes: number,
/** Temporary files that could not be made, written or read. */
file_failures: number, };

export type ClassDocument = {
/** The site's name. */
site: string,
/** The class's name. */
class: string,
/** The upstream or folder of its highest level. */
upstream: string | null,
/** The service level m as it is applied: 0 rejects everybody, the number of levels is full quality. */
service_level: number,
/** The level that its site's contract carries alone; null without a contract. */
service_level_of_contract: number | null,
/** m at each upstream that serves levels of it. */
service_level_by_upstream: { [key in string]: number },
/** The class's levels, the lowest quality first. */
levels: Array<LevelDocument>,
/** Requests that arrived in the last control period. */
request_rate_per_second: number,
/** Bytes of bodies that were delivered in the last control period. */
bandwidth_bytes_per_second: number,
/** The mean time from arrival to start in the last control period; null in a controller, since requests wait before
 * they arrive at a process. */
queue_delay_seconds: number | null,
/** The mean time from arrival to the server's last byte in the last control period. */
response_time_seconds: number,
/** The class's promise of response times; null without one. */
promise: PromiseDocument | null,
/** The class's deadline; null without one. */
deadline: DeadlineDocument | null,
/** What its requests cost. */
model: ModelDocument,
/** Clients with more than a tenth of the load, which are served at random levels. */
heavy_clients: number,
/** Requests that arrived. */
arrivals: number,
/** Requests that were turned away. */
rejected: number,
/** Requests that are under way or wait. */
in_flight: number,
/** Bytes of bodies that were delivered. */
delivered_bytes: number,
/** What became of its requests in the last seconds. */
recent: RecentDocument,
/** Decisions by reason. */
reasons: Record<string, number>,
/** How requests ended: `completed`, `failed` or `abandoned`. */
outcomes: Record<string, number>, };

export type ClientsDocument = {
/** Where the key of the hash is from: `configured` in the file, `kept` from an earlier run, or `drawn`. */
seed: string,
/** After what time the choice turns; null if it does not. */
rekey_seconds: number | null, };

export type ComeAgainDocument = {
/** The first of them. */
soonest_seconds: number,
/** The last of them. */
latest_seconds: number, };

export type ControllerDocument = {
/** The most processes that may attach. */
lanes: number,
/** Processes that are attached. */
attached: number,
/** Processes that were found dead while they were attached, since the state was made. */
deaths: number,
/** Requests that these held, which were returned and have failed. */
returned_requests: number,
/** Connections that wait in the server's listen queue, by the process that looked last; null if none has looked of
 * late, and of a full queue, whose length says nothing. */
listen_queue: number | null, };

export type DeadlineDocument = {
/** The relative deadline. */
deadline_seconds: number,
/** How many of a hundred admitted requests are to keep it. */
in_time: number,
/** A request is admitted now if its chance to be in time is at least so many in a hundred: less than `in_time` where
 * requests of lower priorities are in the way. */
admitted_from: number,
/** What a request that came now would wait. */
expected_wait_seconds: number,
/** Admitted requests that were late. */
missed: number, };

export type DelayDocument = {
/** The site's name. */
site: string,
/** The class's name. */
class: string,
/** The time that was promised. */
delay_seconds: number,
/** The percentile of it; null for a mean. */
percentile: number | null,
/** The rate that was guaranteed; null without a contract. */
requests_per_second: number | null,
/** What one request takes; null before costs are known. */
service_seconds: number | null,
/** The least delay that can be kept at that rate; null if it is not known. */
least_seconds: number | null,
/** The rate at which the delay could be kept; null if it is not known. */
fitting_requests_per_second: number | null,
/** `fits`, `exceeds` or `unverified`. */
verdict: string, };

export type EventKind = "started" | "reloaded" | "reload-refused" | "upstream-down" | "upstream-up" | "promise-missed" | "promise-kept" | "rejections-began" | "rejections-ended";

export type FoundTypeDocument = {
/** The name that it was given. */
name: string,
/** The type within which it was found. */
within: string,
/** Patterns of its paths. */
path: Array<string>,
/** Methods of its requests. */
method: Array<string>,
/** Names of keys that its queries have. */
query: Array<string>, };

export type GuaranteeDocument = {
/** The site's name. */
site: string,
/** The part of the upstream that it takes; null before costs are known. */
utilization: number | null, };

export type Http2Document = {
/** The most requests under way on one connection. */
streams: number,
/** How many frames that ask for nothing a connection may send at once. */
idle_frames: number,
/** How many more it may send in each second. */
idle_frames_per_second: number,
/** Connections that were ended for such frames, by the kind of frame. */
ended: { [key in string]: number }, };

export type JournalDocument = {
/** When the process began, which numbers its events from 1 (s, Unix time). */
started_unix_seconds: number,
/** What happened, the latest last. */
events: Array<OperatorEvent>, };

export type KernelShedDocument = {
/** The table's name: `nft list table inet` with it shows who is turned away. */
table: string,
/** How often it could not be brought up to date, which is tried twice a second. */
failures: number,
/** Why it could not the last time, so that the gateway alone turns clients away; null where it could. */
failing: string | null, };

export type LawDocument = {
/** Workers that keep the promise by the queueing model. */
predicted_workers: number,
/** Measured over promised, less 1. */
error: number,
/** The gain: workers for each unit of error. */
workers_per_error: number,
/** Workers that the integral part adds. */
integral_workers: number, };

export type LevelDocument = {
/** The level's number, from 1. */
level: number,
/** The level's name. */
name: string,
/** What one request takes of the upstream's whole time; null before it is known. */
cost_seconds: number | null,
/** Requests that started at it. */
served: number, };

export type ModelDocument = {
/** a: utilization seconds of a request; null before it is known. */
per_request_seconds: number | null,
/** b: utilization seconds of a delivered byte; null before it is known. */
per_byte_seconds: number | null,
/** How well they are known: 0 not at all, 1 exactly. */
confidence: number,
/** Whether the last control period taught nothing. */
frozen: boolean, };

export type OperatorEvent = {
/** The event's number, from 1. */
number: number,
/** When (s, Unix time). */
unix_seconds: number,
/** What kind of thing. */
kind: EventKind,
/** What it is about, such as a class or an upstream; empty if about the gateway. */
subject: string,
/** The event in words. */
text: string, };

export type PlacesDocument = {
/** The part; more than 1 while the gateway turns requests away. */
taken: number,
/** In the server: how long ago it was reported, at the end of the last control period; null in the gateway. */
reported_seconds_ago: number | null,
/** In the server: the part by which the load line is lowered for it; null in the gateway. */
set_point_reduction: number | null, };

export type PlanDocument = {
/** The upstream's name in the configuration. */
upstream: string,
/** The part of it that contracts may promise together. */
ceiling: number,
/** The part that they promise together, by the costs that are known. */
sum: number,
/** What of the sum is kept for rejections. */
reserve: number,
/** `fits`, `exceeds`, or `unverified` while something is not known. */
verdict: string,
/** The contracts of sites. */
guarantees: Array<GuaranteeDocument>,
/** The delays of classes. */
delays: Array<DelayDocument>, };

export type PlantDocument = {
/** The upstream's or folder's name in the configuration. */
name: string,
/** How many requests it works on at once: of the share that is there. */
workers: number,
/** Whether that number was found; null if it is configured. */
workers_found: boolean | null,
/** The most requests in service at once; null in a controller, since what its server takes is in service. */
limit: number | null,
/** Why no more: `refusals`, `outage`, `search`, `reported`, `promises`; null where the limit is the one that is
 * configured, and where it is null. */
limit_reason: string | null,
/** The share of it that is there, by its servers in use. */
available: number,
/** The utilization in the last control period. */
utilization: UtilizationDocument,
/** The service level m that its loop asks for, from 0 to the number of levels. */
service_level: number,
/** What the integral part of the law adds to the set point. */
bias: number,
/** The part by which the load line is lowered for delays that are missed. */
set_point_reduction: number,
/** When clients that are turned away now are told to come again. */
come_again: ComeAgainDocument,
/** Whether it answers slower than its `response_time_limit`, and so counts as full. */
response_time_override: boolean,
/** Requests in service now. */
in_service: number,
/** Requests that wait now; null in a controller, since they wait in the server's listen queue. */
waiting: number | null,
/** Upgraded connections and streams of events now; null in a controller, since each process has its own. */
tunnels: number | null,
/** Work that was taken on and is not done, in seconds of one worker; null where no deadline is promised. */
unfinished_seconds: number | null,
/** The mean service time of the last control period; 0 if nothing was served. */
service_time_seconds: number,
/** What a gateway reports to a server that decides itself of its places there, in either of them; null where nothing is
 * reported. */
places: PlacesDocument | null,
/** The servers; a folder has none. This and what follows is null in a controller, which runs inside the server. */
servers: Array<ServerDocument> | null,
/** Whether all servers are out of use, and so all are used. */
all_servers_out: boolean | null,
/** Requests that were tried again, at another server or on another connection. */
retries: number | null,
/** Requests that were not, since too many were. */
retries_refused: number | null,
/** Why the last lookup of a name failed; null if it did not. */
lookup_failure: string | null, };

export type PromiseDocument = {
/** The time that was promised; null for a ratio. */
delay_seconds: number | null,
/** The percentile of it; null for a mean. */
percentile: number | null,
/** Workers that are its own while it wants them, or places at a server that takes more at once; null for a ratio. */
quota: number | null,
/** The mean response time of the window: a thousand requests or so, none older than ten minutes. */
mean_seconds: number,
/** The part of them that took longer than promised; null for a ratio. */
late_share: number | null,
/** The part of the requests that failed or was turned away; null for a ratio. */
lost_share: number | null,
/** Whether the delay is missed. */
missed: boolean,
/** Whether the quota is at an end of its range. */
at_limit: boolean,
/** What the quota is made of; null for a ratio, and before the first update. */
law: LawDocument | null,
/** Whether the ratio cannot be had at this load. */
infeasible: boolean,
/** The ratio that was promised; null for a delay. */
ratio: number | null,
/** The ratio that is reached, in the same units; null for a delay. */
ratio_reached: number | null,
/** What its waiting counts for when the next request is chosen; null for a delay. */
weight: number | null, };

export type PromiseKind = "load-line" | "contract" | "delay" | "ratio" | "deadline";

export type PromiseRow = {
/** The kind of the promise. */
kind: PromiseKind,
/** The site, or those that share the upstream. */
site: string,
/** The class; `all` of the site. */
class: string,
/** The upstream or folder. */
upstream: string,
/** What was promised. */
guarantee: string,
/** The promised figure as it is now. */
now: string,
/** What is left, as a part of what was promised; below zero, to -1, if it is exceeded. `None` where there is no such
 * figure. */
margin: number | null,
/** How it is kept. */
state: PromiseState,
/** Since when it has this state (s, Unix time). */
since_unix_seconds: number,
/** What the loop does now. */
sentence: string, };

export type PromiseState = "kept" | "idle" | "at-risk" | "missed";

export type RecentDocument = {
/** How long that is; 0 before anything was seen twice. */
seconds: number,
/** Requests that arrived. */
arrivals: number,
/** Requests that started, by level, the lowest quality first. */
served: Array<number>,
/** Requests that were turned away. */
rejected: number,
/** Decisions by reason, of the reasons that there were. */
reasons: { [key in string]: number },
/** Requests that the server failed. */
failed: number,
/** The median of response times; null if there were none. */
response_p50_seconds: number | null,
/** The 95th percentile of response times. */
response_p95_seconds: number | null,
/** The 99th percentile of response times. */
response_p99_seconds: number | null, };

export type ServerDocument = {
/** Where it listens. */
address: string,
/** `healthy`, `starting`, `ejected` or `down`. */
state: string,
/** For how long it has been so. */
since_seconds: number,
/** Why it is out of use; of health checks what the last one met; null while it is in use. */
why: string | null,
/** The part of its turns that it gets. */
weight: number,
/** Requests in service there now. */
in_service: number,
/** Requests that it answered with less than 500. */
served: number,
/** Requests that it answered with 500 and more, wrongly, or not at all. */
errors: number,
/** Tries that got no connection. */
unreachable: number,
/** How often it was taken out of use. */
ejections: number, };

export type SiteDocument = {
/** The site's name in the configuration. */
name: string,
/** The upstream or folder that serves its highest level. */
upstream: string | null,
/** The part of the upstream that it takes. */
utilization: number,
/** The part that its contract promises; null without a contract, and before costs are known. */
utilization_promised: number | null,
/** The part of its requests in the last control period that were inside its contract. */
guaranteed_share: number,
/** What its types of requests cost, where deadlines are promised. */
types: Array<TypeDocument>,
/** The types that were found. */
found_types: Array<FoundTypeDocument>, };

export type StatusDocument = {
/** The program's version. */
version: string,
/** When it was asked (s, Unix time). */
unix_seconds: number,
/** When the last control period ended (s, by the clock of the loops, which begins with the process, and of a controller
 * with the machine). */
at_seconds: number,
/** What the controller does: `control`, `observe` or `off`. */
mode: string,
/** The control period T. */
period_seconds: number,
/** c: the gateway's processor time for a rejection; null before anything was rejected. */
rejection_cost_seconds: number | null,
/** All promises and how they are kept, the worst first. */
promises: Array<PromiseRow>,
/** How it is chosen which clients get the better level. */
clients: ClientsDocument,
/** The processes of the server that attach to a controller; null in a gateway. */
controller: ControllerDocument | null,
/** What is kept for slow clients; null in a controller. */
buffers: BuffersDocument | null,
/** The bounds of HTTP/2; null in a controller. */
http2: Http2Document | null,
/** Client connections that are open; null in a controller. */
connections: number | null,
/** Connections that were closed when they came, by why; null in a controller. */
connections_turned_away: { [key in string]: number } | null,
/** The table of nftables that resets connections in the gateway's place; null where there is none. */
kernel_shed: KernelShedDocument | null,
/** Upstreams and folders. */
upstreams: Array<PlantDocument>,
/** The sites. */
sites: Array<SiteDocument>,
/** Contracts and delays of each upstream that has any, judged by the costs as they are known now. */
plan: Array<PlanDocument>,
/** The classes of all sites, with `default` and `exempt`. */
classes: Array<ClassDocument>, };

export type TypeDocument = {
/** The type's name. */
name: string,
/** The level's name. */
level: string,
/** Whether the requests announced what they cost. */
announced: boolean,
/** How many requests that was learned from. */
requests: number,
/** The mean service time, without what bodies take. */
mean_seconds: number,
/** The standard deviation from request to request, with the doubt about the mean. */
deviation_seconds: number,
/** The part of them that takes no longer than the shortest deadline in service alone; null without one. */
in_time_alone: number | null,
/** What each whole 64 KB of a request's body takes on top. */
block_seconds: number, };

export type UtilizationDocument = {
/** The load line as it is now, U*. */
set_point: number,
/** As it was sensed; at most 1. */
measured: number,
/** By the costs that were learned. */
model: number,
/** What all that is offered would take, waiting requests included; above 1 in an overload. */
offered: number, };

export type WhatIfDocument = {
/** How far it is. */
state: WhatIfState,
/** The part of the log that is done, from 0 to 1; null if it is not known. */
done: number | null,
/** What it does, or why it failed. */
message: string, };

export type WhatIfState = "idle" | "running" | "done" | "failed";

/** The reasons with which a request is turned away. */
export const REJECTIONS: readonly string[] = ["overload","queue-full","too-many-streams","wait-timeout","deadline","late","no-site"];
