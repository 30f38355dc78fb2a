//! Time as the protocol sees it: a count of microseconds, and the two seams it comes in by (§2.9).
//! Nothing here reads a clock; a host injects one.

use std::any::Any;
use std::fmt;
use std::str::FromStr;
use std::task::Waker;
use std::time::Duration;

use thiserror::Error;

/// An instant: microseconds since 1970-01-01T00:00:00Z, written as RFC 3339. What time it is now is a
/// [`Clock`]'s to say, which a host chooses: `fak_adjudicate::SystemClock.now()`, say.
///
/// ```
/// use fak_abi::Timestamp;
///
/// let start: Timestamp = "2026-01-01T00:00:00Z".parse()?;
/// assert_eq!(Timestamp::from_micros(start.as_micros() + 1_500_000).to_string(), "2026-01-01T00:00:01.500000Z");
/// # Ok::<(), fak_abi::TimestampError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

const DAY: u64 = 86_400;
const MICRO: u64 = 1_000_000;
/// 9999-12-31T23:59:59.999999Z, the last instant RFC 3339 can write.
const MAX: u64 = 253_402_300_800 * MICRO - 1;

impl Timestamp {
    /// From microseconds since the epoch; later than the year 9999 is held there.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(if micros > MAX { MAX } else { micros })
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Later by `span`, held at the last instant that can be written.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self::from_micros(self.0.saturating_add(micros))
    }

    /// How long until `later`; zero if it has passed.
    #[must_use]
    pub const fn until(self, later: Self) -> Duration {
        Duration::from_micros(later.0.saturating_sub(self.0))
    }
}

/// Days since the epoch to (year, month, day), proleptic Gregorian; valid for the years here.
fn civil(days: u64) -> (u64, u64, u64) {
    // Count from 0000-03-01, so that a leap day is the last day of its year.
    let z = days + 719_468;
    let era = z / 146_097;
    let doe = z % 146_097;
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + u64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// The inverse of [`civil`], `None` before 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let y = year.checked_sub(u64::from(month <= 2))?;
    let mp = if month > 2 { month - 3 } else { month + 9 };
    let doy = (153 * mp + 2) / 5 + day - 1;
    let yoe = y % 400;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    (y / 400 * 146_097 + doe).checked_sub(719_468)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, micros) = (self.0 / MICRO, self.0 % MICRO);
        let (year, month, day) = civil(secs / DAY);
        let (hour, minute, second) = (secs % DAY / 3600, secs % 3600 / 60, secs % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if micros > 0 {
            write!(f, ".{micros:06}")?;
        }
        f.write_str("Z")
    }
}

/// Text that is not an RFC 3339 instant between 1970 and 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a time: expected RFC 3339 between 1970 and 9999, such as 2026-01-01T00:00:00Z")]
pub struct TimestampError;

/// Takes `count` digits off the front of `text`.
fn digits(text: &mut &str, count: usize) -> Option<u64> {
    let (head, tail) = text.split_at_checked(count)?;
    *text = tail;
    head.bytes().all(|b| b.is_ascii_digit()).then(|| head.parse().ok())?
}

fn mark(text: &mut &str, marks: &[char]) -> Option<char> {
    let mut chars = text.chars();
    let c = chars.next().filter(|c| marks.contains(c))?;
    *text = chars.as_str();
    Some(c)
}

fn parse(mut s: &str) -> Option<Timestamp> {
    let s = &mut s;
    let year = digits(s, 4)?;
    mark(s, &['-'])?;
    let month = digits(s, 2)?;
    mark(s, &['-'])?;
    let day = digits(s, 2)?;
    mark(s, &['T', 't', ' '])?;
    let hour = digits(s, 2)?;
    mark(s, &[':'])?;
    let minute = digits(s, 2)?;
    mark(s, &[':'])?;
    let second = digits(s, 2)?;
    let mut micros = 0;
    if mark(s, &['.']).is_some() {
        let count = s.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return None;
        }
        // Finer than a microsecond is cut, as a clock would.
        let kept = count.min(6);
        micros = digits(s, kept)? * 10_u64.pow(u32::try_from(6 - kept).ok()?);
        *s = s.split_at_checked(count - kept)?.1;
    }
    let sign = mark(s, &['Z', 'z', '+', '-'])?;
    let mut offset = 0;
    if matches!(sign, '+' | '-') {
        let (h, _, m) = (digits(s, 2)?, mark(s, &[':'])?, digits(s, 2)?);
        if h > 23 || m > 59 {
            return None;
        }
        offset = h * 3600 + m * 60;
    }
    // A leap second is folded into the second before it.
    if !s.is_empty() || month == 0 || month > 12 || day == 0 || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let date = days(year, month, day)?;
    if civil(date) != (year, month, day) {
        return None;
    }
    let local = date * DAY + hour * 3600 + minute * 60 + second.min(59);
    let utc = if sign == '-' { local + offset } else { local.checked_sub(offset)? };
    let total = utc * MICRO + micros;
    (total <= MAX).then_some(Timestamp(total))
}

impl FromStr for Timestamp {
    type Err = TimestampError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        parse(s).ok_or(TimestampError)
    }
}

/// Where time comes from (§2.9). The one clock of a kernel and everything built into it.
pub trait Clock: Send + Sync {
    /// The present instant. Need not be monotonic; users that need order keep their own.
    fn now(&self) -> Timestamp;
}

