//! Framing: where the body of an answer ends, and what of it is data. What is not data is looked
//! at and forgotten.

use super::head::Head;
use bytes::{Buf, Bytes, BytesMut};
use reqwest::StatusCode;
use reqwest::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING};

/// So many digits the size of a chunk can have.
const DIGITS_MAX: u8 = 16;
/// How much of a body in chunks may be no data, whatever its size.
const FRAME_BYTES_FREE: u64 = 64 * 1024;
/// How much more of it for each byte of data.
const FRAME_BYTES_EACH: u64 = 16;
/// How much may follow the last chunk.
const TRAILER_BYTES_MAX: u64 = 64 * 1024;

/// How a body is told from what follows, and how far it was read.
pub(super) enum Framing {
    /// So many bytes are still to come.
    Length(u64),
    /// It comes in chunks.
    Chunks(Chunks),
    /// It ends with the connection.
    Close,
}

/// What comes next of a body.
pub(super) enum Next {
    /// A piece of it.
    Piece(Bytes),
    /// More must be read first.
    Unread,
    /// Its end.
    End,
}

impl Framing {
    /// How the body after this head is framed, by RFC 9112, section 6.3.
    pub(super) fn of(head: &Head) -> Result<Self, String> {
        if has_no_body(head.status) {
            return Ok(Self::Length(0));
        }
        if head.headers.contains_key(TRANSFER_ENCODING) {
            if head.is_old {
                return Err("it has a transfer coding, which HTTP/1.0 does not know".to_owned());
            }
            if !is_chunked(&head.headers) {
                return Err("it has a transfer coding other than `chunked`".to_owned());
            }
            return Ok(Self::Chunks(Chunks::default()));
        }
        Ok(length(&head.headers)?.map_or(Self::Close, Self::Length))
    }

    /// Whether the connection can take another request after this body.
    pub(super) fn keeps(&self, head: &Head) -> bool {
        let headers = &head.headers;
        let closes = headers.get_all(CONNECTION).iter().any(says_close);
        let frames = match self {
            Self::Close => false,
            // One that says both may be meant to be read in two ways.
            Self::Chunks(_) => !headers.contains_key(CONTENT_LENGTH),
            // One that speaks of a body where none can be may send it nonetheless.
            Self::Length(_) if has_no_body(head.status) => {
                !headers.contains_key(TRANSFER_ENCODING)
                    && matches!(length(headers), Ok(None | Some(0)))
            }
            Self::Length(_) => true,
        };
        frames && !closes && !head.is_old
    }

    /// The next piece of what was read.
    pub(super) fn next(&mut self, unread: &mut BytesMut) -> Result<Next, String> {
        if unread.is_empty() && !self.is_whole() {
            return Ok(Next::Unread);
        }
        match self {
            Self::Length(0) => Ok(Next::End),
            Self::Length(left) => Ok(Next::Piece(piece(unread, left))),
            Self::Chunks(chunks) => chunks.next(unread),
            Self::Close => Ok(Next::Piece(unread.split().freeze())),
        }
    }

    /// Whether all of it was read, as far as that can be known before the connection's end.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunks(chunks) => chunks.at == At::End,
            Self::Close => false,
        }
    }

    /// How much is to come, if that is known.
    pub(super) fn left(&self) -> Option<u64> {
        match self {
            Self::Length(left) => Some(*left),
            Self::Chunks(_) | Self::Close => None,
        }
    }

    /// The connection ended, and all that came was read: whether the body is whole with it.
    pub(super) fn ended(&self) -> Result<(), String> {
        match self {
            Self::Close => Ok(()),
            whole if whole.is_whole() => Ok(()),
            Self::Length(left) => Err(format!("it ended {left} bytes before the end of its body")),
            Self::Chunks(_) => Err("it ended before the last chunk of its body".to_owned()),
        }
    }
}

/// A piece of what was read: as much as there is of what is to come.
fn piece(unread: &mut BytesMut, left: &mut u64) -> Bytes {
    let bytes = usize::try_from(*left).map_or(unread.len(), |left| left.min(unread.len()));
    *left -= bytes as u64;
    unread.split_to(bytes).freeze()
}

fn has_no_body(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Whether the one transfer coding is `chunked`. We asked for no other, and could not read it.
fn is_chunked(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let only = codings.next().filter(|_| codings.next().is_none());
    only.is_some_and(|only| only.as_bytes().eq_ignore_ascii_case(b"chunked"))
}

fn says_close(value: &HeaderValue) -> bool {
    let mut words = value.as_bytes().split(|byte| *byte == b',');
    words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// The length that the headers tell; all that do must tell the same.
fn length(headers: &HeaderMap) -> Result<Option<u64>, String> {
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        for told in value.as_bytes().split(|byte| *byte == b',') {
            let told = digits(told.trim_ascii()).ok_or("its content-length is not a number")?;
            if length.is_some_and(|length| length != told) {
                return Err("it has two lengths that are not the same".to_owned());
            }
            length = Some(told);
        }
    }
    Ok(length)
}

fn digits(text: &[u8]) -> Option<u64> {
    let add = |sum: u64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    };
    if text.is_empty() { None } else { text.iter().try_fold(0, add) }
}

