//! Events that tools publish: each names its run and its case.

use kernel::tool::call::{Call, ToolError};
use serde_json::{Map, Value};

/// Puts the run and the case into an event, in the place of whatever stands there: who calls does
/// not choose them.
pub(crate) fn placed(mut event: Map<String, Value>, call: &Call) -> Map<String, Value> {
    let run = call.context.run.map(|run| uuid(run.0));
    let case = call.context.session.as_ref().map(|session| session.id.to_string());
    event.insert("correlationId".to_owned(), Value::from(run));
    event.insert("caseId".to_owned(), Value::from(case));
    event
}

pub(crate) fn publish(call: &Call, event: Map<String, Value>) -> Result<(), ToolError> {
    call.context.publisher.publish(Value::Object(event))
}

/// The bits as a UUID is written.
pub(crate) fn uuid(bits: u128) -> String {
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// The bits with what makes them a UUID of our own making: version 8.
pub(crate) fn made(bits: u128) -> u128 {
    let version = 0x8u128 << 76;
    let variant = 0b10u128 << 62;
    (bits & !(0xfu128 << 76) & !(0b11u128 << 62)) | version | variant
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_formatted_as_uuids() {
        let bits = 0x0193_2f4e_5d6c_7aaa_8bbb_0123_4567_89ab;
        assert_eq!(uuid(bits), "01932f4e-5d6c-7aaa-8bbb-0123456789ab");
        assert_eq!(uuid(made(0)), "00000000-0000-8000-8000-000000000000");
        assert_eq!(uuid(made(u128::MAX)), "ffffffff-ffff-8fff-bfff-ffffffffffff");
    }
}
