//! CPU amounts as the kernel takes them: shares, quotas, weights.
//!
//! Two weights exist for the same shares. The kubelet maps linearly for the cgroups it makes
//! (kubepods, tiers, pods); container runtimes map containers along a curve that keeps the default
//! of 1024 shares at the default weight of 100. Matches v1.36 pkg/kubelet/cm/helpers_linux.go,
//! pkg/kubelet/cm/cgroup_manager_linux.go and opencontainers/cgroups v0.0.6 utils.go.

use crate::resources::Millicores;

/// The least shares the kernel takes.
pub const MIN_SHARES: u64 = 2;
/// The most shares the kernel takes.
pub const MAX_SHARES: u64 = 262_144;
/// The usual period of a quota, in microseconds.
pub const QUOTA_PERIOD_MICROS: u64 = 100_000;

/// The least quota the kernel takes, in microseconds.
const MIN_QUOTA_MICROS: i64 = 1_000;
const MAX_WEIGHT: u64 = 10_000;
const SHARES_PER_CPU: i64 = 1_024;

/// shares = cpu * 1024 / 1000, within the kernel's bounds. 500m is 512.
pub fn shares_from_millicores(cpu: Millicores) -> u64 {
    let shares = cpu.0.wrapping_mul(SHARES_PER_CPU) / 1000;
    u64::try_from(shares).map_or(MIN_SHARES, |shares| shares.clamp(MIN_SHARES, MAX_SHARES))
}

/// quota = cpu * period / 1000 microseconds, at least one millisecond; zero for no limit.
pub fn quota_from_millicores(cpu: Millicores, period_micros: u64) -> i64 {
    if cpu == Millicores::ZERO {
        return 0;
    }
    let quota = cpu.0.wrapping_mul(period_micros.cast_signed()) / 1000;
    quota.max(MIN_QUOTA_MICROS)
}

/// weight = 1 + (shares - 2) * 9999 / 262142, as the kubelet maps. 1024 shares are 39.
pub fn kubelet_weight_from_shares(shares: u64) -> u64 {
    if shares >= MAX_SHARES {
        return MAX_WEIGHT;
    }
    1 + shares.saturating_sub(MIN_SHARES) * 9_999 / 262_142
}

/// weight = 10 ^ ((l * l + 125 * l) / 612 - 7 / 34), rounded up, where l is the binary logarithm
/// of the shares: as container runtimes map. 1024 shares are 100; zero is "not set".
pub fn runtime_weight_from_shares(shares: u64) -> u64 {
    match shares {
        0 => 0,
        1..=MIN_SHARES => 1,
        MAX_SHARES.. => MAX_WEIGHT,
        _ => {
            #[expect(clippy::cast_precision_loss, reason = "below 2^18")]
            let l = (shares as f64).log2();
            let exponent = (l * l + 125.0 * l) / 612.0 - 7.0 / 34.0;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 1 and 10000"
            )]
            let weight = 10f64.powf(exponent).ceil() as u64;
            weight
        }
    }
}

/// The inverse of [`kubelet_weight_from_shares`], rounded down.
pub fn shares_from_kubelet_weight(weight: u64) -> u64 {
    weight.saturating_sub(1).saturating_mul(262_142) / 9_999 + MIN_SHARES
}

/// The inverse of [`shares_from_millicores`], rounded up; zero for shares the kernel refuses.
pub fn millicores_from_shares(shares: u64) -> Millicores {
    if shares < MIN_SHARES {
        return Millicores::ZERO;
    }
    let millicores = shares
        .saturating_mul(1000)
        .div_ceil(SHARES_PER_CPU.unsigned_abs());
    Millicores(i64::try_from(millicores).unwrap_or(i64::MAX))
}

/// The inverse of [`quota_from_millicores`], rounded down; zero for a quota of -1, "no limit".
pub fn millicores_from_quota(quota_micros: i64, period_micros: u64) -> Millicores {
    if quota_micros == -1 {
        return Millicores::ZERO;
    }
    let millicores = quota_micros
        .wrapping_mul(1000)
        .checked_div(period_micros.cast_signed());
    Millicores(millicores.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_weights_of_common_requests() {
        for (cpu, kubelet, runtime) in [
            (100, 4, 17),
            (250, 10, 35),
            (500, 20, 59),
            (1000, 39, 100),
            (2000, 79, 174),
            (4000, 157, 303),
        ] {
            let shares = shares_from_millicores(Millicores(cpu));
            assert_eq!(kubelet_weight_from_shares(shares), kubelet, "{cpu}m");
            assert_eq!(runtime_weight_from_shares(shares), runtime, "{cpu}m");
        }
    }

    #[test]
    fn a_tiny_limit_gets_the_least_quota_and_no_limit_none() {
        assert_eq!(quota_from_millicores(Millicores(1), 100_000), 1000);
        assert_eq!(quota_from_millicores(Millicores(0), 100_000), 0);
        assert_eq!(quota_from_millicores(Millicores(500), 100_000), 50_000);
    }

    #[test]
    fn quota_converts_back_to_its_limit() {
        assert_eq!(millicores_from_quota(50_000, 100_000), Millicores(500));
        assert_eq!(millicores_from_quota(-1, 100_000), Millicores::ZERO);
        assert_eq!(millicores_from_quota(50_000, 0), Millicores::ZERO);
    }
}
