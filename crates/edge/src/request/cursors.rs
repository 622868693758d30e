//! Positions as clients carry them: cursors of lists, ids of the feed's events, positions of sinks.
//! The store counts the rows of all realms together, so a number would tell of others. What goes
//! out is sealed with the server's secret and good for one list, filter and realm. Engine and
//! stores know nothing of it.
//!
//! The same position gives the same text: a client can compare two ids of the feed, and a restart
//! changes none. Only a new secret does; texts of the older ones still open.

use crate::problem::{Failure, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::refusal::{Refusal, RefusalCode};
use kernel::contracts::SessionRef;
use kernel::tool::call::Caller;
use outbound::seal::{Keyring, StableEnvelopes, Unopened};
use std::fmt::Debug;
use wire::jsonrpc::RpcError;

/// The first character: an envelope follows. No number and no hexadecimal text begins with it.
const FORM: char = 'w';
/// What the secret is used for here: keys for other purposes differ.
const PURPOSE: &[u8] = b"waypost cursor";

/// What JSON-RPC says of a cursor of another list, caller or server.
pub const NOT_OF_LIST: &str =
    "`cursor` is not one of this list; use `nextCursor` of the page before, as it is";

/// Seals positions and opens them.
#[derive(Clone)]
pub struct Cursors {
    envelopes: StableEnvelopes,
}

/// What a cursor is good for: one list of one realm, under one filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purpose(Vec<u8>);

impl Purpose {
    /// A list of the caller's realm, by its route.
    pub fn of(caller: &Caller, list: &str) -> Self {
        Self(Vec::new()).with(caller.realm.as_str()).with(list)
    }

    /// The feed of the caller's realm.
    pub fn feed(caller: &Caller) -> Self {
        Self::of(caller, "/api/v1/events")
    }

    /// The history of a session, as it was named.
    pub fn history(caller: &Caller, session: &SessionRef) -> Self {
        Self::of(caller, "/api/v1/sessions/{id}/history").filtered(session)
    }

    /// The same under this filter. Written as it debugs, so that no member of it is forgotten.
    #[must_use]
    pub fn filtered(self, filter: &impl Debug) -> Self {
        self.with(&format!("{filter:?}"))
    }

    /// Each part with its length, so that no two lists of parts run together.
    fn with(mut self, part: &str) -> Self {
        self.0.extend_from_slice(&(part.len() as u64).to_be_bytes());
        self.0.extend_from_slice(part.as_bytes());
        self
    }
}

impl Cursors {
    /// With the server's secrets. Positions that another one sealed are gone: a client reads the
    /// list from its beginning then.
    pub fn new(keys: impl Into<Keyring>) -> Self {
        Self { envelopes: StableEnvelopes::new(keys, PURPOSE) }
    }

    /// Where the page begins that a client asks for; none for the first one.
    pub fn start(&self, of: &Purpose, sent: Option<String>) -> Result<Option<String>> {
        let Some(sent) = sent else { return Ok(None) };
        self.open(of, &sent).map(Some).map_err(|why| refused(why, bad_cursor))
    }

    /// Where the next page begins, for a client.
    pub fn next(&self, of: &Purpose, position: Option<String>) -> Option<String> {
        position.map(|position| self.seal(of, &position))
    }

    /// A position as a text for clients.
    pub fn seal(&self, of: &Purpose, position: &str) -> String {
        format!("{FORM}{}", URL_SAFE_NO_PAD.encode(self.envelopes.seal(&of.0, position.as_bytes())))
    }

    /// The position that a client sent, if it is of this purpose. Only sealed positions are taken:
    /// a caller who can name any row finds out, from those of its own on either side of it, how
    /// many others there are.
    pub fn open(&self, of: &Purpose, sent: &str) -> Result<String, Unopened> {
        let bytes = sealed(sent).ok_or(Unopened::Changed)?;
        let position = self.envelopes.open(&of.0, &bytes)?;
        String::from_utf8(position).map_err(|_| Unopened::Changed)
    }
}

/// The bytes of a text that has the form of a sealed place.
fn sealed(sent: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(sent.strip_prefix(FORM)?).ok()?;
    StableEnvelopes::is_one(&bytes).then_some(bytes)
}

/// The refusal of a place that does not open: `otherwise`, unless it was good until its secret was
/// taken away.
pub fn refused(why: Unopened, otherwise: impl FnOnce() -> Failure) -> Failure {
    let Unopened::UnknownKey(_) = why else { return otherwise() };
    let message = "that place was sealed with a secret key that this server does not have any more";
    Refusal::new(RefusalCode::BadCursor, message).hint("begin without it").into()
}

/// The same in JSON-RPC.
pub fn refused_rpc(why: Unopened) -> RpcError {
    RpcError::invalid_params(match why {
        Unopened::UnknownKey(_) => {
            "`cursor` was sealed with a secret key that this server does not have any more; begin \
             without it"
        }
        Unopened::Changed => NOT_OF_LIST,
    })
}

/// The cursor is of another list, filter or realm, or was changed.
fn bad_cursor() -> Failure {
    Refusal::new(RefusalCode::BadCursor, "`cursor` is not of this list and filter")
        .hint("use `nextCursor` of the page before, as it is, with the same filter")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::contracts::{AskFilter, SessionFilter};
    use kernel::values::ids::SessionId;

    fn cursors() -> Cursors {
        Cursors::new([7; 32])
    }

    fn caller(realm: &str) -> Caller {
        Caller::new(realm, "ann")
    }

    fn purpose() -> Purpose {
        Purpose::of(&caller("default"), "/api/v1/sessions")
    }

    #[test]
    fn a_cursor_opens_as_it_was_sealed() {
        let long = "x".repeat(1_000);
        for place in ["", "1", "42", "12345678901", "123456789012", "2a-1", "math::add", &long] {
            let text = cursors().seal(&purpose(), place);
            assert_eq!(cursors().open(&purpose(), &text).as_deref(), Ok(place), "{text}");
            assert!(
                text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)),
                "{text}"
            );
        }
        assert_eq!(cursors().open(&purpose(), &cursors().seal(&purpose(), "é\0")).unwrap(), "é\0");
    }

    #[test]
    fn cursors_that_clients_hold_stay_good() {
        let feed = Purpose::feed(&caller("default"));
        for (place, text) in [
            ("2a-0", "wAym_7Vj3evPdSe8yBe85VxYWIZdsvEgQjUU8baB2"),
            ("2a-1", "wAym_7VgKLx8KPOkDrTrwK_vmXF07EeJFObRPYavf"),
        ] {
            assert_eq!(cursors().seal(&feed, place), text);
            let replaced = Cursors::new(Keyring::new([9; 32]).with_older([7; 32]));
            assert_eq!(cursors().open(&feed, text).as_deref(), Ok(place));
            assert_eq!(replaced.open(&feed, text).as_deref(), Ok(place));
            let anew = replaced.seal(&feed, place);
            assert_ne!(anew, text, "the new secret seals");
            assert_eq!(Cursors::new([9; 32]).open(&feed, &anew).as_deref(), Ok(place));
        }
    }

    #[test]
    fn a_cursor_of_a_secret_that_is_gone_is_refused_as_such() {
        let sent = || cursors().seal(&purpose(), "42");
        let other = Cursors::new([9; 32]);
        let refused = other.start(&purpose(), Some(sent())).unwrap_err();
        assert_eq!(refused.code(), "bad_cursor");
        let why = other.open(&purpose(), &sent()).unwrap_err();
        assert!(matches!(why, Unopened::UnknownKey(_)), "{why}");
        let told = refused_rpc(why).message;
        assert!(told.contains("secret key that this server does not have"), "{told}");
        assert_eq!(refused_rpc(Unopened::Changed).message, NOT_OF_LIST);
    }

    #[test]
    fn no_row_number_can_be_read_from_a_cursor() {
        let texts: Vec<String> =
            (1..=200_u64).map(|row| cursors().seal(&purpose(), &row.to_string())).collect();
        assert!(texts.iter().all(|text| text.len() == texts[0].len()), "of one length");
        for (row, pair) in (1_u64..).zip(texts.windows(2)) {
            let like = pair[0].bytes().zip(pair[1].bytes()).skip(8).filter(|(a, b)| a == b).count();
            assert!(like < 10, "{pair:?}: one after the other look alike");
            let bytes = URL_SAFE_NO_PAD.decode(&pair[0][1..]).unwrap();
            let digits = row.to_string();
            let shown = bytes.windows(digits.len()).any(|part| part == digits.as_bytes());
            assert!(!shown || digits.len() == 1, "row {row} in {}", pair[0]);
        }
        let mut sorted = texts.clone();
        sorted.sort();
        assert_ne!(sorted, texts, "their order tells nothing");
    }

    #[test]
    fn no_byte_of_a_cursor_can_be_changed() {
        let cursors = cursors();
        let of = purpose();
        let text = cursors.seal(&of, "42");
        for index in 1..text.len() {
            for other in ['A', 'B', '_'] {
                let mut changed: Vec<char> = text.chars().collect();
                if changed[index] == other {
                    continue;
                }
                changed[index] = other;
                let changed: String = changed.into_iter().collect();
                assert!(cursors.open(&of, &changed).is_err(), "{changed}");
            }
        }
        assert!(Cursors::new([8; 32]).open(&of, &text).is_err());
    }

    #[test]
    fn a_cursor_is_good_for_one_list_filter_and_realm() {
        let cursors = cursors();
        let ann = caller("default");
        let waiting = SessionFilter { parked: true, ..SessionFilter::default() };
        let key = SessionRef::Key { key: "a".into(), space: None };
        let purposes = [
            purpose(),
            Purpose::of(&caller("other"), "/api/v1/sessions"),
            Purpose::of(&caller("defaul"), "t/api/v1/sessions"),
            Purpose::of(&ann, "/api/v1/asks"),
            Purpose::of(&ann, "/api/v1/asks").filtered(&AskFilter::default()),
            purpose().filtered(&SessionFilter::default()),
            purpose().filtered(&waiting),
            Purpose::feed(&ann),
            Purpose::history(&ann, &SessionRef::Id(SessionId(1))),
            Purpose::history(&ann, &SessionRef::Id(SessionId(2))),
            Purpose::history(&ann, &key),
        ];
        for (index, of) in purposes.iter().enumerate() {
            let text = cursors.seal(of, "42");
            for (other, at) in purposes.iter().enumerate() {
                let expected = (index == other).then_some("42");
                assert_eq!(cursors.open(at, &text).ok().as_deref(), expected, "{of:?} at {at:?}");
            }
            let refused = cursors.start(&purposes[(index + 1) % purposes.len()], Some(text));
            assert_eq!(refused.unwrap_err().code(), "bad_cursor");
        }
    }

    #[test]
    fn an_unsealed_cursor_is_refused() {
        for plain in ["", "42", "2a-1", "desk", "wide::plan", "w", "what-a-long-name-for-a-plan/x"]
        {
            let opened = cursors().open(&purpose(), plain);
            assert_eq!(opened, Err(Unopened::Changed), "{plain}");
        }
    }
}
