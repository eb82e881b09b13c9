//! Probes and lifecycle hooks.

use k8s_openapi::api::core::v1::{
    ExecAction, GRPCAction, HTTPGetAction, Lifecycle, LifecycleHandler, Probe, SleepAction,
    TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::names::{http_header_name, port_name, port_number};
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::text;

pub(super) fn check_liveness(probe: &Probe, path: &Path<'_>, problems: &mut Problems) {
    check_probe(probe, path, problems);
    let threshold = probe.success_threshold.unwrap_or_default();
    if threshold != 1 {
        problems.invalid(&path.child("successThreshold"), threshold, "must be 1");
    }
}

pub(super) fn check_readiness(probe: &Probe, path: &Path<'_>, problems: &mut Problems) {
    check_probe(probe, path, problems);
    if let Some(seconds) = probe.termination_grace_period_seconds {
        let path = path.child("terminationGracePeriodSeconds");
        problems.invalid(&path, json(&seconds), "must not be set for readinessProbes");
    }
}

fn check_probe(probe: &Probe, path: &Path<'_>, problems: &mut Problems) {
    let handler = Handler {
        exec: probe.exec.as_ref(),
        http_get: probe.http_get.as_ref(),
        tcp_socket: probe.tcp_socket.as_ref(),
        grpc: probe.grpc.as_ref(),
        sleep: None,
    };
    handler.check(None, path, problems);
    for (field, value) in [
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ] {
        problems.nonnegative(&path.child(field), value.unwrap_or_default());
    }
    if let Some(seconds) = probe.termination_grace_period_seconds.filter(|s| *s <= 0) {
        let path = path.child("terminationGracePeriodSeconds");
        problems.invalid(&path, seconds, "must be greater than 0");
    }
}

/// `grace` is the termination grace period, `os` the operating system of the pod.
pub(super) fn check_lifecycle(
    lifecycle: &Lifecycle,
    grace: Option<i64>,
    os: Option<&str>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if let Some(handler) = &lifecycle.post_start {
        Handler::from(handler).check(grace, &path.child("postStart"), problems);
    }
    if let Some(handler) = &lifecycle.pre_stop {
        Handler::from(handler).check(grace, &path.child("preStop"), problems);
    }
    let Some(signal) = lifecycle.stop_signal.as_deref() else {
        return;
    };
    let path = path.child("stopSignal");
    match os {
        None => {
            problems.forbidden(
                &path,
                "may not be set for containers with empty `spec.os.name`",
            );
        }
        Some("windows") => problems.one_of(&path, signal, &["SIGKILL", "SIGTERM"]),
        Some("linux") => {
            let signals = linux_signals();
            let signals: Vec<&str> = signals.iter().map(String::as_str).collect();
            problems.one_of(&path, signal, &signals);
        }
        Some(_) => {}
    }
}

/// The names of all signals, sorted.
fn linux_signals() -> Vec<String> {
    const NAMED: &str = "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR \
                         QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM \
                         WINCH XCPU XFSZ RTMIN RTMAX";
    let mut signals: Vec<String> = NAMED
        .split_whitespace()
        .map(|s| format!("SIG{s}"))
        .collect();
    signals.extend((1..=15).map(|n| format!("SIGRTMIN+{n}")));
    signals.extend((1..=14).map(|n| format!("SIGRTMAX-{n}")));
    signals.sort();
    signals
}

/// The handler, of which exactly one must be set.
struct Handler<'a> {
    exec: Option<&'a ExecAction>,
    http_get: Option<&'a HTTPGetAction>,
    tcp_socket: Option<&'a TCPSocketAction>,
    grpc: Option<&'a GRPCAction>,
    sleep: Option<&'a SleepAction>,
}

impl<'a> From<&'a LifecycleHandler> for Handler<'a> {
    fn from(handler: &'a LifecycleHandler) -> Handler<'a> {
        Handler {
            exec: handler.exec.as_ref(),
            http_get: handler.http_get.as_ref(),
            tcp_socket: handler.tcp_socket.as_ref(),
            grpc: None,
            sleep: handler.sleep.as_ref(),
        }
    }
}

impl Handler<'_> {
    fn check(&self, grace: Option<i64>, path: &Path<'_>, problems: &mut Problems) {
        let given = [
            ("exec", self.exec.is_some()),
            ("httpGet", self.http_get.is_some()),
            ("tcpSocket", self.tcp_socket.is_some()),
            ("grpc", self.grpc.is_some()),
            ("sleep", self.sleep.is_some()),
        ];
        let mut given = given
            .into_iter()
            .filter(|(_, is_given)| *is_given)
            .map(|(name, _)| name);
        let Some(first) = given.next() else {
            return problems.required(path, "must specify a handler type");
        };
        self.check_one(first, grace, &path.child(first), problems);
        for other in given {
            problems.forbidden(
                &path.child(other),
                "may not specify more than 1 handler type",
            );
        }
    }

    fn check_one(&self, name: &str, grace: Option<i64>, path: &Path<'_>, problems: &mut Problems) {
        match name {
            "exec" => {
                let command = self.exec.and_then(|exec| exec.command.as_deref());
                if command.unwrap_or_default().is_empty() {
                    problems.required(&path.child("command"), "");
                }
            }
            "httpGet" => {
                if let Some(action) = self.http_get {
                    check_http_get(action, path, problems);
                }
            }
            "tcpSocket" => {
                if let Some(action) = self.tcp_socket {
                    check_port(&action.port, &path.child("port"), problems);
                }
            }
            "grpc" => {
                if let Some(action) = self.grpc {
                    check_port(
                        &IntOrString::Int(action.port),
                        &path.child("port"),
                        problems,
                    );
                }
            }
            _ => {
                if let (Some(action), Some(grace)) = (self.sleep, grace)
                    && !(0..=grace).contains(&action.seconds)
                {
                    let detail = format!(
                        "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                    );
                    problems.invalid(path, action.seconds, detail);
                }
            }
        }
    }
}

fn check_http_get(action: &HTTPGetAction, path: &Path<'_>, problems: &mut Problems) {
    problems.require_text(&path.child("path"), text(&action.path));
    check_port(&action.port, &path.child("port"), problems);
    problems.one_of(
        &path.child("scheme"),
        text(&action.scheme),
        &["HTTP", "HTTPS"],
    );
    for header in action.http_headers.iter().flatten() {
        let broken = http_header_name(&header.name);
        problems.invalid_each(&path.child("httpHeaders"), &header.name, broken);
    }
}

fn check_port(port: &IntOrString, path: &Path<'_>, problems: &mut Problems) {
    match port {
        IntOrString::Int(number) => {
            for rule in port_number(*number) {
                // A Go `int` is printed as JSON, which is the same digits.
                problems.invalid(path, *number, rule);
            }
        }
        IntOrString::String(name) => problems.invalid_each(path, name, port_name(name)),
    }
}
