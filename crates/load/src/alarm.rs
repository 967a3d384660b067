//! A timer of tens of microseconds inside a tokio runtime.
//!
//! Tokio's own timers tick once a millisecond, which is as long as a whole service time here. This timer is a Linux `timerfd`:
//! a kernel high-resolution timer that the runtime's epoll waits for beside the sockets. A thread that sleeps and sends would
//! cost a wake across threads for each completion (an eventfd write and a context switch), and the two threads would contend
//! for the plant's lock.
//!
//! The descriptor is never read: epoll is edge-triggered, and setting the timer clears its expiry count.

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// One alarm clock. Any thread may set it; one task waits for it.
pub(crate) struct Alarm(AsyncFd<Descriptor>);

impl Alarm {
    /// An alarm of the current runtime that is not set.
    #[expect(
        deprecated,
        reason = "deprecated for types whose raw descriptor may not be their own; ours owns it"
    )]
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        Ok(Self(AsyncFd::with_interest(Descriptor(timer), Interest::READABLE)?))
    }

    /// Rings once, `after` from now, in place of any earlier setting.
    pub(crate) fn set(&self, after: Duration) {
        // A setting of zero would disarm the timer.
        let after = TimeSpec::from_duration(after.max(Duration::from_nanos(1)));
        let set = self.0.get_ref().0.set(Expiration::OneShot(after), TimerSetTimeFlags::empty());
        debug_assert!(set.is_ok(), "a valid time was refused: {set:?}");
    }

    /// Waits until the alarm rings. It may also return without cause, so the caller must check the clock afterwards.
    pub(crate) async fn rung(&self) -> io::Result<()> {
        self.0.readable().await?.clear_ready();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn rings_after_the_time_set_and_can_be_moved_forward() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let alarm = Alarm::new().unwrap();
            for _ in 0..20 {
                let start = Instant::now();
                alarm.set(Duration::from_secs(60));
                alarm.set(Duration::from_micros(300));
                while start.elapsed() < Duration::from_micros(300) {
                    alarm.rung().await.unwrap();
                }
                assert!(start.elapsed() < Duration::from_secs(5));
            }
        });
    }
}
