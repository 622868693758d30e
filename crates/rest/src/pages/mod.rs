//! Pages for people whom another server sent to us with their browser. They are plain: no script,
//! no style, nothing from elsewhere, and whatever was written by others is text.

pub mod welcome;

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// Nothing may be loaded, sent or framed.
const POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What a page says of others is cut after so many letters.
const TEXT_CHARS_MAX: usize = 600;

/// A page with a heading and paragraphs, all of them plain texts. What stands between backquotes is
/// shown as code.
pub(super) fn page(status: StatusCode, title: &str, paragraphs: &[String]) -> Response {
    let mut response = (status, html(title, paragraphs)).into_response();
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        // The address of a page has a code in it: it is neither told nor kept.
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn html(title: &str, paragraphs: &[String]) -> String {
    let body: String =
        paragraphs.iter().map(|text| format!("<p>{}</p>\n", with_code(text))).collect();
    let title = escaped(title);
    format!(
        "<!doctype html>\n\
         <html lang=\"en\">\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} - Waypost</title>\n\
         </head>\n\
         <body>\n\
         <main>\n\
         <h1>{title}</h1>\n\
         {body}</main>\n\
         </body>\n\
         </html>\n"
    )
}

/// The text, with every second part between backquotes as code; an odd backquote stays one.
fn with_code(text: &str) -> String {
    let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
    let parts: Vec<&str> = text.split('`').collect();
    let is_paired = parts.len() % 2 == 1;
    let mut shown = String::new();
    for (place, part) in parts.iter().enumerate() {
        let part = escaped(part);
        let is_last = place + 1 == parts.len();
        match place % 2 {
            0 => shown.push_str(&part),
            _ if is_last && !is_paired => shown.push_str(&format!("`{part}")),
            _ => shown.push_str(&format!("<code>{part}</code>")),
        }
    }
    shown
}

/// The text as HTML says it, without letters that steer.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ if letter.is_control() => safe.push(' '),
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    #[test]
    fn texts_of_others_are_escaped() {
        let text = "`hub` said \"<script>alert('x')</script>\" & `<b>`\u{1b}[2J";
        assert_eq!(
            with_code(text),
            "<code>hub</code> said &quot;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot; \
             &amp; <code>&lt;b&gt;</code> [2J"
        );
        assert_eq!(with_code("a ` b"), "a ` b");
        assert_eq!(with_code("`a` ` b"), "<code>a</code> ` b");
        assert_eq!(with_code(&"x".repeat(TEXT_CHARS_MAX * 2)).len(), TEXT_CHARS_MAX);
    }

    #[test]
    fn a_page_loads_nothing_and_is_not_cached() {
        let response = page(StatusCode::OK, "Done", &["all of `it`".to_owned()]);
        let header = |name: HeaderName| response.headers()[name].to_str().unwrap().to_owned();
        assert!(header(CONTENT_SECURITY_POLICY).starts_with("default-src 'none'"));
        assert_eq!(header(REFERRER_POLICY), "no-referrer");
        assert_eq!(header(CACHE_CONTROL), "no-store");
        assert_eq!(header(CONTENT_TYPE), "text/html; charset=utf-8");
        let html = html("Done", &["all of `it`".to_owned()]);
        assert!(html.contains("<h1>Done</h1>\n<p>all of <code>it</code></p>\n</main>"), "{html}");
    }
}
