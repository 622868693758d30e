//! What can be called: a tool, or a plan as a tool, as a caller found it. A request carries it, so
//! that no one has to look for it by its name a second time before it is sent.

use crate::catalog::registry::ListedTool;
use kernel::tool::call::ToolSpec;
use kernel::values::ids::ToolName;
use std::fmt;
use std::sync::Arc;

/// A tool, or a plan as a tool, that a caller saw when it was found. It may be gone or hidden since
/// then: the gate checks that again when a call of it is sent.
#[derive(Clone)]
pub struct Callable(Kind);

#[derive(Clone)]
enum Kind {
    Tool(Arc<ListedTool>),
    Plan(Arc<ToolSpec>),
}

impl Callable {
    pub(crate) fn tool(listed: Arc<ListedTool>) -> Self {
        Self(Kind::Tool(listed))
    }

    pub(crate) fn plan(spec: Arc<ToolSpec>) -> Self {
        Self(Kind::Plan(spec))
    }

    pub fn spec(&self) -> &Arc<ToolSpec> {
        match &self.0 {
            Kind::Tool(listed) => listed.tool.spec(),
            Kind::Plan(spec) => spec,
        }
    }

    /// Its own name.
    pub fn name(&self) -> &ToolName {
        &self.spec().name
    }

    pub fn is_plan(&self) -> bool {
        self.as_tool().is_none()
    }

    pub(crate) fn as_tool(&self) -> Option<&Arc<ListedTool>> {
        match &self.0 {
            Kind::Tool(listed) => Some(listed),
            Kind::Plan(_) => None,
        }
    }
}

impl fmt::Debug for Callable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Callable").field(self.name()).finish()
    }
}
