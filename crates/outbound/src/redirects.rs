//! Redirects within an origin: headers with secrets are sent nowhere else.

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{StatusCode, Url};

/// How many redirects of one request are followed.
pub const REDIRECTS_MAX: usize = 3;
/// Statuses that send the same request elsewhere, with its method and body.
const ELSEWHERE: [StatusCode; 2] = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];

/// Where a redirect leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redirect {
    /// To another place within the origin.
    Within(Url),
    /// To another origin, or with credentials that the redirecting server put there.
    Away(Url),
    /// Its location is no URL.
    Nowhere,
}

/// Where an answer leads, if it is a redirect.
pub fn redirect(from: &Url, status: StatusCode, headers: &HeaderMap) -> Option<Redirect> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let place = headers.get(LOCATION)?.to_str().ok().and_then(|place| from.join(place).ok());
    let Some(mut to) = place else { return Some(Redirect::Nowhere) };
    to.set_fragment(None);
    let plain = to.username().is_empty() && to.password().is_none();
    let ours = to.username() == from.username() && to.password() == from.password();
    let within = same_origin(from, &to) && (plain || ours);
    Some(if within { Redirect::Within(to) } else { Redirect::Away(to) })
}

/// Where an answer sends the same request, if that is within the origin.
pub fn elsewhere(from: &Url, status: StatusCode, headers: &HeaderMap) -> Option<Url> {
    match redirect(from, status, headers)? {
        Redirect::Within(to) if ELSEWHERE.contains(&status) => Some(to),
        _ => None,
    }
}

/// Whether two addresses have scheme, host and port in common.
pub fn same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host_str() == other.host_str()
        && one.port_or_known_default() == other.port_or_known_default()
}

/// The same for a client that follows them by itself.
pub(crate) fn within_origin() -> Policy {
    Policy::custom(judged)
}

fn judged(attempt: Attempt<'_>) -> Action {
    let keeps = ELSEWHERE.contains(&attempt.status());
    let previous = attempt.previous();
    let home = previous.first().is_some_and(|first| same_origin(first, attempt.url()));
    if keeps && home && previous.len() <= REDIRECTS_MAX { attempt.follow() } else { attempt.stop() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn status(code: u16) -> StatusCode {
        StatusCode::from_u16(code).unwrap()
    }

    fn location(place: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(place))])
    }

    #[test]
    fn a_redirect_stays_within_its_origin_and_brings_no_credentials() {
        let within = |to: &str| Some(Redirect::Within(url(to)));
        let away = |to: &str| Some(Redirect::Away(url(to)));
        for (from, place, to) in [
            ("http://a.test/x", "/m?a=1#part", within("http://a.test/m?a=1")),
            ("http://a.test/x", "http://A.test:80/m", within("http://a.test/m")),
            ("http://me:hush@a.test/x", "/m", within("http://me:hush@a.test/m")),
            ("http://me:hush@a.test/x", "http://a.test/m", within("http://a.test/m")),
            ("http://a.test/x", "http://me:hush@a.test/m", away("http://me:hush@a.test/m")),
            ("http://a.test/x", "http://me@a.test/m", away("http://me@a.test/m")),
            ("http://me:hush@a.test/x", "http://me:h@a.test/", away("http://me:h@a.test/")),
            ("http://a.test/x", "https://a.test/m", away("https://a.test/m")),
            ("http://a.test/x", "//b.test/m", away("http://b.test/m")),
            ("http://a.test/x", "http://", Some(Redirect::Nowhere)),
        ] {
            for code in [301, 302, 303, 307, 308] {
                let found = redirect(&url(from), status(code), &location(place));
                assert_eq!(found, to, "{code} {from} {place}");
            }
            for code in [200, 201, 300, 304, 401] {
                assert_eq!(redirect(&url(from), status(code), &location(place)), None, "{code}");
            }
        }
        assert_eq!(redirect(&url("http://a.test/"), status(302), &HeaderMap::new()), None);
    }

    #[test]
    fn only_redirects_that_keep_method_body_and_origin_are_followed() {
        let from = url("http://a.test/mcp");
        for (code, place, to) in [
            (307, "/m", Some("http://a.test/m")),
            (308, "http://a.test:80/m", Some("http://a.test/m")),
            (301, "/m", None),
            (302, "/m", None),
            (200, "/m", None),
            (307, "https://a.test/m", None),
            (307, "http://b.test/m", None),
            (307, "//b.test/m", None),
            (307, "http://a.test:81/m", None),
        ] {
            let followed = elsewhere(&from, status(code), &location(place));
            assert_eq!(followed.as_ref().map(Url::as_str), to, "{code} {place}");
        }
        assert_eq!(elsewhere(&from, StatusCode::PERMANENT_REDIRECT, &HeaderMap::new()), None);
    }
}
