//! The frames of a real interface, or of a file, by libpcap. A thread reads them at once, whatever its caller does meanwhile.

use crate::segment::{Link, Segment};
use crate::traffic::{Seen, Traffic};
use pcap::{Activated, Error, Packet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The kernel's buffer for frames that were not read yet (bytes).
const ROOM: i32 = 32 << 20;
/// The longest part of a frame that is captured (byte): all of it, since framing may stand anywhere.
const LONGEST: i32 = 65_535;
/// The number of packets between two queries of the kernel for the number of lost packets.
const ASKED_EVERY: u32 = 1024;
/// The thread checks this often whether it shall end, and how many packets were lost (ms).
const PATIENCE: i32 = 100;
/// The longest time for which a packet waits to be read. If it seems to have waited longer, the clock was set since its
/// capture.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A server's traffic at an interface of this machine.
#[derive(Debug)]
pub struct Capture(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    traffic: Mutex<Traffic>,
    lost: AtomicU64,
    failure: Mutex<Option<String>>,
    is_over: AtomicBool,
    /// All times count from here, by a clock that is never set.
    began: Instant,
}

impl Capture {
    /// Begins to capture what goes to and from the port at an interface, or at all of them (`any`). The server works on
    /// `workers` requests at once.
    ///
    /// # Errors
    /// Why the capture cannot begin, and what the operator can do.
    pub fn start(interface: &str, port: u16, workers: u32) -> Result<Capture, String> {
        let cannot = |error: Error| {
            let told = error.to_string();
            let help = if told.to_ascii_lowercase().contains("permi") {
                "it needs the right CAP_NET_RAW: run it as root, or `AmbientCapabilities=CAP_NET_RAW` under systemd"
            } else {
                "name an interface of this machine, such as `eth0` or `lo`, or `any`"
            };
            format!("cannot capture packets at {interface}: {told}; {help}")
        };
        let device = pcap::Capture::from_device(interface).map_err(cannot)?;
        let device = device.promisc(false).snaplen(LONGEST).timeout(PATIENCE).buffer_size(ROOM);
        let mut device = device.open().map_err(cannot)?;
        let link = link(&device)?;
        device.filter(&filter(link, port), true).map_err(cannot)?;
        let shared = Arc::new(Shared {
            traffic: Mutex::new(Traffic::new(port, workers)),
            lost: AtomicU64::new(0),
            failure: Mutex::new(None),
            is_over: AtomicBool::new(false),
            began: Instant::now(),
        });
        let own = Arc::clone(&shared);
        let reader = move || {
            let mut until_asked = 0_u32;
            while !own.is_over.load(Relaxed) {
                match device.next_packet() {
                    Ok(packet) => own.take(link, &packet),
                    Err(Error::TimeoutExpired) => until_asked = 0,
                    Err(error) => {
                        *own.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                        return;
                    }
                }
                if until_asked == 0
                    && let Ok(told) = device.stats()
                {
                    until_asked = ASKED_EVERY;
                    own.lose(u64::from(told.dropped) + u64::from(told.if_dropped));
                }
                until_asked = until_asked.saturating_sub(1);
            }
        };
        thread::Builder::new().name("capture".to_owned()).spawn(reader).map_err(|error| error.to_string())?;
        Ok(Capture(shared))
    }

    /// What was seen since the last call, and the number of requests under way. `None` once the capture has failed.
    pub fn look(&self) -> Option<(Seen, u32)> {
        if self.failure().is_some() {
            return None;
        }
        let mut traffic = self.0.traffic.lock().unwrap_or_else(PoisonError::into_inner);
        Some((traffic.look(self.0.began.elapsed()), traffic.in_service()))
    }

    /// The number of packets since the start for which the kernel had no room; nothing of them was seen.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Relaxed)
    }

    /// Why the capture has failed, if it has.
    pub fn failure(&self) -> Option<String> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.0.is_over.store(true, Relaxed);
    }
}

impl Shared {
    /// Notes the number of packets lost since the start.
    fn lose(&self, lost: u64) {
        if self.lost.swap(lost, Relaxed) != lost {
            let mut traffic = self.traffic.lock().unwrap_or_else(PoisonError::into_inner);
            traffic.lose(self.began.elapsed());
        }
    }

    fn take(&self, link: Link, packet: &Packet<'_>) {
        if let Some(segment) = Segment::of(link, packet.data) {
            let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let at = captured_at(time(packet), clock, self.began.elapsed());
            self.traffic.lock().unwrap_or_else(PoisonError::into_inner).take(at, &segment);
        }
    }
}

/// What a capture file shows of the server at this port, from the first packet to the last.
///
/// # Errors
/// Why the file cannot be read.
pub fn read_file(path: &Path, port: u16, workers: u32) -> Result<Seen, String> {
    let cannot = |error: Error| format!("cannot read {}: {error}", path.display());
    let mut file = pcap::Capture::from_file(path).map_err(cannot)?;
    let (link, mut traffic) = (link(&file)?, Traffic::new(port, workers));
    file.filter(&filter(link, port), true).map_err(cannot)?;
    let mut last = Duration::ZERO;
    loop {
        match file.next_packet() {
            Ok(packet) => {
                last = time(&packet);
                if let Some(segment) = Segment::of(link, packet.data) {
                    traffic.take(last, &segment);
                }
            }
            Err(Error::NoMorePackets) => return Ok(traffic.look(last)),
            Err(error) => return Err(cannot(error)),
        }
    }
}

/// The kernel's filter of packets; Ethernet frames may have the tag of a virtual network.
fn filter(link: Link, port: u16) -> String {
    let tagged =
        if link == Link::Ethernet { format!(" or (vlan and tcp port {port})") } else { String::new() };
    format!("tcp port {port}{tagged}")
}

fn link<T: Activated>(capture: &pcap::Capture<T>) -> Result<Link, String> {
    let number = capture.get_datalink().0;
    Link::of(number)
        .ok_or_else(|| format!("frames of the type {number} are not known: name another interface"))
}

/// When a packet was captured, by the clock that is never set, which shows `elapsed` now. The packet's `time` is by the clock
/// that shows `clock` now.
fn captured_at(time: Duration, clock: Duration, elapsed: Duration) -> Duration {
    let waited = clock.checked_sub(time).filter(|waited| *waited <= LONGEST_WAIT).unwrap_or_default();
    elapsed.saturating_sub(waited)
}

fn time(packet: &Packet<'_>) -> Duration {
    let at = packet.header.ts;
    Duration::from_secs(at.tv_sec.unsigned_abs()) + Duration::from_micros(at.tv_usec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_moves_no_packet() {
        let at = |time, clock, elapsed| {
            captured_at(Duration::from_secs(time), Duration::from_secs(clock), Duration::from_secs(elapsed))
        };
        assert_eq!(at(1000, 1002, 50), Duration::from_secs(48));
        // The clock was set, back or forward, after the packet got its time.
        assert_eq!(at(1000, 900, 50), Duration::from_secs(50));
        assert_eq!(at(1000, 5000, 50), Duration::from_secs(50));
        assert_eq!(at(1000, 1003, 2), Duration::ZERO);
    }
}
