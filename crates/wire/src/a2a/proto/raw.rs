//! Raw fields of Protocol Buffers, before their meaning is known.

/// Numbers are written in seven bits a byte, so that the longest has ten.
const VARINT_BYTES_MAX: u32 = 10;
/// The largest number of a field.
const FIELD_MAX: u64 = (1 << 29) - 1;
/// How a value is written.
const VARINT: u8 = 0;
const EIGHT: u8 = 1;
const BYTES: u8 = 2;
const FOUR: u8 = 5;

const CUT_OFF: &str = "the bytes end in the middle of a value";

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Raw<'b> {
    Number(u64),
    Bytes(&'b [u8]),
    Eight([u8; 8]),
    /// No field of ours is written in four bytes.
    Four,
}

/// A value and the number of its field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry<'b> {
    pub(super) number: u32,
    pub(super) raw: Raw<'b>,
}

/// Reads a message field by field.
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field; none at the end.
    pub(super) fn entry(&mut self) -> Result<Option<Entry<'b>>, &'static str> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|_| key >> 3 <= FIELD_MAX);
        let number = number.filter(|number| *number > 0).ok_or("there is no field 0")?;
        let raw = match (key & 7) as u8 {
            VARINT => Raw::Number(self.varint()?),
            EIGHT => {
                let (eight, rest) = self.rest.split_first_chunk().ok_or(CUT_OFF)?;
                self.rest = rest;
                Raw::Eight(*eight)
            }
            BYTES => {
                let length = self.varint()?;
                Raw::Bytes(self.take(length)?)
            }
            FOUR => {
                self.take(4)?;
                Raw::Four
            }
            _ => return Err("a value is written in a way that is not known"),
        };
        Ok(Some(Entry { number, raw }))
    }

    fn take(&mut self, length: u64) -> Result<&'b [u8], &'static str> {
        let length = usize::try_from(length).map_err(|_| CUT_OFF)?;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, &'static str> {
        let mut value = 0_u64;
        for place in 0..VARINT_BYTES_MAX {
            let (byte, rest) = self.rest.split_first().ok_or(CUT_OFF)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number has more than ten bytes")
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_key(out: &mut Vec<u8>, number: u32, kind: u8) {
    put_varint(out, (u64::from(number) << 3) | u64::from(kind));
}

pub(super) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_key(out, number, VARINT);
    put_varint(out, value);
}

pub(super) fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    put_key(out, number, EIGHT);
    out.extend_from_slice(&value.to_le_bytes());
}

pub(super) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_key(out, number, BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_fields_are_read_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, 1, number);
            put_bytes(&mut bytes, 16, b"abc");
            put_double(&mut bytes, 2, 1.5);
            let mut reader = Reader::new(&bytes);
            let mut next = || reader.entry().unwrap();
            assert_eq!(next(), Some(Entry { number: 1, raw: Raw::Number(number) }));
            assert_eq!(next(), Some(Entry { number: 16, raw: Raw::Bytes(b"abc") }));
            let eight = Raw::Eight(1.5_f64.to_le_bytes());
            assert_eq!(next(), Some(Entry { number: 2, raw: eight }));
            assert_eq!(next(), None);
        }
    }

    #[test]
    fn malformed_bytes_are_refused() {
        let wrong: [&[u8]; 8] = [
            b"\x08",
            b"\x00\x00",
            b"\x0a\x05abc",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x09\x00\x00",
            b"\x0d\x00",
            b"\x0b\x0c",
        ];
        for bytes in wrong {
            assert!(Reader::new(bytes).entry().is_err(), "{bytes:?}");
        }
    }
}
