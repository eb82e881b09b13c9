//! The first process: its command, user, working directory and environment.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::accounts::User;
use super::capabilities::capabilities;
use super::{Input, SpecError, namespaces};
use crate::wire::security_profile::ProfileType;
use crate::wire::{LinuxContainerSecurityContext, SupplementalGroupsPolicy};

const DEFAULT_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) struct Process {
    pub(super) json: Value,
    pub(super) cwd: PathBuf,
}

pub(super) fn process(
    input: &Input<'_>,
    security: &LinuxContainerSecurityContext,
    has_own_users: bool,
) -> Result<Process, SpecError> {
    let cwd = working_dir(input)?;
    let user = user(input, security)?;
    let mut env = env(input);
    // libcontainer sets it too, but for commands in such a container it takes the wrong user.
    if has_own_users && !env.iter().any(|entry| entry.starts_with("HOME=")) {
        env.push(format!("HOME={}", input.accounts.home(user.uid)));
    }
    let resources = input
        .config
        .linux
        .as_ref()
        .and_then(|linux| linux.resources.as_ref());
    let oom_score_adj = resources.map_or(0, |resources| resources.oom_score_adj);
    let mut json = json!({
        "terminal": input.config.tty,
        "user": { "uid": user.uid, "gid": user.gid, "additionalGids": user.groups },
        "args": args(input)?,
        "env": env,
        "cwd": cwd,
        "capabilities": capabilities(security, input.rights)?,
        "noNewPrivileges": security.no_new_privs,
        "oomScoreAdj": input.rights.oom_score_adj(oom_score_adj),
    });
    if let Some(profile) = apparmor_profile(security) {
        json["apparmorProfile"] = json!(profile);
    }
    Ok(Process { json, cwd })
}

/// A profile that the machine has loaded. Without AppArmor, containers that request one do not
/// start; the runtime has no default profile of its own.
fn apparmor_profile(security: &LinuxContainerSecurityContext) -> Option<&str> {
    let profile = security.apparmor.as_ref()?;
    (profile.profile_type() == ProfileType::Localhost).then(|| {
        let name = profile.localhost_ref.as_str();
        name.strip_prefix("localhost/").unwrap_or(name)
    })
}

/// A command replaces the image's entry point and its arguments, arguments only the latter.
fn args(input: &Input<'_>) -> Result<Vec<String>, SpecError> {
    let (config, image) = (input.config, input.image);
    let mut words = config.command.clone();
    if words.is_empty() {
        words.clone_from(&image.entrypoint);
        if config.args.is_empty() {
            words.extend_from_slice(&image.cmd);
        }
    }
    words.extend_from_slice(&config.args);
    if words.is_empty() {
        return Err(SpecError::NoCommand);
    }
    Ok(words)
}

/// The machine's or the sandbox's name, what the image sets, what the container sets; of two with
/// one name the later counts.
fn env(input: &Input<'_>) -> Vec<String> {
    let hostname = if namespaces::is_host_network(input.sandbox_config) {
        input.node_name
    } else {
        &input.sandbox_config.hostname
    };
    let mut all = vec![DEFAULT_PATH.to_owned()];
    if input.config.tty {
        all.push("TERM=xterm".to_owned());
    }
    all.push(format!("HOSTNAME={hostname}"));
    all.extend_from_slice(&input.image.env);
    all.extend(input.config.envs.iter().map(|pair| {
        let value = String::from_utf8_lossy(&pair.value);
        format!("{}={value}", pair.key)
    }));
    let mut env: Vec<String> = Vec::new();
    for entry in all {
        let name = entry.split('=').next().unwrap_or_default();
        let same = env
            .iter_mut()
            .find(|other| other.split('=').next() == Some(name));
        match same {
            Some(same) => *same = entry,
            None => env.push(entry),
        }
    }
    env
}

fn working_dir(input: &Input<'_>) -> Result<PathBuf, SpecError> {
    let wanted = [&input.config.working_dir, &input.image.working_dir];
    let dir = wanted.into_iter().find(|dir| !dir.is_empty());
    let dir = Path::new(dir.map_or("/", |dir| dir.as_str()));
    if !dir.is_absolute() {
        return Err(SpecError::RelativeDirectory(dir.display().to_string()));
    }
    Ok(dir.to_owned())
}

fn user(input: &Input<'_>, security: &LinuxContainerSecurityContext) -> Result<User, SpecError> {
    let id = |value: i64| u32::try_from(value).map_err(|_| SpecError::IdOutOfRange(value));
    let named = security.run_as_username.as_str();
    let mut text = match &security.run_as_user {
        Some(user) => id(user.value)?.to_string(),
        None => named.to_owned(),
    };
    if let Some(group) = &security.run_as_group {
        if text.is_empty() {
            return Err(SpecError::GroupWithoutUser(group.value));
        }
        text = format!("{text}:{}", id(group.value)?);
    }
    if text.is_empty() {
        text.clone_from(&input.image.user);
    }
    let extra = security.supplemental_groups.iter().map(|group| id(*group));
    let extra = extra.collect::<Result<Vec<u32>, SpecError>>()?;
    let merges = security.supplemental_groups_policy() == SupplementalGroupsPolicy::Merge;
    input.accounts.user(&text, &extra, merges)
}
