//! The tools of records by name, and how their faults are told over HTTP.

use crate::problem::Failure;
use kernel::values::fault::Fault;
use kernel::values::ids::ToolName;

/// By name, in the order of their names.
pub(crate) const RECORD_TOOLS: [&str; 7] = [
    "query_count", "query_delete", "query_deleteMany", "query_find", "query_plan",
    "query_rootTypes", "query_save",
];

pub(crate) fn is_record_tool(name: &str) -> bool {
    RECORD_TOOLS.contains(&name)
}

/// The fault of a call as a failure with its own status, where it is one of a tool of records: the
/// faults of others may have the same names and mean something else.
pub(crate) fn failure_of(tool: &ToolName, fault: Option<&Fault>) -> Option<Failure> {
    let fault = fault.filter(|_| is_record_tool(tool.as_str()))?;
    Failure::of_record_fault(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_faults_of_record_tools_have_a_status_of_their_own() {
        let fault = Fault::new("VersionConflict", "it has version 2");
        let status = |tool: &str| {
            let failure = failure_of(&ToolName::from(tool), Some(&fault))?;
            Some(failure.status().as_u16())
        };
        assert_eq!(status("query_save"), Some(409));
        assert_eq!(status("crm.query_save"), None);
    }
}
