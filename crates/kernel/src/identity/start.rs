//! Whether a server asks everybody for credentials, decided once, at the start.
