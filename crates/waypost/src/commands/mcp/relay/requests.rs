//! The relay's requests that wait for an answer of the server, and how each is cancelled.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Requests {
    tasks: JoinSet<()>,
    open: HashMap<String, (AbortHandle, Nature)>,
}

/// What matters of a request when it is to end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nature {
    /// Its connection is all that the server knows of it: to close it is to cancel the request.
    pub(super) is_stateless: bool,
    /// It has no answer to wait for.
    pub(super) is_endless: bool,
}

impl Requests {
    pub(super) fn start(
        &mut self,
        key: String,
        nature: Nature,
        answering: impl Future<Output = ()> + Send + 'static,
    ) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|_, (task, _)| !task.is_finished());
        let task = self.tasks.spawn(answering);
        self.open.insert(key, (task, nature));
    }

    /// Whether this one is under way and needs no session.
    pub(super) fn is_stateless(&self, key: &str) -> bool {
        self.open.get(key).is_some_and(|(_, nature)| nature.is_stateless)
    }

    /// Gives one up: its connection is closed, and no one is answered.
    pub(super) fn cancel(&mut self, key: &str) {
        if let Some((task, _)) = self.open.remove(key) {
            task.abort();
        }
    }

    /// Lets them come to their answers, for so long.
    pub(super) async fn drain(&mut self, limit: Duration) {
        for (task, _) in self.open.values().filter(|(_, nature)| nature.is_endless) {
            task.abort();
        }
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(limit, all).await.is_err() {
            tracing::warn!(limit_s = limit.as_secs(), "requests that were still open are given up");
        }
    }

    /// Gives up what is left.
    pub(super) async fn end(&mut self) {
        self.tasks.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    #[test]
    fn a_cancel_ends_only_its_own_request() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut requests = Requests::default();
            let plain = Nature { is_stateless: true, is_endless: false };
            requests.start("1".to_owned(), plain, pending());
            let in_session = Nature { is_stateless: false, ..plain };
            requests.start("2".to_owned(), in_session, ready(()));
            let endless = Nature { is_endless: true, ..plain };
            requests.start("3".to_owned(), endless, pending());
            assert!(requests.is_stateless("1") && !requests.is_stateless("2"));
            assert!(!requests.is_stateless("nobody"));
            requests.cancel("1");
            requests.cancel("nobody");
            // The endless one does not keep us either.
            requests.drain(Duration::from_secs(60)).await;
            assert!(requests.tasks.is_empty());
            requests.end().await;
        });
    }
}
