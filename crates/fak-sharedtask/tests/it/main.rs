//! The shared record from outside: envelopes, journals, merges, acts.

mod interop;