/// A body in chunks.
#[derive(Default)]
pub(super) struct Chunks {
    at: At,
    /// What is to come of the chunk, or its size as far as it was read.
    left: u64,
    /// How many digits of its size were read.
    digits: u8,
    /// How much was data until now.
    data: u64,
    /// How much was not.
    frame: u64,
    /// How much followed the last chunk.
    trailer: u64,
}

/// Where in a body in chunks.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    Size,
    SpaceAfterSize,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerOrEnd,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    End,
}

impl Chunks {
    fn next(&mut self, unread: &mut BytesMut) -> Result<Next, String> {
        let skipped = self.skip(unread)?;
        unread.advance(skipped);
        match self.at {
            At::End => Ok(Next::End),
            At::Data if !unread.is_empty() => {
                let piece = piece(unread, &mut self.left);
                self.data = self.data.saturating_add(piece.len() as u64);
                if self.left == 0 {
                    self.at = At::DataCr;
                }
                Ok(Next::Piece(piece))
            }
            _ => Ok(Next::Unread),
        }
    }

    /// Looks at what is no data; how many bytes that are.
    fn skip(&mut self, bytes: &[u8]) -> Result<usize, String> {
        for (skipped, byte) in bytes.iter().enumerate() {
            if matches!(self.at, At::Data | At::End) {
                return Ok(skipped);
            }
            self.frame += 1;
            let most = self.data.saturating_mul(FRAME_BYTES_EACH).saturating_add(FRAME_BYTES_FREE);
            if self.frame > most {
                return Err("its chunks are hardly anything but frames".to_owned());
            }
            self.step(*byte)?;
        }
        Ok(bytes.len())
    }

    fn step(&mut self, byte: u8) -> Result<(), String> {
        self.at = match (self.at, byte) {
            (At::Size, byte) if byte.is_ascii_hexdigit() => self.size(byte)?,
            (At::Size, b' ' | b'\t') if self.digits > 0 => At::SpaceAfterSize,
            (At::Size, b';') if self.digits > 0 => At::Extension,
            (At::Size, b'\r') if self.digits > 0 => At::SizeLf,
            (At::SpaceAfterSize, b' ' | b'\t') => At::SpaceAfterSize,
            (At::SpaceAfterSize, b';') => At::Extension,
            (At::SpaceAfterSize | At::Extension, b'\r') => At::SizeLf,
            (At::Extension, byte) if byte != b'\n' => At::Extension,
            (At::SizeLf, b'\n') if self.left > 0 => At::Data,
            (At::SizeLf, b'\n') => At::TrailerOrEnd,
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => {
                self.digits = 0;
                At::Size
            }
            (At::TrailerOrEnd, b'\r') => At::EndLf,
            (At::EndLf, b'\n') => At::End,
            _ => self.trailer(byte)?,
        };
        Ok(())
    }

    fn size(&mut self, byte: u8) -> Result<At, String> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            _ => (byte | 0x20) - b'a' + 10,
        };
        self.digits += 1;
        let size = self.left.checked_mul(16).map(|size| size + u64::from(digit));
        match size.filter(|_| self.digits <= DIGITS_MAX) {
            Some(size) => self.left = size,
            None => return Err("a chunk of its body is too large for any memory".to_owned()),
        }
        Ok(At::Size)
    }

    /// A byte of what follows the last chunk, which nobody reads; else it is out of place.
    fn trailer(&mut self, byte: u8) -> Result<At, String> {
        self.trailer += 1;
        if self.trailer > TRAILER_BYTES_MAX {
            let kib = TRAILER_BYTES_MAX / 1024;
            return Err(format!("more than {kib} KiB follow the last chunk of its body"));
        }
        match self.at {
            At::TrailerOrEnd | At::TrailerName if is_of_name(byte) => Ok(At::TrailerName),
            At::TrailerName if byte == b':' => Ok(At::TrailerValue),
            At::TrailerValue if byte == b'\r' => Ok(At::TrailerLf),
            At::TrailerValue if byte == b'\t' || !byte.is_ascii_control() => Ok(At::TrailerValue),
            At::TrailerLf if byte == b'\n' => Ok(At::TrailerOrEnd),
            _ => Err("the chunks of its body are not framed as HTTP has it".to_owned()),
        }
    }
}

