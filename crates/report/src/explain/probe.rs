//! Probes that fail.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Event, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::containers::restarts;
use super::events;
use super::report::Trouble;

const UNHEALTHY: &str = "Unhealthy";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Startup,
    Liveness,
    Readiness,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Startup, Kind::Liveness, Kind::Readiness];

    fn as_str(self) -> &'static str {
        match self {
            Kind::Startup => "startup",
            Kind::Liveness => "liveness",
            Kind::Readiness => "readiness",
        }
    }

    fn of_message(message: &str) -> Option<Kind> {
        let all = Kind::ALL.into_iter();
        let mut named = all.filter(|kind| message.to_lowercase().starts_with(kind.as_str()));
        named.next()
    }

    fn probe(self, container: &Container) -> Option<&Probe> {
        match self {
            Kind::Startup => container.startup_probe.as_ref(),
            Kind::Liveness => container.liveness_probe.as_ref(),
            Kind::Readiness => container.readiness_probe.as_ref(),
        }
    }

    fn help(self) -> &'static str {
        match self {
            Kind::Readiness => {
                "no Service sends it traffic until the probe succeeds: make the container answer it, \
                 or correct path, port or timeoutSeconds"
            }
            Kind::Startup | Kind::Liveness => {
                "make the container answer the probe, or correct its path, port or timeoutSeconds; \
                 for a container that starts slowly add or lengthen a startupProbe"
            }
        }
    }
}

/// The failing probe of a container that is not ready or was restarted.
pub(super) fn failing(
    status: &ContainerStatus,
    spec: Option<&Container>,
    events: &[Event],
) -> Option<Trouble> {
    let is_over = status
        .state
        .as_ref()
        .is_some_and(|state| state.terminated.is_some());
    if is_over || (status.ready && status.restart_count == 0) {
        return None;
    }
    let path = format!("{{{}}}", status.name);
    let of_container = |event: &&Event| {
        let field = event.involved_object.field_path.as_deref();
        field.is_none_or(|field| field.ends_with(&path))
    };
    let own = events.iter().filter(of_container);
    let unhealthy = own.filter(|event| event.reason.as_deref() == Some(UNHEALTHY));
    let latest = unhealthy
        .filter_map(|event| {
            let message = event.message.as_deref()?;
            Some((event, message, Kind::of_message(message)?))
        })
        // A failing readiness probe restarts nothing, and is ignored if the container is ready.
        .filter(|(_, _, kind)| match kind {
            Kind::Readiness => !status.ready,
            Kind::Startup | Kind::Liveness => true,
        })
        .max_by_key(|(event, _, kind)| (*kind != Kind::Readiness, events::timestamp(event)));
    let (event, message, kind) = latest?;
    let name = &status.name;
    let at = events::time_of(event).unwrap_or_default();
    let message = message.trim().trim_end_matches('.');
    let mut why = vec![match event.count {
        Some(count @ 2..) => format!("{message} ({count} times, the last at {at})."),
        _ => format!("{message} ({at})."),
    }];
    why.extend(
        spec.and_then(|spec| kind.probe(spec))
            .map(|probe| format!("The probe: {}.", description(probe))),
    );
    Some(Trouble {
        container: Some(name.clone()),
        reason: UNHEALTHY.to_owned(),
        summary: format!(
            "container {name} fails its {} probe{}",
            kind.as_str(),
            restarts(status)
        ),
        why,
        log: Vec::new(),
        help: vec![kind.help().to_owned()],
    })
}

/// The settings of a probe as `kubectl describe` prints them.
fn description(probe: &Probe) -> String {
    let port = |port: &IntOrString| match port {
        IntOrString::Int(port) => port.to_string(),
        IntOrString::String(port) => port.clone(),
    };
    let what = if let Some(http) = &probe.http_get {
        let scheme = http.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
        let host = http.host.as_deref().unwrap_or_default();
        let path = http.path.as_deref().unwrap_or("/");
        format!("http-get {scheme}://{host}:{}{path}", port(&http.port))
    } else if let Some(tcp) = &probe.tcp_socket {
        format!("tcp-socket :{}", port(&tcp.port))
    } else if let Some(grpc) = &probe.grpc {
        format!("grpc :{}", grpc.port)
    } else if let Some(exec) = &probe.exec {
        format!("exec {:?}", exec.command.as_deref().unwrap_or_default())
    } else {
        "nothing".to_owned()
    };
    format!(
        "{what} delay={}s timeout={}s period={}s #success={} #failure={}",
        probe.initial_delay_seconds.unwrap_or(0),
        probe.timeout_seconds.unwrap_or(1),
        probe.period_seconds.unwrap_or(10),
        probe.success_threshold.unwrap_or(1),
        probe.failure_threshold.unwrap_or(3),
    )
}
