//! Requests under way, and the bytes of answers that nobody has taken yet. A request is under way
//! from its beginning until the last of its answer was sent or given up. So a client that asks and
//! does not read keeps only its own share of permits and of memory. Event streams have limits of
//! their own and count by their unsent bytes alone.

use crate::problem::{Failure, Result};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use engine::refusal::Quota;
use engine::{Engine, Share, ShareExhausted, Shares};
use hyper::body::{Frame, SizeHint};
use identity::failures::counted;
use kernel::identity::reads_for::ReadsFor;
use kernel::identity::shares::SharedLimit;
use kernel::tool::call::Caller;
use kernel::values::ids::RealmId;
use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Which part of all unsent bytes is for those who show no credential, all of them together.
const STRANGERS_PART: usize = 8;
/// Which part of that is for those of one address: who reads nothing keeps no other from it.
const ADDRESS_PART: usize = 4;
/// Types of answers that are streams.
const STREAMS: [&str; 2] = ["text/event-stream", "application/grpc"];

/// All requests under way.
pub struct Underway {
    max: usize,
    permits: Arc<Semaphore>,
    shares: Shares,
    unsent: Arc<Unsent>,
}

/// Who is answered.
#[derive(Debug, Clone, Copy)]
pub enum Reader<'a> {
    Caller(&'a Caller),
    /// Someone who shows no credential, and comes from this address.
    Stranger(IpAddr),
}

impl<'a> Reader<'a> {
    /// A caller, or else who comes from this address.
    pub fn new(who: Option<&'a Caller>, from: IpAddr) -> Self {
        who.map_or(Self::Stranger(from), Self::Caller)
    }

    fn caller(self) -> Option<&'a Caller> {
        match self {
            Self::Caller(caller) => Some(caller),
            Self::Stranger(_) => None,
        }
    }
}

/// The permit of a request, among those of its caller and among all.
#[derive(Debug, Default)]
pub struct RequestPermit {
    _share: Share,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Underway {
    /// With the limits of this engine.
    pub fn new(engine: &Engine) -> Self {
        let limits = engine.limits();
        let unsent_shares = engine.shares(SharedLimit::UnsentBytes);
        Self {
            max: limits.requests_active_max,
            permits: Arc::new(Semaphore::new(limits.requests_active_max)),
            shares: engine.shares(SharedLimit::Requests),
            unsent: Arc::new(Unsent::new(limits.answers_bytes_max, unsent_shares)),
        }
    }

    /// A permit for a request of this caller, or why there is none. Who shows no credential only
    /// needs room for the answer.
    pub fn begin(&self, reader: Reader<'_>) -> Result<RequestPermit> {
        self.check_room(reader)?;
        let Some(caller) = reader.caller() else { return Ok(RequestPermit::default()) };
        let share = self.shares.try_take(caller).map_err(|full| beyond_share(&full))?;
        match self.permits.clone().try_acquire_owned() {
            Ok(permit) => Ok(RequestPermit { _share: share, _permit: Some(permit) }),
            Err(_) => Err(match self.shares.crowded(caller) {
                Some(full) => beyond_share(&full),
                None => too_many(format!("{} requests are under way already", self.max)).hint(
                    "send it again in a moment, or raise `requests_active_max` in `[limits]`",
                ),
            }),
        }
    }

    /// Refuses who has more answers waiting than it may.
    pub fn check_room(&self, reader: Reader<'_>) -> Result<()> {
        let parts = self.unsent.parts(reader);
        if self.unsent.has_room(&parts) {
            return Ok(());
        }
        if self.unsent.is_full() {
            let message = "the answers that wait to be read hold all bytes that they may have";
            return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "answers_busy", message)
                .hint("send it again in a moment, or raise `answers_bytes_max` in `[limits]`"));
        }
        let message = "the answers that this caller has not read hold all bytes that they may have";
        let failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "answers_unread", message)
            .hint("read the answers of the requests that are under way first");
        Err(match parts.first().filter(|_| reader.caller().is_some()) {
            Some((_, max)) => {
                let of = SharedLimit::UnsentBytes.name();
                let max = u64::try_from(*max).unwrap_or(u64::MAX);
                failure.quota(Quota { of, max, window_s: None })
            }
            None => failure,
        })
    }

    /// The same answer, which keeps its permit and counts until the last of it was sent.
    pub fn counted(&self, permit: RequestPermit, reader: Reader<'_>, answer: Response) -> Response {
        let exact = answer.body().size_hint().exact();
        if exact == Some(0) {
            return answer;
        }
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| STREAMS.iter().any(|one| kind.starts_with(one)));
        let parts = self.unsent.parts(reader).into_iter();
        let holders: Arc<[Holder]> = parts.map(|(holder, _)| holder).collect();
        let bytes = exact.and_then(|bytes| usize::try_from(bytes).ok());
        let permits = AnswerPermits {
            _permit: (!is_stream).then_some(permit),
            _whole: bytes.map(|bytes| self.unsent.hold(&holders, bytes)),
        };
        let each = bytes.is_none().then(|| (self.unsent.clone(), holders));
        let asker = reader.caller().map(ReadsFor::of);
        answer
            .map(|inner| Body::new(CountedBody { inner, permits: Arc::new(permits), each, asker }))
    }
}

