//! Records of the distances to thresholds.

use serde::{Deserialize, Serialize};

use crate::object::timestamp::Timestamp;

use super::super::engine::Engine;
use super::super::forecast::Forecast;
use super::super::observation::{Observation, Readings};
use super::super::summary::time;

/// How far each line was at one moment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinesRecord {
    /// When; `None` if never measured.
    #[serde(with = "time", default)]
    pub at: Option<Timestamp>,
    /// The lines, in the order of the engine's thresholds.
    #[serde(default)]
    pub items: Vec<DistanceRecord>,
}

/// The record of a [`Forecast`]. Amounts are in the unit of the signal.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DistanceRecord {
    /// The signal.
    pub signal: String,
    /// Whether it acts at once; otherwise after its grace.
    pub is_hard: bool,
    /// How long it may be crossed.
    pub grace_period: String,
    /// Where the line is on this node.
    pub line: i64,
    /// What is left.
    pub available: i64,
    /// What there is in all.
    pub capacity: i64,
    /// By how much what is left changes per second; `None` with fewer than two measurements.
    pub change_per_second: Option<f64>,
    /// At that rate, in how many nanoseconds the line is reached; zero where it is met.
    pub reached_in_nanos: Option<i64>,
}

impl LinesRecord {
    /// The forecasts of the engine for an observation that it has taken.
    pub fn of(engine: &Engine, at: Timestamp, observation: &Observation) -> LinesRecord {
        let readings = observation.readings(engine.settings().memory_source);
        LinesRecord::new(engine, at, &readings, engine.forecast(observation))
    }

    pub(in super::super) fn new(
        engine: &Engine,
        at: Timestamp,
        readings: &Readings,
        forecasts: Vec<Forecast>,
    ) -> LinesRecord {
        let of = |forecast: Forecast| {
            let threshold = engine.threshold(forecast.threshold);
            let reading = readings.get(forecast.signal);
            DistanceRecord {
                signal: forecast.signal.to_string(),
                is_hard: threshold.is_hard(),
                grace_period: threshold.grace_period.to_string(),
                line: forecast.line,
                available: forecast.available,
                capacity: reading.map_or(0, |reading| reading.capacity),
                change_per_second: forecast.change_per_second,
                reached_in_nanos: forecast.reached_in.map(|left| left.as_nanos()),
            }
        };
        LinesRecord {
            at: Some(at),
            items: forecasts.into_iter().map(of).collect(),
        }
    }
}
