//! `node/conversions.json`.

use plimsoll_core::cgroup::conversion::{
    MIN_SHARES, kubelet_weight_from_shares, millicores_from_shares, quota_from_millicores,
    runtime_weight_from_shares, shares_from_kubelet_weight, shares_from_millicores,
};
use plimsoll_core::resources::Millicores;
use plimsoll_testkit::vectors::{Outcome, compare_with_expected};
use serde_json::{Map, Value, json};

pub(crate) fn check(case: &Value) -> Outcome {
    let got = match case["op"].as_str().unwrap() {
        "milliCPU" => {
            let cpu = Millicores(case["milliCPU"].as_i64().unwrap());
            let shares = shares_from_millicores(cpu);
            let periods = case["expect"]["quotaByPeriod"].as_object().unwrap().keys();
            let quotas: Map<String, Value> = periods
                .map(|period| {
                    let quota = quota_from_millicores(cpu, period.parse().unwrap());
                    (period.clone(), json!(quota))
                })
                .collect();
            json!({
                "shares": shares,
                "quotaByPeriod": quotas,
                "weightKubelet": kubelet_weight_from_shares(shares),
                "weightRunc": runtime_weight_from_shares(shares),
            })
        }
        "shares" => {
            let shares = case["shares"].as_u64().unwrap();
            // Not recorded below the kernel's minimum, where upstream wraps.
            let weight = (shares >= MIN_SHARES).then(|| kubelet_weight_from_shares(shares));
            json!({
                "milliCPU": millicores_from_shares(shares).0,
                "weightKubelet": weight,
                "weightRunc": runtime_weight_from_shares(shares),
            })
        }
        "weight" => {
            let weight = case["weight"].as_u64().unwrap();
            json!({"shares": shares_from_kubelet_weight(weight)})
        }
        op => return Err(vec![format!("unknown op {op}")]),
    };
    compare_with_expected(case, &got)
}
