// What the gateway sends, from its Rust types: crates/gateway/src/admin. Do not edit.

export type BuffersDocument = { memory_bytes: number, file_bytes: number, file_failures: number, };

export type ClassDocument = { site: string, class: string, upstream: string | null, service_level: number, service_level_of_contract: number | null, service_level_by_upstream: { [key in string]: number }, levels: Array<LevelDocument>, request_rate_per_second: number, bandwidth_bytes_per_second: number, queue_delay_seconds: number, response_time_seconds: number, promise: PromiseDocument | null, deadline: DeadlineDocument | null, model: ModelDocument, heavy_clients: number, arrivals: number, rejected: number, in_flight: number, delivered_bytes: number, recent: RecentDocument, reasons: Record<string, number>, outcomes: Record<string, number>, };

export type ClientsDocument = { seed: string, rekey_seconds: number | null, };

export type ComeAgainDocument = { soonest_seconds: number, latest_seconds: number, };

export type DeadlineDocument = { deadline_seconds: number, in_time: number, expected_wait_seconds: number, missed: number, };

export type DelayDocument = { site: string, class: string, delay_seconds: number, percentile: number | null, requests_per_second: number | null, service_seconds: number | null, least_seconds: number | null, fitting_requests_per_second: number | null, verdict: string, };

export type EventKind = "started" | "reloaded" | "reload-refused" | "upstream-down" | "upstream-up" | "promise-missed" | "promise-kept";

export type FoundTypeDocument = { name: string, within: string, path: Array<string>, method: Array<string>, query: Array<string>, };

export type GuaranteeDocument = { site: string, utilization: number | null, };

export type Http2Document = { streams: number, idle_frames: number, idle_frames_per_second: number, ended: { [key in string]: number }, };

export type JournalDocument = { 
/**
 * When the process began, which numbers its events from 1 (s, Unix time).
 */
started_unix_seconds: number, 
/**
 * What happened, the latest last.
 */
events: Array<OperatorEvent>, };

export type LawDocument = { predicted_workers: number, error: number, workers_per_error: number, integral_workers: number, };

export type LevelDocument = { level: number, name: string, cost_seconds: number | null, served: number, };

export type ModelDocument = { per_request_seconds: number | null, per_byte_seconds: number | null, confidence: number, frozen: boolean, };

export type OperatorEvent = { 
/**
 * Its number, from 1.
 */
number: number, 
/**
 * When (s, Unix time).
 */
unix_seconds: number, 
/**
 * What kind of thing.
 */
kind: EventKind, 
/**
 * What it is about, such as a class or an upstream; empty if about the gateway.
 */
subject: string, 
/**
 * It in words.
 */
text: string, };

export type PlanDocument = { upstream: string, ceiling: number, sum: number, reserve: number, verdict: string, guarantees: Array<GuaranteeDocument>, delays: Array<DelayDocument>, };

export type PlantDocument = { name: string, workers: number, workers_found: boolean | null, limit: number, limit_reason: string | null, available: number, utilization: UtilizationDocument, service_level: number, bias: number, set_point_reduction: number, come_again: ComeAgainDocument, response_time_override: boolean, in_service: number, waiting: number, tunnels: number, unfinished_seconds: number | null, service_time_seconds: number, servers: Array<ServerDocument>, all_servers_out: boolean, retries: number, retries_refused: number, lookup_failure: string | null, };

export type PromiseDocument = { delay_seconds: number | null, percentile: number | null, quota: number | null, mean_seconds: number, late_share: number | null, lost_share: number | null, missed: boolean, at_limit: boolean, law: LawDocument | null, infeasible: boolean, ratio: number | null, ratio_reached: number | null, weight: number | null, };

export type PromiseKind = "load-line" | "contract" | "delay" | "ratio" | "deadline";

export type PromiseRow = { 
/**
 * Its kind.
 */
kind: PromiseKind, 
/**
 * The site, or those that share the upstream.
 */
site: string, 
/**
 * The class; `all` of the site.
 */
class: string, 
/**
 * The upstream or folder.
 */
upstream: string, 
/**
 * What was promised.
 */
guarantee: string, 
/**
 * The same figure now.
 */
now: string, 
/**
 * What is left, as a part of what was promised; below zero if it is missed. `None` where there is no such figure.
 */
margin: number | null, 
/**
 * How it is kept.
 */
state: PromiseState, 
/**
 * Since when it has this state (s, Unix time).
 */
since_unix_seconds: number, 
/**
 * What the loop does now.
 */
sentence: string, };

export type PromiseState = "kept" | "idle" | "at-risk" | "missed";

export type RecentDocument = { seconds: number, arrivals: number, served: Array<number>, rejected: number, reasons: { [key in string]: number }, failed: number, response_p50_seconds: number | null, response_p95_seconds: number | null, response_p99_seconds: number | null, };

export type ServerDocument = { address: string, state: string, since_seconds: number, why: string | null, weight: number, in_service: number, served: number, errors: number, unreachable: number, ejections: number, };

export type SiteDocument = { name: string, upstream: string | null, utilization: number, utilization_promised: number | null, guaranteed_share: number, types: Array<TypeDocument>, found_types: Array<FoundTypeDocument>, };

export type StatusDocument = { version: string, unix_seconds: number, at_seconds: number, mode: string, period_seconds: number, rejection_cost_seconds: number | null, promises: Array<PromiseRow>, clients: ClientsDocument, buffers: BuffersDocument, http2: Http2Document, connections_turned_away: { [key in string]: number }, upstreams: Array<PlantDocument>, sites: Array<SiteDocument>, plan: Array<PlanDocument>, classes: Array<ClassDocument>, };

export type TypeDocument = { name: string, level: string, announced: boolean, requests: number, mean_seconds: number, deviation_seconds: number, in_time_alone: number | null, block_seconds: number, };

export type UtilizationDocument = { set_point: number, measured: number, model: number, offered: number, };

export type WhatIfDocument = { 
/**
 * How far it is.
 */
state: WhatIfState, 
/**
 * The part of the log that is done, from 0 to 1; null if it is not known.
 */
done: number | null, 
/**
 * What it does, or why it failed.
 */
message: string, };

export type WhatIfState = "idle" | "running" | "done" | "failed";

/** The reasons with which a request is turned away. */
export const REJECTIONS: readonly string[] = ["overload","queue-full","too-many-streams","wait-timeout","deadline","late","no-site"];
