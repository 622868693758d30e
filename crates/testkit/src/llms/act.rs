//! What a fake model does with a request: answer, call tools, fail or break off.

use serde_json::Value;

/// What a model does with a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    Says(String),
    /// It calls tools.
    Calls {
        /// What it says before.
        text: String,
        /// The tools and their arguments.
        calls: Vec<(String, Value)>,
        /// It thinks first, where its provider shows that, and wants the thought back.
        thinks: bool,
    },
    /// It says that it will not.
    Refuses(String),
    /// Its answer became too long after this.
    Stops(String),
    /// It does not answer.
    Fails(Failure),
    /// It begins to answer, and then this.
    Breaks(Break),
}

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Too many requests; seven seconds.
    RateLimited,
    /// Too many requests; until a date, which is half a minute away.
    RateLimitedUntil,
    /// Not now.
    Overloaded,
    /// The conversation is too long.
    TooLong,
    /// No money is left.
    NoMoney,
    /// There is no model of this name.
    NoModel(String),
    /// The key is this one, which is wrong.
    WrongKey(String),
    /// The request is not as it must be, and why.
    Bad(String),
}

/// How an answer goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// It ends in good order, but too early.
    Cut,
    /// The connection ends in the middle.
    Dropped,
    /// It is a page for people.
    Page,
    /// It is not JSON any more.
    Nonsense,
    /// The provider fails in the middle and says so.
    Error,
    /// Nothing more comes.
    Silence,
    /// It never ends.
    Flood,
    /// It comes as a whole although a stream was asked for.
    Whole,
    /// It is somewhere else.
    Elsewhere,
}
