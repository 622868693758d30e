//! What shows who we are, taken out of what other servers say: whatever goes with requests stands
//! in no error, log or journal, even if the other side repeats it.

use super::config::Secret;
use reqwest::Url;
use std::cmp::Reverse;

/// A shorter text is no secret, and taking it out would make other words unreadable.
const SECRET_CHARS_MIN: usize = 4;

/// Texts that nobody is told.
#[derive(Clone, Default)]
pub(crate) struct Hidden(Vec<String>);

impl Hidden {
    /// Hides these.
    pub(crate) fn new(mut secrets: Vec<String>) -> Self {
        secrets.retain(|secret| secret.chars().count() >= SECRET_CHARS_MIN);
        // A secret may be a part of another: `Bearer abc` and `abc`.
        secrets.sort_by_key(|secret| Reverse(secret.len()));
        Self(secrets)
    }

    /// Hides these as well.
    #[must_use]
    pub(crate) fn with(self, more: Vec<String>) -> Self {
        Self::new([self.0, more].concat())
    }

    /// A text in which none of them is left. Asked before a text is cut: half a secret is one, too.
    pub(crate) fn told(&self, text: &str) -> String {
        let hide = |text: String, secret: &String| text.replace(secret.as_str(), "***");
        self.0.iter().fold(text.to_owned(), hide)
    }
}

/// The values of headers, and what follows the scheme of those that have one: `Bearer ..`.
pub(crate) fn of_headers(headers: &[(String, Secret)]) -> Vec<String> {
    let whole = headers.iter().map(|(_, value)| value.expose().trim());
    let tokens = whole.clone().filter_map(|value| Some(value.split_once(' ')?.1.trim_start()));
    whole.chain(tokens).map(str::to_owned).collect()
}

/// The password and the query of an address, and each value in it.
pub(crate) fn of_url(url: &Url) -> Vec<String> {
    let values = url.query_pairs().map(|(_, value)| value.into_owned());
    let written = url.password().into_iter().chain(url.query()).map(str::to_owned);
    written.chain(values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_addresses_are_hidden_in_all_their_parts() {
        let headers = [
            ("authorization".to_owned(), Secret::from("Bearer abcdef")),
            ("x-tenant".to_owned(), Secret::from("7")),
        ];
        let hidden = Hidden::new(of_headers(&headers));
        assert_eq!(hidden.told("`Bearer abcdef`, abcdef, 7"), "`***`, ***, 7");
        let url = Url::parse("http://me:hushhush@a.test/x?key=let%20me&n=1").unwrap();
        let hidden = hidden.with(of_url(&url));
        let told = hidden.told("abcdef, hushhush at /x?key=let%20me&n=1 or `let me`");
        assert_eq!(told, "***, *** at /x?*** or `***`");
    }
}
