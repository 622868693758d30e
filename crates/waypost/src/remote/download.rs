//! Prints a document of the server that may be larger than memory, formatted while it is streamed.

use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{CUT, Client, Request, innermost};
use reqwest::{Method, Response};
use std::time::Duration;

/// How long a server may say nothing before its answer counts as cut.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);
/// How far a level is from the one around it.
const INDENT: &str = "  ";

/// An answer that comes piece by piece.
#[derive(Debug)]
pub(crate) struct Download {
    response: Response,
    /// What came and is not given out yet.
    rest: Vec<u8>,
    layout: Layout,
}

impl Download {
    /// Asks for a document. It is laid out for people, or in one line.
    pub(crate) async fn begin(
        client: &Client,
        request: Request<'_>,
        is_line: bool,
    ) -> Result<Self> {
        client.tell_unproven();
        let opening = client.opened(client.builder(Method::GET, &request));
        let opened = tokio::time::timeout(SILENCE_LIMIT, opening).await;
        let response = opened.unwrap_or_else(|_| Err(late()))?;
        let layout = Layout { is_line, ..Layout::default() };
        Ok(Self { response, rest: Vec::new(), layout })
    }

    /// The next piece of the document; none after the last. An error means that what was given out
    /// is not the whole document.
    pub(crate) async fn next(&mut self) -> Result<Option<String>> {
        loop {
            let chunk = match tokio::time::timeout(SILENCE_LIMIT, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return self.last(),
                Ok(Err(error)) => return Err(cut(&innermost(&error))),
                Err(_) => {
                    return Err(cut(&format!("{} s of silence", SILENCE_LIMIT.as_secs())));
                }
            };
            self.rest.extend_from_slice(&chunk);
            // What begins with ASCII depends on nothing before it: no character is cut in two, and
            // none loses the one that it changes.
            let end = self.rest.iter().rposition(u8::is_ascii).unwrap_or(0);
            let kept = self.rest.split_off(end);
            let piece = std::mem::replace(&mut self.rest, kept);
            if !piece.is_empty() {
                return self.laid_out(piece).map(Some);
            }
        }
    }

    fn last(&mut self) -> Result<Option<String>> {
        let piece = std::mem::take(&mut self.rest);
        if !piece.is_empty() {
            return self.laid_out(piece).map(Some);
        }
        if self.layout.is_whole() { Ok(None) } else { Err(cut("it ends too early")) }
    }

    fn laid_out(&mut self, piece: Vec<u8>) -> Result<String> {
        let text = String::from_utf8(piece).map_err(|error| cut(&error.to_string()))?;
        Ok(self.layout.next(&text))
    }
}

fn late() -> Failure {
    let what = format!("the server did not answer within {} s", SILENCE_LIMIT.as_secs());
    Failure::new(Exit::Timeout, "timeout", what).hint("run the command again")
}

fn cut(why: &str) -> Failure {
    let what = format!("the answer was cut before its end: {why}");
    Failure::new(Exit::Unreachable, CUT, what).hint("run the command again")
}

/// The layout of a JSON text that comes in pieces.
#[derive(Debug, Default)]
struct Layout {
    /// In one line, instead of one for each value.
    is_line: bool,
    depth: usize,
    has_begun: bool,
    /// The last that came was the beginning of an object or a list.
    is_opened: bool,
    is_in_text: bool,
    is_escaped: bool,
}

impl Layout {
    /// The next piece, laid out.
    fn next(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for character in piece.chars() {
            if self.is_in_text {
                self.text(character);
                out.push(character);
            } else if !character.is_ascii_whitespace() {
                self.mark(character, &mut out);
            }
        }
        out
    }

    /// Whether a whole object or list has come.
    fn is_whole(&self) -> bool {
        self.has_begun && self.depth == 0
    }

    fn text(&mut self, character: char) {
        if self.is_escaped {
            self.is_escaped = false;
        } else if character == '\\' {
            self.is_escaped = true;
        } else if character == '"' {
            self.is_in_text = false;
        }
    }

    fn mark(&mut self, character: char, out: &mut String) {
        let is_end = matches!(character, '}' | ']');
        if is_end {
            self.depth = self.depth.saturating_sub(1);
        }
        // An empty object or list stays in its line.
        if is_end != self.is_opened {
            self.line(out);
        }
        out.push(character);
        self.is_opened = matches!(character, '{' | '[');
        match character {
            '{' | '[' => (self.depth, self.has_begun) = (self.depth + 1, true),
            ',' => self.line(out),
            ':' if !self.is_line => out.push(' '),
            '"' => self.is_in_text = true,
            _ => {}
        }
    }

    fn line(&self, out: &mut String) {
        if !self.is_line {
            out.push('\n');
            out.push_str(&INDENT.repeat(self.depth));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn laid_out(document: &Value, size: usize, is_line: bool) -> String {
        let mut layout = Layout { is_line, ..Layout::default() };
        let letters: Vec<char> = document.to_string().chars().collect();
        let mut text = String::new();
        for piece in letters.chunks(size) {
            assert!(!layout.is_whole(), "more comes");
            text.push_str(&layout.next(&piece.iter().collect::<String>()));
        }
        assert!(layout.is_whole());
        text
    }

    #[test]
    fn chunked_json_is_laid_out_like_the_whole() {
        let document = json!({
            "events": [{"seq": 1, "empty": {}, "none": [], "text": "a \"{[,:]}\" \\ ü\n"}, -1.5e3],
            "nested": [[[]], [{"a": null, "b": [true, false]}]],
            "": "",
        });
        for size in [1, 2, 3, 7, 1_000] {
            let pretty = serde_json::to_string_pretty(&document).unwrap();
            assert_eq!(laid_out(&document, size, false), pretty);
            assert_eq!(laid_out(&document, size, true), document.to_string());
        }
    }
}
