//! What making room on each node would cost a class, found out once.
//!
//! Who would have to go on a node depends on the node, its pods, the nominations there and the
//! disruption budgets, so the answer stays until one of them changes. Kept is not who, but how much
//! it would cost: that tells which node is best, and there it is asked again. Nodes go by their
//! rank in the node order, as that is how upstream searches.
//!
//! This is for classes to which nothing but the node itself matters. For others, taking a pod away
//! changes counts on which verdicts elsewhere rest, and nothing is kept.

use crate::scheduling::cluster::NodeSlot;
use crate::scheduling::filters::Seeker;
use crate::scheduling::plugin::Rejection;
use crate::scheduling::preemption::{
    Candidate, Cost, Preemption, candidates_wanted, most_in_one_budget, try_node,
};
use crate::scheduling::tie_break::{PreemptionOffsets, distance};

use super::bits::Bits;
use super::class::NO_FILTER_STATE;
use super::order::Order;
use super::reasons::{ReasonId, Reasons};

/// What is known about making room, by rank.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    /// Nodes where removing pods could help.
    resolvable: Bits,
    /// Of these, nodes where it is known not to.
    hopeless: Bits,
    /// Of these, nodes where it is known to.
    priced: Bits,
    /// Empty until somebody asks.
    nodes: Vec<Known>,
    /// What is in the way on hopeless nodes.
    obstacles: Reasons,
    budget_version: u64,
}

#[derive(Clone, Copy, Debug)]
enum Known {
    Nothing,
    Obstacle(ReasonId),
    Price {
        cost: Cost,
        /// See [`most_in_one_budget`].
        in_one_budget: u32,
    },
}

/// How far a search went: from a rank on, going round, up to and with another.
struct Span {
    first: usize,
    last: Option<usize>,
}

impl Rooms {
    /// Bytes per node, once somebody has asked.
    pub(super) const BYTES_PER_NODE: usize = size_of::<Known>() + 1;

    /// Nothing known about so many nodes.
    pub(super) fn new(nodes: usize) -> Rooms {
        Rooms {
            resolvable: Bits::new(nodes),
            hopeless: Bits::new(nodes),
            priced: Bits::new(nodes),
            ..Rooms::default()
        }
    }

