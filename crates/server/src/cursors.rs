//! Places as clients carry them: cursors of lists, ids of the feed's events, places of sinks. The
//! store counts the rows of all realms together, so a number would tell of others. What goes out is
//! sealed with the server's secret and good for one list, filter and realm. Engine and stores know
//! nothing of it.
//!
//! The same place gives the same text: a client can compare two ids of the feed, and a restart
//! changes none. So the seal takes no random bytes. A tag over purpose and place is the nonce, and
//! the place is masked with what the tag gives (a synthetic initialisation vector, RFC 5297, with
//! HMAC-SHA256 for both). That costs two hashes and 12 bytes.

use crate::error::Failure;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::refusal::{Refusal, RefusalCode};
use kernel::call::Caller;
use kernel::contracts::SessionRef;
use outbound::seal::Keyring;
use ring::hmac;
use std::fmt::Debug;
use std::hint::black_box;

/// The first character: how the rest is sealed. No number and no hexadecimal text begins with it.
const FORM: char = 'w';
/// Too many for anybody to guess one.
const TAG_BYTES: usize = 12;
/// Places are filled up to whole blocks: how long a text is does not tell how large its number is.
const BLOCK_BYTES: usize = 12;
/// What stands between a place and the zeros that fill it up.
const FILL: u8 = 0x80;
/// How many bytes one hash masks.
const MASK_BYTES: usize = 32;

/// What JSON-RPC says of a cursor that does not open.
pub(crate) const NOT_OF_LIST: &str =
    "`cursor` is not one of this list; use `nextCursor` of the page before, as it is";

/// Seals places and opens them.
#[derive(Clone)]
pub(crate) struct Cursors {
    tags: hmac::Key,
    masks: hmac::Key,
}

/// What a place is good for: one list of one realm, under one filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Purpose(Vec<u8>);

impl Purpose {
    /// A list of the caller's realm, by its route.
    pub(crate) fn of(caller: &Caller, list: &str) -> Self {
        Self(Vec::new()).with(caller.realm.as_str()).with(list)
    }

    /// The feed of the caller's realm.
    pub(crate) fn feed(caller: &Caller) -> Self {
        Self::of(caller, "/api/v1/events")
    }

    /// The history of a session, as it was named.
    pub(crate) fn history(caller: &Caller, session: &SessionRef) -> Self {
        Self::of(caller, "/api/v1/sessions/{id}/history").filtered(session)
    }

    /// The same under this filter. Written as it debugs, so that no member of it is forgotten.
    #[must_use]
    pub(crate) fn filtered(self, filter: &impl Debug) -> Self {
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
    /// With the server's secret. Places that another one sealed are gone: a client reads the list
    /// from its beginning then.
    pub(crate) fn new(keys: impl Into<Keyring>) -> Self {
        let keys = keys.into();
        let (tags, masks) = (b"waypost cursor tag", b"waypost cursor mask");
        Self { tags: keys.derived(tags), masks: keys.derived(masks) }
    }

    /// Where the page begins that a client asks for; none for the first one.
    pub(crate) fn start(
        &self,
        of: &Purpose,
        sent: Option<String>,
    ) -> Result<Option<String>, Failure> {
        let Some(sent) = sent else { return Ok(None) };
        self.open(of, &sent).map(Some).ok_or_else(bad_cursor)
    }

    /// Where the next page begins, for a client.
    pub(crate) fn next(&self, of: &Purpose, place: Option<String>) -> Option<String> {
        place.map(|place| self.seal(of, &place))
    }

    /// A place as a text for clients.
    pub(crate) fn seal(&self, of: &Purpose, place: &str) -> String {
        let mut masked = place.as_bytes().to_vec();
        masked.push(FILL);
        masked.resize(masked.len().next_multiple_of(BLOCK_BYTES), 0);
        let tag = self.tag(of, &masked);
        self.mask(&tag, &mut masked);
        let mut bytes = tag.to_vec();
        bytes.append(&mut masked);
        format!("{FORM}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The place that a client sent, if it is of this purpose.
    pub(crate) fn open(&self, of: &Purpose, sent: &str) -> Option<String> {
        self.open_or(of, sent, |old| Some(old.to_owned()))
    }

    /// The same, where `old` reads what 0.1.0 gave out in this place.
    pub(crate) fn open_or(
        &self,
        of: &Purpose,
        sent: &str,
        old: impl FnOnce(&str) -> Option<String>,
    ) -> Option<String> {
        match sealed(sent) {
            Some(bytes) => self.unsealed(of, &bytes),
            None if self.takes_old() => old(sent),
            None => None,
        }
    }

    /// Whether places are taken as 0.1.0 gave them out: in clear, and bound to nothing. Everybody
    /// who reaches this server may see all of it; a server with several realms must not take them.
    fn takes_old(&self) -> bool {
        true
    }

    fn unsealed(&self, of: &Purpose, bytes: &[u8]) -> Option<String> {
        let (tag, masked) = bytes.split_first_chunk::<TAG_BYTES>()?;
        let mut place = masked.to_vec();
        self.mask(tag, &mut place);
        if !is_same(tag, &self.tag(of, &place)) {
            return None;
        }
        // The zeros go, and `FILL` before them.
        while place.pop()? == 0 {}
        String::from_utf8(place).ok()
    }

    fn tag(&self, of: &Purpose, filled: &[u8]) -> [u8; TAG_BYTES] {
        let mut context = hmac::Context::with_key(&self.tags);
        context.update(&(of.0.len() as u64).to_be_bytes());
        context.update(&of.0);
        context.update(filled);
        let whole = context.sign();
        let whole: &[u8] = whole.as_ref();
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&whole[..TAG_BYTES]);
        tag
    }

    /// Masks a text; a second time gives the text again.
    fn mask(&self, tag: &[u8; TAG_BYTES], text: &mut [u8]) {
        for (number, part) in (0_u64..).zip(text.chunks_mut(MASK_BYTES)) {
            let mut context = hmac::Context::with_key(&self.masks);
            context.update(tag);
            context.update(&number.to_be_bytes());
            let whole = context.sign();
            let mask: &[u8] = whole.as_ref();
            for (byte, other) in part.iter_mut().zip(mask) {
                *byte ^= other;
            }
        }
    }
}

/// The bytes of a text that has the form of a sealed place. One that is of another form, such as a
/// name that begins with the same letter, is of 0.1.0 or of nobody.
fn sealed(sent: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(sent.strip_prefix(FORM)?).ok()?;
    let masked = bytes.len().checked_sub(TAG_BYTES)?;
    (masked > 0 && masked.is_multiple_of(BLOCK_BYTES)).then_some(bytes)
}

/// Compares all of it, however early it differs.
fn is_same(one: &[u8; TAG_BYTES], other: &[u8; TAG_BYTES]) -> bool {
    let pairs = one.iter().zip(other);
    black_box(pairs.fold(0_u8, |seen, (left, right)| black_box(seen | (left ^ right)))) == 0
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
    use kernel::ids::SessionId;

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
    fn a_place_opens_as_it_was_sealed() {
        let long = "x".repeat(1_000);
        for place in ["", "1", "42", "12345678901", "123456789012", "2a-1", "math::add", &long] {
            let text = cursors().seal(&purpose(), place);
            assert_eq!(cursors().open(&purpose(), &text).as_deref(), Some(place), "{text}");
            assert!(
                text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)),
                "{text}"
            );
        }
        assert_eq!(cursors().open(&purpose(), &cursors().seal(&purpose(), "é\0")).unwrap(), "é\0");
    }

