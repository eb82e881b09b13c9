//! The configuration file of the override.
//!
//! ```yaml
//! apiVersion: v1
//! kind: ClusterResourceOverrideConfig
//! limitCPUToMemoryPercent: 200
//! cpuRequestToLimitPercent: 25
//! memoryRequestToLimitPercent: 50
//! ```
//!
//! The modern variant has the percentages below `spec`; both forms are read for every variant.

use serde_json::{Map, Value};

use crate::config::document::{self, Parsed};
use crate::problem::Problem;

use super::Variant;
use super::bounds::Floor;

const KIND: &str = "ClusterResourceOverrideConfig";
const PERCENT_FIELDS: [&str; 4] = [
    "limitCPUToMemoryPercent",
    "cpuRequestToLimitPercent",
    "memoryRequestToLimitPercent",
    "cpuRequestToRequestPercent",
];
/// Relabels volumes; nothing to do with resources, so that it may only be switched off.
const RELABEL_FIELD: &str = "forceSelinuxRelabel";
/// Plimsoll's own field: makes explicit what each generation does by itself.
const FLOOR_FIELD: &str = "floor";

/// The percentages; zero leaves a value alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Cpu limit from memory limit; at 100 one core for each GiB.
    pub limit_cpu_to_memory_percent: i64,
    /// Cpu request from cpu limit.
    pub cpu_request_to_limit_percent: i64,
    /// Memory request from memory limit.
    pub memory_request_to_limit_percent: i64,
    /// Cpu request from the request as written. Modern variant only.
    pub cpu_request_to_request_percent: i64,
    /// Another floor than the variant's own.
    pub floor: Option<Floor>,
}

impl Settings {
    /// Reads the file for a variant; all problems are reported, each with its field.
    pub fn from_yaml(text: &str, variant: Variant) -> Result<Settings, Vec<Problem>> {
        let Parsed {
            documents,
            mut problems,
        } = document::parse(text.as_bytes());
        let json = match documents.first() {
            Some(document) => document.to_json("", &mut problems),
            None if !problems.is_empty() => return Err(problems),
            None => Value::Null,
        };
        match Settings::from_json(&json, variant) {
            Ok(settings) if problems.is_empty() => Ok(settings),
            Ok(_) => Err(problems),
            Err(more) => {
                problems.extend(more);
                Err(problems)
            }
        }
    }

    /// Reads the parsed file.
    pub fn from_json(document: &Value, variant: Variant) -> Result<Settings, Vec<Problem>> {
        let Some(top) = document.as_object() else {
            return Err(vec![wrong_type(KIND, document, "must be a map of fields")]);
        };
        let mut reader = Reader {
            variant,
            settings: Settings::default(),
            problems: Vec::new(),
        };
        reader.read_envelope(top);
        reader.check_any_percentage();
        if reader.problems.is_empty() {
            Ok(reader.settings)
        } else {
            Err(reader.problems)
        }
    }
}

struct Reader {
    variant: Variant,
    settings: Settings,
    problems: Vec<Problem>,
}

impl Reader {
    fn read_envelope(&mut self, top: &Map<String, Value>) {
        for (field, value) in top {
            match (field.as_str(), value) {
                ("apiVersion" | "metadata", _) => {}
                ("kind", Value::String(kind)) if kind == KIND => {}
                ("kind", _) => {
                    let detail = format!("must be {KIND:?}");
                    self.problems.push(wrong_type("kind", value, &detail));
                }
                ("spec", Value::Object(spec)) => {
                    for (field, value) in spec {
                        self.read_field("spec.", field, value);
                    }
                }
                ("spec", _) => {
                    let problem = wrong_type("spec", value, "must be a map of fields");
                    self.problems.push(problem);
                }
                _ => self.read_field("", field, value),
            }
        }
    }

    fn read_field(&mut self, prefix: &str, field: &str, value: &Value) {
        let path = format!("{prefix}{field}");
        match (field, value) {
            (RELABEL_FIELD, Value::Bool(false)) => {}
            (RELABEL_FIELD, _) => {
                let detail = "only false is supported: volumes are not relabelled here";
                self.problems.push(wrong_type(&path, value, detail));
            }
            (FLOOR_FIELD, _) => match value.as_str() {
                Some("none") => self.settings.floor = Some(Floor::None),
                Some("limitRangeMin") => self.settings.floor = Some(Floor::LimitRangeMin),
                other => {
                    let written = other.map_or_else(|| value.to_string(), str::to_owned);
                    let problem =
                        Problem::not_supported(path, &written, &["limitRangeMin", "none"]);
                    self.problems.push(problem);
                }
            },
            _ if PERCENT_FIELDS.contains(&field) => self.read_percent(&path, field, value),
            _ => {
                let known = format!("known fields: {}", PERCENT_FIELDS.join(", "));
                self.problems.push(Problem::unknown(path, known));
            }
        }
    }

    fn read_percent(&mut self, path: &str, field: &str, value: &Value) {
        let Some(percent) = value.as_i64() else {
            let problem = wrong_type(path, value, "must be a whole number of percent");
            self.problems.push(problem);
            return;
        };
        let settings = &mut self.settings;
        let (place, greatest) = match field {
            "limitCPUToMemoryPercent" => (&mut settings.limit_cpu_to_memory_percent, None),
            "cpuRequestToLimitPercent" => (&mut settings.cpu_request_to_limit_percent, Some(100)),
            "memoryRequestToLimitPercent" => {
                (&mut settings.memory_request_to_limit_percent, Some(100))
            }
            _ => (&mut settings.cpu_request_to_request_percent, Some(100)),
        };
        *place = percent;
        let detail = match greatest {
            None if percent < 0 => "must be positive",
            Some(greatest) if !(0..=greatest).contains(&percent) => "must be between 0 and 100",
            _ if field == "cpuRequestToRequestPercent" && self.variant != Variant::Modern => {
                "only the modern variant has it"
            }
            _ => return,
        };
        self.problems
            .push(Problem::invalid_bare(path, percent, detail));
    }

    fn check_any_percentage(&mut self) {
        let Settings {
            limit_cpu_to_memory_percent,
            cpu_request_to_limit_percent,
            memory_request_to_limit_percent,
            cpu_request_to_request_percent,
            floor: _,
        } = self.settings;
        let all = [
            limit_cpu_to_memory_percent,
            cpu_request_to_limit_percent,
            memory_request_to_limit_percent,
            cpu_request_to_request_percent,
        ];
        if self.problems.is_empty() && all.iter().all(|percent| *percent == 0) {
            let detail = "plugin enabled but no percentages were specified";
            self.problems.push(Problem::forbidden(KIND, detail));
        }
    }
}

fn wrong_type(path: &str, value: &Value, detail: &str) -> Problem {
    Problem::wrong_type(path, value, detail)
}
