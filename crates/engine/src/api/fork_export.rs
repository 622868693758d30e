//! Forks and exports. Both read a whole journal in slices, so that memory does not grow with the
//! length of the journal.

use crate::catalog::roster::starting;
use crate::command::{Command, Slice};
use crate::handles::Sessions;
use crate::refusal::{Quota, Refusal, RefusalCode, Result};
use crate::shared::Shared;
use crate::shares::{Share, ShareExhausted};
use futures::stream::{BoxStream, StreamExt, try_unfold};
use kernel::contracts::{HistoryFilter, ListPage, PageRequest, SessionRef, StoreError};
use kernel::event::{self, Event};
use kernel::identity::shares::SharedLimit;
use kernel::journal::fork::{Fork, ForkScan};
use kernel::journal::projection::SessionRow;
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::ids::{PlanId, RunId, SessionId, SessionKey};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// How many events are read at once. A reader of the store is busy with them for that long, and a
/// few of its rows are read again for the next ones.
const EVENTS_PER_READ: usize = 500;
/// How many slices of a copy wait to be written.
const SLICES_MAX: usize = 2;

/// The text of an export, piece by piece. One that ends with a refusal is not whole.
pub type ExportStream = BoxStream<'static, Result<String>>;

impl Sessions<'_> {
    /// Makes a new session that begins as a copy of another, up to one of its events (default: the
    /// last). It continues by itself from there if it has something to do.
    pub async fn fork(
        self,
        caller: &Caller,
        session: &SessionRef,
        at: Option<u64>,
    ) -> Result<SessionRow> {
        let row = self.get_for(caller, Act::Fork, session).await?;
        self.permit_plans(caller, row.plan.iter())?;
        let at = at.unwrap_or(row.seq);
        if at == 0 || at > row.seq {
            let message = format!("session `{}` has events up to {}", row.key.id, row.seq);
            return Err(Refusal::new(RefusalCode::BadForkPoint, message)
                .hint("`at` is the sequence of one of its events; leave it out for the last"));
        }
        let id = SessionId(self.shared.id_bits());
        let key = caller.key(row.key.space.clone(), id.to_string());
        let (fork, reading) = loop {
            let mut reading = JournalReader::new(self.shared, &row.key, at);
            let following = ForkScan::new(id, key.clone(), caller.clone());
            match self.weighed(&mut reading, following).await {
                Ok(fork) => break (fork, reading),
                // Retention took the beginning while it was read: from the new one on.
                Err(ReadFailure::Trimmed(_)) => {}
                Err(ReadFailure::Refused(refusal)) => return Err(refusal),
            }
        };
        // At an earlier event the session may have been about other plans.
        self.permit_plans(caller, fork.plans())?;
        let (slices, events) = mpsc::channel(SLICES_MAX);
        // Not with the request: a copy that was begun is finished if its client goes away.
        self.shared.spawn.task("fork", Box::pin(copy(fork, reading, slices)));
        let by = Box::new(caller.clone());
        self.shared.ask(&key, |answer| Command::Adopt { id, events, by, answer }).await
    }

    /// The copy's runs act for its maker, who must be allowed to start them.
    fn permit_plans<'p>(
        self,
        caller: &Caller,
        mut plans: impl Iterator<Item = &'p PlanId>,
    ) -> Result<()> {
        plans.try_for_each(|plan| {
            let (act, resource) = starting(plan);
            self.shared.gate.permit(caller, act, resource)
        })
    }

    /// A fork that is ready to be copied: its source was read twice.
    async fn weighed(
        self,
        reading: &mut JournalReader,
        mut following: ForkScan,
    ) -> Result<Fork, ReadFailure> {
        while let Some(events) = reading.events().await? {
            for event in &events {
                following.see(event, |_| RunId(self.shared.id_bits()));
            }
        }
        let mut fork = Fork::new(following, self.shared.clock.now());
        reading.rewind();
        while let Some(events) = reading.events().await? {
            events.iter().for_each(|event| fork.weigh(event));
        }
        reading.rewind();
        Ok(fork)
    }

    /// The whole session as JSON: its journal, its history newest first, and its row.
    pub async fn export(self, caller: &Caller, session: &SessionRef) -> Result<ExportStream> {
        let row = self.get_for(caller, Act::Export, session).await?;
        let place = self.export_place(caller)?;
        let mut reading = JournalReader::new(self.shared, &row.key, row.seq);
        // Whatever refuses it does so now, before anything is sent.
        let first = reading.texts().await.map_err(ReadFailure::refusal)?;
        let export = Export { row, reading, first, at: ExportStep::Start, _place: place };
        Ok(try_unfold(export, Export::piece).boxed())
    }

    /// Room for one more export of this caller.
    fn export_place(self, caller: &Caller) -> Result<ExportPlace> {
        let refused = |quota: Quota, message: String, hint: &str| {
            let code = RefusalCode::ExportsActiveMax(Box::new(quota));
            Refusal::new(code, message).hint(hint)
        };
        let of_share = |full: ShareExhausted| refused(full.quota(), full.message(), full.hint());
        let shares = &self.shared.export_shares;
        let share = shares.try_take(caller).map_err(of_share)?;
        match self.shared.exports.clone().try_acquire_owned() {
            Ok(place) => Ok(ExportPlace { _share: share, _place: place }),
            Err(_) => Err(shares.crowded(caller).map_or_else(
                || {
                    let max = self.shared.limits.exports_active_max;
                    let quota = Quota {
                        of: SharedLimit::Exports.name(),
                        max: u64::try_from(max).unwrap_or(u64::MAX),
                        window_s: None,
                    };
                    let message = format!("{max} sessions are exported already");
                    let hint =
                        "send it again in a moment, or raise `exports_active_max` in [limits]";
                    refused(quota, message, hint)
                },
                of_share,
            )),
        }
    }
}