fn too_many(message: String) -> Failure {
    Failure::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message)
}

fn beyond_share(full: &ShareExhausted) -> Failure {
    too_many(full.message()).hint(full.hint()).quota(full.quota())
}

/// Whose bytes they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Holder {
    Strangers,
    /// Those of one address; of IPv6, of one network.
    Strange(IpAddr),
    Realm(RealmId),
    /// A subject in a realm, and who really calls where that is not the subject.
    Caller(RealmId, Arc<str>, Option<Arc<str>>),
}

/// The bytes of answers that wait to be sent. What has begun to be answered is counted even beyond
/// the limit; nothing new is taken in until some of it was read.
struct Unsent {
    max: usize,
    shares: Shares,
    all: AtomicUsize,
    by_holder: Mutex<HashMap<Holder, usize>>,
}

impl Unsent {
    fn new(max: usize, shares: Shares) -> Self {
        Self { max, shares, all: AtomicUsize::new(0), by_holder: Mutex::default() }
    }

    /// As whose they count, and how many each may have; the caller's own first.
    fn parts(&self, reader: Reader<'_>) -> Vec<(Holder, usize)> {
        let Caller { realm, subject, actor, .. } = match reader {
            Reader::Caller(caller) => caller,
            Reader::Stranger(from) => {
                let max = self.max / STRANGERS_PART;
                let own = Holder::Strange(counted(from));
                return vec![(own, max.div_ceil(ADDRESS_PART)), (Holder::Strangers, max)];
            }
        };
        let Some(portion) = self.shares.portion(realm) else { return Vec::new() };
        let own = Holder::Caller(realm.clone(), subject.clone(), actor.clone());
        vec![(own, portion.caller), (Holder::Realm(realm.clone()), portion.realm)]
    }

    fn is_full(&self) -> bool {
        self.all.load(Ordering::Relaxed) >= self.max
    }

    /// Whether one more answer may wait, however large it is.
    fn has_room(&self, parts: &[(Holder, usize)]) -> bool {
        if self.is_full() || parts.is_empty() {
            return !self.is_full();
        }
        let used = self.used();
        parts.iter().all(|(holder, max)| used.get(holder).is_none_or(|used| used < max))
    }

    fn hold(self: &Arc<Self>, holders: &Arc<[Holder]>, bytes: usize) -> BytesPermit {
        self.all.fetch_add(bytes, Ordering::Relaxed);
        if !holders.is_empty() {
            let mut used = self.used();
            for holder in holders.iter() {
                *used.entry(holder.clone()).or_default() += bytes;
            }
        }
        BytesPermit { unsent: self.clone(), holders: holders.clone(), bytes }
    }

