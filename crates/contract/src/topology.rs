//! The names on the broker: the exchange and the queues that both processes declare and use.

/// The names of one stack. Several stacks share a broker under different prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// The topic exchange that requests go to, with the event as routing key.
    pub tools_exchange: String,
    /// The queue that servers take requests from, bound with `#`. Durable and without arguments, as a Nest client asserts it.
    pub tools_queue: String,
    /// Where a copy of every packet goes that could not be taken, with the reason in a header.
    pub tools_dead_queue: String,
    /// The quorum queue that workers take turns from.
    pub turns_queue: String,
    /// Where a turn goes that could not be taken.
    pub turns_dead_queue: String,
    /// The quorum queue that servers take the reports of turns from.
    pub reports_queue: String,
    /// Where a copy of every report goes that could not be taken, with the reason in a header.
    pub reports_dead_queue: String,
    /// The fanout exchange by which servers tell every worker to stop a turn.
    pub cancel_exchange: String,
}

impl Topology {
    /// The names under a prefix; none for the only stack of a broker.
    #[must_use]
    pub fn with_prefix(prefix: &str) -> Self {
        Self {
            tools_exchange: format!("{prefix}agent.tools"),
            tools_queue: format!("{prefix}agent.tools"),
            tools_dead_queue: format!("{prefix}agent.tools.dead"),
            turns_queue: format!("{prefix}agent.turns"),
            turns_dead_queue: format!("{prefix}agent.turns.dead"),
            reports_queue: format!("{prefix}agent.reports"),
            reports_dead_queue: format!("{prefix}agent.reports.dead"),
            cancel_exchange: format!("{prefix}agent.cancel"),
        }
    }
}

impl Default for Topology {
    fn default() -> Self {
        Self::with_prefix("")
    }
}
