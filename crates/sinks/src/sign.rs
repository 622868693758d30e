//! Standard Webhooks signatures: `v1` is HMAC-SHA256 over id, time and body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kernel::values::secret::Secret;
use ring::hmac;

/// Prefix of a secret.
const PREFIX: &str = "whsec_";
/// The shortest key that the specification allows.
const KEY_BYTES_MIN: usize = 24;

/// Signs with one key, or with several while one replaces another.
pub(crate) struct Signer {
    keys: Vec<hmac::Key>,
}

impl Signer {
    /// Reads secrets with spaces between them, or says what is wrong, without them.
    pub(crate) fn read(secret: &Secret) -> Result<Self, String> {
        let keys: Vec<hmac::Key> =
            secret.expose().split_whitespace().map(key).collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err("has no secret".to_owned());
        }
        Ok(Self { keys })
    }

    /// The signatures of a message, for its header.
    pub(crate) fn sign(&self, id: &str, seconds: i64, body: &str) -> String {
        let message = format!("{id}.{seconds}.{body}");
        let signed = |key: &hmac::Key| {
            let tag = hmac::sign(key, message.as_bytes());
            format!("v1,{}", STANDARD.encode(tag.as_ref()))
        };
        self.keys.iter().map(signed).collect::<Vec<_>>().join(" ")
    }
}

fn key(secret: &str) -> Result<hmac::Key, String> {
    let Some(coded) = secret.strip_prefix(PREFIX) else {
        return Err(format!("has a secret that does not begin with `{PREFIX}`"));
    };
    let bytes = STANDARD
        .decode(coded)
        .map_err(|_| format!("has a secret that is no base64 after `{PREFIX}`"))?;
    if bytes.len() < KEY_BYTES_MIN {
        let length = bytes.len();
        return Err(format!("has a secret of {length} bytes, fewer than {KEY_BYTES_MIN}"));
    }
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const SIGNED: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn wrong(secret: &str) -> Option<String> {
        Signer::read(&Secret::new(secret)).err()
    }

    #[test]
    fn signatures_match_the_standard_webhooks_vector() {
        let signer = Signer::read(&Secret::new(SECRET)).unwrap();
        assert_eq!(signer.sign(ID, 1_614_265_330, "{\"test\": 2432232314}"), SIGNED);
        assert_ne!(signer.sign(ID, 1_614_265_331, "{\"test\": 2432232314}"), SIGNED);
    }

    #[test]
    fn several_secrets_give_several_signatures() {
        let other = format!("whsec_{}", STANDARD.encode([7; 32]));
        let signer = Signer::read(&Secret::new(format!(" {other} {SECRET}"))).unwrap();
        let signed = signer.sign(ID, 1_614_265_330, "{\"test\": 2432232314}");
        let (first, second) = signed.split_once(' ').unwrap();
        assert_eq!((first.starts_with("v1,"), second), (true, SIGNED));
        assert_ne!(first, second);
    }

    #[test]
    fn an_invalid_secret_is_reported_without_its_text() {
        for (secret, part) in [
            ("", "no secret"),
            ("  ", "no secret"),
            ("hushhush", "does not begin with `whsec_`"),
            ("whsec_hush hush", "of 3 bytes"),
            ("whsec_hush*", "no base64"),
            ("whsec_aHVzaA==", "of 4 bytes"),
        ] {
            let told = wrong(secret).unwrap();
            assert!(told.contains(part) && !told.contains("hush"), "{secret}: {told}");
        }
    }
}
