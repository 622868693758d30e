//! Server-sent events, read from bytes as they come. A line or an event that is larger than the
//! limit is an error: what the other side sends never decides how much memory is used.

/// Extra bytes of a line beyond its value: the field name, and a byte order mark.
const LINE_EXTRA_BYTES: usize = 16;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The type of an event that names none.
const UNNAMED: &str = "message";

/// One event that has data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its id, if it has one of its own.
    pub id: Option<String>,
    /// Its type as the stream names it; empty where it names none.
    pub name: String,
    /// Its data, with a line break between its lines.
    pub data: String,
}

impl Event {
    /// Its type.
    pub fn kind(&self) -> &str {
        if self.name.is_empty() { UNNAMED } else { &self.name }
    }
}

/// Where a stream can be taken up again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResumePoint {
    /// The id of the last event that was read as a whole.
    pub last_id: Option<String>,
    /// How long the other side wants one to wait before coming back.
    pub retry_ms: Option<u64>,
}

impl ResumePoint {
    /// Whether a server that answers with this status refuses only the place: it would open the
    /// stream without one.
    pub fn is_forgotten(&self, status: u16) -> bool {
        self.last_id.is_some() && matches!(status, 400 | 409 | 410 | 412)
    }
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// Over the limit.
    #[error("an event has more than {0} bytes")]
    TooLarge(usize),
    /// Not UTF-8.
    #[error("the event stream is not UTF-8")]
    NotText,
}

/// Reads one stream. What no empty line ends is no event.
#[derive(Debug)]
pub struct SseReader {
    bytes_max: usize,
    lines: Lines,
    unfinished: Unfinished,
    resume_point: ResumePoint,
}

impl SseReader {
    /// A reader of a stream that is read from its beginning. An event has at most so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self::resumed(bytes_max, ResumePoint::default())
    }

    /// A reader of a stream that is taken up again at this place.
    pub fn resumed(bytes_max: usize, resume_point: ResumePoint) -> Self {
        let unfinished = Unfinished::default();
        Self { bytes_max, lines: Lines::new(bytes_max), unfinished, resume_point }
    }

    /// Takes the next bytes. The caller has read all events of those before.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// The next event, or none until more bytes come. After an error there is nothing more to read.
    pub fn next_event(&mut self) -> Result<Option<Event>, SseError> {
        while let Some(line) = self.lines.next_line()? {
            if line.is_empty() {
                if let Some(event) = self.unfinished.finish(&mut self.resume_point) {
                    return Ok(Some(event));
                }
                continue;
            }
            self.unfinished.take(line, &mut self.resume_point);
            if self.unfinished.bytes() > self.bytes_max {
                return Err(SseError::TooLarge(self.bytes_max));
            }
        }
        Ok(None)
    }

    /// The point after which the stream can be resumed.
    pub fn resume_point(&self) -> &ResumePoint {
        &self.resume_point
    }
}

/// Bytes as lines: they end with CR, LF or both.
#[derive(Debug)]
struct Lines {
    /// How large an event may be.
    bytes_max: usize,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to here no line ends: a long line is not searched again with every part of it.
    searched: usize,
    /// The line before ended with CR, so an LF that follows belongs to it.
    after_return: bool,
    /// The first line was read.
    begun: bool,
}

