//! Paper P3's description of a network (section 2.1, figure 2): a text file with a line `NODE SWITCH` per compute node.
//!
//! Empty lines, and the rest of a line from a `#` on, are ignored. Switches of level 2 are not in the file: all
//! switches of level 1 are connected to one group of them (P3, table 1).

use core::fmt;
use std::collections::HashMap;
use std::path::Path;

/// The switch of level 1 that each node is connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The switches' names, in order of appearance.
    names: Vec<String>,
    /// For each node its switch, and the line that says so.
    nodes: HashMap<String, (u32, usize)>,
    lines: usize,
}

impl Switches {
    /// Reads a file.
    ///
    /// # Errors
    /// The file can't be read; a line is not text; those of [`Self::parse`].
    pub fn read(path: &Path) -> Result<Self, SwitchError> {
        let bytes = std::fs::read(path).map_err(|error| SwitchError::Unreadable(error.to_string()))?;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            SwitchError::NoText { line: 1 + before.iter().filter(|byte| **byte == b'\n').count() }
        })?;
        Self::parse(text)
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// A line that is not two words; a second line for a node.
    pub fn parse(text: &str) -> Result<Self, SwitchError> {
        let mut switches = Self::default();
        let mut numbers = HashMap::new();
        for (line, content) in (1..).zip(text.lines()) {
            switches.lines = line;
            let content = content.split_once('#').map_or(content, |(content, _)| content);
            let words: Vec<_> = content.split_whitespace().collect();
            let (node, switch) = match words[..] {
                [] => continue,
                [node, switch] => (node, switch),
                _ => return Err(SwitchError::Malformed { line, words: words.len() }),
            };
            let next = switches.names.len() as u32;
            let number = *numbers.entry(switch).or_insert(next);
            if number == next {
                switches.names.push(switch.to_owned());
            }
            if let Some((_, before)) = switches.nodes.insert(node.to_owned(), (number, line)) {
                return Err(SwitchError::Repeated { line, node: node.to_owned(), before });
            }
        }
        Ok(switches)
    }

    /// The number of a node's switch.
    ///
    /// # Errors
    /// No line names the node.
    pub fn of(&self, node: &str) -> Result<u32, SwitchError> {
        let unknown = || SwitchError::Unknown { node: node.to_owned(), lines: self.lines };
        self.nodes.get(node).map(|(switch, _)| *switch).ok_or_else(unknown)
    }

    /// The name of a switch.
    pub fn name(&self, switch: u32) -> Option<&str> {
        self.names.get(switch as usize).map(String::as_str)
    }
}

/// Why a description of a network is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SwitchError {
    /// The file can't be read, for this reason.
    Unreadable(String),
    /// A line is not text in UTF-8.
    NoText {
        /// The line, from 1.
        line: usize,
    },
    /// A line is not a node and a switch.
    Malformed {
        /// The line, from 1.
        line: usize,
        /// Its number of words.
        words: usize,
    },
    /// A node has a line already.
    Repeated {
        /// The line, from 1.
        line: usize,
        /// The node.
        node: String,
        /// Its first line.
        before: usize,
    },
    /// A node that has processes has no line.
    Unknown {
        /// The node.
        node: String,
        /// Number of lines of the file.
        lines: usize,
    },
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(cause) => f.write_str(cause),
            Self::NoText { line } => write!(f, "line {line}: not text in UTF-8"),
            Self::Malformed { line, words: 1 } => write!(f, "line {line}: 1 word, must be 2: NODE SWITCH"),
            Self::Malformed { line, words } => write!(f, "line {line}: {words} words, must be 2: NODE SWITCH"),
            Self::Repeated { line, node, before } => {
                write!(f, "line {line}: node {node} again, first on line {before}")
            }
            Self::Unknown { node, lines: 0 } => write!(f, "unknown node {node}: the file is empty"),
            Self::Unknown { node, lines } => write!(f, "unknown node {node}: lines 1 to {lines} do not name it"),
        }
    }
}

impl core::error::Error for SwitchError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_file() {
        let mut text = String::from("# <node-name> <switch-name>\n\n");
        for node in 1..=64 {
            text += &format!("node{node:02} sw1{}\n", (node - 1) / 16 + 1);
        }
        let switches = Switches::parse(&text).unwrap();
        let name = |node| switches.of(node).map(|switch| switches.name(switch));
        assert_eq!(name("node01"), Ok(Some("sw11")));
        assert_eq!(name("node16"), Ok(Some("sw11")));
        assert_eq!(name("node48"), Ok(Some("sw13")));
        assert_eq!(name("node64"), Ok(Some("sw14")));
        assert_eq!(switches.of("node65").unwrap_err().to_string(), "unknown node node65: lines 1 to 66 do not name it");
    }

    #[test]
    fn comments_and_space_count_for_nothing() {
        let switches = Switches::parse("\t# a\r\n  n1\t s1 # rack 1\r\n\r\nn2 s2#x\nn3 s1").unwrap();
        assert_eq!(["n1", "n2", "n3"].map(|node| switches.of(node)), [Ok(0), Ok(1), Ok(0)]);
        let none = Switches::parse("").unwrap().of("n1").unwrap_err();
        assert_eq!(none.to_string(), "unknown node n1: the file is empty");
    }

    #[test]
    fn bad_files_name_the_line() {
        for (text, message) in [
            ("n1 s1\n\nn2\n", "line 3: 1 word, must be 2: NODE SWITCH"),
            ("# x\nn1 s1 s2\n", "line 2: 3 words, must be 2: NODE SWITCH"),
            ("node01 sw11\n...\nnode16 sw11", "line 2: 1 word, must be 2: NODE SWITCH"),
            ("n1 s1\nn2 s1\n#\nn1 s1\n", "line 4: node n1 again, first on line 1"),
            ("n1 s1\nn1 s2\n", "line 2: node n1 again, first on line 1"),
        ] {
            assert_eq!(Switches::parse(text).unwrap_err().to_string(), message, "{text}");
        }
        assert!(matches!(Switches::read(Path::new("/no/such/file")), Err(SwitchError::Unreadable(_))));
        let path = std::env::temp_dir().join(format!("unisono-switches-{}", std::process::id()));
        std::fs::write(&path, b"n1 s1\nn2 \xff\n").unwrap();
        let read = Switches::read(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap_err().to_string(), "line 2: not text in UTF-8");
    }
}
