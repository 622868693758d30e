//! A sink that does as a test says, and remembers what it was given.

use futures::future::BoxFuture;
use kernel::contracts::cloud::CloudEvent;
use kernel::contracts::sink::{DeliveryReceipt, EventSink, SinkError};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// What a sink does with a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    Takes,
    /// It fails, for now.
    Fails,
    /// It says that it is gone.
    Leaves,
    /// It does not want this event.
    Declines,
    /// It says nothing until the test lets it.
    Hangs,
}

/// Says what is done with a delivery whose first event is this one, at its so many-th try.
pub type Script = Box<dyn Fn(&CloudEvent, usize) -> Does + Send + Sync>;

/// A scripted sink.
pub struct Scripted {
    pub script: Script,
    pub lanes: usize,
    pub batch: usize,
    /// Every delivery that was tried.
    pub tried: Mutex<Vec<Vec<CloudEvent>>>,
    /// What it took, in order.
    pub taken: Mutex<Vec<CloudEvent>>,
    /// What lets hanging deliveries go on: then they are taken.
    pub let_go: Semaphore,
}

impl Scripted {
    /// One that does so; 4 lanes, one event per delivery.
    pub fn new(script: impl Fn(&CloudEvent, usize) -> Does + Send + Sync + 'static) -> Self {
        Self {
            script: Box::new(script),
            lanes: 4,
            batch: 1,
            tried: Mutex::default(),
            taken: Mutex::default(),
            let_go: Semaphore::new(0),
        }
    }

    /// One that takes everything.
    pub fn taking() -> Arc<Self> {
        Arc::new(Self::new(|_, _| Does::Takes))
    }

    /// The ids of what it took.
    pub fn ids(&self) -> Vec<String> {
        self.taken.lock().unwrap().iter().map(|event| event.id.clone()).collect()
    }

    /// The types of what it took.
    pub fn kinds(&self) -> Vec<String> {
        self.taken.lock().unwrap().iter().map(|event| event.kind.clone()).collect()
    }

    /// How many deliveries were tried.
    pub fn tries(&self) -> usize {
        self.tried.lock().unwrap().len()
    }
}

impl EventSink for Scripted {
    fn kind(&self) -> &str {
        "scripted"
    }

    fn deliver<'a>(
        &'a self,
        events: &'a [CloudEvent],
    ) -> BoxFuture<'a, Result<DeliveryReceipt, SinkError>> {
        Box::pin(async move {
            let first = &events[0];
            let does = {
                let mut tried = self.tried.lock().unwrap();
                tried.push(events.to_vec());
                let times = tried.iter().filter(|batch| batch[0].id == first.id).count();
                (self.script)(first, times)
            };
            let error = |status| SinkError {
                status: Some(status),
                is_gone: status == 410,
                is_refusal: status == 400,
                ..SinkError::new("as told".to_owned())
            };
            match does {
                Does::Fails => return Err(error(500)),
                Does::Leaves => return Err(error(410)),
                Does::Declines => return Err(error(400)),
                Does::Hangs => self.let_go.acquire().await.unwrap().forget(),
                Does::Takes => {}
            }
            self.taken.lock().unwrap().extend_from_slice(events);
            Ok(DeliveryReceipt { status: Some(202) })
        })
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn batch_max(&self) -> usize {
        self.batch
    }
}
