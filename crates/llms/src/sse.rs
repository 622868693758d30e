//! Server-sent events, read from bytes as they come. A line or an event that is larger than the
//! limit is an error: what a provider sends never decides how much memory is used.

/// What a line has beyond its value: the name of its field, and a mark at the stream's beginning.
const LINE_EXTRA_BYTES: usize = 16;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event that has data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its type; empty where the stream names none.
    pub(crate) name: String,
    /// Its data, with a line break between its lines.
    pub(crate) data: String,
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SseError {
    /// Over the limit.
    #[error("an event has more than {0} bytes")]
    TooLarge(usize),
    /// Not UTF-8.
    #[error("the event stream is not UTF-8")]
    NotText,
}

/// Reads one stream. What is not ended by an empty line is no event.
pub(crate) struct SseReader {
    event_bytes_max: usize,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to here no line ends: a long line is not searched again with every part of it.
    searched: usize,
    /// The line before ended with CR, so an LF that follows belongs to it.
    after_return: bool,
    /// The first line was read.
    begun: bool,
    unfinished: Event,
    has_data: bool,
}

impl SseReader {
    /// A reader of a stream whose events have at most so many bytes.
    pub(crate) fn new(event_bytes_max: usize) -> Self {
        Self {
            event_bytes_max,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            after_return: false,
            begun: false,
            unfinished: Event::default(),
            has_data: false,
        }
    }

    /// Takes the next bytes. Whoever calls this has read all events of those before.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched = self.searched.saturating_sub(self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event, or none until more bytes come. After an error there is nothing more to read.
    pub(crate) fn next_event(&mut self) -> Result<Option<Event>, SseError> {
        while let Some((start, end)) = self.next_line()? {
            if start == end {
                let event = std::mem::take(&mut self.unfinished);
                if std::mem::take(&mut self.has_data) {
                    return Ok(Some(event));
                }
                continue;
            }
            self.take(start, end)?;
            if self.unfinished.name.len() + self.unfinished.data.len() > self.event_bytes_max {
                return Err(SseError::TooLarge(self.event_bytes_max));
            }
        }
        Ok(None)
    }

    /// Where the next whole line stands in the buffer: it ends with CR, LF or both.
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, SseError> {
        if self.after_return && self.start < self.buffer.len() {
            self.after_return = false;
            if self.buffer[self.start] == b'\n' {
                self.start += 1;
            }
        }
        let from = self.searched.max(self.start);
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let end = self.buffer[from..].iter().position(ends).map(|offset| from + offset);
        let so_far = end.unwrap_or(self.buffer.len()) - self.start;
        if so_far > self.event_bytes_max.saturating_add(LINE_EXTRA_BYTES) {
            return Err(SseError::TooLarge(self.event_bytes_max));
        }
        let Some(end) = end else {
            self.searched = self.buffer.len();
            return Ok(None);
        };
        let mut start = std::mem::replace(&mut self.start, end + 1);
        self.searched = self.start;
        self.after_return = self.buffer[end] == b'\r';
        let is_first = !std::mem::replace(&mut self.begun, true);
        if is_first && self.buffer[start..end].starts_with(BYTE_ORDER_MARK) {
            start += BYTE_ORDER_MARK.len();
        }
        Ok(Some((start, end)))
    }

    /// Takes one line that is not empty. A comment has no name; other fields have no meaning here.
    fn take(&mut self, start: usize, end: usize) -> Result<(), SseError> {
        let line = std::str::from_utf8(&self.buffer[start..end]).map_err(|_| SseError::NotText)?;
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.unfinished.data.push('\n');
                }
                self.unfinished.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.unfinished.name),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parts: &[&[u8]], event_bytes_max: usize) -> Result<Vec<(String, String)>, SseError> {
        let mut reader = SseReader::new(event_bytes_max);
        let mut events = Vec::new();
        for part in parts {
            reader.push(part);
            while let Some(event) = reader.next_event()? {
                events.push((event.name, event.data));
            }
        }
        Ok(events)
    }

    fn data(parts: &[&[u8]]) -> Vec<String> {
        read(parts, 100).unwrap().into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn fields_make_events() {
        let stream = b": hello\nid: 7\nevent: ping\nretry: 500\ndata: a\ndata:b\ndata\n\n\
                       data:  c\nwhatever: x\n\nevent: nothing\n\n";
        let events = read(&[stream], 100).unwrap();
        let events: Vec<_> = events.iter().map(|(name, data)| (&**name, &**data)).collect();
        assert_eq!(events, [("ping", "a\nb\n"), ("", " c")]);
    }

    #[test]
    fn lines_end_as_they_like_and_parts_break_anywhere() {
        for stream in
            ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"]
        {
            let bytes = stream.as_bytes();
            assert_eq!(data(&[bytes]), ["a", "b"], "{stream:?}");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(data(&single), ["a", "b"], "{stream:?}");
        }
        let umlaut = "data: ü\n\n".as_bytes();
        assert_eq!(data(&[&umlaut[..7], &umlaut[7..]]), ["ü"]);
        assert_eq!(data(&[b"\xEF", b"\xBB\xBFdata: a\n\n"]), ["a"]);
    }

    #[test]
    fn what_is_not_finished_is_no_event() {
        assert_eq!(data(&[b"data: a\n\ndata: b\n"]), ["a"]);
        assert_eq!(data(&[b"data: a\n\ndata: b"]), ["a"]);
    }

    #[test]
    fn nothing_is_larger_than_the_limit() {
        let wrong = |parts: &[&[u8]]| read(parts, 10).err();
        assert_eq!(wrong(&[b"data: 0123456789\n\n", b"data: 0123456789\n\n"]), None);
        assert_eq!(wrong(&[b"data: 0123456789a\n"]), Some(SseError::TooLarge(10)));
        assert_eq!(wrong(&[b"data: 01234\ndata: 56789\n"]), Some(SseError::TooLarge(10)));
        let endless: Vec<&[u8]> = vec![b"0123456789".as_slice(); 3];
        assert_eq!(wrong(&endless), Some(SseError::TooLarge(10)));
        assert_eq!(wrong(&[b"data: \xFF\n"]), Some(SseError::NotText));
        let comments: Vec<&[u8]> = vec![b": still here\n".as_slice(); 50];
        assert_eq!(wrong(&comments), None);
    }
}
