//! The settings with a fixed list of values.

use std::fmt;

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every choice, in upstream's order.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The choice with that name, which must be spelled exactly.
            pub fn from_word(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|choice| choice.as_str() == word)
            }

            /// The value as it is configured.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

choice!(
    /// Which program creates and names the cgroups.
    CgroupDriver {
        /// Directories made directly: `/kubepods/burstable/pod<uid>`.
        #[default]
        Cgroupfs = "cgroupfs",
        /// Slices made by systemd: `/kubepods.slice/kubepods-burstable.slice`.
        Systemd = "systemd",
    }
);

choice!(
    /// What decides what clients of the kubelet API may do.
    AuthorizationMode {
        /// Every client may do everything.
        AlwaysAllow = "AlwaysAllow",
        /// The API server decides.
        #[default]
        Webhook = "Webhook",
    }
);

choice!(
    /// On which cgroups the node enforces its reservations.
    Enforcement {
        /// The `kubepods` cgroup gets allocatable as its limit.
        #[default]
        Pods = "pods",
        /// The system cgroup is limited to its reservation.
        SystemReserved = "system-reserved",
        /// The system cgroup gets its CPU shares only.
        SystemReservedCompressible = "system-reserved-compressible",
        /// The kube cgroup is limited to its reservation.
        KubeReserved = "kube-reserved",
        /// The kube cgroup gets its CPU shares only.
        KubeReservedCompressible = "kube-reserved-compressible",
        /// Nothing is enforced; stands alone.
        None = "none",
    }
);

choice!(
    /// How containers may use swap.
    SwapBehavior {
        /// No container swaps.
        #[default]
        NoSwap = "NoSwap",
        /// Burstable containers swap in proportion to their memory request.
        LimitedSwap = "LimitedSwap",
    }
);

choice!(
    /// Whether memory requests are protected from reclaim (gate `MemoryQoS`).
    MemoryReservationPolicy {
        /// Nothing is protected.
        #[default]
        None = "None",
        /// `memory.min` for Guaranteed pods, `memory.low` for Burstable ones.
        TieredReservation = "TieredReservation",
    }
);

choice!(
    /// Which release the node imitates where releases differ.
    Profile {
        /// Kubernetes 1.36.
        #[default]
        Kubernetes136 = "kubernetes-1.36",
        /// OKD 3.9, which is Kubernetes 1.9 with OpenShift's defaults.
        Okd39 = "okd-3.9",
        /// OKD 3.6, which is Kubernetes 1.6 with OpenShift's defaults.
        Okd36 = "okd-3.6",
    }
);
