//! Who calls: API keys and tokens are checked here, failed attempts counted, and policy by the
//! built-in roles is decided here. Nothing here knows HTTP beyond the text of a header.
