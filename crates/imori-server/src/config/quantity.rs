//! Sizes and times in the configuration.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::setting::{Setting, Value, bounds, quoted};

/// A size in bytes, written as a number or with a unit: `65536`, `"64KiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

impl Bytes {
    /// `count` times 1,024 bytes.
    pub const fn kib(count: u64) -> Bytes {
        Bytes(count << 10)
    }

    /// `count` times 1,024² bytes.
    pub const fn mib(count: u64) -> Bytes {
        Bytes(count << 20)
    }

    /// `count` times 1,024³ bytes.
    pub const fn gib(count: u64) -> Bytes {
        Bytes(count << 30)
    }

    /// The size as a `usize`, saturated.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Written with the largest unit that divides it.
    pub(crate) fn with_unit(self) -> String {
        for (unit, shift) in UNITS {
            if self.0 != 0 && self.0.trailing_zeros() >= shift {
                return format!("{}{unit}", self.0 >> shift);
            }
        }
        String::from("0B")
    }
}

impl Setting for Bytes {
    fn read(value: &Value) -> Option<Bytes> {
        match value {
            Value::Integer(number) => u64::try_from(*number).ok().map(Bytes),
            Value::Text(text) => parse_size(text),
            _ => None,
        }
    }

    fn expected(range: Option<&RangeInclusive<Bytes>>) -> String {
        let range = match range {
            Some(range) => format!(" from `{}` to `{}`", range.start().with_unit(), range.end().with_unit()),
            None => String::new(),
        };
        format!("a size{range}, as a number of bytes or a string such as `16MiB`")
    }

    fn show(&self) -> String {
        quoted(&self.with_unit())
    }
}

fn parse_size(text: &str) -> Option<Bytes> {
    let (unit, shift) = UNITS.into_iter().find(|(unit, _)| text.ends_with(unit))?;
    let digits = text.strip_suffix(unit)?.trim_end();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << shift).map(Bytes)
}

macro_rules! whole_time {
    ($(#[doc = $doc:literal])+ $name:ident, $from:ident, $unit:literal) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// Converts it to a [`Duration`].
            pub const fn duration(self) -> Duration {
                Duration::$from(self.0 as u64)
            }
        }

        impl Setting for $name {
            fn read(value: &Value) -> Option<$name> {
                u32::read(value).map($name)
            }

            fn expected(range: Option<&RangeInclusive<$name>>) -> String {
                format!(concat!("a whole number of ", $unit, "{}"), bounds(range))
            }

            fn show(&self) -> String {
                self.0.show()
            }
        }
    };
}

whole_time! {
    /// A time in whole seconds; names of such keys end in `_s`.
    Seconds, from_secs, "seconds"
}

whole_time! {
    /// A time in whole milliseconds; names of such keys end in `_ms`.
    Millis, from_millis, "milliseconds"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_a_unit() {
        for (text, size) in [
            ("16MiB", Some(Bytes::mib(16))),
            ("64 KiB", Some(Bytes::kib(64))),
            ("3GiB", Some(Bytes::gib(3))),
            ("12B", Some(Bytes(12))),
            ("12", None),
            ("MiB", None),
            ("-1MiB", None),
            ("+1MiB", None),
            ("1.5MiB", None),
            ("1MB", None),
            ("99999999999999GiB", None),
            ("unlimited", None),
            ("", None),
        ] {
            assert_eq!(Bytes::read(&Value::Text(String::from(text))), size, "{text}");
        }
        assert_eq!(Bytes::read(&Value::Integer(12)), Some(Bytes(12)));
        assert_eq!(Bytes::read(&Value::Integer(-1)), None);
    }

    #[test]
    fn sizes_are_shown_in_the_largest_exact_unit() {
        for (size, shown) in [
            (Bytes::mib(16), "\"16MiB\""),
            (Bytes::kib(1025), "\"1025KiB\""),
            (Bytes(1023), "\"1023B\""),
            (Bytes(0), "\"0B\""),
        ] {
            assert_eq!(size.show(), shown);
        }
    }
}
