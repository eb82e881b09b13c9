//! Amounts whose unit is in the type.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use crate::quantity::{Format, Quantity};

use super::{ResourceList, ResourceName};

macro_rules! amount {
    ($(#[$doc:meta])* $name:ident, $format:expr, $read:ident, $make:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i64);

        impl $name {
            /// None of it.
            pub const ZERO: $name = $name(0);

            /// The amount in a quantity, fractions rounded away from zero.
            pub fn from_quantity(quantity: &Quantity) -> $name {
                $name(quantity.$read())
            }

            /// The amount as a quantity in the unit's usual format.
            pub fn to_quantity(self) -> Quantity {
                Quantity::$make(self.0, $format)
            }

            /// The difference, but not below zero.
            #[must_use]
            pub fn saturating_sub(self, other: $name) -> $name {
                $name(self.0.saturating_sub(other.0).max(0))
            }

            /// The sum, `None` where it does not fit.
            pub fn checked_add(self, other: $name) -> Option<$name> {
                self.0.checked_add(other.0).map($name)
            }
        }

        /// Saturates: amounts near 2^63 come only from nonsense input and must not wrap to small.
        impl Add for $name {
            type Output = $name;
            fn add(self, other: $name) -> $name {
                $name(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                *self = *self + other;
            }
        }

        /// May go negative: a deficit is an answer too. Saturates at the ends.
        impl Sub for $name {
            type Output = $name;
            fn sub(self, other: $name) -> $name {
                $name(self.0.saturating_sub(other.0))
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = $name>>(items: I) -> $name {
                items.fold($name::ZERO, Add::add)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_quantity(), f)
            }
        }
    };
}

amount!(
    /// Thousandths of a CPU core.
    Millicores,
    Format::DecimalSi,
    milli_value,
    from_milli
);
amount!(
    /// Bytes of memory or disk.
    Bytes,
    Format::BinarySi,
    value,
    new
);
amount!(
    /// A number of things: pods, process ids, devices.
    Count,
    Format::DecimalSi,
    value,
    new
);

impl Bytes {
    /// The amount in readable form: the largest fitting unit, rounded to three digits after the
    /// point. 31033655296 is `28.902 Gi`.
    pub fn readable(self) -> String {
        const UNITS: [&str; 7] = ["B", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let magnitude = u128::from(self.0.unsigned_abs());
        let power = (0..UNITS.len())
            .rev()
            .find(|power| magnitude >> (10 * power) > 0)
            .unwrap_or(0);
        let unit = 1u128 << (10 * power);
        let thousandths = (magnitude * 1000 + unit / 2) / unit;
        let sign = if self.0 < 0 { "-" } else { "" };
        let fraction = format!("{:03}", thousandths % 1000);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        let (whole, name) = (thousandths / 1000, UNITS[power]);
        format!("{sign}{whole}{point}{fraction} {name}")
    }
}

/// The needs of a pod or the resources of a node, typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// CPU time.
    pub cpu: Millicores,
    /// Memory.
    pub memory: Bytes,
    /// Local disk.
    pub ephemeral_storage: Bytes,
    /// Number of pods.
    pub pods: Count,
    /// Everything else by name: huge pages in bytes, devices in pieces.
    pub extended: BTreeMap<ResourceName, Count>,
}

impl Resources {
    /// Reads the list, rounding each quantity up to its unit.
    pub fn from_list(list: &ResourceList) -> Resources {
        let mut resources = Resources::default();
        for (name, quantity) in list {
            if *name == ResourceName::CPU {
                resources.cpu = Millicores::from_quantity(quantity);
            } else if *name == ResourceName::MEMORY {
                resources.memory = Bytes::from_quantity(quantity);
            } else if *name == ResourceName::EPHEMERAL_STORAGE {
                resources.ephemeral_storage = Bytes::from_quantity(quantity);
            } else if *name == ResourceName::PODS {
                resources.pods = Count::from_quantity(quantity);
            } else {
                let count = Count::from_quantity(quantity);
                resources.extended.insert(name.clone(), count);
            }
        }
        resources
    }

    /// Adds another vector in place.
    pub fn add(&mut self, other: &Resources) {
        self.cpu += other.cpu;
        self.memory += other.memory;
        self.ephemeral_storage += other.ephemeral_storage;
        self.pods += other.pods;
        for (name, count) in &other.extended {
            *self.extended.entry(name.clone()).or_default() += *count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_into_the_unit_of_each_resource() {
        let list: ResourceList = [
            (ResourceName::CPU, "1.5".parse().unwrap()),
            (ResourceName::MEMORY, "1Ki".parse().unwrap()),
            (ResourceName::new("example.com/gpu"), "2".parse().unwrap()),
        ]
        .into_iter()
        .collect();
        let resources = Resources::from_list(&list);
        assert_eq!(resources.cpu, Millicores(1500));
        assert_eq!(resources.memory, Bytes(1024));
        assert_eq!(
            resources.extended[&ResourceName::new("example.com/gpu")],
            Count(2)
        );
    }

    #[test]
    fn sums_saturate_and_differences_may_be_negative() {
        assert_eq!(Bytes(i64::MAX) + Bytes(1), Bytes(i64::MAX));
        assert_eq!(Bytes(1) - Bytes(3), Bytes(-2));
        assert_eq!(Bytes(1).saturating_sub(Bytes(3)), Bytes::ZERO);
    }

    #[test]
    fn readable_bytes_are_rounded_to_three_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (100, "100 B"),
            (31_033_655_296, "28.902 Gi"),
            (31_138_512_896, "29 Gi"),
            (-1536, "-1.5 Ki"),
            (i64::MAX, "8 Ei"),
        ] {
            assert_eq!(Bytes(bytes).readable(), text);
        }
    }

    #[test]
    fn amounts_print_in_their_usual_format() {
        assert_eq!(Millicores(1500).to_string(), "1500m");
        assert_eq!(Bytes(1 << 30).to_string(), "1Gi");
    }
}
