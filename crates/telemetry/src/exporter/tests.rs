//! An exporter with a fake clock and a scripted endpoint.

use super::*;
use crate::wire::SendError;
use futures::executor::block_on;
use futures::future::join;
use std::collections::VecDeque;
use std::task::Waker;

/// Time that passes when a test says so.
#[derive(Default)]
struct Hands(Mutex<(i64, Vec<Waker>)>);

impl Hands {
    fn advance(&self, ms: i64) {
        let mut hands = self.0.lock().unwrap();
        hands.0 += ms;
        hands.1.drain(..).for_each(Waker::wake);
    }
}

struct HandClock(Arc<Hands>);

impl Clock for HandClock {
    fn now(&self) -> Millis {
        Millis(self.0.0.lock().unwrap().0)
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.now().0.unsigned_abs())
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        let hands = self.0.clone();
        Box::pin(poll_fn(move |context| {
            let mut hands = hands.0.lock().unwrap();
            if hands.0 >= then.0 {
                return Poll::Ready(());
            }
            hands.1.push(context.waker().clone());
            Poll::Pending
        }))
    }
}

/// Answers from a list, then takes everything; `None` never answers.
#[derive(Default)]
struct Place {
    answers: Mutex<VecDeque<Option<Result<u64, SendError>>>>,
    /// How many spans came with each post.
    posts: Mutex<Vec<usize>>,
}

struct ToPlace(Arc<Place>);

impl Wire for ToPlace {
    fn post(&self, body: Vec<u8>) -> BoxFuture<'_, Result<u64, SendError>> {
        let request = Request::decode(body.as_slice()).unwrap();
        let spans = request.resource_spans[0].scope_spans[0].spans.len();
        self.0.posts.lock().unwrap().push(spans);
        let answer = self.0.answers.lock().unwrap().pop_front();
        match answer.unwrap_or(Some(Ok(0))) {
            Some(answer) => Box::pin(async move { answer }),
            None => Box::pin(std::future::pending()),
        }
    }
}

const BATCH: Batch = Batch { delay_ms: 100, queue_max: 4, spans_max: 3, export_ms: 30_000 };
const STOP_MS: u64 = 1_000;

fn busy(wait_ms: Option<u64>) -> Option<Result<u64, SendError>> {
    Some(Err(SendError { why: "it answered 503".to_owned(), again: true, wait_ms }))
}

struct Scene {
    exporter: Exporter,
    place: Arc<Place>,
    hands: Arc<Hands>,
}

impl Scene {
    fn offer(&self, spans: usize) {
        (0..spans).for_each(|_| self.exporter.offer(Arc::new(Span::default())));
    }

    fn posts(&self) -> Vec<usize> {
        self.place.posts.lock().unwrap().clone()
    }

    /// Exported, dropped, failed.
    fn counts(&self) -> [u64; 3] {
        let Counts { exported, dropped, failed } = self.exporter.counts.as_ref();
        [exported, dropped, failed].map(|count| count.load(Ordering::Relaxed))
    }

    /// Lets the task do what it can.
    async fn settle(&self) {
        for _ in 0..20 {
            let mut yielded = false;
            poll_fn(|context| match std::mem::replace(&mut yielded, true) {
                true => Poll::Ready(()),
                false => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            })
            .await;
        }
    }
}

/// Plays a script beside the exporter's task, which ends with it.
fn play(
    answers: impl IntoIterator<Item = Option<Result<u64, SendError>>>,
    script: impl AsyncFnOnce(&Scene),
) {
    let place = Arc::new(Place::default());
    let hands = Arc::new(Hands::default());
    place.answers.lock().unwrap().extend(answers);
    let (exporter, task) = Exporter::new(SpanSender {
        name: "test",
        wire: Box::new(ToPlace(place.clone())),
        resource: Resource::default(),
        scope: Scope::default(),
        batch: BATCH,
        clock: Arc::new(HandClock(hands.clone())),
    });
    let scene = Scene { exporter, place, hands };
    let playing = async move {
        script(&scene).await;
        // The task ends when no one offers spans any more.
        drop(scene);
    };
    block_on(join(playing, task));
}