    #[test]
    fn places_that_clients_hold_stay_good() {
        let feed = Purpose::feed(&caller("default"));
        for (place, text) in [
            ("2a-0", "wj72t3RImyMcGv-pKLNbDZWnEIMBKo4-E"),
            ("2a-1", "wTMJASrEQXKTPjcw9QB0NAH-ZxhgL2k-K"),
        ] {
            assert_eq!(cursors().seal(&feed, place), text);
        }
    }

    #[test]
    fn no_number_can_be_read() {
        let texts: Vec<String> =
            (1..=200_u64).map(|row| cursors().seal(&purpose(), &row.to_string())).collect();
        assert!(texts.iter().all(|text| text.len() == texts[0].len()), "of one length");
        for (row, pair) in (1_u64..).zip(texts.windows(2)) {
            let like = pair[0].bytes().zip(pair[1].bytes()).skip(1).filter(|(a, b)| a == b).count();
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
    fn no_byte_of_it_can_be_changed() {
        let (cursors, of) = (cursors(), purpose());
        let text = cursors.seal(&of, "42");
        for index in 1..text.len() {
            for other in ['A', 'B', '_'] {
                let mut changed: Vec<char> = text.chars().collect();
                if changed[index] == other {
                    continue;
                }
                changed[index] = other;
                let changed: String = changed.into_iter().collect();
                assert_eq!(cursors.open(&of, &changed), None, "{changed}");
            }
        }
        assert_eq!(Cursors::new([8; 32]).open(&of, &text), None);
    }

    #[test]
    fn it_is_good_for_one_list_filter_and_realm() {
        let (cursors, ann) = (cursors(), caller("default"));
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
                assert_eq!(cursors.open(at, &text).as_deref(), expected, "{of:?} at {at:?}");
            }
            let refused = cursors.start(&purposes[(index + 1) % purposes.len()], Some(text));
            assert_eq!(refused.unwrap_err().code(), "bad_cursor");
        }
    }

    #[test]
    fn places_of_the_release_before_are_read_as_they_are() {
        for old in ["", "42", "2a-1", "desk", "wide::plan", "w", "what-a-long-name-for-one-plan/x"]
        {
            assert_eq!(cursors().open(&purpose(), old).as_deref(), Some(old));
        }
        let read = |old: &str| old.strip_prefix("tools:").map(str::to_owned);
        let opened = |sent: &str| cursors().open_or(&purpose(), sent, read);
        assert_eq!(opened("tools:a").as_deref(), Some("a"));
        assert_eq!(opened("nope"), None);
        assert_eq!(opened(&cursors().seal(&purpose(), "b")).as_deref(), Some("b"));
    }
}
