//! Adjudicated channels between agents: mailboxes, publish / subscribe, request / reply.
