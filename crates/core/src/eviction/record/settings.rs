//! Records of settings.

use serde::{Deserialize, Serialize};

use crate::config::Profile;
use crate::quantity::Quantity;
use crate::threshold::{DiskLayout, Duration, Operator, Signal, Threshold, ThresholdValue};

use super::super::settings::Settings;
use super::super::signal_source::{MemorySource, StallRule};
use super::ReplayError;

/// The record of [`Settings`].
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingsRecord {
    /// The profile's name.
    pub profile: String,
    /// The lines.
    pub thresholds: Vec<ThresholdRecord>,
    /// Whether images have a disk of their own.
    pub dedicated_image_fs: bool,
    /// Whether writable layers are apart from the images.
    pub dedicated_container_fs: bool,
    /// How long conditions last.
    pub pressure_transition_period: String,
    /// The longest grace of a soft eviction.
    pub max_pod_grace_period_seconds: i64,
    /// Whether disk limits of pods are enforced.
    pub local_storage_capacity_isolation: bool,
    /// Where memory signals come from.
    pub memory_source: String,
    /// Limit in percent and grace for stalls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_stall: Option<(f64, String)>,
    /// Whether it backs off where evicting pods cannot help; no release did that whose records do
    /// not say so.
    #[serde(default)]
    pub back_off: bool,
    /// Whether pods always get their grace period; `None` in records of releases whose engine did
    /// not decide that, nor which kills follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always_give_grace: Option<bool>,
}

/// The record of a threshold.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdRecord {
    /// What is measured.
    pub signal: String,
    /// Whether it can be met at all.
    pub operator: String,
    /// Where the line is.
    pub value: ValueRecord,
    /// How long it may be crossed.
    pub grace_period: String,
    /// How far back from it the node has to get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_reclaim: Option<ValueRecord>,
}

/// An amount, or a part of the capacity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ValueRecord {
    /// The quantity's text.
    Quantity(String),
    /// The bits of the part as a single-precision float: decimal digits would not give it back.
    PercentageF32Bits(u32),
}

impl SettingsRecord {
    /// Writes settings down.
    pub fn of(settings: &Settings) -> SettingsRecord {
        let (dedicated_image_fs, dedicated_container_fs) = match settings.layout {
            DiskLayout::Single => (false, false),
            DiskLayout::DedicatedImageFs => (true, false),
            DiskLayout::SplitImageFs => (true, true),
            DiskLayout::DedicatedContainerFs => (false, true),
        };
        SettingsRecord {
            profile: settings.profile.to_string(),
            thresholds: settings
                .thresholds
                .iter()
                .map(ThresholdRecord::of)
                .collect(),
            dedicated_image_fs,
            dedicated_container_fs,
            pressure_transition_period: settings.pressure_transition_period.to_string(),
            max_pod_grace_period_seconds: settings.max_pod_grace_period_seconds,
            local_storage_capacity_isolation: settings.local_storage_capacity_isolation,
            memory_source: settings.memory_source.as_str().to_owned(),
            memory_stall: settings
                .memory_stall
                .map(|rule| (rule.full_avg10, rule.grace_period.to_string())),
            back_off: settings.back_off,
            always_give_grace: Some(settings.always_give_grace),
        }
    }

    /// Reads them back.
    pub fn to_settings(&self) -> Result<Settings, ReplayError> {
        let profile = Profile::from_word(&self.profile);
        let source = MemorySource::from_name(&self.memory_source);
        let thresholds = self.thresholds.iter().map(ThresholdRecord::to_threshold);
        let stall = self.memory_stall.as_ref();
        Ok(Settings {
            profile: profile.ok_or_else(|| unknown("settings.profile", &self.profile))?,
            thresholds: thresholds.collect::<Result<_, _>>()?,
            layout: DiskLayout::from_dedicated(
                self.dedicated_image_fs,
                self.dedicated_container_fs,
            ),
            pressure_transition_period: parse_duration(&self.pressure_transition_period)?,
            max_pod_grace_period_seconds: self.max_pod_grace_period_seconds,
            local_storage_capacity_isolation: self.local_storage_capacity_isolation,
            memory_source: source
                .ok_or_else(|| unknown("settings.memorySource", &self.memory_source))?,
            memory_stall: stall
                .map(|(limit, grace)| {
                    Ok(StallRule {
                        full_avg10: *limit,
                        grace_period: parse_duration(grace)?,
                    })
                })
                .transpose()?,
            back_off: self.back_off,
            always_give_grace: self.always_give_grace.unwrap_or(true),
        })
    }
}

impl ThresholdRecord {
    fn of(threshold: &Threshold) -> ThresholdRecord {
        ThresholdRecord {
            signal: threshold.signal.to_string(),
            operator: threshold.operator.as_str().to_owned(),
            value: ValueRecord::of(&threshold.value),
            grace_period: threshold.grace_period.to_string(),
            min_reclaim: threshold.min_reclaim.as_ref().map(ValueRecord::of),
        }
    }

    fn to_threshold(&self) -> Result<Threshold, ReplayError> {
        let mut operators = [Operator::LessThan, Operator::Never].into_iter();
        let operator = operators.find(|operator| operator.as_str() == self.operator);
        Ok(Threshold {
            signal: parse_signal(&self.signal)?,
            operator: operator.ok_or_else(|| unknown("settings.thresholds", &self.operator))?,
            value: self.value.to_value()?,
            grace_period: parse_duration(&self.grace_period)?,
            min_reclaim: self
                .min_reclaim
                .as_ref()
                .map(ValueRecord::to_value)
                .transpose()?,
        })
    }
}

impl ValueRecord {
    fn of(value: &ThresholdValue) -> ValueRecord {
        match value {
            ThresholdValue::Quantity(quantity) => ValueRecord::Quantity(quantity.to_string()),
            ThresholdValue::Percentage(part) => ValueRecord::PercentageF32Bits(part.to_bits()),
        }
    }

    fn to_value(&self) -> Result<ThresholdValue, ReplayError> {
        Ok(match self {
            ValueRecord::Quantity(text) => ThresholdValue::Quantity(parse_quantity(text)?),
            ValueRecord::PercentageF32Bits(bits) => {
                ThresholdValue::Percentage(f32::from_bits(*bits))
            }
        })
    }
}

pub(super) fn unknown(field: &'static str, name: &str) -> ReplayError {
    ReplayError::UnknownName {
        field,
        name: name.to_owned(),
    }
}

pub(super) fn parse_signal(name: &str) -> Result<Signal, ReplayError> {
    Signal::from_name(name).ok_or_else(|| unknown("signal", name))
}

pub(super) fn parse_quantity(text: &str) -> Result<Quantity, ReplayError> {
    text.parse().map_err(|source| ReplayError::Quantity {
        text: text.to_owned(),
        source,
    })
}

fn parse_duration(text: &str) -> Result<Duration, ReplayError> {
    text.parse().map_err(|source| ReplayError::Duration {
        text: text.to_owned(),
        source,
    })
}
