//! The server through its front door: HTTP on loopback.
