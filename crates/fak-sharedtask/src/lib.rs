//! The shared task record and the space: state that many agents edit by adjudicated patch.
