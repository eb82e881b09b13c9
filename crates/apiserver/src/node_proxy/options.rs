//! The options of a caller in the query, and their form in the query to a node.
//!
//! Matches v1.36 pkg/apis/core/v1/zz_generated.conversion.go (reading) and
//! pkg/registry/core/pod/strategy.go (writing).

use plimsoll_core::problem::Problem;

use super::error_response::{ErrorResponse, bad_request};
use crate::http::query::{Query, parse_u16};
use crate::machinery::go::time::{Precision, normalize};

/// `PodLogOptions`.
#[derive(Debug, Default)]
pub(super) struct LogOptions {
    pub(super) container: String,
    pub(super) skips_tls_verification: bool,
    follow: bool,
    previous: bool,
    timestamps: bool,
    since_seconds: Option<i64>,
    /// Whole seconds in UTC.
    since_time: Option<String>,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    names_stream: bool,
}

/// Go's result for an empty `sinceTime`.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

impl LogOptions {
    pub(super) fn read(query: &Query) -> Result<LogOptions, ErrorResponse> {
        let malformed = |error: crate::http::query::Malformed| bad_request(error.to_string());
        let flag = |name| query.flag(name).unwrap_or_default();
        let since_seconds = query.integer("sinceSeconds").map_err(malformed)?;
        let since_time = match query.first("sinceTime") {
            None => None,
            Some("" | "null") => Some(ZERO_TIME.to_owned()),
            Some(text) => Some(normalize(text, Precision::Seconds).map_err(bad_request)?),
        };
        Ok(LogOptions {
            container: query.text("container"),
            skips_tls_verification: flag("insecureSkipTLSVerifyBackend"),
            follow: flag("follow"),
            previous: flag("previous"),
            timestamps: flag("timestamps"),
            since_seconds,
            since_time,
            tail_lines: query.integer("tailLines").map_err(malformed)?,
            limit_bytes: query.integer("limitBytes").map_err(malformed)?,
            names_stream: query.first("stream").is_some(),
        })
    }

    /// Matches v1.36 pkg/apis/core/validation/validation.go `ValidatePodLogOptions`; choosing a
    /// stream is an alpha feature that is off.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(lines) = self.tail_lines.filter(|lines| *lines < 0) {
            let detail = "must be greater than or equal to 0";
            problems.push(Problem::invalid_bare("tailLines", lines, detail));
        }
        let positive = "must be greater than 0";
        if let Some(bytes) = self.limit_bytes.filter(|bytes| *bytes < 1) {
            problems.push(Problem::invalid_bare("limitBytes", bytes, positive));
        }
        match (self.since_seconds, &self.since_time) {
            (Some(_), Some(_)) => problems.push(Problem::forbidden(
                // How Go prints a path whose only part has no name.
                "[]",
                "at most one of `sinceTime` or `sinceSeconds` may be specified",
            )),
            (Some(seconds @ ..1), None) => {
                problems.push(Problem::invalid_bare("sinceSeconds", seconds, positive));
            }
            _ => {}
        }
        if self.names_stream {
            problems.push(Problem::forbidden("stream", "may not be specified"));
        }
        problems
    }

    /// The query to a node, names in order.
    pub(super) fn to_node(&self) -> String {
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        let flag = |flag: bool| flag.then(|| "true".to_owned());
        let pairs = [
            ("follow", flag(self.follow)),
            ("limitBytes", number(self.limit_bytes)),
            ("previous", flag(self.previous)),
            ("sinceSeconds", number(self.since_seconds)),
            ("sinceTime", self.since_time.clone()),
            ("tailLines", number(self.tail_lines)),
            ("timestamps", flag(self.timestamps)),
        ];
        let given = pairs
            .iter()
            .filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        encode(given)
    }
}

/// `PodExecOptions` and `PodAttachOptions`, the latter without a command.
#[derive(Debug)]
pub(super) struct CommandOptions {
    pub(super) container: String,
    command: Vec<String>,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

impl CommandOptions {
    pub(super) fn read(query: &Query) -> CommandOptions {
        let flag = |name| query.flag(name).unwrap_or_default();
        CommandOptions {
            container: query.text("container"),
            command: query.all("command").map(str::to_owned).collect(),
            stdin: flag("stdin"),
            stdout: flag("stdout"),
            stderr: flag("stderr"),
            tty: flag("tty"),
        }
    }

    pub(super) fn without_command(mut self) -> CommandOptions {
        self.command.clear();
        self
    }

