//! The cost of making room on each node for a class, computed once.
//!
//! The victims on a node depend on the node, its pods, the nominations there and the disruption
//! budgets, so the answer stays until one of them changes. Only the cost is kept, not the victims:
//! the cost shows which node is best, and there the victims are computed again. Nodes go by their
//! rank in the node order, as that is how upstream searches.
//!
//! This is for classes to which nothing but the node itself matters. For others, taking a pod away
//! changes counts on which verdicts elsewhere rest, and nothing is kept.

use crate::scheduling::filters::Cycle;
use crate::scheduling::plugin_names::Rejection;
use crate::scheduling::preemption::{
    Candidate, Cost, Preemption, candidates_wanted, most_in_one_budget, try_node,
};
use crate::scheduling::tie_break::{PreemptionOffsets, choose};

use super::bits::{Bits, block_of, blocks_from, blocks_in, numbers, up_to};
use super::class::NO_FILTER_STATE;
use super::order::Order;
use super::reasons::{ReasonId, Reasons};

/// The known costs of making room, by rank.
#[derive(Debug, Default)]
pub(super) struct PreemptionIndex {
    /// Nodes where removing pods could help.
    resolvable: Bits,
    /// Of these, nodes where it is known not to.
    hopeless: Bits,
    /// Of these, nodes where it is known to.
    priced: Bits,
    /// Empty until the index is used.
    nodes: Vec<Known>,
    /// By block of ranks: the least price, unless it has to be found out again.
    least: Vec<Option<Cost>>,
    /// The reasons on hopeless nodes.
    obstacles: Reasons,
    budget_version: u64,
    /// The highest `in_one_budget` that any node ever had.
    most_in_one_budget: u32,
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

/// How far a search went, and what it found.
struct Search {
    /// Where it began.
    first: usize,
    /// Where it ended early, having found enough.
    last: Option<usize>,
    /// The least price, with the blocks and the ranks in them among which it is.
    best: Option<(Cost, Vec<(usize, u64)>)>,
}

impl PreemptionIndex {
    /// Bytes per node, once the index is used.
    pub(super) const BYTES_PER_NODE: usize = size_of::<Known>() + 1;

    /// Nothing known about so many nodes.
    pub(super) fn new(nodes: usize) -> PreemptionIndex {
        PreemptionIndex {
            resolvable: Bits::new(nodes),
            hopeless: Bits::new(nodes),
            priced: Bits::new(nodes),
            ..PreemptionIndex::default()
        }
    }

