//! A page of tasks with the number of all of them, among very many, beside the two statements that
//! find the same in the same file by hand. The tasks are copies of one that the product made.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, params};

use super::wire;
use crate::Result;
use crate::http::Client;
use crate::load::{median, unexpected};
use crate::product::rows::DATABASE;
use crate::product::server::{Server, Site};

/// How often each is asked for; the middle time counts.
const ROUNDS: usize = 21;
/// The page, and one more row that says whether there is another page.
const LIMIT: usize = wire::PAGE + 1;

const OWNER: &str = "SELECT owner FROM runs WHERE listed IS NOT NULL LIMIT 1";
const COLUMNS: &str = "SELECT name FROM pragma_table_info('runs')";
const COUNT: &str = "SELECT count(*) FROM runs INDEXED BY runs_by_owner \
    WHERE listed = 'default' AND owner IS ?1";
const NEWEST: &str = "SELECT r.id, r.status, r.answer, r.changed_at, s.id \
    FROM runs AS r INDEXED BY runs_by_owner CROSS JOIN sessions AS s ON s.pk = r.session \
    WHERE r.listed = 'default' AND r.owner IS ?1 \
    ORDER BY r.changed_at DESC, r.id DESC LIMIT ?2";

/// How long a page takes.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    pub hand: Duration,
    /// Over A2A.
    pub ours: Duration,
}

/// Makes so many tasks, and asks for their first page both ways.
pub async fn measure(site: &Site, tasks: usize) -> Result<Pages> {
    let data = site.data()?;
    let server = Server::start(site, data.path()).await?;
    wire::sent(server.address()).await?;
    server.stop()?;
    let database = data.path().join(DATABASE);
    fill(&database, tasks)?;
    let hand = by_hand(&database, tasks)?;
    let server = Server::start(site, data.path()).await?;
    let ours = listed(server.address(), tasks).await?;
    server.stop()?;
    Ok(Pages { hand, ours })
}

/// Copies the only task until there are so many, each changed a moment before the last one.
fn fill(database: &Path, tasks: usize) -> Result<()> {
    let connection = Connection::open(database)?;
    let mut statement = connection.prepare(COLUMNS)?;
    let columns = statement.query_map([], |row| row.get(0))?;
    let columns = columns.collect::<rusqlite::Result<Vec<String>>>()?;
    let copied = |name: &String| match name.as_str() {
        "id" => "randomblob(16)".to_owned(),
        "no" => "r.no + n.value".to_owned(),
        "changed_at" => "r.changed_at - n.value".to_owned(),
        name => format!("r.{name}"),
    };
    let values: Vec<String> = columns.iter().map(copied).collect();
    let sql = format!(
        "WITH RECURSIVE n (value) AS \
         (SELECT 1 WHERE ?1 > 0 UNION ALL SELECT value + 1 FROM n WHERE value < ?1) \
         INSERT INTO runs ({}) SELECT {} FROM n CROSS JOIN runs AS r \
         WHERE r.id = (SELECT id FROM runs WHERE listed IS NOT NULL LIMIT 1)",
        columns.join(", "),
        values.join(", ")
    );
    connection.execute(&sql, params![i64::try_from(tasks - 1)?])?;
    Ok(())
}

fn by_hand(database: &Path, tasks: usize) -> Result<Duration> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let owner: Option<String> = connection.query_row(OWNER, [], |row| row.get(0))?;
    let mut count = connection.prepare(COUNT)?;
    let mut newest = connection.prepare(NEWEST)?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let counted: i64 = count.query_row(params![owner], |row| row.get(0))?;
        let rows = newest.query_map(params![owner, i64::try_from(LIMIT)?], |row| {
            Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(3)?))
        })?;
        let found = rows.collect::<rusqlite::Result<Vec<_>>>()?.len();
        times.push(begun.elapsed());
        if usize::try_from(counted)? != tasks || found != LIMIT.min(tasks) {
            return Err(format!("{counted} tasks and {found} of a page instead of {tasks}").into());
        }
    }
    Ok(median(times))
}

async fn listed(address: SocketAddr, tasks: usize) -> Result<Duration> {
    let request = wire::list(address);
    let wanted = format!(r#""totalSize":{tasks}"#);
    let mut client = Client::connect(address).await?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let answer = client.send(&request).await?;
        times.push(begun.elapsed());
        if answer.status != 200 || !String::from_utf8_lossy(answer.body).contains(&wanted) {
            return Err(unexpected(&format!("200 with {wanted}"), &answer));
        }
    }
    Ok(median(times))
}