/// Wakes a waiter at an instant of the same kernel's [`Clock`], so that waits can have deadlines (§2.9).
pub trait Timer: Send + Sync {
    /// Calls `waker` once `at` has come. Dropping the answer cancels the wake-up.
    fn wake_at(&self, at: Timestamp, waker: Waker) -> WakeUp;
}

/// A scheduled wake-up; dropping it cancels it (§2.9).
pub struct WakeUp(#[expect(dead_code, reason = "held for its drop")] Option<Box<dyn Any + Send + Sync>>);

impl WakeUp {
    /// Wraps what cancels the wake-up when it is dropped.
    #[must_use]
    pub fn new(entry: impl Any + Send + Sync) -> Self {
        Self(Some(Box::new(entry)))
    }

    /// A wake-up that has already happened.
    #[must_use]
    pub const fn done() -> Self {
        Self(None)
    }
}

impl fmt::Debug for WakeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WakeUp")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_instants() {
        for (text, secs) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2026-01-01T00:00:00Z", 1_767_225_600),
        ] {
            assert_eq!(text.parse(), Ok(Timestamp(secs * MICRO)));
            assert_eq!(Timestamp(secs * MICRO).to_string(), text);
        }
        assert_eq!("2026-01-01T01:30:00.5+01:30".parse(), Ok(Timestamp(1_767_225_600_500_000)));
        assert_eq!(Timestamp(1_767_225_600_000_001).to_string(), "2026-01-01T00:00:00.000001Z");
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for bad in [
            "",
            "2026",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00Zx",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "logical:1",
            "é026-01-01T00:00:00Z",
        ] {
            assert_eq!(bad.parse::<Timestamp>(), Err(TimestampError), "{bad}");
        }
    }

    /// What RFC 3339 can write is what there is: later is held there, and nothing is negative.
    #[test]
    fn instants_stay_within_what_can_be_written() {
        let last: Timestamp = "9999-12-31T23:59:59.999999Z".parse().unwrap();
        assert_eq!(last.to_string(), "9999-12-31T23:59:59.999999Z");
        assert_eq!(last.as_micros(), 253_402_300_799_999_999);
        for later in [last.as_micros(), last.as_micros() + 1, u64::MAX] {
            assert_eq!(Timestamp::from_micros(later), last);
        }
        assert_eq!(Timestamp::from_micros(last.as_micros() - 1).as_micros(), last.as_micros() - 1);
        assert_eq!("9999-12-31T23:59:59-00:01".parse::<Timestamp>(), Err(TimestampError));
        let start = Timestamp::from_micros(5);
        assert_eq!(start.after(Duration::from_micros(37)), Timestamp::from_micros(42));
        assert_eq!((start.after(Duration::MAX), last.after(Duration::from_micros(1))), (last, last));
        assert_eq!(start.until(Timestamp::from_micros(42)), Duration::from_micros(37));
        assert_eq!(Timestamp::from_micros(42).until(start), Duration::ZERO);
    }

    /// Each part at its bound and one past it, and the three ways to write one instant.
    #[test]
    fn parts_are_bounded_one_by_one() {
        let noon = "2024-02-29T12:00:00Z".parse::<Timestamp>().unwrap();
        for same in [
            "2024-02-29t12:00:00z",
            "2024-02-29 12:00:00Z",
            "2024-02-29T12:00:00.000000999Z",
            "2024-03-01T11:59:00+23:59",
            "2024-02-28T12:01:00-23:59",
        ] {
            assert_eq!(same.parse(), Ok(noon), "{same}");
        }
        let leap = "2016-12-31T23:59:59Z".parse::<Timestamp>();
        assert_eq!(
            "2016-12-31T23:59:60Z".parse::<Timestamp>(),
            leap,
            "a leap second is part of the one before"
        );
        assert_eq!(
            "2024-02-29T12:00:00.25Z".parse::<Timestamp>().unwrap().as_micros() - noon.as_micros(),
            250_000
        );
        for good in
            ["2024-12-31T23:59:59Z", "2024-01-01T00:00:00Z", "2023-02-28T00:00:00Z", "2000-02-29T00:00:00Z"]
        {
            assert_eq!(good.parse::<Timestamp>().unwrap().to_string(), good);
        }
        for bad in [
            "2024-00-10T12:00:00Z",
            "2024-13-10T12:00:00Z",
            "2024-01-00T12:00:00Z",
            "2024-01-32T12:00:00Z",
            "2024-04-31T12:00:00Z",
            "2023-02-29T12:00:00Z",
            "2100-02-29T12:00:00Z",
            "2024-02-29T24:00:00Z",
            "2024-02-29T12:60:00Z",
            "2024-02-29T12:00:61Z",
            "2024-02-29T12:00:00+24:00",
            "2024-02-29T12:00:00+00:60",
            "2024-02-29T12:00:00*00:00",
            "2024/02/29T12:00:00Z",
            "2024-02-29T12.00:00Z",
            "0000-03-01T00:00:00Z",
            "+024-02-29T12:00:00Z",
        ] {
            assert_eq!(bad.parse::<Timestamp>(), Err(TimestampError), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_instant_survives_its_text(micros in 0..=MAX) {
            let at = Timestamp(micros);
            prop_assert_eq!(at.to_string().parse(), Ok(at));
        }
    }
}