/// Reads the source a last time and hands on its copy.
async fn copy(mut fork: Fork, mut reading: JournalReader, slices: mpsc::Sender<Result<Slice>>) {
    loop {
        let (slice, is_over) = match reading.events().await {
            Ok(read) => {
                let is_last = read.is_none() || reading.is_over();
                let read = read.iter().flatten();
                let mut events: Vec<Event> = read.flat_map(|event| fork.copy(event)).collect();
                if is_last {
                    events.extend(fork.finish());
                }
                (Ok(Slice { events, is_last }), is_last)
            }
            Err(unread) => (Err(unread.refusal()), true),
        };
        // An error means that the driver wants no more of it.
        if slices.send(slice).await.is_err() || is_over {
            return;
        }
    }
}

/// Why a journal cannot be read on.
enum ReadFailure {
    /// Retention took its beginning away while it was read.
    Trimmed(StoreError),
    /// It cannot be read, or has too many events.
    Refused(Refusal),
}

impl ReadFailure {
    fn refusal(self) -> Refusal {
        match self {
            ReadFailure::Trimmed(error) => error.into(),
            ReadFailure::Refused(refusal) => refusal,
        }
    }
}

/// A journal that is read from its oldest event on, up to one of its events.
struct JournalReader {
    shared: Arc<Shared>,
    key: SessionKey,
    /// The oldest event, once it was read.
    oldest: Option<u64>,
    after: u64,
    until: u64,
}

impl JournalReader {
    fn new(shared: &Arc<Shared>, key: &SessionKey, until: u64) -> Self {
        Self { shared: shared.clone(), key: key.clone(), oldest: None, after: 0, until }
    }

    /// Reads the same events from the beginning on.
    fn rewind(&mut self) {
        self.after = 0;
    }

    /// Whether the last event was read.
    fn is_over(&self) -> bool {
        self.after >= self.until
    }

    /// The next events as texts; none after the last.
    async fn texts(&mut self) -> Result<Option<Vec<String>>, ReadFailure> {
        if self.is_over() {
            return Ok(None);
        }
        let read = self.shared.store.events(&self.key, self.after, EVENTS_PER_READ).await;
        let read = read.map_err(|error| match error {
            StoreError::Gone(_) => ReadFailure::Trimmed(error),
            other => ReadFailure::Refused(other.into()),
        })?;
        let (Some((oldest, _)), Some((last, _))) = (read.first(), read.last()) else {
            return Ok(None);
        };
        if self.after == 0 {
            if self.oldest.is_some_and(|before| before != *oldest) {
                return Err(ReadFailure::Trimmed(StoreError::Gone(*oldest)));
            }
            self.within(*oldest).map_err(ReadFailure::Refused)?;
            self.oldest = Some(*oldest);
        }
        self.after = *last;
        let wanted = read.into_iter().filter(|(seq, _)| *seq <= self.until);
        Ok(Some(wanted.map(|(_, text)| text).collect()))
    }