    fn used(&self) -> MutexGuard<'_, HashMap<Holder, usize>> {
        self.by_holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that are counted until this is dropped.
struct BytesPermit {
    unsent: Arc<Unsent>,
    holders: Arc<[Holder]>,
    bytes: usize,
}

impl Drop for BytesPermit {
    fn drop(&mut self) {
        self.unsent.all.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.holders.is_empty() {
            return;
        }
        let mut used = self.unsent.used();
        for holder in self.holders.iter() {
            let left = used.get(holder).map_or(0, |used| used.saturating_sub(self.bytes));
            match left {
                0 => used.remove(holder),
                left => used.insert(holder.clone(), left),
            };
        }
    }
}

/// What an answer keeps until the last of it was sent.
struct AnswerPermits {
    _permit: Option<RequestPermit>,
    _whole: Option<BytesPermit>,
}

/// The body of an answer. What was taken of it counts until it was sent: over HTTP/2 it waits in
/// the connection for the client to make room.
struct CountedBody {
    inner: Body,
    permits: Arc<AnswerPermits>,
    /// As whose each piece counts, where the size of all was not known.
    each: Option<(Arc<Unsent>, Arc<[Holder]>)>,
    /// For whom more of it is read.
    asker: Option<ReadsFor>,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let _entered = self.asker.as_ref().map(ReadsFor::enter);
        let frame = match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            other => return other,
        };
        let counted = frame.map_data(|bytes| {
            let piece = self.each.as_ref();
            let piece = piece.map(|(unsent, holders)| unsent.hold(holders, bytes.len()));
            Bytes::from_owner(CountedBytes { bytes, _held: piece, _permits: self.permits.clone() })
        });
        Poll::Ready(Some(Ok(counted)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Bytes with all that is free again once they are sent.
struct CountedBytes {
    bytes: Bytes,
    _held: Option<BytesPermit>,
    _permits: Arc<AnswerPermits>,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::identity::realm::{RealmSettings, Realms};
    use kernel::limits::Limits;
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    /// Room for so many bytes of two realms: half for each, and a quarter of that for each caller.
    fn unsent(max: usize) -> Arc<Unsent> {
        let limits = Arc::new(Limits { answers_bytes_max: max, ..Limits::default() });
        let realms = ["red", "blue"].map(|name| (RealmId::from(name), RealmSettings::default()));
        let realms = Arc::new(Realms(BTreeMap::from(realms)));
        let shares = Shares::new(SharedLimit::UnsentBytes, limits, Some(Arc::new(realms)));
        Arc::new(Unsent::new(max, shares))
    }

    fn reader(who: Option<&Caller>) -> Reader<'_> {
        Reader::new(who, IpAddr::from([192, 0, 2, 1]))
    }

    fn has_room(unsent: &Unsent, who: Option<&Caller>) -> bool {
        unsent.has_room(&unsent.parts(reader(who)))
    }

    fn hold(unsent: &Arc<Unsent>, who: Option<&Caller>, bytes: usize) -> BytesPermit {
        held_by(unsent, reader(who), bytes)
    }

    fn held_by(unsent: &Arc<Unsent>, reader: Reader<'_>, bytes: usize) -> BytesPermit {
        let holders = unsent.parts(reader).into_iter().map(|(holder, _)| holder).collect();
        unsent.hold(&holders, bytes)
    }

    #[test]
    fn unread_answers_use_up_only_their_callers_share() {
        let unsent = unsent(800);
        let ann = Caller::new("red", "ann");
        let bob = Caller::new("red", "bob");
        let first = hold(&unsent, Some(&ann), 60);
        assert!(has_room(&unsent, Some(&ann)), "40 of 100 are left");
        let second = hold(&unsent, Some(&ann), 250);
        assert!(!has_room(&unsent, Some(&ann)));
        assert!(has_room(&unsent, Some(&bob)) && has_room(&unsent, None));
        let through = Caller { actor: Some("bot".into()), ..ann.clone() };
        assert!(has_room(&unsent, Some(&through)), "who acts as another has its own");
        let third = hold(&unsent, Some(&bob), 90);
        assert!(!has_room(&unsent, Some(&through)), "the realm's 400 are used up");
        assert!(has_room(&unsent, Some(&Caller::new("blue", "ann"))));
        let strangers = hold(&unsent, None, 100);
        assert!(!has_room(&unsent, None));
        drop((second, strangers));
        assert!(has_room(&unsent, Some(&ann)) && has_room(&unsent, None));
        drop((first, third));
        assert!(unsent.used().is_empty() && unsent.all.load(Ordering::Relaxed) == 0);
    }

    #[test]
    fn strangers_of_one_address_use_up_their_own_share_and_not_that_of_others() {
        let unsent = unsent(800);
        let from = |text: &str| Reader::Stranger(text.parse().unwrap());
        let has_room = |text: &str| unsent.has_room(&unsent.parts(from(text)));
        let first = held_by(&unsent, from("2001:db8:0:1::1"), 24);
        assert!(has_room("2001:db8:0:1::1"), "1 of 25 is left");
        let second = held_by(&unsent, from("2001:db8:0:1::2"), 1);
        assert!(!has_room("2001:db8:0:1::1"), "a network is one address");
        assert!(has_room("2001:db8:0:2::1") && has_room("192.0.2.1"));
        let third = held_by(&unsent, from("::ffff:192.0.2.1"), 75);
        assert!(!has_room("192.0.2.1") && !has_room("192.0.2.2"), "all 100 are used up");
        drop(third);
        assert!(has_room("192.0.2.1") && !has_room("2001:db8:0:1::1"));
        drop((first, second));
        assert!(unsent.used().is_empty(), "an address is known while it has something to read");
    }

    #[test]
    fn no_answer_begins_when_all_bytes_are_used() {
        let unsent = unsent(800);
        let all = hold(&unsent, Some(&Caller::new("red", "ann")), 800);
        let other = Caller::new("blue", "bob");
        assert!(!has_room(&unsent, Some(&other)) && unsent.is_full());
        drop(all);
        assert!(has_room(&unsent, Some(&other)));
    }

    #[tokio::test]
    async fn a_frame_of_a_body_counts_until_it_is_dropped() {
        let unsent = unsent(800);
        let who = Caller::new("red", "ann");
        let holders: Arc<[Holder]> =
            unsent.parts(reader(Some(&who))).into_iter().map(|(one, _)| one).collect();
        let whole = Some(unsent.hold(&holders, 5));
        let permits = Arc::new(AnswerPermits { _permit: None, _whole: whole });
        let mut body = CountedBody { inner: Body::from("hello"), permits, each: None, asker: None };
        let taken = http_body_util::BodyExt::frame(&mut body).await.unwrap().unwrap();
        drop(body);
        assert_eq!(unsent.all.load(Ordering::Relaxed), 5, "it is in the buffer of a connection");
        assert_eq!(taken.into_data().unwrap(), "hello");
        assert_eq!(unsent.all.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_body_reads_on_behalf_of_its_caller() {
        let asker = Some(ReadsFor::of(&Caller::new("red", "ann")));
        let reading = async { Ok::<_, Infallible>(format!("{:?}", ReadsFor::current())) };
        let inner = Body::from_stream(futures::stream::once(reading));
        let permits = Arc::new(AnswerPermits { _permit: None, _whole: None });
        let body = CountedBody { inner, permits, each: None, asker: asker.clone() };
        let read = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
        assert_eq!(read, format!("{asker:?}"));
    }
}
