//! The responses to one writer, and the objects that must therefore exist.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

/// Objects of each writer.
const OBJECTS: usize = 5;

/// The content of an object: a number, or nothing if it is gone.
type Content = Option<u64>;

/// One writer's objects, which no other client writes.
pub(crate) struct Ledger {
    writer: usize,
    /// What was acknowledged last.
    known: BTreeMap<String, Content>,
    /// The write under way when the server was killed; it may have happened or not.
    in_doubt: Option<(String, Content)>,
    next: u64,
}

impl Ledger {
    pub(crate) fn new(writer: usize) -> Ledger {
        Ledger {
            writer,
            known: BTreeMap::new(),
            in_doubt: None,
            next: 0,
        }
    }

    fn label(&self) -> String {
        format!("writer=w{}", self.writer)
    }

    /// Compares with what the server has, and settles what was in doubt.
    pub(crate) async fn check(&mut self, client: &Client, run: usize) {
        let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let list = api.list(&ListParams::default().labels(&self.label())).await;
        let found = list.unwrap().items.into_iter().map(|object| {
            let number = object.data.unwrap_or_default()["n"].parse().unwrap();
            (object.metadata.name.unwrap(), number)
        });
        let found: BTreeMap<String, u64> = found.collect();
        if let Some((name, content)) = self.in_doubt.take()
            && found.get(&name).copied() == content
        {
            self.known.insert(name, content);
        }
        let expected = self.known.iter();
        let expected = expected.filter_map(|(name, content)| Some((name.clone(), (*content)?)));
        let expected: BTreeMap<String, u64> = expected.collect();
        assert_eq!(found, expected, "run {run}: something acknowledged is lost");
    }

    /// Writes until the server is gone; the versions that were acknowledged.
    pub(crate) async fn write_until_it_fails(mut self, client: Client) -> (Ledger, Vec<u64>) {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        let mut acknowledged = Vec::new();
        loop {
            self.next += 1;
            let name = format!("w{}-{}", self.writer, fastrand::usize(0..OBJECTS));
            let is_there = self.known.get(&name).is_some_and(Option::is_some);
            let is_deleted = is_there && fastrand::u8(0..4) == 0;
            let content = (!is_deleted).then_some(self.next);
            self.in_doubt = Some((name.clone(), content));
            match self.write(&api, &name, is_there, content).await {
                Ok(version) => acknowledged.extend(version),
                Err(kube::Error::Api(status)) => panic!("{name}: {status:?}"),
                Err(_) => return (self, acknowledged),
            }
            self.in_doubt = None;
            self.known.insert(name, content);
        }
    }

    /// The version of the write; the response to a delete has none.
    async fn write(
        &self,
        api: &Api<ConfigMap>,
        name: &str,
        is_there: bool,
        content: Content,
    ) -> Result<Option<u64>, kube::Error> {
        let Some(number) = content else {
            api.delete(name, &DeleteParams::default()).await?;
            return Ok(None);
        };
        let data = json!({"n": number.to_string(), "padding": "x".repeat(500)});
        let written = if is_there {
            let patch = Patch::Merge(json!({"data": data}));
            api.patch(name, &PatchParams::default(), &patch).await?
        } else {
            let labels = json!({"writer": format!("w{}", self.writer)});
            let object = json!({"metadata": {"name": name, "labels": labels}, "data": data});
            let object = serde_json::from_value(object).unwrap();
            api.create(&PostParams::default(), &object).await?
        };
        let version = written.metadata.resource_version.unwrap();
        Ok(Some(version.parse().unwrap()))
    }
}

/// All versions that were ever acknowledged.
#[derive(Default)]
pub(crate) struct Versions {
    all: BTreeSet<u64>,
    this_run: BTreeSet<u64>,
}

impl Versions {
    pub(crate) fn take(&mut self, acknowledged: Vec<u64>) {
        for version in acknowledged {
            let is_new = self.this_run.insert(version);
            assert!(is_new, "version {version} was given twice");
        }
    }

    /// Versions of a run come after those of all runs before.
    pub(crate) fn close_run(&mut self, run: usize) {
        if let (Some(before), Some(first)) = (self.all.last(), self.this_run.first()) {
            assert!(first > before, "run {run}: version {first} after {before}");
        }
        self.all.append(&mut self.this_run);
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }
}
