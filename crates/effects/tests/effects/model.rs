//! Models at providers, called over HTTP. The providers are loopback servers that play streams in the formats which the
//! providers document.

mod anthropic;
mod bounds;
mod catalogue;
mod chat;
mod faults;
mod pictures;
mod provider;
mod responses;
mod retry;
mod sse;
mod waiting;
mod wire;
mod written;