    /// The next events; none after the last.
    async fn events(&mut self) -> Result<Option<Vec<Event>>, ReadFailure> {
        let Some(texts) = self.texts().await? else { return Ok(None) };
        let read = event::read(&format!("[{}]", texts.join(",")));
        read.map(Some).map_err(|error| ReadFailure::Refused(Refusal::unreadable(error.to_string())))
    }

    /// Whether the events from the oldest on are there, and not too many.
    fn within(&self, oldest: u64) -> Result<()> {
        let id = &self.key.id;
        let until = self.until;
        if until < oldest {
            let message = format!("session `{id}` has no events before {oldest} any more");
            return Err(Refusal::new(RefusalCode::ForkPointGone, message)
                .hint(format!("the oldest event that it can be forked at is {oldest}")));
        }
        let max = self.shared.limits.export_events_max;
        let count = until - oldest + 1;
        if usize::try_from(count).is_ok_and(|count| count <= max) {
            return Ok(());
        }
        let message = format!("session `{id}` has {count} events, more than {max}");
        Err(Refusal::new(RefusalCode::ExportEventsMax, message)
            .hint("read its events instead: as many as there are can be followed"))
    }
}

/// The place of an export under way, among those of its caller and among all.
struct ExportPlace {
    _share: Share,
    _place: OwnedSemaphorePermit,
}

/// An export on its way. It reads only as fast as its text is taken, and ends when it is dropped.
struct Export {
    row: SessionRow,
    reading: JournalReader,
    /// Events that were read and not given out yet.
    first: Option<Vec<String>>,
    at: ExportStep,
    _place: ExportPlace,
}

/// What of an export comes next.
enum ExportStep {
    Start,
    /// More events.
    Events,
    /// The history: the page after this cursor.
    History(Option<String>),
    End,
}

impl Export {
    /// The next piece of its text; none after the last. Events are written as they are stored: what
    /// this release cannot read is exported all the same.
    async fn piece(mut self) -> Result<Option<(String, Self)>> {
        let (piece, at) = match std::mem::replace(&mut self.at, ExportStep::End) {
            ExportStep::Start => {
                let events = self.first.take().unwrap_or_default();
                (format!("{{\"events\":[{}", events.join(",")), ExportStep::Events)
            }
            ExportStep::Events => match self.reading.texts().await.map_err(ReadFailure::refusal)? {
                Some(events) if events.is_empty() => (String::new(), ExportStep::Events),
                Some(events) => (format!(",{}", events.join(",")), ExportStep::Events),
                None => ("],\"history\":[".to_owned(), ExportStep::History(None)),
            },
            ExportStep::History(cursor) => self.history(cursor).await?,
            ExportStep::End => return Ok(None),
        };
        self.at = at;
        Ok(Some((piece, self)))
    }

    async fn history(&self, cursor: Option<String>) -> Result<(String, ExportStep)> {
        let shared = &self.reading.shared;
        let is_first = cursor.is_none();
        let page = PageRequest { cursor, limit: shared.limits.page_items_max };
        let paged = shared.store.history(&self.row.key, HistoryFilter::default(), &page).await;
        let paged = match paged {
            // Its values stand in events that this release cannot read.
            Err(StoreError::Unreadable(_)) => ListPage { items: Vec::new(), next_cursor: None },
            paged => paged?,
        };
        let items = paged.items.iter().map(|item| item.entry.datum().to_value().to_string());
        let items = items.collect::<Vec<_>>().join(",");
        let comma = if is_first || items.is_empty() { "" } else { "," };
        Ok(match paged.next_cursor {
            Some(cursor) => (format!("{comma}{items}"), ExportStep::History(Some(cursor))),
            None => (format!("{comma}{items}],\"session\":{}}}", json!(self.row)), ExportStep::End),
        })
    }
}
