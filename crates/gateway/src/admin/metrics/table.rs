//! All metrics, one row each, in the order of the page.

use super::{Labels, Metric, Read, Sampled, label, labels};
use crate::admin::document::mode_word;
use plimsoll_core::promises::Mode;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::telemetry::status::ClassStatus;

/// The table of metrics: each row is a name, a help text, and where its samples are read.
macro_rules! metrics {
    ($($name:literal, $help:literal, $kind:ident(|$own:ident| $value:expr);)+) => {
        pub(super) const METRICS: &[Metric] = &[$(
            Metric {
                name: $name,
                help: $help,
                read: Read::$kind(|$own| Sampled::samples($value)),
                #[cfg(test)]
                source: stringify!($value),
            },
        )+];
    };
}

metrics! {
    "plimsoll_mode", "1 for the mode that the loops run in.",
        Whole(|all| [Mode::Control, Mode::Observe, Mode::Off]
            .map(|mode| (label("mode", mode_word(mode)), mode == all.status.mode)));
    "plimsoll_build_info", "1, with the version of the program.",
        Whole(|_all| [(label("version", env!("CARGO_PKG_VERSION")), 1)]);
    "plimsoll_last_control_step_timestamp_seconds", "When the loops last ran, in Unix time; a stall keeps it still.",
        Whole(|all| all.last_step);
    "plimsoll_control_period_seconds", "The control period T.",
        Whole(|all| all.status.period);
    "plimsoll_rejection_cost_seconds", "Model coefficient c: the gateway's CPU time per rejection.",
        Whole(|all| all.status.rejection_cost_seconds);
    "plimsoll_buffer_bytes", "Bytes of requests and responses that are kept for slow clients, in memory and in temporary files.",
        Gateway(|all| [("memory", all.buffered.in_memory), ("files", all.buffered.in_files)]
            .map(|(place, bytes)| (label("in", place), bytes)));
    "plimsoll_buffer_file_failures_total", "Temporary files that could not be made, written or read.",
        Gateway(|all| all.buffered.failures);
    "plimsoll_tls_handshakes_total", "TLS handshakes with clients: full, resumed from an earlier one, or failed.",
        Gateway(|all| std::iter::zip(["full", "resumed", "failed"], all.handshakes)
            .map(|(result, count)| (label("result", result), count)).collect::<Vec<_>>());
    "plimsoll_certificate_end_timestamp_seconds", "Until when the certificate in this file is valid, in Unix time.",
        Gateway(|all| all.certificate_ends.iter()
            .map(|(file, end)| (label("certificate", file), *end)).collect::<Vec<_>>());
    "plimsoll_http2_connections_ended_total", "Connections of HTTP/2 that were ended for frames that ask for nothing, by the frame.",
        Gateway(|all| all.http2.ended.map(|(flood, count)| (label("flood", flood.as_str()), count)));
    "plimsoll_connections", "Client connections that are open.",
        Gateway(|all| all.connections as u64);
    "plimsoll_connections_turned_away_total", "Connections that were closed when they came, unread, by why.",
        Gateway(|all| all.turned_away.map(|(why, count)| (label("reason", why.as_str()), count)));
    "plimsoll_kernel_shed_failures_total", "How often nftables' table of clients could not be brought up to date; the gateway alone turns clients away then.",
        Gateway(|all| all.shed.as_ref().map(|shed| shed.failures));
    "plimsoll_controller_lanes", "The most processes of the server that may attach to the controller's state.",
        Controller(|own| own.lanes as u64);
    "plimsoll_controller_attached_processes", "Processes of the server that are attached.",
        Controller(|own| own.attached as u64);
    "plimsoll_controller_dead_processes_total", "Processes that were found dead while they were attached, since the state was made.",
        Controller(|own| own.deaths);
    "plimsoll_controller_returned_requests_total", "Requests that dead processes held, which were returned and have failed.",
        Controller(|own| own.returned);
    "plimsoll_listen_queue_connections", "Connections that wait in the server's listen queue, by the process that looked last; not of a full queue, whose length says nothing.",
        Controller(|own| own.listen_queue.map(u64::from));
    "plimsoll_workers", "Requests that the upstream works on at once.",
        Plants(|own| own.workers);
    "plimsoll_in_service_limit", "The most requests in service at the upstream at once.",
        GatewayPlants(|own| own.limit);
    "plimsoll_in_service", "Requests in service at the upstream.", Plants(|own| own.in_service);
    "plimsoll_waiting", "Requests waiting for the upstream.", GatewayPlants(|own| own.waiting);
    "plimsoll_tunnels", "Upgraded connections (WebSocket) and event streams to the upstream.", GatewayPlants(|own| own.tunnels);
    "plimsoll_upstream_service_level", "The service level m that the upstream's loop asks for.",
        Plants(|own| own.service_level);
    "plimsoll_bias", "What the integral part of the law adds to the set point.", Plants(|own| own.bias);
    "plimsoll_set_point_reduction", "By what part the load line is lowered for delays that are missed.",
        Plants(|own| own.set_point_reduction);
    "plimsoll_places_taken_ratio", "Part of its places at the upstream that a gateway reports as taken to a server that decides itself; above 1 while it turns requests away.",
        Plants(|own| own.places.map(|places| places.taken));
    "plimsoll_places_set_point_reduction", "By what part the server lowers its load line for the places that a gateway before it has taken.",
        Plants(|own| own.places.and_then(|places| places.heard).map(|heard| heard.set_point_reduction));
    "plimsoll_response_time_override", "1 while the upstream is slower than its limit and counts as full.",
        Plants(|own| own.response_time_override);
    "plimsoll_service_time_seconds", "Mean service time in the last control period.",
        Plants(|own| own.service_time);
    "plimsoll_workers_found",
        "1 once the number of workers was found; until then no request is rejected for the load.",
        Plants(|own| own.workers_found);
    "plimsoll_unfinished_work_seconds", "Work that was taken on and is not done, in seconds of one worker.",
        Plants(|own| own.unfinished_seconds);
    "plimsoll_set_point_ratio", "The utilization at which the upstream is held, its load line as it is now.",
        Plants(|own| own.set_point);
    "plimsoll_utilization_ratio", "Utilization of the upstream as measured in the last control period.",
        Plants(|own| own.utilization);
    "plimsoll_modelled_utilization_ratio", "Utilization of the upstream in the last control period by the learned costs.",
        Plants(|own| own.utilization_model);
    "plimsoll_offered_utilization_ratio", "Utilization that what is offered would take of the upstream, what waits included; above 1 in an overload.",
        Plants(|own| own.utilization_offered);
    "plimsoll_site_promised_utilization_ratio", "Part of the upstream that the site's contract promises it.",
        Sites(|own| own.utilization_promised);
    "plimsoll_site_utilization_ratio", "Part of the upstream that a site with a contract takes.",
        Sites(|own| own.utilization_promised.map(|_| own.utilization));
    "plimsoll_available_ratio",
        "The share of the upstream that is there, by the servers that are in use; its workers and places are those of this share.",
        Plants(|own| own.available);
    "plimsoll_server_weight_ratio",
        "The part of its turns that the server gets: 0 while it is out of use, less than 1 while it starts.",
        Servers(|own| own.weight);
    "plimsoll_server_in_service", "Requests in service at the server.", Servers(|own| own.in_service);
    "plimsoll_server_requests_total",
        "How requests ended at the server: served, with an error (500 and more, or no answer), or without a connection.",
        Servers(|own| [("served", own.served), ("error", own.errors), ("unreachable", own.unreachable)]
            .map(|(result, count)| (label("result", result), count)));
    "plimsoll_server_ejections_total", "How often the server was taken out of use.", Servers(|own| own.ejections);
    "plimsoll_upstream_all_servers_out", "1 while all servers of the upstream are out of use, and so all are used.",
        Rosters(|own| own.is_panic());
    "plimsoll_upstream_retries_total",
        "Requests whose server could not be reached or closed the connection: tried again, or not since too many were.",
        Rosters(|own| [("made", own.retries[0]), ("refused", own.retries[1])]
            .map(|(result, count)| (label("result", result), count)));
    "plimsoll_upstream_lookup_failed",
        "1 while a name of the upstream cannot be looked up; its servers are those that it had.",
        Rosters(|own| own.lookup_failure.is_some());
    "plimsoll_guaranteed_ratio",
        "Part of the site's requests in the last control period that were inside its contract.",
        Sites(|own| own.utilization_promised.map(|_| own.guaranteed_share));
    "plimsoll_plan_utilization_ratio", "Part of the upstream that all contracts promise together, by the costs as they are known now.",
        Plans(|own| (!own.rows.is_empty()).then_some(own.sum));
    "plimsoll_plan_ceiling_ratio", "Part of the upstream that contracts may promise together.",
        Plans(|own| (!own.rows.is_empty()).then_some(own.ceiling));
    "plimsoll_service_level", "The service level m of the class: 0 rejects everybody, M is full quality.",
        Classes(|own| own.service_level);
    "plimsoll_service_level_by_upstream",
        "The service level m of the class at each upstream, where several serve its levels.",
        Classes(|own| own.parts.iter().filter(|_| own.parts.len() > 1)
            .map(|part| (label("upstream", &part.plant), part.service_level)).collect::<Vec<_>>());
    "plimsoll_queue_seconds", "Time from arrival to start, by request.",
        GatewayClasses(|own| &own.queue_delays);
    "plimsoll_response_seconds", "Time from arrival to release, by request.",
        Classes(|own| &own.response_times);
    "plimsoll_service_seconds", "Time from start to release, by request.",
        Classes(|own| &own.service_times);
    "plimsoll_in_flight", "Requests that arrived and neither departed nor were turned away.",
        Classes(|own| own.counts.in_flight() as f64);
    "plimsoll_heavy_clients", "Clients with over a tenth of the load, served at random levels.",
        Classes(|own| own.heavy_clients);
    "plimsoll_cost_per_request_seconds", "Model coefficient a: utilization seconds per request.",
        Classes(|own| own.model.per_request_seconds);
    "plimsoll_cost_per_byte_seconds", "Model coefficient b: utilization seconds per delivered byte.",
        Classes(|own| own.model.per_byte_seconds);
    "plimsoll_model_confidence_ratio", "How well the model is known: 0 not at all, 1 exactly.",
        Classes(|own| own.model.confidence);
    "plimsoll_model_frozen", "1 if the last control period taught the model nothing.",
        Classes(|own| own.model.frozen);
    "plimsoll_promised_delay_seconds", "The response time that the class was promised.",
        Delays(|row| row.delay.target);
    "plimsoll_promised_late_ratio",
        "The part of the class's requests that may take longer; a promised mean has none.",
        Delays(|row| row.delay.percentile.map(|percentile| 1.0 - percentile / 100.0));
    "plimsoll_planned_delay_seconds",
        "The least delay that can be kept at the contracted rate, with the costs as they are known now.",
        Delays(|row| row.least_seconds);
    "plimsoll_quota_workers", "Workers that are the class's own while it wants them.",
        Classes(|own| own.response.and_then(|held| held.quota));
    "plimsoll_window_response_time_seconds",
        "Mean response time over the window of its promise: the last thousand requests or so.",
        Classes(|own| own.response.map(|held| held.response));
    "plimsoll_late_ratio", "Part of the requests in the window that took longer than was promised.",
        Classes(|own| own.response.filter(|held| held.quota.is_some()).map(|held| held.late));
    "plimsoll_lost_ratio", "Part of the requests in the window that failed or were turned away.",
        Classes(|own| own.response.filter(|held| held.quota.is_some()).map(|held| held.lost));
    "plimsoll_promise_missed", "1 while the promised delay is not kept.",
        Classes(|own| own.response.filter(|held| held.quota.is_some()).map(|held| held.missed));
    "plimsoll_quota_at_limit", "1 while the quota is at an end of its range.",
        Classes(|own| own.response.filter(|held| held.quota.is_some()).map(|held| held.at_limit));
    "plimsoll_ratio_infeasible", "1 while the promised ratio cannot be had at this load.",
        Classes(|own| own.response.filter(|held| held.weight.is_some()).map(|held| held.infeasible));
    "plimsoll_promised_ratio",
        "What the class's response times were promised to be to the others' of its site.",
        Classes(|own| own.response.and_then(|held| held.ratio));
    "plimsoll_reached_ratio", "What the class's response times are to the others' of its site over the window: as promised where the ratio holds.",
        Classes(|own| own.response.and_then(|held| held.ratio_reached));
    "plimsoll_weight", "The weight of the class's waiting time when the next request is chosen.",
        Classes(|own| own.response.and_then(|held| held.weight));
    "plimsoll_deadline_seconds", "The relative deadline of the class.",
        Classes(|own| own.deadline.map(|own| own.deadline));
    "plimsoll_expected_wait_seconds", "What a request of the class would wait if it came now.",
        Classes(|own| own.deadline.map(|own| own.wait));
    "plimsoll_deadline_promised_late_ratio", "The part of the admitted requests that may miss the deadline.",
        Classes(|own| own.deadline.map(|own| 1.0 - own.in_time / 100.0));
    "plimsoll_deadline_accepted_late_ratio",
        "The chance of missing the deadline with which a request is admitted now: more than promised where lower priorities are in the way.",
        Classes(|own| own.deadline.map(|own| 1.0 - own.admitted_from / 100.0));
    "plimsoll_deadline_missed_total", "Requests that were started and released after their deadline.",
        Classes(|own| own.deadline.map(|own| own.missed));
    "plimsoll_type_service_seconds",
        "Mean service time of the type at the level, without bodies; of announced costs, of one second announced.",
        Types(|own| own.mean);
    "plimsoll_type_service_deviation_seconds",
        "Standard deviation of the service time of the type at the level from request to request, with the doubt about the mean.",
        Types(|own| own.deviation);
    "plimsoll_type_block_seconds", "What each whole 64 KB of a request's body takes on top.",
        Types(|own| own.block);
    "plimsoll_level_cost_seconds", "Utilization seconds that one request takes at this level.",
        Classes(|own| by_level(own, |level| own.level_cost_seconds.get(level - 1).copied().flatten()));
    "plimsoll_arrivals_total", "Requests that arrived.", Classes(|own| own.counts.arrivals);
    "plimsoll_bytes_total", "Body bytes delivered to clients.", Classes(|own| own.counts.bytes);
    "plimsoll_requests_total", "Decisions by reason.",
        Classes(|own| Reason::ALL
            .map(|reason| (label("reason", reason.as_str()), own.counts.reasons[reason as usize])));
    "plimsoll_served_total", "Requests started, by level; in observe mode by the level that would have been.",
        Classes(|own| by_level(own, |level| own.counts.served.get(level).copied().unwrap_or(0)));
    "plimsoll_departures_total", "Requests that departed, by outcome; one that was answered with a status of 500 and above has failed.",
        Classes(|own| Outcome::ALL
            .map(|outcome| (label("outcome", outcome.as_str()), own.counts.outcomes[outcome as usize])));
    "plimsoll_responses_total", "Responses begun, by the class of their status code; those to requests of no site are not counted.",
        GatewayClasses(|own| ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(own.responses)
            .map(|(code, count)| (label("code", code), count)).collect::<Vec<_>>());
    "plimsoll_reloads_total",
        "Times that the configuration was read again: applied, or refused because it is wrong.",
        Gateway(|all| [("applied", all.reloads.applied), ("refused", all.reloads.refused)]
            .map(|(result, count)| (label("result", result), count)));
    "plimsoll_configuration_in_force_timestamp_seconds",
        "When the configuration in force came into force, in Unix time.",
        Whole(|all| all.in_force_since);
    "plimsoll_log_lines_dropped_total", "Lines of the log that could not be written, or not in time.",
        Whole(|all| all.log_lines_dropped as f64);
    "plimsoll_access_log_lines_dropped_total",
        "Lines of access logs that could not be written, or not in time; of the logs that are open.",
        Gateway(|all| all.access_log_lines_dropped as f64);
    "plimsoll_traced_requests_total",
        "Requests whose spans were taken by the collector of traces, or dropped because it was not there or too slow.",
        Gateway(|all| ["exported", "dropped"].into_iter().zip(all.traced)
            .map(|(result, count)| (label("result", result), count)).collect::<Vec<_>>());
    "process_cpu_seconds_total", "Processor time of the process, in user and system mode.",
        Whole(|all| all.process.cpu_seconds);
    "process_start_time_seconds", "When the process started, in Unix time.",
        Whole(|all| all.process.start_seconds);
    "process_resident_memory_bytes", "Memory of the process that is in the machine's memory.",
        Whole(|all| all.process.resident_bytes);
    "process_virtual_memory_bytes", "Address space of the process.", Whole(|all| all.process.virtual_bytes);
    "process_open_fds", "Open files and sockets of the process.", Whole(|all| all.process.open_fds);
    "process_max_fds", "The most that it may have open.", Whole(|all| all.process.max_fds);
    "process_threads", "Threads of the process.", Whole(|all| all.process.threads);
}

/// A value of each level of a class, by the level's number and name.
fn by_level<T>(class: &ClassStatus, value: impl Fn(usize) -> T) -> Vec<(Labels, T)> {
    let named = class.levels.iter().zip(1..);
    let of = |(name, level): (&String, usize)| {
        (labels([("level", level.to_string().as_str()), ("level_name", name)]), value(level))
    };
    named.map(of).collect()
}
