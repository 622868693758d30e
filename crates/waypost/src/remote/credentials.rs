//! Hints for refused credentials: which variable to set, which scope or role is missing.

use crate::environment::{ADMIN_KEY, API_KEY};
use crate::exit::{Exit, Failure};
use kernel::identity::roles::Role;
use kernel::values::caller::Act;
use serde_json::Value;

/// What the hint of a server says that knows no credentials.
const ASKS_FOR_NONE: &str = "asks for no credentials";
/// What a server says where scopes or roles do not reach; its problem then names the act.
const FORBIDDEN: &str = "forbidden";
/// The hint of a server that knows nothing better. Any other one knows more than is guessed here.
const ASK_SOMEONE: &str = "ask an administrator of the realm";

/// The same failure, with a hint for people at a command line. `sends_key` says whether the API key
/// was sent.
pub(crate) fn explained(mut failure: Failure, sends_key: bool) -> Failure {
    match failure.exit {
        Exit::Auth => failure.hint = Some(unknown(failure.hint.as_deref(), sends_key)),
        Exit::Denied if failure.code == FORBIDDEN => {
            let missing = missing(failure.problem.as_deref(), failure.hint.as_deref());
            failure.hint = missing.or(failure.hint);
        }
        _ => {}
    }
    failure
}

/// What to do where the server does not know who calls.
fn unknown(said: Option<&str>, sends_key: bool) -> String {
    match (said, sends_key) {
        (Some(said), _) if said.contains(ASKS_FOR_NONE) => {
            let sent = if sends_key { API_KEY } else { ADMIN_KEY };
            format!("unset {sent}: this server asks for no credentials")
        }
        (Some(said), true) if said.contains(ADMIN_KEY) => {
            format!("unset {API_KEY}: this server knows no key but {ADMIN_KEY}")
        }
        (_, true) => format!(
            "{API_KEY} is no valid key of this server: it may have expired, be revoked or belong \
             to another server; who administers sees it in `waypost key ls`"
        ),
        // It says itself which variable is meant.
        (Some(said), false) if said.contains(ADMIN_KEY) => said.to_owned(),
        (_, false) => format!(
            "set {API_KEY} to a key of this server; who administers makes one with `waypost key \
             add`, with the server stopped or with {ADMIN_KEY} set"
        ),
    }
}

/// What is missing, as far as the problem names it, and the server itself says nothing of it.
fn missing(problem: Option<&Value>, said: Option<&str>) -> Option<String> {
    let problem = problem?;
    if let Some(scope) = problem["scope"].as_str() {
        return Some(format!(
            "the key lacks the scope `{scope}`: make one with `waypost key add --scope {scope}`"
        ));
    }
    if said.is_some_and(|said| said != ASK_SOMEONE) {
        return None;
    }
    let role = role_for(Act::from_name(problem["act"].as_str()?)?)?.name();
    Some(format!(
        "`waypost whoami` shows your roles; the least role that may do this is `{role}`, unless a \
         policy of the realm forbids it; ask an administrator of the realm"
    ))
}

/// The least built-in role that permits this on what is everybody's; none permits impersonation.
fn role_for(act: Act) -> Option<Role> {
    match act {
        Act::Read | Act::Export => Some(Role::Viewer),
        Act::Run | Act::Talk | Act::Submit | Act::Call | Act::Save => Some(Role::Member),
        Act::Answer => Some(Role::Approver),
        Act::Cancel | Act::Fork | Act::Remove | Act::Define | Act::LogIn | Act::Operate => {
            Some(Role::Operator)
        }
        Act::Administer => Some(Role::Admin),
        Act::Impersonate => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hint(exit: Exit, said: Option<&str>, sends_key: bool) -> String {
        let failure = Failure::new(exit, "unauthorized", "no");
        let failure = Failure { hint: said.map(str::to_owned), ..failure };
        explained(failure, sends_key).hint.unwrap_or_default()
    }

    #[test]
    fn the_hint_for_401_names_the_variable_to_set() {
        let header = "send `Authorization: Bearer <key>`";
        for said in [Some(header), None] {
            assert!(hint(Exit::Auth, said, false).starts_with("set WAYPOST_API_KEY to a key"));
            assert!(hint(Exit::Auth, said, true).starts_with("WAYPOST_API_KEY is no valid key"));
        }
        let admin = "set `WAYPOST_ADMIN_KEY`";
        assert_eq!(hint(Exit::Auth, Some(admin), false), admin);
        assert!(hint(Exit::Auth, Some(admin), true).starts_with("unset WAYPOST_API_KEY"));
        let none = Some("this server asks for no credentials; remove the header");
        assert!(hint(Exit::Auth, none, true).starts_with("unset WAYPOST_API_KEY"));
        assert!(hint(Exit::Auth, none, false).starts_with("unset WAYPOST_ADMIN_KEY"));
        assert_eq!(hint(Exit::Denied, Some(header), true), header, "it is about something else");
    }

    #[test]
    fn the_hint_for_403_names_the_missing_role_or_scope() {
        let hint = |problem: Value| {
            let failure = Failure::new(Exit::Denied, FORBIDDEN, "no").hint(ASK_SOMEONE);
            let failure = Failure { problem: Some(Box::new(problem)), ..failure };
            explained(failure, true).hint.unwrap()
        };
        let scope = hint(json!({"act": "cancel", "scope": "use"}));
        assert!(scope.contains("lacks the scope `use`"), "{scope}");
        let role = hint(json!({"act": "define"}));
        assert!(role.contains("`operator`") && role.contains("whoami"), "{role}");
        assert_eq!((hint(json!({"act": "impersonate"})), hint(json!({}))), both(ASK_SOMEONE));
        // A server that knows why is not contradicted: no role helps who started the run.
        let why = "the ask is still open; another user answers it";
        let failure = Failure::new(Exit::Denied, FORBIDDEN, "no").hint(why);
        let problem = Some(Box::new(json!({"act": "answer"})));
        let told = explained(Failure { problem, ..failure }, true);
        assert_eq!(told.hint.as_deref(), Some(why));
    }

    fn both(text: &str) -> (String, String) {
        (text.to_owned(), text.to_owned())
    }

    #[test]
    fn the_named_role_permits_the_act() {
        use kernel::identity::roles::Target;
        let targets = [
            Target::Catalog,
            Target::OtherSession,
            Target::OtherAsk,
            Target::Records,
            Target::Server,
        ];
        for act in Act::ALL {
            let permits = |role: Role| targets.iter().any(|target| role.permits(*act, *target));
            assert!(role_for(*act).is_none_or(permits), "{act:?}");
        }
    }
}
