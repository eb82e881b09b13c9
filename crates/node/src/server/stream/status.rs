//! The status that a client gets when its process has ended.
//!
//! Matches v1.36 cri-streaming/pkg/streaming/remotecommand/{exec,attach,status}.go.

use bytes::Bytes;
use plimsoll_runtime::Error;
use serde_json::{Value, json};

use super::session::Kind;

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status(Value);

/// How a status is written: what the fourth version of the protocol brought, or as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    /// Only what went wrong, as its message.
    Text,
}

impl Status {
    /// What the exit code, or the reason why there is none, says.
    pub(super) fn of(kind: &Kind, ended: &Result<i32, Error>) -> Status {
        match (kind, ended) {
            (_, Ok(0)) | (Kind::Attach, Ok(_)) => Status(json!({"status": "Success"})),
            (Kind::Exec(command), Ok(code)) => Status::exited(command, *code),
            (Kind::Exec(_), Err(error)) => {
                Status::internal("error executing command in container", error)
            }
            (Kind::Attach, Err(error)) => Status::internal("error attaching to container", error),
        }
    }

    fn exited(command: &[String], code: i32) -> Status {
        let command = command.join(" ");
        Status(json!({
            "status": "Failure",
            "message": format!(
                "command terminated with non-zero exit code: \
                 error executing command [{command}], exit code {code}"
            ),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }))
    }

    fn internal(doing: &str, error: &Error) -> Status {
        let error = error.chain();
        Status(json!({
            "status": "Failure",
            "message": format!("Internal error occurred: {doing}: {error}"),
            "reason": "InternalError",
            "code": 500,
        }))
    }

    /// What is sent, if anything.
    pub(super) fn encode(&self, form: Form) -> Option<Bytes> {
        match form {
            Form::Json => Some(self.0.to_string().into()),
            Form::Text => {
                let message = self.0["message"].as_str()?;
                Some(Bytes::copy_from_slice(message.as_bytes()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: &Kind, ended: Result<i32, Error>, form: Form) -> Option<Value> {
        let bytes = Status::of(kind, &ended).encode(form)?;
        Some(serde_json::from_slice(&bytes).unwrap_or_else(|_| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            Value::from(text)
        }))
    }

    #[test]
    fn exit_code_has_upstreams_status() {
        let exec = Kind::Exec(vec!["sh".to_owned(), "-c".to_owned()]);
        let success = json!({"status": "Success"});
        assert_eq!(text(&exec, Ok(0), Form::Json), Some(success));
        assert_eq!(text(&exec, Ok(0), Form::Text), None);
        let failure = json!({
            "status": "Failure",
            "message": "command terminated with non-zero exit code: \
                        error executing command [sh -c], exit code 3",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
        });
        assert_eq!(text(&exec, Ok(3), Form::Json), Some(failure.clone()));
        assert_eq!(
            text(&exec, Ok(3), Form::Text),
            Some(failure["message"].clone())
        );
    }

    #[test]
    fn a_command_that_cannot_run_is_an_internal_error() {
        let error = Error::failed("start \"nothing\"", "no such file");
        let status = text(&Kind::Exec(Vec::new()), Err(error), Form::Json).unwrap();
        assert_eq!(
            status["message"],
            "Internal error occurred: error executing command in container: \
             cannot start \"nothing\": no such file"
        );
        assert_eq!(status["reason"], "InternalError");
    }
}
