//! Which switch connects this process's node to the others (paper P3, section 2.1): a file of the environment says it.

use crate::node::fnv;
use unisono_posix::switches::{SwitchError, Switches};

/// Environment variable: a file with a line `NODE SWITCH` for each node.
pub const SWITCHES: &str = "UNISONO_SWITCHES";

/// What a process knows of its node's switch; a number of it is in each offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// The environment names no file.
    #[default]
    Untold,
    /// What is wrong with the file.
    Wrong(String),
    /// A hash of the switch's name.
    Known(u64),
}

impl Switch {
    /// Its number where there is no file.
    pub const UNTOLD: u64 = 0;
    /// Its number where the file is wrong.
    pub const WRONG: u64 = 1;

    /// The switch of this process's node.
    pub fn from_env() -> Self {
        match std::env::var_os(SWITCHES).filter(|file| !file.is_empty()) {
            None => Self::Untold,
            Some(file) => {
                let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
                let switch = Switches::read(file.as_ref()).and_then(|switches| of(&switches, &node));
                switch.unwrap_or_else(|error| Self::Wrong(format!("{SWITCHES}={}: {error}", file.display())))
            }
        }
    }

    /// The number in an offer.
    pub const fn number(&self) -> u64 {
        match self {
            Self::Untold => Self::UNTOLD,
            Self::Wrong(_) => Self::WRONG,
            Self::Known(hash) => *hash,
        }
    }
}

/// The switch of a node, by its whole name or by what is before the first point.
fn of(switches: &Switches, node: &str) -> Result<Switch, SwitchError> {
    let short = node.split_once('.').map_or(node, |(short, _)| short);
    let number = switches.of(node).or_else(|_| switches.of(short))?;
    Ok(Switch::Known(hash(switches.name(number).unwrap_or_default())))
}

/// Of a switch's name: none of the other numbers.
fn hash(name: &str) -> u64 {
    fnv(name.bytes()).max(Switch::WRONG + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_found_by_its_whole_name_or_its_first_part() {
        let switches = Switches::parse("n1 s1\nn2.site.org s2\nn3 s1\n").unwrap();
        let [one, two, three] = ["n1", "n2.site.org", "n3.site.org"].map(|node| of(&switches, node).unwrap().number());
        assert!(one == three && one != two && one.min(two) > Switch::WRONG);
        assert_eq!(of(&switches, "n2").unwrap_err().to_string(), "unknown node n2: lines 1 to 3 do not name it");
        assert_eq!([Switch::Untold.number(), Switch::Wrong(String::new()).number()], [0, 1]);
    }
}
