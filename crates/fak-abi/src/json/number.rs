//! JSON numbers: exact while they are integers of 64 bits, doubles otherwise.

use std::fmt::Write as _;

use super::write::Sink;

/// A JSON number as read (§7.1). Always finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// An integer literal from 0 up.
    U64(u64),
    /// A negative integer literal.
    I64(i64),
    /// Any other literal, as the nearest double.
    F64(f64),
}

impl Number {
    /// The number as a double; integers above 2^53 round to even.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::U64(n) => n as f64,
            Self::I64(n) => n as f64,
            Self::F64(n) => n,
        }
    }

    /// Reads a literal whose syntax the lexer has checked; `None` if no finite double holds it.
    pub(super) fn from_literal(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix('-') {
            if digits.bytes().all(|b| b.is_ascii_digit())
                && let Ok(n) = text.parse::<i64>()
            {
                return Some(if n == 0 { Self::U64(0) } else { Self::I64(n) });
            }
        } else if text.bytes().all(|b| b.is_ascii_digit())
            && let Ok(n) = text.parse::<u64>()
        {
            return Some(Self::U64(n));
        }
        match text.parse::<f64>() {
            Ok(n) if n.is_finite() => Some(Self::F64(n)),
            _ => None,
        }
    }
}

/// Writes a double in the ECMAScript shortest form (§7.1): `1e-7`, `100000000000000000000`, `1e+21`, `0` for both
/// zeros. A double that is not finite, which JSON cannot say, becomes `null`.
pub fn write_ecmascript<S: Sink>(sink: &mut S, number: f64) {
    if !number.is_finite() {
        sink.put(b"null");
        return;
    }
    if number == 0.0 {
        sink.put(b"0");
        return;
    }
    // `{:e}` gives the shortest digits that read back, as d.ddde±x; ECMAScript lays the same digits out otherwise.
    let mut text = String::with_capacity(32);
    if write!(text, "{:e}", number.abs()).is_err() {
        return;
    }
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let digits: Vec<u8> = mantissa.bytes().filter(|b| *b != b'.').collect();
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The value is 0.DIGITS × 10^point.
    let point = exponent + 1;
    if number < 0.0 {
        sink.put(b"-");
    }
    if count <= point && point <= 21 {
        sink.put(&digits);
        (count..point).for_each(|_| sink.put(b"0"));
    } else if 0 < point && point <= 21 {
        let (whole, fraction) = digits.split_at_checked(point as usize).unwrap_or((&digits, &[]));
        sink.put(whole);
        sink.put(b".");
        sink.put(fraction);
    } else if -6 < point && point <= 0 {
        sink.put(b"0.");
        (point..0).for_each(|_| sink.put(b"0"));
        sink.put(&digits);
    } else {
        let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, &[]));
        sink.put(first);
        if !rest.is_empty() {
            sink.put(b".");
            sink.put(rest);
        }
        let power = point - 1;
        sink.put(if power < 0 { b"e-" } else { b"e+" });
        sink.put(power.unsigned_abs().to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(number: f64) -> String {
        let mut out = Vec::new();
        write_ecmascript(&mut out, number);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn as_ecmascript_prints() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-7, "1.5e-7"),
            (123e-9, "1.23e-7"),
            (1e20, "100000000000000000000"),
            (123456789012345680000.0, "123456789012345680000"),
            (1e21, "1e+21"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (9007199254740992.0, "9007199254740992"),
            (9007199254740993.0, "9007199254740992"),
            (0.000123, "0.000123"),
            (12345.678, "12345.678"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(text(number), expected);
        }
    }

    #[test]
    fn literals_keep_integers_exact() {
        assert_eq!(Number::from_literal("9007199254740993"), Some(Number::U64(9007199254740993)));
        assert_eq!(Number::from_literal("18446744073709551615"), Some(Number::U64(u64::MAX)));
        assert_eq!(Number::from_literal("18446744073709551616"), Some(Number::F64(18446744073709551616.0)));
        assert_eq!(Number::from_literal("-9223372036854775808"), Some(Number::I64(i64::MIN)));
        assert_eq!(Number::from_literal("-0"), Some(Number::U64(0)));
        assert_eq!(Number::from_literal("1.0"), Some(Number::F64(1.0)));
        assert_eq!(Number::from_literal("1e400"), None);
        assert_eq!(Number::from_literal("-1e400"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(bits in any::<u64>()) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let read: f64 = text(number).parse().unwrap();
            prop_assert_eq!(read, number);
        }
    }
}
