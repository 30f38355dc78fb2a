//! The shared record from outside: envelopes, journals, merges, acts.

mod acts;
mod interop;
mod merge;
mod properties;
mod reference;
mod support;
mod views;
