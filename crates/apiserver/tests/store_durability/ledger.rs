//! Writes that reveal every loss, repetition and partial transaction.
//!
//! A writer counts. Each step is one transaction: two counters become the number, a key named after
//! the number is created, and the key of five steps before is deleted.

use plimsoll_apiserver::store::{Error, Outcome, RangeRequest, Store, Txn};

/// Keys that a writer keeps.
const KEPT: u64 = 5;

/// A step that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) number: u64,
    pub(crate) revision: u64,
}

/// One writer's part of the store.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    name: String,
    /// Of the counters, to compare with.
    mod_revision: Option<u64>,
    /// The last number known to be stored.
    pub(crate) number: u64,
}

impl Ledger {
    /// Reads the writer's current number.
    pub(crate) async fn resume(store: &dyn Store, name: &str) -> Result<Self, Error> {
        let mut ledger = Self {
            name: name.to_owned(),
            mod_revision: None,
            number: 0,
        };
        ledger.read(store).await?;
        Ok(ledger)
    }

    fn counter(&self, which: &str) -> String {
        format!("/registry/{}/counter-{which}", self.name)
    }

    fn entry(&self, number: u64) -> String {
        format!("/registry/{}/entries/{number:010}", self.name)
    }

    async fn read(&mut self, store: &dyn Store) -> Result<(), Error> {
        let first = store.get(self.counter("a").as_bytes(), None).await?.entry;
        self.mod_revision = first.as_ref().map(|entry| entry.mod_revision);
        self.number = first.map_or(0, |entry| number(&entry.value));
        Ok(())
    }

    /// Tries the next step. After an error the ledger does not know its number.
    pub(crate) async fn step(&mut self, store: &dyn Store) -> Result<Acknowledged, Error> {
        let number = self.number + 1;
        let (a, b) = (self.counter("a"), self.counter("b"));
        let mut txn = match self.mod_revision {
            None => Txn::new().if_absent(a.clone()),
            Some(revision) => Txn::new().if_at(a.clone(), revision),
        };
        let value = number.to_string();
        txn = txn.if_absent(self.entry(number));
        txn = txn
            .put(a, value.clone())
            .put(self.entry(number), value.clone());
        if number > KEPT {
            txn = txn.delete(self.entry(number - KEPT));
        }
        match store.txn(txn.put(b, value)).await? {
            Outcome::Committed { revision } => {
                self.mod_revision = Some(revision);
                self.number = number;
                Ok(Acknowledged { number, revision })
            }
            conflict @ Outcome::Conflict { .. } => panic!("{}: {conflict:?}", self.name),
        }
    }

    /// Compares the stored state with the acknowledged one, and continues from it.
    pub(crate) async fn check(&mut self, store: &dyn Store, acknowledged: &[Acknowledged]) {
        self.read(store).await.unwrap();
        let name = &self.name;
        let second = store
            .get(self.counter("b").as_bytes(), None)
            .await
            .unwrap()
            .entry;
        let second = second.map(|entry| (entry.mod_revision, number(&entry.value)));
        let first = self.mod_revision.map(|revision| (revision, self.number));
        assert_eq!(first, second, "{name}: half a transaction");
        let last = acknowledged.last().map_or(0, |last| last.number);
        assert!(
            self.number >= last,
            "{name}: {last} was acknowledged, {} is stored",
            self.number
        );

        let prefix = format!("/registry/{name}/entries/");
        let page = store.range(RangeRequest::prefix(prefix)).await.unwrap();
        let numbers: Vec<u64> = page
            .entries
            .iter()
            .map(|entry| number(&entry.value))
            .collect();
        let oldest = self.number.saturating_sub(KEPT) + 1;
        let want: Vec<u64> = (oldest..=self.number).collect();
        assert_eq!(numbers, want, "{name}: lost or half transactions");
        for Acknowledged { number, revision } in acknowledged {
            if let Some(entry) = number
                .checked_sub(oldest)
                .map(|at| &page.entries[usize::try_from(at).unwrap()])
            {
                assert_eq!(
                    entry.mod_revision, *revision,
                    "{name}: revision of {number}"
                );
            }
        }
    }
}

fn number(value: &[u8]) -> u64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}