impl Lines {
    fn new(bytes_max: usize) -> Self {
        let buffer = Vec::new();
        Self { bytes_max, buffer, start: 0, searched: 0, after_return: false, begun: false }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched = self.searched.saturating_sub(self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    fn next_line(&mut self) -> Result<Option<&str>, SseError> {
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
        if so_far > self.bytes_max.saturating_add(LINE_EXTRA_BYTES) {
            return Err(SseError::TooLarge(self.bytes_max));
        }
        let Some(end) = end else {
            self.searched = self.buffer.len();
            return Ok(None);
        };
        let start = std::mem::replace(&mut self.start, end + 1);
        self.searched = self.start;
        self.after_return = self.buffer[end] == b'\r';
        let line = &self.buffer[start..end];
        let is_first = !std::mem::replace(&mut self.begun, true);
        let marked = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first);
        let line = marked.unwrap_or(line);
        std::str::from_utf8(line).map(Some).map_err(|_| SseError::NotText)
    }
}

/// An event whose empty line has not come yet.
#[derive(Debug, Default)]
struct Unfinished {
    name: String,
    data: Option<String>,
    id: Option<String>,
}

impl Unfinished {
    /// Takes one line that is not empty.
    fn take(&mut self, line: &str, resume_point: &mut ResumePoint) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => value.clone_into(&mut self.name),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                resume_point.retry_ms = value.parse().ok().or(resume_point.retry_ms);
            }
            // A comment has no name; other fields have no meaning.
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.name.len() + length(&self.data) + length(&self.id)
    }

    /// The event, if it has data; its id counts either way.
    fn finish(&mut self, resume_point: &mut ResumePoint) -> Option<Event> {
        let Unfinished { name, data, id } = std::mem::take(self);
        if let Some(id) = &id {
            // An empty id says that the stream cannot be taken up again here.
            resume_point.last_id = (!id.is_empty()).then(|| id.clone());
        }
        data.map(|data| Event { id, name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parts: &[&[u8]], bytes_max: usize) -> (Vec<(String, String)>, ResumePoint) {
        let mut reader = SseReader::new(bytes_max);
        let mut events = Vec::new();
        for part in parts {
            reader.push(part);
            while let Some(event) = reader.next_event().unwrap() {
                events.push((event.kind().to_owned(), event.data));
            }
        }
        (events, reader.resume_point().clone())
    }

    fn data(parts: &[&[u8]]) -> Vec<String> {
        read(parts, 100).0.into_iter().map(|(_, data)| data).collect()
    }

    fn resume_point(last_id: Option<&str>, retry_ms: Option<u64>) -> ResumePoint {
        ResumePoint { last_id: last_id.map(str::to_owned), retry_ms }
    }

    #[test]
    fn sse_fields_make_events() {
        let stream = b": hello\nid: 7\nevent: endpoint\nretry: 500\ndata: a\ndata:b\ndata\n\n\
                       data:  c\nwhatever: x\n\nevent: nothing\n\n";
        let (events, resume_point_after) = read(&[stream], 100);
        let expected = [("endpoint", "a\nb\n"), ("message", " c")];
        let events: Vec<_> = events.iter().map(|(event, data)| (&**event, &**data)).collect();
        assert_eq!(events, expected);
        assert_eq!(resume_point_after, resume_point(Some("7"), Some(500)));
    }

    #[test]
    fn every_line_ending_and_chunking_is_accepted() {
        for stream in
            ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"]
        {
            let bytes = stream.as_bytes();
            assert_eq!(data(&[bytes]), ["a", "b"], "{stream:?}");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(data(&single), ["a", "b"], "{stream:?}");
        }
        assert_eq!(data(&[b"data: a\r", b"\n", b"\r", b"\ndata: b", b"\n\n"]), ["a", "b"]);
        let umlaut = "data: ü\n\n".as_bytes();
        assert_eq!(data(&[&umlaut[..7], &umlaut[7..]]), ["ü"]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(data(&[b"\xEF", b"\xBB\xBFdata: a\n\n"]), ["a"]);
        assert_eq!(data(&[b"data: a\n\n\xEF\xBB\xBFdata: b\n\n"]), ["a"]);
    }

    #[test]
    fn an_unfinished_event_is_dropped() {
        let (events, resume_point_after) = read(&[b"id: 1\ndata: a\n\nid: 2\ndata: b\n"], 100);
        assert_eq!(events.len(), 1);
        assert_eq!(resume_point_after, resume_point(Some("1"), None));
        assert_eq!(data(&[b"data: a\n\ndata: b"]), ["a"]);
    }

    #[test]
    fn each_event_has_its_own_id_and_name_however_the_stream_is_cut() {
        let stream = ": hello\nretry: 1000\n\nid: 7\nevent: snapshot\ndata: {\"a\":1}\n\n:\r\n\r\n\
            id: 8\r\ndata: one\r\ndata:two\r\n\r\nevent: end\ndata\n\nid: 9\ndata: cut";
        let event = |id: Option<&str>, name: &str, data: &str| Event {
            id: id.map(str::to_owned),
            name: name.to_owned(),
            data: data.to_owned(),
        };
        let expected = [
            event(Some("7"), "snapshot", "{\"a\":1}"),
            event(Some("8"), "", "one\ntwo"),
            event(None, "end", ""),
        ];
        for size in 1..stream.len() {
            let mut reader = SseReader::new(100);
            let mut events = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                reader.push(piece);
                events.extend(std::iter::from_fn(|| reader.next_event().unwrap()));
            }
            assert_eq!(events, expected, "in pieces of {size}");
            assert_eq!(reader.resume_point(), &resume_point(Some("8"), Some(1000)));
        }
    }

    #[test]
    fn a_resumed_stream_keeps_its_last_event_id() {
        let mut reader = SseReader::resumed(100, resume_point(Some("1"), Some(5)));
        reader.push(b"data: a\n\n");
        assert_eq!(reader.next_event().map(|event| event.map(|event| event.id)), Ok(Some(None)));
        assert_eq!(reader.resume_point(), &resume_point(Some("1"), Some(5)));
    }

    #[test]
    fn an_event_without_data_still_sets_the_last_event_id() {
        assert_eq!(
            read(&[b"id: 1\nretry: 5\n\n"], 100),
            (Vec::new(), resume_point(Some("1"), Some(5)))
        );
        let (events, resume_point_after) = read(&[b"id: 1\ndata: \n\n"], 100);
        assert_eq!((events[0].1.as_str(), resume_point_after), ("", resume_point(Some("1"), None)));
        assert_eq!(read(&[b"id: 1\n\nid\n\n"], 100).1, resume_point(None, None));
        let odd = b"id: a\0b\nretry: 1s\nretry: -1\nretry: 99999999999999999999\n\n";
        assert_eq!(read(&[odd], 100).1, resume_point(None, None));
    }

    #[test]
    fn lines_and_events_are_bounded() {
        let wrong = |parts: &[&[u8]]| {
            let mut reader = SseReader::new(10);
            for part in parts {
                reader.push(part);
                loop {
                    match reader.next_event() {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(error) => return Some(error),
                    }
                }
            }
            None
        };
        assert_eq!(wrong(&[b"data: 0123456789\n\n", b"data: 0123456789\n\n"]), None);
        assert_eq!(wrong(&[b"data: 0123456789a\n"]), Some(SseError::TooLarge(10)));
        assert_eq!(wrong(&[b"data: 01234\ndata: 56789\n"]), Some(SseError::TooLarge(10)));
        assert_eq!(wrong(&[b"id: 012345\nevent: 6789a\n"]), Some(SseError::TooLarge(10)));
        let endless: Vec<&[u8]> = vec![b"0123456789".as_slice(); 3];
        assert_eq!(wrong(&endless), Some(SseError::TooLarge(10)));
        assert_eq!(wrong(&[b"data: \xFF\n"]), Some(SseError::NotText));
        let comments: Vec<&[u8]> = vec![b": still here\n".as_slice(); 50];
        assert_eq!(wrong(&comments), None);
    }
}
