//! What makes a login ours: texts that no one can guess, and the proof that a code was asked for by
//! the one who takes it (RFC 7636).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::contracts::Entropy;
use kernel::values::ids::ContentHash;

/// A text of 256 random bits.
pub(super) fn secret(entropy: &dyn Entropy) -> String {
    let mut bytes = [0u8; 32];
    bytes[..16].copy_from_slice(&entropy.bits().to_be_bytes());
    bytes[16..].copy_from_slice(&entropy.bits().to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// What is shown of a verifier before it is known: its hash, method `S256`.
pub(super) fn challenge(verifier: &str) -> String {
    let hash = ContentHash::of(verifier.as_bytes());
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => byte - b'0',
        _ => byte - b'a' + 10,
    };
    // The hash is written in lower-case digits of 16, two for each byte.
    let pairs = hash.as_str().as_bytes().chunks_exact(2);
    let bytes: Vec<u8> = pairs.map(|pair| (digit(pair[0]) << 4) | digit(pair[1])).collect();
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_the_one_of_the_rfc() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
