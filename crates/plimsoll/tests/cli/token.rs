//! `plimsoll token`.

use serde_json::{Deserializer, Value};

use crate::daemon::Daemon;
use crate::{Run, plimsoll};

#[test]
fn tokens_are_made_listed_and_deleted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let _server = Daemon::server(folder.path(), &[]);
    let kubeconfig = folder
        .path()
        .join("data/admin.kubeconfig")
        .display()
        .to_string();
    let token = |arguments: &[&str]| -> Run {
        plimsoll(
            &[&["token"], arguments, &["--kubeconfig", &kubeconfig]].concat(),
            "",
        )
    };
    assert_eq!(token(&["list"]).stdout, "");
    let made = |further: &[&str]| {
        let run = token(&[&["create"], further].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let words: Vec<&str> = run.stdout.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "--token");
        words[at.expect("a command") + 1].to_owned()
    };
    let described = made(&["--description", "for the second machine"]);
    let eternal = made(&["--ttl", "0s"]);
    let short = made(&["--ttl", "1s"]);

    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let row = |listed: &str, token: &str| {
        let row = listed.lines().find(|line| line.starts_with(token));
        row.unwrap_or_else(|| panic!("{token}: {listed}"))
            .to_owned()
    };
    let listed = loop {
        let listed = token(&["list"]).stdout;
        if row(&listed, &short).contains("<invalid>") {
            break listed;
        }
        assert!(std::time::Instant::now() < deadline, "{listed}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    let heading: Vec<&str> = listed
        .lines()
        .next()
        .unwrap_or_default()
        .split("   ")
        .collect();
    let heading: Vec<&str> = heading
        .into_iter()
        .map(str::trim)
        .filter(|h| !h.is_empty())
        .collect();
    let expected = [
        "TOKEN",
        "TTL",
        "EXPIRES",
        "USAGES",
        "DESCRIPTION",
        "EXTRA GROUPS",
    ];
    assert_eq!(heading, expected);
    let first = row(&listed, &described);
    assert!(
        first.contains("23h") && first.contains("for the second machine"),
        "{first}"
    );
    assert!(first.contains("authentication,signing"), "{first}");
    let second = row(&listed, &eternal);
    assert!(
        second.contains("<forever>") && second.contains("<never>"),
        "{second}"
    );

    let json = token(&["list", "-o", "json"]).stdout;
    let objects: Result<Vec<Value>, _> = Deserializer::from_str(&json).into_iter().collect();
    let objects = objects.expect("JSON");
    assert_eq!(objects.len(), 3, "{json}");
    assert!(
        objects
            .iter()
            .all(|object| object["kind"] == "BootstrapToken"),
        "{json}"
    );

    let id = &described[..6];
    let deleted = token(&["delete", id, &eternal]);
    let expected = format!(
        "bootstrap token \"{id}\" deleted\nbootstrap token \"{}\" deleted\n",
        &eternal[..6]
    );
    assert_eq!((deleted.stdout, deleted.code), (expected, Some(0)));
    let again = token(&["delete", id]);
    assert_eq!(again.code, Some(3));
    let expected =
        format!("Error from server (NotFound): secrets \"bootstrap-token-{id}\" not found\n");
    assert_eq!(again.stderr, expected);
    let wrong = token(&["delete", "WRONG"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("\"WRONG\""), "{}", wrong.stderr);
}
