//! What endpoints show of records beside what tools answer: the types that a caller may see, and
//! samples of their records. Calls go through the gate, as those of all tools do.

use query::records::Records;
use query::records::reach::RecordAccess;
use std::sync::Arc;

/// A server without types has none.
#[derive(Clone)]
pub struct RecordSource {
    /// Decides what a caller may see.
    pub access: Arc<dyn RecordAccess>,
    /// For samples, which are read within that.
    pub records: Arc<dyn Records>,
}
