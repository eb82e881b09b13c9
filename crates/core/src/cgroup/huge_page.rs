//! Huge pages in cgroups.

use std::collections::BTreeMap;

use crate::quantity::Quantity;
use crate::resources::{Bytes, ResourceList, ResourceName};

/// The size of a huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HugePageSize(pub Bytes);

impl HugePageSize {
    /// The size in a `hugepages-<size>` resource; zero for a size that is no quantity.
    pub fn from_resource(name: &ResourceName) -> Option<HugePageSize> {
        let size = name.huge_page_size()?.parse::<Quantity>();
        Some(HugePageSize(Bytes(size.map_or(0, |size| size.value()))))
    }

    /// The size as in file names: `2MB`, `1GB`. `None` for a size that the kernel could
    /// not name, `1025KB`.
    ///
    /// Matches v1.36 HugePageUnitSizeFromByteSize in pkg/apis/core/v1/helper/helpers.go.
    pub fn file_part(self) -> Option<String> {
        let HugePageSize(Bytes(mut size)) = self;
        let mut units = ["B", "KB", "MB", "GB", "TB", "PB"].into_iter().peekable();
        let mut unit = units.next()?;
        while size % 1024 == 0
            && let Some(larger) = units.next()
        {
            size /= 1024;
            unit = larger;
        }
        let is_largest_unit = units.peek().is_none();
        (size <= 1024 || is_largest_unit).then(|| format!("{size}{unit}"))
    }
}

/// The huge page resources of a list, by size.
pub fn huge_page_limits(list: &ResourceList) -> BTreeMap<HugePageSize, Bytes> {
    let mut limits = BTreeMap::new();
    for (name, quantity) in list {
        if let Some(size) = HugePageSize::from_resource(name) {
            let limit: &mut Bytes = limits.entry(size).or_default();
            limit.0 = limit.0.wrapping_add(quantity.value());
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_by_the_largest_unit_that_divides_them() {
        let part = |size| HugePageSize(Bytes(size)).file_part();
        assert_eq!(part(2 << 20).as_deref(), Some("2MB"));
        assert_eq!(part(1 << 30).as_deref(), Some("1GB"));
        assert_eq!(part(64 << 10).as_deref(), Some("64KB"));
        assert_eq!(part(1025 << 10), None);
    }
}
