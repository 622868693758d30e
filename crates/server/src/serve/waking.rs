//! Who wakes the task of a connection. hyper wakes it whenever a piece of a request's body is
//! taken, also where that was all of the body and nothing is left to read: the task would run once
//! more for nothing, and a thread that sleeps would be woken to run it. Over HTTP/1 most requests
//! have such a body.

use axum::body::{Body, Bytes, HttpBody};
use hyper::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

thread_local! {
    static TAKING: Cell<Taking> = const { Cell::new(Taking::Nothing) };
}

/// What this thread takes at this moment.
#[derive(Default)]
enum Taking {
    #[default]
    Nothing,
    /// A piece of a body.
    Piece,
    /// The same, and a connection wanted to be woken for it.
    PieceOf(Arc<TaskWaker>),
}

/// The task of a connection, as hyper wakes it.
#[derive(Default)]
pub(super) struct TaskWaker {
    task: Mutex<Option<Waker>>,
}

impl TaskWaker {
    /// Polls what hyper does for this connection.
    pub(super) fn poll<F: Future>(
        self: &Arc<Self>,
        hyper: Pin<&mut F>,
        context: &mut Context<'_>,
    ) -> Poll<F::Output> {
        {
            let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *task {
                Some(known) => known.clone_from(context.waker()),
                None => *task = Some(context.waker().clone()),
            }
        }
        hyper.poll(&mut Context::from_waker(&self.clone().into()))
    }

    fn wake_now(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        // What takes a piece decides about it. At the end of a thread nothing is taken.
        let is_taking = TAKING.try_with(|taking| match taking.take() {
            Taking::Piece => {
                taking.set(Taking::PieceOf(self.clone()));
                true
            }
            other => {
                taking.set(other);
                false
            }
        });
        if !is_taking.unwrap_or_default() {
            self.wake_now();
        }
    }
}

/// The request with a body that does not wake its connection for nothing. Which piece is the last
/// one is known by the length of a body of HTTP/1; over HTTP/2 a connection always has to know what
/// was taken.
pub(super) fn calm(request: Request<Incoming>, is_stream: bool) -> Request<Body> {
    match is_stream {
        true => request.map(Body::new),
        false => request.map(|body| Body::new(Taken(body))),
    }
}

/// As long as this is there, a piece is taken. A connection that wanted to be woken meanwhile is
/// woken at the end, also of a panic.
struct Silence;

impl Silence {
    fn begin() -> Self {
        TAKING.set(Taking::Piece);
        Self
    }

    /// It was the last piece: no one is woken.
    fn keep(self) {
        TAKING.set(Taking::Nothing);
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        if let Taking::PieceOf(connection) = TAKING.take() {
            connection.wake_now();
        }
    }
}

/// The body of a request over HTTP/1.
struct Taken(Incoming);

impl HttpBody for Taken {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let silence = Silence::begin();
        let polled = Pin::new(&mut self.0).poll_frame(context);
        if polled.is_ready() && self.0.is_end_stream() {
            silence.keep();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::Response;
    use http_body_util::BodyExt;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use std::convert::Infallible;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    const HEAD: &str = "POST / HTTP/1.1\r\nhost: a\r\n";

    /// Counts how often the task of a connection is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Woken {
        fn take(&self) -> usize {
            self.0.swap(0, Ordering::SeqCst)
        }
    }

    /// How the body of a request is read.
    type Reads = fn(Request<Incoming>) -> Request<Body>;

    fn calmly(request: Request<Incoming>) -> Request<Body> {
        calm(request, false)
    }

