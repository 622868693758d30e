//! The contract suite over every store of records that there is.

mod model {
    testkit::records_contract!(testkit::contract::records::scene::ModelRecordsArm::new());
}
