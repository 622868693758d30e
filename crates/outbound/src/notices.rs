//! Notices to addresses that clients gave: a text is posted to a public address, or to one that
//! the settings allow. Names are judged by where they lead at that moment, and redirects are not
//! followed.

use crate::addresses::{HttpSettings, web_url};
use crate::client::{ClientOptions, LazyClient};
use crate::retry_after::wait_ms;
use crate::words::{place, reasons};
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

/// What is posted.
#[derive(Debug, Clone)]
pub struct Notice {
    /// Where to.
    pub url: String,
    /// What the text is.
    pub media_type: &'static str,
    /// Headers beside that, with their names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The text.
    pub body: String,
}

/// Why a notice was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotTaken {
    /// In words, without secrets.
    pub message: String,
    /// How long the receiver wants us to wait.
    pub retry_after_ms: Option<u64>,
    /// Whether no other try will do.
    pub is_final: bool,
}

impl Notifier {
    /// To public addresses, and to those that are listed.
    pub fn new(settings: HttpSettings) -> Self {
        let options = ClientOptions::default().connect_within(CONNECT_WITHIN).idle_max(IDLE_MAX);
        Self { client: LazyClient::new(options.guarded(settings.clone())), settings }
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

    /// Posts a notice; the receiver has so long to answer.
    pub async fn post(&self, notice: Notice, timeout_ms: u64, now: Millis) -> Result<(), NotTaken> {
        let not_taken =
            |message: String| NotTaken { message, retry_after_ms: None, is_final: false };
        let url = self
            .checked(&notice.url)
            .map_err(|why| NotTaken { is_final: true, ..not_taken(why) })?;
        let receiver = format!("the webhook at {}", place(&url));
        let client = self.client.get().map_err(|why| {
            not_taken(format!("{receiver} cannot be reached: there is no HTTP client: {why}"))
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
            not_taken(format!("{receiver} gave no answer: {why}"))
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let elsewhere = match status.is_redirection() {
            true => " and points elsewhere, which is not followed",
            false => "",
        };
        Err(NotTaken {
            retry_after_ms: wait_ms(answer.headers(), now),
            // It wants no more of them.
            is_final: status == StatusCode::GONE,
            ..not_taken(format!("{receiver} answered {status}{elsewhere}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    async fn what_is_not_public_is_not_posted_to_either() {
        let notice = Notice {
            url: "http://127.0.0.1:9/".to_owned(),
            media_type: "application/json",
            headers: Vec::new(),
            body: "{}".to_owned(),
        };
        let refused = notifier(&[]).post(notice, 1_000, Millis(0)).await.unwrap_err();
        assert!(refused.is_final && refused.message.contains("127.0.0.1"), "{refused:?}");
    }
}
