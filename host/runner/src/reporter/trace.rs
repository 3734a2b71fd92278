//! The trace ID of a drain, for its log lines and its trace; a restart does not change it.

use scupper_engine::Request;

/// The 32 hexadecimal digits of a trace.
pub(crate) fn trace_id(id: &str) -> String {
    format!("{:032x}", number(id))
}

/// The number of a trace: that of the drain's UID, where its id is one.
pub(crate) fn number(id: &str) -> u128 {
    let digits: String = id.chars().filter(|it| *it != '-').collect();
    if digits.len() == 32
        && digits.bytes().all(|it| it.is_ascii_hexdigit())
        && let Ok(number) = u128::from_str_radix(&digits, 16)
    {
        return number;
    }
    // FNV-1a over 128 bits: no secret, only a name.
    id.bytes()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        })
}

/// The span of a drain, whose fields every log line of the drain has.
pub(crate) fn span(request: &Request) -> tracing::Span {
    tracing::info_span!(
        "drain",
        name = request.name,
        node = request.node,
        trace = trace_id(&request.id)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_of_an_event_is_its_uid() {
        let uid = "6F3A2F0E-7c0e-4f3b-9d0a-000000000001";
        assert_eq!(trace_id(uid), "6f3a2f0e7c0e4f3b9d0a000000000001");
    }

    #[test]
    fn other_ids_have_one_trace_each() {
        let cordon = trace_id("cordon-18f-1");
        assert_eq!(cordon, trace_id("cordon-18f-1"));
        assert_ne!(cordon, trace_id("cordon-18f-2"));
        assert_eq!((cordon.len(), trace_id("").len()), (32, 32));
    }
}
