//! Columns of text, three spaces apart, as kubectl prints them.

/// Rows of cells; the first row is the heading.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

const GAP: &str = "   ";

impl Table {
    pub fn new<T: Into<String>>(heading: impl IntoIterator<Item = T>) -> Table {
        let mut table = Table::default();
        table.row(heading);
        table
    }

    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The lines, without trailing spaces.
    pub fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        self.rows
            .iter()
            .map(|row| {
                let padded: Vec<String> = row
                    .iter()
                    .zip(&widths)
                    .map(|(cell, width)| format!("{cell:width$}"))
                    .collect();
                padded.join(GAP).trim_end().to_owned()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["NAME", "VALUE"]);
        table.row(["a", "1"]);
        table.row(["a longer one", ""]);
        assert_eq!(
            table.lines(),
            ["NAME           VALUE", "a              1", "a longer one"]
        );
    }
}