#[test]
fn spans_are_sent_in_batches() {
    play([], async |scene: &Scene| {
        scene.offer(2);
        scene.settle().await;
        assert_eq!(scene.posts(), Vec::<usize>::new(), "they wait for a third");
        scene.hands.advance(100);
        scene.settle().await;
        assert_eq!(scene.posts(), [2]);
        scene.offer(4);
        scene.settle().await;
        assert_eq!(scene.posts(), [2, 3], "a full batch goes at once");
        scene.exporter.stop(STOP_MS).await;
        assert_eq!(scene.posts(), [2, 3, 1], "the last ones go with the stop");
        assert_eq!(scene.counts(), [6, 0, 0]);
    });
}

#[test]
fn a_full_queue_drops_the_newest() {
    play([None], async |scene: &Scene| {
        scene.offer(3);
        scene.settle().await;
        assert_eq!(scene.posts(), [3], "nobody answers this one");
        scene.offer(9);
        assert_eq!(scene.counts(), [0, 5, 0], "four wait, five are dropped");
        scene.hands.advance(30_000);
        scene.settle().await;
        assert_eq!(scene.counts(), [3, 5, 3], "the first were given up, the next were taken");
    });
}

#[test]
fn transient_export_failures_are_retried_within_their_deadline() {
    let answers = [busy(None), busy(Some(5_000)), Some(Ok(1))];
    play(answers, async |scene: &Scene| {
        scene.offer(3);
        scene.settle().await;
        assert_eq!(scene.posts().len(), 1);
        scene.hands.advance(999);
        scene.settle().await;
        assert_eq!(scene.posts().len(), 1, "a second has to pass");
        scene.hands.advance(1);
        scene.settle().await;
        assert_eq!(scene.posts().len(), 2);
        scene.hands.advance(4_999);
        scene.settle().await;
        assert_eq!(scene.posts().len(), 2, "it said five seconds");
        scene.hands.advance(1);
        scene.settle().await;
        assert_eq!((scene.posts().len(), scene.counts()), (3, [2, 0, 1]), "one was not taken");
    });
}

#[test]
fn permanent_export_failures_drop_the_batch() {
    let refused = SendError { why: "it answered 401".to_owned(), again: false, wait_ms: None };
    let answers = [Some(Err(refused)), busy(Some(30_000))];
    play(answers, async |scene: &Scene| {
        scene.offer(3);
        scene.settle().await;
        assert_eq!((scene.posts().len(), scene.counts()), (1, [0, 0, 3]));
        scene.offer(3);
        scene.settle().await;
        assert_eq!(scene.counts(), [0, 0, 6], "it wants a longer wait than there is time");
    });
}

#[test]
fn a_stop_is_bounded_in_time() {
    play([None], async |scene: &Scene| {
        scene.offer(1);
        scene.settle().await;
        let stopping = scene.exporter.stop(STOP_MS);
        let ((), ()) = join(stopping, async {
            scene.settle().await;
            scene.hands.advance(1_000);
        })
        .await;
        assert_eq!((scene.posts(), scene.counts()), (vec![1], [0, 0, 0]), "nobody answered");
        scene.hands.advance(30_000);
        scene.settle().await;
        assert_eq!(scene.counts(), [0, 0, 1]);
    });
}

#[test]
fn dropped_spans_are_logged_periodically_and_completely() {
    let mut told = LossReport::default();
    assert_eq!(told.due(0, Millis(0)), None, "nothing is lost");
    assert_eq!(told.due(3, Millis(0)), Some(3));
    assert_eq!(told.due(9, Millis(299_999)), None, "that was told a moment ago");
    assert_eq!(told.due(10, Millis(300_000)), Some(7), "what was not told is told with it");
    assert_eq!(told.due(10, Millis(900_000)), None, "nothing more is lost");
}
