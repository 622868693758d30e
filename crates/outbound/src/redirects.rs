//! Redirects within an origin: headers with secrets go nowhere else.

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{StatusCode, Url};

/// How many redirects of one request are followed.
pub const REDIRECTS_MAX: usize = 3;
/// Statuses that send the same request elsewhere, with its method and body.
const ELSEWHERE: [StatusCode; 2] = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];

/// Where an answer sends the same request, if that is within the origin.
pub fn elsewhere(from: &Url, status: StatusCode, headers: &HeaderMap) -> Option<Url> {
    if !ELSEWHERE.contains(&status) {
        return None;
    }
    let place = headers.get(LOCATION)?.to_str().ok()?;
    from.join(place).ok().filter(|to| same_origin(from, to))
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

    #[test]
    fn only_what_keeps_method_body_and_origin_is_followed() {
        let from = Url::parse("http://a.test/mcp").unwrap();
        for (status, place, to) in [
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
            let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(place))]);
            let status = StatusCode::from_u16(status).unwrap();
            let followed = elsewhere(&from, status, &headers);
            assert_eq!(followed.as_ref().map(Url::as_str), to, "{status} {place}");
        }
        assert_eq!(elsewhere(&from, StatusCode::PERMANENT_REDIRECT, &HeaderMap::new()), None);
    }
}
