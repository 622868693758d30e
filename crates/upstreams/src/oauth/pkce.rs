//! PKCE (RFC 7636) and unguessable `state` values, which bind a login to us.

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

/// The challenge of a verifier: its hash, method `S256`.
pub(super) fn challenge(verifier: &str) -> String {
    let hash = ContentHash::of(verifier.as_bytes());
    // The hash is written in digits of 16, two for each byte.
    let digits = hash.as_str();
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).filter_map(byte).collect();
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pkce_challenge_matches_rfc_7636() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