    /// Whether anybody has asked.
    pub(super) fn is_in_use(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// Says whether removing pods from the node could help; what was known about it is void.
    pub(super) fn reset(&mut self, rank: usize, is_resolvable: bool) {
        self.forget(rank);
        if is_resolvable {
            self.resolvable.insert(rank);
        } else {
            self.resolvable.remove(rank);
        }
    }

    fn forget(&mut self, rank: usize) {
        self.priced.remove(rank);
        if self.hopeless.remove(rank)
            && let Known::Obstacle(id) = self.nodes[rank]
        {
            self.obstacles.remove(id);
        }
    }

    /// What is in the way, with on how many nodes. All are known after a search in vain.
    pub(super) fn obstacles(&self) -> impl Iterator<Item = (&Rejection, usize)> {
        self.obstacles.in_force()
    }

    /// The node on which making room costs least, and who has to go there.
    ///
    /// Matches `preemption::preempt` and `Preemption::room`.
    pub(super) fn cheapest(
        &mut self,
        seeker: &Seeker<'_>,
        order: &Order,
        offsets: PreemptionOffsets,
    ) -> Option<Candidate> {
        let slot_count = seeker.cluster.slot_count();
        let mut best: Option<(Cost, u32, NodeSlot)> = None;
        self.search(seeker, order, offsets.start, |slot, cost| {
            if best.is_none_or(|(least, ..)| *cost <= least) {
                let distance = distance(slot, offsets.choice, slot_count);
                let found = (*cost, distance, slot);
                best = Some(best.map_or(found, |best| best.min(found)));
            }
        });
        let (cost, _, slot) = best?;
        let candidate = try_node(seeker, slot, &NO_FILTER_STATE)?.ok()?;
        debug_assert_eq!(cost, Cost::of(&candidate), "the price is out of date");
        Some(candidate)
    }

    /// All that the search finds, with who would have to go on each node.
    pub(super) fn search_in_full(
        &mut self,
        seeker: &Seeker<'_>,
        order: &Order,
        start: u32,
    ) -> Preemption {
        let (mut harmless, mut violating) = (Vec::new(), Vec::new());
        let mut rejected = Vec::new();
        let span = self.search(seeker, order, start, |_, _| {});
        let ranks = span.map_or(Vec::new(), |span| span.ranks(order.len()));
        for rank in ranks {
            let slot = order.slots()[rank];
            match self.nodes[rank] {
                Known::Obstacle(id) if self.hopeless.contains(rank) => {
                    rejected.push((slot, self.obstacles.get(id).clone()));
                }
                Known::Price { cost, .. } if self.priced.contains(rank) => {
                    let Some(Ok(candidate)) = try_node(seeker, slot, &NO_FILTER_STATE) else {
                        continue;
                    };
                    debug_assert_eq!(cost, Cost::of(&candidate), "the price is out of date");
                    let list = match cost.is_harmless() {
                        true => &mut harmless,
                        false => &mut violating,
                    };
                    list.push(candidate);
                }
                _ => {}
            }
        }
        harmless.append(&mut violating);
        Preemption::Tried {
            candidates: harmless,
            rejected,
        }
    }

    /// Walks through the candidates in order until enough are found; `None` if no node comes into
    /// question.
    fn search(
        &mut self,
        seeker: &Seeker<'_>,
        order: &Order,
        start: u32,
        mut found: impl FnMut(NodeSlot, &Cost),
    ) -> Option<Span> {
        self.nodes.resize(order.len(), Known::Nothing);
        self.heed_budgets(seeker);
        let count = self.resolvable.len();
        let start = usize::try_from(start).unwrap_or(0).checked_rem(count)?;
        let first = self.resolvable.nth(start)?;
        let enough = candidates_wanted(seeker.profile.preemption, count);
        let (mut candidates, mut is_any_harmless) = (0, false);
        for (from, to) in [(first, order.len()), (0, first)] {
            let mut rank = from;
            while let Some(next) = self.resolvable.next_without(&self.hopeless, rank)
                && next < to
            {
                rank = next + 1;
                let slot = order.slots()[next];
                let Some(cost) = self.price(seeker, next, slot) else {
                    continue;
                };
                found(slot, &cost);
                candidates += 1;
                is_any_harmless |= cost.is_harmless();
                if is_any_harmless && candidates >= enough {
                    let last = Some(next);
                    return Some(Span { first, last });
                }
            }
        }
        Some(Span { first, last: None })
    }

    /// What making room on the node costs; `None` if it is hopeless.
    fn price(&mut self, seeker: &Seeker<'_>, rank: usize, slot: NodeSlot) -> Option<Cost> {
        if self.priced.contains(rank)
            && let Known::Price { cost, .. } = self.nodes[rank]
        {
            return Some(cost);
        }
        match try_node(seeker, slot, &NO_FILTER_STATE)? {
            Ok(candidate) => {
                let cost = Cost::of(&candidate);
                let node = seeker.cluster.node(slot)?;
                let in_one_budget = most_in_one_budget(seeker, node);
                self.nodes[rank] = Known::Price {
                    cost,
                    in_one_budget: u32::try_from(in_one_budget).unwrap_or(u32::MAX),
                };
                self.priced.insert(rank);
                Some(cost)
            }
            Err(rejection) => {
                let id = self.obstacles.intern(rejection);
                self.obstacles.add(id);
                self.nodes[rank] = Known::Obstacle(id);
                self.hopeless.insert(rank);
                None
            }
        }
    }

    /// Forgets what depends on budgets that have changed.
    ///
    /// That a node is hopeless does not. That a budget allows more or less than before does not
    /// matter to a node if both are enough for all its pods.
    fn heed_budgets(&mut self, seeker: &Seeker<'_>) {
        let version = seeker.cluster.budget_version();
        if version == self.budget_version {
            return;
        }
        let least = seeker.cluster.least_allowed_since(self.budget_version);
        self.budget_version = version;
        for (rank, known) in self.nodes.iter().enumerate() {
            let Known::Price { in_one_budget, .. } = known else {
                continue;
            };
            let is_enough = |least: i32| u32::try_from(least).is_ok_and(|n| *in_one_budget <= n);
            let is_untouched = |least: i32| *in_one_budget == 0 || is_enough(least);
            if !least.is_some_and(is_untouched) {
                self.priced.remove(rank);
            }
        }
    }
}

impl Span {
    /// The ranks, in the order of the search.
    fn ranks(&self, nodes: usize) -> Vec<usize> {
        let mut ranks: Vec<usize> = (self.first..nodes).chain(0..self.first).collect();
        if let Some(place) = ranks.iter().position(|rank| Some(*rank) == self.last) {
            ranks.truncate(place + 1);
        }
        ranks
    }
}