    /// Whether the index was ever used.
    pub(super) fn is_in_use(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// Sets whether removing pods from the node could help; what was known about it is void.
    pub(super) fn reset(&mut self, rank: usize, is_resolvable: bool) {
        self.forget(rank);
        if is_resolvable {
            self.resolvable.insert(rank);
        } else {
            self.resolvable.remove(rank);
        }
    }

    fn forget(&mut self, rank: usize) {
        if self.priced.remove(rank) {
            self.least[block_of(rank)] = None;
        }
        if self.hopeless.remove(rank)
            && let Known::Obstacle(id) = self.nodes[rank]
        {
            self.obstacles.remove(id);
        }
    }

    /// Why preemption fails, with on how many nodes. All reasons are known after an unsuccessful
    /// search.
    pub(super) fn obstacles(&self) -> impl Iterator<Item = (&Rejection, usize)> {
        self.obstacles.in_force()
    }

    /// The node on which making room costs least, and the victims there.
    ///
    /// Matches `preemption::preempt` and `Preemption::room`.
    pub(super) fn cheapest(
        &mut self,
        cycle: &Cycle<'_>,
        order: &Order,
        offsets: PreemptionOffsets,
    ) -> Option<Candidate> {
        let slot_count = cycle.cluster.slot_count();
        let (cost, blocks) = self.search(cycle, order, offsets.start)?.best?;
        let blocks = blocks.into_iter();
        let ranks = blocks.flat_map(|(block, ranks)| numbers(block, ranks));
        let equals = ranks.filter(|rank| self.known_price(*rank) == Some(cost));
        let slots = equals.map(|rank| order.slots()[rank]);
        let slot = choose(slots, offsets.choice, slot_count)?;
        let candidate = try_node(cycle, slot, &NO_FILTER_STATE)?.ok()?;
        debug_assert_eq!(cost, Cost::of(&candidate), "the price is out of date");
        Some(candidate)
    }

    /// All that the search finds, with the victims on each node.
    pub(super) fn search_in_full(
        &mut self,
        cycle: &Cycle<'_>,
        order: &Order,
        start: u32,
    ) -> Preemption {
        let (mut harmless, mut violating) = (Vec::new(), Vec::new());
        let mut rejected = Vec::new();
        let search = self.search(cycle, order, start);
        let ranks = search.map_or(Vec::new(), |search| search.ranks(order.len()));
        for rank in ranks {
            let slot = order.slots()[rank];
            match self.nodes[rank] {
                Known::Obstacle(id) if self.hopeless.contains(rank) => {
                    rejected.push((slot, self.obstacles.get(id).clone()));
                }
                Known::Price { cost, .. } if self.priced.contains(rank) => {
                    let Some(Ok(candidate)) = try_node(cycle, slot, &NO_FILTER_STATE) else {
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

    /// Goes through the nodes in order until enough candidates are found; `None` if no node comes
    /// into question.
    ///
    /// It goes by blocks, and looks into one only where it begins and ends.
    fn search(&mut self, cycle: &Cycle<'_>, order: &Order, start: u32) -> Option<Search> {
        self.nodes.resize(order.len(), Known::Nothing);
        self.least.resize(blocks_in(order.len()), None);
        self.apply_budget_changes(cycle);
        let count = self.resolvable.len();
        let start = usize::try_from(start).unwrap_or(0).checked_rem(count)?;
        let first = self.resolvable.nth(start)?;
        let enough = candidates_wanted(cycle.profile.preemption, count);
        let mut search = Search {
            first,
            last: None,
            best: None,
        };
        let mut candidates = 0;
        for (block, bits) in blocks_from(first, order.len()) {
            self.price_block(cycle, order, block);
            let ranks = self.priced.block(block) & bits;
            let Some(least) = self.least_in(block, ranks) else {
                continue;
            };
            let in_block = numbers(block, ranks).count();
            if candidates + in_block >= enough && search.is_harmless_with(least) {
                let last = self.last_wanted(block, ranks, enough, candidates, &search);
                search.last = last;
                let ranks = last.map_or(ranks, |last| ranks & up_to(last));
                if let Some(least) = self.least_in(block, ranks) {
                    search.note(least, block, ranks);
                }
                break;
            }
            candidates += in_block;
            search.note(least, block, ranks);
        }
        Some(search)
    }

    /// In a block with enough candidates: the one at which there are, one of them harmless.
    fn last_wanted(
        &self,
        block: usize,
        ranks: u64,
        enough: usize,
        before: usize,
        search: &Search,
    ) -> Option<usize> {
        let mut is_any_harmless = search.is_harmless();
        let mut numbered = numbers(block, ranks).zip(before + 1..);
        let last = numbered.find(|(rank, candidates)| {
            let cost = self.known_price(*rank);
            is_any_harmless |= cost.is_some_and(|cost| cost.is_harmless());
            is_any_harmless && *candidates >= enough
        });
        last.map(|(rank, _)| rank)
    }

    /// The least price among some nodes of a block; `None` if there are none.
    fn least_in(&mut self, block: usize, ranks: u64) -> Option<Cost> {
        let is_whole = ranks == self.priced.block(block);
        if let (true, Some(cost)) = (is_whole, self.least[block]) {
            return Some(cost);
        }
        let prices = numbers(block, ranks).filter_map(|rank| self.known_price(rank));
        let least = prices.min();
        if is_whole {
            self.least[block] = least;
        }
        least
    }

    fn known_price(&self, rank: usize) -> Option<Cost> {
        match self.nodes[rank] {
            Known::Price { cost, .. } if self.priced.contains(rank) => Some(cost),
            _ => None,
        }
    }

    /// Computes the cost of the nodes of a block for which it is not known.
    fn price_block(&mut self, cycle: &Cycle<'_>, order: &Order, block: usize) {
        let known = self.hopeless.block(block) | self.priced.block(block);
        for rank in numbers(block, self.resolvable.block(block) & !known) {
            let slot = order.slots()[rank];
            match try_node(cycle, slot, &NO_FILTER_STATE) {
                Some(Ok(candidate)) => {
                    let node = cycle.cluster.node(slot);
                    let in_one_budget = node.map_or(0, |node| most_in_one_budget(cycle, node));
                    let in_one_budget = u32::try_from(in_one_budget).unwrap_or(u32::MAX);
                    self.most_in_one_budget = self.most_in_one_budget.max(in_one_budget);
                    self.nodes[rank] = Known::Price {
                        cost: Cost::of(&candidate),
                        in_one_budget,
                    };
                    self.priced.insert(rank);
                    self.least[block] = None;
                }
                Some(Err(rejection)) => {
                    let id = self.obstacles.intern(rejection);
                    self.obstacles.add(id);
                    self.nodes[rank] = Known::Obstacle(id);
                    self.hopeless.insert(rank);
                }
                None => {}
            }
        }
    }

    /// Forgets what depends on budgets that have changed.
    ///
    /// That a node is hopeless does not. That a budget allows more or less than before does not
    /// matter to a node if both are enough for all its pods.
    fn apply_budget_changes(&mut self, cycle: &Cycle<'_>) {
        let version = cycle.cluster.budget_version();
        if version == self.budget_version {
            return;
        }
        let least = cycle.cluster.least_allowed_since(self.budget_version);
        self.budget_version = version;
        let is_untouched = |in_one_budget: u32| {
            let enough = |least: i32| u32::try_from(least).is_ok_and(|n| in_one_budget <= n);
            least.is_some_and(|least| in_one_budget == 0 || enough(least))
        };
        if is_untouched(self.most_in_one_budget) {
            return;
        }
        for (rank, known) in self.nodes.iter().enumerate() {
            if let Known::Price { in_one_budget, .. } = known
                && !is_untouched(*in_one_budget)
                && self.priced.remove(rank)
            {
                self.least[block_of(rank)] = None;
            }
        }
    }
}

impl Search {
    /// Whether a candidate was found that breaks no disruption budget: then the best is one.
    fn is_harmless(&self) -> bool {
        self.best
            .as_ref()
            .is_some_and(|(cost, _)| cost.is_harmless())
    }

    fn is_harmless_with(&self, cost: Cost) -> bool {
        self.is_harmless() || cost.is_harmless()
    }

    fn note(&mut self, cost: Cost, block: usize, ranks: u64) {
        match &mut self.best {
            Some((best, _)) if *best < cost => {}
            Some((best, blocks)) if *best == cost => blocks.push((block, ranks)),
            _ => self.best = Some((cost, vec![(block, ranks)])),
        }
    }

    /// The ranks that it came by, in order.
    fn ranks(&self, nodes: usize) -> Vec<usize> {
        let mut ranks: Vec<usize> = (self.first..nodes).chain(0..self.first).collect();
        if let Some(place) = ranks.iter().position(|rank| Some(*rank) == self.last) {
            ranks.truncate(place + 1);
        }
        ranks
    }
}
