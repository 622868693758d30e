//! Bytes in any charset as UTF-8, piece by piece. A byte that cannot be decoded becomes one that no
//! UTF-8 has, so that the row it is in, and no other, is found to be wrong.

use encoding_rs::{Decoder, DecoderResult, Encoder, EncoderResult, Encoding};

/// What stands for bytes that cannot be decoded.
const UNDECODABLE: u8 = 0xff;

/// How many bytes are decoded at once, at most.
const PIECE_BYTES: usize = 16 * 1024;

/// A charset that files can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charset(&'static Encoding);

impl Default for Charset {
    fn default() -> Self {
        Self(encoding_rs::UTF_8)
    }
}

impl Charset {
    /// By any of its usual names, such as `utf-8`, `ISO-8859-1` or `windows-1252`.
    pub fn named(name: &str) -> Option<Self> {
        let found = Encoding::for_label(name.trim().as_bytes());
        found.filter(|found| *found != encoding_rs::REPLACEMENT).map(Self)
    }

    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

/// Turns a file into UTF-8. A byte order mark at its beginning is left out, and decides.
pub struct Utf8Decoder {
    decoder: Decoder,
}

impl Utf8Decoder {
    pub fn new(charset: Charset) -> Self {
        Self { decoder: charset.0.new_decoder() }
    }

    /// The next bytes of the file as UTF-8.
    pub fn decode(&mut self, bytes: &[u8], is_last: bool, decoded: &mut Vec<u8>) {
        let mut rest = bytes;
        let mut buffer = [0; PIECE_BYTES];
        loop {
            let (result, read, written) =
                self.decoder.decode_to_utf8_without_replacement(rest, &mut buffer, is_last);
            rest = rest.get(read..).unwrap_or_default();
            decoded.extend_from_slice(buffer.get(..written).unwrap_or_default());
            match result {
                DecoderResult::InputEmpty => return,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => decoded.push(UNDECODABLE),
            }
        }
    }
}

/// Turns UTF-8 into a charset. A character that it does not have becomes `?`, and is counted.
pub struct CharsetEncoder {
    encoder: Encoder,
    pub lost: u64,
}

impl CharsetEncoder {
    pub fn new(charset: Charset) -> Self {
        Self { encoder: charset.0.output_encoding().new_encoder(), lost: 0 }
    }

    pub fn encode(&mut self, text: &str, is_last: bool, encoded: &mut Vec<u8>) {
        let mut rest = text;
        let mut buffer = [0; PIECE_BYTES];
        loop {
            let (result, read, written) =
                self.encoder.encode_from_utf8_without_replacement(rest, &mut buffer, is_last);
            rest = rest.get(read..).unwrap_or_default();
            encoded.extend_from_slice(buffer.get(..written).unwrap_or_default());
            match result {
                EncoderResult::InputEmpty => return,
                EncoderResult::OutputFull => {}
                EncoderResult::Unmappable(_) => {
                    self.lost += 1;
                    let (_, _, written, _) = self.encoder.encode_from_utf8("?", &mut buffer, false);
                    encoded.extend_from_slice(buffer.get(..written).unwrap_or_default());
                }
            }
        }
    }
}