    /// What each of these pieces leads to, as the client sees it, and how often the connection woke
    /// itself. An answer is the body once more. The connection is polled when it was woken, and
    /// never else.
    async fn answers(pieces: &[&str], reads: Reads) -> (Vec<String>, usize) {
        let (mut client, server): (DuplexStream, _) = duplex(64 * 1024);
        let service = service_fn(move |request: Request<Incoming>| async move {
            let body = reads(request).into_body().collect().await.unwrap().to_bytes();
            Ok::<_, Infallible>(Response::new(Body::from(body)))
        });
        let mut hyper = pin!(http1::Builder::new().serve_connection(TokioIo::new(server), service));
        let (task, woken) = (Arc::<TaskWaker>::default(), Arc::<Woken>::default());
        let waker = Waker::from(woken.clone());
        let (mut answers, mut by_itself) = (Vec::new(), 0);
        // A task is polled once when it begins.
        woken.0.store(1, Ordering::SeqCst);
        for piece in pieces {
            client.write_all(piece.as_bytes()).await.unwrap();
            while woken.take() > 0 {
                let mut context = Context::from_waker(&waker);
                assert!(task.poll(hyper.as_mut(), &mut context).is_pending());
                by_itself += woken.0.load(Ordering::SeqCst);
            }
            let mut read = vec![0; 1_024];
            let read = match futures::poll!(pin!(client.read(&mut read))) {
                Poll::Ready(count) => String::from_utf8_lossy(&read[..count.unwrap()]).into_owned(),
                Poll::Pending => String::new(),
            };
            answers.push(read);
        }
        (answers, by_itself)
    }

    /// What stands below the head of each answer.
    fn bodies(answers: &[String]) -> Vec<&str> {
        let body = |answer: &'_ String| answer.rfind("\r\n").map_or(0, |end| end + 2);
        answers.iter().map(|answer| &answer[body(answer)..]).collect()
    }

    fn whole(body: &str) -> String {
        format!("{HEAD}content-length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn a_body_that_came_as_a_whole_wakes_no_one() {
        let (first, second) = (whole("abc"), whole("de"));
        let (heard, times) = answers(&[&first, &second], calmly).await;
        assert_eq!((bodies(&heard), times), (vec!["abc", "de"], 0));
        // Once this fails, hyper does it itself, and this module can go.
        let (heard, times) = answers(&[&first], |request| request.map(Body::new)).await;
        assert_eq!((bodies(&heard), times > 0), (vec!["abc"], true));
    }

    #[tokio::test]
    async fn a_body_in_pieces_is_read_to_its_end() {
        let head = format!("{HEAD}content-length: 6\r\n\r\nab");
        let (heard, _) = answers(&[&head, "cd", "ef", &whole("g")], calmly).await;
        assert_eq!(bodies(&heard), ["", "", "abcdef", "g"]);
        let head = format!("{HEAD}transfer-encoding: chunked\r\n\r\n");
        for chunks in
            [["2\r\nab\r\n", "2\r\ncd\r\n0\r\n\r\n"], ["2\r\nab\r\n2\r\ncd\r\n", "0\r\n\r\n"]]
        {
            let (heard, _) = answers(&[&head, chunks[0], chunks[1]], calmly).await;
            assert_eq!(bodies(&heard), ["", "", "abcd"]);
            let all = [head.as_str(), chunks[0], chunks[1]].concat();
            let (heard, _) = answers(&[&all], calmly).await;
            assert_eq!(bodies(&heard), ["abcd"], "all at once");
        }
    }

    #[tokio::test]
    async fn who_waits_for_a_word_before_it_sends_a_body_gets_it() {
        let head = format!("{HEAD}content-length: 2\r\nexpect: 100-continue\r\n\r\n");
        let (heard, _) = answers(&[&head, "ab"], calmly).await;
        assert!(heard[0].starts_with("HTTP/1.1 100 Continue"), "{heard:?}");
        assert_eq!(bodies(&heard)[1], "ab");
    }

    #[test]
    fn no_one_is_silent_but_who_takes_the_last_piece() {
        let (task, woken) = (Arc::<TaskWaker>::default(), Arc::<Woken>::default());
        *task.task.lock().unwrap() = Some(Waker::from(woken.clone()));
        let wake = || Waker::from(task.clone()).wake();
        {
            let _silence = Silence::begin();
            wake();
            assert_eq!(woken.take(), 0, "not while a piece is taken");
            std::thread::scope(|scope| scope.spawn(wake).join().unwrap());
            assert_eq!(woken.take(), 1, "another thread takes nothing");
        }
        assert_eq!(woken.take(), 1, "afterwards");
        let silence = Silence::begin();
        wake();
        silence.keep();
        assert_eq!(woken.take(), 0, "not for the last piece");
        wake();
        assert_eq!(woken.take(), 1, "and then as ever");
    }
}
