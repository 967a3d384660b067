//! Parses a status page. Any text gives a result, because the page may come from anything that listens at its address.

/// What a page states: totals since the server's start, and the connections and workers of the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) requests: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) in_service: Option<u32>,
    pub(crate) workers: Option<u32>,
}

/// Apache's page has lines `Name: value`. The scoreboard has a slot for each worker that may ever be started; the numbers
/// of busy and idle workers are of those that run now.
pub(crate) fn apache(body: &str) -> Totals {
    let value = |name: &str| body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let number = |name: &str| value(name).and_then(|text| text.trim().parse::<u64>().ok());
    let slots = value("Scoreboard").map(|slots| slots.trim().len() as u32).filter(|slots| *slots > 0);
    let running =
        number("BusyWorkers").zip(number("IdleWorkers")).map(|(busy, idle)| count(busy.saturating_add(idle)));
    let workers = slots.or(running);
    // The worker that answers this request is not counted. The exception is a server whose workers are all busy: there
    // the request mostly waited for a worker, and without the exception a full server would seem to have one to spare.
    let others = |busy: u32| if Some(busy) == workers { busy } else { busy.saturating_sub(1) };
    Totals {
        requests: number("Total Accesses"),
        bytes: number("Total kBytes").map(|kilobytes| kilobytes.saturating_mul(1024)),
        in_service: number("BusyWorkers").map(|busy| others(count(busy))),
        workers,
    }
}

/// nginx's page:
///
/// ```text
/// Active connections: 2
/// server accepts handled requests
///  10 10 21
/// Reading: 0 Writing: 1 Waiting: 1
/// ```
pub(crate) fn nginx(body: &str) -> Totals {
    let mut lines = body.lines();
    let totals = lines.by_ref().skip_while(|line| !line.contains("accepts")).nth(1);
    let requests = totals.and_then(|line| line.split_ascii_whitespace().nth(2)?.parse().ok());
    let mut words = body.split_ascii_whitespace().skip_while(|word| *word != "Writing:").skip(1);
    let writing = words.next().and_then(|word| word.parse::<u32>().ok());
    // The worker that answers this request is not counted.
    let in_service = writing.map(|writing| writing.saturating_sub(1));
    Totals { requests, bytes: None, in_service, workers: None }
}

/// A number of workers.
fn count(number: u64) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const APACHE: &str = "localhost\nServerVersion: Apache/2.4.62\nTotal Accesses: 120\nTotal kBytes: 30\n\
                          ReqPerSec: 2.5\nBusyWorkers: 3\nIdleWorkers: 2\nScoreboard: __WWK...\n";
    pub(in super::super) const NGINX: &str = "Active connections: 5 \nserver accepts handled requests\n 10 10 21 \nReading: 0 Writing: 4 \
                         Waiting: 1 \n";

    #[test]
    fn both_pages() {
        let apache = apache(APACHE);
        assert_eq!((apache.requests, apache.bytes), (Some(120), Some(30_720)));
        assert_eq!((apache.in_service, apache.workers), (Some(2), Some(8)));
        let full = super::apache(&APACHE.replace("BusyWorkers: 3", "BusyWorkers: 8"));
        assert_eq!((full.in_service, full.workers), (Some(8), Some(8)));
        let nginx = nginx(NGINX);
        assert_eq!((nginx.requests, nginx.bytes), (Some(21), None));
        assert_eq!((nginx.in_service, nginx.workers), (Some(3), None));
        assert_eq!(super::nginx("<html>"), Totals::default());
    }

    /// A number larger than any server has must neither end the agent nor make a busy server seem idle.
    #[test]
    fn numbers_beyond_any_server() {
        let most = u64::MAX;
        let page = format!(
            "Total Accesses: {most}\nTotal kBytes: {most}\nBusyWorkers: {most}\nIdleWorkers: {most}\n"
        );
        let totals = apache(&page);
        assert_eq!((totals.requests, totals.bytes), (Some(most), Some(most)));
        assert_eq!((totals.in_service, totals.workers), (Some(u32::MAX), Some(u32::MAX)));
    }
}