/// Whether a byte can stand in the name of a header.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &str = "transfer-encoding: chunked\r\n";

    /// The framing after these headers, and whether the connection stays.
    fn framed(version: &str, status: u16, headers: &str) -> Result<(Framing, bool), String> {
        let text = format!("HTTP/{version} {status} X\r\n{headers}\r\n");
        let head = Head::take(&mut BytesMut::from(&text[..])).unwrap().unwrap();
        let framing = Framing::of(&head)?;
        let keeps = framing.keeps(&head);
        Ok((framing, keeps))
    }

    fn told(version: &str, status: u16, headers: &str) -> String {
        match framed(version, status, headers) {
            Ok((Framing::Length(bytes), keeps)) => format!("{bytes} {keeps}"),
            Ok((Framing::Chunks(_), keeps)) => format!("chunks {keeps}"),
            Ok((Framing::Close, keeps)) => format!("close {keeps}"),
            Err(why) => why,
        }
    }

    #[test]
    fn a_head_tells_how_its_body_ends() {
        for (headers, expected) in [
            ("content-length: 5\r\n", "5 true"),
            ("content-length: 0\r\n", "0 true"),
            ("content-length: 5\r\nContent-Length: 5, 05\r\n", "5 true"),
            ("content-length: 18446744073709551615\r\n", "18446744073709551615 true"),
            ("transfer-encoding: Chunked\r\n", "chunks true"),
            ("content-length: 5\r\ntransfer-encoding: chunked\r\n", "chunks false"),
            ("content-length: x\r\ntransfer-encoding: chunked\r\n", "chunks false"),
            ("", "close false"),
            ("connection: close\r\ncontent-length: 5\r\n", "5 false"),
            ("connection: keep-alive\r\nconnection: x ,CLOSE\r\ncontent-length: 5\r\n", "5 false"),
            ("connection: closed\r\ncontent-length: 5\r\n", "5 true"),
        ] {
            assert_eq!(told("1.1", 200, headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn chunks_are_the_only_transfer_coding() {
        for codings in [
            "",
            "gzip",
            "identity",
            "gzip, chunked",
            "gzip ,\tchunked",
            "chunked, gzip",
            "chunked, chunked",
            ", chunked",
            "chunked,",
            "chunked;q=1",
            "gzip\r\ntransfer-encoding: chunked",
            "chunked\r\ntransfer-encoding: gzip",
            "chunked\r\ntransfer-encoding: chunked",
            "gzip\r\ncontent-length: 5",
        ] {
            let why = told("1.1", 200, &format!("transfer-encoding: {codings}\r\n"));
            assert_eq!(why, "it has a transfer coding other than `chunked`", "{codings:?}");
        }
    }

    #[test]
    fn a_length_is_one_number() {
        for length in ["", "-1", "+1", "0x5", "5 5", "5,", "five", "18446744073709551616"] {
            let headers = format!("content-length: {length}\r\n");
            let why = told("1.1", 200, &headers);
            assert_eq!(why, "its content-length is not a number", "{length}");
        }
        for headers in ["content-length: 5, 6\r\n", "content-length: 5\r\ncontent-length: 6\r\n"] {
            let why = told("1.1", 200, headers);
            assert_eq!(why, "it has two lengths that are not the same", "{headers}");
        }
    }

    #[test]
    fn some_answers_have_no_body_and_old_ones_no_chunks() {
        for status in [204, 304] {
            assert_eq!(told("1.1", status, ""), "0 true");
            assert_eq!(told("1.1", status, "content-length: 0\r\n"), "0 true");
            // What it speaks of may follow nonetheless.
            assert_eq!(told("1.1", status, "content-length: 5\r\n"), "0 false");
            assert_eq!(told("1.1", status, CHUNKED), "0 false");
        }
        assert_eq!(told("1.0", 200, "content-length: 5\r\n"), "5 false");
        let keeps = "connection: keep-alive\r\ncontent-length: 5\r\n";
        assert_eq!(told("1.0", 200, keeps), "5 false");
        assert!(told("1.0", 200, CHUNKED).contains("HTTP/1.0"));
    }

    /// All data of a body that is read in such pieces and ends with the connection, and what is
    /// left behind it.
    fn read<'a>(
        headers: &str,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(Vec<u8>, Vec<u8>), String> {
        let (mut framing, _) = framed("1.1", 200, headers)?;
        let (mut unread, mut data) = (BytesMut::new(), Vec::new());
        for piece in pieces {
            unread.extend_from_slice(piece);
            while let Next::Piece(piece) = framing.next(&mut unread)? {
                assert!(!piece.is_empty());
                data.extend_from_slice(&piece);
            }
        }
        framing.ended()?;
        Ok((data, unread.to_vec()))
    }

    /// The same, however it is cut.
    fn read_in_all_ways(headers: &str, body: &[u8]) -> Result<(Vec<u8>, Vec<u8>), String> {
        let whole = read(headers, [body].into_iter());
        for cut in 0..=body.len() {
            let (one, other) = body.split_at(cut);
            assert_eq!(read(headers, [one, other].into_iter()), whole, "cut at {cut}");
        }
        assert_eq!(read(headers, body.chunks(1)), whole, "byte for byte");
        whole
    }

    #[test]
    fn bodies_are_the_same_however_they_come() {
        for (headers, body, data, left) in [
            ("content-length: 5\r\n", "hello", "hello", ""),
            ("content-length: 5\r\n", "helloHTTP", "hello", "HTTP"),
            ("content-length: 0\r\n", "", "", ""),
            ("", "all of it", "all of it", ""),
            (CHUNKED, "5\r\nhello\r\n0\r\n\r\n", "hello", ""),
            (CHUNKED, "0005\r\nhello\r\n00\r\n\r\nHTTP", "hello", "HTTP"),
            (CHUNKED, "2 \t\r\nhe\r\n3;a=\"b\"\r\nllo\r\n0 ;x\r\n\r\n", "hello", ""),
            (
                CHUNKED,
                "A\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n",
                "01234567890123456789a",
                "",
            ),
            (CHUNKED, "1\r\nx\r\n0\r\na: b\r\nC_d:\r\n\r\n", "x", ""),
        ] {
            let expected = (data.as_bytes().to_vec(), left.as_bytes().to_vec());
            assert_eq!(read_in_all_ways(headers, body.as_bytes()), Ok(expected), "{body:?}");
        }
    }

    #[test]
    fn bodies_that_are_not_framed_are_refused_however_they_come() {
        for (body, why) in [
            ("\r\n", "not framed"),
            (";a\r\n", "not framed"),
            (" 5\r\nhello\r\n", "not framed"),
            ("5 5\r\nhello\r\n", "not framed"),
            ("-5\r\nhello\r\n", "not framed"),
            ("0x5\r\nhello\r\n", "not framed"),
            ("5\nhello\r\n", "not framed"),
            ("5\rhello\r\n", "not framed"),
            ("5;a\nhello\r\n", "not framed"),
            ("5\r\nhello\n0\r\n\r\n", "not framed"),
            ("5\r\nhello!\r\n0\r\n\r\n", "not framed"),
            ("5\r\nhello\r0\r\n\r\n", "not framed"),
            ("0\r\n\n", "not framed"),
            ("0\r\n\r\r", "not framed"),
            ("0\r\nno name\r\n\r\n", "not framed"),
            ("0\r\na: b\n\r\n", "not framed"),
            ("0\r\n: b\r\n\r\n", "not framed"),
            ("10000000000000000\r\n", "too large"),
            ("00000000000000005\r\nhello\r\n0\r\n\r\n", "too large"),
            ("5\r\nhell", "before the last chunk"),
            ("5\r\nhello\r\n", "before the last chunk"),
            ("ffffffffffffffff\r\nhello", "before the last chunk"),
            ("5\r\nhello\r\n0\r\n", "before the last chunk"),
            ("5\r\nhello\r\n0\r\n\r", "before the last chunk"),
        ] {
            let told = read_in_all_ways(CHUNKED, body.as_bytes()).unwrap_err();
            assert!(told.contains(why), "{body:?}: {told}");
        }
        let told = read_in_all_ways("content-length: 5\r\n", b"hell").unwrap_err();
        assert_eq!(told, "it ended 1 bytes before the end of its body");
    }

    #[test]
    fn what_is_no_data_is_bounded() {
        let flood = |text: &str| read(CHUNKED, [text.as_bytes()].into_iter());
        let free = FRAME_BYTES_FREE as usize;
        let extended = |bytes: usize| format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(bytes));
        assert!(flood(&extended(free / 2)).is_ok());
        assert!(flood(&extended(free)).unwrap_err().contains("frames"));
        let trailer = |bytes: usize| format!("{}0\r\na:{}\r\n\r\n", data(), "t".repeat(bytes));
        assert!(flood(&trailer(TRAILER_BYTES_MAX as usize / 2)).is_ok());
        let told = flood(&trailer(TRAILER_BYTES_MAX as usize)).unwrap_err();
        assert!(told.contains("follow the last chunk"), "{told}");
        // Bytes in chunks of their own are a waste, but no attack.
        let single = "1\r\nx\r\n".repeat(100_000) + "0\r\n\r\n";
        assert_eq!(flood(&single).unwrap().0.len(), 100_000);
        let padded = "1;eeeeeeeeeeeeeeee\r\nx\r\n".repeat(100_000) + "0\r\n\r\n";
        assert!(flood(&padded).unwrap_err().contains("frames"));
    }

    /// A chunk large enough that what frames it is no matter.
    fn data() -> String {
        let bytes = FRAME_BYTES_FREE as usize;
        format!("{bytes:x}\r\n{}\r\n", "d".repeat(bytes))
    }
}
