//! Behaviour, rule by rule.
