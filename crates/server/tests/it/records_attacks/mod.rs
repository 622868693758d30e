//! Who tries to reach records, fields and realms that are kept from them, or to harm the store, by
//! each argument of each call on records.

mod foreign_rows;
mod hidden_fields;
mod sizes;
mod texts;

use crate::house::Answer;

/// What an answer says, but for what is of this request alone.
fn told(answer: &Answer) -> (u16, String) {
    let mut body = answer.body.clone();
    if let Some(members) = body.as_object_mut() {
        members.remove("traceId");
        members.remove("asOf");
    }
    (answer.status, body.to_string())
}
