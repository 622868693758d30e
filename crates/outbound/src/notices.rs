//! Posts to URLs that clients supplied: only to a public address, or one that the settings allow.
//! Names are checked by the address that they resolve to at that moment, and redirects are not
//! followed.

use crate::addresses::{HttpSettings, web_url};
use crate::client::{ClientOptions, LazyClient};
use crate::retry_after::wait_ms;
use crate::words::{place, reasons};
use kernel::contracts::sink::SinkError;
use kernel::values::ids::Millis;
use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url};
use std::time::Duration;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Posts notices.
pub struct Notifier {
    settings: HttpSettings,
    client: LazyClient,
}

#[derive(Debug, Clone)]
pub struct Notice {
    pub url: String,
    pub media_type: &'static str,
    /// Headers beside that, with their names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The text.
    pub body: String,
}

impl Notifier {
    /// To public addresses, and to those that are listed.
    pub fn new(settings: HttpSettings) -> Self {
        Self { client: LazyClient::new(options(&settings)), settings }
    }

    /// Refuses an address that nothing is posted to, however it is resolved, with the reason.
    pub fn check(&self, url: &str) -> Result<(), String> {
        self.checked(url).map(drop)
    }

    fn checked(&self, url: &str) -> Result<Url, String> {
        let url = web_url("it", url)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it holds a name or a password".to_owned());
        }
        if !self.settings.permits_host(&url) {
            return Err(format!("{} is not a public address", place(&url)));
        }
        Ok(url)
    }

    /// Posts a notice; the receiver has so long to answer. An address that may not be posted to is
    /// like a receiver that is gone.
    pub async fn post(
        &self,
        notice: Notice,
        timeout_ms: u64,
        now: Millis,
    ) -> Result<(), SinkError> {
        let url = self
            .checked(&notice.url)
            .map_err(|why| SinkError { is_gone: true, ..SinkError::new(why) })?;
        let receiver = format!("the webhook at {}", place(&url));
        let client = self.client.get().map_err(|why| {
            SinkError::new(format!("{receiver} cannot be reached: there is no HTTP client: {why}"))
        })?;
        let mut request = client
            .post(url)
            .header(CONTENT_TYPE, notice.media_type)
            .timeout(Duration::from_millis(timeout_ms));
        for (name, value) in notice.headers {
            request = request.header(name, value);
        }
        let sent = request.body(notice.body).send().await;
        let answer = sent.map_err(|error| {
            let why = reasons(&error.without_url());
            SinkError::new(format!("{receiver} gave no answer: {why}"))
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let elsewhere = match status.is_redirection() {
            true => " and points elsewhere, which is not followed",
            false => "",
        };
        Err(SinkError {
            status: Some(status.as_u16()),
            retry_after_ms: wait_ms(answer.headers(), now),
            is_gone: status == StatusCode::GONE,
            ..SinkError::new(format!("{receiver} answered {status}{elsewhere}"))
        })
    }
}

/// Those of a client for whom these settings permit.
fn options(settings: &HttpSettings) -> ClientOptions {
    let options = ClientOptions::default().connect_within(CONNECT_WITHIN).idle_max(IDLE_MAX);
    options.guarded(settings.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::ready;
    use std::io::{self, ErrorKind};
    use std::net::{IpAddr, SocketAddr};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// No post takes longer, however slow the machine is.
    const LIMIT_MS: u64 = 60_000;
    const BODY: &str = "{}";

    /// One for which every name leads to each of these in turn, and how often it has looked.
    fn leading_to(allow: &[&str], answers: &[&[&str]]) -> (Notifier, Arc<AtomicUsize>) {
        let address = |text: &&str| SocketAddr::new(text.parse::<IpAddr>().unwrap(), 0);
        let answers: Vec<Vec<SocketAddr>> =
            answers.iter().map(|answer| answer.iter().map(address).collect()).collect();
        let settings = HttpSettings::new(allow).unwrap();
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = looks.clone();
        let look_up = move |_name: String| {
            let found = answers.get(counted.fetch_add(1, Ordering::SeqCst));
            ready(io::Result::Ok(found.cloned().unwrap_or_default()))
        };
        let client = LazyClient::with_names(options(&settings), look_up);
        (Notifier { settings, client }, looks)
    }

    /// Posts to the webhook at this address, beside a receiver that takes everything.
    async fn posted(
        notifier: &Notifier,
        receiver: &TcpListener,
        url: &str,
    ) -> Result<(), SinkError> {
        let url = url.to_owned();
        let media_type = "application/json";
        let notice = Notice { url, media_type, headers: Vec::new(), body: BODY.to_owned() };
        tokio::select! {
            posted = notifier.post(notice, LIMIT_MS, Millis(0)) => posted,
            () = take(receiver) => unreachable!("it takes notices for ever"),
        }
    }

    async fn take(receiver: &TcpListener) {
        loop {
            let (mut stream, _) = receiver.accept().await.unwrap();
            let mut bytes = Vec::new();
            let mut some = [0; 1_024];
            while !bytes.ends_with(BODY.as_bytes()) {
                let count = stream.read(&mut some).await.unwrap();
                assert!(count > 0, "the request broke off");
                bytes.extend_from_slice(&some[..count]);
            }
            let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    }

    /// A server at an address that nothing may be posted to, on this port.
    fn inner_server(port: u16) -> std::net::TcpListener {
        let listener = std::net::TcpListener::bind(("127.0.0.2", port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    }

    fn had_no_visitor(inner: &std::net::TcpListener) -> bool {
        inner.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_a_private_address_is_not_posted_to() {
        let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = receiver.local_addr().unwrap().port();
        let inner = inner_server(port);
        let url = format!("http://hooks.test:{port}/");
        for address in ["127.0.0.2", "::ffff:127.0.0.2", "::1"] {
            let (notifier, looks) = leading_to(&["127.0.0.1"], &[&[address]]);
            assert_eq!(notifier.check(&url), Ok(()), "it does not say where it leads");
            let refused = posted(&notifier, &receiver, &url).await.unwrap_err();
            let why = "which is not a public address";
            assert!(refused.message.contains(why), "{address}: {refused:?}");
            assert!(!refused.is_gone, "it may lead elsewhere later: {refused:?}");
            assert_eq!(looks.load(Ordering::SeqCst), 1, "{address}");
            assert!(had_no_visitor(&inner), "{address} was connected to");
        }
        let (notifier, _) = leading_to(&["127.0.0.1"], &[&["127.0.0.2", "127.0.0.1"]]);
        assert_eq!(posted(&notifier, &receiver, &url).await, Ok(()), "one of two is permitted");
        assert!(had_no_visitor(&inner), "the other one was connected to");
    }

    #[tokio::test]
    async fn a_name_is_rechecked_at_each_post_without_a_second_lookup() {
        let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = receiver.local_addr().unwrap().port();
        let inner = inner_server(port);
        let url = format!("http://hooks.test:{port}/");
        let (notifier, looks) = leading_to(&["127.0.0.1"], &[&["127.0.0.1"], &["127.0.0.2"]]);
        assert_eq!(notifier.check(&url), Ok(()));
        assert_eq!(posted(&notifier, &receiver, &url).await, Ok(()));
        // A second look between the judgement and the connection would have led to the other one.
        assert_eq!(looks.load(Ordering::SeqCst), 1);
        let refused = posted(&notifier, &receiver, &url).await.unwrap_err();
        assert!(refused.message.contains("`127.0.0.2`"), "{refused:?}");
        assert_eq!(looks.load(Ordering::SeqCst), 2);
        assert!(had_no_visitor(&inner), "where it leads by now was connected to");
    }

    fn notifier(allow: &[&str]) -> Notifier {
        Notifier::new(HttpSettings::new(allow).unwrap())
    }

    #[test]
    fn addresses_that_are_not_public_are_refused_unless_they_are_listed() {
        for url in [
            "http://127.0.0.1:1/",
            "http://localhost/",
            "http://[::1]/",
            "http://169.254.169.254/latest",
            "http://2130706433/",
            "https://10.0.0.1/",
        ] {
            assert!(notifier(&[]).check(url).unwrap_err().contains("not a public address"));
        }
        assert_eq!(notifier(&["127.0.0.1"]).check("http://127.0.0.1:1/"), Ok(()));
        assert_eq!(notifier(&[]).check("https://a.test/x?y"), Ok(()));
        for url in ["ftp://a.test", "a.test", "", "https://ann:hush@a.test/", "https://ann@a.test"]
        {
            let why = notifier(&[]).check(url).unwrap_err();
            assert!(!why.contains("hush"), "{why}");
        }
    }

    #[tokio::test]
    async fn a_literal_private_address_is_not_posted_to() {
        let notice = Notice {
            url: "http://127.0.0.1:9/".to_owned(),
            media_type: "application/json",
            headers: Vec::new(),
            body: "{}".to_owned(),
        };
        let refused = notifier(&[]).post(notice, 1_000, Millis(0)).await.unwrap_err();
        assert!(refused.is_gone && refused.message.contains("127.0.0.1"), "{refused:?}");
    }
}
