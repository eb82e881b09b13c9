//! How much of the cluster is gone, and how fast nodes may be given up.
//!
//! When many nodes of a zone fall silent at once, it is more likely that the controller cannot
//! see them than that they are dead. So a partly disrupted zone is given up slowly, a small one
//! not at all; and when *every* zone is silent, nothing is given up and taints are taken off.
//! Matches v1.36 pkg/controller/nodelifecycle, handleDisruption.

use std::collections::BTreeMap;

/// The rates of giving up nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Nodes per second in a zone that is healthy, or completely gone.
    pub normal: f32,
    /// Nodes per second in a large zone that is partly gone.
    pub reduced: f32,
    /// A zone is large if it has more nodes than this.
    pub large_zone: usize,
    /// The share of nodes that are not ready from which a zone is partly gone.
    pub unhealthy_share: f32,
}

impl Default for Rates {
    fn default() -> Self {
        Rates {
            normal: 0.1,
            reduced: 0.01,
            large_zone: 50,
            unhealthy_share: 0.55,
        }
    }
}

/// How many nodes of a zone are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneHealth {
    /// Those that are.
    pub ready: usize,
    /// Those that are not, or have not said.
    pub not_ready: usize,
}

/// How a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Nothing is known of it yet.
    Initial,
    /// Most nodes are ready.
    Normal,
    /// No node is ready.
    FullDisruption,
    /// More than two nodes are not ready, and they are a large share.
    PartialDisruption,
}

impl ZoneHealth {
    /// Counts a node.
    pub fn count(&mut self, is_ready: bool) {
        match is_ready {
            true => self.ready += 1,
            false => self.not_ready += 1,
        }
    }

    /// All nodes of the zone.
    pub fn size(self) -> usize {
        self.ready + self.not_ready
    }

    /// How the zone is.
    pub fn state(self, rates: Rates) -> ZoneState {
        #[expect(
            clippy::cast_precision_loss,
            reason = "upstream divides in 32-bit floats"
        )]
        let share = self.not_ready as f32 / self.size() as f32;
        if self.ready == 0 && self.not_ready > 0 {
            ZoneState::FullDisruption
        } else if self.not_ready > 2 && share >= rates.unhealthy_share {
            ZoneState::PartialDisruption
        } else {
            ZoneState::Normal
        }
    }
}

/// The states of all zones, from pass to pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Zones {
    states: BTreeMap<String, ZoneState>,
}

/// The reaction to the states of the zones.
#[derive(Clone, Debug, PartialEq)]
pub enum Disruption {
    /// Rates of the zones that changed their state.
    Rates(Vec<(String, f32)>),
    /// Every zone is gone: take the `NoExecute` taints off all nodes, and give up none.
    AllGone,
    /// Some zone is back: give all nodes the whole grace period again, and set these rates.
    Back(Vec<(String, f32)>),
}

impl Zones {
    /// Whether the zone is known.
    pub fn contains(&self, zone: &str) -> bool {
        self.states.contains_key(zone)
    }

    /// Adds a zone.
    pub fn add(&mut self, zone: &str) {
        if !self.contains(zone) {
            self.states.insert(zone.to_owned(), ZoneState::Initial);
        }
    }

    /// Looks at all zones. Zones that have no node left are forgotten.
    pub fn step(&mut self, zones: &BTreeMap<String, ZoneHealth>, rates: Rates) -> Disruption {
        self.states.retain(|zone, _| zones.contains_key(zone));
        for zone in zones.keys() {
            self.add(zone);
        }
        let is_full = |state: &ZoneState| *state == ZoneState::FullDisruption;
        let all_were_gone = self.states.values().all(is_full);
        let states = zones
            .iter()
            .map(|(zone, health)| (zone, health.state(rates)));
        let states: BTreeMap<&String, ZoneState> = states.collect();
        let all_are_gone = states.values().all(is_full);
        if all_are_gone && all_were_gone {
            return Disruption::Rates(Vec::new());
        }
        if all_are_gone {
            for state in self.states.values_mut() {
                *state = ZoneState::FullDisruption;
            }
            return Disruption::AllGone;
        }
        let mut changed = Vec::new();
        for (zone, known) in &mut self.states {
            let (state, size) = (states[zone], zones[zone].size());
            if *known != state || all_were_gone {
                *known = state;
                changed.push((zone.clone(), rates.of(state, size)));
            }
        }
        match all_were_gone {
            true => Disruption::Back(changed),
            false => Disruption::Rates(changed),
        }
    }
}

impl Rates {
    fn of(self, state: ZoneState, zone_size: usize) -> f32 {
        match state {
            ZoneState::Initial | ZoneState::Normal | ZoneState::FullDisruption => self.normal,
            ZoneState::PartialDisruption if zone_size > self.large_zone => self.reduced,
            ZoneState::PartialDisruption => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(zones: &[(&str, usize, usize)]) -> BTreeMap<String, ZoneHealth> {
        let healths = zones
            .iter()
            .map(|&(zone, ready, not_ready)| (zone.to_owned(), ZoneHealth { ready, not_ready }));
        healths.collect()
    }

    #[test]
    fn zone_is_partially_disrupted_from_three_nodes_and_55_percent() {
        let table = [
            (10, 0, ZoneState::Normal),
            (0, 1, ZoneState::FullDisruption),
            (1, 2, ZoneState::Normal),
            (2, 3, ZoneState::PartialDisruption),
            (9, 11, ZoneState::PartialDisruption),
            (91, 109, ZoneState::Normal),
            (90, 110, ZoneState::PartialDisruption),
            (0, 0, ZoneState::Normal),
        ];
        for (ready, not_ready, expected) in table {
            let health = ZoneHealth { ready, not_ready };
            assert_eq!(health.state(Rates::default()), expected, "{health:?}");
        }
    }

    #[test]
    fn rates_follow_the_states() {
        let rates = Rates::default();
        let mut known = Zones::default();
        let mut step = |now: &[(&str, usize, usize)]| known.step(&zones(now), rates);
        let changed = |rates: &[(&str, f32)]| {
            let owned = rates.iter().map(|(zone, rate)| (zone.to_string(), *rate));
            Disruption::Rates(owned.collect())
        };
        assert_eq!(
            step(&[("a", 10, 0), ("b", 60, 0)]),
            changed(&[("a", 0.1), ("b", 0.1)])
        );
        assert_eq!(step(&[("a", 10, 0), ("b", 60, 0)]), changed(&[]));
        assert_eq!(
            step(&[("a", 2, 8), ("b", 20, 40)]),
            changed(&[("a", 0.0), ("b", 0.01)])
        );
        assert_eq!(step(&[("a", 0, 10), ("b", 20, 40)]), changed(&[("a", 0.1)]));
        assert_eq!(step(&[("a", 0, 10), ("b", 0, 60)]), Disruption::AllGone);
        assert_eq!(step(&[("a", 0, 10), ("b", 0, 60)]), changed(&[]));
        let back = vec![("a".to_owned(), 0.0), ("b".to_owned(), 0.1)];
        assert_eq!(step(&[("a", 1, 9), ("b", 0, 60)]), Disruption::Back(back));
        assert_eq!(
            step(&[("b", 0, 60)]),
            changed(&[]),
            "the only zone left was gone already"
        );
        assert_eq!(step(&[]), changed(&[]));
    }

    #[test]
    fn cluster_without_a_ready_node_starts_fully_disrupted() {
        let mut known = Zones::default();
        let step = known.step(&zones(&[("", 0, 3)]), Rates::default());
        assert_eq!(step, Disruption::AllGone);
    }
}
