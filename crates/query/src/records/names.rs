//! How records are named: ids, and refNames, which are unique in their type, organisation and
//! tenant without regard to case.

use crate::checked::folded;
use kernel::values::ids::Millis;
use serde_json::Value;

/// How many characters a refName has at least.
pub const REF_NAME_CHARS_MIN: usize = 3;

/// How many bits of a new id are the time, in milliseconds, and how many are random.
const ID_PART_MASK: u64 = 0xffff_ffff_ffff;

/// An id for a new record: 24 hexadecimal digits that order by time.
pub fn fresh_id(at: Millis, random: u64) -> String {
    let at = u64::try_from(at.0).unwrap_or_default();
    format!("{:012x}{:012x}", at & ID_PART_MASK, random & ID_PART_MASK)
}

/// The id that a text is, in lower case: 24 hexadecimal digits or a UUID.
pub fn read_id(text: &str) -> Option<String> {
    let text = text.trim();
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_id = match text.len() {
        24 => is_hex(text),
        36 => {
            text.split('-').map(str::len).eq([8_usize, 4, 4, 4, 12])
                && is_hex(&text.replace('-', ""))
        }
        _ => false,
    };
    is_id.then(|| text.to_ascii_lowercase())
}

/// A record by its id, or by its refName in an organisation and a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordName {
    Id(String),
    RefName(RefName),
}

/// A refName, folded, where it is unique.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefName {
    pub org: String,
    pub tenant: String,
    pub folded: String,
}

impl RefName {
    /// The refName in the organisation and tenant of this data domain.
    pub fn within(domain: &Value, ref_name: &str) -> Self {
        let member = |name: &str| {
            domain.get(name).and_then(Value::as_str).map(str::to_owned).unwrap_or_default()
        };
        Self {
            org: member("orgRefName"),
            tenant: member("tenantId"),
            folded: folded(ref_name.trim()),
        }
    }
}

impl RecordName {
    /// What is an id is never a refName.
    pub fn read(text: &str, domain: &Value) -> Self {
        match read_id(text) {
            Some(id) => Self::Id(id),
            None => Self::RefName(RefName::within(domain, text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_id_is_24_hexadecimal_digits_or_a_uuid() {
        let id = "65A000000000000000000001";
        assert_eq!(read_id(id).as_deref(), Some("65a000000000000000000001"));
        let uuid = "7D444840-9dc0-11d1-b245-5ffdce74fad2";
        assert_eq!(read_id(uuid), Some(uuid.to_ascii_lowercase()));
        for text in ["", "65a00000000000000000000", "65a00000000000000000000g", "éééééééééééé"]
        {
            assert_eq!(read_id(text), None, "{text}");
        }
        assert_eq!(read_id("7d4448409-dc0-11d1-b245-5ffdce74fad2"), None);
        assert_eq!(read_id("7d444840-9dc0-11d1-b245-5ffdce74fad-"), None);
    }

    #[test]
    fn new_ids_are_ordered_by_time() {
        let early = fresh_id(Millis(1_700_000_000_000), u64::MAX);
        let late = fresh_id(Millis(1_700_000_000_001), 0);
        assert!(early < late);
        assert_eq!(read_id(&early), Some(early));
        assert_eq!(fresh_id(Millis(-1), 7), "000000000000000000000007");
    }

    #[test]
    fn a_ref_name_has_no_case_and_belongs_to_its_tenant() {
        let domain = json!({"orgRefName": "acme", "tenantId": "north"});
        let name = RefName {
            org: "acme".to_owned(),
            tenant: "north".to_owned(),
            folded: "depot".to_owned(),
        };
        assert_eq!(RecordName::read(" DePot ", &domain), RecordName::RefName(name));
    }
}
