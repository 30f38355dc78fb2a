//! Declared and enforced topologies over a group of agents.
