//! The fak kernel: registered rungs folded into one verdict for every coordination act.
