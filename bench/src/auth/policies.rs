//! Policies of the measured servers: most of them concern other tools, as in a server with many
//! teams.

/// What all servers have: members may call and run everything. One applies to each call, one to
/// each run.
const GENERAL: &str = r#"@id("members-call")
permit (principal in Role::"member", action == Action::"call", resource);
@id("members-run")
permit (principal in Role::"member", action == Action::"run", resource);
"#;
const GENERAL_COUNT: usize = 2;
/// How many more apply to a call of `math::add` where they are measured, and how many of these read
/// its arguments. With the general one these are ten.
const TAGGED: usize = 6;
const READING: usize = 3;

/// So many policies, of which one applies to a call.
pub fn few(count: usize) -> String {
    filled(GENERAL.to_owned(), count.saturating_sub(GENERAL_COUNT))
}

/// So many policies, of which ten apply to a call of `math::add` and three read its arguments.
pub fn many(count: usize) -> String {
    let mut text = GENERAL.to_owned();
    for number in 0..TAGGED {
        text.push_str(&format!(
            "@id(\"tagged-{number}\")\nforbid (principal, action == Action::\"call\", resource == \
             Tool::\"math::add\")\nwhen {{ resource.tags.contains(\"secret-{number}\") }};\n"
        ));
    }
    for number in 0..READING {
        text.push_str(&format!(
            "@id(\"large-{number}\")\nforbid (principal, action == Action::\"call:math::add\", \
             resource)\nwhen {{ context.arguments.a.greaterThan(decimal(\"{}.0\")) }};\n",
            1_000 + number
        ));
    }
    filled(text, count.saturating_sub(GENERAL_COUNT + TAGGED + READING))
}

/// The same with so many more about plans and tools that no one asks for.
fn filled(mut text: String, count: usize) -> String {
    for number in 0..count {
        text.push_str(&match number % 2 {
            0 => format!(
                "@id(\"plan-{number}\")\nforbid (principal, action == Action::\"run\", resource == \
                 Plan::\"other/plan-{number}\");\n"
            ),
            _ => format!(
                "@id(\"tool-{number}\")\nforbid (principal in Role::\"guest-{number}\", action == \
                 Action::\"call\", resource == Tool::\"other::tool-{number}\")\nwhen {{ \
                 resource.reach != \"reads\" }};\n"
            ),
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_number_of_policies_is_made() {
        for text in [few(200), many(200)] {
            assert_eq!(text.matches("@id(").count(), 200);
        }
        assert_eq!(many(200).matches("math::add").count(), TAGGED + READING);
        assert_eq!(many(200).matches("context.arguments").count(), READING);
    }
}
