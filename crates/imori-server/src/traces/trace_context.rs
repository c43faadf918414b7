//! The header `traceparent` (W3C Trace Context, level 1, 3.2).

/// The trace of a message, and the span that sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceContext {
    pub(super) trace: [u8; 16],
    pub(super) parent: [u8; 8],
}

/// Length of the header in version 00; later versions may append more after a hyphen.
const LEN: usize = 55;

impl TraceContext {
    /// Parses a header; `None` if it is invalid or its trace is not sampled.
    pub(super) fn sampled(header: &[u8]) -> Option<TraceContext> {
        let (known, more) = header.split_at_checked(LEN)?;
        let mut fields = known.split(|byte| *byte == b'-');
        let (version, trace, parent, flags) =
            (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let [version] = bytes::<1>(version)?;
        let has_form = version != 0xff && (more.is_empty() || version > 0 && more.starts_with(b"-"));
        let (trace, parent) = (bytes(trace)?, bytes(parent)?);
        let [flags] = bytes::<1>(flags)?;
        let is_kept = flags & 1 == 1 && trace != [0; 16] && parent != [0; 8];
        (has_form && is_kept).then_some(TraceContext { trace, parent })
    }
}

/// Decodes exactly `N` bytes of lower-case hexadecimal.
fn bytes<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let is_whole = data_encoding::HEXLOWER.decode_len(digits.len()) == Ok(N)
        && data_encoding::HEXLOWER.decode_mut(digits, &mut bytes).is_ok();
    is_whole.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_header_that_is_sampled_is_a_context() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = TraceContext::sampled(good.as_bytes()).unwrap();
        assert_eq!(context.parent, [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert_eq!(context.trace[..2], [0x4b, 0xf9]);
        let later = format!("cc{}-what-ever", &good[2..]);
        assert_eq!(TraceContext::sampled(later.as_bytes()), Some(context));
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.x",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1g",
        ] {
            assert_eq!(TraceContext::sampled(bad.as_bytes()), None, "{bad}");
        }
    }
}
