//! What others notice of a flood of credentials whose key ids no one knows: tokens of the issuer
//! that name another key each time, and keys that were never made. Each comes from another address,
//! so that none of them is refused for those before it.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use tokio::task::JoinSet;

use super::issuer::{self, Signer};
use super::station::Station;
use super::{Options, met};
use crate::Result;
use crate::http::{Answer, Client};
use crate::load::{self, Job, Summary, unexpected};
use crate::mcp::wire;
use crate::report::{self, Table, ms};

/// Over how many connections it comes.
const FLOODERS: usize = 4;
/// How much longer the slowest of a hundred requests of others may take.
const P99_RATIO_MAX: f64 = 2.0;
/// Where it comes from: another address of `10.0.0.0/8` each time.
const NETWORK: u32 = 10 << 24;
const ADDRESSES: u32 = 1 << 24;
/// How many characters of a key are its secret.
const SECRET_CHARS: usize = 52;

/// Measures requests alone and beside the flood by turns, and says whether the target was met.
pub async fn measure(
    options: &Options,
    station: &Station,
    signer: &Signer,
    targets: &mut Table,
) -> Result<()> {
    let cases = cases(station, signer).await?;
    let mut rounds: Vec<Vec<Noticed>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 1..=options.rounds {
        report::progress(&format!("unknown key ids, {} clients, round {round}", options.clients));
        for (case, rounds) in cases.iter().zip(&mut rounds) {
            rounds.push(case.measure(options).await?);
        }
    }
    let mut table = Table::new(&[
        "who", "alone p50 ms", "alone p99 ms", "beside p50 ms", "beside p99 ms", "p99 ratio",
        "unknown ids/s",
    ]);
    let middle = rounds.into_iter().filter_map(|rounds| load::middle(rounds, Noticed::ratio));
    for (case, noticed) in cases.iter().zip(middle) {
        let Noticed { alone, beside, unknown_rate } = &noticed;
        let mut cells = vec![case.name.to_owned()];
        cells.extend([alone.p50, alone.p99, beside.p50, beside.p99].map(ms));
        let ratio = noticed.ratio();
        cells.extend([format!("{ratio:.2}"), format!("{unknown_rate:.0}")]);
        table.row(cells);
        targets.row(vec![
            format!(
                "{}, {} clients: p99 ≤ {P99_RATIO_MAX:.0} × that alone",
                case.name, options.clients
            ),
            format!("{ratio:.2} ×"),
            met(ratio <= P99_RATIO_MAX),
        ]);
    }
    let note = format!(
        "`tools/call` of `math::add` alone, and beside {FLOODERS} connections that each send one \
         unknown key id after the other. One thread sends all of it."
    );
    report::section("Beside unknown key ids", &note, &table);
    Ok(())
}

/// Others, and the flood beside them.
struct Case {
    name: &'static str,
    others: Arc<Job>,
    flood: Arc<Flood>,
}

/// Others have the kind of credential that the flood pretends to have: its path is theirs.
async fn cases(station: &Station, signer: &Signer) -> Result<[Case; 2]> {
    let address = station.address();
    let token = signer.token(0)?;
    let (_, rest) = token.split_once('.').ok_or("a token of the issuer has no parts")?;
    let forged = Forged::Token { rest: rest.to_owned() };
    let case = |name, credential: &str, forged| Case {
        name,
        others: Job::of(address, wire::call_as(address, credential), wire::called),
        flood: Arc::new(Flood { address, forged, sent: AtomicU32::new(0) }),
    };
    Ok([
        case("with a key, beside keys with unknown ids", &station.key().await?, Forged::Key),
        case("with a known token (RS256), beside tokens with unknown key ids", &token, forged),
    ])
}

impl Case {
    async fn measure(&self, options: &Options) -> Result<Noticed> {
        let alone = load::run_for(&self.others, options.clients, options.span).await?;
        let mut flooders = JoinSet::new();
        for _ in 0..FLOODERS {
            let client = Client::connect(self.flood.address).await?;
            flooders.spawn(Arc::clone(&self.flood).run(client));
        }
        let sent = self.flood.sent.load(Ordering::Relaxed);
        let begun = Instant::now();
        // The flood ends with its set.
        let beside = tokio::select! {
            beside = load::run_for(&self.others, options.clients, options.span) => beside?,
            Some(ended) = flooders.join_next() => match ended?? {},
        };
        let sent = self.flood.sent.load(Ordering::Relaxed) - sent;
        let unknown_rate = f64::from(sent) / begun.elapsed().as_secs_f64();
        Ok(Noticed { alone, beside, unknown_rate })
    }
}

