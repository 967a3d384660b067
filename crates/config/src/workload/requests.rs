//! Resolves what a stream asks for, and its clients.

use super::keys::{FieldKeys, PageKeys, StreamKeys};
use super::laws;
use super::resolve::StreamContext;
use super::values::{FormatKind, host_matching};
use crate::diagnostic::{Findings, exclusive, in_backticks, quoted, refuse};
use crate::syntax::{Located, OptionalKey, Section, Table, Text, beside, listed};
use plimsoll_sim::surge_files;
use plimsoll_sim::workload::{Clients, Content, Input, JsonFields, LogFormat, Page};

/// The content of a stream's requests.
pub(super) fn content(
    section: &Located<StreamKeys>,
    context: &StreamContext<'_>,
    findings: &mut Findings,
) -> Content {
    let keys = &section.value;
    let pages_given = keys.page.span_beside(&section.span);
    let given = [("page", pages_given), ("pages_from", keys.pages_from.span())];
    exclusive(&given, "pages are listed, or taken from a log", findings);
    let pages = keys.page.value.0.iter().flat_map(|page| files(page, context, findings));
    let pages: Vec<Page> = pages.collect();
    match &keys.pages_from {
        Some(log) => Content::Log(input(log, context.inputs.file_name, findings), format(section, findings)),
        // A log brings its own pages.
        None if keys.log.is_some() => Content::Pages(Vec::new()),
        None if pages.is_empty() => Content::Pages(vec![self::page(&PageKeys::empty(), context, findings)]),
        None => Content::Pages(pages),
    }
}

/// A host that belongs to the first site; empty if that site takes every host.
fn default_host(context: &StreamContext<'_>) -> String {
    let first = context.truth.promises.sites.first().and_then(|site| site.hosts.first());
    first.map_or(String::new(), |host| host_matching(host))
}

/// A page, or the files in its place.
fn files(section: &Located<PageKeys>, context: &StreamContext<'_>, findings: &mut Findings) -> Vec<Page> {
    let keys = &section.value;
    let page = page(keys, context, findings);
    let Some(files) = &keys.files else { return vec![page] };
    if !page.path.contains('*') {
        refuse!(findings, MissingKey at &files.span,
            "`files` need a `*` in the path, which becomes the number of a file",
            help: "write `path = \"/files/*\"`");
    }
    for (name, given) in [
        ("bytes", keys.bytes.span_beside(&section.span)),
        ("bytes_law", keys.bytes_law.span_beside(&section.span)),
        ("service", keys.service.span()),
    ] {
        if let Some(given) = given {
            refuse!(findings, Conflict at given,
                format!("`{name}` means nothing beside `files`"),
                help: "leave it out: each file has the size that SURGE's law gives it",
                beside &files.span => "`files` is given");
        }
    }
    surge_files(&page, files.value.0 as u32)
}

fn page(keys: &PageKeys, context: &StreamContext<'_>, findings: &mut Findings) -> Page {
    let host = keys.host.as_ref().map_or_else(|| default_host(context), |host| host.value.0.clone());
    if let Some(given) = keys
        .host
        .as_ref()
        .filter(|_| !context.inputs.reading.compared && context.truth.site_of(&host).is_none())
    {
        let hosts = context.truth.promises.sites.iter().flat_map(|site| &site.hosts);
        refuse!(findings, UnknownName at &given.span,
            format!("no site of the configuration takes `{}`", quoted(&host)),
            help: format!("its hosts are {}", in_backticks(hosts)));
    }
    let headers = keys.headers.iter().flat_map(|headers| &headers.value.0);
    for (name, _) in headers.clone().filter(|(name, _)| name.value.0 == "host") {
        refuse!(findings, Conflict at &name.span,
            "the host asked for has a key of its own", help: "write `host = \"shop.example\"`");
    }
    Page {
        method: keys.method.value.0.clone(),
        host,
        path: keys.path.value.0.clone(),
        headers: headers.map(|(name, value)| (name.value.0.clone(), value.value.0.clone())).collect(),
        weight: keys.weight.value.0,
        bytes: keys.bytes.value.0 as f64,
        bytes_law: laws::law(&keys.bytes_law, findings),
        service: keys.service.as_ref().map(|service| service.value),
        service_law: keys.service_law.as_ref().map(|law| laws::law(law, findings)),
    }
}

/// The clients of a stream.
pub(super) fn clients(section: &Located<StreamKeys>, findings: &mut Findings) -> Clients {
    let keys = &section.value;
    let (count, first_address) = (keys.clients.value.0 as u32, u32::from(keys.first_client.value));
    if first_address.checked_add(count - 1).is_none() {
        refuse!(findings, OutOfRange at &keys.first_client.span,
            format!("{count} clients from this address on are more than there are addresses"),
            help: "write a lower one, such as `\"10.0.0.0\"`",
            beside &keys.clients.span => "`clients` is given");
    }
    Clients { count, skew: keys.skew.value.0, first_address }
}

/// An input file; a relative path is taken from the workload file's folder.
pub(super) fn input(path: &Located<Text>, file_name: &str, findings: &mut Findings) -> Input {
    let text = path.value.0.as_str();
    if text.is_empty() {
        refuse!(findings, BadValue at &path.span,
            "an empty path is no file", help: "name a file, or `-` for standard input");
    }
    match text {
        "-" => Input::File("-".into()),
        _ => Input::File(beside(file_name, text)),
    }
}

/// The format of a stream's log.
pub(super) fn format(section: &Located<StreamKeys>, findings: &mut Findings) -> LogFormat {
    let keys = &section.value;
    match (keys.format.value, &keys.fields) {
        (FormatKind::Auto, None) => LogFormat::Auto,
        (FormatKind::Common, None) => LogFormat::Common,
        (FormatKind::Haproxy, None) => LogFormat::Haproxy,
        (FormatKind::Json, None) => LogFormat::Json(Box::default()),
        (FormatKind::Auto | FormatKind::Json, Some(fields)) => {
            LogFormat::Json(Box::new(self::fields(fields)))
        }
        (FormatKind::Common | FormatKind::Haproxy, Some(fields)) => {
            refuse!(findings, Conflict at &fields.span,
                "only JSON lines have fields with names",
                help: "leave one of them out, or write `format = \"json\"`",
                beside &keys.format.span => "`format` is given");
            LogFormat::Common
        }
    }
}

fn fields(keys: &Located<Table<FieldKeys>>) -> JsonFields {
    let keys = &keys.value.0;
    let names = |names| listed(names, |name: &Text| name.0.clone());
    JsonFields {
        time: names(&keys.time),
        client: names(&keys.client),
        request: names(&keys.request),
        method: names(&keys.method),
        path: names(&keys.path),
        host: names(&keys.host),
        bytes: names(&keys.bytes),
        status: names(&keys.status),
        service: names(&keys.service),
    }
}
