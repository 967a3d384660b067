//! The log of requests: where its lines are written, and in which form.

use super::addresses::in_folder_of;
use super::file::ConfigurationKeys;
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{Located, Text, section};
use plimsoll_gateway::settings::{AccessLogSettings, LogForm, LogTarget, SiteLog};

section! { "[access_log]"
    /// A line for each request. Lines are written by a thread of their own, so that a slow or full disk delays no request;
    /// lost lines are counted in `plimsoll_access_log_lines_dropped_total`. On SIGUSR1 the files are opened anew, for
    /// logrotate.
    AccessLogKeys {
        /// The file, or `"stdout"`. Absent: only sites with an `access_log` of their own have their requests logged. A
        /// relative path is taken from the folder of this file.
        file: Text, optional;
        /// The form of the lines, the same for all logs.
        format: LogForm, default(LogForm::default());
    }
}

crate::syntax::word::words!(LogForm {
    "json" => Json, "an object a line, with site, class, level, reason and times";
    "common" => Common, "the Common Log Format";
    "combined" => Combined, "the Combined Log Format of Apache and nginx";
});

/// The logs of the file with this name.
pub(super) fn access_log(file: &ConfigurationKeys, name: &str, findings: &mut Findings) -> AccessLogSettings {
    let keys = &file.access_log.value;
    let mut target = |text: &Located<Text>| target(text, name, findings);
    let sites = file.site.value.0.iter().map(|site| match &site.value.access_log {
        None => SiteLog::Shared,
        Some(text) if text.value.0 == "off" => SiteLog::Off,
        Some(text) => SiteLog::Own(target(text)),
    });
    let sites = sites.collect();
    AccessLogSettings { form: keys.format.value, target: keys.file.as_ref().map(target), sites }
}

fn target(text: &Located<Text>, name: &str, findings: &mut Findings) -> LogTarget {
    match text.value.0.as_str() {
        "stdout" => LogTarget::Stdout,
        word => {
            if word == "off" {
                refuse!(findings, BadValue at &text.span,
                    "`\"off\"` is for a site: here it would be a file of that name",
                    help: "leave this out, and only sites with an `access_log` of their own have their requests logged; or \
                           write `access_log = \"off\"` under a [[site]] that is to have none");
            }
            let help = "write one, such as `\"access.log\"`, or `\"stdout\"`";
            LogTarget::File(in_folder_of(name, text, help, findings))
        }
    }
}
