//! Scenarios: multi-agent coordination written as data, performed and checked.
