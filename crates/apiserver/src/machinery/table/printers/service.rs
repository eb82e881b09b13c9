//! Services.

use std::collections::BTreeSet;

use super::super::column::{AGE, Column, NAME};
use super::super::printer::{Printer, Row, row};
use super::super::view::{NONE, UNKNOWN, View, or};

const SPEC: &str = "api.core.v1.ServiceSpec";

pub(super) const SERVICE: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Type", SPEC, "type"),
        Column::field("Cluster-IP", SPEC, "clusterIP"),
        Column::field("External-IP", SPEC, "externalIPs"),
        Column::field("Port(s)", SPEC, "ports"),
        AGE,
        Column::field("Selector", SPEC, "selector").wide(),
    ],
    row: service,
};

fn service(service: View<'_>) -> Row {
    let ports: Vec<String> = service.items("/spec/ports").map(port).collect();
    row![
        service.name(),
        service_type(service),
        // `clusterIP` is authoritative where both are given and differ.
        or(
            service.first(&["/spec/clusterIP", "/spec/clusterIPs/0"]),
            NONE
        ),
        external_ip(service),
        or(&ports.join(","), NONE),
        service.age(),
        service.labels("/spec/selector"),
    ]
}

fn service_type<'a>(service: View<'a>) -> &'a str {
    service.text_or("/spec/type", "ClusterIP")
}

fn port(port: View<'_>) -> String {
    let (number, protocol) = (port.integer("/port"), port.text_or("/protocol", "TCP"));
    match port.integer("/nodePort") {
        node_port if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}

fn external_ip(service: View<'_>) -> String {
    let mut addresses = service.texts("/spec/externalIPs");
    match service_type(service) {
        "ClusterIP" | "NodePort" => or(&addresses.join(","), NONE).to_owned(),
        "LoadBalancer" => {
            let ingress = service.items("/status/loadBalancer/ingress");
            let balancers: BTreeSet<&str> = ingress
                .map(|ingress| ingress.first(&["/ip", "/hostname"]))
                .filter(|address| !address.is_empty())
                .collect();
            addresses.splice(0..0, balancers);
            or(&addresses.join(","), "<pending>").to_owned()
        }
        "ExternalName" => service.text("/spec/externalName").to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}
