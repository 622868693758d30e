//! Which server this is. `waypost up` leaves a token beside the data; a client that can read that
//! file asks the server for a proof that it knows the token, so that no other server which listens
//! at the same address is taken for it.

use kernel::values::ids::ContentHash;

/// The header in which a client sends its challenge: a short text, a new one each time.
pub const CHALLENGE: &str = "waypost-challenge";
/// A longer challenge is not answered.
pub const CHALLENGE_CHARS_MAX: usize = 64;

/// What a server that has this token answers to this challenge.
pub fn proof(token: &str, challenge: &str) -> String {
    ContentHash::of(format!("{token} {challenge}").as_bytes()).to_string()
}
