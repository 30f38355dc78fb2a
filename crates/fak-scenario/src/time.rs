//! Times as a scenario writes them: RFC 3339 in, microseconds since 1970 out. The clock itself is not here.

/// 2026-01-01T00:00:00Z, in microseconds since 1970.
pub(crate) const DEFAULT_US: u64 = 1_767_225_600_000_000;

/// Microseconds since 1970 of an RFC 3339 time; digits past the sixth of a fraction are dropped. `None` if it is none, or lies
/// before 1970.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let year = digits(date.get(..4)?, 4)?;
    let month = digits(date.get(5..7)?, 2)?;
    let day = digits(date.get(8..)?, 2)?;
    if date.get(4..5) != Some("-") || date.get(7..8) != Some("-") {
        return None;
    }
    let clock_len = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at_checked(clock_len)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = three(clock)?;
    let days_in_month = match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days_in_month).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds =
        days(year, month, day)? * 86_400 + hour * 3_600 + minute * 60 + second - offset(zone)?;
    let micros = seconds
        .checked_mul(1_000_000)?
        .checked_add(micros(fraction)?)?;
    u64::try_from(micros).ok()
}

/// Exactly `width` decimal digits.
fn digits(text: &str, width: usize) -> Option<i64> {
    (text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

/// `hh:mm:ss`.
fn three(text: &str) -> Option<[i64; 3]> {
    let mut parts = text.split(':').map(|part| digits(part, 2));
    let all = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(all)
}

/// A fraction of a second, in microseconds.
fn micros(fraction: &str) -> Option<i64> {
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{fraction:0<6}").get(..6)?.parse().ok()
}

/// `Z` or `±hh:mm`, in seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next()? {
        'Z' | 'z' => return (zone.len() == 1).then_some(0),
        '+' => 1,
        _ => -1,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar: whole 400-year cycles, counted from March so that the leap day is
/// the last of its year.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let year = if month <= 2 { year - 1 } else { year };
    let cycle = year.div_euclid(400);
    let of_cycle = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let in_cycle = of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year;
    Some(cycle * 146_097 + in_cycle - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse("2026-01-01T00:00:00Z"), Some(DEFAULT_US));
        assert_eq!(
            parse("2000-02-29T12:00:00.5+02:00"),
            Some(951_818_400_500_000)
        );
        assert_eq!(
            parse("2026-01-01T00:00:00.1234567Z"),
            Some(DEFAULT_US + 123_456)
        );
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "2026",
            "2026-01-01",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-01-01T00:00:00+1:00",
            "2026_01_01T00:00:00Z",
            "é026-01-01T00:00:00Z",
            "2026-01-01T00:00:00Z ",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
