//! The shared record from outside: envelopes, journals, merges, acts, cells.

mod acts;
mod bad_input;
mod cells;
mod interop;
mod journals;
mod memory;
mod merge;
mod properties;
mod reference;
mod support;
mod views;
mod written_here;
