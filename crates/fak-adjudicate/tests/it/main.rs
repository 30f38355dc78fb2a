//! The integration tests of the kernel, one module a subject.

mod audit;