/// What others noticed in one round.
struct Noticed {
    alone: Summary,
    beside: Summary,
    /// How many unknown ids came in a second.
    unknown_rate: f64,
}

impl Noticed {
    fn ratio(&self) -> f64 {
        self.beside.p99.as_secs_f64() / self.alone.p99.as_secs_f64()
    }
}

/// Requests with credentials that are made up.
struct Flood {
    address: SocketAddr,
    forged: Forged,
    /// How many there were: each has another number.
    sent: AtomicU32,
}

/// What is made up.
enum Forged {
    /// The header of a token; the rest is a good one's. No one gets as far as its signature, so it
    /// is not signed again, which would take the time of those that are measured.
    Token { rest: String },
    /// A whole key.
    Key,
}

impl Flood {
    /// Sends one after the other until it is stopped, or one is not refused.
    async fn run(self: Arc<Self>, mut client: Client) -> Result<Infallible> {
        loop {
            let request = self.request(self.sent.fetch_add(1, Ordering::Relaxed));
            refused(&client.send(&request).await?)?;
        }
    }

    fn request(&self, number: u32) -> Vec<u8> {
        let from = Ipv4Addr::from(NETWORK + number % ADDRESSES);
        let credential = self.forged.credential(number);
        wire::call_as(self.address, &format!("x-forwarded-for: {from}\r\n{credential}"))
    }
}

impl Forged {
    /// A header line.
    fn credential(&self, number: u32) -> String {
        match self {
            Self::Token { rest } => {
                let header = issuer::header(&format!("unknown-{number}"));
                format!("authorization: Bearer {header}.{rest}")
            }
            Self::Key => format!("x-api-key: {}\r\n", unknown_key(number)),
        }
    }
}

/// A text in the form of a key. An id has letters, and not every digit: those of the number are
/// written as letters.
fn unknown_key(number: u32) -> String {
    let digits = format!("{number:010}");
    let id: String = digits.bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
    format!("wp_{id}_{}", "a".repeat(SECRET_CHARS))
}

/// A check: the credential is not known.
fn refused(answer: &Answer<'_>) -> Result<()> {
    if answer.status == 401 {
        return Ok(());
    }
    Err(unexpected("401 for an unknown key id", answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::Value;

    fn sent(forged: Forged, number: u32) -> String {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let flood = Flood { address, forged, sent: AtomicU32::new(0) };
        String::from_utf8_lossy(&flood.request(number)).into_owned()
    }

    #[test]
    fn an_unknown_key_has_the_form_of_a_key_and_an_address_of_its_own() {
        let request = sent(Forged::Key, 289);
        assert!(request.contains("\r\nx-forwarded-for: 10.0.1.33\r\n"), "{request}");
        assert!(request.contains("\r\nx-api-key: wp_aaaaaaacij_aaaa"), "{request}");
        let last = unknown_key(u32::MAX);
        let parts: Vec<usize> = last.split('_').map(str::len).collect();
        assert_eq!(parts, [2, 10, SECRET_CHARS], "{last}");
        assert!(sent(Forged::Key, u32::MAX).contains("x-forwarded-for: 10.255.255.255\r\n"));
    }

    #[test]
    fn an_unknown_token_is_a_good_one_with_another_key_id() -> Result<()> {
        let signer = Signer::new(SocketAddr::from(([127, 0, 0, 1], 1)))?;
        let token = signer.token(0)?;
        let (_, rest) = token.split_once('.').ok_or("no parts")?;
        let request = sent(Forged::Token { rest: rest.to_owned() }, 7);
        assert!(request.contains(&format!(".{rest}content-length: ")), "{request}");
        let (_, token) = request.split_once("Bearer ").ok_or("no token")?;
        let (header, _) = token.split_once('.').ok_or("no parts")?;
        let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header)?)?;
        assert_eq!(header["kid"], "unknown-7");
        Ok(())
    }
}
