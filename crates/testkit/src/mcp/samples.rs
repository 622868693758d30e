//! Files that several fixtures show, in base64.

/// A PNG of one red pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAA\
                              AADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// A WAV of one silent millisecond.
pub(crate) const WAV: &str = "UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+\
                              AAACABAAZGF0YRAAAAAAAAAAAAAAAAAAAAAAAAAA";