    /// The channel on which a WebSocket client is notified that the connection is established.
    pub(super) fn lowest_output_channel(&self) -> u8 {
        match (self.stdout, self.stderr) {
            (true, _) => 1,
            (_, true) => 2,
            _ => 3,
        }
    }

    /// The query to a node, names in order.
    pub(super) fn to_node(&self) -> String {
        let command = self.command.iter().map(|word| ("command", word.as_str()));
        let streams = [
            ("error", self.stderr),
            ("input", self.stdin),
            ("output", self.stdout),
            ("tty", self.tty),
        ];
        let wanted = streams.into_iter().filter(|(_, is_wanted)| *is_wanted);
        encode(command.chain(wanted.map(|(name, _)| (name, "1"))))
    }
}

/// The query to a node for `PodPortForwardOptions`.
pub(super) fn port_forward_to_node(query: &Query) -> Result<String, ErrorResponse> {
    let mut ports = Vec::new();
    for port in query.all("ports").flat_map(|ports| ports.split(',')) {
        let port = parse_u16(port)
            .map_err(|error| bad_request(format!("cannot convert to []int32: {error}")))?;
        ports.push(port.to_string());
    }
    let ports = ports.join(",");
    let given = Some(("port", ports.as_str())).filter(|_| !ports.is_empty());
    Ok(encode(given.into_iter()))
}

/// As Go's `url.Values.Encode`, of pairs that are in order.
fn encode<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={}", escape(value)))
        .collect();
    pairs.join("&")
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            b' ' => escaped.push('+'),
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(query: &str) -> Result<LogOptions, ErrorResponse> {
        LogOptions::read(&Query::parse(query))
    }

    #[test]
    fn log_query_is_ordered_and_has_only_set_flags() {
        let options = log(
            "timestamps=&follow=1&previous=false&tailLines=5&limitBytes=9&\
             sinceTime=2026-01-02T03:04:05.9%2B01:00&container=c",
        )
        .unwrap();
        assert_eq!(
            options.to_node(),
            "follow=true&limitBytes=9&sinceTime=2026-01-02T02%3A04%3A05Z&tailLines=5&timestamps=true"
        );
        assert!(options.problems().is_empty());
        assert_eq!(log("").unwrap().to_node(), "");
    }

    #[test]
    fn invalid_numbers_and_times_are_rejected() {
        for (query, message) in [
            (
                "tailLines=x",
                r#"strconv.ParseInt: parsing "x": invalid syntax"#,
            ),
            (
                "sinceTime=today",
                r#"parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse "today" as "2006""#,
            ),
        ] {
            let refused = log(query).unwrap_err();
            assert_eq!((refused.code, refused.message.as_str()), (400, message));
        }
    }

    #[test]
    fn invalid_log_options_are_reported() {
        let options =
            log("tailLines=-1&limitBytes=0&sinceSeconds=1&sinceTime=&stream=Stdout").unwrap();
        let problems: Vec<String> = options.problems().iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "tailLines: Invalid value: -1: must be greater than or equal to 0",
                "limitBytes: Invalid value: 0: must be greater than 0",
                "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
                "stream: Forbidden: may not be specified",
            ]
        );
        let options = log("sinceSeconds=0").unwrap();
        assert_eq!(
            options.problems()[0].to_string(),
            "sinceSeconds: Invalid value: 0: must be greater than 0"
        );
    }

    #[test]
    fn command_arguments_stay_separate() {
        let query = Query::parse(
            "command=sh&command=-c&command=echo+%22a%26b%22&stdin=1&stdout=true&stderr=0&tty=false&container=c",
        );
        let options = CommandOptions::read(&query);
        assert_eq!(
            options.to_node(),
            "command=sh&command=-c&command=echo+%22a%26b%22&input=1&output=1"
        );
        assert_eq!(options.lowest_output_channel(), 1);
        assert_eq!(options.without_command().to_node(), "input=1&output=1");
    }

    #[test]
    fn ports_are_accepted_separately_or_as_a_list() {
        let ports = |query| port_forward_to_node(&Query::parse(query));
        assert_eq!(ports("ports=80,443&ports=1").unwrap(), "port=80%2C443%2C1");
        assert_eq!(ports("").unwrap(), "");
        assert_eq!(
            ports("ports=70000").unwrap_err().message,
            r#"cannot convert to []int32: strconv.ParseUint: parsing "70000": value out of range"#
        );
    }
}
