//! Groups, collectives, barriers and lane leases as adjudicated acts.
